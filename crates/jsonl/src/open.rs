//! Opens a log: creates a missing file, takes its lock, repairs it, syncs its name. Runs in tasks; `crates/binding/log.rs`
//! calls it.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::edit::{Action, Policy};
use crate::file::{
    FileError, failed, metadata, open_to_append, real_path, sync_folder_of, uninterrupted,
};
use crate::lock::lock;
use crate::log::Log;
use crate::progress::ProgressFn;
use crate::repair::{RepairError, RepairSettings, Report, SyncLevel, repair_file};

/// How to open a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Policy of the repair; without it, the file is not repaired.
    pub policy: Option<Policy>,
    pub durability: SyncLevel,
    pub locks: bool,
    /// Mode of a new file.
    pub mode: u32,
    /// Bytes of one write.
    pub batch: usize,
}

/// Opens the log at `path`. Returns the report of its repair, too.
///
/// # Errors
/// Errors of opening and of the repair.
pub fn open_log(
    path: &Path,
    settings: LogSettings,
    watch: ProgressFn<'_>,
) -> Result<(Log, Report), RepairError> {
    let LockedFile { file, folders } = open_locked(path, settings)?;
    let report = match settings.policy {
        None => untouched(metadata(&file, path)?.len()),
        Some(policy) => repair_file(&file, path, &repair_settings(policy, settings), watch)?,
    };
    // The process that created the file may have died before it synced the name. So names of old files are synced, too.
    let mut names = folders;
    names.push(real_path(path)?);
    if settings.durability != SyncLevel::None {
        for name in names.drain(..) {
            sync_folder_of(&name, settings.durability)?;
        }
    }
    let log = Log::new(file, path.to_owned(), settings.durability, settings.batch);
    Ok((log.with_unsynced_names(names), report))
}

fn repair_settings(policy: Policy, settings: LogSettings) -> RepairSettings {
    let LogSettings { durability, locks, .. } = settings;
    RepairSettings { policy, verify_from: None, durability, locks }
}

fn untouched(size: u64) -> Report {
    Report {
        action: Action::None,
        cause: None,
        size_before: size,
        size,
        offset: None,
        sidecar: None,
        bad_rows: Vec::new(),
    }
}

struct LockedFile {
    file: File,
    /// Folders that were created for the file, the outermost first.
    folders: Vec<PathBuf>,
}

/// Number of attempts to lock a file that other programs replace meanwhile.
const MOST_TRIES: usize = 16;

/// Opens and locks the file. The lock belongs to the file, not to the name: a file that lost its name meanwhile is opened again.
fn open_locked(path: &Path, settings: LogSettings) -> Result<LockedFile, RepairError> {
    let mut folders = Vec::new();
    for _ in 0..MOST_TRIES {
        let file = open_or_create(path, settings.mode, &mut folders)?;
        let opened = metadata(&file, path)?;
        if !settings.locks {
            return Ok(LockedFile { file, folders });
        }
        if !lock(&file, path)? {
            return Err(RepairError::Locked);
        }
        match uninterrupted(|| fs::metadata(path)) {
            Ok(named) if is_same(&opened, &named) => return Ok(LockedFile { file, folders }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("stat", path)(error).into()),
        }
    }
    Err(RepairError::Locked)
}

#[cfg(unix)]
fn is_same(opened: &Metadata, named: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    (opened.dev(), opened.ino()) == (named.dev(), named.ino())
}

/// Returns true: an open file cannot lose its name on such systems.
#[cfg(not(unix))]
fn is_same(_opened: &Metadata, _named: &Metadata) -> bool {
    true
}

fn open_or_create(path: &Path, mode: u32, folders: &mut Vec<PathBuf>) -> Result<File, FileError> {
    match open_to_append(path, mode) {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    // Opening a link to a missing file creates the file at the target of the link.
    if let Some(folder) = real_path(path)?.parent() {
        create_folders(folder, folders)?;
    }
    open_to_append(path, mode)
}

/// Creates missing folders like `mkdir -p`. Adds them to `created`, the outermost first.
fn create_folders(folder: &Path, created: &mut Vec<PathBuf>) -> Result<(), FileError> {
    let mut missing = Vec::new();
    for ancestor in folder.ancestors() {
        if ancestor.as_os_str().is_empty() || ancestor.is_dir() {
            break;
        }
        missing.push(ancestor);
    }
    for folder in missing.into_iter().rev() {
        match uninterrupted(|| fs::create_dir(folder)) {
            Ok(()) => {}
            // Another program created the folder, and may not sync it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => return Err(failed("mkdir", folder)(error)),
        }
        created.push(folder.to_owned());
    }
    Ok(())
}
