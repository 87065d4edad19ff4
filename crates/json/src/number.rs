//! Numbers as JavaScript prints them.

use crate::output::{Memory, Output};

/// Integers up to here are exact; every double from here on is one.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Between this and [`EXACT`] the shortest digits have the same layout in Rust and JavaScript.
const PLAIN: f64 = 1e-5;

pub(crate) fn write_double<M: Memory>(out: &mut Output<'_, M>, value: f64) {
    let size = value.abs();
    if size < EXACT {
        let integer = value as i64;
        if (integer as f64).to_bits() == value.to_bits() || value == 0.0 {
            return write_long(out, integer);
        }
        if PLAIN <= size {
            let mut buffer = zmij::Buffer::new();
            return write_text(out, buffer.format_finite(value));
        }
    } else if !value.is_finite() {
        return out.put(b"null", 4);
    }
    let mut buffer = ryu_js::Buffer::new();
    write_text(out, buffer.format_finite(value));
}

/// At most 25 characters, as two blocks that may overlap: their number is not known to the compiler.
#[inline]
fn write_text<M: Memory>(out: &mut Output<'_, M>, text: &str) {
    let bytes = text.as_bytes();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<16>(), bytes.last_chunk::<16>()) {
        out.put(first, bytes.len() - 16);
        return out.put(last, 16);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        out.put(first, bytes.len() - 8);
        return out.put(last, 8);
    }
    for &byte in bytes {
        out.byte(byte);
    }
}

#[inline]
pub(crate) fn write_int<M: Memory>(out: &mut Output<'_, M>, value: i32) {
    if value < 0 {
        out.byte(b'-');
    }
    write_u32(out, value.unsigned_abs());
}

fn write_long<M: Memory>(out: &mut Output<'_, M>, value: i64) {
    if value < 0 {
        out.byte(b'-');
    }
    let size = value.unsigned_abs();
    if let Ok(size) = u32::try_from(size) {
        return write_u32(out, size);
    }
    // At most 16 digits, as the value is exact.
    let (high, low) = ((size / EIGHT_DIGITS) as u32, (size % EIGHT_DIGITS) as u32);
    write_u32(out, high);
    out.put(&(digits(low) | ZEROS).to_le_bytes(), 8);
}

const EIGHT_DIGITS: u64 = 100_000_000;
const ZEROS: u64 = 0x3030_3030_3030_3030;

#[inline]
fn write_u32<M: Memory>(out: &mut Output<'_, M>, value: u32) {
    if EIGHT_DIGITS <= u64::from(value) {
        let (high, low) = (value / EIGHT_DIGITS as u32, value % EIGHT_DIGITS as u32);
        if high < 10 {
            out.byte(b'0' + high as u8);
        } else {
            out.put(&[b'0' + (high / 10) as u8, b'0' + (high % 10) as u8], 2);
        }
        return out.put(&(digits(low) | ZEROS).to_le_bytes(), 8);
    }
    let digits = digits(value);
    // The last digit counts even if it is zero.
    let leading = ((digits | 1 << 56).trailing_zeros() / 8) as usize;
    out.put(&((digits | ZEROS) >> (leading * 8)).to_le_bytes(), 8 - leading);
}

/// The eight digits of a value below 10⁸, the first in the lowest byte: pairs of four, of two, of one at a time, as
/// multiplications that no digit count makes branch.
#[inline]
pub(crate) fn digits(value: u32) -> u64 {
    let value = u64::from(value);
    let fours = (value / 10_000) | (value % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}
