//! Searches all rows of a file for bad ones, forwards. Runs in tasks; `repair` calls it.

use std::ops::Range;

use memchr::memchr;

use crate::judge::{Judge, RowCause, TornRow, Verdict, judge};
use crate::progress::{ExamineError, ExamineProgress, ProgressFn};
use crate::read_at::{ReadAt, fill};
use crate::tail::BOM;
use crate::utf8::Utf8;

/// A bad row: torn, or whole and refused by `JSON.parse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowFlaw {
    pub offset: u64,
    /// Bytes without the "\n".
    pub len: u64,
    pub cause: RowCause,
}

/// Returns the bad rows of `range`, which begins at a row, in a file of `size` bytes.
///
/// # Errors
/// Errors of reading.
pub fn scan<R: ReadAt + ?Sized>(
    source: &R,
    range: Range<u64>,
    size: u64,
    block: usize,
    watch: ProgressFn<'_>,
) -> Result<Vec<RowFlaw>, ExamineError> {
    let mut memory = vec![0; block.max(1)];
    let mut at = skip_bom(source, &range)?;
    let mut scan = Scan::new(at);
    while at < range.end {
        watch(ExamineProgress { bytes: at, total: size })?;
        let left = usize::try_from(range.end - at).unwrap_or(usize::MAX);
        let len = memory.len().min(left);
        let block = memory.get_mut(..len).unwrap_or_default();
        fill(source, block, at)?;
        scan.feed(block);
        at += len as u64;
    }
    Ok(scan.finish())
}

fn skip_bom<R: ReadAt + ?Sized>(source: &R, range: &Range<u64>) -> Result<u64, ExamineError> {
    let mut first = [0; BOM.len()];
    if range.start != 0 || range.end < first.len() as u64 {
        return Ok(range.start);
    }
    fill(source, &mut first, 0)?;
    Ok(if first == BOM { first.len() as u64 } else { 0 })
}

struct Scan {
    bad: Vec<RowFlaw>,
    /// Offset of the row that is being read.
    start: u64,
    /// State of that row, if it began in an earlier block.
    partial: Option<PartialRow>,
    /// Offset behind the last byte that was fed.
    end: u64,
}

/// State of a row of which more blocks may come.
#[derive(Default)]
struct PartialRow {
    judge: Judge,
    utf8: Utf8,
}

impl PartialRow {
    fn feed(&mut self, part: &[u8]) {
        self.judge.feed(part);
        self.utf8.feed(part);
    }

    fn flaw(&self, is_terminated: bool) -> Option<RowCause> {
        flaw(self.judge.verdict(is_terminated), |kept| kept.flaw_where(|| self.utf8.is_whole()))
    }
}

impl Scan {
    fn new(start: u64) -> Self {
        Self { bad: Vec::new(), start, partial: None, end: start }
    }

    fn feed(&mut self, mut block: &[u8]) {
        while let Some(len) = memchr(b'\n', block) {
            let (row, behind) = block.split_at(len);
            self.end_row(row);
            block = behind.get(1..).unwrap_or_default();
        }
        self.end += block.len() as u64;
        if !block.is_empty() {
            self.partial.get_or_insert_default().feed(block);
        }
    }

    /// Ends the row whose last bytes are `row`.
    fn end_row(&mut self, row: &[u8]) {
        self.end += row.len() as u64;
        let flaw = match self.partial.take() {
            Some(mut partial) => {
                partial.feed(row);
                partial.flaw(true)
            }
            None => flaw(judge(row, true), |kept| kept.flaw(row)),
        };
        self.keep(flaw);
        self.end += 1;
        self.start = self.end;
    }

    fn finish(mut self) -> Vec<RowFlaw> {
        if let Some(partial) = self.partial.take() {
            self.keep(partial.flaw(false));
        }
        self.bad
    }

    fn keep(&mut self, flaw: Option<RowCause>) {
        let (offset, len) = (self.start, self.end - self.start);
        self.bad.extend(flaw.map(|cause| RowFlaw { offset, len, cause }));
    }
}

fn flaw(
    verdict: Verdict,
    of_good: impl FnOnce(crate::judge::GoodRow) -> Option<RowCause>,
) -> Option<RowCause> {
    match verdict {
        Verdict::Blank => None,
        Verdict::Good(kept) => of_good(kept),
        Verdict::Torn(TornRow { cause, .. }) => Some(cause),
    }
}
