//! Inputs of tasks: bytes copied into recycled memory as they arrive, or memory taken from the caller.
//!
//! JS threads gather them, tasks join and read them.

use std::convert::Infallible;
use std::mem;
use std::ops::Range;

use crate::{Block, OutOfMemory, Recycler, copy_pieces};

/// Size of the first block that further chunks are copied to. A later block is as large as all chunks before it.
const FIRST_BLOCK: usize = 64 << 10;
/// Upper bound of the size of such a block.
const LARGEST_BLOCK: usize = 8 << 20;

/// Memory taken from the caller.
pub trait TakenMemory {
    fn bytes(&self) -> &[u8];

    /// Returns the bytes if a task may write to them and JavaScript gets the memory back.
    fn bytes_mut(&mut self) -> Option<&mut [u8]>;
}

/// An input of which nothing is taken.
impl TakenMemory for Infallible {
    fn bytes(&self) -> &[u8] {
        match *self {}
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match *self {}
    }
}

/// A part of an input.
pub enum Chunk<T> {
    /// The first `len` bytes of a block.
    Copied {
        block: Block,
        len: usize,
    },
    Taken(T),
}

impl<T: TakenMemory> Chunk<T> {
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Copied { block, len } => block.get(..*len).unwrap_or_default(),
            Self::Taken(memory) => memory.bytes(),
        }
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            Self::Copied { block, len } => block.get_mut(..*len),
            Self::Taken(memory) => memory.bytes_mut(),
        }
    }
}

impl<T: TakenMemory> AsRef<[u8]> for Chunk<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// The chunks of an input.
pub struct Gathered<T> {
    chunks: Vec<Chunk<T>>,
    /// Bytes of all chunks.
    size: usize,
}

impl<T> Default for Gathered<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), size: 0 }
    }
}

impl<T: TakenMemory> Gathered<T> {
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    #[must_use]
    pub fn chunks(&self) -> &[Chunk<T>] {
        &self.chunks
    }

    /// Returns `size` bytes behind the copied ones, for [`Self::grow`]. Acquires a new block where the last one has no
    /// room for them.
    ///
    /// # Errors
    /// Fails where the system has no memory left.
    pub fn room(
        &mut self,
        size: usize,
        recycler: &'static Recycler,
    ) -> Result<&mut [u8], OutOfMemory> {
        let (left, ahead) = match self.chunks.last() {
            Some(Chunk::Copied { block, len }) => {
                (block.len() - len, self.size.clamp(FIRST_BLOCK, LARGEST_BLOCK))
            }
            // Often no further chunk follows: the first is the only one, or the one before was taken.
            _ => (0, 0),
        };
        if left < size {
            let block = recycler.acquire(size.max(ahead))?;
            self.chunks.push(Chunk::Copied { block, len: 0 });
        }
        match self.chunks.last_mut() {
            Some(Chunk::Copied { block, len }) => {
                Ok(block.get_mut(*len..*len + size).unwrap_or_default())
            }
            _ => Ok(&mut []),
        }
    }

    /// Counts `size` bytes that were written to the room.
    pub fn grow(&mut self, size: usize) {
        if let Some(Chunk::Copied { len, .. }) = self.chunks.last_mut() {
            *len += size;
            self.size += size;
        }
    }

    /// Copies `bytes` behind all others.
    ///
    /// # Errors
    /// Fails where the system has no memory left.
    pub fn copy(&mut self, bytes: &[u8], recycler: &'static Recycler) -> Result<(), OutOfMemory> {
        self.room(bytes.len(), recycler)?.copy_from_slice(bytes);
        self.grow(bytes.len());
        Ok(())
    }

    /// Adds memory without a copy.
    pub fn take(&mut self, memory: T) {
        self.size += memory.bytes().len();
        self.chunks.push(Chunk::Taken(memory));
    }

    /// Drops the last `size` bytes, which were copied in one piece.
    pub fn shrink(&mut self, size: usize) {
        if let Some(Chunk::Copied { len, .. }) = self.chunks.last_mut() {
            *len -= size;
            self.size -= size;
        }
    }

    /// Takes all chunks and leaves none.
    pub fn drain(&mut self) -> Vec<Chunk<T>> {
        mem::take(self).chunks
    }
}

/// Gives copied chunks back to their recycler. Keeps the others: the JS thread must release them.
pub fn recycle<T>(chunks: &mut Vec<Chunk<T>>) {
    chunks.retain(|chunk| !matches!(chunk, Chunk::Copied { .. }));
}

/// The bytes of an input, in one piece once they are joined.
pub struct Joined<T> {
    /// The input. Several chunks are kept until the JS thread may release them.
    chunks: Vec<Chunk<T>>,
    whole: Option<(Block, usize)>,
    /// The part that is asked for; `None` means all.
    part: Option<Range<usize>>,
}

impl<T> Default for Joined<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), whole: None, part: None }
    }
}

impl<T: TakenMemory> Joined<T> {
    #[must_use]
    pub fn new(chunks: Vec<Chunk<T>>) -> Self {
        Self { chunks, whole: None, part: None }
    }

    /// Copies the chunks to one block, unless there is one chunk that can be written to. Calls `poll` at least once a
    /// MiB.
    ///
    /// # Errors
    /// Fails where the system has no memory left, and as `poll` does.
    pub fn join<E: From<OutOfMemory>>(
        &mut self,
        recycler: &'static Recycler,
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let is_joined = match self.chunks.as_mut_slice() {
            [] => true,
            [chunk] => chunk.bytes_mut().is_some(),
            _ => false,
        };
        if is_joined {
            return Ok(());
        }
        let size = self.chunks.iter().map(Chunk::len).sum();
        let mut block = recycler.acquire(size)?;
        join_chunks(&self.chunks, &mut block, &mut poll)?;
        self.whole = Some((block, size));
        Ok(())
    }

    /// Returns whether JavaScript gets the memory back: it was taken from the caller, and holds nothing else.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        matches!(self.chunks.as_slice(), [Chunk::Taken(_)]) && self.whole.is_none()
    }

    /// Leaves the bytes outside of `part` out.
    pub fn cut(&mut self, part: Range<usize>) {
        self.part = Some(part);
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let only = match (&mut self.whole, self.chunks.as_mut_slice()) {
            (Some((block, size)), _) => block.get_mut(..*size),
            (None, [chunk]) => chunk.bytes_mut(),
            _ => None,
        };
        let all = only.unwrap_or_default();
        let part = self.part.clone().unwrap_or(0..all.len());
        all.get_mut(part).unwrap_or_default()
    }

    /// Gives recycled memory back. The JS thread releases the rest.
    pub fn recycle(&mut self) {
        self.whole = None;
        recycle(&mut self.chunks);
    }
}

/// Copies `chunks` to `out`, one behind the other. Calls `poll` at least once a MiB. Chunks that have no room in `out` are
/// left out.
///
/// # Errors
/// Fails as `poll` does.
pub fn join_chunks<E, C: AsRef<[u8]>>(
    chunks: &[C],
    out: &mut [u8],
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let mut room = out;
    for chunk in chunks {
        let chunk = chunk.as_ref();
        let Some((place, rest)) = room.split_at_mut_checked(chunk.len()) else { return Ok(()) };
        copy_pieces(chunk, place, &mut poll)?;
        room = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    static RECYCLER: Recycler = Recycler::new(1 << 30);

    struct Memory {
        bytes: Vec<u8>,
        is_whole: bool,
    }

    impl TakenMemory for Memory {
        fn bytes(&self) -> &[u8] {
            &self.bytes
        }

        fn bytes_mut(&mut self) -> Option<&mut [u8]> {
            self.is_whole.then_some(&mut self.bytes)
        }
    }

    fn memory(bytes: &[u8], is_whole: bool) -> Memory {
        Memory { bytes: bytes.to_vec(), is_whole }
    }

    fn joined(mut gathered: Gathered<Memory>) -> (Vec<u8>, bool) {
        let mut joined = Joined::new(gathered.drain());
        joined.join(&RECYCLER, || Ok::<(), OutOfMemory>(())).unwrap();
        (joined.bytes_mut().to_vec(), joined.is_taken())
    }

    #[test]
    fn chunks_of_both_kinds_follow_each_other() {
        let mut gathered = Gathered::default();
        assert_eq!(joined(Gathered::default()), (vec![], false));
        gathered.copy(b"ab", &RECYCLER).unwrap();
        gathered.take(memory(b"cd", true));
        gathered.copy(b"", &RECYCLER).unwrap();
        gathered.copy(b"efxx", &RECYCLER).unwrap();
        gathered.shrink(2);
        assert_eq!(gathered.size(), 6);
        assert_eq!(joined(gathered), (b"abcdef".to_vec(), false));
    }

    #[test]
    fn one_chunk_is_not_copied_if_it_can_be_written_to() {
        for is_whole in [true, false] {
            let mut gathered = Gathered::default();
            gathered.take(memory(b"ab", is_whole));
            assert_eq!(joined(gathered), (b"ab".to_vec(), is_whole));
        }
    }

    #[test]
    fn a_part_is_cut_out() {
        let mut gathered = Gathered::default();
        gathered.take(memory(b"abcd", true));
        let mut joined = Joined::new(gathered.drain());
        joined.cut(1..3);
        assert_eq!(joined.bytes_mut(), b"bc");
    }

    #[test]
    fn blocks_grow_with_the_input() {
        let mut gathered = Gathered::<Memory>::default();
        let chunk = vec![7; 1000];
        for _ in 0..10_000 {
            gathered.copy(&chunk, &RECYCLER).unwrap();
        }
        assert_eq!(gathered.size(), 10_000_000);
        assert!(gathered.chunks().len() < 12, "{} blocks", gathered.chunks().len());
        assert_eq!(gathered.chunks().iter().map(Chunk::len).sum::<usize>(), 10_000_000);
    }

    #[test]
    fn a_long_chunk_is_copied_whole_and_can_be_stopped() {
        let chunk: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251) as u8).collect();
        let mut out = vec![0; chunk.len() + 1];
        let chunks = [&*chunk, b"x"];
        assert_eq!(join_chunks(&chunks, &mut out, || Ok::<(), Infallible>(())), Ok(()));
        assert!(out.starts_with(&chunk) && out.ends_with(b"x"));
        assert_eq!(join_chunks(&chunks, &mut [], || Ok::<(), Infallible>(())), Ok(()));
        let mut left = 2;
        let stopped = join_chunks(&chunks, &mut out, || {
            left -= 1;
            if left == 0 { Err("stopped") } else { Ok(()) }
        });
        assert_eq!(stopped, Err("stopped"));
    }
}
