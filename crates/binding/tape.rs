//! Classes for a tape: its lexicon, its segments, its long strings.
//!
//! `src/capture` calls them on the JS thread. Tasks read the memory that they refer to.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::Uint8Array;
use napi::{Env, JsString};
use napi_derive::napi;
use offloop_json::{JsText, Malformed, Segment, SegmentCopy, StreamLens, check};
use offloop_memory::{Block, prefer_huge_pages};

use crate::failure::Failure;
use crate::guard::guard;
use crate::lock::lock;
use crate::memory::{PinnedBuffer, RECYCLER, View};
use crate::source::block_of;

/// JSON text that the tapes of one encoder refer to by index.
#[napi]
#[derive(Default)]
pub struct Lexicon(pub(crate) Arc<offloop_json::Lexicon>);

#[napi]
impl Lexicon {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text; returns its index, or -1 if the lexicon is full.
    #[napi]
    #[must_use]
    pub fn add(&self, text: String) -> f64 {
        self.0.add(&text).map_or(-1.0, |index| index as f64)
    }
}

/// The memory of a segment, which only `src/capture` writes to.
pub struct SegmentMemory {
    pub memory: PinnedBuffer,
    pub room: StreamLens,
}

/// A segment of memory that one tape after the other uses.
#[napi]
pub struct TapeSegment {
    pub(crate) memory: Arc<SegmentMemory>,
}

#[napi]
impl TapeSegment {
    /// Takes memory and the room of its streams. `is_dense` memory is mostly filled, and gets huge pages.
    #[napi(constructor)]
    #[must_use]
    pub fn new(
        memory: Uint8Array,
        words: u32,
        doubles: u32,
        bytes: u32,
        runs: u32,
        is_dense: bool,
    ) -> Self {
        let mut memory = PinnedBuffer::new(memory);
        if is_dense {
            prefer_huge_pages(memory.bytes_mut());
        }
        let room = stream_lens(words, doubles, bytes, 0, runs);
        Self { memory: Arc::new(SegmentMemory { memory, room }) }
    }
}

/// Raw JSON in memory that nobody writes to.
#[napi]
pub struct RawJsonBytes(Arc<PinnedBuffer>);

#[napi]
impl RawJsonBytes {
    #[napi(constructor)]
    #[must_use]
    pub fn new(memory: Uint8Array) -> Self {
        Self(Arc::new(PinnedBuffer::new(memory)))
    }

    /// Returns a failure if the bytes are invalid JSON.
    #[napi]
    #[must_use]
    pub fn check(&self) -> Option<Failure> {
        guard(|| Ok(check(self.0.bytes())?)).err()
    }
}

/// The memory of a captured value, for a task.
///
/// Every method borrows it shared: napi keeps the borrow of a task's argument until the task has settled.
#[napi]
#[derive(Default)]
pub struct TapeParts {
    memory: RefCell<TapeMemory>,
    pub(crate) overflow: Overflow,
}

/// A result that did not fit the memory made for it.
#[derive(Clone, Default)]
pub struct Overflow(Arc<Mutex<Option<Block>>>);

impl Overflow {
    /// Stores a result.
    pub fn put(&self, block: Block) {
        *lock(&self.0) = Some(block);
    }

    /// Removes and returns the result.
    pub fn take(&self) -> Option<Block> {
        lock(&self.0).take()
    }
}

#[napi]
impl TapeParts {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the written part of a segment. Nobody may write to the segment before the task has settled.
    #[napi]
    pub fn add_segment(
        &self,
        segment: &TapeSegment,
        words: u32,
        doubles: u32,
        bytes: u32,
        rope: u32,
        runs: u32,
    ) {
        let written = stream_lens(words, doubles, bytes, rope, runs);
        let segment = Arc::clone(&segment.memory);
        self.memory.borrow_mut().segments.push(SegmentPart::Pinned { segment, written });
    }

    /// Adds a copy of the written part of a segment.
    #[napi]
    pub fn copy_segment(
        &self,
        segment: &TapeSegment,
        words: u32,
        doubles: u32,
        bytes: u32,
        rope: u32,
        runs: u32,
    ) -> Option<Failure> {
        let written = stream_lens(words, doubles, bytes, rope, runs);
        let copied = copy_of(&segment.memory, written);
        copied.map(|copy| self.memory.borrow_mut().segments.push(copy)).err()
    }

    /// Copies a string too long for a segment.
    #[napi]
    pub fn add_text(
        &self,
        env: Env,
        text: JsString<'_>,
        is_wide: bool,
    ) -> napi::Result<Option<Failure>> {
        let copied = block_of(env, text, is_wide)?;
        Ok(copied.map(|(block, len)| self.add_long(block, len, is_wide)).err())
    }

    /// Copies bytes too many for a segment.
    #[napi]
    pub fn add_bytes(&self, #[napi(ts_arg_type = "Uint8Array")] bytes: View) -> Option<Failure> {
        let copied = LongMemory::copy_of(&bytes);
        copied.map(|long| self.memory.borrow_mut().longs.push(long)).err()
    }

    /// Makes a place for bytes that are taken or copied once the value is captured.
    #[napi]
    pub fn add_place(&self) {
        self.memory.borrow_mut().longs.push(LongMemory::Empty);
    }

    /// Puts memory that was taken from the caller in its place.
    #[napi]
    pub fn take_bytes(&self, place: u32, bytes: Uint8Array) {
        self.fill_place(place, LongMemory::Pinned(Arc::new(PinnedBuffer::new(bytes))));
    }

    /// Copies bytes to their place.
    #[napi]
    pub fn copy_bytes(
        &self,
        place: u32,
        #[napi(ts_arg_type = "Uint8Array")] bytes: View,
    ) -> Option<Failure> {
        LongMemory::copy_of(&bytes).map(|long| self.fill_place(place, long)).err()
    }

    /// Adds raw JSON; returns its size.
    #[napi]
    pub fn add_raw_json(&self, fragment: &RawJsonBytes) -> f64 {
        self.memory.borrow_mut().longs.push(LongMemory::Pinned(Arc::clone(&fragment.0)));
        fragment.0.len() as f64
    }

    /// Removes all long strings but the first `len`.
    #[napi]
    pub fn cut_longs(&self, len: u32) {
        self.memory.borrow_mut().longs.truncate(len as usize);
    }

    /// Removes everything that no task has taken.
    #[napi]
    pub fn clear(&self) {
        drop(self.memory.take());
        drop(self.overflow.take());
    }

    fn fill_place(&self, place: u32, long: LongMemory) {
        if let Some(empty) = self.memory.borrow_mut().longs.get_mut(place as usize) {
            *empty = long;
        }
    }

    fn add_long(&self, block: Block, len: usize, is_wide: bool) {
        let block = Arc::new(block);
        self.memory.borrow_mut().longs.push(LongMemory::Recycled { block, len, is_wide });
    }
}

impl TapeParts {
    /// Removes and returns everything.
    pub fn take(&self) -> TapeMemory {
        self.memory.take()
    }

    /// Removes and returns the segments, with copies of the references to the long strings.
    pub fn take_segments(&self) -> TapeMemory {
        let memory = self.memory.take();
        self.memory.borrow_mut().longs.clone_from(&memory.longs);
        memory
    }
}

impl From<TapeMemory> for TapeParts {
    fn from(memory: TapeMemory) -> Self {
        Self { memory: RefCell::new(memory), overflow: Overflow::default() }
    }
}

fn copy_of(segment: &SegmentMemory, written: StreamLens) -> Result<SegmentPart, Failure> {
    let view = Segment::view(segment.memory.bytes(), segment.room, written)?;
    Ok(SegmentPart::Copied(Arc::new(SegmentCopy::new(view)?)))
}

fn stream_lens(words: u32, doubles: u32, bytes: u32, rope: u32, runs: u32) -> StreamLens {
    StreamLens {
        words: words as usize,
        doubles: doubles as usize,
        bytes: bytes as usize,
        rope: rope as usize,
        runs: runs as usize,
    }
}

/// The memory of a tape, in the order of the tape.
#[derive(Clone, Default)]
pub struct TapeMemory {
    segments: Vec<SegmentPart>,
    longs: Vec<LongMemory>,
}

#[derive(Clone)]
enum SegmentPart {
    Pinned { segment: Arc<SegmentMemory>, written: StreamLens },
    Copied(Arc<SegmentCopy>),
}

#[derive(Clone)]
enum LongMemory {
    Recycled { block: Arc<Block>, len: usize, is_wide: bool },
    Pinned(Arc<PinnedBuffer>),
    Empty,
}

impl TapeMemory {
    /// Views the segments.
    pub fn segments(&self) -> Result<Vec<Segment<'_>>, Malformed> {
        self.segments.iter().map(SegmentPart::view).collect()
    }

    /// Views the long strings.
    pub fn longs(&self) -> Vec<JsText<'_>> {
        self.longs.iter().map(LongMemory::view).collect()
    }

    /// Returns the bytes of all memory.
    pub fn size(&self) -> usize {
        let longs = self.longs.iter().map(|long| long.view().bytes.len());
        self.segments.iter().map(SegmentPart::size).chain(longs).sum()
    }

    /// Returns the bytes of memory that V8 does not own.
    pub fn native_size(&self) -> usize {
        let longs = self.longs.iter().map(LongMemory::native_size);
        self.segments.iter().map(SegmentPart::native_size).chain(longs).sum()
    }

    /// Drops recycled memory. Memory of V8 stays: it may be dropped on the JS thread only.
    pub fn recycle(&mut self) {
        self.longs.retain(|long| matches!(long, LongMemory::Pinned(_)));
    }
}

impl SegmentPart {
    fn view(&self) -> Result<Segment<'_>, Malformed> {
        match self {
            Self::Pinned { segment, written } => {
                Segment::view(segment.memory.bytes(), segment.room, *written)
            }
            Self::Copied(copy) => Ok(copy.view()),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Pinned { segment, .. } => segment.memory.len(),
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

impl LongMemory {
    fn copy_of(bytes: &View) -> Result<Self, Failure> {
        let mut block = RECYCLER.acquire(bytes.len())?;
        bytes.copy_to(&mut block);
        Ok(Self::Recycled { block: Arc::new(block), len: bytes.len(), is_wide: false })
    }

    fn view(&self) -> JsText<'_> {
        match self {
            Self::Recycled { block, len, is_wide } => {
                JsText { bytes: block.get(..*len).unwrap_or_default(), is_wide: *is_wide }
            }
            Self::Pinned(memory) => JsText { bytes: memory.bytes(), is_wide: false },
            Self::Empty => JsText { bytes: &[], is_wide: false },
        }
    }

    fn native_size(&self) -> usize {
        match self {
            Self::Recycled { block, .. } => block.len(),
            Self::Pinned(_) | Self::Empty => 0,
        }
    }
}
