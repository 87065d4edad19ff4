//! Decodes rows to their places in a sample, each byte once, and fills the positions without rows.
//!
//! Runs in a task; `resolve.rs` and `turns.rs` call it.

use std::ops::Range;

use crate::concat::{ExpertsPlan, Fill, Run};
use crate::payload::{Payload, PayloadError};
use crate::widen::widen;
use crate::{Dtype, Shape};

/// Bytes decoded between two polls. A multiple of three: base64 decodes whole quanta fastest.
const PIECE: usize = 3 << 18;
/// Bytes of the buffer for rows that are skipped or widened: it stays in the cache.
const SCRATCH: usize = 24 << 10;

/// Decodes the rows of each run to its place in `out`, as `dtype`.
///
/// `read` fills its argument with the next bytes of the payload and returns how many it wrote; fewer than asked only at
/// the end. `poll` is called every few microseconds of work. All of the payload is read, so malformed data is found even
/// in rows that no run names.
///
/// # Errors
/// If the payload has more or fewer bytes than its shape needs, and the errors of `read` and `poll`.
pub fn place<E: From<PayloadError>>(
    mut read: impl FnMut(&mut [u8]) -> Result<usize, E>,
    payload: &Payload,
    runs: &[Run],
    dtype: Dtype,
    out: &mut [u8],
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let row = payload.shape.row_size(payload.dtype).unwrap_or_default();
    let mut scratch = vec![0; SCRATCH];
    let mut source = RowSource { read: &mut read, poll: &mut poll, left: payload.skipped };
    source.skip(payload.skipped, &mut scratch, payload)?;
    source.left = payload.size();
    let mut at = 0;
    for &Run { from, to, rows } in runs {
        source.skip((from - at) * row, &mut scratch, payload)?;
        at = from + rows;
        let Some(place) = out.get_mut(bytes_of(to..to + rows, payload.shape, dtype)) else {
            continue;
        };
        if dtype == payload.dtype {
            source.fill(place, payload)?;
            continue;
        }
        let scale = dtype.size() / payload.dtype.size();
        for place in place.chunks_mut(SCRATCH * scale) {
            let narrow = scratch.get_mut(..place.len() / scale).unwrap_or_default();
            source.fill(narrow, payload)?;
            widen(narrow, payload.dtype, place, dtype);
        }
    }
    source.skip(source.left, &mut scratch, payload)?;
    source.end(payload)
}

/// Reads a payload and counts its bytes.
struct RowSource<'a, R, P> {
    read: &'a mut R,
    poll: &'a mut P,
    /// Bytes that the shape still needs.
    left: usize,
}

impl<R, P, E> RowSource<'_, R, P>
where
    R: FnMut(&mut [u8]) -> Result<usize, E>,
    P: FnMut() -> Result<(), E>,
    E: From<PayloadError>,
{
    fn fill(&mut self, out: &mut [u8], payload: &Payload) -> Result<(), E> {
        for piece in out.chunks_mut(PIECE) {
            (self.poll)()?;
            let len = (self.read)(piece)?;
            self.left -= len;
            if len < piece.len() {
                let needed = payload.size();
                return Err(
                    PayloadError::Size { is: needed - self.left, needed: Some(needed) }.into()
                );
            }
        }
        Ok(())
    }

    fn skip(&mut self, size: usize, scratch: &mut [u8], payload: &Payload) -> Result<(), E> {
        let mut left = size;
        while left != 0 {
            let len = left.min(scratch.len());
            self.fill(scratch.get_mut(..len).unwrap_or_default(), payload)?;
            left -= len;
        }
        Ok(())
    }

    /// Fails if there are bytes behind the last row.
    fn end(&mut self, payload: &Payload) -> Result<(), E> {
        if (self.read)(&mut [0])? == 0 {
            return Ok(());
        }
        let needed = payload.size();
        Err(PayloadError::Size { is: needed + 1, needed: Some(needed) }.into())
    }
}

/// Fills the positions of `plan` that no turn covers. `out` already holds the rows of all turns. `poll` is called every
/// few microseconds of work.
///
/// # Errors
/// The errors of `poll`.
pub fn fill<E>(
    plan: &ExpertsPlan,
    out: &mut [u8],
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let row = plan.shape.row_size(plan.dtype).unwrap_or_default();
    for (positions, fill) in &plan.fills {
        let place = bytes_of(positions.clone(), plan.shape, plan.dtype);
        // Position 0 has no row before it, so repeating fills it with zeros.
        let value = match fill {
            Fill::Repeat if row <= place.start => {
                repeat(out, row, place, &mut poll)?;
                continue;
            }
            Fill::Value(value) => *value,
            Fill::Repeat | Fill::Throw => 0,
        };
        let element = plan.dtype.element(value).unwrap_or_default();
        let element = element.get(..plan.dtype.size()).unwrap_or_default();
        for piece in out.get_mut(place).unwrap_or_default().chunks_mut(PIECE) {
            poll()?;
            for place in piece.chunks_exact_mut(element.len()) {
                place.copy_from_slice(element);
            }
        }
    }
    Ok(())
}

/// Repeats the row before `place` in all of `place`. Each copy doubles the rows that the next one copies.
fn repeat<E>(
    out: &mut [u8],
    row: usize,
    place: Range<usize>,
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let start = place.start - row;
    let mut filled = row;
    while start + filled < place.end {
        poll()?;
        // Copies whole rows: at most those already there, and at most one piece or one row.
        let most = filled.min(PIECE.next_multiple_of(row.max(1)));
        let len = most.min(place.end - start - filled);
        out.copy_within(start..start + len, start + filled);
        filled += len;
    }
    Ok(())
}

fn bytes_of(rows: Range<usize>, shape: Shape, dtype: Dtype) -> Range<usize> {
    let row = shape.row_size(dtype).unwrap_or_default();
    rows.start * row..rows.end * row
}
