//! The memory of results, which tasks fill.

use offloop_json::Workspace;

use crate::failure::Failure;
use crate::memory::acquire;
use crate::stop::Flag;

/// Memory for a result, which grows into recycled memory.
pub type OutputBuffer<'a> = offloop_json::OutputBuffer<'a, Failure>;

/// Recycled memory and the flag of a task, for printing.
pub struct TaskWorkspace<'f>(pub &'f Flag);

impl Workspace for TaskWorkspace<'_> {
    type Memory = OutputBuffer<'static>;

    fn acquire(&self, size: usize) -> Result<OutputBuffer<'static>, Failure> {
        OutputBuffer::recycled(size, acquire)
    }

    fn poll(&self) -> Result<(), Failure> {
        self.0.check()
    }
}
