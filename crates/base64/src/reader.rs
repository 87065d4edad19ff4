//! Decodes base64 on demand, any number of bytes at a time, and finds the decoded size.
//!
//! `crates/experts` calls it, for headers on the JS thread and otherwise in a task.

use std::ops::Range;

use crate::alphabet::Alphabet;
use crate::decode::{DecodeError, Decoder, Mode, max_decoded_len};

/// Decodes a text, any number of bytes at a time.
#[derive(Clone, Debug)]
pub struct Base64Reader<'a> {
    text: &'a [u8],
    /// Characters given to the decoder.
    at: usize,
    decoder: Decoder,
    /// Bytes of a quantum that the caller asked for only in part.
    spare: [u8; 3],
    /// Bytes of `spare` that the caller has not read.
    unread: Range<usize>,
    is_finished: bool,
}

impl<'a> Base64Reader<'a> {
    /// Starts at the first character of `text`.
    #[must_use]
    pub fn new(text: &'a [u8], mode: Mode, alphabet: Alphabet) -> Self {
        let decoder = Decoder::new(mode, alphabet);
        Self { text, at: 0, decoder, spare: [0; 3], unread: 0..0, is_finished: false }
    }

    /// Fills `out` from its start and returns how many bytes it wrote; fewer than `out` holds only at the end.
    ///
    /// # Errors
    /// If the text is not base64.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, DecodeError> {
        let mut filled = 0;
        loop {
            let rest = out.get_mut(filled..).unwrap_or_default();
            let unread = self.spare.get(self.unread.clone()).unwrap_or_default();
            for (to, from) in rest.iter_mut().zip(unread) {
                *to = *from;
            }
            let now = unread.len().min(rest.len());
            self.unread.start += now;
            filled += now;
            if filled == out.len() || self.is_finished {
                return Ok(filled);
            }
            if self.text.len() == self.at {
                self.is_finished = true;
                self.unread = 0..self.decoder.clone().finish(&mut self.spare)?;
                continue;
            }
            let rest = out.get_mut(filled..).unwrap_or_default();
            // Takes as many characters as have room once decoded.
            let most = rest.len() / 3 * 4;
            let pending = self.decoder.pending();
            if pending < most {
                let text = self.take(most - pending);
                filled += self.decoder.decode(text, rest)?;
            } else {
                let text = self.take(4 - pending);
                self.unread = 0..self.decoder.decode(text, &mut self.spare)?;
            }
        }
    }

    /// Returns the next characters, at most `len`.
    fn take(&mut self, len: usize) -> &'a [u8] {
        let end = self.text.len().min(self.at + len);
        let taken = self.text.get(self.at..end).unwrap_or_default();
        self.at = end;
        taken
    }
}

/// Returns the most bytes that `text` can become. The result is exact for padded text without white space.
#[must_use]
pub fn most_decoded(text: &[u8]) -> usize {
    let padding = text.iter().rev().take(2).take_while(|&&character| character == b'=').count();
    max_decoded_len(text.len() - padding)
}

/// Returns how many bytes `text` becomes if it is valid. `poll` is called every few microseconds of work.
///
/// # Errors
/// The errors of `poll`.
pub fn decoded_len<E>(text: &[u8], mut poll: impl FnMut() -> Result<(), E>) -> Result<usize, E> {
    let is_data = |character: &u8| !matches!(character, b' ' | b'\t' | b'\n' | 0xc | b'\r' | b'=');
    // Counts of one byte let the compiler put many of them in a vector.
    let count = |lane: &[u8]| lane.iter().map(|character| u8::from(is_data(character))).sum::<u8>();
    let mut len = 0;
    for piece in text.chunks(LANE * 256) {
        poll()?;
        len += piece.chunks(LANE).map(|lane| usize::from(count(lane))).sum::<usize>();
    }
    Ok(max_decoded_len(len))
}

/// Most characters that a count of one byte can count.
const LANE: usize = u8::MAX as usize;
