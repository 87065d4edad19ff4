//! Writes one character at a time: for machines without another kernel, and for the characters that are rare to those. On
//! any thread; `mod.rs` and the other kernels call it.

use super::TextAdvance;

/// The bytes of a character. All eight are stored, since there is room; `len` of them count.
#[derive(Clone, Copy)]
struct CharacterBytes {
    bytes: [u8; 8],
    len: usize,
}

/// Writes Latin-1; returns how many bytes.
///
/// # Safety
/// The conditions of [`super::Write`] hold.
pub unsafe fn latin1<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    let mut written = 0;
    for read in 0..len {
        // SAFETY: `read < len`.
        let character = unsafe { src.wrapping_add(read).read() };
        let encoded = bytes_of::<ESCAPE>(u16::from(character));
        // SAFETY: each character before took at most six bytes. This one has room for six, and the slack for two.
        unsafe { dst.wrapping_add(written).cast::<[u8; 8]>().write(encoded.bytes) };
        written += encoded.len;
    }
    written
}

/// Writes UTF-16; returns how many bytes.
///
/// # Safety
/// The conditions of [`super::Write`] hold.
pub unsafe fn utf16<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    // SAFETY: the caller meets the conditions of this function.
    unsafe { utf16_until::<ESCAPE>(src, len, len, dst) }.written
}

/// Writes the first `stop` units, and one more if a pair begins at the last of them.
///
/// # Safety
/// The conditions of [`utf16`] hold, and `stop <= len`.
pub unsafe fn utf16_until<const ESCAPE: bool>(
    src: *const u8,
    len: usize,
    stop: usize,
    dst: *mut u8,
) -> TextAdvance {
    let (mut read, mut written) = (0, 0);
    while read < stop {
        // SAFETY: `read < len`.
        let unit = unsafe { unit_at(src, read) };
        read += 1;
        let mut encoded = bytes_of::<ESCAPE>(unit);
        if unit & 0xfc00 == HIGH && read < len {
            // SAFETY: `read < len`.
            let next = unsafe { unit_at(src, read) };
            if next & 0xfc00 == LOW {
                read += 1;
                encoded = pair(unit, next);
            }
        }
        // SAFETY: each unit before took at most six bytes. This one has room for six, and the slack for two.
        unsafe { dst.wrapping_add(written).cast::<[u8; 8]>().write(encoded.bytes) };
        written += encoded.len;
    }
    TextAdvance { read, written }
}

/// Writes one character, or a surrogate without a partner; returns how many bytes.
///
/// # Safety
/// `dst` is writable for eight bytes.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, reason = "only kernels with vectors leave rare characters to it")
)]
pub unsafe fn one<const ESCAPE: bool>(unit: u16, dst: *mut u8) -> usize {
    let encoded = bytes_of::<ESCAPE>(unit);
    // SAFETY: the caller meets the conditions of this function.
    unsafe { dst.cast::<[u8; 8]>().write(encoded.bytes) };
    encoded.len
}

/// Returns how many of `len` units a step of at most `most` takes, so that it does not end between the halves of a pair.
///
/// It loads the last unit itself instead of taking it from the vector, since the next step waits for the result.
///
/// # Safety
/// `src` is readable for `len` units, at least one.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, reason = "only kernels with vectors take many units at once")
)]
#[inline]
pub unsafe fn whole(src: *const u8, len: usize, most: usize) -> usize {
    if len <= most {
        return len;
    }
    // SAFETY: `most` is less than `len`.
    let last = unsafe { unit_at(src, most - 1) };
    most - usize::from(last & 0xfc00 == HIGH)
}

/// Reads a unit.
///
/// # Safety
/// `src` is readable for more than `index` units.
#[inline]
pub unsafe fn unit_at(src: *const u8, index: usize) -> u16 {
    // SAFETY: the caller meets the conditions of this function.
    u16::from_le_bytes(unsafe { src.wrapping_add(2 * index).cast::<[u8; 2]>().read() })
}

const HIGH: u16 = 0xd800;
const LOW: u16 = 0xdc00;

fn bytes_of<const ESCAPE: bool>(unit: u16) -> CharacterBytes {
    match unit {
        0..0x80 if ESCAPE => escape(unit as u8),
        0..0x80 => CharacterBytes::new([unit as u8]),
        0x80..0x800 => CharacterBytes::new([0xc0 | (unit >> 6) as u8, trail(u32::from(unit))]),
        HIGH..=0xdfff if ESCAPE => {
            let [high, low] = unit.to_be_bytes();
            let [[a, b], [c, d]] = [hex(high), hex(low)];
            CharacterBytes::new([b'\\', b'u', a, b, c, d])
        }
        HIGH..=0xdfff => CharacterBytes::new([0xef, 0xbf, 0xbd]),
        _ => {
            let code = u32::from(unit);
            CharacterBytes::new([0xe0 | (unit >> 12) as u8, trail(code >> 6), trail(code)])
        }
    }
}

fn escape(character: u8) -> CharacterBytes {
    let letter = match character {
        b'"' | b'\\' => character,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        0..b' ' => {
            let [high, low] = hex(character);
            return CharacterBytes::new([b'\\', b'u', b'0', b'0', high, low]);
        }
        _ => return CharacterBytes::new([character]),
    };
    CharacterBytes::new([b'\\', letter])
}

fn pair(high: u16, low: u16) -> CharacterBytes {
    let code = 0x1_0000 + (u32::from(high - HIGH) << 10 | u32::from(low - LOW));
    CharacterBytes::new([
        0xf0 | (code >> 18) as u8,
        trail(code >> 12),
        trail(code >> 6),
        trail(code),
    ])
}

fn trail(code: u32) -> u8 {
    0x80 | (code & 0x3f) as u8
}

fn hex(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 0xf].map(|digit| if digit < 10 { b'0' + digit } else { b'a' + digit - 10 })
}

impl CharacterBytes {
    fn new<const LEN: usize>(counted: [u8; LEN]) -> Self {
        const { assert!(LEN <= 8) };
        let mut bytes = [0; 8];
        for (byte, value) in bytes.iter_mut().zip(counted) {
            *byte = value;
        }
        Self { bytes, len: LEN }
    }
}
