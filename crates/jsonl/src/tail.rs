//! The walk from the last row towards the first, in constant memory.
//!
//! Rows are looked for backwards, a block at a time, in a window that ends where the last one began. A row that outgrows
//! the window is read a second time, forwards: that is linear however long it is.

use std::ops::Range;

use memchr::memrchr;

use crate::examine::{ExamineError, Progress, Watch};
use crate::judge::{Cause, Judge, Torn, Verdict, judge};
use crate::source::{ReadAt, fill};
use crate::utf8::Utf8;

/// What is read at once, where nothing else is asked for.
pub const BLOCK: usize = 64 << 10;

/// Rows of up to so many blocks are judged where they were found.
const WINDOW_BLOCKS: usize = 16;

/// More torn rows are no torn tail, and neither are two that end where no row is whole.
const MOST_TORN: usize = 4096;
const MOST_TORN_ALONE: usize = 1;

pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    pub torn: Option<TornTail>,
    /// The last row is whole and lacks its "\n".
    pub is_unterminated: bool,
    /// The last row is several; of a tail that is torn, nobody looks.
    pub is_glued: bool,
    pub ends_with_newline: bool,
}

/// From `offset` to the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    pub offset: u64,
    pub cause: Cause,
    /// What stands before is a row that lacks its "\n".
    pub is_behind_row: bool,
}

/// Looks at the end of a file of `size` bytes.
///
/// # Errors
/// Those of reading, and where this is no torn tail.
pub fn walk<R: ReadAt + ?Sized>(
    source: &R,
    size: u64,
    block: usize,
    watch: Watch<'_>,
) -> Result<Tail, ExamineError> {
    let mut rows = Rows::new(source, size, block, watch);
    let mut tail =
        Tail { torn: None, is_unterminated: false, is_glued: false, ends_with_newline: false };
    let (mut torn_rows, mut ended_torn_rows) = (0, 0);
    while let Some(row) = rows.next()? {
        if !row.is_terminated {
            tail.ends_with_newline = row.range.is_empty() && !rows.is_last;
        }
        match rows.judge(&row)? {
            Verdict::Blank => {}
            Verdict::Kept(kept) => {
                tail.is_unterminated = !row.is_terminated;
                tail.is_glued = kept.is_glued;
                return Ok(tail);
            }
            Verdict::Torn(Torn { start, cause }) => {
                let offset = row.range.start + start;
                tail.torn = Some(TornTail { offset, cause, is_behind_row: start != 0 });
                torn_rows += 1;
                ended_torn_rows += usize::from(row.is_terminated);
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
        Some(torn) if MOST_TORN_ALONE < ended_torn_rows => {
            Err(ExamineError::Corrupt { offset: torn.offset })
        }
        _ => Ok(tail),
    }
}

struct Row {
    /// Without the mark of a file's first row, and without its "\n".
    range: Range<u64>,
    is_terminated: bool,
}

struct Rows<'a, R: ?Sized> {
    source: &'a R,
    watch: Watch<'a>,
    size: u64,
    block: usize,
    /// Filled from its end.
    memory: Vec<u8>,
    /// Where what is known begins in `memory`.
    head: usize,
    /// The same in the file.
    start: u64,
    /// Where what is known ends, and with it the row that comes next.
    end: u64,
    is_first: bool,
    is_last: bool,
}

impl<'a, R: ReadAt + ?Sized> Rows<'a, R> {
    fn new(source: &'a R, size: u64, block: usize, watch: Watch<'a>) -> Self {
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

    /// The row before those that were given.
    fn next(&mut self) -> Result<Option<Row>, ExamineError> {
        if self.is_last {
            return Ok(None);
        }
        let end = self.end;
        let mut unsearched = self.known().len();
        let start = loop {
            let searched = self.known().get(..unsearched).unwrap_or_default();
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
        Ok(Some(Row { range: start..end, is_terminated }))
    }

    /// What the row is worth that was given last. What stands behind it is forgotten then.
    fn judge(&mut self, row: &Row) -> Result<Verdict, ExamineError> {
        let verdict = if row.range.end == self.end {
            let skipped = (row.range.start - self.start) as usize;
            judge(self.known().get(skipped..).unwrap_or_default(), row.is_terminated)
        } else {
            self.judge_far(row)?
        };
        self.end = row.range.start.saturating_sub(1).max(self.start);
        Ok(verdict)
    }

    fn known(&self) -> &[u8] {
        let len = (self.end - self.start) as usize;
        self.memory.get(self.head..self.head + len).unwrap_or_default()
    }

    /// Of the file's first row, which ends at `end`.
    fn bom_len(&self, end: u64) -> Result<u64, ExamineError> {
        let mut first = [0; BOM.len()];
        if end < first.len() as u64 {
            return Ok(0);
        }
        match self.known().get(..first.len()) {
            Some(known) => first.copy_from_slice(known),
            // The window is smaller than that: tests have such.
            None => fill(self.source, &mut first, 0)?,
        }
        Ok(if first == BOM { first.len() as u64 } else { 0 })
    }

    /// What stands before what is known; tells how many bytes. What is known is forgotten where the window is full.
    fn read_block(&mut self) -> Result<usize, ExamineError> {
        self.tell(self.start)?;
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

    /// Memory grows to what is needed and stays: what it is copied for that comes once.
    fn make_room(&mut self, size: usize) {
        let most = self.block * WINDOW_BLOCKS;
        if most < self.known().len() + size {
            self.end = self.start;
        }
        let known = self.head..self.head + self.known().len();
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

    fn judge_far(&self, row: &Row) -> Result<Verdict, ExamineError> {
        let mut judge = Judge::default();
        self.read_all(row.range.clone(), |block| judge.feed(block))?;
        let verdict = judge.verdict(row.is_terminated);
        match verdict {
            Verdict::Torn(torn) if torn.cause == Cause::Partial && !row.is_terminated => {
                let mut utf8 = Utf8::default();
                let torn_bytes = row.range.start + torn.start..row.range.end;
                self.read_all(torn_bytes, |block| utf8.feed(block))?;
                let cause = if utf8.is_cut() { Cause::Utf8 } else { torn.cause };
                Ok(Verdict::Torn(Torn { cause, ..torn }))
            }
            _ => Ok(verdict),
        }
    }

    /// Forwards, in large blocks.
    fn read_all(&self, range: Range<u64>, mut each: impl FnMut(&[u8])) -> Result<(), ExamineError> {
        let mut memory = vec![0; self.block * WINDOW_BLOCKS];
        let mut at = range.start;
        while at < range.end {
            self.tell(self.start)?;
            let left = usize::try_from(range.end - at).unwrap_or(usize::MAX);
            let len = memory.len().min(left);
            let block = memory.get_mut(..len).unwrap_or_default();
            fill(self.source, block, at)?;
            each(block);
            at += len as u64;
        }
        Ok(())
    }

    fn tell(&self, at: u64) -> Result<(), ExamineError> {
        Ok((self.watch)(Progress { bytes: self.size - at, total: self.size })?)
    }
}
