//! Copies and clears memory in pieces, so that a task can be stopped meanwhile.

/// Bytes between two polls: about 0.1 ms of work.
pub(crate) const PIECE: usize = 1 << 20;

/// Copies `from` to the start of `to`, or as much of it as `to` holds.
pub(crate) fn copy_polled<E>(
    from: &[u8],
    to: &mut [u8],
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    for (from, to) in from.chunks(PIECE).zip(to.chunks_mut(PIECE)) {
        poll()?;
        let len = from.len().min(to.len());
        let (from, to) = (from.get(..len), to.get_mut(..len));
        if let (Some(from), Some(to)) = (from, to) {
            to.copy_from_slice(from);
        }
    }
    Ok(())
}

/// Writes zeros to `out` from `len` on: recycled memory must not show what was in it before.
pub(crate) fn clear_rest<E>(
    out: &mut [u8],
    len: usize,
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    for piece in out.get_mut(len..).unwrap_or_default().chunks_mut(PIECE) {
        poll()?;
        piece.fill(0);
    }
    Ok(())
}
