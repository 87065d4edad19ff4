//! Makes a file safe to append to. Until the cut, which comes last, everything is in the file; what is cut off is in the
//! sidecar before.

use std::error::Error;
use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::examine::{ExamineError, Progress, Stopped, Watch};
use crate::file::{
    FileError, PRIVATE, create_new, failed, give_mode, metadata, open, real_path, sync,
    sync_folder_of, uninterrupted, with_ending, write_at,
};
use crate::judge::Cause;
use crate::lock::lock;
use crate::plan::{Action, Plan, Policy, cause_of};
use crate::scan::{BadRow, scan};
use crate::source::fill;
use crate::tail::{BLOCK, Tail, walk};

/// What success has survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    None,
    Data,
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub policy: Policy,
    /// Look for bad rows from here on. No byte before is ever cut off.
    pub verify_from: Option<u64>,
    pub durability: Durability,
    /// Take the file's lock, with policies that change it.
    pub locks: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub action: Action,
    pub cause: Option<Cause>,
    pub size_before: u64,
    pub size: u64,
    /// Where the torn bytes begin.
    pub offset: Option<u64>,
    pub sidecar: Option<PathBuf>,
    pub bad_rows: Vec<BadRow>,
}

impl Report {
    /// Of no file, or one without bytes.
    const EMPTY: Self = Self {
        action: Action::None,
        cause: None,
        size_before: 0,
        size: 0,
        offset: None,
        sidecar: None,
        bad_rows: Vec::new(),
    };

    #[must_use]
    pub fn torn_len(&self) -> u64 {
        self.offset.map_or(0, |offset| self.size_before - offset)
    }
}

#[derive(Debug)]
pub enum RepairError {
    File(FileError),
    /// The policy is strict, and the tail is not clean from `offset` on.
    Torn {
        offset: u64,
    },
    /// No JSONL file with a torn tail.
    Corrupt {
        offset: u64,
    },
    /// Somebody else has the file.
    Locked,
    /// Somebody else writes to the file all the time, without its lock.
    Unsettled,
    Stopped,
}

impl fmt::Display for RepairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Torn { offset } => write!(f, "the tail is not clean from byte {offset} on"),
            Self::Corrupt { offset } => write!(f, "{}", ExamineError::Corrupt { offset: *offset }),
            Self::Locked => f.write_str("another process or handle holds the file"),
            Self::Unsettled => {
                f.write_str("the file is being written to, by somebody without its lock")
            }
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl Error for RepairError {}

impl From<FileError> for RepairError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl From<Stopped> for RepairError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// The file at `path`. One that is missing is clean.
///
/// # Errors
/// What keeps it from being repaired; then it is what it was, but for errors of the system after the cut.
pub fn repair(path: &Path, settings: &Settings, watch: Watch<'_>) -> Result<Report, RepairError> {
    let changes = settings.policy.changes();
    let Some(file) = open(path, changes)? else { return Ok(Report::EMPTY) };
    if changes && settings.locks && !lock(&file, path)? {
        return Err(RepairError::Locked);
    }
    repair_file(&file, path, settings, watch)
}

/// The same of an open file, whose lock the caller has.
///
/// # Errors
/// The same.
pub fn repair_file(
    file: &File,
    path: &Path,
    settings: &Settings,
    watch: Watch<'_>,
) -> Result<Report, RepairError> {
    let repair = Repair { file, path, settings, watch };
    for _ in 0..MOST_EXAMINATIONS {
        if let Settled::Done(report) = repair.attempt()? {
            return Ok(report);
        }
    }
    Err(RepairError::Unsettled)
}

/// A file that has changed as often while it was looked at has a writer who does not stop.
const MOST_EXAMINATIONS: usize = 16;

/// A forward scan, and the copy of torn bytes.
const LARGE_BLOCK: usize = 256 << 10;

enum Settled<T> {
    Done(T),
    /// The file is not what it was when it was looked at: nothing was done to it.
    Changed,
}

struct Repair<'a> {
    file: &'a File,
    path: &'a Path,
    settings: &'a Settings,
    watch: Watch<'a>,
}

impl Repair<'_> {
    fn attempt(&self) -> Result<Settled<Report>, RepairError> {
        let examined = metadata(self.file, self.path)?;
        let size_before = examined.len();
        let (tail, bad_rows) = match self.examine(size_before) {
            Ok(found) => found,
            Err(ExamineError::Shrunk) => return Ok(Settled::Changed),
            Err(error) => return Err(self.examine_error(error)),
        };
        let plan = Plan::new(&tail, self.settings.policy);
        let mut report = Report {
            action: plan.action,
            cause: cause_of(&tail),
            size_before,
            size: plan.size_after(size_before),
            offset: tail.torn.map(|torn| torn.offset),
            sidecar: None,
            bad_rows,
        };
        if plan.action == Action::None || self.settings.policy == Policy::Report {
            return Ok(Settled::Done(report));
        }
        if self.settings.policy == Policy::Strict {
            return Err(RepairError::Torn { offset: plan.cut.unwrap_or(size_before) });
        }
        match self.change(&plan, &examined)? {
            Settled::Done(sidecar) => report.sidecar = sidecar,
            Settled::Changed => return Ok(Settled::Changed),
        }
        Ok(Settled::Done(report))
    }

    fn examine(&self, size: u64) -> Result<(Tail, Vec<BadRow>), ExamineError> {
        let Some(from) = self.settings.verify_from else {
            return Ok((walk(self.file, size, BLOCK, self.watch)?, Vec::new()));
        };
        let total = size;
        let stop_only = |_| (self.watch)(Progress { bytes: from.min(total), total });
        let tail = walk(self.file, size, BLOCK, &stop_only)?;
        let end = tail.torn.map_or(size, |torn| torn.offset);
        if end < from.min(size) {
            return Err(ExamineError::Corrupt { offset: end });
        }
        let bad_rows = scan(self.file, from..end, size, LARGE_BLOCK, self.watch)?;
        Ok((tail, bad_rows))
    }

    fn examine_error(&self, error: ExamineError) -> RepairError {
        match error {
            ExamineError::Corrupt { offset } => RepairError::Corrupt { offset },
            ExamineError::Stopped => RepairError::Stopped,
            ExamineError::Read(error) => failed("read", self.path)(error).into(),
            ExamineError::Shrunk => RepairError::Unsettled,
        }
    }

    /// Tells where the sidecar is, if there is one.
    fn change(
        &self,
        plan: &Plan,
        examined: &Metadata,
    ) -> Result<Settled<Option<PathBuf>>, RepairError> {
        let mut sidecar = match plan.cut {
            Some(offset) if plan.action == Action::Quarantined => {
                match self.quarantine(offset, examined)? {
                    Settled::Done(sidecar) => Some(sidecar),
                    Settled::Changed => return Ok(Settled::Changed),
                }
            }
            _ => None,
        };
        (self.watch)(Progress { bytes: examined.len(), total: examined.len() })?;
        if has_changed(examined, &metadata(self.file, self.path)?) {
            return Ok(Settled::Changed);
        }
        if let Some(sidecar) = &mut sidecar {
            sidecar.is_needed = true;
        }
        self.apply(plan, examined.len())?;
        Ok(Settled::Done(sidecar.map(|sidecar| sidecar.path.clone())))
    }

    /// All bytes from `offset` on, in a file that is durable when this returns.
    fn quarantine(
        &self,
        offset: u64,
        examined: &Metadata,
    ) -> Result<Settled<Sidecar>, RepairError> {
        let (file, sidecar) = self.create_sidecar(offset, examined)?;
        let mut memory = Vec::new();
        let mut at = offset;
        while at < examined.len() {
            (self.watch)(Progress { bytes: at, total: examined.len() })?;
            let left = usize::try_from(examined.len() - at).unwrap_or(usize::MAX);
            memory.resize(left.min(LARGE_BLOCK), 0);
            let block = memory.as_mut_slice();
            match fill(self.file, block, at) {
                Err(ExamineError::Shrunk) => return Ok(Settled::Changed),
                outcome => outcome.map_err(|error| self.examine_error(error))?,
            }
            write_at(&file, block, at - offset, &sidecar.path)?;
            at += block.len() as u64;
        }
        sync(&file, self.settings.durability, &sidecar.path)?;
        drop(file);
        sync_folder_of(&sidecar.path, self.settings.durability)?;
        Ok(Settled::Done(sidecar))
    }

    /// With the first name that is free, beside the real file.
    fn create_sidecar(
        &self,
        offset: u64,
        examined: &Metadata,
    ) -> Result<(File, Sidecar), RepairError> {
        let real = real_path(self.path)?;
        let mut number = 0_u64;
        loop {
            let path = with_ending(&real, &format!(".torn-{offset}-{number}"));
            match create_new(&path, PRIVATE) {
                Ok(file) => {
                    let sidecar = Sidecar { path, is_needed: false };
                    give_mode(&file, examined, &sidecar.path)?;
                    return Ok((file, sidecar));
                }
                Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn apply(&self, plan: &Plan, size: u64) -> Result<(), RepairError> {
        if let Some(cut) = plan.cut {
            self.file.set_len(cut).map_err(failed("ftruncate", self.path))?;
        }
        if plan.adds_newline {
            write_at(self.file, b"\n", plan.cut.unwrap_or(size), self.path)?;
        }
        Ok(sync(self.file, self.settings.durability, self.path)?)
    }
}

/// Whoever writes without the lock changes the size, or at least the time.
fn has_changed(examined: &Metadata, now: &Metadata) -> bool {
    examined.len() != now.len() || examined.modified().ok() != now.modified().ok()
}

/// A copy of the torn bytes, which goes again unless they are about to be cut off.
struct Sidecar {
    path: PathBuf,
    is_needed: bool,
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        if !self.is_needed {
            // The torn bytes are where they were; why this came to nothing is what the caller is told.
            let _ = uninterrupted(|| fs::remove_file(&self.path));
        }
    }
}
