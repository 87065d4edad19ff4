//! The first byte of a string that is not simply a part of it.

/// How many bytes of `text` stand before one that ends a string, begins an escape, or may not stand in one, and whether
/// all of those are ASCII.
pub fn clean(text: &[u8]) -> (usize, bool) {
    let (len, is_ascii) = whole_blocks(text);
    let rest = text.get(len..).unwrap_or_default();
    let more = rest.iter().position(|&byte| is_odd(byte)).unwrap_or(rest.len());
    let last = rest.get(..more).unwrap_or_default();
    (len + more, is_ascii && last.is_ascii())
}

fn is_odd(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < b' '
}

const BLOCK: usize = 128;

/// The same of blocks that are clean as a whole.
#[cfg(target_arch = "x86_64")]
fn whole_blocks(text: &[u8]) -> (usize, bool) {
    if BLOCK <= text.len() && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: this machine has AVX2.
        return unsafe { whole_blocks_avx2(text) };
    }
    count_blocks(text)
}

#[cfg(not(target_arch = "x86_64"))]
fn whole_blocks(text: &[u8]) -> (usize, bool) {
    count_blocks(text)
}

/// Compiled for vectors of 32 bytes instead of 16.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn whole_blocks_avx2(text: &[u8]) -> (usize, bool) {
    count_blocks(text)
}

/// Without a branch for each byte, so that compilers make vectors of it.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it is to be compiled with the features of its caller")]
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
        for len in [0, 1, 31, 127, 128, 129, 300] {
            for place in 0..len {
                for byte in 0..=u8::MAX {
                    let mut text = vec![b'a'; len];
                    if let Some(at) = text.get_mut(place) {
                        *at = byte;
                    }
                    let expected = if is_odd(byte) { (place, true) } else { (len, byte < 0x80) };
                    assert_eq!(clean(&text), expected, "{byte} at {place} of {len}");
                    assert_eq!(count_blocks(&text).0, expected.0 / BLOCK * BLOCK);
                }
            }
        }
    }
}
