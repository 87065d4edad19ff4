//! Memory of results, as tasks find it and leave it.

use offloop_json::Memory;
use offloop_memory::{Block, prefer_huge_pages};

use crate::failure::Failure;
use crate::memory::acquire;
use crate::stop::Flag;

/// Results from this size on ask for huge pages: below, the call costs more than the faults it saves.
const HUGE: usize = 4 << 20;
/// Bytes cleared between two looks at the flag.
const PIECE: usize = 1 << 20;

/// Before the first byte is written.
pub fn prepare(out: &mut [u8]) {
    if HUGE <= out.len() {
        prefer_huge_pages(out);
    }
}

/// What is left of the memory can be reached from the result: it may not hold anything of others. Of text that is mostly
/// white space that is most of it, in memory that is not there before it is written to.
pub fn clear_rest(out: &mut [u8], written: usize, flag: &Flag) -> Result<(), Failure> {
    for piece in out.get_mut(written..).unwrap_or_default().chunks_mut(PIECE) {
        flag.check()?;
        piece.fill(0);
    }
    Ok(())
}

/// The memory that was made for a result; or, once that was too small, recycled memory.
pub enum Growing<'a> {
    Given(&'a mut [u8]),
    Own(Block),
}

impl Growing<'_> {
    /// The first `len` bytes.
    pub fn written(&mut self, len: usize) -> &[u8] {
        self.bytes().get(..len).unwrap_or_default()
    }
}

impl Memory for Growing<'_> {
    type Error = Failure;

    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Given(out) => out,
            Self::Own(block) => block,
        }
    }

    fn grow(&mut self, len: usize, size: usize) -> Result<(), Failure> {
        let mut block = acquire(size)?;
        if let (Some(to), Some(from)) = (block.get_mut(..len), self.bytes().get(..len)) {
            to.copy_from_slice(from);
        }
        *self = Self::Own(block);
        Ok(())
    }
}
