//! All rows, from the first to the last, for those that are bad.

use std::ops::Range;

use memchr::memchr;

use crate::examine::{ExamineError, Progress, Watch};
use crate::judge::{Cause, Judge, Torn, Verdict, judge};
use crate::source::{ReadAt, fill};
use crate::tail::BOM;
use crate::utf8::Utf8;

/// A row that is torn, or whole and not as `JSON.parse` wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRow {
    pub offset: u64,
    /// Without its "\n".
    pub len: u64,
    pub cause: Cause,
}

/// The bad rows of `range`, which begins at a row, of a file of `size` bytes.
///
/// # Errors
/// Those of reading.
pub fn scan<R: ReadAt + ?Sized>(
    source: &R,
    range: Range<u64>,
    size: u64,
    block: usize,
    watch: Watch<'_>,
) -> Result<Vec<BadRow>, ExamineError> {
    let mut memory = vec![0; block.max(1)];
    let mut at = skip_bom(source, &range)?;
    let mut scan = Scan::new(at);
    while at < range.end {
        watch(Progress { bytes: at, total: size })?;
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
    bad: Vec<BadRow>,
    /// Where the row began that is being read.
    start: u64,
    /// What is known of it, where it began in an earlier block.
    begun: Option<Begun>,
    /// Of what was fed.
    end: u64,
}

#[derive(Default)]
struct Begun {
    judge: Judge,
    utf8: Utf8,
}

impl Begun {
    fn feed(&mut self, part: &[u8]) {
        self.judge.feed(part);
        self.utf8.feed(part);
    }

    fn flaw(&self, is_terminated: bool) -> Option<Cause> {
        flaw(self.judge.verdict(is_terminated), |kept| kept.flaw_where(|| self.utf8.is_whole()))
    }
}

impl Scan {
    fn new(start: u64) -> Self {
        Self { bad: Vec::new(), start, begun: None, end: start }
    }

    fn feed(&mut self, mut block: &[u8]) {
        while let Some(len) = memchr(b'\n', block) {
            let (row, behind) = block.split_at(len);
            self.end_row(row);
            block = behind.get(1..).unwrap_or_default();
        }
        self.end += block.len() as u64;
        if !block.is_empty() {
            self.begun.get_or_insert_default().feed(block);
        }
    }

    /// The row whose last bytes these are.
    fn end_row(&mut self, row: &[u8]) {
        self.end += row.len() as u64;
        let flaw = match self.begun.take() {
            Some(mut begun) => {
                begun.feed(row);
                begun.flaw(true)
            }
            None => flaw(judge(row, true), |kept| kept.flaw(row)),
        };
        self.keep(flaw);
        self.end += 1;
        self.start = self.end;
    }

    fn finish(mut self) -> Vec<BadRow> {
        if let Some(begun) = self.begun.take() {
            self.keep(begun.flaw(false));
        }
        self.bad
    }

    fn keep(&mut self, flaw: Option<Cause>) {
        let (offset, len) = (self.start, self.end - self.start);
        self.bad.extend(flaw.map(|cause| BadRow { offset, len, cause }));
    }
}

fn flaw(
    verdict: Verdict,
    of_kept: impl FnOnce(crate::judge::Kept) -> Option<Cause>,
) -> Option<Cause> {
    match verdict {
        Verdict::Blank => None,
        Verdict::Kept(kept) => of_kept(kept),
        Verdict::Torn(Torn { cause, .. }) => Some(cause),
    }
}
