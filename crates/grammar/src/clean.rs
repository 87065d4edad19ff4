//! Finds the next byte of a string that needs a look: a quote, a backslash or a control character. Runs on any thread;
//! the readers of JSON call it for every string.
//!
//! The first 32 bytes are read as words of eight, since most strings end there. The others are read as vectors.

#[cfg(target_arch = "x86_64")]
use offloop_cpu::InstructionSet;

/// Returns the number of bytes before the first quote, backslash or control character, and whether all of them are
/// ASCII.
#[must_use]
pub fn clean(text: &[u8]) -> (usize, bool) {
    let (start, rest) = text.split_at_checked(NEAR).unwrap_or((text, &[]));
    let (near, is_ascii) = clean_words(start);
    if near < NEAR {
        return (near, is_ascii);
    }
    let (blocks, blocks_are_ascii) = clean_blocks(rest);
    let (last, last_is_ascii) = clean_words(rest.get(blocks..).unwrap_or_default());
    (near + blocks + last, is_ascii && blocks_are_ascii && last_is_ascii)
}

const NEAR: usize = 32;
const BLOCK: usize = 128;

fn is_odd(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < b' '
}

/// Reads words of eight bytes, then single bytes.
fn clean_words(text: &[u8]) -> (usize, bool) {
    let (words, rest) = text.as_chunks::<8>();
    let mut high = 0;
    for (index, &word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(word);
        let odd = odd_bytes(word);
        if odd != 0 {
            let len = odd.trailing_zeros() / 8;
            let before = word & !(u64::MAX << (len * 8));
            return (index * 8 + len as usize, (high | before) & HIGHS == 0);
        }
        high |= word;
    }
    let len = rest.iter().position(|&byte| is_odd(byte)).unwrap_or(rest.len());
    let last = rest.get(..len).unwrap_or_default();
    (words.len() * 8 + len, high & HIGHS == 0 && last.is_ascii())
}

const LOWS: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = LOWS << 7;

/// Returns a word whose lowest set bit is the highest bit of the first odd byte. Borrows set wrong bits only above that
/// one.
fn odd_bytes(word: u64) -> u64 {
    let quotes = word ^ (LOWS * 0x22);
    let escapes = word ^ (LOWS * 0x5c);
    let controls = word.wrapping_sub(LOWS * 0x20) & !word;
    let quotes = quotes.wrapping_sub(LOWS) & !quotes;
    let escapes = escapes.wrapping_sub(LOWS) & !escapes;
    (controls | quotes | escapes) & HIGHS
}

/// Returns the bytes of the blocks before the first odd byte, and whether all of them are ASCII.
#[cfg(target_arch = "x86_64")]
fn clean_blocks(text: &[u8]) -> (usize, bool) {
    if BLOCK <= text.len() && InstructionSet::Avx2.is_available() {
        // SAFETY: the processor has AVX2.
        return unsafe { clean_blocks_avx2(text) };
    }
    count_blocks(text)
}

#[cfg(not(target_arch = "x86_64"))]
fn clean_blocks(text: &[u8]) -> (usize, bool) {
    count_blocks(text)
}

/// Does what [`count_blocks`] does, compiled for vectors of 32 bytes instead of 16.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn clean_blocks_avx2(text: &[u8]) -> (usize, bool) {
    count_blocks(text)
}

/// Reads whole blocks. It has no branch for a byte, so that compilers vectorise it.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it must be compiled with the CPU features of its caller")]
fn count_blocks(text: &[u8]) -> (usize, bool) {
    let (blocks, _) = text.as_chunks::<BLOCK>();
    let mut high = 0;
    for (index, block) in blocks.iter().enumerate() {
        let (mut odd, mut bits) = (0, 0);
        for &byte in block {
            odd |= u8::from(is_odd(byte));
            bits |= byte;
        }
        if odd != 0 {
            return (index * BLOCK, high < 0x80);
        }
        high |= bits;
    }
    (blocks.len() * BLOCK, high < 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place() {
        for len in [1, 7, 8, 9, 31, 32, 33, 40, 159, 160, 161, 300] {
            for place in 0..len {
                for filler in [b'a', b' ', b'!', b'#', 0x5b, 0x5d, 0x7f, 0x80, 0xa2, 0xff] {
                    let mut text = vec![filler; len];
                    for byte in 0..=u8::MAX {
                        text.splice(place..=place, [byte]);
                        let end = if is_odd(byte) { place } else { len };
                        let before = text.get(..end).unwrap_or_default();
                        let expected = (end, before.is_ascii());
                        assert_eq!(clean(&text), expected, "{byte:#x} at {place} of {len}");
                    }
                }
            }
        }
    }
}
