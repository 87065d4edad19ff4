use std::fmt::Write;
use std::mem;
use std::ops::Range;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{AsyncTask, Either, Uint8Array};
use napi_derive::napi;
use offloop_base64::max_decoded_len;
use offloop_body::{
    Find, Found, Kind, NumberError, Patterns, Step, Wanted, fill_numbers, place_of, pointer_of,
    scan, unescaped,
};
use offloop_experts::{Hints, Payload, Shape};
use offloop_memory::Block;

use crate::base64::{Base64Alphabet, Base64Mode, Progress};
use crate::experts::{ExpertsHints, Known};
use crate::failure::{Cause, Failure};
use crate::lock::lock;
use crate::memory::{Held, RECYCLER};
use crate::result::{clear_rest, prepare};
use crate::source::{Segment, Source, recycle};
use crate::stop::{Flag, Stop};
use crate::task::{Job, Work, at_once, launch};

/// What is made of the values at a pointer.
#[napi]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lift {
    Base64,
    Int32,
    Uint8,
    Uint16,
    Float32,
    Float64,
    Raw,
    Experts,
}

impl Lift {
    fn kind(self) -> Option<Kind> {
        match self {
            Self::Int32 => Some(Kind::Int32),
            Self::Uint8 => Some(Kind::Uint8),
            Self::Uint16 => Some(Kind::Uint16),
            Self::Float32 => Some(Kind::Float32),
            Self::Float64 => Some(Kind::Float64),
            Self::Base64 | Self::Raw | Self::Experts => None,
        }
    }

    fn wanted(self) -> Wanted {
        match self {
            Self::Base64 => Wanted::Text,
            Self::Raw => Wanted::Raw,
            Self::Experts => Wanted::Payload,
            _ => Wanted::Numbers,
        }
    }
}

/// Values from this size on have memory of their own, which can be transferred.
const OWN_MEMORY: usize = 64 << 10;
/// What the places of small values are multiples of.
const ALIGNMENT: usize = 8;
/// A value from this size on is decoded into the memory of the body, if that was taken and holds all of it.
const IN_PLACE: usize = 1 << 20;
/// Bytes that are copied, or decoded, between two looks at the flag. A multiple of four.
const PIECE: usize = 1 << 20;

/// A body on its way through two tasks: one looks at it, one fills the memory that was made meanwhile.
#[napi]
pub struct BodyText {
    patterns: Arc<Patterns>,
    wrong: Option<WrongPointer>,
    lifts: Arc<[Lift]>,
    hints: Arc<[Hints]>,
    keeps: bool,
    state: Shared,
}

/// A pointer that is none.
#[napi(object, object_from_js = false)]
#[derive(Clone)]
pub struct WrongPointer {
    /// Which of those that were given.
    pub index: u32,
    pub reason: String,
}

type Shared = Arc<Mutex<State>>;

#[derive(Default)]
struct State {
    text: Text,
    values: Vec<Value>,
    /// What memory the values need: shared by the small ones, and then each of the others'.
    sizes: Vec<usize>,
    lengths: Vec<usize>,
}

/// A value to be lifted, and where it goes.
struct Value {
    find: Find,
    /// The index of its memory. The one behind the last is that of the body.
    memory: usize,
    place: Range<usize>,
    /// Of routed experts.
    known: Option<Known>,
}

#[derive(Default)]
struct Text {
    segments: Vec<Segment>,
    joined: Option<(Block, usize)>,
}

impl Text {
    fn new(segments: Vec<Segment>, flag: &Flag) -> Result<Self, Failure> {
        if segments.len() < 2 {
            return Ok(Self { segments, joined: None });
        }
        let len = segments.iter().map(|segment| segment.bytes().len()).sum();
        let mut block = RECYCLER.acquire(len)?;
        let mut room = &mut block[..];
        for piece in segments.iter().flat_map(|segment| segment.bytes().chunks(PIECE)) {
            flag.check()?;
            let Some((place, rest)) = room.split_at_mut_checked(piece.len()) else { break };
            place.copy_from_slice(piece);
            room = rest;
        }
        Ok(Self { segments, joined: Some((block, len)) })
    }

    /// It is one piece of memory, which nobody else has.
    fn is_taken(&self) -> bool {
        matches!(self.segments.as_slice(), [Segment::Taken(_)])
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self.segments.as_mut_slice() {
            [Segment::Taken(held)] => held.bytes_mut(),
            _ => &mut [],
        }
    }

    fn bytes(&self) -> &[u8] {
        match (&self.joined, self.segments.first()) {
            (Some((block, len)), _) => block.get(..*len).unwrap_or_default(),
            (None, Some(segment)) => segment.bytes(),
            (None, None) => &[],
        }
    }
}

#[napi]
impl BodyText {
    /// `pointers`, what is made of the values there, and what is known of routed experts there; whether values of another
    /// type stay as they are.
    #[napi(constructor)]
    #[must_use]
    pub fn new(
        pointers: Vec<String>,
        lifts: Vec<Lift>,
        hints: Vec<ExpertsHints>,
        keeps: bool,
    ) -> Self {
        let pointers: Vec<_> = pointers.into_iter().map(String::into_bytes).collect();
        let (patterns, wrong) = match Patterns::new(&pointers) {
            Ok(patterns) => (patterns, None),
            Err((index, error)) => {
                let wrong = WrongPointer { index: index as u32, reason: error.to_string() };
                (Patterns::default(), Some(wrong))
            }
        };
        let state = Shared::default();
        let hints = hints.into_iter().map(Hints::from).collect();
        Self { patterns: Arc::new(patterns), wrong, lifts: lifts.into(), hints, keeps, state }
    }

    /// The first pointer that is none, if there is one: nothing is found then.
    #[napi(getter)]
    #[must_use]
    pub fn wrong_pointer(&self) -> Option<WrongPointer> {
        self.wrong.clone()
    }

    /// As JSON: the sizes of the memory to be made; and of each value the path, the index of its pointer, the index of
    /// its memory, where in that it begins, and of routed experts their shape, dtype and start.
    #[napi]
    #[must_use]
    pub fn describe(&self) -> String {
        let state = lock(&self.state);
        let text = state.text.bytes();
        let mut json = String::from("[[");
        for (index, size) in state.sizes.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            // Writing to a String cannot fail.
            let _ = write!(json, "{comma}{size}");
        }
        json.push_str("],[");
        for (index, Value { find, memory, place, known }) in state.values.iter().enumerate() {
            json.push_str(if index == 0 { "[[" } else { ",[[" });
            for (index, step) in find.path.iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                let _ = match step {
                    Step::Index(index) => write!(json, "{comma}{index}"),
                    Step::Key(key) => {
                        let key = text.get(key.clone()).unwrap_or_default();
                        write!(json, "{comma}\"{}\"", String::from_utf8_lossy(key))
                    }
                };
            }
            let _ = write!(json, "],{},{memory},{}", find.pattern, place.start);
            if let Some(Payload { shape, dtype, start, .. }) = known.as_ref().map(Known::payload) {
                let Shape { rows, layers, topk } = shape;
                let _ = write!(json, ",[{rows},{layers},{topk}],\"{dtype}\",{start}");
            }
            json.push(']');
        }
        json.push_str("]]");
        json
    }

    /// How long the values are that were filled, in their order.
    #[napi]
    #[must_use]
    pub fn lengths(&self) -> Vec<f64> {
        lock(&self.state).lengths.iter().map(|&length| length as f64).collect()
    }

    /// Gives everything back that no task has.
    #[napi]
    pub fn clear(&self) {
        drop(mem::take(&mut *lock(&self.state)));
    }
}

/// Looks at a body; tells how long the JSON is that is left of it.
pub struct ScanBody {
    segments: Vec<Segment>,
    patterns: Arc<Patterns>,
    lifts: Arc<[Lift]>,
    hints: Arc<[Hints]>,
    keeps: bool,
    state: Shared,
}

impl Work for ScanBody {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let text = Text::new(mem::take(&mut self.segments), flag)?;
        flag.check()?;
        let wanted = self.lifts.iter().map(|lift| lift.wanted()).collect::<Vec<_>>();
        let mut finds = scan(text.bytes(), &self.patterns, &wanted, || flag.check())?;
        if self.keeps {
            finds.retain(|find| find.found != Found::Mismatch);
        } else if let Some(find) = finds.iter().find(|find| find.found == Found::Mismatch) {
            return Err(lift_failure(text.bytes(), find, find.range.start, "of another type"));
        }
        let in_place = if text.is_taken() { largest(&finds, &self.lifts) } else { None };
        let mut left = text.bytes().len();
        let mut sizes = vec![0];
        let mut values = Vec::with_capacity(finds.len());
        for (index, find) in finds.into_iter().enumerate() {
            left = left - find.range.len() + NULL.len();
            let known = known(text.bytes(), &find, &self.lifts, &self.hints, flag)?;
            let size = match &known {
                Some(known) => known.payload().size(),
                None => most(&find, self.lifts.get(find.pattern).copied()),
            };
            let (memory, start) = if in_place == Some(index) {
                (usize::MAX, 0)
            } else if size < OWN_MEMORY {
                let shared = sizes.first_mut();
                let start = shared.map_or(0, |shared| {
                    mem::replace(shared, *shared + size.next_multiple_of(ALIGNMENT))
                });
                (0, start)
            } else {
                sizes.push(size);
                (sizes.len() - 1, 0)
            };
            values.push(Value { find, memory, place: start..start + size, known });
        }
        for value in values.iter_mut().filter(|value| value.memory == usize::MAX) {
            value.memory = sizes.len();
        }
        *lock(&self.state) = State { text, values, sizes, lengths: Vec::new() };
        Ok(left as f64)
    }

    fn recycle(&mut self) {
        recycle(&mut self.segments);
    }
}

const NULL: &[u8] = b"null";

/// The text that is worth being decoded where it stands. Routed experts are not: a view of all of its memory, which has
/// no other use, can be handed over to be concatenated.
fn largest(finds: &[Find], lifts: &[Lift]) -> Option<usize> {
    let is_fit = |find: &Find| {
        find.found == Found::Text { has_escapes: false }
            && IN_PLACE <= find.range.len()
            && lifts.get(find.pattern) == Some(&Lift::Base64)
    };
    let fit = finds.iter().enumerate().filter(|(_, find)| is_fit(find));
    fit.max_by_key(|(_, find)| find.range.len()).map(|(index, _)| index)
}

/// What routed experts hold, if that is what is wanted.
fn known(
    text: &[u8],
    find: &Find,
    lifts: &[Lift],
    hints: &[Hints],
    flag: &Flag,
) -> Result<Option<Known>, Failure> {
    if lifts.get(find.pattern) != Some(&Lift::Experts) {
        return Ok(None);
    }
    let came = text.get(payload_of(find)).unwrap_or_default();
    let has_escapes = find.found == Found::Text { has_escapes: true };
    let hints = hints.get(find.pattern).copied().unwrap_or_default();
    let known = Known::of_text(came, has_escapes.then(|| unescaped(came)), &hints, Some(flag));
    known.map_err(|failure| unfit_experts(failure, text, find, None))
}

/// Where a payload stands.
fn payload_of(find: &Find) -> Range<usize> {
    if find.found == Found::Object { find.range.clone() } else { inside(&find.range) }
}

/// With the pointer to them, and their place, or that in them which is wrong if that is known.
fn unfit_experts(failure: Failure, text: &[u8], find: &Find, at: Option<usize>) -> Failure {
    if !failure.is_of(Cause::Experts) {
        return failure;
    }
    let within = at.zip(failure.offset).map(|(start, offset)| start + offset as usize);
    let pointer = pointer_of(text, &find.path);
    Failure {
        message: format!("the routed experts at {pointer:?}: {}", failure.message),
        offset: Some(within.unwrap_or(find.range.start) as f64),
        pointer: Some(pointer),
        ..failure
    }
}

/// How many bytes a value becomes at most.
fn most(find: &Find, lift: Option<Lift>) -> usize {
    match find.found {
        Found::Numbers { count } => count * lift.and_then(Lift::kind).map_or(0, Kind::size),
        Found::Text { .. } => max_decoded_len(inside(&find.range).len()),
        Found::Raw => find.range.len(),
        Found::Object | Found::Mismatch => 0,
    }
}

/// Of a string, without its quotes.
fn inside(range: &Range<usize>) -> Range<usize> {
    range.start + 1..range.end - 1
}

fn lift_failure(text: &[u8], find: &Find, offset: usize, what: &str) -> Failure {
    let pointer = pointer_of(text, &find.path);
    let message = format!("the value at {pointer:?} is {what}");
    Failure {
        offset: Some(offset as f64),
        pointer: Some(pointer),
        ..Failure::new(Cause::Lift, message)
    }
}

/// Fills the memory made for what a body holds; tells whether what is left of it is ASCII.
pub struct FillBody {
    lifts: Arc<[Lift]>,
    text: Text,
    values: Vec<Value>,
    /// For their lengths.
    state: Shared,
    json: Held,
    memories: Vec<Held>,
}

impl Work for FillBody {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let text = self.text.bytes();
        let is_ascii = strip(text, &self.values, self.json.bytes_mut(), flag)?;
        let mut lengths = Vec::with_capacity(self.values.len());
        for memory in &mut self.memories {
            prepare(memory.bytes_mut());
        }
        let mut last = None;
        for Value { find, memory, place, known } in &self.values {
            if *memory == self.memories.len() {
                last = Some(lengths.len());
                lengths.push(0);
                continue;
            }
            let memory = self.memories.get_mut(*memory).map(Held::bytes_mut).unwrap_or_default();
            let place = memory.get_mut(place.clone()).unwrap_or_default();
            let len = match known {
                Some(known) => fill_experts(text, find, known, place, flag)?,
                None => fill(text, find, self.lifts.get(find.pattern).copied(), place, flag)?,
            };
            clear_rest(place, len, flag)?;
            lengths.push(len);
        }
        if let Some(index) = last {
            let len = self.decode_in_place(index, flag)?;
            if let Some(place) = lengths.get_mut(index) {
                *place = len;
            }
        }
        lock(&self.state).lengths = lengths;
        self.clear_gaps();
        Ok(f64::from(u8::from(is_ascii)))
    }

    fn recycle(&mut self) {
        self.text.joined = None;
        recycle(&mut self.text.segments);
    }
}

impl FillBody {
    /// The value of that index, to the start of the body's memory, of which nothing else is needed any more.
    fn decode_in_place(&mut self, index: usize, flag: &Flag) -> Result<usize, Failure> {
        let Some(Value { find, .. }) = self.values.get(index) else { return Ok(0) };
        // Keys may be overwritten.
        let unfit = lift_failure(self.text.bytes(), find, 0, "no base64");
        let text = inside(&find.range);
        let start = text.start;
        let mut progress = forgiving();
        let decoded = progress.decode_in_place(self.text.bytes_mut(), text, flag);
        decoded.map_err(|failure| placed(failure, unfit, |offset| start + offset))
    }

    /// What stands between small values was anybody's.
    fn clear_gaps(&mut self) {
        let Some(memory) = self.memories.first_mut() else { return };
        let memory = memory.bytes_mut();
        for Value { place, .. } in self.values.iter().filter(|value| value.memory == 0) {
            let end = place.end.next_multiple_of(ALIGNMENT).min(memory.len());
            memory.get_mut(place.end..end).unwrap_or_default().fill(0);
        }
    }
}

/// Writes the text with each value replaced by `null`; tells whether that is ASCII.
fn strip(text: &[u8], values: &[Value], out: &mut [u8], flag: &Flag) -> Result<bool, Failure> {
    prepare(out);
    let (mut from, mut to) = (0, 0);
    let mut is_ascii = true;
    let ends = values.iter().map(|value| value.find.range.clone()).map(Some).chain([None]);
    for range in ends {
        let end = range.as_ref().map_or(text.len(), |range| range.start);
        for piece in text.get(from..end).unwrap_or_default().chunks(PIECE) {
            flag.check()?;
            copy(piece, out, &mut to);
            is_ascii &= piece.is_ascii();
        }
        let Some(range) = range else { break };
        copy(NULL, out, &mut to);
        from = range.end;
    }
    Ok(is_ascii)
}

fn copy(bytes: &[u8], out: &mut [u8], at: &mut usize) {
    if let Some(place) = out.get_mut(*at..*at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
    *at += bytes.len();
}

/// Tells how many bytes they are.
fn fill_experts(
    text: &[u8],
    find: &Find,
    known: &Known,
    out: &mut [u8],
    flag: &Flag,
) -> Result<usize, Failure> {
    let range = payload_of(find);
    let came = text.get(range.clone()).unwrap_or_default();
    known.decode(came, out, flag).map_err(|failure| {
        let at = known.offset().map(|offset| range.start + offset);
        unfit_experts(failure, text, find, at)
    })?;
    Ok(out.len())
}

/// Tells how many bytes the value is.
fn fill(
    text: &[u8],
    find: &Find,
    lift: Option<Lift>,
    out: &mut [u8],
    flag: &Flag,
) -> Result<usize, Failure> {
    let value = text.get(find.range.clone()).unwrap_or_default();
    if let Some(kind) = lift.and_then(Lift::kind) {
        fill_numbers(value, kind, out, || flag.check()).map_err(|error| match error {
            NumberError::Unfit { offset } => {
                let what = "an array of numbers of which one does not fit its element type";
                lift_failure(text, find, find.range.start + offset, what)
            }
            NumberError::Stopped(failure) => failure,
        })?;
        return Ok(out.len());
    }
    if lift == Some(Lift::Raw) {
        for (to, from) in out.chunks_mut(PIECE).zip(value.chunks(PIECE)) {
            flag.check()?;
            to.copy_from_slice(from);
        }
        return Ok(value.len());
    }
    let start = find.range.start + 1;
    let characters = text.get(inside(&find.range)).unwrap_or_default();
    let has_escapes = find.found == Found::Text { has_escapes: true };
    let own = if has_escapes { unescaped(characters) } else { Vec::new() };
    let mut progress = forgiving();
    let decoded = progress
        .decode_part(if has_escapes { &own } else { characters }, out, flag)
        .and_then(|()| progress.finish(out));
    decoded.map_err(|failure| {
        let unfit = lift_failure(text, find, 0, "no base64");
        placed(failure, unfit, |offset| {
            start + if has_escapes { place_of(characters, offset) } else { offset }
        })
    })
}

fn forgiving() -> Progress {
    Progress::new(Base64Mode::Forgiving, Base64Alphabet::Standard)
}

/// Of a text that is no base64: `unfit`, and where it ends to be that in the body. Other failures stay what they are.
fn placed(failure: Failure, unfit: Failure, place: impl Fn(usize) -> usize) -> Failure {
    match failure.offset {
        Some(offset) => Failure { offset: Some(place(offset as usize) as f64), ..unfit },
        None => failure,
    }
}

fn scan_of(body: &BodyText, source: &Source) -> ScanBody {
    ScanBody {
        segments: source.drain(),
        patterns: Arc::clone(&body.patterns),
        lifts: Arc::clone(&body.lifts),
        hints: Arc::clone(&body.hints),
        keeps: body.keeps,
        state: Arc::clone(&body.state),
    }
}

fn fill_of(body: &BodyText, json: Uint8Array, memories: Vec<Uint8Array>) -> FillBody {
    let State { text, values, .. } = mem::take(&mut *lock(&body.state));
    FillBody {
        lifts: Arc::clone(&body.lifts),
        text,
        values,
        state: Arc::clone(&body.state),
        json: Held::new(json),
        memories: memories.into_iter().map(Held::new).collect(),
    }
}

/// Looks at what `source` gathered; tells how long the JSON is that is left when all is lifted.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn scan_body(
    body: &BodyText,
    source: &Source,
    stop: Option<&Stop>,
) -> AsyncTask<Job<ScanBody>> {
    launch(scan_of(body, source), stop)
}

/// The same at once.
#[napi]
pub fn scan_body_sync(body: &BodyText, source: &Source) -> Either<f64, Failure> {
    let mut work = scan_of(body, source);
    at_once(|| work.run(&Flag::default()))
}

/// Writes what is left of the body to `json`, and its values to `memories`; tells whether what is left is ASCII (1).
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn fill_body(
    body: &BodyText,
    json: Uint8Array,
    memories: Vec<Uint8Array>,
    stop: Option<&Stop>,
) -> AsyncTask<Job<FillBody>> {
    launch(fill_of(body, json, memories), stop)
}

/// The same at once.
#[napi]
pub fn fill_body_sync(
    body: &BodyText,
    json: Uint8Array,
    memories: Vec<Uint8Array>,
) -> Either<f64, Failure> {
    let mut work = fill_of(body, json, memories);
    at_once(|| work.run(&Flag::default()))
}
