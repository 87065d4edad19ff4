//! Glue of `parse` and `split`: two tasks take a body apart, and the JS thread makes memory between them.
//!
//! `src/parse/parse.ts` calls it: [`scan_body`] resolves to a [`ScannedBody`] with the plan, [`fill_body`] to the
//! lengths.

use std::cell::RefCell;
use std::mem;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{AsyncTask, Either};
use napi::{Env, Error, JsString, Status};
use napi_derive::napi;
use offloop_body::{
    BodyError, BodyPlan, EventBytes, FillTarget, LiftCause, LiftConfig, LiftError, LiftKind,
    PlanSource, PlannedText, RestRules, RestText, TextWidth,
};
use offloop_experts::Hints;

use crate::experts::NativeHints;
use crate::failure::{Failure, FailureCause};
use crate::lock::lock;
use crate::memory::{PinnedBuffer, RECYCLER, acquire};
use crate::source::{InputBytes, JoinedInput};
use crate::stop::{Flag, Stop};
use crate::task::{PoolTask, Work, at_once, launch};

/// Compiled `lift` option.
#[napi]
pub struct LiftPointers {
    config: Arc<LiftConfig>,
    wrong: Option<WrongPointer>,
}

/// Not a valid JSON Pointer.
#[napi(object, object_from_js = false)]
#[derive(Clone)]
pub struct WrongPointer {
    /// Its index among the pointers of the option.
    pub index: u32,
    pub reason: String,
}

/// Rules for the values that are not lifted: see `RestRules`. Infinity stands for no limit.
#[napi(object, object_to_js = false)]
pub struct NativeRestRules {
    pub keeps_mismatches: bool,
    pub longest_string: f64,
    pub longest_rest: f64,
}

impl From<NativeRestRules> for RestRules {
    fn from(rules: NativeRestRules) -> Self {
        Self {
            keeps_mismatches: rules.keeps_mismatches,
            longest_string: rules.longest_string as usize,
            longest_rest: rules.longest_rest as usize,
        }
    }
}

impl LiftPointers {
    pub fn config(&self) -> Arc<LiftConfig> {
        Arc::clone(&self.config)
    }
}

#[napi]
impl LiftPointers {
    /// Compiles the pointers. `kinds` and `hints` belong to the pointer of the same index.
    #[napi(constructor)]
    pub fn new(
        pointers: Vec<String>,
        kinds: Vec<String>,
        #[napi(ts_arg_type = "(NativeHints | null)[]")] hints: Vec<Option<NativeHints>>,
        rules: NativeRestRules,
    ) -> napi::Result<Self> {
        let pointers: Vec<_> = pointers.into_iter().map(String::into_bytes).collect();
        let hints = hints.into_iter().map(|hints| hints.map(Hints::from).unwrap_or_default());
        let kinds = kinds.iter().zip(hints).map(|(name, hints)| LiftKind::named(name, hints));
        let kinds = kinds.collect::<Option<Vec<_>>>();
        let kinds = kinds.ok_or_else(|| Error::new(Status::InvalidArg, "an unknown lift"))?;
        Ok(match LiftConfig::new(&pointers, kinds, rules.into()) {
            Ok(config) => Self { config: Arc::new(config), wrong: None },
            Err((index, error)) => {
                let wrong = WrongPointer { index: index as u32, reason: error.to_string() };
                Self { config: Arc::default(), wrong: Some(wrong) }
            }
        })
    }

    /// The first invalid pointer, if there is one. No value matches then.
    #[napi(getter)]
    #[must_use]
    pub fn wrong_pointer(&self) -> Option<WrongPointer> {
        self.wrong.clone()
    }
}

/// A scanned body on its way to the second task.
#[napi]
#[derive(Default)]
pub struct ScannedBody {
    plan_json: RefCell<String>,
    parts: RefCell<Option<(JoinedInput, BodyPlan)>>,
    rest: SharedRest,
}

/// The rest of a body that becomes a string: `None` before it is written and after it is taken.
type SharedRest = Arc<Mutex<Option<RestText>>>;

/// Makes a string of V8.
fn string_of<'env>(rest: &RestText, env: &'env Env) -> napi::Result<JsString<'env>> {
    match rest.width() {
        TextWidth::One => env.create_string_latin1(rest.bytes()),
        // SAFETY: any two bytes are a valid `u16`. A block begins at a page, so nothing is left on either side.
        TextWidth::Two => env.create_string_utf16(unsafe { rest.bytes().align_to::<u16>() }.1),
    }
}

#[napi]
impl ScannedBody {
    /// Returns the plan as JSON: see `BodyPlan::describe`. A second call returns an empty text.
    #[napi]
    #[must_use]
    pub fn take_plan(&self) -> String {
        self.plan_json.take()
    }

    /// Returns the rest of the body that the second task has written; null where a string cannot be that long.
    #[napi]
    pub fn take_rest<'env>(&self, env: &'env Env) -> Option<JsString<'env>> {
        let rest = lock(&self.rest).take();
        rest.and_then(|rest| string_of(&rest, env).ok())
    }

    /// Releases the memory of the body, unless the second task has it.
    #[napi]
    pub fn clear(&self) {
        drop(self.parts.take());
        drop(lock(&self.rest).take());
    }
}

/// Plans the lifts of a body, or of the data of an event.
pub struct ScanBody {
    body: JoinedInput,
    event: Option<EventBytes>,
    config: Arc<LiftConfig>,
}

impl ScanBody {
    fn new(lifts: &LiftPointers, source: &InputBytes) -> Self {
        let body = JoinedInput::new(source.drain());
        Self { body, event: source.take_event(), config: lifts.config() }
    }
}

impl Work for ScanBody {
    type Done = ScannedBody;

    fn run(&mut self, flag: &Flag) -> Result<ScannedBody, Failure> {
        self.body.join(&RECYCLER, || flag.check())?;
        flag.check()?;
        let is_ours = self.body.is_taken();
        let source = PlanSource { config: &self.config, event: self.event.take(), is_ours };
        let PlannedText { plan, description, part } =
            source.plan(self.body.bytes_mut(), || flag.check())?;
        self.body.cut(part);
        let body = mem::take(&mut self.body);
        Ok(ScannedBody {
            plan_json: RefCell::new(description),
            parts: RefCell::new(Some((body, plan))),
            rest: SharedRest::default(),
        })
    }

    fn recycle(&mut self) {
        self.body.recycle();
    }
}

/// Fills the memory that a plan asks for.
pub struct FillBody {
    body: JoinedInput,
    plan: BodyPlan,
    rest: Option<PinnedBuffer>,
    /// Receives the rest where it has no memory of V8.
    text: SharedRest,
    memories: Vec<PinnedBuffer>,
    /// The JSON that replaces each value.
    replacements: Option<Vec<String>>,
}

impl FillBody {
    fn new(
        scanned: &ScannedBody,
        rest: Option<PinnedBuffer>,
        memories: Vec<PinnedBuffer>,
        replacements: Option<Vec<String>>,
    ) -> Self {
        let (body, plan) = scanned.parts.take().unwrap_or_default();
        Self { body, plan, rest, text: Arc::clone(&scanned.rest), memories, replacements }
    }
}

impl Work for FillBody {
    type Done = String;

    fn run(&mut self, flag: &Flag) -> Result<String, Failure> {
        let mut memories: Vec<_> = self.memories.iter_mut().map(PinnedBuffer::result).collect();
        let replacements = self.replacements.as_deref();
        let size = self.plan.rest_size();
        let mut block = None;
        let rest = match &mut self.rest {
            Some(rest) => rest.result(),
            None => block.insert(acquire(size)?).get_mut(..size).unwrap_or_default(),
        };
        let target = FillTarget { rest, memories: &mut memories, replacements };
        let filled = self.plan.fill(self.body.bytes_mut(), target, || flag.check())?;
        if let Some(block) = block {
            let rest = if filled.is_ascii {
                RestText::ascii(block, size)
            } else {
                let text = block.get(..size).unwrap_or_default();
                RestText::new(text, acquire, || flag.check())?
            };
            *lock(&self.text) = Some(rest);
        }
        Ok(filled.describe())
    }

    fn recycle(&mut self) {
        self.body.recycle();
        // A plan of many values takes milliseconds to drop: not on the JS thread.
        self.plan = BodyPlan::default();
    }
}

impl From<BodyError<Self>> for Failure {
    fn from(error: BodyError<Self>) -> Self {
        match error {
            BodyError::Json(error) => error.into(),
            BodyError::Lift(error) => error.into(),
            BodyError::Rest(error) => Self::new(FailureCause::TooLarge, error.to_string()),
            BodyError::Memory(error) => error.into(),
            BodyError::Stopped(failure) => failure,
        }
    }
}

impl From<LiftError> for Failure {
    fn from(error: LiftError) -> Self {
        let cause = if let LiftCause::Experts(_) = error.cause {
            FailureCause::Experts
        } else {
            FailureCause::Lift
        };
        Self {
            offset: Some(error.offset as f64),
            pointer: Some(error.pointer.clone()),
            ..Self::new(cause, error.to_string())
        }
    }
}

/// Scans what `source` gathered, in a task.
#[napi(ts_return_type = "Promise<ScannedBody | Failure>")]
pub fn scan_body(
    lifts: &LiftPointers,
    source: &InputBytes,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<ScanBody>> {
    launch(ScanBody::new(lifts, source), stop)
}

/// Scans what `source` gathered, on the JS thread.
#[napi]
pub fn scan_body_sync(lifts: &LiftPointers, source: &InputBytes) -> Either<ScannedBody, Failure> {
    let mut work = ScanBody::new(lifts, source);
    at_once(|| work.run(&Flag::default()))
}

/// Writes the values of the body to `memories`, and its rest to `rest` or, without it, for `takeRest`; in a task. Resolves to
/// JSON: see `FilledBody::describe`.
#[napi(ts_return_type = "Promise<string | Failure>")]
pub fn fill_body(
    scanned: &ScannedBody,
    #[napi(ts_arg_type = "Uint8Array | null")] rest: Option<PinnedBuffer>,
    #[napi(ts_arg_type = "Uint8Array[]")] memories: Vec<PinnedBuffer>,
    replacements: Option<Vec<String>>,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<FillBody>> {
    launch(FillBody::new(scanned, rest, memories, replacements), stop)
}

/// Does what [`fill_body`] does, on the JS thread.
#[napi]
pub fn fill_body_sync(
    scanned: &ScannedBody,
    #[napi(ts_arg_type = "Uint8Array | null")] rest: Option<PinnedBuffer>,
    #[napi(ts_arg_type = "Uint8Array[]")] memories: Vec<PinnedBuffer>,
    replacements: Option<Vec<String>>,
) -> Either<String, Failure> {
    let mut work = FillBody::new(scanned, rest, memories, replacements);
    at_once(|| work.run(&Flag::default()))
}
