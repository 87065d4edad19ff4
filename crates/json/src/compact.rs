//! Reads compact JSON, for `sort` and `indent`, in tasks.

use std::ops::Range;
use std::slice::Iter;

/// The ranges of raw JSON, which are copied as they are, in order.
pub(crate) struct RawRanges<'a> {
    next: Option<&'a Range<usize>>,
    rest: Iter<'a, Range<usize>>,
}

impl<'a> RawRanges<'a> {
    pub(crate) fn new(raws: &'a [Range<usize>]) -> Self {
        let mut rest = raws.iter();
        Self { next: rest.next(), rest }
    }

    /// Returns the end of the range that begins at `at`, if one does.
    pub(crate) fn end_of(&mut self, at: usize) -> Option<usize> {
        let raw = self.next.filter(|raw| raw.start == at)?;
        self.next = self.rest.next();
        Some(raw.end)
    }
}
