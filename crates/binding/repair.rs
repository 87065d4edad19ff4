//! Glue of `repair`: makes a JSONL file safe to append to, in a task. `src/jsonl/repair.ts` calls it.

use std::path::Path;

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use offloop_jsonl::{Interrupt, Policy, RepairSettings, Report, RowCause, SyncLevel, repair};

use crate::failure::Failure;
use crate::progress::{ProgressWriter, TaskProgress};
use crate::stop::{Flag, Stop};
use crate::task::{PoolTask, Work, launch};

/// Names of the policies.
#[napi(string_enum = "lowercase")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyName {
    Quarantine,
    Truncate,
    Isolate,
    Strict,
    Report,
}

impl From<PolicyName> for Policy {
    fn from(name: PolicyName) -> Self {
        match name {
            PolicyName::Quarantine => Self::Quarantine,
            PolicyName::Truncate => Self::Truncate,
            PolicyName::Isolate => Self::Isolate,
            PolicyName::Strict => Self::Strict,
            PolicyName::Report => Self::Report,
        }
    }
}

/// Names of the durabilities.
#[napi(string_enum = "lowercase")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurabilityName {
    None,
    Data,
    Full,
}

impl From<DurabilityName> for SyncLevel {
    fn from(name: DurabilityName) -> Self {
        match name {
            DurabilityName::None => Self::None,
            DurabilityName::Data => Self::Data,
            DurabilityName::Full => Self::Full,
        }
    }
}

/// Arguments of a repair.
#[napi(object, object_to_js = false)]
pub struct RepairInput {
    pub policy: PolicyName,
    /// Offset that the search for bad rows starts at; without it, only the tail is checked.
    pub verify_from: Option<f64>,
    pub durability: DurabilityName,
    pub locks: bool,
}

impl From<RepairInput> for RepairSettings {
    fn from(input: RepairInput) -> Self {
        Self {
            policy: input.policy.into(),
            verify_from: input.verify_from.map(|from| from as u64),
            durability: input.durability.into(),
            locks: input.locks,
        }
    }
}

/// Report of a repair. The bad rows are columns: objects would cost more to create.
#[napi(object, object_from_js = false)]
pub struct RepairOutcome {
    #[napi(ts_type = "'none' | 'terminated' | 'quarantined' | 'truncated' | 'isolated'")]
    pub action: &'static str,
    #[napi(ts_type = "'unterminated' | 'partial' | 'nul' | 'utf8' | 'garbage' | 'glued'")]
    pub cause: Option<&'static str>,
    pub size_before: f64,
    pub size: f64,
    pub offset: Option<f64>,
    pub torn_bytes: f64,
    /// Path of the sidecar, lossy where a link leads to a name that is not Unicode.
    pub sidecar: Option<String>,
    pub bad_offsets: Vec<f64>,
    pub bad_lengths: Vec<f64>,
    #[napi(ts_type = "Array<'partial' | 'nul' | 'utf8' | 'garbage' | 'glued' | 'nonstandard'>")]
    pub bad_causes: Vec<&'static str>,
}

impl From<Report> for RepairOutcome {
    fn from(report: Report) -> Self {
        let flaws = &report.bad_rows;
        Self {
            action: report.action.name(),
            cause: report.cause.map(RowCause::name),
            size_before: report.size_before as f64,
            size: report.size as f64,
            offset: report.offset.map(|offset| offset as f64),
            torn_bytes: report.torn_len() as f64,
            sidecar: report.sidecar.as_ref().map(|path| path.to_string_lossy().into_owned()),
            bad_offsets: flaws.iter().map(|flaw| flaw.offset as f64).collect(),
            bad_lengths: flaws.iter().map(|flaw| flaw.len as f64).collect(),
            bad_causes: flaws.iter().map(|flaw| flaw.cause.name()).collect(),
        }
    }
}

/// Task that repairs the file at `path`.
pub struct RepairTask {
    path: String,
    settings: RepairSettings,
    reached: ProgressWriter,
}

impl Work for RepairTask {
    type Done = RepairOutcome;

    fn run(&mut self, flag: &Flag) -> Result<RepairOutcome, Failure> {
        let report = repair(Path::new(&self.path), &self.settings, &|progress| {
            self.reached.set(progress.bytes, progress.total);
            flag.check().map_err(|_| Interrupt)
        });
        report.map(RepairOutcome::from).map_err(|error| Failure::of_repair(error, &self.path))
    }
}

/// Makes the file at `path` safe to append to, or reports what that would take.
#[napi(ts_return_type = "Promise<RepairOutcome | Failure>")]
pub fn repair_file(
    path: String,
    input: RepairInput,
    progress: Option<&TaskProgress>,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<RepairTask>> {
    let work = RepairTask { path, settings: input.into(), reached: progress.into() };
    launch(work, stop)
}
