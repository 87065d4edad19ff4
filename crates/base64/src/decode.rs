//! Decodes base64 in parts: one state machine with every rule, which hands whole quanta to a kernel.
//!
//! `pieces.rs` and `reader.rs` call it, on the JS thread for small texts and in tasks for large ones.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use crate::Base64Kernel;
use crate::alphabet::{Alphabet, Charset, FOREIGN, SKIPPED};

/// How strict a decoder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Decodes as `Buffer.from(text, 'base64')`: accepts both alphabets, skips foreign characters, ends at the first `=`.
    /// Never fails.
    Node,
    /// Decodes WHATWG forgiving-base64, as `Uint8Array.fromBase64` does in `loose` mode: skips ASCII white space; padding
    /// is optional.
    Forgiving,
    /// Decodes as `Uint8Array.fromBase64` in `strict` mode: skips ASCII white space; requires padding and canonical bits.
    Strict,
}

/// Why text is not base64. `offset` counts characters from the start of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The character is outside the alphabet.
    InvalidCharacter { offset: usize },
    /// The character is a misplaced `=`, or data after the padding.
    InvalidPadding { offset: usize },
    /// The last data character has bits that belong to no byte.
    ExcessBits { offset: usize },
    /// The text ends where padding is required.
    MissingPadding { offset: usize },
    /// The text ends after one character of a quantum, which encodes no byte.
    LoneCharacter { offset: usize },
    /// The output cannot hold the most that the text can become.
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
    /// Returns the offset of the character that makes the text invalid.
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

/// Returns the most bytes that `len` characters can become.
#[must_use]
pub const fn max_decoded_len(len: usize) -> usize {
    let partial = match len % 4 {
        2 => 1,
        3 => 2,
        _ => 0,
    };
    len / 4 * 3 + partial
}

/// Part of the text that the decoder is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Data,
    /// After the first of two `=`.
    Padding,
    /// After the padding: only white space may follow.
    Padded,
    /// After the first `=` in Node's mode: every character is ignored.
    Ended,
}

/// Decodes one text that arrives in parts. It cannot be used after an error.
#[derive(Clone, Debug)]
pub struct Decoder {
    mode: Mode,
    charset: Charset,
    kernel: Base64Kernel,
    phase: Phase,
    /// Values of an unfinished quantum, six bits each, the latest in the lowest bits.
    quantum: u32,
    /// Characters of that quantum.
    count: usize,
    /// Characters read in earlier parts.
    consumed: usize,
    /// Offset of the latest data character of the unfinished quantum.
    latest: usize,
}

/// Bytes that a character completed, and how many of the three they are.
type Emitted = Option<([u8; 3], usize)>;

impl Decoder {
    /// Starts at the first character of a text, with the fastest kernel. [`Mode::Node`] ignores `alphabet`.
    #[must_use]
    pub fn new(mode: Mode, alphabet: Alphabet) -> Self {
        Self::with_kernel(mode, alphabet, Base64Kernel::best())
    }

    /// Starts at the first character of a text, with a kernel of the caller's choice.
    #[must_use]
    pub fn with_kernel(mode: Mode, alphabet: Alphabet, kernel: Base64Kernel) -> Self {
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

    /// Decodes the next part of the text into `dst` and returns how many bytes it wrote.
    ///
    /// `dst` must hold [`max_decoded_len`] of this part and of the characters left over from the part before.
    ///
    /// # Errors
    /// If the text is not base64, or `dst` is too small.
    pub fn decode(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        if dst.len() < self.most(src.len()) {
            return Err(DecodeError::OutputTooSmall);
        }
        // SAFETY: `src` is readable; `dst` holds the most that `src` can become; a `&mut` does not overlap `src`.
        unsafe { self.advance(src.as_ptr(), src.len(), dst.as_mut_ptr()) }
    }

    /// Decodes the next part of the text, which is at `text` in `memory`, to `at` in the same memory.
    ///
    /// Bytes never overtake the text: a quantum of four characters becomes three bytes.
    ///
    /// # Errors
    /// If the text is not base64, or bytes written from `at` on would overwrite unread text.
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
        // character, and four characters become three bytes, so writes end at or before the characters already read.
        unsafe { self.advance(src, text.len(), dst) }
    }

    /// Ends the text: writes the at most two bytes of an unpadded last quantum and returns how many they are.
    ///
    /// # Errors
    /// If the text may not end here, or `dst` is too small.
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

    /// Returns how many characters the unfinished quantum has.
    pub(crate) fn pending(&self) -> usize {
        self.count
    }

    fn most(&self, len: usize) -> usize {
        len.checked_add(self.count).map_or(usize::MAX, max_decoded_len)
    }

    /// Decodes `len` characters.
    ///
    /// # Safety
    /// - `src` is readable for `len` bytes, and `dst` is writable for [`Self::most`] of them.
    /// - The two do not overlap, or `dst` plus the unfinished characters ends at or before `src`.
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
                // SAFETY: `len - read` characters are left. All bytes written so far came from characters already read,
                // so there is room for the most that the rest can become.
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
                // SAFETY: `count <= 3` bytes of an array of three. Their characters have been read, so they have room.
                unsafe { room.copy_from_nonoverlapping(bytes.as_ptr(), count) };
                written += count;
            }
            read += 1;
        }
        self.consumed += len;
        Ok(written)
    }

    /// Reads one character of any kind.
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

    /// Reads the first `=`.
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

    /// Returns the whole bytes of an unfinished quantum of two or three characters.
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
