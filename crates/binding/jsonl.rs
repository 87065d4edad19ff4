use std::path::Path;

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use offloop_jsonl::{Action, BadRow, Cause, Durability, Policy, Report, Settings, Stopped, repair};

use crate::failure::Failure;
use crate::progress::{Progress, Reached};
use crate::stop::{Flag, Stop};
use crate::task::{Job, Work, launch};

#[napi]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailPolicy {
    Quarantine,
    Truncate,
    Isolate,
    Strict,
    Report,
}

impl From<TailPolicy> for Policy {
    fn from(policy: TailPolicy) -> Self {
        match policy {
            TailPolicy::Quarantine => Self::Quarantine,
            TailPolicy::Truncate => Self::Truncate,
            TailPolicy::Isolate => Self::Isolate,
            TailPolicy::Strict => Self::Strict,
            TailPolicy::Report => Self::Report,
        }
    }
}

/// What success has survived.
#[napi]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileDurability {
    None,
    Data,
    Full,
}

impl From<FileDurability> for Durability {
    fn from(durability: FileDurability) -> Self {
        match durability {
            FileDurability::None => Self::None,
            FileDurability::Data => Self::Data,
            FileDurability::Full => Self::Full,
        }
    }
}

#[napi]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairAction {
    None,
    Terminated,
    Quarantined,
    Truncated,
    Isolated,
}

impl From<Action> for RepairAction {
    fn from(action: Action) -> Self {
        match action {
            Action::None => Self::None,
            Action::Terminated => Self::Terminated,
            Action::Quarantined => Self::Quarantined,
            Action::Truncated => Self::Truncated,
            Action::Isolated => Self::Isolated,
        }
    }
}

/// Why a row or a tail is not as it should be.
#[napi]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowCause {
    Unterminated,
    Partial,
    Nul,
    Utf8,
    Garbage,
    Glued,
    Nonstandard,
}

impl From<Cause> for RowCause {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Unterminated => Self::Unterminated,
            Cause::Partial => Self::Partial,
            Cause::Nul => Self::Nul,
            Cause::Utf8 => Self::Utf8,
            Cause::Garbage => Self::Garbage,
            Cause::Glued => Self::Glued,
            Cause::Nonstandard => Self::Nonstandard,
        }
    }
}

#[napi(object, object_to_js = false)]
pub struct RepairSettings {
    pub policy: TailPolicy,
    /// Where to look for bad rows from.
    pub verify_from: Option<f64>,
    pub durability: FileDurability,
    pub locks: bool,
}

impl From<RepairSettings> for Settings {
    fn from(settings: RepairSettings) -> Self {
        Self {
            policy: settings.policy.into(),
            verify_from: settings.verify_from.map(|from| from as u64),
            durability: settings.durability.into(),
            locks: settings.locks,
        }
    }
}

#[napi(object, object_from_js = false)]
pub struct Repaired {
    pub action: RepairAction,
    pub cause: Option<RowCause>,
    pub size_before: f64,
    pub size: f64,
    pub offset: Option<f64>,
    pub torn_bytes: f64,
    pub sidecar: Option<String>,
    /// Of each the offset, the length, and the `RowCause`.
    pub bad_rows: Vec<f64>,
}

impl From<Report> for Repaired {
    fn from(report: Report) -> Self {
        Self {
            action: report.action.into(),
            cause: report.cause.map(RowCause::from),
            size_before: report.size_before as f64,
            size: report.size as f64,
            offset: report.offset.map(|offset| offset as f64),
            torn_bytes: report.torn_len() as f64,
            sidecar: report.sidecar.as_deref().map(shown),
            bad_rows: report.bad_rows.iter().flat_map(numbers_of).collect(),
        }
    }
}

/// A link may lead to a name that is no Unicode.
fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn numbers_of(row: &BadRow) -> [f64; 3] {
    [row.offset as f64, row.len as f64, f64::from(RowCause::from(row.cause) as u8)]
}

/// Makes a file safe to append to.
pub struct Repair {
    path: String,
    settings: Settings,
    reached: Reached,
}

impl Work for Repair {
    type Done = Repaired;

    fn run(&mut self, flag: &Flag) -> Result<Repaired, Failure> {
        let report = repair(Path::new(&self.path), &self.settings, &|progress| {
            self.reached.set(progress.bytes, progress.total);
            flag.check().map_err(|_| Stopped)
        });
        report.map(Repaired::from).map_err(|error| Failure::of_repair(error, &self.path))
    }

    fn recycle(&mut self) {}
}

/// Makes the file at `path` safe to append to, or says what that would take.
#[napi(ts_return_type = "Promise<Repaired | Failure>")]
pub fn repair_file(
    path: String,
    settings: RepairSettings,
    progress: Option<&Progress>,
    stop: Option<&Stop>,
) -> AsyncTask<Job<Repair>> {
    let work = Repair { path, settings: settings.into(), reached: progress.into() };
    launch(work, stop)
}
