//! Makes a file safe to append to. Runs in tasks; `crates/binding/repair.rs` and `open` call it.
//!
//! The cut comes last: until then all bytes are in the file, and torn bytes are in a synced sidecar before they are cut off.

use std::error::Error;
use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::edit::{Action, Policy, TailEdit, cause_of};
use crate::file::{
    FileError, PRIVATE, create_new, failed, give_mode, metadata, open, real_path, sync,
    sync_folder_of, uninterrupted, write_at,
};
use crate::judge::RowCause;
use crate::lock::lock;
use crate::name::with_ending;
use crate::progress::{ExamineError, ExamineProgress, Interrupt, ProgressFn};
use crate::read_at::fill;
use crate::scan::{RowFlaw, scan};
use crate::tail::{BLOCK, Tail, walk};

/// Crashes that a successful write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncLevel {
    /// Nothing: the page cache has the bytes.
    None,
    /// A crash of the machine, by `fdatasync`.
    Data,
    /// A crash of the machine, by `fsync`.
    Full,
}

/// How to repair a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairSettings {
    pub policy: Policy,
    /// Offset that the search for bad rows starts at. No byte before it is cut off.
    pub verify_from: Option<u64>,
    pub durability: SyncLevel,
    /// Take the lock of the file, with policies that change it.
    pub locks: bool,
}

/// Findings and changes of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub action: Action,
    pub cause: Option<RowCause>,
    pub size_before: u64,
    pub size: u64,
    /// Offset of the torn bytes.
    pub offset: Option<u64>,
    pub sidecar: Option<PathBuf>,
    pub bad_rows: Vec<RowFlaw>,
}

impl Report {
    /// Report of a missing or empty file.
    const EMPTY: Self = Self {
        action: Action::None,
        cause: None,
        size_before: 0,
        size: 0,
        offset: None,
        sidecar: None,
        bad_rows: Vec::new(),
    };

    /// Returns the number of torn bytes.
    #[must_use]
    pub fn torn_len(&self) -> u64 {
        self.offset.map_or(0, |offset| self.size_before - offset)
    }
}

/// Why a file was not repaired.
#[derive(Debug)]
pub enum RepairError {
    File(FileError),
    /// The policy is strict, and the tail is not clean from `offset` on.
    Torn {
        offset: u64,
    },
    /// The file is not a JSONL file with a torn tail.
    Corrupt {
        offset: u64,
    },
    /// Another handle holds the lock.
    Locked,
    /// Another program keeps writing to the file without its lock.
    Unsettled,
    /// The caller ended the work.
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

impl From<Interrupt> for RepairError {
    fn from(_: Interrupt) -> Self {
        Self::Stopped
    }
}

/// Repairs the file at `path`. A missing file is clean.
///
/// # Errors
/// [`RepairError`]. The file is unchanged then, unless the system failed after the cut.
pub fn repair(
    path: &Path,
    settings: &RepairSettings,
    watch: ProgressFn<'_>,
) -> Result<Report, RepairError> {
    let changes = settings.policy.changes();
    let Some(file) = open(path, changes)? else { return Ok(Report::EMPTY) };
    if changes && settings.locks && !lock(&file, path)? {
        return Err(RepairError::Locked);
    }
    repair_file(&file, path, settings, watch)
}

/// Repairs an open file, whose lock the caller holds.
///
/// # Errors
/// The errors of [`repair`].
pub fn repair_file(
    file: &File,
    path: &Path,
    settings: &RepairSettings,
    watch: ProgressFn<'_>,
) -> Result<Report, RepairError> {
    let repair = Repair { file, path, settings, watch };
    for _ in 0..MOST_EXAMINATIONS {
        if let Attempt::Done(report) = repair.attempt()? {
            return Ok(report);
        }
    }
    Err(RepairError::Unsettled)
}

/// Number of attempts to examine a file that changes meanwhile.
const MOST_EXAMINATIONS: usize = 16;

/// Bytes of one read of a forward scan, and of the copy to the sidecar.
const LARGE_BLOCK: usize = 256 << 10;

/// Result of one attempt.
enum Attempt<T> {
    Done(T),
    /// The file changed while it was examined; it is left alone.
    Changed,
}

struct Repair<'a> {
    file: &'a File,
    path: &'a Path,
    settings: &'a RepairSettings,
    watch: ProgressFn<'a>,
}

impl Repair<'_> {
    fn attempt(&self) -> Result<Attempt<Report>, RepairError> {
        let examined = metadata(self.file, self.path)?;
        let size_before = examined.len();
        let (tail, bad_rows) = match self.examine(size_before) {
            Ok(found) => found,
            Err(ExamineError::Shrunk) => return Ok(Attempt::Changed),
            Err(error) => return Err(self.examine_error(error)),
        };
        let edit = TailEdit::new(&tail, self.settings.policy);
        let mut report = Report {
            action: edit.action,
            cause: cause_of(&tail),
            size_before,
            size: edit.size_after(size_before),
            offset: tail.torn.map(|torn| torn.offset),
            sidecar: None,
            bad_rows,
        };
        if edit.action == Action::None || self.settings.policy == Policy::Report {
            return Ok(Attempt::Done(report));
        }
        if self.settings.policy == Policy::Strict {
            return Err(RepairError::Torn { offset: edit.cut.unwrap_or(size_before) });
        }
        match self.change(&edit, &examined)? {
            Attempt::Done(sidecar) => report.sidecar = sidecar,
            Attempt::Changed => return Ok(Attempt::Changed),
        }
        Ok(Attempt::Done(report))
    }

    fn examine(&self, size: u64) -> Result<(Tail, Vec<RowFlaw>), ExamineError> {
        let Some(from) = self.settings.verify_from else {
            return Ok((walk(self.file, size, BLOCK, self.watch)?, Vec::new()));
        };
        let total = size;
        let stop_only = |_| (self.watch)(ExamineProgress { bytes: from.min(total), total });
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

    /// Changes the file as `edit` says. Returns the path of the sidecar, if there is one.
    fn change(
        &self,
        edit: &TailEdit,
        examined: &Metadata,
    ) -> Result<Attempt<Option<PathBuf>>, RepairError> {
        let mut sidecar = match edit.cut {
            Some(offset) if edit.action == Action::Quarantined => {
                match self.quarantine(offset, examined)? {
                    Attempt::Done(sidecar) => Some(sidecar),
                    Attempt::Changed => return Ok(Attempt::Changed),
                }
            }
            _ => None,
        };
        (self.watch)(ExamineProgress { bytes: examined.len(), total: examined.len() })?;
        if has_changed(examined, &metadata(self.file, self.path)?) {
            return Ok(Attempt::Changed);
        }
        if let Some(sidecar) = &mut sidecar {
            sidecar.is_needed = true;
        }
        self.apply(edit, examined.len())?;
        Ok(Attempt::Done(sidecar.map(|sidecar| sidecar.path.clone())))
    }

    /// Copies all bytes from `offset` on to a sidecar, which is durable when this returns.
    fn quarantine(
        &self,
        offset: u64,
        examined: &Metadata,
    ) -> Result<Attempt<Sidecar>, RepairError> {
        let (file, sidecar) = self.create_sidecar(offset, examined)?;
        let mut memory = Vec::new();
        let mut at = offset;
        while at < examined.len() {
            (self.watch)(ExamineProgress { bytes: at, total: examined.len() })?;
            let left = usize::try_from(examined.len() - at).unwrap_or(usize::MAX);
            memory.resize(left.min(LARGE_BLOCK), 0);
            let block = memory.as_mut_slice();
            match fill(self.file, block, at) {
                Err(ExamineError::Shrunk) => return Ok(Attempt::Changed),
                outcome => outcome.map_err(|error| self.examine_error(error))?,
            }
            write_at(&file, block, at - offset, &sidecar.path)?;
            at += block.len() as u64;
        }
        sync(&file, self.settings.durability, &sidecar.path)?;
        drop(file);
        sync_folder_of(&sidecar.path, self.settings.durability)?;
        Ok(Attempt::Done(sidecar))
    }

    /// Creates a sidecar beside the real file, with the first name that is free.
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

    fn apply(&self, edit: &TailEdit, size: u64) -> Result<(), RepairError> {
        if let Some(cut) = edit.cut {
            self.file.set_len(cut).map_err(failed("ftruncate", self.path))?;
        }
        if edit.adds_newline {
            write_at(self.file, b"\n", edit.cut.unwrap_or(size), self.path)?;
        }
        Ok(sync(self.file, self.settings.durability, self.path)?)
    }
}

/// Recognizes writes of programs without the lock: they change the size or at least the time.
fn has_changed(examined: &Metadata, now: &Metadata) -> bool {
    examined.len() != now.len() || examined.modified().ok() != now.modified().ok()
}

/// Copy of the torn bytes. Dropping it removes it, unless `is_needed`.
struct Sidecar {
    path: PathBuf,
    is_needed: bool,
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        if !self.is_needed {
            // The torn bytes are still in the file, and the caller gets the error that led here.
            let _ = uninterrupted(|| fs::remove_file(&self.path));
        }
    }
}
