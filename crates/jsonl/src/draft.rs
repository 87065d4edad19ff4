//! A file written beside the one it replaces, so that a crash leaves either the old one or the whole new one.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::file::{
    FileError, PRIVATE, close, create_new, failed, give_mode, give_owner, metadata_of, real_path,
    sync, sync_folder_of, uninterrupted,
};
use crate::repair::Durability;

/// Less the umask.
const DEFAULT_MODE: u32 = 0o666;

/// What is written of a file. Dropped before it is committed, it was never there.
pub struct Draft {
    file: Option<File>,
    temporary: PathBuf,
    target: PathBuf,
    durability: Durability,
    size: u64,
}

impl Draft {
    /// Of a file to be at `path`: with `mode`, or else that of the file it replaces.
    ///
    /// # Errors
    /// Where no file can be created beside that one, or it is none that can be replaced.
    pub fn create(
        path: &Path,
        mode: Option<u32>,
        durability: Durability,
    ) -> Result<Self, FileError> {
        let target = real_path(path)?;
        let replaced = metadata_of(&target)?;
        let created = mode.unwrap_or(if replaced.is_some() { PRIVATE } else { DEFAULT_MODE });
        let (file, temporary) = create_beside(&target, created)?;
        let draft = Self { file: Some(file), temporary, target, durability, size: 0 };
        draft.take_after(replaced.as_ref(), mode.is_none())?;
        Ok(draft)
    }

    /// Whose it is, and who may read it.
    fn take_after(&self, replaced: Option<&Metadata>, has_its_mode: bool) -> Result<(), FileError> {
        let (Some(file), Some(replaced)) = (&self.file, replaced) else { return Ok(()) };
        give_owner(file, replaced);
        if has_its_mode { give_mode(file, replaced, &self.temporary) } else { Ok(()) }
    }

    /// Writes more of it.
    ///
    /// # Errors
    /// The system's. What was written is then of no use.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(bytes).map_err(failed("write", &self.target))?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Puts it in the place of the old one. Tells how many bytes it has.
    ///
    /// # Errors
    /// The system's. Then the old file is still there; unless it was the name of the new one that could not be synced.
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
        // Why it came to nothing is what the caller is told.
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

/// Under a name of its own, as long as any: the file's own may be as long as names can be.
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
