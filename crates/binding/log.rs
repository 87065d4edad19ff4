//! Glue of `openJsonl`: tasks open, append to and close a log. `src/jsonl/log.ts` and `src/jsonl/group.ts` call it.

use std::path::Path;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{AsyncTask, ClassInstance, Either, Uint8Array};
use napi_derive::napi;
use offloop_jsonl::{AppendResult, Interrupt, Log, LogSettings, open_log, write_ends};

use crate::failure::{Failure, FailureCause};
use crate::guard::guard;
use crate::json::PrintJob;
use crate::lock::lock;
use crate::memory::PinnedBuffer;
use crate::repair::{DurabilityName, PolicyName, RepairOutcome};
use crate::stop::{Flag, Stop};
use crate::tape::{Lexicon, TapeParts};
use crate::task::{PoolTask, Work, at_once, launch};

/// A file that rows are appended to.
#[napi]
#[derive(Default)]
pub struct LogFile(SharedLog);

/// Locked while the file is written to: by one task at a time, and by the JS thread in `finish` and `writeGroupSync`.
type SharedLog = Arc<Mutex<LogSlot>>;

#[derive(Default)]
struct LogSlot {
    /// The open log; `None` before it is opened and after it is closed.
    log: Option<Log>,
    /// The group whose task was launched last; `None` once it is written.
    launched: Option<Arc<LogGroup>>,
    /// Why nothing more may be written.
    failure: Option<Failure>,
}

#[napi]
impl LogFile {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// Arguments of opening a log.
#[napi(object, object_to_js = false)]
pub struct OpenLogInput {
    pub path: String,
    /// Policy of the repair; without it, the file is not repaired.
    pub policy: Option<PolicyName>,
    pub durability: DurabilityName,
    pub locks: bool,
    pub mode: u32,
    /// Bytes of one write.
    pub batch: f64,
}

impl OpenLogInput {
    fn settings(&self) -> LogSettings {
        LogSettings {
            policy: self.policy.map(Into::into),
            durability: self.durability.into(),
            locks: self.locks,
            mode: self.mode,
            batch: self.batch as usize,
        }
    }
}

/// Task that opens the log at `path`.
pub struct OpenLog {
    shared: SharedLog,
    path: String,
    settings: LogSettings,
}

impl Work for OpenLog {
    type Done = RepairOutcome;

    fn run(&mut self, flag: &Flag) -> Result<RepairOutcome, Failure> {
        let watch = |_| flag.check().map_err(|_| Interrupt);
        let opened = open_log(Path::new(&self.path), self.settings, &watch);
        let (log, report) = opened.map_err(|error| Failure::of_repair(error, &self.path))?;
        lock(&self.shared).log = Some(log);
        Ok(report.into())
    }
}

/// Opens the log at a path and returns the report of its repair.
#[napi(ts_return_type = "Promise<RepairOutcome | Failure>")]
pub fn open_log_file(
    file: &LogFile,
    input: OpenLogInput,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<OpenLog>> {
    let settings = input.settings();
    launch(OpenLog { shared: Arc::clone(&file.0), path: input.path, settings }, stop)
}

/// Rows that are written together.
struct LogGroup {
    job: Mutex<PrintJob>,
    /// Bytes expected.
    size: usize,
    /// Memory for the end of each row; see `offloop_jsonl::write_ends`.
    ends: Mutex<PinnedBuffer>,
    /// Sync what durability `none` leaves unsynced.
    flushes: bool,
    report: Mutex<Option<GroupReport>>,
}

/// Result of writing a group.
#[napi(object, object_from_js = false)]
pub struct GroupReport {
    /// Offset of the first row.
    pub offset: f64,
    /// Number of rows that are in the file, at the durability of the log.
    pub rows: f64,
    pub bytes: f64,
    /// System calls since the file was opened.
    pub writes: f64,
    pub syncs: f64,
    /// Why the other rows are not in the file.
    pub failure: Option<Failure>,
    /// The file was not touched: later groups can be written.
    pub is_untouched: bool,
}

impl LogSlot {
    /// Writes the group unless that was done before.
    fn write(&mut self, group: &LogGroup) -> Result<(), Failure> {
        self.launched = None;
        let mut report = lock(&group.report);
        if report.is_some() {
            return Ok(());
        }
        let Some(log) = &mut self.log else {
            return Err(Failure::new(FailureCause::Internal, "the file of the log is not open"));
        };
        let written = group.write(log);
        if !written.is_untouched {
            self.failure.clone_from(&written.failure);
        }
        *report = Some(written);
        Ok(())
    }
}

impl LogGroup {
    fn write(&self, log: &mut Log) -> GroupReport {
        let mut job = lock(&self.job);
        let printed = job.print(self.size, &Flag::default());
        job.recycle();
        let (block, len) = match printed {
            Ok(printed) => printed,
            Err(failure) => return GroupReport::untouched(failure, log),
        };
        let rows = block.get(..len).unwrap_or_default();
        let appended = log.append_group(rows, self.flushes);
        let whole_rows = rows.get(..appended.len).unwrap_or_default();
        let count = write_ends(whole_rows, lock(&self.ends).bytes_mut());
        GroupReport::new(appended, count, log)
    }
}

impl GroupReport {
    fn new(appended: AppendResult, rows: usize, log: &Log) -> Self {
        let counts = log.counts();
        Self {
            offset: appended.offset as f64,
            rows: rows as f64,
            bytes: appended.len as f64,
            writes: counts.writes as f64,
            syncs: counts.syncs as f64,
            failure: appended.error.map(Failure::from),
            is_untouched: false,
        }
    }

    fn untouched(failure: Failure, log: &Log) -> Self {
        let report = Self::new(AppendResult::default(), 0, log);
        Self { failure: Some(failure), is_untouched: true, ..report }
    }
}

/// Task that writes a group, unless the JS thread did so before.
pub struct WriteGroup {
    shared: SharedLog,
    group: Arc<LogGroup>,
}

impl WriteGroup {
    fn new(file: &LogFile, input: WriteGroupInput<'_>) -> Self {
        let WriteGroupInput { tape, lexicon, layout, size, ends, flushes } = input;
        let job = Mutex::new(PrintJob::new(&tape, &lexicon, layout, None));
        let (ends, report) = (Mutex::new(PinnedBuffer::new(ends)), Mutex::default());
        let group = Arc::new(LogGroup { job, size: size as usize, ends, flushes, report });
        Self { shared: Arc::clone(&file.0), group }
    }

    fn write(&self) -> Result<GroupReport, Failure> {
        lock(&self.shared).write(&self.group)?;
        let report = lock(&self.group.report).take();
        report.ok_or_else(|| Failure::new(FailureCause::Internal, "the group was reported before"))
    }
}

impl Work for WriteGroup {
    type Done = GroupReport;

    fn run(&mut self, _flag: &Flag) -> Result<GroupReport, Failure> {
        self.write()
    }
}

/// Captured rows of a group.
#[napi(object, object_to_js = false)]
pub struct WriteGroupInput<'env> {
    pub tape: ClassInstance<'env, TapeParts>,
    pub lexicon: ClassInstance<'env, Lexicon>,
    pub layout: u32,
    /// Bytes expected.
    pub size: f64,
    /// Memory for the end of each row: 8 bytes a row.
    pub ends: Uint8Array,
    /// Sync what durability `none` leaves unsynced.
    pub flushes: bool,
}

/// Appends a group in a task.
#[napi(ts_return_type = "Promise<GroupReport | Failure>")]
pub fn write_group(file: &LogFile, input: WriteGroupInput<'_>) -> AsyncTask<PoolTask<WriteGroup>> {
    let work = WriteGroup::new(file, input);
    lock(&file.0).launched = Some(Arc::clone(&work.group));
    launch(work, None)
}

/// Appends a group on the JS thread.
#[napi]
pub fn write_group_sync(
    file: &LogFile,
    input: WriteGroupInput<'_>,
) -> Either<GroupReport, Failure> {
    at_once(|| WriteGroup::new(file, input).write())
}

#[napi]
impl LogFile {
    /// Ensures that the group that was launched last is written. If its task runs, this waits for it; else this writes the
    /// group. The task reports the result in either case. Returns why nothing more may be written.
    #[napi]
    #[must_use]
    pub fn finish(&self) -> Option<Failure> {
        let finished = guard(|| {
            let mut slot = lock(&self.0);
            if let Some(group) = slot.launched.take() {
                slot.write(&group)?;
            }
            Ok(slot.failure.clone())
        });
        finished.unwrap_or_else(Some)
    }
}

/// Task that closes a log, which ends its lock.
pub struct CloseLog(SharedLog);

impl Work for CloseLog {
    type Done = f64;

    fn run(&mut self, _flag: &Flag) -> Result<f64, Failure> {
        let log = lock(&self.0).log.take();
        log.map_or(Ok(()), Log::close)?;
        Ok(0.0)
    }
}

/// Closes a log.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn close_log_file(file: &LogFile) -> AsyncTask<PoolTask<CloseLog>> {
    launch(CloseLog(Arc::clone(&file.0)), None)
}
