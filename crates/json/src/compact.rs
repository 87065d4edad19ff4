//! How compact JSON is read by what lays it out anew.

use std::ops::Range;
use std::slice::Iter;

/// Of the rest of a string, with its closing quote.
pub(crate) fn string_len(rest: &[u8]) -> usize {
    let mut len = 0;
    while let Some(&byte) = rest.get(len) {
        len += if byte == b'\\' { 2 } else { 1 };
        if byte == b'"' {
            break;
        }
    }
    len.min(rest.len())
}

/// The parts that stay as they are, in order.
pub(crate) struct Raws<'a> {
    next: Option<&'a Range<usize>>,
    rest: Iter<'a, Range<usize>>,
}

impl<'a> Raws<'a> {
    pub(crate) fn new(raws: &'a [Range<usize>]) -> Self {
        let mut rest = raws.iter();
        Self { next: rest.next(), rest }
    }

    /// Where the part ends that begins at `at`, if one does.
    pub(crate) fn end_of(&mut self, at: usize) -> Option<usize> {
        let raw = self.next.filter(|raw| raw.start == at)?;
        self.next = self.rest.next();
        Some(raw.end)
    }
}
