//! Rows forward, in batches: each looked at once, and told as what it is worth.

use std::ops::Range;

use memchr::memchr;

use crate::examine::ExamineError;
use crate::judge::{Cause, Torn, Verdict, judge};
use crate::source::ReadAt;
use crate::tail::BOM;

/// A row, or a record of a glued one, without what separates it from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    pub offset: u64,
    pub bytes: &'a [u8],
    /// Its place in the memory of the batch.
    pub start: usize,
    /// `JSON.parse` takes it as it stands.
    pub is_standard: bool,
}

/// What is told of a batch, in the order of the file.
pub trait Visit {
    /// A whole row that is good if it `is_standard` JSON: tells whether it is, and then keeps it. Nobody calls this for
    /// rows of which more must be known.
    fn standard(&mut self, row: Row<'_>) -> bool;
    /// A record of a glued row, or a row that `JSON.parse` does not take.
    fn other(&mut self, row: Row<'_>);
    fn bad(&mut self, offset: u64, len: u64, cause: Cause);
}

/// Where the reading of a file is. The memory is used again for the next batch.
#[derive(Debug)]
pub struct Rows {
    /// Where in the file the memory begins, and up to where it is filled.
    at: u64,
    filled: usize,
    /// What of it the last batch had.
    used: usize,
    memory: Vec<u8>,
    /// The size when the file was opened, or where it was found to end since.
    end: u64,
    block: usize,
    /// Records to be left out, of rows that begin with others.
    skipped: usize,
}

impl Rows {
    /// From `start` on, which is 0 or behind a row, of a file of `size` bytes, some `block` bytes at a time.
    #[must_use]
    pub fn new(start: u64, size: u64, block: usize) -> Self {
        let (at, end) = (start.min(size), size);
        Self { at, filled: 0, used: 0, memory: Vec::new(), end, block: block.max(1), skipped: 0 }
    }

    /// The same, without its first records.
    #[must_use]
    pub fn skipping(self, records: usize) -> Self {
        Self { skipped: records, ..self }
    }

    /// Up to where the batches were so far.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.at + self.used as u64
    }

    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// What the rows of the last batch stand in.
    #[must_use]
    pub fn memory(&self) -> &[u8] {
        &self.memory
    }

    /// The next rows, one at least; none where there are no more. `poll` is called every few hundred microseconds.
    ///
    /// # Errors
    /// Those of reading, and of `poll`.
    pub fn batch<R: ReadAt + ?Sized, E: From<ExamineError>>(
        &mut self,
        source: &R,
        visitor: &mut impl Visit,
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<bool, E> {
        let Some(len) = self.fill(source, &mut poll)? else { return Ok(false) };
        let is_last = self.at + self.filled as u64 == self.end && len == self.filled;
        let memory = std::mem::take(&mut self.memory);
        let batch = memory.get(..len).unwrap_or_default();
        let told = self.tell(batch, is_last, visitor, &mut poll);
        self.memory = memory;
        self.used = len;
        told.map(|()| true)
    }

    fn tell<E>(
        &mut self,
        batch: &[u8],
        is_last: bool,
        visitor: &mut impl Visit,
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
            self.tell_row(Row { offset, bytes, start, is_standard: true }, is_terminated, visitor);
            start += len + 1;
            if polled + POLL <= start {
                poll()?;
                polled = start;
            }
        }
        Ok(())
    }

    fn tell_row(&mut self, row: Row<'_>, is_terminated: bool, visitor: &mut impl Visit) {
        // Of what has no end the judge says whether it may be the beginning of something else.
        if is_terminated && self.skipped == 0 && visitor.standard(row) {
            return;
        }
        match judge(row.bytes, is_terminated) {
            Verdict::Blank => {}
            Verdict::Torn(Torn { cause, .. }) => {
                visitor.bad(row.offset, row.bytes.len() as u64, cause);
            }
            Verdict::Kept(kept) => {
                let is_standard = kept.flaw(row.bytes).is_none();
                if kept.is_glued {
                    records(row.bytes, |range| {
                        let bytes = row.bytes.get(range.clone()).unwrap_or_default();
                        let offset = row.offset + range.start as u64;
                        let start = row.start + range.start;
                        let is_standard = judge_is_standard(bytes);
                        self.tell_kept(Row { offset, bytes, start, is_standard }, visitor);
                    });
                } else {
                    self.tell_kept(Row { is_standard, ..row }, visitor);
                }
            }
        }
    }

    fn tell_kept(&mut self, row: Row<'_>, visitor: &mut impl Visit) {
        if self.skipped != 0 {
            self.skipped -= 1;
        } else if !row.is_standard || !visitor.standard(row) {
            visitor.other(row);
        }
    }

    /// Reads until there is a whole row, and tells up to where there are such. None at the end.
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

    /// Fills the memory, which grows where it is full of one row.
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
                // It was cut since it was opened.
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

/// Bytes that are read or looked at between two polls.
const POLL: usize = 1 << 20;

fn judge_is_standard(record: &[u8]) -> bool {
    matches!(judge(record, true), Verdict::Kept(kept) if kept.flaw(record).is_none())
}

/// Tells the places of the objects and arrays of a row that is nothing else.
pub(crate) fn records(row: &[u8], mut tell: impl FnMut(Range<usize>)) {
    let (mut depth, mut start, mut at) = (0_usize, 0, 0);
    while let Some(&byte) = row.get(at) {
        match byte {
            b'"' => at = string_end(row, at),
            b'{' | b'[' => {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    tell(start..at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Of the string that begins at `at`: its closing quote.
fn string_end(row: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(offset) = memchr::memchr2(b'"', b'\\', row.get(at..).unwrap_or_default()) {
        at += offset;
        if row.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    row.len()
}
