//! Segments in memory: views of the streams in one block, and copies that own them.
//!
//! The glue calls it on the JS thread to copy, and in tasks to view.

use std::collections::TryReserveError;

use offloop_memory::OutOfMemory;

use crate::tape::{Malformed, Segment};

/// How many elements each stream of a segment has room for, or holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamLens {
    pub words: usize,
    pub doubles: usize,
    pub bytes: usize,
    pub rope: usize,
    pub runs: usize,
}

impl StreamLens {
    /// Returns the lengths of words, doubles, bytes, rope and runs, in this order.
    #[must_use]
    pub fn of(lens: [u32; 5]) -> Self {
        let [words, doubles, bytes, rope, runs] = lens.map(|len| len as usize);
        Self { words, doubles, bytes, rope, runs }
    }
}

impl<'a> Segment<'a> {
    /// Views a segment in `memory`, of which each stream holds the first `written` elements.
    ///
    /// | stream | start | room |
    /// |---|---|---|
    /// | doubles | 0 | `room.doubles` × 8 bytes |
    /// | words | behind the doubles | `room.words` × 4 bytes |
    /// | runs | behind the words | `room.runs` × 4 bytes |
    /// | bytes | behind the runs | `room.bytes` bytes |
    /// | rope | behind the bytes | the rest of `memory`; `room.rope` is not read |
    ///
    /// # Errors
    /// Fails where a stream exceeds its room, its room exceeds `memory`, or `memory` is not aligned to 8 bytes.
    pub fn view(
        memory: &'a [u8],
        room: StreamLens,
        written: StreamLens,
    ) -> Result<Self, Malformed> {
        let (doubles, rest) = split(memory, room.doubles, size_of::<f64>())?;
        let (words, rest) = split(rest, room.words, size_of::<i32>())?;
        let (runs, rest) = split(rest, room.runs, size_of::<i32>())?;
        let (bytes, rope) = split(rest, room.bytes, 1)?;
        Ok(Self {
            doubles: doubles_of(doubles).get(..written.doubles).ok_or(Malformed)?,
            words: ints_of(words).get(..written.words).ok_or(Malformed)?,
            runs: ints_of(runs).get(..written.runs).ok_or(Malformed)?,
            bytes: bytes.get(..written.bytes).ok_or(Malformed)?,
            rope: rope.get(..written.rope).ok_or(Malformed)?,
        })
    }

    /// Returns the bytes that all elements take together.
    #[must_use]
    pub fn size(&self) -> usize {
        size_of_val(self.doubles)
            + size_of_val(self.words)
            + size_of_val(self.runs)
            + self.bytes.len()
            + self.rope.len()
    }
}

/// A segment that owns its streams, each of the exact size.
#[derive(Clone, Debug)]
pub struct SegmentCopy {
    doubles: Vec<f64>,
    words: Vec<i32>,
    runs: Vec<i32>,
    bytes: Vec<u8>,
    rope: Vec<u8>,
}

impl SegmentCopy {
    /// Copies the streams of `segment`.
    ///
    /// # Errors
    /// Fails where there is no memory for the copy.
    pub fn new(segment: Segment<'_>) -> Result<Self, OutOfMemory> {
        let out_of_memory = |_| OutOfMemory { size: segment.size() };
        Ok(Self {
            doubles: copy(segment.doubles).map_err(out_of_memory)?,
            words: copy(segment.words).map_err(out_of_memory)?,
            runs: copy(segment.runs).map_err(out_of_memory)?,
            bytes: copy(segment.bytes).map_err(out_of_memory)?,
            rope: copy(segment.rope).map_err(out_of_memory)?,
        })
    }

    /// Views the streams.
    #[must_use]
    pub fn view(&self) -> Segment<'_> {
        Segment {
            doubles: &self.doubles,
            words: &self.words,
            runs: &self.runs,
            bytes: &self.bytes,
            rope: &self.rope,
        }
    }
}

fn copy<T: Copy>(stream: &[T]) -> Result<Vec<T>, TryReserveError> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(stream.len())?;
    copy.extend_from_slice(stream);
    Ok(copy)
}

fn split(memory: &[u8], len: usize, size: usize) -> Result<(&[u8], &[u8]), Malformed> {
    memory.split_at_checked(len.saturating_mul(size)).ok_or(Malformed)
}

/// Views bytes as doubles; returns none where the bytes are not aligned.
fn doubles_of(bytes: &[u8]) -> &[f64] {
    // SAFETY: every bit pattern is a valid `f64`.
    let (_, doubles, _) = unsafe { bytes.align_to::<f64>() };
    if size_of_val(doubles) == bytes.len() { doubles } else { &[] }
}

/// Views bytes as integers; returns none where the bytes are not aligned.
fn ints_of(bytes: &[u8]) -> &[i32] {
    // SAFETY: every bit pattern is a valid `i32`.
    let (_, ints, _) = unsafe { bytes.align_to::<i32>() };
    if size_of_val(ints) == bytes.len() { ints } else { &[] }
}
