//! What a file holds: how many rows, how large, and which fields they have.

use std::collections::BTreeMap;
use std::convert::Infallible;

use offloop_grammar::{Text, read};

use crate::judge::Cause;
use crate::rows::{Row, Visit};
use crate::standard::standard;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    pub rows: u64,
    pub bad: BTreeMap<&'static str, u64>,
    /// The longest row: its offset and length.
    pub biggest: Option<(u64, u64)>,
    /// How often each key stands at the top of a row, as it stands between its quotes when it is written plainly.
    pub fields: BTreeMap<Vec<u8>, u64>,
}

impl Census {
    fn count(&mut self, json: &[u8], row: &Row<'_>) -> bool {
        let mut keys = Keys::default();
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

impl Visit for Census {
    fn standard(&mut self, row: Row<'_>) -> bool {
        self.count(row.bytes, &row)
    }

    fn other(&mut self, row: Row<'_>) {
        let (json, _) = standard(row.bytes);
        self.count(json.as_bytes(), &row);
    }

    fn bad(&mut self, _: u64, _: u64, cause: Cause) {
        *self.bad.entry(cause.name()).or_default() += 1;
    }
}

/// The keys of the object that a row is.
#[derive(Default)]
struct Keys {
    depth: usize,
    keys: Vec<Vec<u8>>,
}

impl offloop_grammar::Visit for Keys {
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
