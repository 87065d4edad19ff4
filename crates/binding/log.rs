use std::path::Path;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{AsyncTask, Either, Uint8Array};
use napi_derive::napi;
use offloop_jsonl::{Appended, Log, LogSettings, Stopped, ends_of, open_log};

use crate::failure::{Cause, Failure};
use crate::guard::guard;
use crate::json::{Lexicon, Sheet, TapeParts};
use crate::jsonl::{FileDurability, Repaired, TailPolicy};
use crate::lock::lock;
use crate::memory::Held;
use crate::stop::{Flag, Stop};
use crate::task::{Job, Work, at_once, launch};

/// A file that rows are appended to, from when it was opened until it is closed.
#[napi]
#[derive(Default)]
pub struct LogFile(Shared);

#[derive(Default)]
struct State {
    log: Option<Log>,
    /// The group that a task was launched for, until somebody writes it.
    launched: Option<Arc<Group>>,
    /// Why nothing more may be written.
    failure: Option<Failure>,
}

/// Locked while the file is written to: by one task at a time, and by the thread where it cannot wait for that.
type Shared = Arc<Mutex<State>>;

#[napi]
impl LogFile {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[napi(object, object_to_js = false)]
pub struct OpenSettings {
    /// Of the repair, where there is to be one.
    pub policy: Option<TailPolicy>,
    pub durability: FileDurability,
    pub locks: bool,
    pub mode: u32,
    /// Bytes of one write.
    pub batch: f64,
}

impl From<OpenSettings> for LogSettings {
    fn from(settings: OpenSettings) -> Self {
        Self {
            policy: settings.policy.map(Into::into),
            durability: settings.durability.into(),
            locks: settings.locks,
            mode: settings.mode,
            batch: settings.batch as usize,
        }
    }
}

/// Opens the file at `path`.
pub struct OpenLog {
    state: Shared,
    path: String,
    settings: LogSettings,
}

impl Work for OpenLog {
    type Done = Repaired;

    fn run(&mut self, flag: &Flag) -> Result<Repaired, Failure> {
        let watch = |_| flag.check().map_err(|_| Stopped);
        let opened = open_log(Path::new(&self.path), self.settings, &watch);
        let (log, report) = opened.map_err(|error| Failure::of_repair(error, &self.path))?;
        lock(&self.state).log = Some(log);
        Ok(report.into())
    }

    fn recycle(&mut self) {}
}

/// Opens `file` at `path`, and tells what had to be repaired.
#[napi(ts_return_type = "Promise<Repaired | Failure>")]
pub fn open_log_file(
    file: &LogFile,
    path: String,
    settings: OpenSettings,
    stop: Option<&Stop>,
) -> AsyncTask<Job<OpenLog>> {
    launch(OpenLog { state: Arc::clone(&file.0), path, settings: settings.into() }, stop)
}

/// Rows that are written together.
struct Group {
    sheet: Mutex<Sheet>,
    /// Bytes expected.
    size: usize,
    /// Where each row ends, behind its newline, from where the first begins: doubles.
    ends: Mutex<Held>,
    /// Sync what a durability of none leaves unsynced.
    flushes: bool,
    outcome: Mutex<Option<GroupWritten>>,
}

/// What became of a group.
#[napi(object, object_from_js = false)]
pub struct GroupWritten {
    /// Where the first row stands.
    pub offset: f64,
    /// Rows that are in the file, as durably as was asked for.
    pub rows: f64,
    pub bytes: f64,
    /// System calls since the file was opened.
    pub writes: f64,
    pub syncs: f64,
    /// Why the other rows are not.
    pub failure: Option<Failure>,
    /// The file was not touched: what comes after can be written.
    pub is_untouched: bool,
}

impl State {
    /// Once, whoever comes first.
    fn write(&mut self, group: &Group) -> Result<(), Failure> {
        self.launched = None;
        let mut outcome = lock(&group.outcome);
        if outcome.is_some() {
            return Ok(());
        }
        let Some(log) = &mut self.log else {
            return Err(Failure::new(Cause::Internal, "the file of the log is not open"));
        };
        let written = group.write(log);
        if !written.is_untouched {
            self.failure.clone_from(&written.failure);
        }
        *outcome = Some(written);
        Ok(())
    }
}

impl Group {
    fn write(&self, log: &mut Log) -> GroupWritten {
        let mut sheet = lock(&self.sheet);
        let printed = sheet.print(self.size, &Flag::default());
        sheet.recycle();
        let nothing = Appended { offset: 0, len: 0, error: None };
        let (block, len) = match printed {
            Ok(printed) => printed,
            Err(failure) => {
                let failure = Some(failure);
                return GroupWritten { failure, is_untouched: true, ..written(nothing, 0, log) };
            }
        };
        let rows = block.get(..len).unwrap_or_default();
        let mut appended = if rows.is_empty() { nothing } else { log.append(rows) };
        if self.flushes && appended.error.is_none() {
            appended.error = log.flush().err();
        }
        let count = self.tell_ends(rows.get(..appended.len).unwrap_or_default());
        written(appended, count, log)
    }

    fn tell_ends(&self, rows: &[u8]) -> usize {
        let mut ends = lock(&self.ends);
        let mut count = 0;
        for (place, end) in ends.bytes_mut().chunks_exact_mut(8).zip(ends_of(rows)) {
            place.copy_from_slice(&(end as f64).to_ne_bytes());
            count += 1;
        }
        count
    }
}

fn written(appended: Appended, rows: usize, log: &Log) -> GroupWritten {
    let counts = log.counts();
    GroupWritten {
        offset: appended.offset as f64,
        rows: rows as f64,
        bytes: appended.len as f64,
        writes: counts.writes as f64,
        syncs: counts.syncs as f64,
        failure: appended.error.map(Failure::from),
        is_untouched: false,
    }
}

/// Writes a group, unless the thread did so already.
pub struct WriteGroup {
    state: Shared,
    group: Arc<Group>,
}

impl WriteGroup {
    fn outcome(&self) -> Result<GroupWritten, Failure> {
        lock(&self.state).write(&self.group)?;
        let outcome = lock(&self.group.outcome).take();
        outcome.ok_or_else(|| Failure::new(Cause::Internal, "the group was settled before"))
    }
}

impl Work for WriteGroup {
    type Done = GroupWritten;

    fn run(&mut self, _flag: &Flag) -> Result<GroupWritten, Failure> {
        self.outcome()
    }

    fn recycle(&mut self) {}
}

fn group_of(
    file: &LogFile,
    tape: &TapeParts,
    lexicon: &Lexicon,
    layout: u32,
    size: f64,
    ends: Uint8Array,
    flushes: bool,
) -> WriteGroup {
    let sheet = Mutex::new(Sheet::new(tape, lexicon, layout, None));
    let (ends, outcome) = (Mutex::new(Held::new(ends)), Mutex::default());
    let group = Arc::new(Group { sheet, size: size as usize, ends, flushes, outcome });
    WriteGroup { state: Arc::clone(&file.0), group }
}

/// Appends what was captured of rows, some `size` bytes, and tells where each ends in `ends`, which has 8 bytes for each.
#[napi(ts_return_type = "Promise<GroupWritten | Failure>")]
pub fn write_group(
    file: &LogFile,
    tape: &TapeParts,
    lexicon: &Lexicon,
    layout: u32,
    size: f64,
    ends: Uint8Array,
    flushes: bool,
) -> AsyncTask<Job<WriteGroup>> {
    let work = group_of(file, tape, lexicon, layout, size, ends, flushes);
    lock(&file.0).launched = Some(Arc::clone(&work.group));
    launch(work, None)
}

/// The same at once.
#[napi]
pub fn write_group_sync(
    file: &LogFile,
    tape: &TapeParts,
    lexicon: &Lexicon,
    layout: u32,
    size: f64,
    ends: Uint8Array,
    flushes: bool,
) -> Either<GroupWritten, Failure> {
    at_once(|| group_of(file, tape, lexicon, layout, size, ends, flushes).outcome())
}

#[napi]
impl LogFile {
    /// Sees to it that the group that was launched last is written: waits for its task if that has begun, else writes it. The
    /// task still tells what became of it. Tells why nothing more may be written.
    #[napi]
    #[must_use]
    pub fn finish(&self) -> Option<Failure> {
        let finished = guard(|| {
            let mut state = lock(&self.0);
            if let Some(group) = state.launched.take() {
                state.write(&group)?;
            }
            Ok(state.failure.clone())
        });
        finished.unwrap_or_else(Some)
    }
}

/// Lets go of the file and its lock.
pub struct CloseLog(Shared);

impl Work for CloseLog {
    type Done = f64;

    fn run(&mut self, _flag: &Flag) -> Result<f64, Failure> {
        let log = lock(&self.0).log.take();
        log.map_or(Ok(()), Log::close)?;
        Ok(0.0)
    }

    fn recycle(&mut self) {}
}

#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn close_log_file(file: &LogFile) -> AsyncTask<Job<CloseLog>> {
    launch(CloseLog(Arc::clone(&file.0)), None)
}
