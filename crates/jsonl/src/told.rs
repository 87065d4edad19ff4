//! Batches as the JSON text in which they cross to JavaScript: parsing one text costs less than making its objects one by
//! one.

use std::io::Write;
use std::ops::Range;

use offloop_grammar::check;

use crate::judge::Cause;
use crate::pick::{Fields, pick};
use crate::rows::{Row, Visit};
use crate::standard::standard;

/// What is wanted of the rows.
#[derive(Clone, Debug)]
pub enum Wanted {
    Fields(Fields),
    /// Their bytes. Those of so many and more go to memory of their own, the others to one.
    Bytes {
        own: usize,
    },
}

/// The rows of a batch, as they are read.
///
/// Rows are told column by column, as numbers in a list are parsed fastest: their offsets; their lengths; then the values of
/// each field, or the index of the memory of their bytes, and where in that they begin.
#[derive(Debug)]
pub struct Told<'a> {
    wanted: &'a Wanted,
    columns: Vec<Column>,
    rows: usize,
    /// Of values that are absent: row and field. Of rows with numbers that JSON has not: how the strings begin that stand
    /// for them.
    absent: Column,
    marks: Column,
    /// Offset, length and cause.
    bad: Column,
    /// Of the memory to be made: one of all that share it, and each of the others'.
    sizes: Vec<usize>,
    places: Vec<Place>,
}

/// Where the bytes of a row go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The index of its memory, and where in that.
    pub memory: usize,
    pub start: usize,
    /// From the memory of the batch.
    pub from: Range<usize>,
}

impl<'a> Told<'a> {
    #[must_use]
    pub fn new(wanted: &'a Wanted) -> Self {
        let columns = match wanted {
            Wanted::Fields(fields) => 2 + fields.len(),
            Wanted::Bytes { .. } => 4,
        };
        Self {
            wanted,
            columns: vec![Column::default(); columns],
            rows: 0,
            absent: Column::default(),
            marks: Column::default(),
            bad: Column::default(),
            sizes: vec![0],
            places: Vec::new(),
        }
    }

    /// Bytes of all values so far.
    #[must_use]
    pub fn size(&self) -> usize {
        self.columns.iter().map(|column| column.0.len()).sum()
    }

    /// `[[columns],[absent],[marks],[bad],[sizes],how far it is,of how many bytes]`; and what goes where.
    #[must_use]
    pub fn finish(self, at: u64, size: u64) -> (String, Vec<Place>) {
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
        all.number(at);
        all.number(size);
        let text = [b"[", &*all.0, b"]"].concat();
        // Whatever stands in it was checked, or made of text.
        (String::from_utf8_lossy(&text).into_owned(), self.places)
    }

    fn begin(&mut self, row: &Row<'_>) {
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

    fn bytes(&mut self, row: &Row<'_>, own: usize) {
        let len = row.bytes.len();
        let (memory, start) = if len < own {
            let shared = self.sizes.first_mut();
            (0, shared.map_or(0, |size| std::mem::replace(size, *size + len)))
        } else {
            self.sizes.push(len);
            (self.sizes.len() - 1, 0)
        };
        if let [_, _, memories, starts] = &mut *self.columns {
            memories.number(memory as u64);
            starts.number(start as u64);
        }
        self.places.push(Place { memory, start, from: row.start..row.start + len });
    }
}

impl Visit for Told<'_> {
    fn standard(&mut self, row: Row<'_>) -> bool {
        match self.wanted {
            Wanted::Fields(fields) => {
                let Some(found) = pick(row.bytes, fields) else { return false };
                self.begin(&row);
                self.values(row.bytes, &found);
            }
            Wanted::Bytes { .. } => {
                if check(row.bytes).is_err() {
                    return false;
                }
                self.other(row);
            }
        }
        true
    }

    fn other(&mut self, row: Row<'_>) {
        self.begin(&row);
        match self.wanted {
            Wanted::Fields(fields) => {
                let (json, mark) = standard(row.bytes);
                let found = pick(json.as_bytes(), fields).unwrap_or_default();
                self.values(json.as_bytes(), &found);
                self.marks.number(self.rows as u64 - 1);
                self.marks.text(&mark);
            }
            Wanted::Bytes { own } => self.bytes(&row, *own),
        }
    }

    fn bad(&mut self, offset: u64, len: u64, cause: Cause) {
        self.bad.number(offset);
        self.bad.number(len);
        self.bad.text(cause.name());
    }
}

/// What stands in a list.
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
        // Writing to memory of one's own does not fail.
        let _ = write!(self.0, "{number}");
    }

    /// Without anything that is to be escaped.
    fn text(&mut self, text: &str) {
        self.value(&[b"\"", text.as_bytes(), b"\""].concat());
    }

    fn list(&mut self, column: &Self) {
        self.value(&[b"[", &*column.0, b"]"].concat());
    }
}
