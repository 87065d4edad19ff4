//! Numbers as JavaScript prints them, each with a comma behind it: one block, of which the caller keeps the start.

/// Integers up to here are exact; every double from here on is one.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Between this and [`EXACT`] the shortest digits have the same layout in Rust and JavaScript.
const PLAIN: f64 = 1e-5;

/// Room for any number and its comma.
pub(crate) const NUMBER: usize = 32;
/// Room for an integer of 32 bits and its comma.
pub(crate) const INT: usize = 16;

#[inline]
pub(crate) fn double(value: f64) -> ([u8; NUMBER], usize) {
    let size = value.abs();
    if size < EXACT {
        let integer = value as i64;
        if (integer as f64).to_bits() == value.to_bits() || value == 0.0 {
            return long(integer);
        }
        if PLAIN <= size {
            return text(zmij::Buffer::new().format_finite(value));
        }
    } else if !value.is_finite() {
        return text("null");
    }
    text(ryu_js::Buffer::new().format_finite(value))
}

/// Every integer below is one of these.
const SINGLE_EXACT: f32 = 16_777_216.0;
const SINGLE_PLAIN: f32 = 1e-5;

/// The shortest text that reads back as this number of 32 bits, as JavaScript would lay it out.
#[inline]
pub(crate) fn single(value: f32) -> ([u8; NUMBER], usize) {
    let size = value.abs();
    if size < SINGLE_EXACT {
        let integer = value as i32;
        if (integer as f32).to_bits() == value.to_bits() || value == 0.0 {
            return long(integer.into());
        }
        if SINGLE_PLAIN <= size {
            return text(zmij::Buffer::new().format_finite(value));
        }
    } else if !value.is_finite() {
        return text("null");
    }
    // So few digits are the shortest of the double next to them too.
    double(zmij::Buffer::new().format_finite(value).parse().unwrap_or(f64::NAN))
}

/// A number of 16 bits, as the double that it is for JavaScript.
pub(crate) fn half(bits: u16) -> ([u8; NUMBER], usize) {
    let fraction = f64::from(bits & 0x3ff);
    let size = match bits >> 10 & 0x1f {
        0 => fraction * 2_f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1024.0 + fraction) * 2_f64.powi(i32::from(exponent) - 25),
    };
    double(if bits >> 15 == 0 { size } else { -size })
}

/// A `BigInt` of 64 bits.
pub(crate) fn wide(is_negative: bool, size: u64) -> ([u8; NUMBER], usize) {
    let mut block = [b'-'; NUMBER];
    let mut end = usize::from(is_negative);
    let (high, low) = (size / SIXTEEN_DIGITS, size % SIXTEEN_DIGITS);
    if high != 0 {
        let (digits, len) = short_digits(high as u32);
        write(&mut block, end, &digits.to_le_bytes());
        end += len;
    }
    let (digits, len) = match (high, low) {
        (0, 0..EIGHT_DIGITS) => short_digits(low as u32),
        (0, _) => long_digits(low),
        _ => all_digits(low),
    };
    write(&mut block, end, &digits.to_le_bytes());
    write(&mut block, end + len, b",");
    (block, end + len + 1)
}

/// At most 25 characters, as two blocks that may overlap: their number is not known to the compiler.
#[inline]
fn text(text: &str) -> ([u8; NUMBER], usize) {
    let bytes = text.as_bytes();
    let mut block = [b','; NUMBER];
    let len = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<16>(), bytes.last_chunk::<16>()) {
        write(&mut block, 0, first);
        write(&mut block, len - 16, last);
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        write(&mut block, 0, first);
        write(&mut block, len - 8, last);
    } else {
        for (to, from) in block.iter_mut().zip(bytes) {
            *to = *from;
        }
    }
    (block, len + 1)
}

#[inline]
fn write<const N: usize>(block: &mut [u8; NUMBER], at: usize, bytes: &[u8; N]) {
    if let Some(place) = block.get_mut(at..at + N) {
        place.copy_from_slice(bytes);
    }
}

/// As arithmetic on the block as a whole, so that neither sign nor length make it branch.
#[inline]
pub(crate) fn int(value: i32) -> ([u8; INT], usize) {
    let size = value.unsigned_abs();
    let (digits, len) =
        if u64::from(size) < EIGHT_DIGITS { short_digits(size) } else { long_digits(size.into()) };
    let with_comma = digits | u128::from(b',') << (len * 8);
    if value < 0 {
        return ((with_comma << 8 | u128::from(b'-')).to_le_bytes(), len + 2);
    }
    (with_comma.to_le_bytes(), len + 1)
}

/// At most 16 digits, as the value is exact.
fn long(value: i64) -> ([u8; NUMBER], usize) {
    let mut block = [b'-'; NUMBER];
    let size = value.unsigned_abs();
    let (digits, len) =
        if size < EIGHT_DIGITS { short_digits(size as u32) } else { long_digits(size) };
    let sign = usize::from(value < 0);
    write(&mut block, sign, &digits.to_le_bytes());
    write(&mut block, sign + len, b",");
    (block, sign + len + 1)
}

const EIGHT_DIGITS: u64 = 100_000_000;
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The characters of a value below 10⁸, the first in the lowest byte, and how many.
#[inline]
fn short_digits(value: u32) -> (u128, usize) {
    let digits = digits(value);
    // The last digit counts even if it is zero.
    let leading = ((digits | 1 << 56).trailing_zeros() / 8) as usize;
    (((digits | ZEROS) >> (leading * 8)).into(), 8 - leading)
}

/// The same for values from 10⁸ on, below 10¹⁶.
fn long_digits(value: u64) -> (u128, usize) {
    let (high, low) = ((value / EIGHT_DIGITS) as u32, (value % EIGHT_DIGITS) as u32);
    let (characters, len) = short_digits(high);
    (characters | u128::from(digits(low) | ZEROS) << (len * 8), len + 8)
}

const SIXTEEN_DIGITS: u64 = EIGHT_DIGITS * EIGHT_DIGITS;

/// All sixteen.
fn all_digits(value: u64) -> (u128, usize) {
    let (high, low) = ((value / EIGHT_DIGITS) as u32, (value % EIGHT_DIGITS) as u32);
    (u128::from(digits(high) | ZEROS) | u128::from(digits(low) | ZEROS) << 64, 16)
}

/// The eight digits of a value below 10⁸, the first in the lowest byte: pairs of four, of two, of one at a time, as
/// multiplications that no digit count makes branch.
#[inline]
fn digits(value: u32) -> u64 {
    let value = u64::from(value);
    let fours = (value / 10_000) | (value % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}
