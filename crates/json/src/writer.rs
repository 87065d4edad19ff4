//! Appends to memory, and stops now and then to ask whether it may go on.

use crate::error::TranscodeError;
use crate::output::{Memory, Output};
use crate::tape::Long;
use crate::text::Kernel;

/// Characters that are written at once: room for the worst they can become is asked for before. Where that would make
/// the memory grow, they are fewer.
const PIECE: usize = 4096;
const LEAST_PIECE: usize = 128;
/// Bytes that a character becomes at most.
const WORST: usize = Kernel::room_for(1) - Kernel::room_for(0);

/// Bytes between two calls of `poll`: some 0.1 ms of work.
const POLL: usize = 256 << 10;

/// Numbers that are written at once, as with [`PIECE`].
const BATCH: usize = 4096;
const LEAST_BATCH: usize = 32;

/// Bytes that are copied at once.
const COPY: usize = 16 << 10;

pub(crate) type Outcome<M> = Result<(), TranscodeError<<M as Memory>::Error>>;

pub(crate) struct Writer<'m, M: Memory, P> {
    pub out: Output<'m, M>,
    pub kernel: Kernel,
    poll: P,
    /// How much was written when it was polled last.
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

    /// One number after the other, each of at most `N` bytes.
    pub fn numbers<T, const N: usize>(
        &mut self,
        numbers: &[T],
        print: impl Fn(&T, &mut [u8; N]) -> usize,
    ) -> Outcome<M> {
        for batch in numbers.chunks(self.batch(N)) {
            let mut room = self.out.room(batch.len() * N);
            let whole = room.len();
            for number in batch {
                // Too little room is a failure to grow, which `out` keeps.
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

    /// How many numbers of at most `size` bytes there is room for.
    fn batch(&self, size: usize) -> usize {
        (self.out.left() / size).clamp(LEAST_BATCH, BATCH)
    }

    /// Characters that there is room for, whatever they become.
    fn piece(&self) -> usize {
        (self.out.left().saturating_sub(Kernel::room_for(0)) / WORST).clamp(LEAST_PIECE, PIECE)
    }

    pub fn pieces(
        &mut self,
        mut text: &[u8],
        width: usize,
        write: impl Fn(Kernel, &[u8], &mut [u8]) -> Option<usize>,
    ) -> Outcome<M> {
        while !text.is_empty() {
            let (piece, rest) = split_piece(text, width, self.piece());
            let room = self.out.room(Kernel::room_for(piece.len() / width));
            // None is a failure to grow, which `out` keeps.
            let written = write(self.kernel, piece, room).unwrap_or(0);
            self.out.advance(written);
            self.pause_if_due()?;
            text = rest;
        }
        Ok(())
    }

    /// As `pieces`, of Latin-1, which mostly is short.
    #[inline]
    pub fn latin1(
        &mut self,
        text: &[u8],
        write: impl Fn(Kernel, &[u8], &mut [u8]) -> Option<usize>,
    ) -> Outcome<M> {
        if LEAST_PIECE < text.len() {
            return self.pieces(text, 1, write);
        }
        let room = self.out.room(Kernel::room_for(text.len()));
        let written = write(self.kernel, text, room).unwrap_or(0);
        self.out.advance(written);
        Ok(())
    }

    /// Characters, nothing escaped.
    pub fn text(&mut self, text: Long<'_>) -> Outcome<M> {
        if text.is_wide {
            self.pieces(text.bytes, 2, Kernel::transcode_utf16)
        } else {
            self.latin1(text.bytes, Kernel::transcode_latin1)
        }
    }

    /// Bytes as they are.
    pub fn copy(&mut self, bytes: &[u8]) -> Outcome<M> {
        for piece in bytes.chunks(COPY) {
            self.out.bytes(piece);
            self.pause_if_due()?;
        }
        Ok(())
    }

    #[inline]
    pub fn pause_if_due(&mut self) -> Outcome<M> {
        if self.out.len().wrapping_sub(self.polled_at) < POLL { Ok(()) } else { self.pause() }
    }

    #[cold]
    pub fn pause(&mut self) -> Outcome<M> {
        self.polled_at = self.out.len();
        self.out.check().map_err(TranscodeError::Stopped)?;
        (self.poll)().map_err(TranscodeError::Stopped)
    }
}

/// At most `len` characters, no surrogate pair cut.
fn split_piece(text: &[u8], width: usize, len: usize) -> (&[u8], &[u8]) {
    let Some((piece, rest)) = text.split_at_checked(len * width) else { return (text, &[]) };
    let ends_high = width == 2 && matches!(piece, [.., 0xd8..=0xdb]);
    if !ends_high {
        return (piece, rest);
    }
    text.split_at_checked((len - 1) * width).unwrap_or((piece, rest))
}
