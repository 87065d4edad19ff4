//! Measures JSON without keeping it. `print` calls it in tasks, and on the JS thread for small values.

use crate::error::TranscodeError;
use crate::indent::indent;
use crate::output::Memory;
use crate::print::Workspace;
use crate::tape::Tape;
use crate::text::Kernel;
use crate::transcode::transcode;

/// The memory of an [`Output`](crate::output::Output) that counts. The largest block that is written at once, a piece of
/// base64, has half of it.
const BLOCK: usize = 32 << 10;

/// Memory that is written again and again.
struct CountingMemory<M>(M);

impl<M: Memory> Memory for CountingMemory<M> {
    type Error = M::Error;

    const COUNTS: bool = true;

    fn bytes(&mut self) -> &mut [u8] {
        self.0.bytes()
    }

    fn grow(&mut self, len: usize, size: usize) -> Result<(), M::Error> {
        self.0.grow(len, size)
    }
}

/// Returns the length of the JSON of `tape` with `gap` for each level of nesting.
///
/// Compact JSON is counted in [`BLOCK`] bytes of memory. JSON with white space is counted from the compact text, whose
/// memory begins with `expected_size` bytes.
///
/// # Errors
/// Fails as `workspace` does, and for an invalid tape.
pub(crate) fn json_size<W: Workspace>(
    tape: Tape<'_>,
    gap: Option<&[u8]>,
    expected_size: usize,
    workspace: &W,
) -> Result<usize, TranscodeError<<W::Memory as Memory>::Error>> {
    let (kernel, poll) = (Kernel::best(), || workspace.poll());
    let acquire = |size| workspace.acquire(size).map_err(TranscodeError::Stopped);
    let mut counting = CountingMemory(acquire(BLOCK)?);
    let Some(gap) = gap else {
        return Ok(transcode(tape, kernel, &mut counting, poll)?.len);
    };
    let mut compact = acquire(expected_size)?;
    let extent = transcode(tape, kernel, &mut compact, poll)?;
    let json = compact.bytes().get(..extent.len).unwrap_or_default();
    indent(json, &extent.raws, gap, &mut counting, poll)
}
