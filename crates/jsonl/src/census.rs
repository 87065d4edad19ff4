//! Counts the rows of a file, its bad rows, and the keys of its rows. Runs in tasks; `field_scan::describe_rows` uses it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;

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
    /// Returns the counts of a file of `size` bytes as JSON: `[bytes, rows, biggest, bad, fields]`.
    ///
    /// ```json
    /// [64, 2, [0, 31], [["partial", 1]], [["id", 2], ["text", 1]]]
    /// ```
    #[must_use]
    pub fn describe(&self, size: u64) -> String {
        let biggest = self
            .biggest
            .map_or_else(|| "null".to_owned(), |(offset, len)| format!("[{offset},{len}]"));
        let bad = list(self.bad.iter().map(|(name, count)| (name.as_bytes(), *count)));
        let fields = list(self.fields.iter().map(|(key, count)| (key.as_slice(), *count)));
        format!("[{size},{},{biggest},{bad},{fields}]", self.rows)
    }

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

/// Returns names and their counts as a JSON array of pairs.
fn list<'a>(counts: impl Iterator<Item = (&'a [u8], u64)>) -> String {
    let pairs: Vec<_> = counts.map(|(name, count)| format!("[{},{count}]", quoted(name))).collect();
    format!("[{}]", pairs.join(","))
}

/// Returns a name as a JSON string. Bytes that are not UTF-8 become U+FFFD.
fn quoted(name: &[u8]) -> String {
    let mut json = String::from("\"");
    for character in String::from_utf8_lossy(name).chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            '\0'..='\u{1f}' => drop(write!(json, "\\u{:04x}", u32::from(character))),
            _ => json.push(character),
        }
    }
    json.push('"');
    json
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_json() {
        let mut census = Census::default();
        assert_eq!(census.describe(0), "[0,0,null,[],[]]");
        census.rows = 2;
        census.biggest = Some((7, 31));
        census.bad.insert("partial", 1);
        census.fields.insert(b"a\"\\\n\xff\xc3\xa9".to_vec(), 3);
        assert_eq!(
            census.describe(64),
            r#"[64,2,[7,31],[["partial",1]],[["a\"\\\u000a\u{fffd}é",3]]]"#
                .replace("\\u{fffd}", "\u{fffd}")
        );
    }
}
