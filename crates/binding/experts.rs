use std::mem;
use std::ops::Range;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{
    ArrayBuffer, AsyncTask, Either, Either3, Float64ArraySlice, Null, Uint8Array,
};
use napi_derive::napi;
use offloop_base64::{Alphabet, Mode, decoded_len, most_decoded};
use offloop_experts::{
    Base85Reader, Bytes, Data, Dtype, Encoding, Fill, Hints, Payload, PayloadError, Plan, Rules,
    Run, Shape, Told, Turn, Wire, base85_len, fill, head_size, is_object, object, payload, place,
    plan, text, whole,
};

use crate::failure::{Cause, Failure};
use crate::lock::lock;
use crate::memory::{Held, Lent, View};
use crate::result::prepare;
use crate::source::{Segment, Source, recycle};
use crate::stop::{Flag, Stop};
use crate::task::{Job, Work, at_once, launch};

/// What the bytes of a payload are.
#[napi]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertsForm {
    /// UTF-8 of a text that came alone.
    Text,
    /// The same in one byte a character.
    Latin1,
    /// Bytes that came alone.
    File,
    /// The data of an object.
    Base64,
    Base85,
    Raw,
}

impl ExpertsForm {
    fn numbered(number: f64) -> Option<Self> {
        use ExpertsForm::{Base64, Base85, File, Latin1, Raw, Text};
        [Text, Latin1, File, Base64, Base85, Raw].get(number as usize).copied()
    }

    fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Latin1)
    }
}

/// What elements are.
#[napi]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertsDtype {
    Uint8,
    Int8,
    Uint16,
    Int16,
    Int32,
}

impl From<ExpertsDtype> for Dtype {
    fn from(dtype: ExpertsDtype) -> Self {
        match dtype {
            ExpertsDtype::Uint8 => Self::Uint8,
            ExpertsDtype::Int8 => Self::Int8,
            ExpertsDtype::Uint16 => Self::Uint16,
            ExpertsDtype::Int16 => Self::Int16,
            ExpertsDtype::Int32 => Self::Int32,
        }
    }
}

impl From<Dtype> for ExpertsDtype {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::Uint8 => Self::Uint8,
            Dtype::Int8 => Self::Int8,
            Dtype::Uint16 => Self::Uint16,
            Dtype::Int16 => Self::Int16,
            Dtype::Int32 => Self::Int32,
        }
    }
}

/// What the caller knows of payloads that do not tell it.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct ExpertsHints {
    #[napi(ts_type = "number | undefined")]
    pub layers: Option<f64>,
    #[napi(ts_type = "number | undefined")]
    pub topk: Option<f64>,
    #[napi(ts_type = "ExpertsDtype | undefined")]
    pub dtype: Option<ExpertsDtype>,
    #[napi(ts_type = "number | undefined")]
    pub start: Option<f64>,
}

impl From<ExpertsHints> for Hints {
    fn from(hints: ExpertsHints) -> Self {
        let count = |value: Option<f64>| value.map(|value| value as usize);
        let (layers, topk, start) = (count(hints.layers), count(hints.topk), count(hints.start));
        Self { layers, topk, dtype: hints.dtype.map(Dtype::from), start }
    }
}

/// What stands where no turn has rows.
#[napi]
#[derive(Clone, Copy)]
pub enum ExpertsFill {
    Throw,
    Repeat,
    Value,
}

/// How turns become one sample.
#[napi(object, object_to_js = false)]
pub struct ExpertsRules {
    pub tokens: f64,
    pub gaps: ExpertsFill,
    pub gaps_value: f64,
    pub last_row: ExpertsFill,
    pub last_row_value: f64,
    pub later_wins: bool,
    pub widens: bool,
}

impl From<ExpertsRules> for Rules {
    fn from(rules: ExpertsRules) -> Self {
        let fill = |fill, value: f64| match fill {
            ExpertsFill::Throw => Fill::Throw,
            ExpertsFill::Repeat => Fill::Repeat,
            ExpertsFill::Value => Fill::Value(value as i64),
        };
        Self {
            tokens: rules.tokens as usize,
            gaps: fill(rules.gaps, rules.gaps_value),
            last_row: fill(rules.last_row, rules.last_row_value),
            later_wins: rules.later_wins,
            widens: rules.widens,
        }
    }
}

/// A payload that is known well enough to be decoded.
pub struct Known {
    /// The text that it stands in, where that is not as it came.
    own: Option<Vec<u8>>,
    wire: Wire,
    payload: Payload,
}

impl Known {
    /// A text, or the JSON of an object. `own` is what it stands in, where that is not as it came. None where only a look
    /// at all of it tells what it holds, for which there must be a flag.
    pub fn of_text(
        came: &[u8],
        own: Option<Vec<u8>>,
        hints: &Hints,
        look: Option<&Flag>,
    ) -> Result<Option<Self>, Failure> {
        let all = own.as_deref().unwrap_or(came);
        if !is_object(all) {
            let wire = text(all)?;
            return Self::of_wire(came, own, wire, hints, look);
        }
        let Some(flag) = look else { return Ok(None) };
        let wire = object(all, || flag.check())?;
        Self::of_wire(came, own, wire, hints, look)
    }

    fn of_wire(
        came: &[u8],
        own: Option<Vec<u8>>,
        wire: Wire,
        hints: &Hints,
        look: Option<&Flag>,
    ) -> Result<Option<Self>, Failure> {
        let data = wire.data.of(own.as_deref().unwrap_or(came));
        let head = if wire.told.shape.is_none() { head_of(data, &wire)? } else { Vec::new() };
        let judge = |size, is_exact| {
            payload(Bytes { head: &head, size, is_exact }, &wire.told, hints, wire.implied)
        };
        let payload = match wire.encoding {
            Encoding::Base85 => judge(base85_len(data.len()), true)?,
            Encoding::Raw => judge(data.len(), true)?,
            Encoding::Base64 => match (judge(most_decoded(data), false)?, look) {
                (None, Some(flag)) => judge(decoded_len(data, || flag.check())?, true)?,
                (payload, _) => payload,
            },
        };
        Ok(payload.map(|payload| Self { own, wire, payload }))
    }

    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// All rows, as they are. `out` has the payload's size.
    pub fn decode(&self, came: &[u8], out: &mut [u8], flag: &Flag) -> Result<(), Failure> {
        let all = Run { from: 0, to: 0, rows: self.payload.shape.rows };
        self.place(came, &[all], self.payload.dtype, out, flag)
    }

    /// Puts the rows that `runs` name to their places in `out`. `came` is what it came in.
    fn place(
        &self,
        came: &[u8],
        runs: &[Run],
        dtype: Dtype,
        out: &mut [u8],
        flag: &Flag,
    ) -> Result<(), Failure> {
        let mut reader = Reader::new(self.data(came), self.wire.encoding);
        place(|out| reader.read(out), &self.payload, runs, dtype, out, || flag.check())
    }

    fn data<'a>(&'a self, came: &'a [u8]) -> &'a [u8] {
        self.wire.data.of(self.own.as_deref().unwrap_or(came))
    }

    /// Where the data begins in what it came in, if that is known.
    pub fn offset(&self) -> Option<usize> {
        match (&self.own, &self.wire.data) {
            (None, Data::At(range)) => Some(range.start),
            _ => None,
        }
    }
}

/// The first bytes of a payload, as many as are needed to tell what it holds.
fn head_of(data: &[u8], wire: &Wire) -> Result<Vec<u8>, Failure> {
    let read = |size: usize| -> Result<Vec<u8>, Failure> {
        let mut head = vec![0; size];
        let len = Reader::new(data, wire.encoding).read(&mut head)?;
        head.truncate(len);
        Ok(head)
    };
    match head_size(&read(12)?)? {
        0 => Ok(Vec::new()),
        size => read(size),
    }
}

/// The bytes of a payload, whatever they are written in.
enum Reader<'a> {
    Base64(offloop_base64::Reader<'a>),
    Base85(Base85Reader<'a>),
    Raw(&'a [u8]),
}

impl<'a> Reader<'a> {
    fn new(data: &'a [u8], encoding: Encoding) -> Self {
        match encoding {
            Encoding::Base64 => {
                let (mode, alphabet) = (Mode::Forgiving, Alphabet::Standard);
                Self::Base64(offloop_base64::Reader::new(data, mode, alphabet))
            }
            Encoding::Base85 => Self::Base85(Base85Reader::new(data)),
            Encoding::Raw => Self::Raw(data),
        }
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        match self {
            Self::Base64(reader) => reader.read(out).map_err(|error| {
                let offset = error.offset().map(|offset| offset as f64);
                Failure { offset, ..Failure::new(Cause::Experts, error.to_string()) }
            }),
            Self::Base85(reader) => reader.read(out).map_err(|error| {
                let offset = Some(error.offset() as f64);
                Failure { offset, ..Failure::new(Cause::Experts, error.to_string()) }
            }),
            Self::Raw(rest) => {
                let len = out.len().min(rest.len());
                let (now, later) = rest.split_at(len);
                out.get_mut(..len).unwrap_or_default().copy_from_slice(now);
                *rest = later;
                Ok(len)
            }
        }
    }
}

/// Turns on their way through a task, or two where one must look at what they are first.
#[napi]
pub struct ExpertsTurns {
    hints: Hints,
    state: Arc<Mutex<State>>,
}

/// What came with the bytes of a turn, as numbers: objects would cost more than all else. NaN is what was not told.
type Numbers = [f64; 9];

#[derive(Default)]
struct State {
    /// Not one payload that came alone.
    is_chain: bool,
    segments: Vec<Segment>,
    turns: Vec<Option<Given>>,
    plan: Option<Plan>,
}

struct Given {
    /// None as long as the caller has its bytes.
    place: Option<Place>,
    form: ExpertsForm,
    told: Told,
    start: Option<f64>,
    tokens: Option<f64>,
    known: Option<Known>,
}

impl Given {
    /// None where the form is: a turn without experts.
    fn new(numbers: &Numbers) -> Option<Self> {
        let &[form, rank, rows, layers, topk, dtype, told_start, start, tokens] = numbers;
        let told = |number: f64| (!number.is_nan()).then_some(number);
        // Of another number of dimensions it is no shape, whatever they are.
        let shape = if (rank as usize) == 3 { vec![rows, layers, topk] } else { Vec::new() };
        let dtype = told(dtype).and_then(|index| Dtype::ALL.get(index as usize));
        let told_start = told(told_start);
        Some(Self {
            place: None,
            form: ExpertsForm::numbered(told(form)?)?,
            told: Told {
                shape: told(rank).map(|_| shape),
                dtype: dtype.copied(),
                start: told_start,
            },
            start: told(start),
            tokens: told(tokens),
            known: None,
        })
    }
}

/// Where the bytes of a turn are: the index of their segment, and their place in that.
type Place = (usize, Range<usize>);

fn bytes_at<'a>(place: Option<&Place>, segments: &'a [Segment]) -> Option<&'a [u8]> {
    let (index, range) = place?;
    let segment = segments.get(*index).map(Segment::bytes).unwrap_or_default();
    // No bytes may have no segment.
    Some(segment.get(range.clone()).unwrap_or_default())
}

impl Given {
    /// What `came` holds. With a flag, whatever that takes.
    fn know(&mut self, came: &[u8], hints: &Hints, look: Option<&Flag>) -> Result<(), Failure> {
        if self.form.is_text() {
            let is_latin1 = look.is_some() && self.form == ExpertsForm::Latin1 && !came.is_ascii();
            let own = is_latin1.then(|| came.iter().copied().map(char::from).collect::<String>());
            self.known = Known::of_text(came, own.map(String::into_bytes), hints, look)?;
            return Ok(());
        }
        let encoding = match self.form {
            ExpertsForm::Base64 => Encoding::Base64,
            ExpertsForm::Base85 => Encoding::Base85,
            _ => Encoding::Raw,
        };
        let wire = Wire {
            data: Data::At(0..came.len()),
            encoding,
            told: self.told.clone(),
            implied: (self.form != ExpertsForm::File).then(|| encoding.implied()),
        };
        self.known = Known::of_wire(came, None, wire, hints, look)?;
        Ok(())
    }

    /// None as long as it is not known.
    fn turn(&self) -> Result<Option<Turn>, Failure> {
        let Some(Known { payload, .. }) = self.known else { return Ok(None) };
        let start = match self.start {
            Some(start) => whole(start).ok_or(PayloadError::Start)?,
            None => payload.start,
        };
        let tokens = match self.tokens {
            Some(tokens) => Some(whole(tokens).ok_or(PayloadError::Tokens)?),
            None => None,
        };
        Ok(Some(Turn { payload, start, tokens }))
    }
}

impl State {
    fn know(
        &mut self,
        segments: &[Segment],
        hints: &Hints,
        look: Option<&Flag>,
    ) -> Result<(), Failure> {
        let bytes = |given: &Option<Given>| bytes_at(given.as_ref()?.place.as_ref(), segments);
        let turns = self.turns.iter_mut().map(|given| {
            let bytes = bytes(given);
            (given, bytes)
        });
        know(turns, self.is_chain, hints, look)
    }

    fn index(&self, turn: usize) -> Option<usize> {
        self.is_chain.then_some(turn)
    }

    /// None where turns are not known yet.
    fn turns(&self) -> Result<Option<Vec<Option<Turn>>>, Failure> {
        let mut turns = Vec::with_capacity(self.turns.len());
        for (index, given) in self.turns.iter().enumerate() {
            let Some(given) = given else {
                turns.push(None);
                continue;
            };
            let turn = given.turn().map_err(|failure| of_turn(failure, self.index(index)))?;
            if turn.is_none() {
                return Ok(None);
            }
            turns.push(turn);
        }
        Ok(Some(turns))
    }

    fn plan(
        &mut self,
        rules: Option<ExpertsRules>,
        hints: &Hints,
        gathered: &[Segment],
    ) -> Result<Option<Planned>, Failure> {
        self.know(gathered, hints, None)?;
        let Some(turns) = self.turns()? else { return Ok(None) };
        let (plan, start) = match rules {
            Some(rules) => {
                let shape = |(layers, topk)| Shape { rows: 0, layers, topk };
                let empty = hints.layers.zip(hints.topk).map(shape);
                (plan(&turns, &rules.into(), empty.map(|shape| (shape, Dtype::Uint8)))?, 0)
            }
            None => match turns.first() {
                Some(Some(turn)) => (Plan::whole(&turn.payload), turn.start),
                _ => return Err(Failure::new(Cause::Internal, "nothing was given to decode")),
            },
        };
        let planned = Planned::new(&plan, start);
        self.plan = Some(plan);
        Ok(Some(planned))
    }
}

/// Looks at the turns that are not known yet and whose bytes are there; with a flag, at all of them.
fn know<'a>(
    turns: impl Iterator<Item = (&'a mut Option<Given>, Option<&'a [u8]>)>,
    is_chain: bool,
    hints: &Hints,
    look: Option<&Flag>,
) -> Result<(), Failure> {
    for (index, (given, bytes)) in turns.enumerate() {
        let (Some(given), Some(came)) = (given, bytes) else { continue };
        if given.known.is_none() {
            let known = given.know(came, hints, look);
            known.map_err(|failure| of_turn(failure, is_chain.then_some(index)))?;
        }
    }
    Ok(())
}

/// Of a turn of a chain, or of a payload that came alone.
fn of_turn(failure: Failure, turn: Option<usize>) -> Failure {
    if !failure.is_of(Cause::Experts) {
        return failure;
    }
    let message = match turn {
        Some(turn) => format!("turn {turn}: {}", failure.message),
        None => format!("routed experts: {}", failure.message),
    };
    Failure { message, turn: turn.map(|turn| turn as f64), ..failure }
}

/// What comes out, and how many bytes that is.
#[napi(object, object_from_js = false)]
pub struct Planned {
    pub size: f64,
    pub rows: f64,
    pub layers: f64,
    pub topk: f64,
    pub dtype: ExpertsDtype,
    pub start: f64,
}

impl Planned {
    fn new(plan: &Plan, start: usize) -> Self {
        let Shape { rows, layers, topk } = plan.shape;
        Self {
            size: plan.size as f64,
            rows: rows as f64,
            layers: layers as f64,
            topk: topk as f64,
            dtype: plan.dtype.into(),
            start: start as f64,
        }
    }
}

#[napi]
impl ExpertsTurns {
    /// What came with each turn: nine numbers, NaN where nothing did. The form (none of a turn without experts); of its
    /// shape, how many dimensions it has and the first three; its dtype, its start; and by the caller, its start, and the
    /// sample's tokens at its end.
    #[napi(constructor)]
    #[must_use]
    pub fn new(hints: ExpertsHints, told: Float64ArraySlice<'_>, is_chain: bool) -> Self {
        let turns = told.as_chunks().0.iter().map(Given::new).collect();
        let state = State { is_chain, turns, ..State::default() };
        Self { hints: hints.into(), state: Arc::new(Mutex::new(state)) }
    }

    /// The bytes of a turn: the last `size` that `source` gathered.
    #[napi]
    pub fn put(&self, index: u32, source: &Source, size: f64) {
        if let Some(Some(given)) = lock(&self.state).turns.get_mut(index as usize) {
            given.place = Some(source.latest(size as usize));
        }
    }

    /// Bytes that come later, each in the place of its turn: what they hold, as far as their beginning tells it.
    #[napi]
    pub fn announce(
        &self,
        #[napi(ts_arg_type = "(Uint8Array | null)[]")] bytes: Vec<Option<View>>,
    ) -> Option<Failure> {
        let State { is_chain, turns, .. } = &mut *lock(&self.state);
        let known = at_once(|| {
            let views = bytes.iter().map(|view| view.as_ref().and_then(View::bytes));
            know(turns.iter_mut().zip(views), *is_chain, &self.hints, None)
        });
        match known {
            Either::A(()) => None,
            Either::B(failure) => Some(failure),
        }
    }

    /// Memory that was taken from the caller, each in the place of its turn. `keeper` keeps all of it from being collected.
    #[napi]
    pub fn take(
        &self,
        source: &Source,
        keeper: Uint8Array,
        memories: Vec<Option<ArrayBuffer<'_>>>,
    ) {
        let keeper = Arc::new(Held::new(keeper));
        let mut state = lock(&self.state);
        for (given, memory) in state.turns.iter_mut().zip(memories) {
            let (Some(given), Some(memory)) = (given, memory) else { continue };
            source.lend(Lent::new(&memory, &keeper));
            given.place = Some(source.latest(memory.len()));
        }
    }

    /// Where all of them go, by `rules`; or the one that there is, as it is. Null where a task must look at them first.
    #[napi]
    pub fn plan(
        &self,
        source: &Source,
        rules: Option<ExpertsRules>,
    ) -> Either3<Planned, Failure, Null> {
        let mut state = lock(&self.state);
        let planned = at_once(|| source.look(|gathered| state.plan(rules, &self.hints, gathered)));
        match planned {
            Either::A(Some(planned)) => Either3::A(planned),
            Either::A(None) => Either3::C(Null),
            Either::B(failure) => Either3::B(failure),
        }
    }

    /// Everything, with what `source` gathered for it.
    fn everything(&self, source: &Source) -> State {
        let mut state = mem::take(&mut *lock(&self.state));
        state.segments.append(&mut source.drain());
        state
    }

    /// Gives everything back that no task has.
    #[napi]
    pub fn clear(&self) {
        drop(mem::take(&mut *lock(&self.state)));
    }
}

/// Looks at all of the turns that are not known yet.
pub struct LookAtExperts {
    hints: Hints,
    state: State,
    /// Where they go back to.
    shared: Arc<Mutex<State>>,
}

impl Work for LookAtExperts {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let segments = mem::take(&mut self.state.segments);
        let known = self.state.know(&segments, &self.hints, Some(flag));
        self.state.segments = segments;
        known?;
        *lock(&self.shared) = mem::take(&mut self.state);
        Ok(0.0)
    }

    fn recycle(&mut self) {
        recycle(&mut self.state.segments);
    }
}

/// Decodes the turns that were planned to their places in `out`.
pub struct FillExperts {
    state: State,
    out: Held,
}

impl Work for FillExperts {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let State { is_chain, segments, turns, plan: Some(plan) } = &self.state else {
            return Err(Failure::new(Cause::Internal, "nothing was planned"));
        };
        let out = self.out.bytes_mut();
        prepare(out);
        for (index, (given, runs)) in turns.iter().zip(&plan.runs).enumerate() {
            let Some(given @ Given { known: Some(known), .. }) = given else { continue };
            let came = bytes_at(given.place.as_ref(), segments).unwrap_or_default();
            let placed = known.place(came, runs, plan.dtype, out, flag);
            placed.map_err(|failure| {
                let offset = known.offset().zip(failure.offset);
                let offset = offset.map(|(start, offset)| start as f64 + offset);
                of_turn(Failure { offset, ..failure }, is_chain.then_some(index))
            })?;
        }
        fill(plan, out, || flag.check())?;
        Ok(out.len() as f64)
    }

    fn recycle(&mut self) {
        recycle(&mut self.state.segments);
        self.state.turns.clear();
    }
}

fn look_at(turns: &ExpertsTurns, source: &Source) -> LookAtExperts {
    let state = turns.everything(source);
    LookAtExperts { hints: turns.hints, state, shared: Arc::clone(&turns.state) }
}

fn fill_of(turns: &ExpertsTurns, source: &Source, out: Uint8Array) -> FillExperts {
    FillExperts { state: turns.everything(source), out: Held::new(out) }
}

/// Looks at turns all of whose bytes `source` gathered, so that they can be planned.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn look_at_experts(
    turns: &ExpertsTurns,
    source: &Source,
    stop: Option<&Stop>,
) -> AsyncTask<Job<LookAtExperts>> {
    launch(look_at(turns, source), stop)
}

/// The same at once.
#[napi]
pub fn look_at_experts_sync(turns: &ExpertsTurns, source: &Source) -> Either<f64, Failure> {
    let mut work = look_at(turns, source);
    at_once(|| work.run(&Flag::default()))
}

/// Decodes turns that were planned to `out`, which has the size that the plan told.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn fill_experts(
    turns: &ExpertsTurns,
    source: &Source,
    out: Uint8Array,
    stop: Option<&Stop>,
) -> AsyncTask<Job<FillExperts>> {
    launch(fill_of(turns, source, out), stop)
}

/// The same at once.
#[napi]
pub fn fill_experts_sync(
    turns: &ExpertsTurns,
    source: &Source,
    out: Uint8Array,
) -> Either<f64, Failure> {
    let mut work = fill_of(turns, source, out);
    at_once(|| work.run(&Flag::default()))
}
