/// The characters that stand for 62 and 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// `+` and `/`.
    Standard,
    /// `-` and `_`.
    Url,
}

/// What a decoder makes of each character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// The standard alphabet; ASCII white space is skipped.
    Standard,
    /// The url alphabet; ASCII white space is skipped.
    Url,
    /// Both alphabets at once, as Node has it: all that is foreign is skipped but `=`.
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

/// Set in the value of every character that is no data.
pub const FOREIGN: u8 = 0x80;
/// A foreign character that is skipped.
pub const SKIPPED: u8 = 0xc0;
/// A foreign character that the kernels leave to the decoder.
pub const STOP: u8 = 0x80;

/// What each byte is: a value below 64, [`SKIPPED`] or [`STOP`].
pub type Values = [u8; 256];

impl Charset {
    pub const fn values(self) -> &'static Values {
        match self {
            Self::Standard => &STANDARD,
            Self::Url => &URL,
            Self::Either => &EITHER,
        }
    }

    /// What a byte is whose high bit is set.
    #[cfg_attr(
        not(all(target_arch = "x86_64", avx512)),
        allow(dead_code, reason = "for tables of 128")
    )]
    pub const fn beyond_ascii(self) -> u8 {
        match self {
            Self::Standard | Self::Url => STOP,
            Self::Either => SKIPPED,
        }
    }
}

static STANDARD: Values = values_of(Charset::Standard);
static URL: Values = values_of(Charset::Url);
static EITHER: Values = values_of(Charset::Either);

#[allow(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where an index out of bounds does not build"
)]
const fn values_of(charset: Charset) -> Values {
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
    /// The character of each value.
    pub(crate) const fn characters(self) -> &'static [u8; 64] {
        match self {
            Self::Standard => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            Self::Url => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
        }
    }
}
