//! Appends rows to a file: only whole rows, durable before they are acknowledged. Runs in tasks, and on the JS thread in
//! `flushSync`; `crates/binding/log.rs` calls it.

use std::fs::File;
use std::io;
use std::mem;
use std::path::PathBuf;

use memchr::{memchr, memrchr};

use crate::file::{FileError, close, failed, sync_folder_of, uninterrupted};
use crate::repair::SyncLevel;

/// Storage that a log writes to: a file, or in tests a disk that fails.
pub trait Medium {
    /// Appends a first part of `bytes`. Returns its length.
    ///
    /// # Errors
    /// Errors of `write(2)`.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns the offset behind the last byte that was appended.
    ///
    /// # Errors
    /// Errors of `lseek(2)`.
    fn position(&mut self) -> io::Result<u64>;

    /// # Errors
    /// Errors of `fstat(2)`.
    fn size(&mut self) -> io::Result<u64>;

    /// # Errors
    /// Errors of `ftruncate(2)`.
    fn cut(&mut self, size: u64) -> io::Result<()>;

    /// # Errors
    /// Errors of `fdatasync(2)` and `fsync(2)`.
    fn sync(&mut self, durability: SyncLevel) -> io::Result<()>;
}

/// Appends to an open file.
impl Medium for File {
    #[cfg(unix)]
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(self, bytes)
    }

    #[cfg(not(unix))]
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::Seek::seek(self, io::SeekFrom::End(0))?;
        io::Write::write(self, bytes)
    }

    fn position(&mut self) -> io::Result<u64> {
        uninterrupted(|| io::Seek::stream_position(self))
    }

    fn size(&mut self) -> io::Result<u64> {
        Ok(uninterrupted(|| self.metadata())?.len())
    }

    fn cut(&mut self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn sync(&mut self, durability: SyncLevel) -> io::Result<()> {
        durability.sync(self)
    }
}

/// A file that rows are appended to. It must not be used after an error: the system may have lost bytes that it did not write
/// or sync.
pub struct Log<M = File> {
    medium: M,
    path: PathBuf,
    /// Paths of the file and of the folders created for it whose names are not synced yet.
    unsynced_names: Vec<PathBuf>,
    durability: SyncLevel,
    /// Bytes of one write at most; a longer row is one write.
    most: usize,
    /// The file has rows that are not synced.
    is_dirty: bool,
    counts: SyscallCounts,
}

/// Numbers of system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyscallCounts {
    pub writes: u64,
    pub syncs: u64,
}

/// Result of appending rows.
#[derive(Debug, Default)]
pub struct AppendResult {
    /// Offset of the first row.
    pub offset: u64,
    /// Bytes of the rows that are in the file, at the durability of the log.
    pub len: usize,
    /// Why the other rows are not in the file.
    pub error: Option<FileError>,
}

impl<M: Medium> Log<M> {
    /// Appends to a medium that ends with a whole row, in writes of `most` bytes.
    pub fn new(medium: M, path: PathBuf, durability: SyncLevel, most: usize) -> Self {
        Self {
            medium,
            path,
            unsynced_names: Vec::new(),
            durability,
            most,
            is_dirty: false,
            counts: SyscallCounts::default(),
        }
    }

    /// Adds paths whose names the first flush syncs.
    #[must_use]
    pub fn with_unsynced_names(self, unsynced_names: Vec<PathBuf>) -> Self {
        Self { unsynced_names, ..self }
    }

    /// Returns the numbers of system calls so far.
    pub fn counts(&self) -> SyscallCounts {
        self.counts
    }

    /// Appends `rows`, each with its newline, in as few writes as `most` allows, and one sync.
    pub fn append(&mut self, rows: &[u8]) -> AppendResult {
        let (written, mut error) = self.write_all(rows);
        self.is_dirty |= 0 < written;
        let offset = match self.medium.position() {
            Ok(end) => end.saturating_sub(written as u64),
            Err(source) => {
                let error = error.unwrap_or_else(|| failed("lseek", &self.path)(source));
                return AppendResult { offset: 0, len: 0, error: Some(error) };
            }
        };
        let mut len = if error.is_none() { written } else { self.cut_back(rows, written, offset) };
        let is_synced = len == 0 || self.durability == SyncLevel::None;
        if !is_synced && let Err(failure) = self.sync(self.durability) {
            error.get_or_insert(failure);
            len = 0;
        }
        AppendResult { offset, len, error }
    }

    /// Appends the rows of a group, if it has any. Then flushes, if `flushes` and if nothing failed.
    pub fn append_group(&mut self, rows: &[u8], flushes: bool) -> AppendResult {
        let mut result = if rows.is_empty() { AppendResult::default() } else { self.append(rows) };
        if flushes && result.error.is_none() {
            result.error = self.flush().err();
        }
        result
    }

    /// Syncs all rows, at the durability of the log; with [`SyncLevel::None`], at [`SyncLevel::Data`]. Syncs names, too.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn flush(&mut self) -> Result<(), FileError> {
        if self.is_dirty {
            let weakest = SyncLevel::Data;
            let is_none = self.durability == SyncLevel::None;
            self.sync(if is_none { weakest } else { self.durability })?;
        }
        for path in mem::take(&mut self.unsynced_names) {
            self.counts.syncs += 1;
            sync_folder_of(&path, SyncLevel::Data)?;
        }
        Ok(())
    }

    /// Returns how many bytes were written, and why not all.
    fn write_all(&mut self, bytes: &[u8]) -> (usize, Option<FileError>) {
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            self.counts.writes += 1;
            let error = match self.medium.append(batch_of(rest, self.most)) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(len) => {
                    written += len;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            return (written, Some(failed("write", &self.path)(error)));
        }
        (written, None)
    }

    /// Cuts off a row that was not written as a whole. Returns the bytes of whole rows.
    fn cut_back(&mut self, rows: &[u8], written: usize, offset: u64) -> usize {
        let whole =
            rows.get(..written).and_then(|rows| memrchr(b'\n', rows)).map_or(0, |at| at + 1);
        let end = offset + written as u64;
        // Bytes that another writer appended without the lock stay. The next repair removes the torn row then, and also
        // where the cut fails: the caller gets the error of the write.
        if whole < written && self.medium.size().is_ok_and(|size| size == end) {
            let _ = self.medium.cut(offset + whole as u64);
        }
        whole
    }

    fn sync(&mut self, durability: SyncLevel) -> Result<(), FileError> {
        self.counts.syncs += 1;
        self.medium.sync(durability).map_err(failed(durability.syscall(), &self.path))?;
        self.is_dirty = false;
        Ok(())
    }
}

/// Returns as many whole rows as `most` bytes contain, at least one.
fn batch_of(rows: &[u8], most: usize) -> &[u8] {
    let (head, tail) = rows.split_at_checked(most).unwrap_or((rows, &[]));
    let end = match memrchr(b'\n', head) {
        _ if tail.is_empty() => rows.len(),
        Some(at) => at + 1,
        None => memchr(b'\n', tail).map_or(rows.len(), |at| most + at + 1),
    };
    rows.get(..end).unwrap_or(rows)
}

impl Log {
    /// Closes the file, which ends its lock. Only [`Self::flush`] syncs rows that are not durable yet.
    ///
    /// # Errors
    /// Errors of the system. A network file system may report a failed write here for the first time.
    pub fn close(self) -> Result<(), FileError> {
        close(self.medium).map_err(failed("close", &self.path))
    }
}
