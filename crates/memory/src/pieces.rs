//! Long copies in pieces, so that a task can stop between them.
//!
//! Tasks of the glue call it.

/// Bytes between two calls of `poll`: some 0.1 ms of work.
const PIECE: usize = 1 << 20;

/// The unused memory that a result of any length may have.
const MIN_WASTE: usize = 32 << 10;

/// Copies `src` to the start of `dst`. Calls `poll` before each MiB.
///
/// # Errors
/// Fails as `poll` does. The bytes of `src` that do not fit are left out.
pub fn copy_pieces<E>(
    src: &[u8],
    dst: &mut [u8],
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    for (to, from) in dst.chunks_mut(PIECE).zip(src.chunks(PIECE)) {
        poll()?;
        let len = to.len().min(from.len());
        if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
            to.copy_from_slice(from);
        }
    }
    Ok(())
}

/// Zeroes `memory` from `start` to its end. Calls `poll` before each MiB.
///
/// # Errors
/// Fails as `poll` does.
pub fn clear_pieces<E>(
    memory: &mut [u8],
    start: usize,
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    for piece in memory.get_mut(start..).unwrap_or_default().chunks_mut(PIECE) {
        poll()?;
        piece.fill(0);
    }
    Ok(())
}

/// Returns whether memory of `size` bytes is too large for a result of `len` bytes, which keeps all of it alive.
#[must_use]
pub fn is_wasteful(size: usize, len: usize) -> bool {
    len / 2 + MIN_WASTE < size.saturating_sub(len)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// The lengths around which pieces begin and end.
    const LENS: [usize; 7] = [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 3];

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|index| (index % 251) as u8 + 1).collect()
    }

    #[test]
    fn a_copy_ends_where_the_source_or_the_memory_does() {
        for (len, room) in LENS.into_iter().flat_map(|len| LENS.map(|room| (len, room))) {
            let src = bytes(len);
            let mut dst = vec![0; room];
            let mut polls = 0;
            let poll = || {
                polls += 1;
                Ok::<_, Infallible>(())
            };
            assert_eq!(copy_pieces(&src, &mut dst, poll), Ok(()));
            let mut expected = vec![0; room];
            expected.iter_mut().zip(&src).for_each(|(to, from)| *to = *from);
            assert!(dst == expected, "{len} bytes to {room}");
            assert_eq!(polls, len.min(room).div_ceil(PIECE), "{len} bytes to {room}");
        }
    }

    #[test]
    fn memory_is_cleared_from_the_start_on() {
        for (len, start) in LENS.into_iter().flat_map(|len| LENS.map(|start| (len, start))) {
            let mut memory = bytes(len);
            assert_eq!(clear_pieces(&mut memory, start, || Ok::<_, Infallible>(())), Ok(()));
            let mut expected = bytes(len);
            expected.iter_mut().skip(start).for_each(|byte| *byte = 0);
            assert!(memory == expected, "{len} bytes from {start}");
        }
    }

    #[test]
    fn a_poll_that_fails_stops_before_its_piece() {
        let src = bytes(3 * PIECE);
        let mut dst = vec![0; 3 * PIECE];
        let mut polls = 0;
        let mut poll = || {
            polls += 1;
            if polls == 2 { Err("stopped") } else { Ok(()) }
        };
        assert_eq!(copy_pieces(&src, &mut dst, &mut poll), Err("stopped"));
        assert_eq!(dst.iter().position(|&byte| byte == 0), Some(PIECE));
        polls = 0;
        let mut poll = || {
            polls += 1;
            if polls == 2 { Err("stopped") } else { Ok(()) }
        };
        assert_eq!(clear_pieces(&mut dst, 0, &mut poll), Err("stopped"));
        assert!(dst.iter().take(PIECE).all(|&byte| byte == 0));
    }

    #[test]
    fn a_result_may_leave_half_its_length_and_32_kib_unused() {
        for (len, most) in [(0, 32 << 10), (1 << 20, (1 << 20) + (512 << 10) + (32 << 10))] {
            assert!(!is_wasteful(0, len));
            assert!(!is_wasteful(len, len));
            assert!(!is_wasteful(most, len));
            assert!(is_wasteful(most + 1, len));
        }
    }
}
