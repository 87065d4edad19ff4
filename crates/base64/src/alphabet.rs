//! Alphabets, and the value of every byte in each of them. The decoder and all kernels read these tables.

/// The two characters of the values 62 and 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// `+` and `/`.
    Standard,
    /// `-` and `_`.
    Url,
}

/// The characters that a decoder accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Accepts the standard alphabet and skips ASCII white space.
    Standard,
    /// Accepts the url alphabet and skips ASCII white space.
    Url,
    /// Accepts both alphabets, as Node does, and skips every foreign character but `=`.
    Either,
}

impl From<Alphabet> for Charset {
    fn from(alphabet: Alphabet) -> Self {
        match alphabet {
            Alphabet::Standard => Self::Standard,
            Alphabet::Url => Self::Url,
        }
    }
}

/// Bit in the entry of every character that is not data.
pub const FOREIGN: u8 = 0x80;
/// Entry of a foreign character that is skipped.
pub const SKIPPED: u8 = 0xc0;
/// Entry of a foreign character that kernels leave to the decoder.
pub const STOP: u8 = 0x80;

/// Entry of each byte: a value below 64, [`SKIPPED`] or [`STOP`].
pub type CharacterValues = [u8; 256];

impl Charset {
    /// Returns the entries of all bytes.
    pub const fn values(self) -> &'static CharacterValues {
        match self {
            Self::Standard => &STANDARD,
            Self::Url => &URL,
            Self::Either => &EITHER,
        }
    }

    /// Returns the entry of every byte from 128 on.
    #[cfg_attr(
        not(all(target_arch = "x86_64", avx512)),
        allow(dead_code, reason = "only kernels with tables of 128 entries need it")
    )]
    pub const fn beyond_ascii(self) -> u8 {
        match self {
            Self::Standard | Self::Url => STOP,
            Self::Either => SKIPPED,
        }
    }
}

static STANDARD: CharacterValues = values_of(Charset::Standard);
static URL: CharacterValues = values_of(Charset::Url);
static EITHER: CharacterValues = values_of(Charset::Either);

#[allow(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where an index out of bounds does not build"
)]
const fn values_of(charset: Charset) -> CharacterValues {
    let mut values = [charset.beyond_ascii(); 256];
    let spaces = b" \t\n\x0c\r";
    let mut index = 0;
    while index < spaces.len() {
        values[spaces[index] as usize] = SKIPPED;
        index += 1;
    }
    values[b'=' as usize] = STOP;
    let mut value = 0;
    while value < 62 {
        values[Alphabet::Standard.characters()[value as usize] as usize] = value;
        value += 1;
    }
    if !matches!(charset, Charset::Url) {
        values[b'+' as usize] = 62;
        values[b'/' as usize] = 63;
    }
    if !matches!(charset, Charset::Standard) {
        values[b'-' as usize] = 62;
        values[b'_' as usize] = 63;
    }
    values
}

impl Alphabet {
    /// Returns the character of each value.
    pub(crate) const fn characters(self) -> &'static [u8; 64] {
        match self {
            Self::Standard => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            Self::Url => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
        }
    }
}
