//! Rows on their way to the end of a file: whole ones only, and durable before they are acknowledged.

use std::fs::File;
use std::io;
use std::mem;
use std::path::PathBuf;

use memchr::{memchr, memchr_iter, memrchr};

use crate::file::{FileError, close, failed, sync_folder_of, uninterrupted};
use crate::repair::Durability;

/// What a log writes to.
pub trait Medium {
    /// Writes behind everything that is there, some of `bytes` at least.
    ///
    /// # Errors
    /// Those of `write(2)`.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Where the last byte that was appended ends.
    ///
    /// # Errors
    /// Those of `lseek(2)`.
    fn position(&mut self) -> io::Result<u64>;

    /// # Errors
    /// Those of `fstat(2)`.
    fn size(&mut self) -> io::Result<u64>;

    /// # Errors
    /// Those of `ftruncate(2)`.
    fn cut(&mut self, size: u64) -> io::Result<()>;

    /// # Errors
    /// Those of `fdatasync(2)` and `fsync(2)`.
    fn sync(&mut self, durability: Durability) -> io::Result<()>;
}

/// A file open for append.
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

    fn sync(&mut self, durability: Durability) -> io::Result<()> {
        durability.sync(self)
    }
}

/// A file that rows are appended to. After an error it is not to be used any more: what the system did not write, or sync, it
/// may have forgotten.
pub struct Log<M = File> {
    medium: M,
    path: PathBuf,
    /// Its name and those of the folders created for it, where nobody has synced them yet.
    unsynced_names: Vec<PathBuf>,
    durability: Durability,
    /// Bytes of one write, where a row is not longer.
    most: usize,
    /// Rows were written since the last sync.
    is_dirty: bool,
    counts: Counts,
}

/// System calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub writes: u64,
    pub syncs: u64,
}

/// What became of rows.
#[derive(Debug)]
pub struct Appended {
    /// Where the first of them stands.
    pub offset: u64,
    /// Bytes of those that are in the file, as durably as was asked for.
    pub len: usize,
    /// Why the others are not.
    pub error: Option<FileError>,
}

/// Where each row ends, behind its newline.
pub fn ends_of(rows: &[u8]) -> impl Iterator<Item = usize> {
    memchr_iter(b'\n', rows).map(|at| at + 1)
}

impl<M: Medium> Log<M> {
    /// Of a medium that ends with a whole row.
    pub fn new(medium: M, path: PathBuf, durability: Durability, most: usize) -> Self {
        Self {
            medium,
            path,
            unsynced_names: Vec::new(),
            durability,
            most,
            is_dirty: false,
            counts: Counts::default(),
        }
    }

    /// The names are to be synced with the first flush.
    #[must_use]
    pub fn with_unsynced_names(self, unsynced_names: Vec<PathBuf>) -> Self {
        Self { unsynced_names, ..self }
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Appends `rows`, each with its newline, in as few writes as are allowed, and one sync.
    pub fn append(&mut self, rows: &[u8]) -> Appended {
        let (written, mut error) = self.write_all(rows);
        self.is_dirty |= 0 < written;
        let offset = match self.medium.position() {
            Ok(end) => end.saturating_sub(written as u64),
            Err(source) => {
                let error = error.unwrap_or_else(|| failed("lseek", &self.path)(source));
                return Appended { offset: 0, len: 0, error: Some(error) };
            }
        };
        let mut len = if error.is_none() { written } else { self.cut_back(rows, written, offset) };
        let is_synced = len == 0 || self.durability == Durability::None;
        if !is_synced && let Err(failure) = self.sync(self.durability) {
            error.get_or_insert(failure);
            len = 0;
        }
        Appended { offset, len, error }
    }

    /// Makes everything that was appended durable, as much as was asked for; where that is not at all, its data.
    ///
    /// # Errors
    /// The system's.
    pub fn flush(&mut self) -> Result<(), FileError> {
        if self.is_dirty {
            let weakest = Durability::Data;
            let is_none = self.durability == Durability::None;
            self.sync(if is_none { weakest } else { self.durability })?;
        }
        for path in mem::take(&mut self.unsynced_names) {
            self.counts.syncs += 1;
            sync_folder_of(&path, Durability::Data)?;
        }
        Ok(())
    }

    /// Tells how much of `bytes` is written, and why that is not all.
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

    /// Takes back what was written of a row that is not whole. Tells how many bytes of whole rows there are.
    fn cut_back(&mut self, rows: &[u8], written: usize, offset: u64) -> usize {
        let whole =
            rows.get(..written).and_then(|rows| memrchr(b'\n', rows)).map_or(0, |at| at + 1);
        let end = offset + written as u64;
        // What somebody else appended, without the lock, stays. The torn row is then for a repair, as it is where the cut
        // fails too: the error of the write is what the caller is told.
        if whole < written && self.medium.size().is_ok_and(|size| size == end) {
            let _ = self.medium.cut(offset + whole as u64);
        }
        whole
    }

    fn sync(&mut self, durability: Durability) -> Result<(), FileError> {
        self.counts.syncs += 1;
        self.medium.sync(durability).map_err(failed(durability.syscall(), &self.path))?;
        self.is_dirty = false;
        Ok(())
    }
}

/// As many whole rows as `most` bytes hold, one at least.
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
    /// Lets go of the file and its lock. What is not durable yet becomes so only by [`Self::flush`].
    ///
    /// # Errors
    /// The system's: where it is that of a network, the first it tells of a write.
    pub fn close(self) -> Result<(), FileError> {
        close(self.medium).map_err(failed("close", &self.path))
    }
}
