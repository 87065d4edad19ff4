//! Joins the chunks of a body. Runs in a task, before the body is scanned.

use crate::memory::copy_polled;

/// Copies `chunks` to `out`, one behind the other. `poll` is called at least once a megabyte.
///
/// Chunks that have no room in `out` are left out.
///
/// # Errors
/// Errors of `poll`.
pub fn join_chunks<'a, E>(
    chunks: impl IntoIterator<Item = &'a [u8]>,
    out: &mut [u8],
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let mut room = out;
    for chunk in chunks {
        let Some((place, rest)) = room.split_at_mut_checked(chunk.len()) else { return Ok(()) };
        copy_polled(chunk, place, &mut poll)?;
        room = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_each_other() {
        let chunks: [&[u8]; 4] = [b"ab", b"", b"c", b"def"];
        let mut out = [0; 6];
        assert_eq!(join_chunks(chunks, &mut out, || Ok::<(), ()>(())), Ok(()));
        assert_eq!(&out, b"abcdef");
    }

    #[test]
    fn a_long_chunk_is_copied_whole_and_can_be_stopped() {
        let chunk: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251) as u8).collect();
        let mut out = vec![0; chunk.len() + 1];
        let mut polls = 0;
        let copied = join_chunks([&*chunk, b"x"], &mut out, || {
            polls += 1;
            Ok::<(), ()>(())
        });
        assert_eq!(copied, Ok(()));
        assert!(out.starts_with(&chunk) && out.ends_with(b"x"));
        assert_eq!(polls, 4);
        let mut left = 2;
        let stopped = join_chunks([&*chunk], &mut out, || {
            left -= 1;
            if left == 0 { Err("stopped") } else { Ok(()) }
        });
        assert_eq!(stopped, Err("stopped"));
    }
}
