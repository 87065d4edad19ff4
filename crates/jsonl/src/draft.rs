//! Writes a file beside the one it replaces, so that a crash leaves either the old one or the whole new one. Runs in tasks.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::file::{
    FileError, PRIVATE, close, create_new, failed, give_mode, give_owner, metadata_of, real_path,
    sync, sync_folder_of, uninterrupted,
};
use crate::repair::SyncLevel;

/// Mode of a file that replaces none, less the umask.
const DEFAULT_MODE: u32 = 0o666;

/// A temporary file that is to replace another. Dropping it before [`Self::commit`] removes it.
pub struct Draft {
    file: Option<File>,
    temporary: PathBuf,
    target: PathBuf,
    durability: SyncLevel,
    size: u64,
}

impl Draft {
    /// Creates the temporary file beside `path`, with `mode` or else the mode of the file at `path`.
    ///
    /// # Errors
    /// Errors of the system; the file at `path` must be a regular one.
    pub fn create(
        path: &Path,
        mode: Option<u32>,
        durability: SyncLevel,
    ) -> Result<Self, FileError> {
        let target = real_path(path)?;
        let replaced = metadata_of(&target)?;
        let created = mode.unwrap_or(if replaced.is_some() { PRIVATE } else { DEFAULT_MODE });
        let (file, temporary) = create_beside(&target, created)?;
        let draft = Self { file: Some(file), temporary, target, durability, size: 0 };
        draft.copy_owner(replaced.as_ref(), mode.is_none())?;
        Ok(draft)
    }

    /// Copies owner and mode of the replaced file.
    fn copy_owner(&self, replaced: Option<&Metadata>, has_its_mode: bool) -> Result<(), FileError> {
        let (Some(file), Some(replaced)) = (&self.file, replaced) else { return Ok(()) };
        give_owner(file, replaced);
        if has_its_mode { give_mode(file, replaced, &self.temporary) } else { Ok(()) }
    }

    /// Writes `bytes` at the end.
    ///
    /// # Errors
    /// Errors of the system. The draft is of no use then.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(bytes).map_err(failed("write", &self.target))?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Returns the bytes written so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Replaces the old file. Returns the size of the new one.
    ///
    /// # Errors
    /// Errors of the system. The old file is still there then, unless syncing the folder failed.
    pub fn commit(mut self) -> Result<u64, FileError> {
        let Some(file) = self.file.take() else { return Ok(0) };
        let written = sync(&file, self.durability, &self.target)
            .and_then(|()| close(file).map_err(failed("close", &self.target)))
            .and_then(|()| {
                uninterrupted(|| fs::rename(&self.temporary, &self.target))
                    .map_err(failed("rename", &self.target))
            });
        if let Err(error) = written {
            self.remove();
            return Err(error);
        }
        sync_folder_of(&self.target, self.durability)?;
        Ok(self.size)
    }

    fn remove(&self) {
        // The caller gets the error that led here.
        let _ = uninterrupted(|| fs::remove_file(&self.temporary));
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            self.remove();
        }
    }
}

/// Creates a file under a short name of its own: the name of `target` may already have the greatest length.
fn create_beside(target: &Path, mode: u32) -> Result<(File, PathBuf), FileError> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);

    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = target.with_file_name(format!(".offloop-{}-{number}.tmp", process::id()));
        match create_new(&path, mode) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}
