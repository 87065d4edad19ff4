//! Counts the rows of a file, its bad rows, and the keys of its rows. Runs in tasks; `batch_reader::count_rows` uses it.

use std::collections::BTreeMap;
use std::convert::Infallible;

use offloop_grammar::{Text, read};

use crate::batches::{RowSlice, RowVisitor};
use crate::judge::RowCause;
use crate::standard::standard;

/// Visitor that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    pub rows: u64,
    /// Number of bad rows by the name of their cause.
    pub bad: BTreeMap<&'static str, u64>,
    /// Offset and length of the longest row.
    pub biggest: Option<(u64, u64)>,
    /// Number of occurrences of each key at the top of a row. Keys are unescaped.
    pub fields: BTreeMap<Vec<u8>, u64>,
}

impl Census {
    fn count(&mut self, json: &[u8], row: &RowSlice<'_>) -> bool {
        let mut keys = TopKeys::default();
        if read(json, &mut keys).is_err() {
            return false;
        }
        self.rows += 1;
        let len = row.bytes.len() as u64;
        if self.biggest.is_none_or(|(_, most)| most < len) {
            self.biggest = Some((row.offset, len));
        }
        for key in keys.keys {
            match self.fields.get_mut(&key) {
                Some(count) => *count += 1,
                None => drop(self.fields.insert(key, 1)),
            }
        }
        true
    }
}

impl RowVisitor for Census {
    fn standard(&mut self, row: RowSlice<'_>) -> bool {
        self.count(row.bytes, &row)
    }

    fn other(&mut self, row: RowSlice<'_>) {
        let (json, _) = standard(row.bytes);
        self.count(json.as_bytes(), &row);
    }

    fn bad(&mut self, _: u64, _: u64, cause: RowCause) {
        *self.bad.entry(cause.name()).or_default() += 1;
    }
}

/// Keys at the top of a row.
#[derive(Default)]
struct TopKeys {
    depth: usize,
    keys: Vec<Vec<u8>>,
}

impl offloop_grammar::JsonVisitor for TopKeys {
    type Error = Infallible;

    fn open(&mut self, _: bool, _: usize) -> Result<(), Infallible> {
        self.depth += 1;
        Ok(())
    }

    fn close(&mut self, _: usize) -> Result<(), Infallible> {
        self.depth -= 1;
        Ok(())
    }

    fn skips_integers(&self) -> bool {
        true
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), Infallible> {
        if self.depth == 1 {
            self.keys.push(text.unescaped().into_owned());
        }
        Ok(())
    }
}
