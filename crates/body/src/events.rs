//! Reads server-sent events as they arrive. The JS thread pushes chunks and takes the events that they complete; tasks
//! read large events.
//!
//! Small events without values to lift leave together, as JSON. An event that is large, or has values to lift, leaves as
//! bytes, and is taken apart like a body.

use std::convert::Infallible;
use std::error::Error;
use std::fmt::{self, Write};
use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use offloop_grammar::{CheckError, check};
use offloop_memory::{Chunk, Gathered, OutOfMemory, Recycler, TakenMemory};

use crate::error::BodyError;
use crate::framing::{EventFraming, read_fields};
use crate::lift::LiftConfig;
use crate::plan::BodyPlan;
use crate::scan::{ScanError, scan};

/// Bytes of unfinished events that are kept in one piece. Larger events are gathered in blocks.
const MOST_SMALL: usize = 64 << 10;
/// Events from this size on are read by tasks.
const LARGE: usize = 32 << 10;
/// Bytes of small events that leave together: JSON.parse of them blocks the event loop.
const MOST_RUN: usize = 32 << 10;
/// The name of an event that has none.
const UNNAMED: &str = "message";

/// Options of a stream of events.
#[derive(Clone, Debug)]
pub struct EventRules {
    /// The data of the event that ends the stream.
    pub done: Option<Arc<[u8]>>,
    /// Most bytes of an event.
    pub max_size: usize,
}

/// The next step of a stream of events.
pub enum EventStep<T> {
    /// Small events: see [`EventRun`].
    Run(String),
    /// The bytes of one event.
    Event(Gathered<T>, EventBytes),
    /// The event that ends the stream.
    Done,
    /// No further event can be read.
    Failed(EventError),
}

/// Why no further event can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventError {
    /// The data of an event is not JSON. The offset is that in the stream.
    Json(CheckError),
    /// An event has more bytes than this.
    TooLarge(usize),
    Memory(OutOfMemory),
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => error.fmt(f),
            Self::TooLarge(max_size) => write!(f, "an event has more than {max_size} bytes"),
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl Error for EventError {}

/// The content of the bytes of an event.
#[derive(Clone, Debug)]
pub enum EventBytes {
    /// The bytes of the stream, up to the blank line.
    Raw(RawEvent),
    /// The data alone.
    Data(EventHead),
}

/// An event whose fields are not known.
#[derive(Clone, Debug)]
pub struct RawEvent {
    /// Its offset in the stream.
    offset: usize,
    done: Option<Arc<[u8]>>,
    last_id: SharedId,
}

/// The id of the last event that had one.
type SharedId = Arc<Mutex<Arc<str>>>;

/// The fields of an event, but for its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventHead {
    /// Absent for the name `message`.
    name: Option<String>,
    id: Arc<str>,
    /// The offset of its data in the stream.
    offset: usize,
    /// Whether carriage returns stand between the lines of its data.
    has_gaps: bool,
}

/// An event whose fields were read.
enum OpenedEvent {
    /// The event has no data.
    Nothing,
    /// The event ends the stream.
    Done,
    /// The event has data in this range.
    Event(EventHead, Range<usize>),
}

impl RawEvent {
    /// Reads the fields of `raw`, the bytes of the event, and makes its data one piece.
    ///
    /// Events must be opened in their order: an event without an id has that of the last one before.
    fn open(&self, raw: &mut [u8]) -> OpenedEvent {
        let fields = read_fields(raw, self.offset == 0);
        let mut last_id = self.last_id.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = fields.id {
            *last_id = id.into();
        }
        let Some(range) = fields.data else { return OpenedEvent::Nothing };
        let data = raw.get(range.clone()).unwrap_or_default();
        if self.done.as_ref().is_some_and(|done| lines(data).eq(done.iter())) {
            return OpenedEvent::Done;
        }
        let offset = self.offset + range.start;
        let id = Arc::clone(&last_id);
        let head = EventHead { name: fields.name, id, offset, has_gaps: fields.has_gaps };
        OpenedEvent::Event(head, range)
    }
}

/// Returns the bytes of data without those of its gaps.
fn lines(data: &[u8]) -> impl Iterator<Item = &u8> {
    data.iter().filter(|&&byte| byte != b'\r')
}

impl EventHead {
    /// Returns the description of a plan with the name and the id of the event behind it.
    fn describe(&self, description: &str) -> String {
        let mut json = description.strip_suffix(']').unwrap_or(description).to_owned();
        self.push_to(&mut json);
        json.push(']');
        json
    }

    /// Writes the name and the id behind a comma each.
    fn push_to(&self, json: &mut String) {
        for text in [self.name.as_deref().unwrap_or(UNNAMED), &self.id] {
            json.push(',');
            push_string(json, text);
        }
    }
}

/// The text that a plan is made of: a body, or an event.
#[derive(Debug)]
pub struct PlanSource<'a> {
    pub config: &'a LiftConfig,
    pub event: Option<EventBytes>,
    /// Whether nobody else can see its memory: see [`BodyPlan::new`].
    pub is_ours: bool,
}

/// A plan, and the part of the text that it is of.
#[derive(Debug)]
pub struct PlannedText {
    pub plan: BodyPlan,
    /// See [`BodyPlan::describe`]. The description of an event has its name and its id as fourth and fifth item. It is `0`
    /// for an event without data, and `1` for the one that ends the stream.
    pub description: String,
    pub part: Range<usize>,
}

impl PlanSource<'_> {
    /// Makes the plan of `text`.
    ///
    /// # Errors
    /// Fails as [`BodyPlan::new`] does. Offsets are those in the stream.
    pub fn plan<E>(
        self,
        text: &mut [u8],
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<PlannedText, BodyError<E>> {
        let (head, part) = match self.event {
            None => (None, 0..text.len()),
            Some(EventBytes::Data(head)) => (Some(head), 0..text.len()),
            Some(EventBytes::Raw(event)) => match event.open(text) {
                OpenedEvent::Event(head, part) => (Some(head), part),
                OpenedEvent::Nothing => return Ok(PlannedText::empty("0")),
                OpenedEvent::Done => return Ok(PlannedText::empty("1")),
            },
        };
        let offset = head.as_ref().map_or(0, |head| head.offset);
        let text = text.get(part.clone()).unwrap_or_default();
        let mut plan = BodyPlan::new(text, self.config, self.is_ours, &mut poll)
            .map_err(|error| error.moved(offset))?;
        plan.offset = offset;
        plan.has_gaps = head.as_ref().is_some_and(|head| head.has_gaps);
        let mut description = plan.describe(text, poll).map_err(BodyError::Stopped)?;
        if let Some(head) = head {
            description = head.describe(&description);
        }
        Ok(PlannedText { plan, description, part })
    }
}

impl PlannedText {
    fn empty(description: &str) -> Self {
        Self { plan: BodyPlan::default(), description: description.to_owned(), part: 0..0 }
    }
}

/// Reads the events of one stream.
pub struct EventReader<T> {
    config: Arc<LiftConfig>,
    rules: EventRules,
    framing: EventFraming,
    /// Bytes that are not in `large`.
    small: Vec<u8>,
    /// The start of the first event in `small`.
    start: usize,
    /// Bytes of `small` in which no event ends.
    framed: usize,
    /// The event that did not fit in `small`.
    large: Option<Gathered<T>>,
    /// Last bytes of `large` that were not searched for the end.
    unframed: usize,
    /// The offset of the first event in the stream.
    offset: usize,
    last_id: SharedId,
    run: EventRun,
    /// The step behind the run that was returned.
    next: Option<EventStep<T>>,
}

impl<T: TakenMemory> EventReader<T> {
    #[must_use]
    pub fn new(config: Arc<LiftConfig>, rules: EventRules) -> Self {
        Self {
            config,
            rules,
            framing: EventFraming::new(),
            small: Vec::new(),
            start: 0,
            framed: 0,
            large: None,
            unframed: 0,
            offset: 0,
            last_id: Arc::new(Mutex::new(Arc::from(""))),
            run: EventRun::default(),
            next: None,
        }
    }

    /// Adds a chunk of `size` bytes, which `copy` writes. All events before it must have been taken.
    ///
    /// # Errors
    /// Fails where the system has no memory left.
    pub fn push(
        &mut self,
        size: usize,
        recycler: &'static Recycler,
        copy: impl FnOnce(&mut [u8]),
    ) -> Result<(), OutOfMemory> {
        self.framed -= self.start;
        self.small.drain(..mem::take(&mut self.start));
        if self.large.is_none() && self.framed != 0 && MOST_SMALL < self.framed + size {
            let mut large = Gathered::default();
            large.copy(&self.small, recycler)?;
            self.large = Some(large);
            self.small.clear();
            self.framed = 0;
        }
        if let Some(large) = &mut self.large {
            copy(large.room(size, recycler)?);
            large.grow(size);
            self.unframed = size;
        } else {
            self.small.resize(self.framed + size, 0);
            copy(self.small.get_mut(self.framed..).unwrap_or_default());
        }
        Ok(())
    }

    /// Returns what comes next; `None` if that needs another chunk.
    pub fn next(&mut self, recycler: &'static Recycler) -> Option<EventStep<T>> {
        if let Some(step) = self.next.take() {
            return Some(step);
        }
        while self.run.data.len() < MOST_RUN {
            let step = match self.frame(recycler) {
                Ok(Framed::Nothing) => {
                    let end = if self.is_clean() { RunEnd::Clean } else { RunEnd::Chunk };
                    return self.run.finish(end).map(EventStep::Run);
                }
                Ok(Framed::Small) => continue,
                Ok(Framed::Step(step)) => step,
                Err(error) => EventStep::Failed(error),
            };
            let Some(run) = self.run.finish(RunEnd::More) else { return Some(step) };
            self.next = Some(step);
            return Some(EventStep::Run(run));
        }
        self.run.finish(RunEnd::More).map(EventStep::Run)
    }

    /// Leaves `size` bytes out, which the caller has read. The stream must be clean: see [`RunEnd`].
    pub fn skip(&mut self, size: usize) {
        self.offset += size;
    }

    /// Returns whether no event has begun, and the caller knows the id of the next one.
    fn is_clean(&self) -> bool {
        let last_id = self.last_id.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = self.run.last.as_ref().is_some_and(|(_, id)| *id == *last_id);
        is_known && self.large.is_none() && self.start == self.small.len()
    }

    /// Reads the next event.
    fn frame(&mut self, recycler: &'static Recycler) -> Result<Framed<T>, EventError> {
        if let Some(large) = self.large.take() {
            return self.frame_large(large);
        }
        let Some(len) = self.framing.end(self.small.get(self.framed..).unwrap_or_default()) else {
            self.framed = self.small.len();
            self.check_size(self.small.len() - self.start)?;
            return Ok(Framed::Nothing);
        };
        self.framed += len;
        let range = mem::replace(&mut self.start, self.framed)..self.framed;
        self.check_size(range.len())?;
        let event = self.raw_event(range.len());
        if LARGE < range.len() {
            let bytes = self.small.get(range).unwrap_or_default();
            return step_of(bytes, EventBytes::Raw(event), recycler);
        }
        self.read_small(&event, range, recycler)
    }

    /// Reads an event that is in one piece.
    fn read_small(
        &mut self,
        event: &RawEvent,
        range: Range<usize>,
        recycler: &'static Recycler,
    ) -> Result<Framed<T>, EventError> {
        let raw = self.small.get_mut(range).unwrap_or_default();
        let (head, range) = match event.open(raw) {
            OpenedEvent::Nothing => return Ok(Framed::Small),
            OpenedEvent::Done => return Ok(Framed::Step(EventStep::Done)),
            OpenedEvent::Event(head, range) => (head, range),
        };
        let data = raw.get(range).unwrap_or_default();
        let has_lifts = has_lifts(data, &self.config).map_err(|CheckError { offset }| {
            EventError::Json(CheckError { offset: head.offset + offset })
        })?;
        if has_lifts {
            return step_of(data, EventBytes::Data(head), recycler);
        }
        self.run.push(head, data);
        Ok(Framed::Small)
    }

    fn frame_large(&mut self, mut large: Gathered<T>) -> Result<Framed<T>, EventError> {
        let last = large.chunks().last().map(Chunk::bytes).unwrap_or_default();
        let unframed = last.get(last.len() - self.unframed..).unwrap_or_default();
        let end = self.framing.end(unframed);
        self.unframed = 0;
        let Some(end) = end else {
            self.check_size(large.size())?;
            self.large = Some(large);
            return Ok(Framed::Nothing);
        };
        let behind = unframed.get(end..).unwrap_or_default();
        self.small.extend_from_slice(behind);
        large.shrink(self.small.len());
        self.check_size(large.size())?;
        let event = self.raw_event(large.size());
        Ok(Framed::Step(EventStep::Event(large, EventBytes::Raw(event))))
    }

    /// Leaves an event of `size` bytes.
    fn raw_event(&mut self, size: usize) -> RawEvent {
        let offset = self.offset;
        self.offset += size;
        RawEvent { offset, done: self.rules.done.clone(), last_id: Arc::clone(&self.last_id) }
    }

    fn check_size(&self, size: usize) -> Result<(), EventError> {
        let max_size = self.rules.max_size;
        if size <= max_size { Ok(()) } else { Err(EventError::TooLarge(max_size)) }
    }
}

/// Returns whether JSON has values to lift or to drop.
fn has_lifts(json: &[u8], config: &LiftConfig) -> Result<bool, CheckError> {
    if config.finds_nothing() {
        return check(json).map(|()| false);
    }
    match scan(json, config.search(), || Ok::<(), Infallible>(())) {
        Ok(found) => Ok(!found.matches.is_empty() || !found.long_strings.is_empty()),
        Err(ScanError::Json(error)) => Err(error),
        Err(ScanError::Stopped(never)) => match never {},
    }
}

/// The outcome of one step of framing.
enum Framed<T> {
    /// No event ends in the bytes that are there.
    Nothing,
    /// The event is in the run, or has no data.
    Small,
    Step(EventStep<T>),
}

fn step_of<T: TakenMemory>(
    bytes: &[u8],
    event: EventBytes,
    recycler: &'static Recycler,
) -> Result<Framed<T>, EventError> {
    let mut gathered = Gathered::default();
    gathered.copy(bytes, recycler).map_err(EventError::Memory)?;
    Ok(Framed::Step(EventStep::Event(gathered, event)))
}

/// Small events that follow each other, as JSON: `[data, heads, end]`.
///
/// `data` holds the data of each event. `heads` holds three items for each event whose name or id differs from those of
/// the event before, in this run or an earlier one: its index, name and id. Before the first event they are empty.
/// `end` is the number of a [`RunEnd`].
///
/// ```json
/// [[{"delta": "a"}, {"delta": "b"}], [0, "message", ""], 1]
/// ```
#[derive(Default)]
pub struct EventRun {
    data: Vec<u8>,
    heads: String,
    len: usize,
    /// The name and the id of the last event; absent before the first.
    last: Option<(Option<String>, Arc<str>)>,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// 0: the next event may be there.
    More,
    /// 1: the next event needs another chunk.
    Chunk,
    /// 2: the next event needs another chunk and begins with it. Without an id it has that of the run's last event.
    Clean,
}

impl EventRun {
    fn push(&mut self, head: EventHead, data: &[u8]) {
        let is_same =
            self.last.as_ref().is_some_and(|(name, id)| *name == head.name && *id == head.id);
        if !is_same {
            let comma = if self.heads.is_empty() { "" } else { "," };
            // Writing to a String cannot fail.
            let _ = write!(self.heads, "{comma}{}", self.len);
            head.push_to(&mut self.heads);
            self.last = Some((head.name, head.id));
        }
        self.data.extend_from_slice(if self.len == 0 { b"[[" } else { b"," });
        self.data.extend_from_slice(data);
        self.len += 1;
    }

    /// Returns the events and begins the next run; `None` if there are no events.
    fn finish(&mut self, end: RunEnd) -> Option<String> {
        if mem::take(&mut self.len) == 0 {
            return None;
        }
        let mut json = mem::take(&mut self.data);
        json.extend_from_slice(b"],[");
        json.extend_from_slice(mem::take(&mut self.heads).as_bytes());
        json.extend_from_slice(match end {
            RunEnd::More => b"],0]",
            RunEnd::Chunk => b"],1]",
            RunEnd::Clean => b"],2]",
        });
        // The scan has seen that the data is UTF-8.
        String::from_utf8(json).ok()
    }
}

/// Writes `text` as a JSON string.
fn push_string(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            // Writing to a String cannot fail.
            '\0'..=' ' => drop(write!(json, "\\u{:04x}", u32::from(character))),
            _ => json.push(character),
        }
    }
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::SEARCHED;

    #[test]
    fn each_byte_is_searched_once_in_chunks_of_one() {
        static RECYCLER: Recycler = Recycler::new(1 << 24);
        let stream = format!("data: 1\n\ndata: \"{}\"\r\n\r\ndata: 2\n\n", "x".repeat(200_000));
        let rules = EventRules { done: None, max_size: usize::MAX };
        let mut reader = EventReader::<Infallible>::new(Arc::default(), rules);
        SEARCHED.set(0);
        let mut steps = 0;
        for byte in stream.bytes() {
            reader.push(1, &RECYCLER, |room| room.fill(byte)).unwrap();
            while reader.next(&RECYCLER).is_some() {
                steps += 1;
            }
        }
        assert_eq!((SEARCHED.get(), steps), (stream.len(), 3));
    }
}
