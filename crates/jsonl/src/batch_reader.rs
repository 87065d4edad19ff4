//! Reads a file batch by batch for JavaScript. Runs in tasks; `crates/binding/read.rs` calls it.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::batch_writer::{BatchWriter, RowCopy, RowSelection};
use crate::batches::RowBatches;
use crate::file::{FileError, open_to_read};
use crate::last::{LastSettings, last};
use crate::progress::{ExamineError, Interrupt, PollFn};

/// Bytes of values after which a batch ends. JavaScript parses them at once, so larger texts would block the event loop.
const LARGEST_TEXT: usize = 256 << 10;
/// Bytes of one read at most. A block of this size is still in the cache when its rows are checked.
const LARGEST_BLOCK: usize = 512 << 10;
/// Bytes of one read from the end of the file.
const LAST_BLOCK: usize = 256 << 10;

/// Which rows of a file to read, and how.
#[derive(Clone, Debug)]
pub struct ReadSettings {
    /// Offset to start at: 0, or the end of a row.
    pub from: u64,
    /// Read only this many rows from the end.
    pub last: Option<usize>,
    /// Most bytes of a row. Longer rows are bad.
    pub longest_row: u64,
    /// Bytes of the file that a batch of fields covers.
    pub batch_size: u64,
    /// UTF-16 units that a JavaScript string can hold.
    pub longest_text: usize,
    pub selection: RowSelection,
}

/// The rows of one file, read batch by batch. The file is opened by the first batch.
pub struct BatchReader {
    path: PathBuf,
    settings: ReadSettings,
    open: Option<(File, RowBatches)>,
    /// Copies to make of the last batch.
    copies: Vec<RowCopy>,
}

impl BatchReader {
    #[must_use]
    pub fn new(path: PathBuf, settings: ReadSettings) -> Self {
        Self { path, settings, open: None, copies: Vec::new() }
    }

    /// Returns the next batch as JSON text (see [`BatchWriter::finish`]), or `None` at the end of the file.
    ///
    /// # Errors
    /// [`BatchReadError`]. After an error the rest of the file is undefined.
    pub fn next_batch(&mut self, poll: PollFn<'_>) -> Result<Option<String>, BatchReadError> {
        let (file, rows) = match &mut self.open {
            Some(open) => open,
            None => self.open.insert(open(&self.path, &self.settings, poll)?),
        };
        let mut writer = BatchWriter::new(&self.settings.selection, poll);
        let start = rows.position();
        let has_rows = fill(&mut writer, file, rows, &self.settings, poll)
            .map_err(|error| BatchReadError::new(error, &self.path))?;
        if !has_rows {
            return Ok(None);
        }
        let (text, copies) = writer.finish(rows.position(), rows.end());
        self.copies = copies;
        if is_longer(&text, self.settings.longest_text) {
            return Err(BatchReadError::TooLong { offset: start });
        }
        Ok(Some(text))
    }

    /// Copies the bytes of the last batch to `memories`, whose sizes its text lists.
    ///
    /// # Errors
    /// [`Interrupt`] from `poll`.
    pub fn copy_rows(
        &mut self,
        memories: &mut [&mut [u8]],
        poll: PollFn<'_>,
    ) -> Result<(), Interrupt> {
        let copies = std::mem::take(&mut self.copies);
        let Some((_, rows)) = &self.open else { return Ok(()) };
        for RowCopy { memory, start, source } in copies {
            poll()?;
            let bytes = source.bytes(rows.memory());
            let memory = memories.get_mut(memory).map(|memory| &mut **memory).unwrap_or_default();
            if let Some(target) = memory.get_mut(start..start + bytes.len()) {
                target.copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    /// Closes the file and frees the memory.
    pub fn close(&mut self) {
        self.open = None;
        self.copies = Vec::new();
    }
}

fn open(
    path: &Path,
    settings: &ReadSettings,
    poll: PollFn<'_>,
) -> Result<(File, RowBatches), BatchReadError> {
    let (file, size) = open_to_read(path)?;
    let block = usize::try_from(settings.batch_size).unwrap_or(usize::MAX).min(LARGEST_BLOCK);
    let longest = settings.longest_row;
    let Some(count) = settings.last else {
        return Ok((file, RowBatches::new(settings.from, size, block).bounded(longest)));
    };
    let wanted = LastSettings { count, from: settings.from, longest, block: LAST_BLOCK };
    let (start, skipped) = last(&file, size, wanted, checking(poll))
        .map_err(|error| BatchReadError::new(error, path))?;
    Ok((file, RowBatches::new(start, size, block).bounded(longest).skipping(skipped)))
}

/// Reads blocks until the batch is large enough. Returns false at the end of the file.
fn fill(
    writer: &mut BatchWriter<'_>,
    file: &File,
    rows: &mut RowBatches,
    settings: &ReadSettings,
    poll: PollFn<'_>,
) -> Result<bool, ExamineError> {
    // Rows of bytes stay in the block until they are copied: their batch is one block.
    let covers_blocks = matches!(settings.selection, RowSelection::Fields(_));
    let most = if covers_blocks { settings.batch_size } else { 0 };
    let start = rows.position();
    loop {
        let has_rows = rows.batch(file, writer, checking(poll))?;
        if !has_rows {
            return Ok(start < rows.position());
        }
        if most <= rows.position() - start || LARGEST_TEXT <= writer.size() {
            return Ok(true);
        }
    }
}

pub(crate) fn checking(poll: PollFn<'_>) -> impl FnMut() -> Result<(), ExamineError> {
    move || Ok(poll()?)
}

/// Compares the length in UTF-16 units, which is at most the length in bytes.
fn is_longer(text: &str, most: usize) -> bool {
    most < text.len() && most < text.encode_utf16().count()
}

/// Why rows could not be read.
#[derive(Debug)]
pub enum BatchReadError {
    File(FileError),
    /// A row, from a batch that starts at `offset`, is longer than a JavaScript string can be.
    TooLong {
        offset: u64,
    },
    /// `poll` ended the work.
    Stopped,
    /// The file became shorter, or its rows contradict the judge.
    Internal(ExamineError),
}

impl BatchReadError {
    pub(crate) fn new(error: ExamineError, path: &Path) -> Self {
        match error {
            ExamineError::Stopped => Self::Stopped,
            ExamineError::Read(source) => {
                Self::File(FileError { syscall: "read", path: path.to_owned(), source })
            }
            error => Self::Internal(error),
        }
    }
}

impl From<FileError> for BatchReadError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl fmt::Display for BatchReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::TooLong { offset } => {
                write!(f, "a row from byte {offset} on is longer than a string can be")
            }
            Self::Stopped => f.write_str("stopped"),
            Self::Internal(error) => error.fmt(f),
        }
    }
}

impl Error for BatchReadError {}
