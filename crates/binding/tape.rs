//! Classes for a tape: its lexicon, its segments, its long strings.
//!
//! `src/capture` calls them on the JS thread. Tasks read the memory that they refer to.

use std::cell::{OnceCell, RefCell};
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{Either, Uint8Array};
use napi::{Env, JsString};
use napi_derive::napi;
use offloop_json::{LongPart, SegmentPart, StreamLens, check};
use offloop_memory::{Block, prefer_huge_pages};

use crate::failure::Failure;
use crate::guard::guard;
use crate::lock::lock;
use crate::memory::{PinnedBuffer, RECYCLER, View};
use crate::result::OutputBuffer;
use crate::source::block_of;
use crate::task::at_once;

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
pub type SegmentMemory = offloop_json::SegmentMemory<PinnedBuffer>;
/// The memory of a tape, in the order of the tape.
pub type TapeMemory = offloop_json::TapeMemory<PinnedBuffer>;
/// Segments that are printed while the rest of the tape is captured.
pub type SegmentQueue = offloop_json::SegmentQueue<PinnedBuffer, OutputBuffer<'static>>;

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
        let room = StreamLens::of([words, doubles, bytes, 0, runs]);
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
    /// Set by the first segment that is printed before the rest.
    pub(crate) queue: OnceCell<Arc<SegmentQueue>>,
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
        let written = StreamLens::of([words, doubles, bytes, rope, runs]);
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
        let written = StreamLens::of([words, doubles, bytes, rope, runs]);
        let copied = segment.memory.copy::<Failure>(written);
        copied.map(|copy| self.memory.borrow_mut().segments.push(copy)).err()
    }

    /// Moves the segment added last, and the long strings from `first` to `end`, to the queue of `printSegments`. Returns
    /// whether one more such task is needed. `index` is the place of the segment on the tape.
    #[napi(ts_return_type = "boolean | Failure")]
    pub fn queue_segment(
        &self,
        index: u32,
        first: u32,
        end: u32,
        expected_size: f64,
    ) -> Either<bool, Failure> {
        let longs = first as usize..end as usize;
        let queue = self.queue.get_or_init(Arc::default);
        at_once(|| {
            let job = self.memory.borrow_mut().split_job(longs, expected_size as usize)?;
            Ok(queue.add(index as usize, job)?)
        })
    }

    /// Whether the segment at `index` of the queue is printed. No task reads it any more.
    #[napi]
    #[must_use]
    pub fn is_printed(&self, index: u32) -> bool {
        self.queue.get().is_some_and(|queue| queue.is_printed(index as usize))
    }

    /// The bytes of JSON of all printed segments of the queue.
    #[napi(getter)]
    #[must_use]
    pub fn printed_size(&self) -> f64 {
        self.queue.get().map_or(0.0, |queue| queue.joined_len() as f64)
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
        let copied = copy_of(&bytes);
        copied.map(|long| self.memory.borrow_mut().longs.push(long)).err()
    }

    /// Makes a place for bytes that are taken or copied once the value is captured.
    #[napi]
    pub fn add_place(&self) {
        self.memory.borrow_mut().longs.push(LongPart::Empty);
    }

    /// Puts memory that was taken from the caller in its place.
    #[napi]
    pub fn take_bytes(&self, place: u32, bytes: Uint8Array) {
        self.fill_place(place, LongPart::Pinned(Arc::new(PinnedBuffer::new(bytes))));
    }

    /// Copies bytes to their place.
    #[napi]
    pub fn copy_bytes(
        &self,
        place: u32,
        #[napi(ts_arg_type = "Uint8Array")] bytes: View,
    ) -> Option<Failure> {
        copy_of(&bytes).map(|long| self.fill_place(place, long)).err()
    }

    /// Adds raw JSON; returns its size.
    #[napi]
    pub fn add_raw_json(&self, fragment: &RawJsonBytes) -> f64 {
        self.memory.borrow_mut().longs.push(LongPart::Pinned(Arc::clone(&fragment.0)));
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
        if let Some(queue) = self.queue.get() {
            queue.clear();
        }
    }

    fn fill_place(&self, place: u32, long: LongPart<PinnedBuffer>) {
        self.memory.borrow_mut().fill(place as usize, long);
    }

    fn add_long(&self, block: Block, len: usize, is_wide: bool) {
        let block = Arc::new(block);
        self.memory.borrow_mut().longs.push(LongPart::Recycled { block, len, is_wide });
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
        Self { memory: RefCell::new(memory), ..Self::default() }
    }
}

fn copy_of(bytes: &View) -> Result<LongPart<PinnedBuffer>, Failure> {
    let mut block = RECYCLER.acquire(bytes.len())?;
    bytes.copy_to(&mut block);
    Ok(LongPart::Recycled { block: Arc::new(block), len: bytes.len(), is_wide: false })
}
