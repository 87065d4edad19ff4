//! Finds a mark that no string of a row contains. Runs in tasks; `standard` calls it.
//!
//! A mark is some signs and `number:`, for example `#$number:`. Each `number:` in the row rules out one mark of each length, so
//! one of the marks with enough signs is free. Strings are read as JavaScript reads them: `"\u006eumber:"` contains `number:`.

use crate::standard::{PIECE, contains};

const NAME: &[u8] = b"number:";

/// Signs before the name; each is one bit.
const SIGNS: [char; 2] = ['#', '$'];

/// Returns a mark with the smallest number of signs that always suffices.
pub(crate) fn mark_for<E>(
    row: &[u8],
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<String, E> {
    // Most rows contain neither the name nor an escape of one of its characters. Those escapes are 3a and 62 to 75.
    let is_escape = |digits: &[u8]| matches!(digits, [b'3' | b'6' | b'7', ..]);
    let is_likely =
        contains(row, NAME, |_| true, poll)? || contains(row, b"\\u00", is_escape, poll)?;
    let names = if is_likely { names_in(row, poll)? } else { Vec::new() };
    let len = usize::BITS - names.len().leading_zeros();
    let mut is_ruled_out = vec![false; 1 << len];
    for name in names {
        if let Some(place) = name.signs(len).and_then(|signs| is_ruled_out.get_mut(signs)) {
            *place = true;
        }
    }
    let free = is_ruled_out.iter().position(|&is_ruled_out| !is_ruled_out).unwrap_or_default();
    let sign = |bit: u32| if free >> bit & 1 == 0 { SIGNS[0] } else { SIGNS[1] };
    let signs = (0..len).rev().map(sign);
    Ok(signs.chain(NAME.iter().map(|&byte| char::from(byte))).collect())
}

/// The signs before a name.
#[derive(Clone, Copy, Default)]
struct Signs {
    /// One bit for each sign; the last sign is the lowest bit.
    bits: usize,
    /// Number of signs, at most the number of bits.
    count: u32,
}

impl Signs {
    fn push(self, sign: usize) -> Self {
        Self { bits: self.bits << 1 | sign, count: usize::BITS.min(self.count + 1) }
    }

    /// Returns the last `len` signs, if there are so many.
    fn signs(self, len: u32) -> Option<usize> {
        (len <= self.count).then_some(self.bits & ((1 << len) - 1))
    }
}

/// Returns the signs before each name in the row, with escapes read.
fn names_in<E>(row: &[u8], poll: &mut impl FnMut() -> Result<(), E>) -> Result<Vec<Signs>, E> {
    let mut names = Vec::new();
    let (mut signs, mut matched) = (Signs::default(), 0);
    let (mut at, mut polled) = (0, 0);
    while let Some((byte, len)) = unescaped_at(row, at) {
        at += len;
        if polled + PIECE <= at {
            poll()?;
            polled = at;
        }
        if NAME.get(matched) == Some(&byte) {
            matched += 1;
        } else {
            // The first byte of the name occurs in it only once.
            let is_sign = SIGNS.iter().position(|&sign| sign == char::from(byte));
            let before = if matched == 0 { signs } else { Signs::default() };
            signs = is_sign.map(|sign| before.push(sign)).unwrap_or_default();
            matched = usize::from(NAME.first() == Some(&byte));
        }
        if matched == NAME.len() {
            names.push(signs);
            (signs, matched) = (Signs::default(), 0);
        }
    }
    Ok(names)
}

/// Returns the byte at `at`, or the byte that an escape there stands for, and its length in the row. Zero stands for any other
/// character.
fn unescaped_at(row: &[u8], at: usize) -> Option<(u8, usize)> {
    let rest = row.get(at..)?;
    match rest {
        [b'\\', b'u', digits @ ..] => {
            let digits = digits.get(..4).and_then(|digits| str::from_utf8(digits).ok());
            let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
            Some((unit.and_then(|unit| u8::try_from(unit).ok()).unwrap_or_default(), 6))
        }
        [b'\\', ..] => Some((0, 2)),
        [byte, ..] => Some((*byte, 1)),
        [] => None,
    }
}
