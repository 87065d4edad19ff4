//! Routed experts for `src/experts`: converts arguments and calls `offloop-experts`. Functions that end in `sync` and the
//! methods of [`ExpertsTurns`] run on the JS thread, the others launch a task.

use std::mem;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{
    ArrayBuffer, AsyncTask, Either, Either3, Float64ArraySlice, Null, Uint8Array,
};
use napi_derive::napi;
use offloop_experts::{
    ConcatConfig, Dtype, ExpertsError, ExpertsPlan, Fill, Hints, PayloadFormat, SourceRange,
    TurnList,
};
use offloop_memory::recycle;

use crate::failure::{Failure, FailureCause};
use crate::lock::lock;
use crate::memory::{PinnedBuffer, PinnedSlice, View};
use crate::source::{InputBytes, InputChunk};
use crate::stop::{Flag, Stop};
use crate::task::{PoolTask, Work, at_once, launch};

/// How the bytes of a turn arrived. The numbers are indexes in [`PayloadFormat::ALL`].
#[napi]
pub enum ExpertsFormat {
    /// UTF-8 of a text: base64, `nrlre1:…` or JSON.
    Text,
    /// Such a text in one byte a character.
    Latin1,
    /// Bytes of a `.npy` file.
    File,
    /// Data of an object, in base64.
    Base64,
    /// Data of an object, in base85.
    Base85,
    /// Data of an object, not encoded.
    Raw,
}

const _: () = {
    assert!(ExpertsFormat::Text as usize == PayloadFormat::Text as usize);
    assert!(ExpertsFormat::Latin1 as usize == PayloadFormat::Latin1 as usize);
    assert!(ExpertsFormat::File as usize == PayloadFormat::File as usize);
    assert!(ExpertsFormat::Base64 as usize == PayloadFormat::Base64 as usize);
    assert!(ExpertsFormat::Base85 as usize == PayloadFormat::Base85 as usize);
    assert!(ExpertsFormat::Raw as usize == PayloadFormat::Raw as usize);
};

/// Fields for payloads that do not declare them.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct NativeHints {
    #[napi(ts_type = "number | undefined")]
    pub layers: Option<f64>,
    #[napi(ts_type = "number | undefined")]
    pub topk: Option<f64>,
    /// Index in [`Dtype::ALL`].
    #[napi(ts_type = "number | undefined")]
    pub dtype: Option<u32>,
    #[napi(ts_type = "number | undefined")]
    pub start: Option<f64>,
}

impl From<NativeHints> for Hints {
    fn from(hints: NativeHints) -> Self {
        let count = |value: Option<f64>| value.map(|value| value as usize);
        let (layers, topk, start) = (count(hints.layers), count(hints.topk), count(hints.start));
        let dtype = hints.dtype.and_then(|index| Dtype::ALL.get(index as usize).copied());
        Self { layers, topk, dtype, start }
    }
}

/// Content of a position without a row.
#[napi]
#[derive(Clone, Copy)]
pub enum ExpertsFill {
    Throw,
    Repeat,
    Value,
}

/// Resolved options of `concatExperts`.
#[napi(object, object_to_js = false)]
pub struct NativeConcatConfig {
    pub tokens: f64,
    pub gaps: ExpertsFill,
    pub gaps_value: f64,
    pub last_row: ExpertsFill,
    pub last_row_value: f64,
    pub later_wins: bool,
    pub widens: bool,
}

impl From<NativeConcatConfig> for ConcatConfig {
    fn from(config: NativeConcatConfig) -> Self {
        let fill = |fill, value: f64| match fill {
            ExpertsFill::Throw => Fill::Throw,
            ExpertsFill::Repeat => Fill::Repeat,
            ExpertsFill::Value => Fill::Value(value as i64),
        };
        Self {
            tokens: config.tokens as usize,
            gaps: fill(config.gaps, config.gaps_value),
            last_row: fill(config.last_row, config.last_row_value),
            later_wins: config.later_wins,
            widens: config.widens,
        }
    }
}

/// Size, shape, dtype and start of a result.
#[napi(object, object_from_js = false)]
pub struct ExpertsLayout {
    pub size: f64,
    pub rows: f64,
    pub layers: f64,
    pub topk: f64,
    pub dtype: String,
    pub start: f64,
}

impl From<&ExpertsPlan> for ExpertsLayout {
    fn from(plan: &ExpertsPlan) -> Self {
        Self {
            size: plan.size as f64,
            rows: plan.shape.rows as f64,
            layers: plan.shape.layers as f64,
            topk: plan.shape.topk as f64,
            dtype: plan.dtype.to_string(),
            start: plan.start as f64,
        }
    }
}

impl From<ExpertsError<Self>> for Failure {
    fn from(error: ExpertsError<Self>) -> Self {
        let message = error.to_string();
        match error {
            ExpertsError::Payload { turn, offset, .. } => Self {
                turn: turn.map(|turn| turn as f64),
                offset: offset.map(|offset| offset as f64),
                ..Self::new(FailureCause::Experts, message)
            },
            ExpertsError::Plan(error) => error.into(),
            ExpertsError::NoTurn | ExpertsError::NoPlan => {
                Self::new(FailureCause::Internal, message)
            }
            ExpertsError::Stopped(failure) => failure,
        }
    }
}

/// Turns and the segments that hold their bytes.
#[derive(Default)]
struct GatheredTurns {
    list: TurnList,
    segments: Vec<InputChunk>,
}

/// The turns of one call, on their way through one task, or through two if one must scan them first.
#[napi]
pub struct ExpertsTurns(Arc<Mutex<GatheredTurns>>);

#[napi]
impl ExpertsTurns {
    /// Takes nine numbers for each turn; NaN stands for a number that is absent.
    ///
    /// | index | number |
    /// |---|---|
    /// | 0 | `ExpertsFormat`; NaN for a turn without experts |
    /// | 1 | dimensions of the declared shape |
    /// | 2, 3, 4 | the first three dimensions |
    /// | 5 | declared dtype: index in [`Dtype::ALL`] |
    /// | 6 | declared start |
    /// | 7 | start that the caller gave |
    /// | 8 | tokens of the sample when the turn ended |
    #[napi(constructor)]
    #[must_use]
    pub fn new(hints: NativeHints, numbers: Float64ArraySlice<'_>, is_chain: bool) -> Self {
        let list = TurnList::new(&numbers, hints.into(), is_chain);
        Self(Arc::new(Mutex::new(GatheredTurns { list, segments: Vec::new() })))
    }

    /// Notes the bytes of a turn: the last `size` that `source` gathered.
    #[napi]
    pub fn put(&self, index: u32, source: &InputBytes, size: f64) {
        lock(&self.0).list.put(index as usize, latest(source, size as usize));
    }

    /// Resolves turns whose bytes the caller still has, as far as their headers allow. `bytes` has one item for each turn.
    #[napi]
    pub fn announce(
        &self,
        #[napi(ts_arg_type = "(Uint8Array | null)[]")] bytes: Vec<Option<View>>,
    ) -> Option<Failure> {
        let views = bytes.iter().map(|view| view.as_ref().and_then(View::bytes));
        match at_once(|| Ok(lock(&self.0).list.resolve_heads(views)?)) {
            Either::A(()) => None,
            Either::B(failure) => Some(failure),
        }
    }

    /// Takes memory from the caller, one item for each turn: its first `lengths` bytes. `keeper` keeps all of it from being
    /// collected.
    #[napi]
    pub fn take(
        &self,
        source: &InputBytes,
        keeper: Uint8Array,
        memories: Vec<Option<ArrayBuffer<'_>>>,
        lengths: Vec<f64>,
    ) {
        let keeper = Arc::new(PinnedBuffer::new(keeper));
        let list = &mut lock(&self.0).list;
        for (index, (memory, len)) in memories.iter().zip(lengths).enumerate() {
            let memory = memory.as_ref().and_then(|memory| memory.get(..len as usize));
            let Some(memory) = memory.filter(|_| list.has_experts(index)) else { continue };
            source.lend(PinnedSlice::new(memory, &keeper));
            list.put(index, latest(source, memory.len()));
        }
    }

    /// Plans where the rows go: by `config`, or unchanged for a payload that is decoded alone. Returns null if a task must
    /// scan the turns first.
    #[napi]
    pub fn plan(
        &self,
        source: &InputBytes,
        config: Option<NativeConcatConfig>,
    ) -> Either3<ExpertsLayout, Failure, Null> {
        let config = config.map(ConcatConfig::from);
        let planned = at_once(|| {
            let list = &mut lock(&self.0).list;
            let plan = source.look(|segments| list.plan(segments, config.as_ref()))?;
            Ok(plan.map(ExpertsLayout::from))
        });
        match planned {
            Either::A(Some(layout)) => Either3::A(layout),
            Either::A(None) => Either3::C(Null),
            Either::B(failure) => Either3::B(failure),
        }
    }

    /// Takes the turns and what `source` gathered for them.
    fn drain(&self, source: &InputBytes) -> GatheredTurns {
        let mut gathered = mem::take(&mut *lock(&self.0));
        gathered.segments.append(&mut source.drain());
        gathered
    }

    /// Drops everything that no task has taken.
    #[napi]
    pub fn clear(&self) {
        drop(mem::take(&mut *lock(&self.0)));
    }
}

fn latest(source: &InputBytes, size: usize) -> SourceRange {
    let (segment, range) = source.latest(size);
    SourceRange { segment, range }
}

/// Scans the turns that headers did not resolve.
pub struct ScanExperts {
    gathered: GatheredTurns,
    /// Receives the turns when the scan has succeeded.
    turns: Arc<Mutex<GatheredTurns>>,
}

impl Work for ScanExperts {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let GatheredTurns { list, segments } = &mut self.gathered;
        list.resolve(segments, || flag.check())?;
        *lock(&self.turns) = mem::take(&mut self.gathered);
        Ok(0.0)
    }

    fn recycle(&mut self) {
        recycle(&mut self.gathered.segments);
    }
}

/// Decodes the turns to their places in the result.
pub struct FillExperts {
    gathered: GatheredTurns,
    out: PinnedBuffer,
}

impl Work for FillExperts {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let out = self.out.result();
        self.gathered.list.fill(&self.gathered.segments, out, || flag.check())?;
        Ok(out.len() as f64)
    }

    fn recycle(&mut self) {
        recycle(&mut self.gathered.segments);
        self.gathered.list.clear();
    }
}

fn scan_of(turns: &ExpertsTurns, source: &InputBytes) -> ScanExperts {
    ScanExperts { gathered: turns.drain(source), turns: Arc::clone(&turns.0) }
}

fn fill_of(turns: &ExpertsTurns, source: &InputBytes, out: PinnedBuffer) -> FillExperts {
    FillExperts { gathered: turns.drain(source), out }
}

/// Scans turns all of whose bytes `source` gathered, in a task, so that they can be planned.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn scan_experts(
    turns: &ExpertsTurns,
    source: &InputBytes,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<ScanExperts>> {
    launch(scan_of(turns, source), stop)
}

/// Scans turns on the JS thread.
#[napi]
pub fn scan_experts_sync(turns: &ExpertsTurns, source: &InputBytes) -> Either<f64, Failure> {
    let mut work = scan_of(turns, source);
    at_once(|| work.run(&Flag::default()))
}

/// Decodes planned turns in a task to `out`, which has the size of the plan.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn fill_experts(
    turns: &ExpertsTurns,
    source: &InputBytes,
    #[napi(ts_arg_type = "Uint8Array")] out: PinnedBuffer,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<FillExperts>> {
    launch(fill_of(turns, source, out), stop)
}

/// Decodes planned turns on the JS thread to `out`, which has the size of the plan.
#[napi]
pub fn fill_experts_sync(
    turns: &ExpertsTurns,
    source: &InputBytes,
    #[napi(ts_arg_type = "Uint8Array")] out: PinnedBuffer,
) -> Either<f64, Failure> {
    let mut work = fill_of(turns, source, out);
    at_once(|| work.run(&Flag::default()))
}
