//! Prints numbers as JavaScript does, each with a comma behind it, in tasks.
//!
//! A function returns the length of number and comma. It may also overwrite the rest of its block.

use crate::digits::NumberText;

/// The double from which on every double is an integer. All integers below it are exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The double from which on, up to [`EXACT`], Rust and JavaScript lay out the shortest digits alike.
const PLAIN: f64 = 1e-5;

/// The size of a block for any number and its comma.
pub(crate) const NUMBER: usize = 32;
/// The size of a block for an integer of 32 bits and its comma.
pub(crate) const INT: usize = 16;

/// Prints a double; returns the length.
#[inline]
pub(crate) fn double(value: f64, to: &mut [u8; NUMBER]) -> usize {
    let size = value.abs();
    if size < EXACT {
        let integer = value as i64;
        if (integer as f64).to_bits() == value.to_bits() || value == 0.0 {
            return wide(integer < 0, integer.unsigned_abs(), to);
        }
        if PLAIN <= size {
            return text(zmij::Buffer::new().format_finite(value), to);
        }
    } else if !value.is_finite() {
        return text("null", to);
    }
    text(NumberText::of(zmij::Buffer::new().format_finite(value)).as_str(), to)
}

/// The `f32` below which all integers are exact.
const SINGLE_EXACT: f32 = 16_777_216.0;
const SINGLE_PLAIN: f32 = 1e-5;

/// Prints an `f32`: the shortest text that reads back as that `f32`, in JavaScript's layout.
#[inline]
pub(crate) fn single(value: f32, to: &mut [u8; NUMBER]) -> usize {
    let size = value.abs();
    if size < SINGLE_EXACT {
        let integer = value as i32;
        if (integer as f32).to_bits() == value.to_bits() || value == 0.0 {
            return wide(integer < 0, integer.unsigned_abs().into(), to);
        }
        if SINGLE_PLAIN <= size {
            return text(zmij::Buffer::new().format_finite(value), to);
        }
    } else if !value.is_finite() {
        return text("null", to);
    }
    // The shortest digits of an `f32` are also the shortest of the double nearest to them.
    double(zmij::Buffer::new().format_finite(value).parse().unwrap_or(f64::NAN), to)
}

/// Prints a float of 16 bits, as the double that JavaScript reads.
pub(crate) fn half(bits: u16, to: &mut [u8; NUMBER]) -> usize {
    double(widened(bits), to)
}

/// Converts a float of 16 bits to a double.
pub(crate) fn widened(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let size = match bits >> 10 & 0x1f {
        0 => fraction * 2_f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1024.0 + fraction) * 2_f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 0 { size } else { -size }
}

/// Writes at most 25 characters, as two blocks that may overlap. A copy of unknown length would be a call.
#[inline]
fn text(text: &str, to: &mut [u8; NUMBER]) -> usize {
    let bytes = text.as_bytes();
    let len = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<16>(), bytes.last_chunk::<16>()) {
        write(to, 0, first);
        write(to, len - 16, last);
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        write(to, 0, first);
        write(to, len - 8, last);
    } else {
        for (to, from) in to.iter_mut().zip(bytes) {
            *to = *from;
        }
    }
    write(to, len, b",");
    len + 1
}

#[inline]
fn write<const N: usize>(to: &mut [u8], at: usize, bytes: &[u8; N]) {
    if let Some(place) = to.get_mut(at..at + N) {
        place.copy_from_slice(bytes);
    }
}

/// Prints an integer of 32 bits.
#[inline]
pub(crate) fn int(value: i32, to: &mut [u8; INT]) -> usize {
    unsigned(value < 0, value.unsigned_abs(), to)
}

/// Prints an integer whose absolute value is `size`.
#[inline]
pub(crate) fn unsigned(is_negative: bool, size: u32, to: &mut [u8; INT]) -> usize {
    let sign = usize::from(is_negative);
    if size < MILLION {
        let (digits, len) = leading(size);
        let with_comma = digits | u64::from(b',') << (len * 8);
        // Sign, digits and comma in one word, without a branch on the sign.
        let with_sign = with_comma << (sign * 8) | MINUS & sign.wrapping_neg() as u64;
        write(to, 0, &with_sign.to_le_bytes());
        return sign + len + 1;
    }
    write(to, 0, b"-");
    sign + millions(size, to.get_mut(sign..).unwrap_or_default())
}

/// Prints a natural number of a million and more; returns the length.
#[inline]
fn millions(size: u32, to: &mut [u8]) -> usize {
    let (digits, len) = leading(size / MILLION);
    write(to, 0, &digits.to_le_bytes());
    write(to, len, &(six(size % MILLION) | COMMA_BEHIND_SIX).to_le_bytes());
    len + 7
}

/// Prints an integer whose absolute value is `size`, of 64 bits.
pub(crate) fn wide(is_negative: bool, size: u64, to: &mut [u8; NUMBER]) -> usize {
    if let (Ok(size), Some(to)) = (u32::try_from(size), to.first_chunk_mut()) {
        return unsigned(is_negative, size, to);
    }
    write(to, 0, b"-");
    let mut at = usize::from(is_negative);
    let (high, low) = (size / TRILLION, size % TRILLION);
    let (middle, low) = ((low / u64::from(MILLION)) as u32, (low % u64::from(MILLION)) as u32);
    let (first, len) = match high {
        0 => leading(middle),
        // The high part is at most 18 446 744.
        _ if high < u64::from(MILLION) => leading(high as u32),
        _ => {
            let (first, len) = leading((high / u64::from(MILLION)) as u32);
            write(to, at, &first.to_le_bytes());
            at += len;
            (six((high % u64::from(MILLION)) as u32), 6)
        }
    };
    write(to, at, &first.to_le_bytes());
    at += len;
    if high != 0 {
        write(to, at, &six(middle).to_le_bytes());
        at += 6;
    }
    write(to, at, &(six(low) | COMMA_BEHIND_SIX).to_le_bytes());
    at + 7
}

const MILLION: u32 = 1_000_000;
const TRILLION: u64 = 1_000_000_000_000;
const MINUS: u64 = b'-' as u64;
const COMMA_BEHIND_SIX: u64 = (b',' as u64) << 48;
/// The characters of six zeros.
const ZEROS: u64 = 0x3030_3030_3030;

/// Returns the characters of a number below a million, the first in the lowest byte, and their count.
#[inline]
fn leading(value: u32) -> (u64, usize) {
    let digits = six(value);
    // Bit 40 keeps the last digit, also where it is zero.
    let zeros = (((digits ^ ZEROS) | 1 << 40).trailing_zeros() / 8) as usize;
    (digits >> (zeros * 8), 6 - zeros)
}

/// Returns the six characters of a number below a million, leading zeros included.
#[inline]
fn six(value: u32) -> u64 {
    u64::from(three(value / 1000)) | u64::from(three(value % 1000)) << 24
}

/// Returns the three characters of a number below 1000, leading zeros included.
#[inline]
fn three(value: u32) -> u32 {
    THREES.get(value as usize).copied().unwrap_or_default()
}

/// The characters of 000 to 999.
static THREES: [u32; 1000] = {
    let mut threes = [0; 1000];
    let mut value = 0;
    while value < 1000 {
        let digits = value / 100 + (value / 10 % 10) * 0x100 + (value % 10) * 0x1_0000;
        #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            threes[value as usize] = 0x30_3030 + digits;
        }
        value += 1;
    }
    threes
};
