//! Appends numbers and characters to memory, and polls between pieces of work. JSON and `MessagePack` use it in tasks.

use crate::error::TranscodeError;
use crate::output::{Memory, Output};
use crate::tape::JsText;
use crate::text::Kernel;

/// The most characters that are written at once. Room for their longest form is made before.
///
/// Pieces are smaller, down to [`LEAST_PIECE`], where that room would make the memory grow.
const PIECE: usize = 4096;
const LEAST_PIECE: usize = 128;
/// The longest form of a character, in bytes.
const WORST: usize = Kernel::room_for(1) - Kernel::room_for(0);

/// Bytes written between two calls of `poll`: some 0.1 ms of work.
const POLL: usize = 256 << 10;

/// The most numbers that are written at once. Batches shrink as pieces do: see [`PIECE`].
const BATCH: usize = 4096;
const LEAST_BATCH: usize = 32;

/// Bytes that are copied between two checks of the poll.
const COPY: usize = 16 << 10;

/// The result of a function that writes.
pub(crate) type WriteResult<M> = Result<(), TranscodeError<<M as Memory>::Error>>;

/// An [`Output`] with a kernel for characters and a poll.
pub(crate) struct Writer<'m, M: Memory, P> {
    pub out: Output<'m, M>,
    pub kernel: Kernel,
    poll: P,
    /// The length at the last poll.
    polled_at: usize,
}

impl<'m, M: Memory, P: FnMut() -> Result<(), M::Error>> Writer<'m, M, P> {
    pub fn new(
        memory: &'m mut M,
        kernel: Kernel,
        poll: P,
    ) -> Result<Self, TranscodeError<M::Error>> {
        let out = Output::new(memory).map_err(TranscodeError::Stopped)?;
        Ok(Self { out, kernel, poll, polled_at: 0 })
    }

    /// Writes numbers, each of which `print` writes to a block of `N` bytes.
    pub fn numbers<T, const N: usize>(
        &mut self,
        numbers: &[T],
        print: impl Fn(&T, &mut [u8; N]) -> usize,
    ) -> WriteResult<M> {
        for batch in numbers.chunks(self.batch(N)) {
            let mut room = self.out.room(batch.len() * N);
            let whole = room.len();
            for number in batch {
                // There is too little room only after a failure to grow, which `out` keeps.
                let Some((place, _)) = room.split_first_chunk_mut::<N>() else { break };
                let len = print(number, place);
                room = room.get_mut(len..).unwrap_or_default();
            }
            let written = whole - room.len();
            self.out.advance(written);
            self.pause_if_due()?;
        }
        Ok(())
    }

    /// Returns how many numbers of at most `size` bytes to write at once.
    fn batch(&self, size: usize) -> usize {
        (self.out.left() / size).clamp(LEAST_BATCH, BATCH)
    }

    /// Returns how many characters to write at once.
    fn piece(&self) -> usize {
        (self.out.left().saturating_sub(Kernel::room_for(0)) / WORST).clamp(LEAST_PIECE, PIECE)
    }

    /// Writes characters of `width` bytes in pieces.
    pub fn pieces(
        &mut self,
        mut text: &[u8],
        width: usize,
        write: impl Fn(Kernel, &[u8], &mut [u8]) -> Option<usize>,
    ) -> WriteResult<M> {
        while !text.is_empty() {
            let (piece, rest) = split_piece(text, width, self.piece());
            let room = self.out.room(Kernel::room_for(piece.len() / width));
            // `None` means a failure to grow, which `out` keeps.
            let written = write(self.kernel, piece, room).unwrap_or(0);
            self.out.advance(written);
            self.pause_if_due()?;
            text = rest;
        }
        Ok(())
    }

    /// Writes Latin-1 characters, short ones in one piece.
    #[inline]
    pub fn latin1(
        &mut self,
        text: &[u8],
        write: impl Fn(Kernel, &[u8], &mut [u8]) -> Option<usize>,
    ) -> WriteResult<M> {
        if LEAST_PIECE < text.len() {
            return self.pieces(text, 1, write);
        }
        let room = self.out.room(Kernel::room_for(text.len()));
        let written = write(self.kernel, text, room).unwrap_or(0);
        self.out.advance(written);
        Ok(())
    }

    /// Writes characters as UTF-8, without escapes.
    pub fn text(&mut self, text: JsText<'_>) -> WriteResult<M> {
        if text.is_wide {
            self.pieces(text.bytes, 2, Kernel::transcode_utf16)
        } else {
            self.latin1(text.bytes, Kernel::transcode_latin1)
        }
    }

    /// Copies bytes.
    pub fn copy(&mut self, bytes: &[u8]) -> WriteResult<M> {
        for piece in bytes.chunks(COPY) {
            self.out.bytes(piece);
            self.pause_if_due()?;
        }
        Ok(())
    }

    /// Polls if enough was written since the last poll.
    #[inline]
    pub fn pause_if_due(&mut self) -> WriteResult<M> {
        if self.out.len().wrapping_sub(self.polled_at) < POLL { Ok(()) } else { self.pause() }
    }

    /// Fails if the memory could not grow, and polls.
    #[cold]
    pub fn pause(&mut self) -> WriteResult<M> {
        self.polled_at = self.out.len();
        self.out.check().map_err(TranscodeError::Stopped)?;
        (self.poll)().map_err(TranscodeError::Stopped)
    }
}

/// Splits off at most `len` characters, not within a surrogate pair.
fn split_piece(text: &[u8], width: usize, len: usize) -> (&[u8], &[u8]) {
    let Some((piece, rest)) = text.split_at_checked(len * width) else { return (text, &[]) };
    let ends_high = width == 2 && matches!(piece, [.., 0xd8..=0xdb]);
    if !ends_high {
        return (piece, rest);
    }
    text.split_at_checked((len - 1) * width).unwrap_or((piece, rest))
}
