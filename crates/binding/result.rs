//! The memory of results, which tasks fill.

use offloop_json::{Memory, Workspace};
use offloop_memory::{Block, clear_pieces, copy_pieces, is_wasteful, prefer_huge_pages};

use crate::failure::Failure;
use crate::memory::acquire;
use crate::stop::Flag;

/// The smallest result that gets huge pages. For smaller ones the call takes longer than the page faults it saves.
const HUGE: usize = 4 << 20;

/// Prepares the memory of a result, before its first byte is written.
pub fn prepare(out: &mut [u8]) {
    if HUGE <= out.len() {
        prefer_huge_pages(out);
    }
}

/// Zeroes the memory behind a result of `len` bytes: JavaScript can read it, and it may hold foreign bytes.
pub fn clear_rest(out: &mut [u8], len: usize, flag: &Flag) -> Result<(), Failure> {
    clear_pieces(out, len, || flag.check())
}

/// Memory for a result, which grows into recycled memory.
pub enum OutputBuffer<'a> {
    /// The memory that was made for the result.
    Pinned(&'a mut [u8]),
    Recycled(Block),
}

impl<'a> OutputBuffer<'a> {
    /// Uses `out`; where that is empty, recycled memory of `expected_size` bytes.
    pub fn new(out: &'a mut [u8], expected_size: usize) -> Result<Self, Failure> {
        if out.is_empty() {
            let mut block = acquire(expected_size)?;
            prepare(&mut block);
            return Ok(Self::Recycled(block));
        }
        Ok(Self::Pinned(out))
    }

    /// Ends a result of `len` bytes. Returns recycled memory that holds it, or `None` where pinned memory does, of which
    /// `capacity` bytes are kept alive.
    pub fn finish(
        self,
        len: usize,
        capacity: usize,
        flag: &Flag,
    ) -> Result<Option<Block>, Failure> {
        match self {
            Self::Recycled(block) => Ok(Some(block)),
            Self::Pinned(out) if is_wasteful(capacity, len) => {
                let mut block = acquire(len)?;
                copy_pieces(out.get(..len).unwrap_or_default(), &mut block, || flag.check())?;
                Ok(Some(block))
            }
            Self::Pinned(out) => clear_rest(out, len, flag).map(|()| None),
        }
    }

    /// The memory.
    pub fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Pinned(out) => out,
            Self::Recycled(block) => block,
        }
    }
}

impl Memory for OutputBuffer<'_> {
    type Error = Failure;

    fn bytes(&mut self) -> &mut [u8] {
        self.bytes()
    }

    fn grow(&mut self, len: usize, size: usize) -> Result<(), Failure> {
        let mut block = acquire(size)?;
        if let (Some(to), Some(from)) = (block.get_mut(..len), self.bytes().get(..len)) {
            to.copy_from_slice(from);
        }
        *self = Self::Recycled(block);
        Ok(())
    }
}

/// Recycled memory and the flag of a task, for printing.
pub struct TaskWorkspace<'f>(pub &'f Flag);

impl Workspace for TaskWorkspace<'_> {
    type Memory = OutputBuffer<'static>;

    fn acquire(&self, size: usize) -> Result<OutputBuffer<'static>, Failure> {
        Ok(OutputBuffer::Recycled(acquire(size)?))
    }

    fn poll(&self) -> Result<(), Failure> {
        self.0.check()
    }
}
