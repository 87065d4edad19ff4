//! Rewrites rows that Python wrote and `JSON.parse` refuses as JSON with the same values. Runs in tasks; `batch_writer` and
//! `census` call it.
//!
//! `NaN` and the infinities become strings that begin with a mark, which no string of the row contains. Time and size are
//! linear in the row; only the length of a mark may add a logarithmic factor.

use std::convert::Infallible;

use memchr::{memchr2, memchr3, memmem};

use crate::mark::mark_for;
use crate::utf8::Utf8;

/// Bytes between two polls: some hundred microseconds of work.
pub(crate) const PIECE: usize = 64 << 10;

/// Rewrites `row`, which must be good. Each `NaN`, `Infinity` and `-Infinity` becomes a string that begins with a mark; each invalid
/// UTF-8 byte becomes U+FFFD. Returns the mark, too.
#[must_use]
pub fn standard(row: &[u8]) -> (String, String) {
    let never = || Ok::<(), Infallible>(());
    match standard_polled(row, never) {
        Ok((json, mark)) => (String::from_utf8_lossy(&json).into_owned(), mark),
        Err(never) => match never {},
    }
}

/// Rewrites like [`standard`] and returns UTF-8. Calls `poll` at least every [`PIECE`] bytes of each pass.
///
/// # Errors
/// The error of `poll`.
pub fn standard_polled<E>(
    row: &[u8],
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<(Vec<u8>, String), E> {
    let mark = mark_for(row, &mut poll)?;
    let is_utf8 = is_utf8(row, &mut poll)?;
    let mut rewriter = RowRewriter { row, at: 0, copied: 0, is_utf8, json: Vec::new(), poll };
    rewriter.json.reserve(row.len() + 64);
    while let Some(byte) = rewriter.find(|piece| memchr3(b'"', b'N', b'I', piece))? {
        if byte == b'"' {
            rewriter.skip_string()?;
        } else {
            rewriter.replace_word(if byte == b'N' { "NaN" } else { "Infinity" }, &mark)?;
        }
    }
    rewriter.copy()?;
    Ok((rewriter.json, mark))
}

/// Copy of a row with replaced words.
struct RowRewriter<'a, P> {
    row: &'a [u8],
    at: usize,
    /// Offset up to which `json` has the row.
    copied: usize,
    is_utf8: bool,
    json: Vec<u8>,
    poll: P,
}

impl<E, P: FnMut() -> Result<(), E>> RowRewriter<'_, P> {
    /// Moves to the next byte that `find` finds in a piece. Returns the byte, or `None` at the end of the row.
    fn find(&mut self, find: impl Fn(&[u8]) -> Option<usize>) -> Result<Option<u8>, E> {
        loop {
            let rest = self.row.get(self.at..).unwrap_or_default();
            let piece = rest.get(..PIECE).unwrap_or(rest);
            if let Some(len) = find(piece) {
                self.at += len;
                return Ok(rest.get(len).copied());
            }
            self.at += piece.len();
            if piece.is_empty() {
                return Ok(None);
            }
            (self.poll)()?;
        }
    }

    /// Moves behind the string that begins here.
    fn skip_string(&mut self) -> Result<(), E> {
        self.at += 1;
        while let Some(byte) = self.find(|piece| memchr2(b'"', b'\\', piece))? {
            if byte == b'"' {
                self.at += 1;
                return Ok(());
            }
            self.at += 2;
        }
        Ok(())
    }

    /// Replaces the word that begins here and the sign before it.
    fn replace_word(&mut self, name: &str, mark: &str) -> Result<(), E> {
        self.copy()?;
        let is_negative = self.json.last() == Some(&b'-');
        if is_negative {
            self.json.pop();
        }
        let sign = if is_negative { "-" } else { "" };
        for part in ["\"", mark, sign, name, "\""] {
            self.json.extend_from_slice(part.as_bytes());
        }
        self.at += name.len();
        self.copied = self.at;
        Ok(())
    }

    /// Copies the bytes from `copied` up to here.
    fn copy(&mut self) -> Result<(), E> {
        while let Some(rest) = self.row.get(self.copied..self.at).filter(|rest| !rest.is_empty()) {
            let piece = first_piece(rest);
            self.copied += piece.len();
            if self.is_utf8 {
                self.json.extend_from_slice(piece);
            } else {
                self.json.extend_from_slice(String::from_utf8_lossy(piece).as_bytes());
            }
            if piece.len() < rest.len() {
                (self.poll)()?;
            }
        }
        Ok(())
    }
}

/// Returns about [`PIECE`] first bytes, without cutting a character.
fn first_piece(rest: &[u8]) -> &[u8] {
    let is_inside = |&end: &usize| rest.get(end).is_some_and(|byte| byte & 0xc0 == 0x80);
    // A character has at most three continuation bytes.
    let end = (PIECE - 3..=PIECE).rev().find(|end| !is_inside(end)).unwrap_or(PIECE);
    rest.get(..end).unwrap_or(rest)
}

fn is_utf8<E>(row: &[u8], poll: &mut impl FnMut() -> Result<(), E>) -> Result<bool, E> {
    let mut utf8 = Utf8::default();
    for piece in row.chunks(PIECE) {
        poll()?;
        utf8.feed(piece);
    }
    Ok(utf8.is_whole())
}

/// Returns whether `row` contains `needle` somewhere where `fits` accepts the bytes behind it.
pub(crate) fn contains<E>(
    row: &[u8],
    needle: &[u8],
    fits: impl Fn(&[u8]) -> bool,
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<bool, E> {
    let finder = memmem::Finder::new(needle);
    for start in (0..row.len()).step_by(PIECE) {
        poll()?;
        let end = row.len().min(start + PIECE + needle.len() - 1);
        let piece = row.get(start..end).unwrap_or_default();
        let behind = |at: usize| row.get(start + at + needle.len()..).unwrap_or_default();
        if finder.find_iter(piece).any(|at| fits(behind(at))) {
            return Ok(true);
        }
    }
    Ok(false)
}
