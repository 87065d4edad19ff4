//! Counts the rows of a file and the values of their fields. Runs in tasks; `crates/binding/read.rs` calls it.

use std::path::PathBuf;

use crate::batch_reader::{BatchReadError, checking};
use crate::batches::{RowBatches, RowSlice, RowVisitor};
use crate::census::Census;
use crate::field_reader::count_fields;
use crate::fields::FieldTree;
use crate::file::open_to_read;
use crate::judge::RowCause;
use crate::progress::{Interrupt, PollFn};
use crate::standard::standard_polled;

/// Bytes of one read.
const BLOCK: usize = 1 << 20;

/// Which file to scan, and how.
#[derive(Clone, Debug)]
pub struct ScanSettings {
    pub path: PathBuf,
    /// Count the values of all fields, not only the keys at the top of rows.
    pub has_stats: bool,
}

/// Counts the rows of a file. Returns the JSON of [`Census::describe`], or of `FieldScan::describe` with statistics.
///
/// `on_progress` gets the bytes read, all bytes, and the rows, after each block.
///
/// # Errors
/// [`BatchReadError`].
pub fn describe_rows(
    settings: &ScanSettings,
    poll: PollFn<'_>,
    on_progress: impl Fn(u64, u64, u64),
) -> Result<String, BatchReadError> {
    let (file, size) = open_to_read(&settings.path)?;
    let mut rows = RowBatches::new(0, size, BLOCK);
    let mut counter = if settings.has_stats {
        RowCounter::Fields(FieldScan::new(poll))
    } else {
        RowCounter::Keys(Census::default())
    };
    while rows
        .batch(&file, counter.visitor(), checking(poll))
        .map_err(|error| BatchReadError::new(error, &settings.path))?
    {
        on_progress(rows.position(), rows.end(), counter.rows());
    }
    Ok(counter.describe(rows.end()))
}

/// Counts of a scan.
enum RowCounter<'a> {
    Keys(Census),
    Fields(FieldScan<'a>),
}

impl<'a> RowCounter<'a> {
    fn rows(&self) -> u64 {
        match self {
            Self::Keys(census) => census.rows,
            Self::Fields(scan) => scan.census.rows,
        }
    }

    fn describe(&self, size: u64) -> String {
        match self {
            Self::Keys(census) => census.describe(size),
            Self::Fields(scan) => scan.describe(size),
        }
    }

    fn visitor(&mut self) -> &mut (dyn RowVisitor + 'a) {
        match self {
            Self::Keys(census) => census,
            Self::Fields(scan) => scan,
        }
    }
}

/// Visitor that counts rows and the values of their fields.
struct FieldScan<'a> {
    census: Census,
    tree: FieldTree,
    poll: PollFn<'a>,
}

impl<'a> FieldScan<'a> {
    fn new(poll: PollFn<'a>) -> Self {
        Self { census: Census::default(), tree: FieldTree::default(), poll }
    }

    /// Returns the counts of a file of `size` bytes as JSON: `[census, fields, others]`. See [`Census::describe`], whose
    /// keys stay empty, and `FieldTree::describe`.
    fn describe(&self, size: u64) -> String {
        format!("[{},{}]", self.census.describe(size), self.tree.describe())
    }

    fn count(&mut self, json: &[u8], mark: &str, row: &RowSlice<'_>) -> Result<bool, Interrupt> {
        if !count_fields(json, mark, &mut self.tree, self.poll)? {
            return Ok(false);
        }
        self.census.rows += 1;
        let len = row.bytes.len() as u64;
        if self.census.biggest.is_none_or(|(_, most)| most < len) {
            self.census.biggest = Some((row.offset, len));
        }
        Ok(true)
    }

    fn count_other(&mut self, row: &RowSlice<'_>) -> Result<bool, Interrupt> {
        let (json, mark) = standard_polled(row.bytes, self.poll)?;
        self.count(&json, &mark, row)
    }
}

impl RowVisitor for FieldScan<'_> {
    fn standard(&mut self, row: RowSlice<'_>) -> bool {
        // A row in which `poll` failed is not looked at again.
        self.count(row.bytes, "", &row).unwrap_or(true)
    }

    fn other(&mut self, row: RowSlice<'_>) {
        // The next poll returns the error again.
        let _ = self.count_other(&row);
    }

    fn bad(&mut self, offset: u64, len: u64, cause: RowCause) {
        self.census.bad(offset, len, cause);
    }
}
