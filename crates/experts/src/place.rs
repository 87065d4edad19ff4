//! Rows on their way from what they are written in to where they go, each byte once.

use std::ops::Range;

use crate::chain::{Fill, Plan, Run};
use crate::payload::{Payload, PayloadError};
use crate::widen::widen;
use crate::{Dtype, Shape};

/// Bytes that are read between two polls; a multiple of three, as base64 is read best.
const PIECE: usize = 3 << 18;
/// What is not read to its place: small enough to stay in the cache.
const SCRATCH: usize = 24 << 10;

/// Puts the rows of `payload` that `runs` name to their places in `out`, as `dtype`. `read` gives the payload's bytes one
/// after the other, and fewer than are asked for at their end; `poll` is called every few microseconds of work.
///
/// All of the payload is read, so that what is wrong anywhere in it is found whatever of it is wanted.
///
/// # Errors
/// Those of `read` and `poll`; where there are more or fewer bytes than the payload tells.
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
    let mut source = Source { read: &mut read, poll: &mut poll, left: payload.skipped };
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

struct Source<'a, R, P> {
    read: &'a mut R,
    poll: &'a mut P,
    /// Bytes that are promised.
    left: usize,
}

impl<R, P, E> Source<'_, R, P>
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

    /// Nothing may be behind the last row.
    fn end(&mut self, payload: &Payload) -> Result<(), E> {
        if (self.read)(&mut [0])? == 0 {
            return Ok(());
        }
        let needed = payload.size();
        Err(PayloadError::Size { is: needed + 1, needed: Some(needed) }.into())
    }
}

/// Fills the positions of `plan` that no turn has, in `out`, where the rows of all turns are. `poll` is called every few
/// microseconds of work.
///
/// # Errors
/// Those of `poll`.
pub fn fill<E>(
    plan: &Plan,
    out: &mut [u8],
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let row = plan.shape.row_size(plan.dtype).unwrap_or_default();
    for (positions, fill) in &plan.fills {
        let place = bytes_of(positions.clone(), plan.shape, plan.dtype);
        // At the start there is no row before.
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

/// The row before `place`, in all of that: first in one piece of it, which is then copied.
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
        // Whole rows, as many as there are already; no more than a piece, or one.
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
