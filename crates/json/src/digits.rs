//! Lays the shortest digits of a double out as JavaScript does, in tasks. `number` calls it for very small and very large
//! doubles, whose text differs from Rust's.

/// Most digits that a double needs.
const MOST_DIGITS: usize = 17;
/// The decimal point stands behind at most this many digits. Larger numbers have an exponent.
const MOST_WHOLE: i32 = 21;
/// Least position of the decimal point, counted from the first digit. Smaller numbers have an exponent.
const LEAST_POINT: i32 = -5;

/// A number of digits: 0.d₁d₂…dₖ × 10ⁿ.
struct Digits {
    characters: [u8; MOST_DIGITS],
    len: usize,
    /// The position of the decimal point: n.
    point: i32,
}

impl Digits {
    /// Reads a number without a sign, in any layout.
    fn read(text: &[u8]) -> Self {
        let mut read = Self { characters: [0; MOST_DIGITS], len: 0, point: 0 };
        let mut is_behind_point = false;
        let mut text = text.iter();
        for &byte in text.by_ref().take_while(|&&byte| byte != b'e') {
            match byte {
                b'.' => is_behind_point = true,
                b'0' if read.len == 0 => read.point -= i32::from(is_behind_point),
                digit => {
                    if let Some(place) = read.characters.get_mut(read.len) {
                        *place = digit;
                        read.len += 1;
                    }
                    read.point += i32::from(!is_behind_point);
                }
            }
        }
        let exponent = str::from_utf8(text.as_slice()).ok().and_then(|text| text.parse().ok());
        read.point += exponent.unwrap_or(0);
        let zeros = read.all().iter().rev().take_while(|&&digit| digit == b'0').count();
        read.len -= zeros;
        read
    }

    fn all(&self) -> &[u8] {
        self.characters.get(..self.len).unwrap_or_default()
    }

    /// Writes the number as JavaScript does.
    fn write(&self, to: &mut NumberText) {
        let (digits, point) = (self.all(), self.point);
        match point {
            1..=MOST_WHOLE => {
                let whole_len = point.unsigned_abs() as usize;
                let (whole, fraction) = digits.split_at(whole_len.min(digits.len()));
                to.push(whole);
                to.zeros(whole_len - whole.len());
                to.push(if fraction.is_empty() { b"" } else { b"." });
                to.push(fraction);
            }
            LEAST_POINT..=0 => {
                to.push(b"0.");
                to.zeros(point.unsigned_abs() as usize);
                to.push(digits);
            }
            _ => {
                let (first, fraction) = digits.split_at(digits.len().min(1));
                to.push(first);
                to.push(if fraction.is_empty() { b"" } else { b"." });
                to.push(fraction);
                to.push(if point < 1 { b"e-" } else { b"e+" });
                to.exponent((point - 1).unsigned_abs());
            }
        }
    }
}

/// The text of a number.
pub(crate) struct NumberText {
    bytes: [u8; 32],
    len: usize,
}

impl NumberText {
    /// Lays out `text`, a double as `zmij` prints it.
    pub(crate) fn of(text: &str) -> Self {
        let mut to = Self { bytes: [0; 32], len: 0 };
        let size = text.strip_prefix('-').unwrap_or(text);
        if size.len() < text.len() {
            to.push(b"-");
        }
        Digits::read(size.as_bytes()).write(&mut to);
        to
    }

    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(self.bytes.get(..self.len).unwrap_or_default()).unwrap_or_default()
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    fn zeros(&mut self, count: usize) {
        for _ in 0..count {
            self.push(b"0");
        }
    }

    /// Writes an exponent, which has at most three digits.
    fn exponent(&mut self, value: u32) {
        for power in [100, 10, 1] {
            if power <= value {
                self.push(&[b'0' + (value / power % 10) as u8]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn doubles_are_laid_out_as_in_javascript(bits in any::<u64>(), exponent in -30_i32..30, digits in 1_i64..100_000) {
            for value in [f64::from_bits(bits), format!("{digits}e{exponent}").parse().unwrap()] {
                prop_assume!(value.is_finite() && value != 0.0);
                let text = zmij::Buffer::new().format_finite(value).to_owned();
                let (ours, expected) = (NumberText::of(&text), ryu_js::Buffer::new().format_finite(value).to_owned());
                prop_assert_eq!(ours.as_str(), expected);
            }
        }
    }
}
