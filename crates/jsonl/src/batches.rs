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
    /// Most bytes of a row, without its "\n".
    longest: u64,
    /// Offset of the row that is being skipped because it is longer. No byte of it is in the memory.
    long_row: Option<u64>,
    /// Number of good records still to skip.
    skipped: usize,
}

/// Content of the memory behind a read.
enum FilledMemory {
    /// This many bytes are whole rows.
    Rows(usize),
    /// All bytes belong to one row, which is too long.
    LongRow,
    /// The file has no more bytes.
    Nothing,
}

impl RowBatches {
    /// Starts at `start`, which is 0 or the end of a row. The file has `size` bytes; a batch covers about `block` of them.
    #[must_use]
    pub fn new(start: u64, size: u64, block: usize) -> Self {
        Self {
            at: start.min(size),
            filled: 0,
            used: 0,
            memory: Vec::new(),
            end: size,
            block: block.max(1),
            longest: u64::MAX,
            long_row: None,
            skipped: 0,
        }
    }

    /// Makes rows of more than `longest` bytes bad, whatever is in them. The memory does not grow for them.
    #[must_use]
    pub fn bounded(self, longest: u64) -> Self {
        Self { longest, ..self }
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

    /// Passes the next rows to `visitor`. Returns false at the end of the file. `poll` is called every few hundred microseconds.
    ///
    /// A batch has at least one row, unless it is in a row that is too long: a batch skips at most 16 MiB.
    ///
    /// # Errors
    /// Errors of reading and of `poll`.
    pub fn batch<R: ReadAt + ?Sized, E: From<ExamineError>>(
        &mut self,
        source: &R,
        visitor: &mut dyn RowVisitor,
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<bool, E> {
        self.discard();
        if self.long_row.is_some() {
            return self.skip(source, visitor, &mut poll).map(|()| true);
        }
        let len = match self.fill(source, &mut poll)? {
            FilledMemory::Rows(len) => len,
            FilledMemory::Nothing => return Ok(false),
            FilledMemory::LongRow => {
                self.begin_long_row();
                return self.skip(source, visitor, &mut poll).map(|()| true);
            }
        };
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
        let mut start = self.bom_len(batch);
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
        if self.longest < row.bytes.len() as u64 {
            visitor.bad(row.offset, row.bytes.len() as u64, RowCause::TooLong);
            return Ok(());
        }
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

    /// Returns the length of the byte order mark, if `memory` is the beginning of the file and has one.
    fn bom_len(&self, memory: &[u8]) -> usize {
        if self.at == 0 && memory.starts_with(BOM) { BOM.len() } else { 0 }
    }

    /// Moves to the first byte that the last batch did not use.
    fn discard(&mut self) {
        self.memory.copy_within(self.used..self.filled, 0);
        self.at += self.used as u64;
        self.filled -= self.used;
        self.used = 0;
    }

    /// Begins to skip the row that fills the memory.
    fn begin_long_row(&mut self) {
        let filled = self.memory.get(..self.filled).unwrap_or_default();
        self.long_row = Some(self.at + self.bom_len(filled) as u64);
        self.used = self.filled;
        self.discard();
    }

    /// Skips the rest of a row that is too long, but at most [`SKIPPED`] bytes. The visitor gets the row at its end.
    fn skip<R: ReadAt + ?Sized, E: From<ExamineError>>(
        &mut self,
        source: &R,
        visitor: &mut dyn RowVisitor,
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let most = self.at.saturating_add(SKIPPED);
        while self.at < most {
            self.read(source, poll)?;
            let newline = memchr(b'\n', self.memory.get(..self.filled).unwrap_or_default());
            let end = self.at + newline.unwrap_or(self.filled) as u64;
            self.used = newline.map_or(self.filled, |len| len + 1);
            if newline.is_some() || end == self.end {
                let offset = self.long_row.take().unwrap_or(end);
                visitor.bad(offset, end - offset, RowCause::TooLong);
                return Ok(());
            }
            self.discard();
        }
        Ok(())
    }

    /// Reads until the memory contains a whole row, or too much of one.
    fn fill<R: ReadAt + ?Sized, E: From<ExamineError>>(
        &mut self,
        source: &R,
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<FilledMemory, E> {
        let mut looked = 0;
        loop {
            self.read(source, poll)?;
            let new = self.memory.get(looked..self.filled).unwrap_or_default();
            if let Some(last) = memchr::memrchr(b'\n', new) {
                return Ok(FilledMemory::Rows(looked + last + 1));
            }
            if self.at + self.filled as u64 == self.end {
                let is_empty = self.filled == 0;
                let rows = FilledMemory::Rows(self.filled);
                return Ok(if is_empty { FilledMemory::Nothing } else { rows });
            }
            let filled = self.memory.get(..self.filled).unwrap_or_default();
            // A mark that is cut does not count either.
            let is_cut_mark = self.at == 0 && filled.len() < BOM.len() && BOM.starts_with(filled);
            if !is_cut_mark && self.longest < (self.filled - self.bom_len(filled)) as u64 {
                return Ok(FilledMemory::LongRow);
            }
            looked = self.filled;
        }
    }

    /// Returns the bytes that the memory may have: a block, or the longest row with a byte order mark and one more byte.
    fn memory_limit(&self) -> usize {
        let longest = usize::try_from(self.longest).unwrap_or(usize::MAX);
        self.block.max(longest.saturating_add(BOM.len() + 1))
    }

    /// Fills the memory, which grows up to its limit when one row fills it.
    fn read<R: ReadAt + ?Sized, E: From<ExamineError>>(
        &mut self,
        source: &R,
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let more = if self.filled < self.block { self.block } else { self.filled * 2 };
        let wanted = more.min(self.memory_limit()).min(left);
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
/// Bytes of a row that is too long that one batch skips: some milliseconds of work, so that progress is reported.
const SKIPPED: u64 = 16 << 20;

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
