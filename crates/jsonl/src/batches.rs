//! Reads rows forwards, in batches, and passes each to a visitor once. Runs in tasks; `batch_reader` calls it.

use std::ops::Range;

use memchr::memchr;
use offloop_grammar::string_len;

use crate::judge::{RowCause, TornRow, Verdict, judge_polled};
use crate::progress::ExamineError;
use crate::read_at::ReadAt;
use crate::tail::BOM;

/// A row, or one record of a glued row, without the separator behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSlice<'a> {
    pub offset: u64,
    pub bytes: &'a [u8],
    /// Start of the row in the memory of the batch.
    pub start: usize,
    /// `JSON.parse` accepts the bytes.
    pub is_standard: bool,
}

/// Gets the rows of a batch in the order of the file.
pub trait RowVisitor {
    /// Takes a whole row if it is JSON, and returns whether it is. The row may be anything.
    fn standard(&mut self, row: RowSlice<'_>) -> bool;
    /// Takes a record of a glued row, or a good row that `JSON.parse` refuses.
    fn other(&mut self, row: RowSlice<'_>);
    /// Takes a bad row.
    fn bad(&mut self, offset: u64, len: u64, cause: RowCause);
}

/// Position in a file that is read in batches. All batches share one memory.
#[derive(Debug)]
pub struct RowBatches {
    /// Offset in the file at which the memory begins.
    at: u64,
    /// Bytes of the memory that are filled.
    filled: usize,
    /// Bytes of the memory that the last batch used.
    used: usize,
    memory: Vec<u8>,
    /// Size of the file when it was opened, or the smaller size found since.
    end: u64,
    block: usize,
    /// Number of good records still to skip.
    skipped: usize,
}

impl RowBatches {
    /// Starts at `start`, which is 0 or the end of a row. The file has `size` bytes; a batch covers about `block` of them.
    #[must_use]
    pub fn new(start: u64, size: u64, block: usize) -> Self {
        let (at, end) = (start.min(size), size);
        Self { at, filled: 0, used: 0, memory: Vec::new(), end, block: block.max(1), skipped: 0 }
    }

    /// Skips the first `records` good records.
    #[must_use]
    pub fn skipping(self, records: usize) -> Self {
        Self { skipped: records, ..self }
    }

    /// Returns the offset at which the last batch ended.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.at + self.used as u64
    }

    /// Returns the offset at which the file ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the memory that contains the last batch.
    #[must_use]
    pub fn memory(&self) -> &[u8] {
        &self.memory
    }

    /// Passes the next rows to `visitor`, at least one. Returns false at the end of the file. `poll` is called every few hundred
    /// microseconds.
    ///
    /// # Errors
    /// Errors of reading and of `poll`.
    pub fn batch<R: ReadAt + ?Sized, E: From<ExamineError>>(
        &mut self,
        source: &R,
        visitor: &mut dyn RowVisitor,
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<bool, E> {
        let Some(len) = self.fill(source, &mut poll)? else { return Ok(false) };
        let is_last = self.at + self.filled as u64 == self.end && len == self.filled;
        let memory = std::mem::take(&mut self.memory);
        let batch = memory.get(..len).unwrap_or_default();
        let visited = self.visit(batch, is_last, visitor, &mut poll);
        self.memory = memory;
        self.used = len;
        visited.map(|()| true)
    }

    fn visit<E>(
        &mut self,
        batch: &[u8],
        is_last: bool,
        visitor: &mut dyn RowVisitor,
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = if self.at == 0 && batch.starts_with(BOM) { BOM.len() } else { 0 };
        let mut polled = 0;
        while let Some(rest) = batch.get(start..).filter(|rest| !rest.is_empty()) {
            let len = memchr(b'\n', rest);
            let is_terminated = len.is_some() || !is_last;
            let len = len.unwrap_or(rest.len());
            let offset = self.at + start as u64;
            let bytes = rest.get(..len).unwrap_or_default();
            let row = RowSlice { offset, bytes, start, is_standard: true };
            self.visit_row(row, is_terminated, visitor, poll)?;
            start += len + 1;
            if polled + POLL <= start {
                poll()?;
                polled = start;
            }
        }
        // A visitor whose poll failed left a row out. This poll fails too, so no batch with a gap succeeds.
        poll()
    }

    fn visit_row<E>(
        &mut self,
        row: RowSlice<'_>,
        is_terminated: bool,
        visitor: &mut dyn RowVisitor,
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        // A row without "\n" goes to the judge: it may be the beginning of a longer row.
        if is_terminated && self.skipped == 0 && visitor.standard(row) {
            return Ok(());
        }
        match judge_polled(row.bytes, is_terminated, &mut *poll)? {
            Verdict::Blank => {}
            Verdict::Torn(TornRow { cause, .. }) => {
                visitor.bad(row.offset, row.bytes.len() as u64, cause);
            }
            Verdict::Good(kept) if kept.is_glued => {
                let mut polled = 0;
                records(row.bytes, |range| {
                    if polled + POLL <= range.end {
                        poll()?;
                        polled = range.end;
                    }
                    let bytes = row.bytes.get(range.clone()).unwrap_or_default();
                    let offset = row.offset + range.start as u64;
                    let start = row.start + range.start;
                    let is_standard = is_standard(bytes, poll)?;
                    self.visit_good(RowSlice { offset, bytes, start, is_standard }, visitor);
                    Ok(())
                })?;
            }
            Verdict::Good(kept) => {
                let is_standard = kept.flaw_polled(row.bytes, poll)?.is_none();
                self.visit_good(RowSlice { is_standard, ..row }, visitor);
            }
        }
        Ok(())
    }

    fn visit_good(&mut self, row: RowSlice<'_>, visitor: &mut dyn RowVisitor) {
        if self.skipped != 0 {
            self.skipped -= 1;
        } else if !row.is_standard || !visitor.standard(row) {
            visitor.other(row);
        }
    }

    /// Reads until the memory contains a whole row. Returns the bytes of whole rows, or `None` at the end of the file.
    fn fill<R: ReadAt + ?Sized, E: From<ExamineError>>(
        &mut self,
        source: &R,
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        self.memory.copy_within(self.used..self.filled, 0);
        self.at += self.used as u64;
        self.filled -= self.used;
        self.used = 0;
        let mut looked = 0;
        loop {
            self.read(source, poll)?;
            let new = self.memory.get(looked..self.filled).unwrap_or_default();
            if let Some(last) = memchr::memrchr(b'\n', new) {
                return Ok(Some(looked + last + 1));
            }
            if self.at + self.filled as u64 == self.end {
                return Ok((self.filled != 0).then_some(self.filled));
            }
            looked = self.filled;
        }
    }

    /// Fills the memory, which grows when one row fills it.
    fn read<R: ReadAt + ?Sized, E: From<ExamineError>>(
        &mut self,
        source: &R,
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let wanted = if self.filled < self.block { self.block } else { self.filled * 2 }.min(left);
        self.make_room(wanted)?;
        while self.filled < wanted {
            poll()?;
            let room = self.memory.get_mut(self.filled..wanted).unwrap_or_default();
            let piece = room.len().min(POLL);
            let room = room.get_mut(..piece).unwrap_or_default();
            match source.read_at(room, self.at + self.filled as u64) {
                // The file was cut since it was opened.
                Ok(0) => {
                    self.end = self.at + self.filled as u64;
                    break;
                }
                Ok(len) => self.filled += len,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ExamineError::Read(error).into()),
            }
        }
        Ok(())
    }

    fn make_room<E: From<ExamineError>>(&mut self, size: usize) -> Result<(), E> {
        let more = size.saturating_sub(self.memory.len());
        self.memory.try_reserve_exact(more).map_err(|_| {
            ExamineError::Read(std::io::Error::from(std::io::ErrorKind::OutOfMemory))
        })?;
        if 0 < more {
            self.memory.resize(size, 0);
        }
        Ok(())
    }
}

/// Bytes that are read or judged between two polls.
const POLL: usize = 1 << 20;

fn is_standard<E>(record: &[u8], poll: &mut impl FnMut() -> Result<(), E>) -> Result<bool, E> {
    match judge_polled(record, true, &mut *poll)? {
        Verdict::Good(kept) => Ok(kept.flaw_polled(record, poll)?.is_none()),
        _ => Ok(false),
    }
}

/// Calls `visit` with the range of each object and array of a glued row.
pub(crate) fn records<E>(
    row: &[u8],
    mut visit: impl FnMut(Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    let (mut depth, mut start, mut at) = (0_usize, 0, 0);
    while let Some(&byte) = row.get(at) {
        match byte {
            b'"' => at += string_len(row.get(at + 1..).unwrap_or_default()),
            b'{' | b'[' => {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    visit(start..at + 1)?;
                }
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}
