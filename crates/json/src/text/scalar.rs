//! Character by character: for machines without a kernel of their own, and for what the others find rare.

use super::Progress;

/// The bytes of a character, and how many of the eight they are. All eight are stored, for the room allows it.
#[derive(Clone, Copy)]
struct Form {
    bytes: [u8; 8],
    len: usize,
}

/// # Safety
/// As [`super::Write`].
pub unsafe fn latin1<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    let mut written = 0;
    for read in 0..len {
        // SAFETY: one of `len` characters.
        let character = unsafe { src.wrapping_add(read).read() };
        let form = form_of::<ESCAPE>(u16::from(character));
        // SAFETY: at most six bytes for each of the characters before, and two of the slack.
        unsafe { dst.wrapping_add(written).cast::<[u8; 8]>().write(form.bytes) };
        written += form.len;
    }
    written
}

/// # Safety
/// As [`super::Write`].
pub unsafe fn utf16<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    // SAFETY: the caller's promise.
    unsafe { utf16_until::<ESCAPE>(src, len, len, dst) }.written
}

/// The first `stop` units, and one more if a pair begins at the last of them.
///
/// # Safety
/// As [`utf16`], and `stop <= len`.
pub unsafe fn utf16_until<const ESCAPE: bool>(
    src: *const u8,
    len: usize,
    stop: usize,
    dst: *mut u8,
) -> Progress {
    let (mut read, mut written) = (0, 0);
    while read < stop {
        // SAFETY: `read < len`.
        let unit = unsafe { unit_at(src, read) };
        read += 1;
        let mut form = form_of::<ESCAPE>(unit);
        if unit & 0xfc00 == HIGH && read < len {
            // SAFETY: `read < len`.
            let next = unsafe { unit_at(src, read) };
            if next & 0xfc00 == LOW {
                read += 1;
                form = pair(unit, next);
            }
        }
        // SAFETY: at most six bytes for each of the units before, and two of the slack.
        unsafe { dst.wrapping_add(written).cast::<[u8; 8]>().write(form.bytes) };
        written += form.len;
    }
    Progress { read, written }
}

/// Writes one character, or a surrogate without a partner, and tells how many bytes.
///
/// # Safety
/// `dst` is writable for eight bytes.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, reason = "for kernels that leave out what is rare")
)]
pub unsafe fn one<const ESCAPE: bool>(unit: u16, dst: *mut u8) -> usize {
    let form = form_of::<ESCAPE>(unit);
    // SAFETY: the caller's promise.
    unsafe { dst.cast::<[u8; 8]>().write(form.bytes) };
    form.len
}

/// How many of the `len` units a step of at most `most` takes: not the first half of a pair alone. By a load of its own, not
/// from the vector: the next step waits for this.
///
/// # Safety
/// `src` is readable for `len` units, at least one.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, reason = "for kernels that take many at once")
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

/// # Safety
/// `src` is readable for more than `index` units.
#[inline]
pub unsafe fn unit_at(src: *const u8, index: usize) -> u16 {
    // SAFETY: the caller's promise.
    u16::from_le_bytes(unsafe { src.wrapping_add(2 * index).cast::<[u8; 2]>().read() })
}

const HIGH: u16 = 0xd800;
const LOW: u16 = 0xdc00;

fn form_of<const ESCAPE: bool>(unit: u16) -> Form {
    match unit {
        0..0x80 if ESCAPE => escape(unit as u8),
        0..0x80 => Form::new([unit as u8]),
        0x80..0x800 => Form::new([0xc0 | (unit >> 6) as u8, trail(u32::from(unit))]),
        HIGH..=0xdfff if ESCAPE => {
            let [high, low] = unit.to_be_bytes();
            let [[a, b], [c, d]] = [hex(high), hex(low)];
            Form::new([b'\\', b'u', a, b, c, d])
        }
        HIGH..=0xdfff => Form::new([0xef, 0xbf, 0xbd]),
        _ => {
            let code = u32::from(unit);
            Form::new([0xe0 | (unit >> 12) as u8, trail(code >> 6), trail(code)])
        }
    }
}

fn escape(character: u8) -> Form {
    let letter = match character {
        b'"' | b'\\' => character,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        0..b' ' => {
            let [high, low] = hex(character);
            return Form::new([b'\\', b'u', b'0', b'0', high, low]);
        }
        _ => return Form::new([character]),
    };
    Form::new([b'\\', letter])
}

fn pair(high: u16, low: u16) -> Form {
    let code = 0x1_0000 + (u32::from(high - HIGH) << 10 | u32::from(low - LOW));
    Form::new([0xf0 | (code >> 18) as u8, trail(code >> 12), trail(code >> 6), trail(code)])
}

fn trail(code: u32) -> u8 {
    0x80 | (code & 0x3f) as u8
}

fn hex(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 0xf].map(|digit| if digit < 10 { b'0' + digit } else { b'a' + digit - 10 })
}

impl Form {
    fn new<const LEN: usize>(given: [u8; LEN]) -> Self {
        const { assert!(LEN <= 8) };
        let mut bytes = [0; 8];
        for (byte, given) in bytes.iter_mut().zip(given) {
            *byte = given;
        }
        Self { bytes, len: LEN }
    }
}
