//! Writes a file in several calls and replaces the old one with it. Runs in tasks; `crates/binding/save.rs` calls it.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use crate::draft::Draft;
use crate::file::FileError;
use crate::repair::SyncLevel;

/// Bytes written between two polls.
const PIECE: usize = 4 << 20;

/// A file that is saved in one or more writes. The first write creates the draft, the last one commits it.
pub struct FileSaver {
    path: PathBuf,
    mode: Option<u32>,
    durability: SyncLevel,
    draft: Option<Draft>,
    /// Most bytes of the file.
    max_size: u64,
    is_last: bool,
}

/// The file would have more bytes than the caller allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTooLarge {
    pub max_size: u64,
}

impl fmt::Display for FileTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the file would have more than maxBytes, {}, bytes", self.max_size)
    }
}

impl Error for FileTooLarge {}

impl FileSaver {
    /// Creates nothing yet. `mode` and `durability` mean what they mean for [`Draft::create`].
    #[must_use]
    pub fn new(path: PathBuf, mode: Option<u32>, durability: SyncLevel) -> Self {
        Self { path, mode, durability, draft: None, max_size: u64::MAX, is_last: false }
    }

    /// Refuses a file of more than `max_size` bytes.
    pub fn bound(&mut self, max_size: u64) {
        self.max_size = max_size;
    }

    /// Makes the next write the last one.
    pub fn end(&mut self) {
        self.is_last = true;
    }

    /// Writes `blocks`. The last write replaces the old file and returns the size of the new one; other writes return `None`.
    ///
    /// `poll` is called before every 4 MiB, and once before the file is replaced.
    ///
    /// # Errors
    /// A file that would be too large, and errors of the system and of `poll`. An error removes the draft.
    pub fn write<'b, E: From<FileError> + From<FileTooLarge>>(
        &mut self,
        blocks: impl IntoIterator<Item = &'b [u8]>,
        poll: impl Fn() -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        let mut draft = match self.draft.take() {
            Some(draft) => draft,
            None => Draft::create(&self.path, self.mode, self.durability)?,
        };
        for piece in blocks.into_iter().flat_map(|block| block.chunks(PIECE)) {
            poll()?;
            if self.max_size < draft.size() + piece.len() as u64 {
                return Err(FileTooLarge { max_size: self.max_size }.into());
            }
            draft.write(piece)?;
        }
        poll()?;
        if self.is_last {
            return Ok(Some(draft.commit()?));
        }
        self.draft = Some(draft);
        Ok(None)
    }

    /// Removes the draft.
    pub fn discard(&mut self) {
        self.draft = None;
    }
}
