//! Walks from the last row towards the first, in constant memory. Runs in tasks; `repair` calls it.
//!
//! Rows are searched backwards, one block at a time, in a window that ends where the last row began. A row that is longer than
//! the window is read a second time, forwards, so the time stays linear.

use std::ops::Range;

use memchr::memrchr;

use crate::judge::{Judge, RowCause, TornRow, Verdict, judge};
use crate::progress::{ExamineError, ExamineProgress, ProgressFn};
use crate::read_at::{ReadAt, fill};
use crate::utf8::Utf8;

/// Bytes of one read.
pub const BLOCK: usize = 64 << 10;

/// Blocks of the window. Rows that fit are judged in it.
const WINDOW_BLOCKS: usize = 16;

/// Number of torn rows at the end above which a file is corrupt.
const MOST_TORN: usize = 4096;

/// Number of torn rows with a "\n" above which a file without a whole record is corrupt, if one of its torn rows is garbage.
/// Crashes and `isolate` leave any number of beginnings of rows and NULs, but no garbage.
const MOST_ENDED_BESIDE_GARBAGE: usize = 1;

pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    pub torn: Option<TornTail>,
    /// The last row is whole, but lacks its "\n".
    pub is_unterminated: bool,
    /// The last row is several records. Always false for a torn tail.
    pub is_glued: bool,
    pub ends_with_newline: bool,
}

/// Torn bytes, from `offset` to the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    pub offset: u64,
    pub cause: RowCause,
    /// The bytes before are a row that lacks its "\n".
    pub is_behind_row: bool,
}

/// Examines the end of a file of `size` bytes.
///
/// # Errors
/// Errors of reading; [`ExamineError::Corrupt`] if the torn rows are not a torn tail.
pub fn walk<R: ReadAt + ?Sized>(
    source: &R,
    size: u64,
    block: usize,
    watch: ProgressFn<'_>,
) -> Result<Tail, ExamineError> {
    let mut rows = TailRows::new(source, size, block, watch);
    let mut tail =
        Tail { torn: None, is_unterminated: false, is_glued: false, ends_with_newline: false };
    let (mut torn_rows, mut ended_torn_rows) = (0, 0);
    let mut has_garbage = false;
    while let Some(row) = rows.next()? {
        if !row.is_terminated {
            tail.ends_with_newline = row.range.is_empty() && !rows.is_last;
        }
        match rows.judge(&row)? {
            Verdict::Blank => {}
            Verdict::Good(kept) => {
                tail.is_unterminated = !row.is_terminated;
                tail.is_glued = kept.is_glued;
                return Ok(tail);
            }
            Verdict::Torn(TornRow { start, cause }) => {
                let offset = row.range.start + start;
                tail.torn = Some(TornTail { offset, cause, is_behind_row: start != 0 });
                torn_rows += 1;
                ended_torn_rows += usize::from(row.is_terminated);
                has_garbage |= cause == RowCause::Garbage;
                if MOST_TORN < torn_rows {
                    return Err(ExamineError::Corrupt { offset });
                }
                if start != 0 {
                    return Ok(tail);
                }
            }
        }
    }
    match tail.torn {
        Some(torn) if has_garbage && MOST_ENDED_BESIDE_GARBAGE < ended_torn_rows => {
            Err(ExamineError::Corrupt { offset: torn.offset })
        }
        _ => Ok(tail),
    }
}

struct TailRow {
    /// Bytes without the "\n"; without the byte order mark in the first row.
    range: Range<u64>,
    is_terminated: bool,
}

struct TailRows<'a, R: ?Sized> {
    source: &'a R,
    watch: ProgressFn<'a>,
    size: u64,
    block: usize,
    /// Memory that contains the window. It is filled from its end.
    memory: Vec<u8>,
    /// Start of the window in `memory`.
    head: usize,
    /// Offset at which the window begins.
    start: u64,
    /// Offset at which the window ends, and the next row with it.
    end: u64,
    is_first: bool,
    is_last: bool,
}

impl<'a, R: ReadAt + ?Sized> TailRows<'a, R> {
    fn new(source: &'a R, size: u64, block: usize, watch: ProgressFn<'a>) -> Self {
        let (start, end) = (size, size);
        Self {
            source,
            watch,
            size,
            block: block.max(1),
            memory: Vec::new(),
            head: 0,
            start,
            end,
            is_first: true,
            is_last: false,
        }
    }

    /// Returns the row before the one that was returned last.
    fn next(&mut self) -> Result<Option<TailRow>, ExamineError> {
        if self.is_last {
            return Ok(None);
        }
        let end = self.end;
        let mut unsearched = self.window().len();
        let start = loop {
            let searched = self.window().get(..unsearched).unwrap_or_default();
            if let Some(at) = memrchr(b'\n', searched) {
                break self.start + at as u64 + 1;
            }
            if self.start == 0 {
                self.is_last = true;
                break self.bom_len(end)?;
            }
            unsearched = self.read_block()?;
        };
        let is_terminated = !self.is_first;
        self.is_first = false;
        Ok(Some(TailRow { range: start..end, is_terminated }))
    }

    /// Judges the row that was returned last. Removes it from the window.
    fn judge(&mut self, row: &TailRow) -> Result<Verdict, ExamineError> {
        let verdict = if row.range.end == self.end {
            let skipped = (row.range.start - self.start) as usize;
            judge(self.window().get(skipped..).unwrap_or_default(), row.is_terminated)
        } else {
            self.judge_far(row)?
        };
        self.end = row.range.start.saturating_sub(1).max(self.start);
        Ok(verdict)
    }

    fn window(&self) -> &[u8] {
        let len = (self.end - self.start) as usize;
        self.memory.get(self.head..self.head + len).unwrap_or_default()
    }

    /// Returns the length of the byte order mark of the first row, which ends at `end`.
    fn bom_len(&self, end: u64) -> Result<u64, ExamineError> {
        let mut first = [0; BOM.len()];
        if end < first.len() as u64 {
            return Ok(0);
        }
        match self.window().get(..first.len()) {
            Some(known) => first.copy_from_slice(known),
            // Only tests have a smaller window.
            None => fill(self.source, &mut first, 0)?,
        }
        Ok(if first == BOM { first.len() as u64 } else { 0 })
    }

    /// Reads the block before the window. Returns its size. A full window is emptied before.
    fn read_block(&mut self) -> Result<usize, ExamineError> {
        self.report(self.start)?;
        let size = self.block.min(usize::try_from(self.start).unwrap_or(usize::MAX));
        if self.head < size {
            self.make_room(size);
        }
        let place = self.memory.get_mut(self.head - size..self.head).unwrap_or_default();
        fill(self.source, place, self.start - size as u64)?;
        self.head -= size;
        self.start -= size as u64;
        Ok(size)
    }

    /// Makes room for `size` bytes before the window. The memory never shrinks, so it is rarely copied.
    fn make_room(&mut self, size: usize) {
        let most = self.block * WINDOW_BLOCKS;
        if most < self.window().len() + size {
            self.end = self.start;
        }
        let known = self.head..self.head + self.window().len();
        let len = known.len() + size;
        if self.memory.len() < len {
            let mut memory = vec![0; len];
            let place = memory.get_mut(len - known.len()..).unwrap_or_default();
            place.copy_from_slice(self.memory.get(known.clone()).unwrap_or_default());
            self.memory = memory;
        } else {
            let head = self.memory.len() - known.len();
            self.memory.copy_within(known.clone(), head);
        }
        self.head = self.memory.len() - known.len();
    }

    fn judge_far(&self, row: &TailRow) -> Result<Verdict, ExamineError> {
        let mut judge = Judge::default();
        self.read_all(row.range.clone(), |block| judge.feed(block))?;
        let verdict = judge.verdict(row.is_terminated);
        match verdict {
            Verdict::Torn(torn) if torn.cause == RowCause::Partial && !row.is_terminated => {
                let mut utf8 = Utf8::default();
                let torn_bytes = row.range.start + torn.start..row.range.end;
                self.read_all(torn_bytes, |block| utf8.feed(block))?;
                let cause = if utf8.is_cut() { RowCause::Utf8 } else { torn.cause };
                Ok(Verdict::Torn(TornRow { cause, ..torn }))
            }
            _ => Ok(verdict),
        }
    }

    /// Reads a range forwards, in large blocks.
    fn read_all(&self, range: Range<u64>, mut each: impl FnMut(&[u8])) -> Result<(), ExamineError> {
        let mut memory = vec![0; self.block * WINDOW_BLOCKS];
        let mut at = range.start;
        while at < range.end {
            self.report(self.start)?;
            let left = usize::try_from(range.end - at).unwrap_or(usize::MAX);
            let len = memory.len().min(left);
            let block = memory.get_mut(..len).unwrap_or_default();
            fill(self.source, block, at)?;
            each(block);
            at += len as u64;
        }
        Ok(())
    }

    fn report(&self, at: u64) -> Result<(), ExamineError> {
        Ok((self.watch)(ExamineProgress { bytes: self.size - at, total: self.size })?)
    }
}
