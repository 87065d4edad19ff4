//! Moves one quantum at a time. Tests compare every other kernel with this one, which also finishes their last quanta. On
//! any thread; `mod.rs` and the other kernels call it.

use super::KernelAdvance;
use crate::Alphabet;
use crate::alphabet::{CharacterValues, Charset, FOREIGN};

/// Decodes; see [`super::Base64Kernel::decode`].
///
/// # Safety
/// The conditions of [`super::Base64Kernel::decode`] hold.
pub unsafe fn decode(src: *const u8, len: usize, dst: *mut u8, charset: Charset) -> KernelAdvance {
    let values = charset.values();
    let (mut read, mut written) = (0, 0);
    while 4 <= len - read {
        // SAFETY: four characters are left.
        let characters = unsafe { src.wrapping_add(read).cast::<[u8; 4]>().read() };
        let Some([_, bytes @ ..]) = quantum(values, characters) else { break };
        // SAFETY: four characters have room for three bytes, which end before the next character to be read.
        unsafe { dst.wrapping_add(written).cast::<[u8; 3]>().write(bytes) };
        read += 4;
        written += 3;
    }
    KernelAdvance { read, written }
}

#[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
fn quantum(values: &CharacterValues, characters: [u8; 4]) -> Option<[u8; 4]> {
    let [a, b, c, d] = characters.map(|character| values[usize::from(character)]);
    if FOREIGN <= a | b | c | d {
        return None;
    }
    Some((u32::from(a) << 18 | u32::from(b) << 12 | u32::from(c) << 6 | u32::from(d)).to_be_bytes())
}

/// Encodes; see [`super::Base64Kernel::encode`].
///
/// # Safety
/// The conditions of [`super::Base64Kernel::encode`] hold.
#[allow(clippy::indexing_slicing, reason = "six bits always index a table of 64")]
pub unsafe fn encode(src: *const u8, len: usize, dst: *mut u8, alphabet: Alphabet) {
    let characters = alphabet.characters();
    for index in 0..len / 3 {
        // SAFETY: `len / 3` quanta of three bytes are readable.
        let [a, b, c] = unsafe { src.wrapping_add(3 * index).cast::<[u8; 3]>().read() };
        let quantum = u32::from_be_bytes([0, a, b, c]);
        let text = [18, 12, 6, 0].map(|shift| characters[(quantum >> shift & 0x3f) as usize]);
        // SAFETY: four characters are writable for each quantum.
        unsafe { dst.wrapping_add(4 * index).cast::<[u8; 4]>().write(text) };
    }
}
