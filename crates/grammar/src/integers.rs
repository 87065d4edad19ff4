//! Skips integers of an array, 64 bytes at a time. Runs on any thread; the reader calls it where a visitor only counts.
//!
//! A mask holds one bit for each byte of a block that is a digit, a comma and so on. Shifted masks tell whether each
//! byte may follow the one before.

/// Returns the bytes and the number of the integers at the start of `text`. Each of them ends with a comma.
///
/// `text` begins where a number of an array begins. One space may stand before each integer. The first block with any
/// other byte ends the search, so the caller reads that block token by token.
#[must_use]
pub fn integers(text: &[u8]) -> (usize, usize) {
    let (blocks, _) = text.as_chunks::<BLOCK>();
    let (mut len, mut count) = (0, 0);
    // The first integer may begin as if a comma stood before it.
    let mut before = Masks { commas: HIGHEST, ..Masks::default() };
    for (index, block) in blocks.iter().enumerate() {
        let mut masks = Masks::of(block);
        if !masks.follow(&before) {
            break;
        }
        if masks.commas != 0 {
            len = (index + 1) * BLOCK - masks.commas.leading_zeros() as usize;
            count += masks.commas.count_ones() as usize;
        }
        before = masks;
    }
    (len, count)
}

const BLOCK: usize = 64;
const HIGHEST: u64 = 1 << 63;

/// Masks of a block: one bit for each byte, the lowest for the first.
#[derive(Clone, Copy, Default)]
struct Masks {
    digits: u64,
    zeros: u64,
    commas: u64,
    spaces: u64,
    signs: u64,
    /// Zeros that are the first digit of a number.
    leading: u64,
}

impl Masks {
    /// Returns whether the block continues integers of an array behind the block `before`.
    fn follow(&mut self, before: &Self) -> bool {
        let &mut Self { digits, zeros, commas, spaces, signs, .. } = self;
        let behind = |bits: u64, earlier: u64| bits << 1 | earlier >> 63;
        let behind_digit = behind(digits, before.digits);
        let behind_comma = behind(commas, before.commas);
        let behind_space = behind(spaces, before.spaces);
        let behind_sign = behind(signs, before.signs);
        self.leading = zeros & !behind_digit;
        let behind_zero = behind(self.leading, before.leading);
        let strange = !(digits | commas | spaces | signs)
            | commas & !behind_digit
            | spaces & !behind_comma
            | signs & !(behind_comma | behind_space)
            | digits & !(behind_digit | behind_comma | behind_space | behind_sign)
            | behind_sign & !digits
            | behind_zero & digits;
        strange == 0
    }
}

#[cfg(target_arch = "x86_64")]
impl Masks {
    #[inline]
    fn of(block: &[u8; BLOCK]) -> Self {
        // SAFETY: every x86-64 processor has SSE2.
        unsafe { Self::of_sse2(block) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn of_sse2(block: &[u8; BLOCK]) -> Self {
        use std::arch::x86_64::{
            _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_set1_epi8,
            _mm_sub_epi8,
        };

        let mut masks = Self::default();
        let (quarters, _) = block.as_chunks::<16>();
        for (index, quarter) in quarters.iter().enumerate() {
            // SAFETY: `quarter` has 16 bytes, and the load needs no alignment.
            let bytes = unsafe { _mm_loadu_si128(quarter.as_ptr().cast()) };
            let mask = |found| u64::from(_mm_movemask_epi8(found) as u32) << (index * 16);
            let is = |byte: u8| mask(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed())));
            let values = _mm_sub_epi8(bytes, _mm_set1_epi8(b'0'.cast_signed()));
            let nine = _mm_set1_epi8(9);
            masks.digits |= mask(_mm_cmpeq_epi8(_mm_min_epu8(values, nine), values));
            masks.zeros |= is(b'0');
            masks.commas |= is(b',');
            masks.spaces |= is(b' ');
            masks.signs |= is(b'-');
        }
        masks
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Masks {
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut masks = Self::default();
        for (index, &byte) in block.iter().enumerate() {
            let bit = |is: bool| u64::from(is) << index;
            masks.digits |= bit(byte.is_ascii_digit());
            masks.zeros |= bit(byte == b'0');
            masks.commas |= bit(byte == b',');
            masks.spaces |= bit(byte == b' ');
            masks.signs |= bit(byte == b'-');
        }
        masks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads byte by byte to the last integer that ends with a comma.
    fn naive(text: &[u8]) -> (usize, usize) {
        let (mut len, mut count, mut rest) = (0, 0, text);
        loop {
            let unspaced = rest.strip_prefix(b" ").unwrap_or(rest);
            let unsigned = unspaced.strip_prefix(b"-").unwrap_or(unspaced);
            let digits = unsigned.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let is_number = digits == 1 || digits != 0 && unsigned.first() != Some(&b'0');
            let Some((b",", behind)) =
                unsigned.get(digits..).and_then(|rest| rest.split_at_checked(1))
            else {
                return (len, count);
            };
            if !is_number {
                return (len, count);
            }
            len = text.len() - behind.len();
            count += 1;
            rest = behind;
        }
    }

    #[test]
    fn integers_are_passed_in_whole_blocks_and_nothing_else_is() {
        let parts = ["0,", "1,", "-1,", "12,", "-120, ", " 7,", "99999999999999999999,"];
        let wrong = [
            "", "01,", "-,", "1.5,", "--1,", ",", "  1,", "1 ,", "\n1,", "x", "1e5,", "\"", "]",
            "-01,", "1-,",
        ];
        let mut state = 1_usize;
        let mut random = |limit: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        for _ in 0..20_000 {
            let mut text = String::new();
            let total = random(120);
            let at = random(120);
            for index in 0..total {
                text.push_str(if index == at {
                    wrong[random(wrong.len())]
                } else {
                    parts[random(parts.len())]
                });
            }
            let text = text.as_bytes();
            let (len, count) = integers(text);
            let (most, all) = naive(text);
            assert!(len <= most && count <= all, "{:?}", str::from_utf8(text));
            assert!(
                most < len + 2 * BLOCK + 24 || text.len() < len + 2 * BLOCK + 24,
                "{:?}",
                str::from_utf8(text)
            );
            assert_eq!(naive(text.get(..len).unwrap_or_default()), (len, count));
        }
    }
}
