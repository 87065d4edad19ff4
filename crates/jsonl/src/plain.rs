//! How far a string goes on with nothing to be looked at: eight bytes at a time, then sixty-four.

/// How many bytes stand before one that ends a string, begins an escape, or may not stand in a string.
pub(crate) fn plain(text: &[u8]) -> usize {
    // Most strings end here.
    let (start, rest) = text.split_at_checked(NEAR).unwrap_or((text, &[]));
    let near = plain_words(start);
    if near < start.len() {
        return near;
    }
    let (blocks, _) = rest.as_chunks::<BLOCK>();
    let far = blocks
        .iter()
        .take_while(|block| !block.iter().fold(false, |any, &byte| any | is_odd(byte)));
    let far = near + far.count() * BLOCK;
    far + plain_words(text.get(far..).unwrap_or_default())
}

const NEAR: usize = 32;
const BLOCK: usize = 64;

fn plain_words(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    for (index, &word) in words.iter().enumerate() {
        let odd = odd_bytes(u64::from_le_bytes(word));
        if odd != 0 {
            return index * 8 + (odd.trailing_zeros() / 8) as usize;
        }
    }
    let odd = rest.iter().position(|&byte| is_odd(byte));
    words.len() * 8 + odd.unwrap_or(rest.len())
}

fn is_odd(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..=0x1f)
}

const LOWS: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = LOWS << 7;

/// The lowest bit set is the highest of the first odd byte. Borrows set bits wrongly, but only above it.
fn odd_bytes(word: u64) -> u64 {
    let quotes = word ^ (LOWS * 0x22);
    let escapes = word ^ (LOWS * 0x5c);
    let controls = word.wrapping_sub(LOWS * 0x20) & !word;
    let quotes = quotes.wrapping_sub(LOWS) & !quotes;
    let escapes = escapes.wrapping_sub(LOWS) & !escapes;
    (controls | quotes | escapes) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::{is_odd, plain};

    #[test]
    fn every_byte_is_told_at_every_place() {
        for byte in 0..=u8::MAX {
            for len in [1, 7, 8, 9, 31, 32, 40, 100, 300] {
                for at in 0..len {
                    for filler in [b'a', 0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xa2, 0xff] {
                        let mut text = vec![filler; len];
                        text[at] = byte;
                        let expected = if is_odd(byte) { at } else { len };
                        assert_eq!(plain(&text), expected, "{byte:#x} at {at} of {len}");
                    }
                }
            }
        }
    }
}
