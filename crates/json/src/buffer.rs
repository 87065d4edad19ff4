//! Memory of a result whose size is not known before it is printed. Runs in tasks; the glue calls it.

use offloop_memory::{Block, clear_pieces, copy_pieces, is_wasteful, prepare_result};

use crate::output::Memory;

/// Acquires recycled memory.
pub type AcquireFn<E> = fn(usize) -> Result<Block, E>;

/// Memory for a result, which grows into recycled memory.
pub struct OutputBuffer<'a, E> {
    memory: BufferMemory<'a>,
    acquire: AcquireFn<E>,
}

enum BufferMemory<'a> {
    /// The memory that was made for the result.
    Pinned(&'a mut [u8]),
    Recycled(Block),
}

impl<'a, E> OutputBuffer<'a, E> {
    /// Uses `out`; where that is empty, recycled memory of `expected_size` bytes.
    ///
    /// # Errors
    /// Fails as `acquire` does.
    pub fn new(out: &'a mut [u8], expected_size: usize, acquire: AcquireFn<E>) -> Result<Self, E> {
        if !out.is_empty() {
            return Ok(Self { memory: BufferMemory::Pinned(out), acquire });
        }
        let mut buffer = Self::recycled(expected_size, acquire)?;
        prepare_result(buffer.bytes());
        Ok(buffer)
    }

    /// Uses recycled memory of `size` bytes.
    ///
    /// # Errors
    /// Fails as `acquire` does.
    pub fn recycled(size: usize, acquire: AcquireFn<E>) -> Result<Self, E> {
        Ok(Self { memory: BufferMemory::Recycled(acquire(size)?), acquire })
    }

    /// Returns the recycled memory, if it is that.
    #[must_use]
    pub fn into_block(self) -> Option<Block> {
        match self.memory {
            BufferMemory::Recycled(block) => Some(block),
            BufferMemory::Pinned(_) => None,
        }
    }

    /// Ends a result of `len` bytes. Returns recycled memory that holds it, or `None` where pinned memory does, of which
    /// `capacity` bytes are kept alive. What lies behind the result becomes zero there: JavaScript can read it.
    ///
    /// # Errors
    /// Fails as `acquire` and `poll` do.
    pub fn finish(
        self,
        len: usize,
        capacity: usize,
        poll: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<Block>, E> {
        match self.memory {
            BufferMemory::Recycled(block) => Ok(Some(block)),
            BufferMemory::Pinned(out) if is_wasteful(capacity, len) => {
                let mut block = (self.acquire)(len)?;
                copy_pieces(out.get(..len).unwrap_or_default(), &mut block, poll)?;
                Ok(Some(block))
            }
            BufferMemory::Pinned(out) => clear_pieces(out, len, poll).map(|()| None),
        }
    }
}

impl<E> Memory for OutputBuffer<'_, E> {
    type Error = E;

    fn bytes(&mut self) -> &mut [u8] {
        match &mut self.memory {
            BufferMemory::Pinned(out) => out,
            BufferMemory::Recycled(block) => block,
        }
    }

    fn grow(&mut self, len: usize, size: usize) -> Result<(), E> {
        let mut block = (self.acquire)(size)?;
        if let (Some(to), Some(from)) = (block.get_mut(..len), self.bytes().get(..len)) {
            to.copy_from_slice(from);
        }
        self.memory = BufferMemory::Recycled(block);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use offloop_memory::{OutOfMemory, Recycler};

    use super::*;

    static RECYCLER: Recycler = Recycler::new(1 << 24);

    fn acquire(size: usize) -> Result<Block, OutOfMemory> {
        RECYCLER.acquire(size)
    }

    fn finished(
        buffer: OutputBuffer<'_, OutOfMemory>,
        len: usize,
        capacity: usize,
    ) -> Option<Vec<u8>> {
        let block = buffer.finish(len, capacity, || Ok(())).unwrap();
        block.map(|block| block[..len].to_vec())
    }

    #[test]
    fn a_result_stays_where_it_fits_and_what_is_behind_it_is_clear() {
        let mut out = [7; 100];
        let mut buffer = OutputBuffer::new(&mut out, 10, acquire).unwrap();
        buffer.bytes()[..3].copy_from_slice(b"abc");
        assert_eq!(finished(buffer, 3, 100), None);
        assert!(out.starts_with(b"abc") && out[3..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_result_that_outgrows_its_memory_keeps_its_bytes() {
        let mut out = [7; 3];
        let mut buffer = OutputBuffer::new(&mut out, 10, acquire).unwrap();
        buffer.bytes().copy_from_slice(b"abc");
        buffer.grow(3, 100).unwrap();
        assert!(100 <= buffer.bytes().len());
        buffer.bytes()[3] = b'd';
        assert_eq!(finished(buffer, 4, 3), Some(b"abcd".to_vec()));
    }

    #[test]
    fn a_short_result_leaves_large_memory() {
        let mut out = vec![7; 1 << 20];
        let mut buffer = OutputBuffer::new(&mut out, 10, acquire).unwrap();
        buffer.bytes()[..3].copy_from_slice(b"abc");
        assert_eq!(finished(buffer, 3, 1 << 20), Some(b"abc".to_vec()));
    }

    #[test]
    fn without_memory_it_is_recycled() {
        let mut buffer = OutputBuffer::new(&mut [], 10, acquire).unwrap();
        buffer.bytes()[0] = b'a';
        assert_eq!(buffer.into_block().map(|block| block[0]), Some(b'a'));
        assert!(OutputBuffer::new(&mut [0], 10, acquire).unwrap().into_block().is_none());
    }
}
