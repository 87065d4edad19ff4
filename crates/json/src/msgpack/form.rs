//! Writes heads and numbers of `MessagePack` in the shortest form, in tasks.
//!
//! A function returns the length. It may also overwrite the rest of its block.

/// The size of a block for any number.
pub(super) const NUMBER: usize = 9;
/// The size of a block for any head.
pub(super) const HEAD: usize = 5;

pub(super) const NIL: u8 = 0xc0;
pub(super) const FALSE: u8 = 0xc2;
pub(super) const TRUE: u8 = 0xc3;

/// The type of numbers that are not integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floats {
    Double,
    Single,
}

/// The content that follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadKind {
    Array,
    Map,
    Text,
    Bytes,
}

/// Writes the head of `count` elements or bytes; returns the length.
#[inline]
pub(super) fn head(behind: HeadKind, count: u32, to: &mut [u8; HEAD]) -> usize {
    let [_, low @ ..] = count.to_be_bytes();
    let [_, a, b] = low;
    let (small, most, one, two, four) = match behind {
        HeadKind::Array => (0x90, 15, None, 0xdc, 0xdd),
        HeadKind::Map => (0x80, 15, None, 0xde, 0xdf),
        HeadKind::Text => (0xa0, 31, Some(0xd9), 0xda, 0xdb),
        HeadKind::Bytes => (0, -1, Some(0xc4), 0xc5, 0xc6),
    };
    if i64::from(count) <= most {
        *to = [small | b, 0, 0, 0, 0];
        return 1;
    }
    if let (Some(one), ..=0xff) = (one, count) {
        *to = [one, b, 0, 0, 0];
        return 2;
    }
    if count <= 0xffff {
        *to = [two, a, b, 0, 0];
        return 3;
    }
    let [a, b, c, d] = count.to_be_bytes();
    *to = [four, a, b, c, d];
    5
}

/// Writes an integer that is not negative; returns the length.
#[inline]
pub(super) fn natural(value: u64, to: &mut [u8; NUMBER]) -> usize {
    if let Ok(value) = u8::try_from(value) {
        return if value < 0x80 { first(to, value, []) } else { first(to, 0xcc, [value]) };
    }
    if let Ok(value) = u16::try_from(value) {
        first(to, 0xcd, value.to_be_bytes())
    } else if let Ok(value) = u32::try_from(value) {
        first(to, 0xce, value.to_be_bytes())
    } else {
        first(to, 0xcf, value.to_be_bytes())
    }
}

/// Writes an integer; returns the length.
#[inline]
pub(super) fn integer(value: i64, to: &mut [u8; NUMBER]) -> usize {
    if let Ok(value) = u64::try_from(value) {
        return natural(value, to);
    }
    if let Ok(value) = i8::try_from(value) {
        let byte = value.cast_unsigned();
        return if -32 <= value { first(to, byte, []) } else { first(to, 0xd0, [byte]) };
    }
    if let Ok(value) = i16::try_from(value) {
        first(to, 0xd1, value.to_be_bytes())
    } else if let Ok(value) = i32::try_from(value) {
        first(to, 0xd2, value.to_be_bytes())
    } else {
        first(to, 0xd3, value.to_be_bytes())
    }
}

const TWO_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_64: f64 = 18_446_744_073_709_551_616.0;

/// Writes a number of JavaScript: as an integer if it is one of 64 bits; returns the length.
///
/// Numbers beyond 64 bits are always doubles: an `f32` may not hold them.
#[inline]
pub(super) fn number(value: f64, floats: Floats, to: &mut [u8; NUMBER]) -> usize {
    let whole = value as i64;
    let is_whole = (whole as f64).to_bits() == value.to_bits() || value == 0.0;
    if is_whole && value < TWO_63 {
        integer(whole, to)
    } else if (TWO_63..TWO_64).contains(&value) {
        natural(value as u64, to)
    } else {
        let is_beyond = TWO_63 <= value.abs() && value.is_finite();
        float(value, if is_beyond { Floats::Double } else { floats }, to)
    }
}

/// Writes a float, whatever its value; returns the length.
#[inline]
pub(super) fn float(value: f64, floats: Floats, to: &mut [u8; NUMBER]) -> usize {
    match floats {
        Floats::Double => first(to, 0xcb, value.to_be_bytes()),
        Floats::Single => first(to, 0xca, (value as f32).to_be_bytes()),
    }
}

/// Writes a type byte and the bytes behind it; returns the length.
#[inline]
fn first<const N: usize>(to: &mut [u8; NUMBER], kind: u8, bytes: [u8; N]) -> usize {
    let [start, rest @ ..] = to;
    *start = kind;
    if let Some(place) = rest.get_mut(..N) {
        place.copy_from_slice(&bytes);
    }
    1 + N
}
