//! Makes printed rows the elements of arrays. The glue of the batcher calls it in tasks.

use memchr::memchr_iter;

/// Replaces each line break by a comma. Calls `tell` with the end of each row, which is before its comma.
///
/// A row has no line breaks of its own.
pub fn part(rows: &mut [u8], mut tell: impl FnMut(usize)) {
    let mut start = 0;
    while let Some(end) = rows.get(start..).and_then(|rest| memchr_iter(b'\n', rest).next()) {
        let end = start + end;
        if let Some(byte) = rows.get_mut(end) {
            *byte = b',';
        }
        tell(end);
        start = end + 1;
    }
}

/// Writes the pieces to `out`, with a comma between two of them; returns the length. Pieces that do not fit are left out.
pub fn join<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, out: &mut [u8]) -> usize {
    let mut len = 0;
    for piece in pieces {
        if len != 0 {
            len += copy(b",", out, len);
        }
        len += copy(piece, out, len);
    }
    len
}

fn copy(piece: &[u8], out: &mut [u8], at: usize) -> usize {
    match out.get_mut(at..at + piece.len()) {
        Some(place) => {
            place.copy_from_slice(piece);
            piece.len()
        }
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_ends_before_its_comma() {
        let mut rows = *b"1\n[2]\n\"3\"\n";
        let mut ends = Vec::new();
        part(&mut rows, |end| ends.push(end));
        assert_eq!(&rows, b"1,[2],\"3\",");
        assert_eq!(ends, [1, 5, 9]);
    }

    #[test]
    fn no_rows_have_no_ends() {
        for mut rows in [Vec::new(), b"1".to_vec()] {
            let mut ends = Vec::new();
            part(&mut rows, |end| ends.push(end));
            assert_eq!(ends, []);
        }
    }

    #[test]
    fn pieces_have_commas_between_them() {
        let mut out = [b' '; 8];
        let pieces: [&[u8]; 3] = [b"1,2", b"3", b"4"];
        assert_eq!(join(pieces, &mut out), 7);
        assert_eq!(&out, b"1,2,3,4 ");
        assert_eq!(join([], &mut out), 0);
    }

    #[test]
    fn what_there_is_no_room_for_is_left_out() {
        let mut out = [b' '; 4];
        let pieces: [&[u8]; 2] = [b"1,2", b"34"];
        assert_eq!(join(pieces, &mut out), 4);
        assert_eq!(&out, b"1,2,");
    }
}
