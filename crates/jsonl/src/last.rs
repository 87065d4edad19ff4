//! Finds where the last records of a file begin, reading from its end. Runs in tasks; `batch_reader` calls it.

use memchr::memrchr;

use crate::batches::records;
use crate::judge::{Verdict, judge_polled};
use crate::progress::ExamineError;
use crate::read_at::{ReadAt, fill};
use crate::tail::BOM;

/// Records to find at the end of a file.
#[derive(Clone, Copy, Debug)]
pub struct LastSettings {
    /// Number of good records.
    pub count: usize,
    /// Offset of the first row that counts.
    pub from: u64,
    /// Most bytes of a row. A longer row has no good records, and is never in memory as a whole.
    pub longest: u64,
    /// Bytes of one read.
    pub block: usize,
}

/// Returns the offset of the row in which the last good records of a file begin, and how many good records of that row come
/// before them.
///
/// It reads blocks from the end of the file, no more than needed, and nothing before `from`.
///
/// # Errors
/// Errors of reading and of `poll`.
pub fn last<R: ReadAt + ?Sized, E: From<ExamineError>>(
    source: &R,
    size: u64,
    settings: LastSettings,
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<(u64, usize), E> {
    let LastSettings { count, from, longest, block } = settings;
    let mut window = Window { start: size, memory: Vec::new(), unseen: 0, is_long: false };
    let mut found = 0;
    let mut is_terminated = false;
    if count == 0 || size <= from {
        return Ok((size, 0));
    }
    loop {
        poll()?;
        let Some(row) = window.row() else {
            if window.start == from {
                break;
            }
            window.discard_long(longest);
            window.grow(source, from, block)?;
            continue;
        };
        let bytes = window.memory.get(row.clone()).unwrap_or_default();
        if !window.is_long && bytes.len() as u64 <= longest {
            found += good_records(bytes, is_terminated, &mut poll)?;
        }
        let offset = window.start + row.start as u64;
        if count <= found {
            return Ok((offset, found - count));
        }
        window.cut(row.start.saturating_sub(1));
        is_terminated = true;
    }
    let first = window.memory.as_slice();
    let first = if from == 0 { first.strip_prefix(BOM).unwrap_or(first) } else { first };
    if !window.is_long && first.len() as u64 <= longest {
        found += good_records(first, is_terminated, &mut poll)?;
    }
    Ok((from, found.saturating_sub(count)))
}

/// Part of the file in memory, up to the rows that were judged.
struct Window {
    start: u64,
    memory: Vec<u8>,
    /// Number of first bytes in which "\n" was not searched.
    unseen: usize,
    /// The last row is too long. Only some first bytes of it are in memory.
    is_long: bool,
}

impl Window {
    /// Returns the range of the last row, if the row begins in the window.
    fn row(&mut self) -> Option<std::ops::Range<usize>> {
        let newline = memrchr(b'\n', self.memory.get(..self.unseen).unwrap_or_default());
        self.unseen = newline.map_or(0, |at| at + 1);
        newline.map(|at| at + 1..self.memory.len())
    }

    /// Removes the bytes from `end` on.
    fn cut(&mut self, end: usize) {
        self.memory.truncate(end);
        self.unseen = end;
        self.is_long = false;
    }

    /// Removes the bytes of a row that is too long. A byte order mark before it does not count.
    fn discard_long(&mut self, longest: u64) {
        self.is_long |= longest.saturating_add(BOM.len() as u64) < self.memory.len() as u64;
        if self.is_long {
            self.memory.clear();
        }
    }

    /// Reads at least as many bytes as the window has, so that long rows are copied a logarithmic number of times.
    fn grow<R: ReadAt + ?Sized>(
        &mut self,
        source: &R,
        from: u64,
        block: usize,
    ) -> Result<(), ExamineError> {
        let left = usize::try_from(self.start - from).unwrap_or(usize::MAX);
        let more = block.max(self.memory.len()).min(left);
        let mut memory = Vec::new();
        memory.try_reserve_exact(more + self.memory.len()).map_err(|_| {
            ExamineError::Read(std::io::Error::from(std::io::ErrorKind::OutOfMemory))
        })?;
        memory.resize(more, 0);
        self.start -= more as u64;
        fill(source, &mut memory, self.start)?;
        memory.extend_from_slice(&self.memory);
        self.memory = memory;
        self.unseen = more;
        Ok(())
    }
}

fn good_records<E>(
    row: &[u8],
    is_terminated: bool,
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<usize, E> {
    match judge_polled(row, is_terminated, poll)? {
        Verdict::Good(kept) if kept.is_glued => {
            let mut count = 0;
            records(row, |_| {
                count += 1;
                Ok::<(), E>(())
            })?;
            Ok(count)
        }
        Verdict::Good(_) => Ok(1),
        _ => Ok(0),
    }
}
