use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use crate::Kernel;
use crate::alphabet::{Alphabet, Charset, FOREIGN, SKIPPED};

/// How strict a decoder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `Buffer.from(text, 'base64')`: both alphabets at once, foreign characters skipped, the first `=` ends the text. Never fails.
    Node,
    /// WHATWG forgiving-base64, which is `Uint8Array.fromBase64` in its `loose` form: ASCII white space skipped, padding optional.
    Forgiving,
    /// `Uint8Array.fromBase64` in its `strict` form: as forgiving, but padding and zero bits below the last byte are required.
    Strict,
}

/// Why text is not base64. `offset` counts characters from the start of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// A character outside the alphabet.
    InvalidCharacter { offset: usize },
    /// A `=` where none may stand, or data after one.
    InvalidPadding { offset: usize },
    /// The last data character carries bits that no byte takes up.
    ExcessBits { offset: usize },
    /// The text ends where padding is required.
    MissingPadding { offset: usize },
    /// The text ends after one character of a quantum, which makes no byte.
    LoneCharacter { offset: usize },
    /// The caller's memory cannot hold what this text may become.
    OutputTooSmall,
}

impl Display for DecodeError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidCharacter { offset } => write!(f, "invalid base64 character at {offset}"),
            Self::InvalidPadding { offset } => write!(f, "misplaced base64 padding at {offset}"),
            Self::ExcessBits { offset } => {
                write!(f, "base64 character at {offset} has bits that no byte takes up")
            }
            Self::MissingPadding { offset } => write!(f, "base64 padding missing at {offset}"),
            Self::LoneCharacter { offset } => {
                write!(f, "base64 text ends at {offset} with a lone character")
            }
            Self::OutputTooSmall => f.write_str("output too small for the decoded bytes"),
        }
    }
}

impl Error for DecodeError {}

impl DecodeError {
    /// The character that makes the text invalid.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        match *self {
            Self::InvalidCharacter { offset }
            | Self::InvalidPadding { offset }
            | Self::ExcessBits { offset }
            | Self::MissingPadding { offset }
            | Self::LoneCharacter { offset } => Some(offset),
            Self::OutputTooSmall => None,
        }
    }
}

/// The most bytes that `len` characters can become.
#[must_use]
pub const fn max_decoded_len(len: usize) -> usize {
    let partial = match len % 4 {
        2 => 1,
        3 => 2,
        _ => 0,
    };
    len / 4 * 3 + partial
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Data,
    /// After one `=` that asks for a second.
    Padding,
    /// After the padding: only white space may follow.
    Padded,
    /// Node: after the first `=` nothing counts.
    Ended,
}

/// Decodes one text that arrives in parts. After an error it is spent.
#[derive(Clone, Debug)]
pub struct Decoder {
    mode: Mode,
    charset: Charset,
    kernel: Kernel,
    phase: Phase,
    /// The values of an unfinished quantum, the latest lowest, and how many they are.
    quantum: u32,
    count: usize,
    /// Characters read in earlier parts.
    consumed: usize,
    /// Where the latest data character of the unfinished quantum stands.
    latest: usize,
}

/// Bytes that became whole with a character, in the high end.
type Emitted = Option<([u8; 3], usize)>;

impl Decoder {
    /// `alphabet` does not matter to [`Mode::Node`], which takes both.
    #[must_use]
    pub fn new(mode: Mode, alphabet: Alphabet) -> Self {
        Self::with_kernel(mode, alphabet, Kernel::best())
    }

    #[must_use]
    pub fn with_kernel(mode: Mode, alphabet: Alphabet, kernel: Kernel) -> Self {
        let charset = if mode == Mode::Node { Charset::Either } else { alphabet.into() };
        Self {
            mode,
            charset,
            kernel,
            phase: Phase::Data,
            quantum: 0,
            count: 0,
            consumed: 0,
            latest: 0,
        }
    }

    /// Decodes the next part of the text into `dst` and tells how many bytes were written.
    /// `dst` must hold the most that this part can become: [`max_decoded_len`] of its length and of what was left of the last one.
    ///
    /// # Errors
    /// Where the text is not base64, or `dst` is too small.
    pub fn decode(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        if dst.len() < self.most(src.len()) {
            return Err(DecodeError::OutputTooSmall);
        }
        // SAFETY: `src` is readable, and `dst`, which Rust keeps apart from it, holds the most that `src` can become.
        unsafe { self.advance(src.as_ptr(), src.len(), dst.as_mut_ptr()) }
    }

    /// As [`Self::decode`], for text that stands in the memory the bytes go to: the part at `text`, the bytes to `at` and on.
    /// The bytes never overtake the text, since they are fewer.
    ///
    /// # Errors
    /// Where the text is not base64, or `at` stands so late that bytes would overwrite text not yet read.
    pub fn decode_in_place(
        &mut self,
        memory: &mut [u8],
        text: Range<usize>,
        at: usize,
    ) -> Result<usize, DecodeError> {
        let fits = at.checked_add(self.count).is_some_and(|least| least <= text.start);
        if !fits || text.end < text.start || memory.len() < text.end {
            return Err(DecodeError::OutputTooSmall);
        }
        let base = memory.as_mut_ptr();
        let (src, dst) = (base.wrapping_add(text.start), base.wrapping_add(at));
        // SAFETY: `at <= text.start <= text.end <= memory.len()`. `at + count <= text.start` holds before the first
        // character, and a quantum takes four characters for three bytes, so what is written ends at or before what has
        // been read.
        unsafe { self.advance(src, text.len(), dst) }
    }

    /// Ends the text: writes what an unpadded last quantum holds (two bytes at most) and tells how many bytes that is.
    ///
    /// # Errors
    /// Where the text may not end here, or `dst` is too small.
    pub fn finish(self, dst: &mut [u8]) -> Result<usize, DecodeError> {
        if self.phase == Phase::Padding {
            return Err(DecodeError::MissingPadding { offset: self.consumed });
        }
        match (self.mode, self.count) {
            (_, 0) | (Mode::Node, 1) => return Ok(0),
            (Mode::Strict, _) => return Err(DecodeError::MissingPadding { offset: self.consumed }),
            (Mode::Forgiving, 1) => {
                return Err(DecodeError::LoneCharacter { offset: self.consumed });
            }
            _ => {}
        }
        let (bytes, len) = self.partial();
        let bytes = bytes.get(..len).ok_or(DecodeError::OutputTooSmall)?;
        dst.get_mut(..len).ok_or(DecodeError::OutputTooSmall)?.copy_from_slice(bytes);
        Ok(len)
    }

    /// Characters of an unfinished quantum.
    pub(crate) fn pending(&self) -> usize {
        self.count
    }

    fn most(&self, len: usize) -> usize {
        len.checked_add(self.count).map_or(usize::MAX, max_decoded_len)
    }

    /// # Safety
    /// `src` is readable for `len` bytes, `dst` writable for [`Self::most`] of them. The two may overlap only as
    /// [`Self::decode_in_place`] says.
    unsafe fn advance(
        &mut self,
        src: *const u8,
        len: usize,
        dst: *mut u8,
    ) -> Result<usize, DecodeError> {
        let (mut read, mut written) = (0, 0);
        while read < len && self.phase != Phase::Ended {
            if self.phase == Phase::Data && self.count == 0 && 4 <= len - read {
                let (rest, room) = (src.wrapping_add(read), dst.wrapping_add(written));
                // SAFETY: `len - read` characters are left. What has been written came from characters already read, so
                // there is room for what the rest can become.
                let progress = unsafe { self.kernel.decode(rest, len - read, room, self.charset) };
                read += progress.read;
                written += progress.written;
                if read == len {
                    break;
                }
            }
            // SAFETY: `read < len`.
            let character = unsafe { src.wrapping_add(read).read() };
            if let Some((bytes, count)) = self.step(character, self.consumed + read)? {
                let room = dst.wrapping_add(written);
                // SAFETY: `count <= 3` bytes of an array of three; they have room, since their characters have been read.
                unsafe { room.copy_from_nonoverlapping(bytes.as_ptr(), count) };
                written += count;
            }
            read += 1;
        }
        self.consumed += len;
        Ok(written)
    }

    /// Takes one character, whatever it is.
    fn step(&mut self, character: u8, offset: usize) -> Result<Emitted, DecodeError> {
        if self.value(character) == SKIPPED {
            return Ok(None);
        }
        match self.phase {
            Phase::Ended => Ok(None),
            Phase::Data if character == b'=' => self.pad(offset),
            Phase::Data => self.push(character, offset),
            Phase::Padding if character == b'=' => Ok(Some(self.emit_padded())),
            Phase::Padding | Phase::Padded
                if character == b'=' || self.value(character) < FOREIGN =>
            {
                Err(DecodeError::InvalidPadding { offset })
            }
            Phase::Padding | Phase::Padded => Err(DecodeError::InvalidCharacter { offset }),
        }
    }

    fn push(&mut self, character: u8, offset: usize) -> Result<Emitted, DecodeError> {
        let value = self.value(character);
        if FOREIGN <= value {
            return Err(DecodeError::InvalidCharacter { offset });
        }
        self.quantum = self.quantum << 6 | u32::from(value);
        self.count += 1;
        self.latest = offset;
        if self.count < 4 {
            return Ok(None);
        }
        let [_, first, second, third] = self.quantum.to_be_bytes();
        self.quantum = 0;
        self.count = 0;
        Ok(Some(([first, second, third], 3)))
    }

    /// The first `=`.
    fn pad(&mut self, offset: usize) -> Result<Emitted, DecodeError> {
        if self.mode == Mode::Node {
            self.phase = Phase::Ended;
            return Ok(None);
        }
        if self.count < 2 {
            return Err(DecodeError::InvalidPadding { offset });
        }
        if self.mode == Mode::Strict && self.excess_bits() != 0 {
            return Err(DecodeError::ExcessBits { offset: self.latest });
        }
        if self.count == 3 {
            return Ok(Some(self.emit_padded()));
        }
        self.phase = Phase::Padding;
        Ok(None)
    }

    fn emit_padded(&mut self) -> ([u8; 3], usize) {
        let emitted = self.partial();
        self.phase = Phase::Padded;
        self.quantum = 0;
        self.count = 0;
        emitted
    }

    /// The whole bytes of an unfinished quantum of two or three characters.
    fn partial(&self) -> ([u8; 3], usize) {
        let missing = 4 - self.count as u32;
        let [_, first, second, _] = (self.quantum << (6 * missing)).to_be_bytes();
        ([first, second, 0], self.count - 1)
    }

    fn excess_bits(&self) -> u32 {
        if self.count == 2 { self.quantum & 0xf } else { self.quantum & 0x3 }
    }

    #[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
    fn value(&self, character: u8) -> u8 {
        self.charset.values()[usize::from(character)]
    }
}
