//! Decodes and encodes long texts in pieces, so that a task can be stopped between two of them.
//!
//! Runs in a task; the glue calls it for `decodeBase64` and `encodeBase64`, and for base64 inside a body. `poll` is
//! called before every piece, about every 0.1 ms; its error stops the work.

use std::ops::Range;

use crate::{Alphabet, DecodeError, Decoder, EncodeError, Mode, encode_into};

/// Bytes of a piece. A multiple of three and of four: every piece but the last holds whole quanta.
pub const PIECE: usize = 3 << 18;

const _: () = assert!(PIECE.is_multiple_of(3) && PIECE.is_multiple_of(4));

/// Decodes one text to the start of one output, which all its parts share.
#[derive(Clone, Debug)]
pub struct PieceDecoder {
    decoder: Decoder,
    /// Bytes of the output written so far.
    written: usize,
}

impl PieceDecoder {
    /// Starts at the first character of a text.
    #[must_use]
    pub fn new(mode: Mode, alphabet: Alphabet) -> Self {
        Self { decoder: Decoder::new(mode, alphabet), written: 0 }
    }

    /// Returns how many bytes of the output were written.
    #[must_use]
    pub fn written(&self) -> usize {
        self.written
    }

    /// Decodes the next parts of the text. `out` is the whole output.
    ///
    /// # Errors
    /// If the text is not base64 or `out` is too small, and the errors of `poll`.
    pub fn decode<'a, E: From<DecodeError>>(
        &mut self,
        parts: impl IntoIterator<Item = &'a [u8]>,
        out: &mut [u8],
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        for piece in parts.into_iter().flat_map(|part| part.chunks(PIECE)) {
            poll()?;
            let room = out.get_mut(self.written..).unwrap_or_default();
            self.written += self.decoder.decode(piece, room)?;
        }
        Ok(())
    }

    /// Decodes the whole text at `text` to the start of the same memory, and returns how many bytes it wrote. All bytes
    /// behind them become zero.
    ///
    /// # Errors
    /// If the text is not base64, and the errors of `poll`.
    pub fn decode_in_place<E: From<DecodeError>>(
        mut self,
        memory: &mut [u8],
        text: Range<usize>,
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<usize, E> {
        for start in text.clone().step_by(PIECE) {
            poll()?;
            let piece = start..text.end.min(start + PIECE);
            self.written += self.decoder.decode_in_place(memory, piece, self.written)?;
        }
        let len = self.finish(memory)?;
        for piece in memory.get_mut(len..).unwrap_or_default().chunks_mut(PIECE) {
            poll()?;
            piece.fill(0);
        }
        Ok(len)
    }

    /// Ends the text and returns how many bytes of `out` were written in all.
    ///
    /// # Errors
    /// If the text may not end here, or `out` is too small.
    pub fn finish(&mut self, out: &mut [u8]) -> Result<usize, DecodeError> {
        let room = out.get_mut(self.written..).unwrap_or_default();
        self.written += self.decoder.clone().finish(room)?;
        Ok(self.written)
    }
}

/// Decodes a whole text at once and returns how many bytes it wrote to the start of `out`.
///
/// # Errors
/// If the text is not base64, or `out` cannot hold the most that it can become.
pub fn decode_into(
    text: &[u8],
    out: &mut [u8],
    mode: Mode,
    alphabet: Alphabet,
) -> Result<usize, DecodeError> {
    let mut decoder = Decoder::new(mode, alphabet);
    let written = decoder.decode(text, out)?;
    let room = out.get_mut(written..).ok_or(DecodeError::OutputTooSmall)?;
    Ok(written + decoder.finish(room)?)
}

/// Encodes `bytes` into `out`, which has exactly the size of the text, and returns that size.
///
/// # Errors
/// If `out` is too small, and the errors of `poll`.
pub fn encode_pieces<E: From<EncodeError>>(
    bytes: &[u8],
    out: &mut [u8],
    (alphabet, padding): (Alphabet, bool),
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<usize, E> {
    let mut written = 0;
    for piece in bytes.chunks(PIECE) {
        poll()?;
        let room = out.get_mut(written..).unwrap_or_default();
        written += encode_into(piece, room, alphabet, padding)?;
    }
    Ok(written)
}
