//! The numbers of an array, as elements of a typed array: the double that `JSON.parse` gives, if the element can be it.

use std::error::Error;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int32,
    Uint8,
    Uint16,
    Float32,
    Float64,
}

impl Kind {
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Uint8 => 1,
            Self::Uint16 => 2,
            Self::Int32 | Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError<E> {
    /// A number that is none of the elements' kind; where it begins in the text.
    Unfit { offset: usize },
    /// What `poll` failed with.
    Stopped(E),
}

impl<E: fmt::Display> fmt::Display for NumberError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit { offset } => write!(f, "the number at byte {offset} does not fit"),
            Self::Stopped(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for NumberError<E> {}

/// Writes the numbers of `text`, an array of nothing else, to `out`. `poll` is called every 0.1 ms of work.
///
/// # Errors
/// The first that does not fit, and those of `poll`. Floats round, as in typed arrays.
pub fn fill_numbers<E>(
    text: &[u8],
    kind: Kind,
    out: &mut [u8],
    poll: impl FnMut() -> Result<(), E>,
) -> Result<(), NumberError<E>> {
    match kind {
        Kind::Int32 => fill(text, out, poll, |value| whole::<i32>(value).map(i32::to_ne_bytes)),
        Kind::Uint8 => fill(text, out, poll, |value| whole::<u8>(value).map(u8::to_ne_bytes)),
        Kind::Uint16 => fill(text, out, poll, |value| whole::<u16>(value).map(u16::to_ne_bytes)),
        Kind::Float32 => fill(text, out, poll, |value| Some((value.value() as f32).to_ne_bytes())),
        Kind::Float64 => fill(text, out, poll, |value| Some(value.value().to_ne_bytes())),
    }
}

fn whole<T: TryFrom<i64>>(number: Number<'_>) -> Option<T> {
    match number {
        Number::Integer(value) => T::try_from(value).ok(),
        Number::Other(_) => {
            let value = number.value();
            let integer = value as i64;
            let is_whole = (integer as f64).to_bits() == value.to_bits() || value == 0.0;
            if is_whole { T::try_from(integer).ok() } else { None }
        }
    }
}

#[derive(Clone, Copy)]
enum Number<'a> {
    /// Exact as a double.
    Integer(i64),
    Other(&'a [u8]),
}

impl Number<'_> {
    fn value(self) -> f64 {
        match self {
            // Not of "-0", whose sign would be lost.
            Self::Integer(value) => value as f64,
            Self::Other(text) => {
                str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
            }
        }
    }
}

fn fill<E, const SIZE: usize>(
    text: &[u8],
    out: &mut [u8],
    mut poll: impl FnMut() -> Result<(), E>,
    convert: impl Fn(Number<'_>) -> Option<[u8; SIZE]>,
) -> Result<(), NumberError<E>> {
    let mut at = 0;
    for batch in out.as_chunks_mut::<SIZE>().0.chunks_mut(BATCH) {
        poll().map_err(NumberError::Stopped)?;
        for place in batch {
            let rest = text.get(at..).unwrap_or_default();
            at += rest.iter().position(|&byte| is_number(byte)).unwrap_or(rest.len());
            let (number, len) = next(text.get(at..).unwrap_or_default());
            *place = convert(number).ok_or(NumberError::Unfit { offset: at })?;
            at += len;
        }
    }
    Ok(())
}

const BATCH: usize = 4096;

fn is_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Digits of integers that every double is.
const EXACT_DIGITS: usize = 15;

/// The number at the start of `text`, and how long that is.
fn next(text: &[u8]) -> (Number<'_>, usize) {
    let is_negative = text.first() == Some(&b'-');
    let digits = text.get(usize::from(is_negative)..).unwrap_or_default();
    let mut value = 0;
    let mut len = 0;
    for &byte in digits.iter().take(EXACT_DIGITS).take_while(|byte| byte.is_ascii_digit()) {
        value = value * 10 + i64::from(byte - b'0');
        len += 1;
    }
    let is_over = !digits.get(len).is_some_and(|&byte| is_number(byte));
    if is_over && !(is_negative && value == 0) {
        let signed = if is_negative { -value } else { value };
        return (Number::Integer(signed), len + usize::from(is_negative));
    }
    let len = text.iter().position(|&byte| !is_number(byte)).unwrap_or(text.len());
    (Number::Other(text.get(..len).unwrap_or_default()), len)
}
