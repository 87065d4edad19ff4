//! Segments that are printed while the rest of their tape is captured, each on its own, and joined at the end.
//!
//! The JS thread adds segments. At most [`MOST_TASKS`] tasks take and print them until there is none, then end. No task
//! waits for another one, and the lock is held only to add, take and put back.
//!
//! | state | next state | who |
//! |---|---|---|
//! | absent | waiting | [`SegmentQueue::add`], JS thread |
//! | waiting | in a task | [`SegmentQueue::take`], task |
//! | in a task | printed | [`SegmentQueue::put`], the same task |
//!
//! JavaScript may write to a segment again once it is printed. A task that fails puts nothing back, and its segment stays
//! in its hands until it is dropped on the JS thread.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use offloop_cpu::spare_cores;

use crate::error::TranscodeError;
use crate::lexicon::Lexicon;
use crate::output::Memory;
use crate::parts::SegmentJob;
use crate::print::Workspace;
use crate::tape::{Malformed, Tape};
use crate::text::Kernel;
use crate::transcode::{JsonExtent, PartExtent, transcode_part};
use crate::writer::Writer;

/// The most tasks that print the segments of one tape at once.
///
/// On two cores there is one: a second one would take turns with the JS thread, whose capture of 200 rollouts took 10 %
/// longer (Node 24, AMD EPYC).
const MOST_TASKS: usize = 2;

/// The most segments of one tape: 7 TB.
const MOST_SEGMENTS: usize = 1 << 20;

/// The JSON of one segment, with the comma behind its last value.
pub struct PrintedSegment<M> {
    memory: M,
    part: PartExtent,
    has_comma: bool,
}

/// The segments of one tape, in any order, and their JSON.
pub struct SegmentQueue<P, M>(Mutex<QueueState<P, M>>);

struct QueueState<P, M> {
    entries: Vec<Entry<P, M>>,
    /// The indexes of waiting entries, in the order in which they came.
    waiting: VecDeque<usize>,
    /// Tasks that were asked for and have not found the queue empty.
    tasks: usize,
    most_tasks: usize,
}

enum Entry<P, M> {
    Absent,
    Waiting(SegmentJob<P>),
    InTask,
    /// The job keeps memory of V8 until the queue is dropped, on the JS thread.
    Printed {
        text: Option<PrintedSegment<M>>,
        _job: SegmentJob<P>,
    },
}

impl<P, M> Default for SegmentQueue<P, M> {
    fn default() -> Self {
        Self::new(MOST_TASKS.min(spare_cores()))
    }
}

impl<P, M> SegmentQueue<P, M> {
    /// Returns an empty queue for so many tasks at most.
    #[must_use]
    pub fn new(most_tasks: usize) -> Self {
        let (entries, waiting) = (Vec::new(), VecDeque::new());
        Self(Mutex::new(QueueState { entries, waiting, tasks: 0, most_tasks }))
    }

    /// Adds the segment at `index` of the tape. Returns whether the caller has to launch one more task.
    ///
    /// # Errors
    /// Fails for an index that is taken or too high.
    pub fn add(&self, index: usize, job: SegmentJob<P>) -> Result<bool, Malformed> {
        let mut state = self.lock();
        if MOST_SEGMENTS <= index {
            return Err(Malformed);
        }
        if state.entries.len() <= index {
            state.entries.resize_with(index + 1, || Entry::Absent);
        }
        let entry = state.entries.get_mut(index).ok_or(Malformed)?;
        if !matches!(entry, Entry::Absent) {
            return Err(Malformed);
        }
        *entry = Entry::Waiting(job);
        state.waiting.push_back(index);
        let needs_task = state.tasks < state.most_tasks;
        state.tasks += usize::from(needs_task);
        Ok(needs_task)
    }

    /// Takes the next segment and its index. `None` ends the task that asks.
    fn take(&self) -> Option<(usize, SegmentJob<P>)> {
        let mut state = self.lock();
        while let Some(index) = state.waiting.pop_front() {
            let entry = state.entries.get_mut(index)?;
            if let Entry::Waiting(job) = mem::replace(entry, Entry::InTask) {
                return Some((index, job));
            }
        }
        state.tasks = state.tasks.saturating_sub(1);
        None
    }

    /// Puts a segment back with its JSON.
    fn put(&self, index: usize, job: SegmentJob<P>, text: PrintedSegment<M>) {
        if let Some(entry) = self.lock().entries.get_mut(index) {
            *entry = Entry::Printed { text: Some(text), _job: job };
        }
    }

    /// Returns whether a segment is printed: no task reads it any more.
    #[must_use]
    pub fn is_printed(&self, index: usize) -> bool {
        matches!(self.lock().entries.get(index), Some(Entry::Printed { .. }))
    }

    /// Returns the length of the JSON of all segments, joined. Segments that are not printed count nothing.
    #[must_use]
    pub fn joined_len(&self) -> usize {
        let state = self.lock();
        joined(state.entries.iter().filter_map(Entry::text)).map(|(_, len)| len).sum()
    }

    /// Removes and returns the JSON of all segments, in the order of the tape.
    ///
    /// # Errors
    /// Fails where a segment is not printed.
    pub fn take_texts(&self) -> Result<Vec<PrintedSegment<M>>, Malformed> {
        self.lock().entries.iter_mut().map(Entry::take_text).collect()
    }

    /// Drops everything that no task has, on the JS thread.
    pub fn clear(&self) {
        let mut dropped = Vec::new();
        for entry in &mut self.lock().entries {
            if !matches!(entry, Entry::InTask) {
                dropped.push(mem::replace(entry, Entry::Absent));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<P, M>> {
        // No code under this lock leaves an invalid state behind when it panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: AsRef<[u8]>, M: Memory> SegmentQueue<P, M> {
    /// Prints segments until there is none; returns how many. `job` has the segment in work, which a failure leaves there.
    ///
    /// # Errors
    /// Fails as [`SegmentJob::print`] does.
    pub fn print<W: Workspace<Memory = M>>(
        &self,
        job: &mut Option<SegmentJob<P>>,
        lexicon: &Lexicon,
        has_rows: bool,
        workspace: &W,
    ) -> Result<usize, TranscodeError<M::Error>> {
        let mut count = 0;
        while let Some((index, next)) = self.take() {
            let text = job.insert(next).print(lexicon, has_rows, workspace)?;
            if let Some(mut printed) = job.take() {
                printed.recycle();
                self.put(index, printed, text);
            }
            count += 1;
        }
        Ok(count)
    }
}

impl<P, M> Entry<P, M> {
    fn text(&self) -> Option<&PrintedSegment<M>> {
        match self {
            Self::Printed { text, .. } => text.as_ref(),
            _ => None,
        }
    }

    fn take_text(&mut self) -> Result<PrintedSegment<M>, Malformed> {
        match self {
            Self::Printed { text, .. } => text.take().ok_or(Malformed),
            _ => Err(Malformed),
        }
    }
}

impl<P: AsRef<[u8]>> SegmentJob<P> {
    /// Prints the segment to memory of `workspace`. `has_rows` says that the tape is JSON Lines.
    ///
    /// # Errors
    /// Fails as `workspace` does, and for an invalid tape.
    fn print<W: Workspace>(
        &self,
        lexicon: &Lexicon,
        has_rows: bool,
        workspace: &W,
    ) -> Result<PrintedSegment<W::Memory>, TranscodeError<<W::Memory as Memory>::Error>> {
        let (segments, longs) = ([self.segment()?], self.longs());
        let first_long = self.first_long();
        let tape = Tape { segments: &segments, longs: &longs, first_long, lexicon, has_rows };
        let mut memory = workspace.acquire(self.expected_size).map_err(TranscodeError::Stopped)?;
        let part = transcode_part(tape, Kernel::best(), &mut memory, || workspace.poll())?;
        let last = part.extent.len.checked_sub(1).and_then(|last| memory.bytes().get(last));
        let has_comma = last == Some(&b',');
        Ok(PrintedSegment { memory, part, has_comma })
    }
}

/// Writes the JSON of all segments to `memory`, joined.
///
/// # Errors
/// Fails as `memory` and `poll` do.
pub(crate) fn join_texts<T: Memory, M: Memory>(
    texts: &mut [PrintedSegment<T>],
    memory: &mut M,
    poll: impl FnMut() -> Result<(), M::Error>,
) -> Result<JsonExtent, TranscodeError<M::Error>> {
    let lens = joined(texts.iter()).map(|(_, len)| len).collect::<Vec<_>>();
    let mut writer = Writer::new(memory, Kernel::best(), poll)?;
    let mut raws = Vec::new();
    for (text, len) in texts.iter_mut().filter(|text| !text.is_empty()).zip(lens) {
        let start = writer.out.len();
        raws.extend(text.part.extent.raws.iter().map(|raw| start + raw.start..start + raw.end));
        writer.copy(text.memory.bytes().get(..len).unwrap_or_default())?;
    }
    writer.pause()?;
    Ok(JsonExtent { len: writer.out.len(), raws })
}

impl<M> PrintedSegment<M> {
    fn is_empty(&self) -> bool {
        self.part.extent.len == 0
    }
}

/// Returns the texts that are not empty, each with its length before the next one. A comma is left out before the end of
/// a container or row, and at the end of the tape.
fn joined<'a, M: 'a>(
    texts: impl Iterator<Item = &'a PrintedSegment<M>>,
) -> impl Iterator<Item = (&'a PrintedSegment<M>, usize)> {
    let mut texts = texts.filter(|text| !text.is_empty()).peekable();
    std::iter::from_fn(move || {
        let text = texts.next()?;
        let drops = text.has_comma && texts.peek().is_none_or(|next| next.part.closes);
        Some((text, text.part.extent.len - usize::from(drops)))
    })
}
