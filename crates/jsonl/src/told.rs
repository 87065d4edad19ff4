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
/// Of each row its offset and length; then, of fields, `[values]`, and where that is not all, the indexes of those that are
/// absent, and what strings begin with that stand for numbers JSON has not. Of bytes, the index of their memory, and where
/// in that they begin.
#[derive(Debug)]
pub struct Told<'a> {
    wanted: &'a Wanted,
    rows: Vec<u8>,
    count: u64,
    bad: Vec<u8>,
    bad_count: u64,
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
        let (rows, bad) = (Vec::new(), Vec::new());
        Self { wanted, rows, count: 0, bad, bad_count: 0, sizes: vec![0], places: Vec::new() }
    }

    /// `[[rows],[bad rows: offset, length, cause],[sizes],how far it is,of how many bytes]`; and what goes where.
    #[must_use]
    pub fn finish(self, at: u64, size: u64) -> (String, Vec<Place>) {
        let sizes = self.sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let parts: [&[u8]; 5] = [b"[[", &self.rows, b"],[", &self.bad, b"],["];
        let mut text = parts.concat();
        put(&mut text, format_args!("{sizes}],{at},{size}]"));
        // Whatever stands in it was checked, or made of text.
        (String::from_utf8_lossy(&text).into_owned(), self.places)
    }

    fn begin(&mut self, row: &Row<'_>) {
        let comma = if self.count == 0 { "" } else { "," };
        put(&mut self.rows, format_args!("{comma}[{},{},", row.offset, row.bytes.len()));
        self.count += 1;
    }

    fn values(&mut self, json: &[u8], found: &[Option<Range<usize>>], mark: Option<&str>) {
        self.rows.push(b'[');
        for (index, range) in found.iter().enumerate() {
            if index != 0 {
                self.rows.push(b',');
            }
            let value = range.clone().and_then(|range| json.get(range));
            self.rows.extend_from_slice(value.unwrap_or(b"null"));
        }
        self.rows.push(b']');
        let absent = found.iter().enumerate().filter(|(_, range)| range.is_none());
        let absent = absent.map(|(index, _)| index.to_string()).collect::<Vec<_>>();
        if !absent.is_empty() || mark.is_some() {
            put(&mut self.rows, format_args!(",[{}]", absent.join(",")));
        }
        if let Some(mark) = mark {
            put(&mut self.rows, format_args!(",\"{mark}\""));
        }
        self.rows.push(b']');
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
        put(&mut self.rows, format_args!("{memory},{start}]"));
        self.places.push(Place { memory, start, from: row.start..row.start + len });
    }
}

impl Visit for Told<'_> {
    fn standard(&mut self, row: Row<'_>) -> bool {
        match self.wanted {
            Wanted::Fields(fields) => {
                let Some(found) = pick(row.bytes, fields) else { return false };
                self.begin(&row);
                self.values(row.bytes, &found, None);
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
                self.values(json.as_bytes(), &found, Some(&mark));
            }
            Wanted::Bytes { own } => self.bytes(&row, *own),
        }
    }

    fn bad(&mut self, offset: u64, len: u64, cause: Cause) {
        let comma = if self.bad_count == 0 { "" } else { "," };
        put(&mut self.bad, format_args!("{comma}{offset},{len},\"{}\"", cause.name()));
        self.bad_count += 1;
    }
}

fn put(text: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    // Writing to memory of one's own does not fail.
    let _ = text.write_fmt(what);
}
