//! Converts the numbers of a JSON array to the elements of a typed array. Runs in a task; `fill` calls it.
//!
//! An element is the double that `JSON.parse` gives. An integer element must be exactly that double; a float is
//! rounded.

use std::error::Error;
use std::fmt;

/// The element type of a typed array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Float32,
    Float64,
}

impl ElementType {
    /// Returns the type that the option `lift` calls `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "int8" => Self::Int8,
            "uint8" => Self::Uint8,
            "int16" => Self::Int16,
            "uint16" => Self::Uint16,
            "int32" => Self::Int32,
            "uint32" => Self::Uint32,
            "float32" => Self::Float32,
            "float64" => Self::Float64,
            _ => return None,
        })
    }

    /// Returns the bytes of an element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }
}

/// Why numbers were not converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError<E> {
    /// The number at `offset` in the text does not fit its element.
    Unfit { offset: usize },
    /// The error of `poll`.
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

/// Writes the numbers of `text`, which is a valid array of numbers or of arrays of them, to `out`. `poll` is called every
/// 0.1 ms of work.
///
/// # Errors
/// The first number that does not fit its element, and the errors of `poll`.
pub fn fill_numbers<E>(
    text: &[u8],
    element: ElementType,
    out: &mut [u8],
    poll: impl FnMut() -> Result<(), E>,
) -> Result<(), NumberError<E>> {
    let numbers = NumberReader { text, at: 0 };
    match element {
        ElementType::Int8 => numbers.fill(out, poll, |value| whole(value).map(i8::to_ne_bytes)),
        ElementType::Uint8 => numbers.fill(out, poll, |value| whole(value).map(u8::to_ne_bytes)),
        ElementType::Int16 => numbers.fill(out, poll, |value| whole(value).map(i16::to_ne_bytes)),
        ElementType::Uint16 => numbers.fill(out, poll, |value| whole(value).map(u16::to_ne_bytes)),
        ElementType::Int32 => numbers.fill(out, poll, |value| whole(value).map(i32::to_ne_bytes)),
        ElementType::Uint32 => numbers.fill(out, poll, |value| whole(value).map(u32::to_ne_bytes)),
        ElementType::Float32 => {
            numbers.fill(out, poll, |value| Some((value.value() as f32).to_ne_bytes()))
        }
        ElementType::Float64 => numbers.fill(out, poll, |value| Some(value.value().to_ne_bytes())),
    }
}

/// Checks that all `count` numbers of `text` fit their elements: see [`fill_numbers`].
///
/// # Errors
/// Fails as [`fill_numbers`] does.
pub(crate) fn check_numbers<E>(
    text: &[u8],
    element: ElementType,
    count: usize,
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<(), NumberError<E>> {
    // Floats are rounded, so every number fits.
    let fits = match element {
        ElementType::Int8 => |value| whole::<i8>(value).is_some(),
        ElementType::Uint8 => |value| whole::<u8>(value).is_some(),
        ElementType::Int16 => |value| whole::<i16>(value).is_some(),
        ElementType::Uint16 => |value| whole::<u16>(value).is_some(),
        ElementType::Int32 => |value| whole::<i32>(value).is_some(),
        ElementType::Uint32 => |value| whole::<u32>(value).is_some(),
        ElementType::Float32 | ElementType::Float64 => return Ok(()),
    };
    let mut numbers = NumberReader { text, at: 0 };
    for index in 0..count {
        if index % BATCH == 0 {
            poll().map_err(NumberError::Stopped)?;
        }
        let (number, offset) = numbers.next();
        if !fits(number) {
            return Err(NumberError::Unfit { offset });
        }
    }
    Ok(())
}

/// Returns the number as an integer element, where it is exactly that.
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

/// A number of the text.
#[derive(Clone, Copy)]
enum Number<'a> {
    /// An integer that a double holds exactly. Not `-0`, whose sign an integer would lose.
    Integer(i64),
    /// The text of any other number.
    Other(&'a [u8]),
}

impl Number<'_> {
    fn value(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Other(text) => {
                str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
            }
        }
    }
}

/// Reads the numbers of arrays that are known to hold nothing else.
struct NumberReader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> NumberReader<'a> {
    /// Returns the next number and its offset.
    #[inline]
    fn next(&mut self) -> (Number<'a>, usize) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let offset = self.at + rest.iter().position(|&byte| is_number(byte)).unwrap_or(rest.len());
        let (number, len) = next(self.text.get(offset..).unwrap_or_default());
        self.at = offset + len;
        (number, offset)
    }

    fn fill<E, const SIZE: usize>(
        mut self,
        out: &mut [u8],
        mut poll: impl FnMut() -> Result<(), E>,
        convert: impl Fn(Number<'_>) -> Option<[u8; SIZE]>,
    ) -> Result<(), NumberError<E>> {
        for batch in out.as_chunks_mut::<SIZE>().0.chunks_mut(BATCH) {
            poll().map_err(NumberError::Stopped)?;
            for element in batch {
                let (number, offset) = self.next();
                *element = convert(number).ok_or(NumberError::Unfit { offset })?;
            }
        }
        Ok(())
    }
}

/// Numbers that are converted between two polls.
const BATCH: usize = 4096;

fn is_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// A double holds every integer of this many digits exactly.
const EXACT_DIGITS: usize = 15;

/// Reads the number at the start of `text`. Returns it and its length.
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
