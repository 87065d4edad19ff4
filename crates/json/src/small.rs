//! Prints small values on the JS thread, called through a function without arguments or a result.
//!
//! Passing arguments through Node-API takes longer than printing a small value. So arguments and result are in a header
//! of 32-bit integers in memory that JavaScript shares:
//!
//! | index | written by | meaning |
//! |---|---|---|
//! | 0 | JavaScript | words |
//! | 1 | JavaScript | doubles |
//! | 2 | JavaScript | bytes |
//! | 3 | JavaScript | bytes of the rope |
//! | 4 | JavaScript | runs |
//! | 5 | JavaScript | offset in the output at which the JSON begins |
//! | 6 | [`answer_small`] | length of the JSON, or a negative code |

use crate::error::TranscodeError;
use crate::lexicon::Lexicon;
use crate::output::Memory;
use crate::segment::StreamLens;
use crate::tape::{Malformed, Segment, Tape};
use crate::text::Kernel;
use crate::transcode::transcode;

const OFFSET: usize = 5;
const LENGTH: usize = 6;

/// The answer where the output is too small.
const NO_ROOM: i32 = -1;

/// The arguments that are equal in all calls of one small encoder.
pub struct SmallEncoding<'a> {
    /// The memory of the segment, and the room of its streams: see [`Segment::view`].
    pub memory: &'a [u8],
    pub room: StreamLens,
    pub lexicon: &'a Lexicon,
    pub kernel: Kernel,
}

impl SmallEncoding<'_> {
    /// The answer of a call that fails.
    pub const FAILED: i32 = -2;
}

/// Prints the segment that `header` describes to `out`; returns the answer for [`answer_small`].
#[must_use]
pub fn print_small(encoding: &SmallEncoding<'_>, header: &[u8], out: &mut [u8]) -> i32 {
    try_print(encoding, header, out).unwrap_or(SmallEncoding::FAILED)
}

/// Writes the answer of a call to the header.
pub fn answer_small(header: &mut [u8], answer: i32) {
    if let Some(field) = header.as_chunks_mut::<4>().0.get_mut(LENGTH) {
        *field = answer.to_ne_bytes();
    }
}

fn try_print(
    encoding: &SmallEncoding<'_>,
    header: &[u8],
    out: &mut [u8],
) -> Result<i32, Malformed> {
    let (written, offset) = read_header(header).ok_or(Malformed)?;
    let Some(room) = out.get_mut(offset..) else { return Ok(NO_ROOM) };
    let segments = [Segment::view(encoding.memory, encoding.room, written)?];
    let tape = Tape {
        segments: &segments,
        longs: &[],
        lexicon: encoding.lexicon,
        has_rows: false,
        first_long: 0,
    };
    match transcode(tape, encoding.kernel, &mut FixedMemory(room), || Ok(())) {
        Ok(extent) => Ok(i32::try_from(extent.len).unwrap_or(NO_ROOM)),
        Err(TranscodeError::Stopped(NoRoom)) => Ok(NO_ROOM),
        Err(_) => Err(Malformed),
    }
}

fn read_header(header: &[u8]) -> Option<(StreamLens, usize)> {
    let [words, doubles, bytes, rope, runs, offset] =
        header.as_chunks::<4>().0.first_chunk::<{ OFFSET + 1 }>()?.map(i32::from_ne_bytes);
    let len = |field: i32| usize::try_from(field).ok();
    let written = StreamLens {
        words: len(words)?,
        doubles: len(doubles)?,
        bytes: len(bytes)?,
        rope: len(rope)?,
        runs: len(runs)?,
    };
    Some((written, len(offset)?))
}

/// Memory that does not grow.
struct FixedMemory<'a>(&'a mut [u8]);

/// The error of [`FixedMemory`].
struct NoRoom;

impl Memory for FixedMemory<'_> {
    type Error = NoRoom;

    fn bytes(&mut self) -> &mut [u8] {
        self.0
    }

    fn grow(&mut self, _len: usize, _size: usize) -> Result<(), NoRoom> {
        Err(NoRoom)
    }
}
