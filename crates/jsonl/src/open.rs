//! Opens a log: creates it where it is missing, takes its lock, repairs it, and makes its name durable.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::examine::Watch;
use crate::file::{
    FileError, failed, metadata, open_to_append, real_path, sync_folder_of, uninterrupted,
};
use crate::lock::lock;
use crate::log::Log;
use crate::plan::{Action, Policy};
use crate::repair::{Durability, RepairError, Report, Settings, repair_file};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Of the repair, where there is to be one.
    pub policy: Option<Policy>,
    pub durability: Durability,
    pub locks: bool,
    /// Of a file that is created.
    pub mode: u32,
    /// Bytes of one write.
    pub batch: usize,
}

/// The log at `path`, and what its repair was.
///
/// # Errors
/// What keeps it from being opened or repaired.
pub fn open_log(
    path: &Path,
    settings: LogSettings,
    watch: Watch<'_>,
) -> Result<(Log, Report), RepairError> {
    let Opened { file, folders } = open_locked(path, settings)?;
    let report = match settings.policy {
        None => untouched(metadata(&file, path)?.len()),
        Some(policy) => repair_file(&file, path, &repair_settings(policy, settings), watch)?,
    };
    // A process that created the file may have died before it synced the name: so that is done for files that were there, too.
    let mut names = folders;
    names.push(real_path(path)?);
    if settings.durability != Durability::None {
        for name in names.drain(..) {
            sync_folder_of(&name, settings.durability)?;
        }
    }
    let log = Log::new(file, path.to_owned(), settings.durability, settings.batch);
    Ok((log.with_unsynced_names(names), report))
}

fn repair_settings(policy: Policy, settings: LogSettings) -> Settings {
    let LogSettings { durability, locks, .. } = settings;
    Settings { policy, verify_from: None, durability, locks }
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

struct Opened {
    file: File,
    /// Those that were created for it, the outermost first.
    folders: Vec<PathBuf>,
}

/// A file that was replaced as often before its lock was had is one that others want.
const MOST_TRIES: usize = 16;

/// The lock is of the file, not of the name: somebody may have given that to another file meanwhile.
fn open_locked(path: &Path, settings: LogSettings) -> Result<Opened, RepairError> {
    let mut folders = Vec::new();
    for _ in 0..MOST_TRIES {
        let file = open_or_create(path, settings.mode, &mut folders)?;
        let opened = metadata(&file, path)?;
        if !settings.locks {
            return Ok(Opened { file, folders });
        }
        if !lock(&file, path)? {
            return Err(RepairError::Locked);
        }
        match uninterrupted(|| fs::metadata(path)) {
            Ok(named) if is_same(&opened, &named) => return Ok(Opened { file, folders }),
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

/// A file that is open cannot lose its name there.
#[cfg(not(unix))]
fn is_same(_opened: &Metadata, _named: &Metadata) -> bool {
    true
}

fn open_or_create(path: &Path, mode: u32, folders: &mut Vec<PathBuf>) -> Result<File, FileError> {
    match open_to_append(path, mode) {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    // A link that leads nowhere is created where it leads to.
    if let Some(folder) = real_path(path)?.parent() {
        create_folders(folder, folders)?;
    }
    open_to_append(path, mode)
}

/// As `mkdir -p`; adds to `created`, the outermost first.
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
            // By somebody else, who may not sync it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => return Err(failed("mkdir", folder)(error)),
        }
        created.push(folder.to_owned());
    }
    Ok(())
}
