//! Decodes base85 as Python's `base64.b85encode` writes it: the alphabet of RFC 1924, five characters for four bytes, the
//! last group cut short. Ascii85 (`a85encode`) has another alphabet.
//!
//! Runs in a task, and for a header on the JS thread; `reader.rs` calls it.

use std::error::Error;
use std::fmt;

const CHARACTERS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
const FOREIGN: u8 = 0xff;
const VALUES: [u8; 256] = {
    let mut values = [FOREIGN; 256];
    let mut value = 0;
    while value < CHARACTERS.len() {
        #[allow(
            clippy::indexing_slicing,
            reason = "both indexes are in bounds, or this does not compile"
        )]
        {
            values[CHARACTERS[value] as usize] = value as u8;
        }
        value += 1;
    }
    values
};

/// Why text is not base85. `offset` counts characters from the start of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base85Error {
    /// The character is outside the alphabet.
    InvalidCharacter { offset: usize },
    /// The group that starts here exceeds 32 bits.
    Overflow { offset: usize },
    /// The text ends after one character of a group, which encodes no byte.
    LoneCharacter { offset: usize },
}

impl Base85Error {
    /// Returns the offset.
    #[must_use]
    pub fn offset(&self) -> usize {
        match *self {
            Self::InvalidCharacter { offset }
            | Self::Overflow { offset }
            | Self::LoneCharacter { offset } => offset,
        }
    }
}

impl fmt::Display for Base85Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidCharacter { offset } => write!(f, "invalid base85 character at {offset}"),
            Self::Overflow { offset } => {
                write!(f, "the base85 group at {offset} stands for more than four bytes")
            }
            Self::LoneCharacter { offset } => {
                write!(f, "base85 text ends at {offset} with a lone character")
            }
        }
    }
}

impl Error for Base85Error {}

/// Returns how many bytes `len` characters encode.
#[must_use]
pub const fn base85_len(len: usize) -> usize {
    len / 5 * 4 + (len % 5).saturating_sub(1)
}

/// Decodes a text, any number of bytes at a time.
#[derive(Clone, Debug)]
pub struct Base85Reader<'a> {
    text: &'a [u8],
    /// Characters read.
    at: usize,
    /// Bytes of the latest group.
    group: [u8; 4],
    /// Bytes at the end of the group that the caller has not read.
    unread: usize,
    /// Bytes of the group: four, or fewer at the end of the text.
    size: usize,
}

impl<'a> Base85Reader<'a> {
    /// Starts at the first character of `text`.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, group: [0; 4], unread: 0, size: 0 }
    }

    /// Fills `out` from its start and returns how many bytes it wrote; fewer than `out` holds only at the end.
    ///
    /// # Errors
    /// If the text is not base85.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, Base85Error> {
        let mut filled = 0;
        loop {
            let rest = out.get_mut(filled..).unwrap_or_default();
            let unread = self.group.get(self.size - self.unread..self.size).unwrap_or_default();
            for (to, from) in rest.iter_mut().zip(unread) {
                *to = *from;
            }
            let now = unread.len().min(rest.len());
            self.unread -= now;
            filled += now;
            for whole in rest.get_mut(now..).unwrap_or_default().as_chunks_mut().0 {
                let Some(characters) = self.text.get(self.at..).and_then(<[u8]>::first_chunk)
                else {
                    break;
                };
                *whole = self.value(*characters)?.to_be_bytes();
                self.at += 5;
                filled += whole.len();
            }
            if filled == out.len() || self.text.len() <= self.at {
                return Ok(filled);
            }
            self.fill()?;
        }
    }

    /// Reads the next group, which may be the last.
    fn fill(&mut self) -> Result<(), Base85Error> {
        // A short last group is padded with the highest character.
        let mut characters = [b'~'; 5];
        let left = self.text.get(self.at..).unwrap_or_default();
        if left.len() == 1 {
            return Err(Base85Error::LoneCharacter { offset: self.text.len() });
        }
        for (to, from) in characters.iter_mut().zip(left) {
            *to = *from;
        }
        self.group = self.value(characters)?.to_be_bytes();
        self.size = base85_len(left.len().min(5));
        self.unread = self.size;
        self.at += left.len().min(5);
        Ok(())
    }

    fn value(&self, characters: [u8; 5]) -> Result<u32, Base85Error> {
        let mut value = 0;
        for (index, &character) in characters.iter().enumerate() {
            #[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
            let digit = VALUES[usize::from(character)];
            if digit == FOREIGN {
                return Err(Base85Error::InvalidCharacter { offset: self.at + index });
            }
            value = value * 85 + u64::from(digit);
        }
        u32::try_from(value).map_err(|_| Base85Error::Overflow { offset: self.at })
    }
}
