//! Writes a batch of rows as JSON text for JavaScript, which parses it: that costs less than creating its objects one by one.
//! Runs in tasks; `batch_reader` calls it.

use std::io::Write;
use std::ops::Range;

use offloop_grammar::{ReadError, read};

use crate::batches::{RowSlice, RowVisitor};
use crate::judge::RowCause;
use crate::pick::{Fields, pick_polled};
use crate::progress::{Interrupt, PollFn};
use crate::standard::standard_polled;

/// Parts of each row that JavaScript gets.
#[derive(Clone, Debug)]
pub enum RowSelection {
    /// Values at JSON Pointers.
    Fields(Fields),
    /// All bytes. A row of at least `own` bytes gets memory of its own; shorter rows share one memory.
    Bytes { own: usize },
    /// Like [`Self::Bytes`], but as JSON: rows that `JSON.parse` refuses are rewritten (see [`standard_polled`]).
    Json { own: usize },
}

/// Visitor that collects the rows of a batch in columns, since lists of numbers are parsed fastest.
///
/// [`Self::finish`] shows the text.
pub struct BatchWriter<'a> {
    wanted: &'a RowSelection,
    poll: PollFn<'a>,
    columns: Vec<Column>,
    rows: usize,
    /// Row and field of each absent value.
    absent: Column,
    /// Row and mark of each row whose numbers JSON cannot write: strings that begin with the mark stand for them.
    marks: Column,
    /// Offset, length and cause of each bad row.
    bad: Column,
    /// Sizes of the memories to allocate: first the shared one, then one for each long row.
    sizes: Vec<usize>,
    places: Vec<RowCopy>,
}

/// Copy of a row's bytes to the memory that JavaScript allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowCopy {
    /// Index of the target memory.
    pub memory: usize,
    /// Start of the row in the target memory.
    pub start: usize,
    pub source: RowSource,
}

/// Bytes to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowSource {
    /// Range in the memory of the batch.
    Batch(Range<usize>),
    /// JSON that the row was rewritten as.
    Json(Vec<u8>),
}

impl RowSource {
    fn of(row: &RowSlice<'_>) -> Self {
        Self::Batch(row.start..row.start + row.bytes.len())
    }

    fn len(&self) -> usize {
        match self {
            Self::Batch(range) => range.len(),
            Self::Json(json) => json.len(),
        }
    }

    pub(crate) fn bytes<'a>(&'a self, batch: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Batch(range) => batch.get(range.clone()).unwrap_or_default(),
            Self::Json(json) => json,
        }
    }
}

impl<'a> BatchWriter<'a> {
    /// If `poll` fails, the row that called it is left out: the caller must poll again and end the batch.
    #[must_use]
    pub fn new(wanted: &'a RowSelection, poll: PollFn<'a>) -> Self {
        let columns = match wanted {
            RowSelection::Fields(fields) => 2 + fields.len(),
            RowSelection::Bytes { .. } => 4,
            RowSelection::Json { .. } => 5,
        };
        Self {
            wanted,
            poll,
            columns: vec![Column::default(); columns],
            rows: 0,
            absent: Column::default(),
            marks: Column::default(),
            bad: Column::default(),
            sizes: vec![0],
            places: Vec::new(),
        }
    }

    /// Returns the bytes of all columns so far.
    #[must_use]
    pub fn size(&self) -> usize {
        self.columns.iter().map(|column| column.0.len()).sum()
    }

    /// Returns the text and the copies to make. `position` and `size` say how far the file is read.
    ///
    /// | item of the text | content |
    /// |---|---|
    /// | columns | offsets; lengths; then the values of each field, or for bytes: memories and starts; then for JSON: sizes |
    /// | absent | row, field, row, field, … |
    /// | marks | row, mark, row, mark, … |
    /// | bad | offset, length, cause, … |
    /// | sizes | bytes of each memory |
    /// | position, size | bytes |
    ///
    /// Two rows with one field, of which the second lacks it: `[[[0,8],[7,7],[1,null]],[1,0],[],[],[0],16,24]`.
    #[must_use]
    pub fn finish(self, position: u64, size: u64) -> (String, Vec<RowCopy>) {
        let mut columns = Column::default();
        for column in &self.columns {
            columns.list(column);
        }
        let mut sizes = Column::default();
        for size in &self.sizes {
            sizes.number(*size as u64);
        }
        let mut all = Column::default();
        for part in [&columns, &self.absent, &self.marks, &self.bad, &sizes] {
            all.list(part);
        }
        all.number(position);
        all.number(size);
        let text = [b"[", &*all.0, b"]"].concat();
        // The text is UTF-8: values were checked, all else is made of strings and numbers.
        (String::from_utf8_lossy(&text).into_owned(), self.places)
    }

    fn begin(&mut self, row: &RowSlice<'_>) {
        self.rows += 1;
        if let [offsets, lengths, ..] = &mut *self.columns {
            offsets.number(row.offset);
            lengths.number(row.bytes.len() as u64);
        }
    }

    fn values(&mut self, json: &[u8], found: &[Option<Range<usize>>]) {
        let columns = self.columns.iter_mut().skip(2);
        for (field, (column, range)) in columns.zip(found).enumerate() {
            let value = range.clone().and_then(|range| json.get(range));
            column.value(value.unwrap_or(b"null"));
            if value.is_none() {
                self.absent.number(self.rows as u64 - 1);
                self.absent.number(field as u64);
            }
        }
    }

    fn mark(&mut self, mark: &str) {
        self.marks.number(self.rows as u64 - 1);
        self.marks.text(mark);
    }

    fn bytes(&mut self, source: RowSource, own: usize) {
        let len = source.len();
        let (memory, start) = if len < own {
            let shared = self.sizes.first_mut();
            (0, shared.map_or(0, |size| std::mem::replace(size, *size + len)))
        } else {
            self.sizes.push(len);
            (self.sizes.len() - 1, 0)
        };
        for (column, number) in self.columns.iter_mut().skip(2).zip([memory, start, len]) {
            column.number(number as u64);
        }
        self.places.push(RowCopy { memory, start, source });
    }
}

impl BatchWriter<'_> {
    /// Adds the row if it is JSON. Returns whether it is.
    fn add_standard(&mut self, row: &RowSlice<'_>) -> Result<bool, Interrupt> {
        match self.wanted {
            RowSelection::Fields(fields) => {
                let Some(found) = pick_polled(row.bytes, fields, self.poll)? else {
                    return Ok(false);
                };
                self.begin(row);
                self.values(row.bytes, &found);
            }
            RowSelection::Bytes { own } | RowSelection::Json { own } => {
                if !is_json(row.bytes, self.poll)? {
                    return Ok(false);
                }
                self.begin(row);
                self.bytes(RowSource::of(row), *own);
            }
        }
        Ok(true)
    }

    fn add_other(&mut self, row: &RowSlice<'_>) -> Result<(), Interrupt> {
        match self.wanted {
            RowSelection::Fields(fields) => {
                let (json, mark) = standard_polled(row.bytes, self.poll)?;
                let found = pick_polled(&json, fields, self.poll)?.unwrap_or_default();
                self.begin(row);
                self.values(&json, &found);
                self.mark(&mark);
            }
            RowSelection::Json { own } => {
                let (json, mark) = standard_polled(row.bytes, self.poll)?;
                self.begin(row);
                self.bytes(RowSource::Json(json), *own);
                self.mark(&mark);
            }
            RowSelection::Bytes { own } => {
                self.begin(row);
                self.bytes(RowSource::of(row), *own);
            }
        }
        Ok(())
    }
}

impl RowVisitor for BatchWriter<'_> {
    fn standard(&mut self, row: RowSlice<'_>) -> bool {
        // A row in which `poll` failed is not looked at again.
        self.add_standard(&row).unwrap_or(true)
    }

    fn other(&mut self, row: RowSlice<'_>) {
        // The next poll returns the error again.
        let _ = self.add_other(&row);
    }

    fn bad(&mut self, offset: u64, len: u64, cause: RowCause) {
        self.bad.number(offset);
        self.bad.number(len);
        self.bad.text(cause.name());
    }
}

fn is_json(row: &[u8], poll: PollFn<'_>) -> Result<bool, Interrupt> {
    struct Checker<'a>(PollFn<'a>);

    impl offloop_grammar::JsonVisitor for Checker<'_> {
        type Error = Interrupt;

        fn skips_integers(&self) -> bool {
            true
        }

        fn progress(&mut self, _: usize) -> Result<(), Interrupt> {
            (self.0)()
        }
    }

    match read(row, &mut Checker(poll)) {
        Ok(()) => Ok(true),
        Err(ReadError::Unexpected(_)) => Ok(false),
        Err(ReadError::Visitor(stopped)) => Err(stopped),
    }
}

/// Content of a JSON list, without its brackets.
#[derive(Clone, Debug, Default)]
struct Column(Vec<u8>);

impl Column {
    fn value(&mut self, json: &[u8]) {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        self.0.extend_from_slice(json);
    }

    fn number(&mut self, number: u64) {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        // Writing to a `Vec` does not fail.
        let _ = write!(self.0, "{number}");
    }

    /// Adds a string, which must contain nothing that JSON escapes.
    fn text(&mut self, text: &str) {
        self.value(&[b"\"", text.as_bytes(), b"\""].concat());
    }

    fn list(&mut self, column: &Self) {
        self.value(&[b"[", &*column.0, b"]"].concat());
    }
}
