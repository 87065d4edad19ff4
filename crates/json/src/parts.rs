//! The memory of a tape: its segments and its long texts, in the order of the tape.
//!
//! The glue makes it on the JS thread; tasks read it. `P` is memory of JavaScript. It may be dropped on the JS thread only,
//! so nothing here drops it in a task.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use offloop_memory::{Block, OutOfMemory};

use crate::segment::{SegmentCopy, StreamLens};
use crate::tape::{JsText, Malformed, Segment};

/// The memory of a segment, which only JavaScript writes to.
#[derive(Debug)]
pub struct SegmentMemory<P> {
    pub memory: P,
    pub room: StreamLens,
}

/// The written part of a segment.
#[derive(Debug)]
pub enum SegmentPart<P> {
    Pinned { segment: Arc<SegmentMemory<P>>, written: StreamLens },
    Copied(Arc<SegmentCopy>),
}

/// A long text, or bytes too many for a segment.
pub enum LongPart<P> {
    Recycled { block: Arc<Block>, len: usize, is_wide: bool },
    Pinned(Arc<P>),
    Empty,
}

/// The memory of a tape.
pub struct TapeMemory<P> {
    pub segments: Vec<SegmentPart<P>>,
    pub longs: Vec<LongPart<P>>,
}

/// One segment and its own long texts, to be printed before the rest of the tape is known.
pub struct SegmentJob<P> {
    segment: SegmentPart<P>,
    longs: Vec<LongPart<P>>,
    /// The index of the first of `longs` on the tape.
    first_long: usize,
    /// The expected size of the text.
    pub expected_size: usize,
}

impl<P: AsRef<[u8]>> TapeMemory<P> {
    /// Views the segments.
    ///
    /// # Errors
    /// Fails for segments that exceed their memory.
    pub fn segments(&self) -> Result<Vec<Segment<'_>>, Malformed> {
        self.segments.iter().map(SegmentPart::view).collect()
    }

    /// Views the long texts.
    #[must_use]
    pub fn longs(&self) -> Vec<JsText<'_>> {
        self.longs.iter().map(LongPart::view).collect()
    }

    /// Returns the bytes of all memory.
    #[must_use]
    pub fn size(&self) -> usize {
        let longs = self.longs.iter().map(|long| long.view().bytes.len());
        self.segments.iter().map(SegmentPart::size).chain(longs).sum()
    }

    /// Returns the bytes of memory that V8 does not own.
    #[must_use]
    pub fn native_size(&self) -> usize {
        let longs = self.longs.iter().map(LongPart::native_size);
        self.segments.iter().map(SegmentPart::native_size).chain(longs).sum()
    }
}

impl<P> TapeMemory<P> {
    /// Drops recycled memory. Memory of V8 stays.
    pub fn recycle(&mut self) {
        self.longs.retain(LongPart::is_pinned);
    }

    /// Puts a long text in its place.
    pub fn fill(&mut self, place: usize, long: LongPart<P>) {
        if let Some(empty) = self.longs.get_mut(place) {
            *empty = long;
        }
    }

    /// Moves the last segment and some of the long texts to a job.
    ///
    /// # Errors
    /// Fails where there is no segment, or no such long text.
    pub fn split_job(
        &mut self,
        longs: Range<usize>,
        expected_size: usize,
    ) -> Result<SegmentJob<P>, Malformed> {
        let first_long = longs.start;
        let texts = self.longs.get_mut(longs).ok_or(Malformed)?;
        let segment = self.segments.pop().ok_or(Malformed)?;
        let longs = texts.iter_mut().map(|long| mem::replace(long, LongPart::Empty)).collect();
        Ok(SegmentJob { segment, longs, first_long, expected_size })
    }
}

impl<P> SegmentJob<P> {
    /// Drops recycled memory. Memory of V8 stays.
    pub fn recycle(&mut self) {
        self.longs.retain(LongPart::is_pinned);
    }

    /// Returns the index of the first long text.
    pub(crate) fn first_long(&self) -> usize {
        self.first_long
    }
}

impl<P: AsRef<[u8]>> SegmentJob<P> {
    pub(crate) fn segment(&self) -> Result<Segment<'_>, Malformed> {
        self.segment.view()
    }

    pub(crate) fn longs(&self) -> Vec<JsText<'_>> {
        self.longs.iter().map(LongPart::view).collect()
    }
}

impl<P: AsRef<[u8]>> SegmentMemory<P> {
    /// Copies what is written.
    ///
    /// # Errors
    /// Fails where more is written than there is room for, or where there is no memory for the copy.
    pub fn copy<E: From<Malformed> + From<OutOfMemory>>(
        &self,
        written: StreamLens,
    ) -> Result<SegmentPart<P>, E> {
        let view = Segment::view(self.memory.as_ref(), self.room, written)?;
        Ok(SegmentPart::Copied(Arc::new(SegmentCopy::new(view)?)))
    }
}

impl<P: AsRef<[u8]>> SegmentPart<P> {
    fn view(&self) -> Result<Segment<'_>, Malformed> {
        match self {
            Self::Pinned { segment, written } => {
                Segment::view(segment.memory.as_ref(), segment.room, *written)
            }
            Self::Copied(copy) => Ok(copy.view()),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Pinned { segment, .. } => segment.memory.as_ref().len(),
            Self::Copied(copy) => copy.view().size(),
        }
    }

    fn native_size(&self) -> usize {
        match self {
            Self::Pinned { .. } => 0,
            Self::Copied(copy) => copy.view().size(),
        }
    }
}

impl<P: AsRef<[u8]>> LongPart<P> {
    fn view(&self) -> JsText<'_> {
        match self {
            Self::Recycled { block, len, is_wide } => {
                JsText { bytes: block.get(..*len).unwrap_or_default(), is_wide: *is_wide }
            }
            Self::Pinned(memory) => JsText { bytes: (**memory).as_ref(), is_wide: false },
            Self::Empty => JsText { bytes: &[], is_wide: false },
        }
    }
}

impl<P> LongPart<P> {
    fn is_pinned(&self) -> bool {
        matches!(self, Self::Pinned(_))
    }

    fn native_size(&self) -> usize {
        match self {
            Self::Recycled { block, .. } => block.len(),
            Self::Pinned(_) | Self::Empty => 0,
        }
    }
}

// Derived implementations would ask for `P: Clone` and `P: Default`.

impl<P> Default for TapeMemory<P> {
    fn default() -> Self {
        Self { segments: Vec::new(), longs: Vec::new() }
    }
}

impl<P> Clone for TapeMemory<P> {
    fn clone(&self) -> Self {
        Self { segments: self.segments.clone(), longs: self.longs.clone() }
    }
}

impl<P> Clone for SegmentPart<P> {
    fn clone(&self) -> Self {
        match self {
            Self::Pinned { segment, written } => {
                Self::Pinned { segment: Arc::clone(segment), written: *written }
            }
            Self::Copied(copy) => Self::Copied(Arc::clone(copy)),
        }
    }
}

impl<P> Clone for LongPart<P> {
    fn clone(&self) -> Self {
        match self {
            Self::Recycled { block, len, is_wide } => {
                Self::Recycled { block: Arc::clone(block), len: *len, is_wide: *is_wide }
            }
            Self::Pinned(memory) => Self::Pinned(Arc::clone(memory)),
            Self::Empty => Self::Empty,
        }
    }
}
