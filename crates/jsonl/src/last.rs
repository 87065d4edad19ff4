//! Where the last records of a file begin, read from its end.

use memchr::memrchr;

use crate::examine::ExamineError;
use crate::judge::{Verdict, judge};
use crate::rows::records;
use crate::source::{ReadAt, fill};
use crate::tail::BOM;

/// Where in a file of `size` bytes the row is with which its last `count` good records begin, or some that are before them:
/// how many, is told too. No more is read than that takes, in blocks of `block` bytes, and never before `from`.
///
/// # Errors
/// Those of reading, and of `poll`.
pub fn last<R: ReadAt + ?Sized, E: From<ExamineError>>(
    source: &R,
    from: u64,
    size: u64,
    count: usize,
    block: usize,
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<(u64, usize), E> {
    let mut window = Window { start: size, memory: Vec::new(), unseen: 0 };
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
            window.grow(source, from, block)?;
            continue;
        };
        found += good_records(window.memory.get(row.clone()).unwrap_or_default(), is_terminated);
        let offset = window.start + row.start as u64;
        if count <= found {
            return Ok((offset, found - count));
        }
        window.cut(row.start.saturating_sub(1));
        is_terminated = true;
    }
    let first = window.memory.as_slice();
    let first = if from == 0 { first.strip_prefix(BOM).unwrap_or(first) } else { first };
    found += good_records(first, is_terminated);
    Ok((from, found.saturating_sub(count)))
}

/// The part of the file before the rows that were looked at.
struct Window {
    start: u64,
    memory: Vec<u8>,
    /// Bytes at its beginning in which no "\n" was looked for.
    unseen: usize,
}

impl Window {
    /// The last row, if it begins within.
    fn row(&mut self) -> Option<std::ops::Range<usize>> {
        let newline = memrchr(b'\n', self.memory.get(..self.unseen).unwrap_or_default());
        self.unseen = newline.map_or(0, |at| at + 1);
        newline.map(|at| at + 1..self.memory.len())
    }

    /// Without the row from `end` on, and its "\n".
    fn cut(&mut self, end: usize) {
        self.memory.truncate(end);
        self.unseen = end;
    }

    /// As much again as there is, so that long rows are not copied again and again.
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

fn good_records(row: &[u8], is_terminated: bool) -> usize {
    match judge(row, is_terminated) {
        Verdict::Kept(kept) if kept.is_glued => {
            let mut count = 0;
            records(row, |_| count += 1);
            count
        }
        Verdict::Kept(_) => 1,
        _ => 0,
    }
}
