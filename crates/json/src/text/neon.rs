//! 16 characters of Latin-1 or eight units of UTF-16 at a time. What is not the same length throughout is laid out in
//! lanes of two or four bytes and pushed together by shuffles from a table, as the AVX2 kernel does.

#[allow(clippy::wildcard_imports, reason = "intrinsics")]
use std::arch::aarch64::*;

use super::pushed::{Pushed, below};
use super::shuffle::{LETTERS, OF_FOUR, OF_TWO, Shuffle};
use super::{part, scalar};

const STEP: usize = 16;
const UNITS: usize = 8;
/// Bytes of four units of three.
const THREES: usize = 12;

/// Copies up to the first block of 16 characters that are not all copied as they are, and tells how many: whole blocks,
/// or all.
///
/// # Safety
/// As [`super::Write`].
#[inline]
#[target_feature(enable = "neon")]
pub unsafe fn copy_clean<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    let mut read = 0;
    while read < len {
        let count = (len - read).min(STEP);
        // SAFETY: these are left.
        let characters = unsafe { load_part(src.wrapping_add(read), count) };
        let specials = specials_of::<ESCAPE>(characters);
        let specials = vandq_u8(specials, vcltq_u8(load(&PLACES), vdupq_n_u8(count as u8)));
        // SAFETY: `count` characters have room, and the slack takes the rest.
        unsafe { vst1q_u8(dst.wrapping_add(read), characters) };
        if vmaxvq_u8(specials) != 0 {
            return read;
        }
        read += count;
    }
    len
}

/// # Safety
/// As [`super::Write`], on a machine with NEON.
#[target_feature(enable = "neon")]
pub unsafe fn latin1<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    let (mut read, mut written) = (0, 0);
    while read < len {
        let count = (len - read).min(STEP);
        let to = dst.wrapping_add(written);
        // SAFETY: `count` characters are left.
        let characters = unsafe { load_part(src.wrapping_add(read), count) };
        // SAFETY: `count` characters have room.
        let pushed = unsafe { push_latin1::<ESCAPE>(characters, count, to) };
        // A branch rather than arithmetic: the next load must not wait for what this one found.
        if pushed.rare == 0 {
            read += count;
            written += pushed.len(count);
            continue;
        }
        let plain = pushed.rare.trailing_zeros() as usize;
        read += plain;
        written += pushed.len(plain);
        // SAFETY: one of `count` characters.
        let character = unsafe { src.wrapping_add(read).read() };
        let to = dst.wrapping_add(written);
        // SAFETY: six bytes have room, and the slack takes two.
        written += unsafe { scalar::one::<ESCAPE>(u16::from(character), to) };
        read += 1;
    }
    written
}

/// Characters of one and of two bytes.
///
/// # Safety
/// `dst` has room for `count` of them.
#[target_feature(enable = "neon")]
unsafe fn push_latin1<const ESCAPE: bool>(
    characters: uint8x16_t,
    count: usize,
    dst: *mut u8,
) -> Pushed {
    let specials = specials_of::<ESCAPE>(characters);
    if vmaxvq_u8(specials) == 0 {
        // SAFETY: `count` characters have room, and the slack takes the rest.
        unsafe { vst1q_u8(dst, characters) };
        return Pushed { rare: 0, several: 0, threes: 0 };
    }
    let beyond = vcgeq_u8(characters, vdupq_n_u8(0x80));
    let lead = vorrq_u8(vshrq_n_u8::<6>(characters), vdupq_n_u8(0xc0));
    let mut first = vbslq_u8(beyond, lead, characters);
    let mut second = vandq_u8(characters, vdupq_n_u8(0xbf));
    let mut rare = 0;
    if ESCAPE {
        let control = vcltq_u8(characters, vdupq_n_u8(b' '));
        // From 16 on the index makes zero.
        let letters = vqtbl1q_u8(load(&LETTERS), characters);
        rare = mask_of(vandq_u8(control, vceqzq_u8(letters))) & below(count);
        let escaped = vbicq_u8(specials, beyond);
        first = vbslq_u8(escaped, vdupq_n_u8(b'\\'), first);
        second = vbslq_u8(escaped, vbslq_u8(control, letters, characters), second);
    }
    let several = mask_of(specials) & below(count);
    let [lower, upper, ..] = several.to_le_bytes();
    let (first, second) = (vzip1q_u8(first, second), vzip2q_u8(first, second));
    // SAFETY: at most 16 bytes, with room for as many.
    let end = unsafe { push_two(first, lower, dst) };
    // SAFETY: it begins at most 16 bytes in and ends within the slack.
    unsafe { push_two(second, upper, end) };
    Pushed { rare, several, threes: 0 }
}

/// Writes eight lanes of two bytes and tells where they end.
///
/// # Safety
/// `dst` is writable for 16 bytes.
#[target_feature(enable = "neon")]
#[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
unsafe fn push_two(lanes: uint8x16_t, both: u8, dst: *mut u8) -> *mut u8 {
    let pushed = vqtbl1q_u8(lanes, load(&OF_TWO[usize::from(both)]));
    // SAFETY: the caller's promise.
    unsafe { vst1q_u8(dst, pushed) };
    dst.wrapping_add(8 + both.count_ones() as usize)
}

/// # Safety
/// As [`super::Write`], on a machine with NEON.
#[target_feature(enable = "neon")]
pub unsafe fn utf16<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    let (mut read, mut written) = (0, 0);
    while read < len {
        let (from, to) = (src.wrapping_add(2 * read), dst.wrapping_add(written));
        // SAFETY: at least one unit is left.
        let mut count = unsafe { scalar::whole(from, len - read, UNITS) };
        // SAFETY: the units of this step, and one that waits for its second half.
        let units = unsafe { load_part(from, 2 * (len - read).min(UNITS)) };
        let units = vreinterpretq_u16_u8(units);
        let pushed = if STEP <= len - read && is_ascii(units) {
            count = STEP;
            // SAFETY: 16 units are left.
            let others = unsafe { vld1q_u8(from.wrapping_add(STEP)) };
            let others = vreinterpretq_u16_u8(others);
            if !is_ascii(others) {
                count = UNITS;
            }
            let characters = vcombine_u8(vmovn_u16(units), vmovn_u16(others));
            // SAFETY: these have room.
            unsafe { push_latin1::<ESCAPE>(characters, count, to) }
        } else if count == UNITS && is_three(units) {
            // SAFETY: eight units have room.
            unsafe { push_threes(units, to) };
            Pushed { rare: 0, several: !0, threes: !0 }
        } else {
            // SAFETY: `count` units have room.
            unsafe { push_utf16::<ESCAPE>(units, count, to) }
        };
        // A branch rather than arithmetic: the next load must not wait for what this one found.
        if pushed.rare == 0 {
            read += count;
            written += pushed.len(count);
            continue;
        }
        let plain = pushed.rare.trailing_zeros() as usize;
        read += plain;
        written += pushed.len(plain);
        // SAFETY: one of `count` units.
        let unit = unsafe { scalar::unit_at(src, read) };
        // SAFETY: six bytes have room, and the slack takes two.
        written += unsafe { scalar::one::<ESCAPE>(unit, dst.wrapping_add(written)) };
        read += 1;
    }
    written
}

/// Units of any kind.
///
/// # Safety
/// `dst` has room for `count` of them.
#[target_feature(enable = "neon")]
unsafe fn push_utf16<const ESCAPE: bool>(units: uint16x8_t, count: usize, dst: *mut u8) -> Pushed {
    let surrogate = surrogates_of(units);
    let surrogates = mask_of_lanes(surrogate) & below(count);
    let ascii = vcltq_u16(units, vdupq_n_u16(0x80));
    let mut rare = 0;

    let mut value = units;
    let mut mark = vdupq_n_u16(0x80c0);
    if surrogates != 0 {
        let high = vandq_u16(surrogate, vcltq_u16(units, vdupq_n_u16(0xdc00)));
        let highs = mask_of_lanes(high) & below(count);
        let lows = surrogates & !highs;
        rare = highs & !(lows >> 1) | lows & !(highs << 1);
        value = halves_of(units, high, surrogate);
        mark = vbslq_u16(surrogate, vdupq_n_u16(0x8080), mark);
        mark = vbslq_u16(high, vdupq_n_u16(0x80f0), mark);
    }
    // One, two, and the first two of three bytes.
    let six = vdupq_n_u16(0x3f);
    let low = vandq_u16(value, six);
    let middle = vandq_u16(vshrq_n_u16::<6>(value), six);
    let two = vorrq_u16(vorrq_u16(middle, vshlq_n_u16::<8>(low)), mark);
    let mut front = vbslq_u16(ascii, units, two);
    let mut single = ascii;
    if ESCAPE {
        let control = vcltq_u16(units, vdupq_n_u16(0x20));
        let backslash = vdupq_n_u16(u16::from(b'\\'));
        let quoted = vceqq_u16(units, vdupq_n_u16(u16::from(b'"')));
        let quoted = vorrq_u16(quoted, vceqq_u16(units, backslash));
        // From 16 on the index makes zero; so does the upper byte, which is zero.
        let letters = vqtbl1q_u8(load(&LETTERS), vreinterpretq_u8_u16(units));
        let letters = vreinterpretq_u16_u8(letters);
        rare |= mask_of_lanes(vandq_u16(control, vceqzq_u16(letters))) & below(count);
        let escaped = vorrq_u16(control, quoted);
        let letters = vbslq_u16(control, letters, units);
        let escape = vorrq_u16(vshlq_n_u16::<8>(letters), backslash);
        front = vbslq_u16(escaped, escape, front);
        single = vbicq_u16(ascii, escaped);
    }
    let three = vbicq_u16(vcgeq_u16(units, vdupq_n_u16(0x800)), surrogate);
    let several = !mask_of_lanes(single) & below(count);
    let threes = mask_of_lanes(three) & below(count);
    if threes == 0 {
        let lanes = vreinterpretq_u8_u16(front);
        // SAFETY: at most 16 bytes, with room for as many.
        unsafe { push_two(lanes, several as u8, dst) };
        return Pushed { rare, several, threes };
    }
    front = vbslq_u16(three, lead_of(units, middle), front);
    let back = vorrq_u16(low, vdupq_n_u16(0x80));
    let (lower, upper) = (vzip1q_u16(front, back), vzip2q_u16(front, back));
    // SAFETY: at most 16 bytes, with room for as many.
    let end = unsafe { push_four(lower, several, threes, dst) };
    // SAFETY: it begins at most 12 bytes in and ends within the slack.
    unsafe { push_four(upper, several >> 4, threes >> 4, end) };
    Pushed { rare, several, threes }
}

/// The halves of pairs as numbers of twelve bits, which are written as any other: of the 21 bits of a code the upper nine,
/// for 0x10000 is added to them, and the lower twelve, two of which the first half knows.
#[target_feature(enable = "neon")]
fn halves_of(units: uint16x8_t, high: uint16x8_t, surrogate: uint16x8_t) -> uint16x8_t {
    let ten = vandq_u16(units, vdupq_n_u16(0x3ff));
    let of_high = vshrq_n_u16::<2>(vaddq_u16(ten, vdupq_n_u16(0x40)));
    // Each unit's place taken by the one before.
    let before = vextq_u16::<7>(vdupq_n_u16(0), units);
    let of_low = vorrq_u16(ten, vshlq_n_u16::<10>(vandq_u16(before, vdupq_n_u16(3))));
    vbslq_u16(high, of_high, vbslq_u16(surrogate, of_low, units))
}

/// The first two of three bytes.
#[target_feature(enable = "neon")]
fn lead_of(units: uint16x8_t, middle: uint16x8_t) -> uint16x8_t {
    let lead = vorrq_u16(vshrq_n_u16::<12>(units), vshlq_n_u16::<8>(middle));
    vorrq_u16(lead, vdupq_n_u16(0x80e0))
}

/// Writes four lanes of four bytes, by the lowest four of the masks, and tells where they end.
///
/// # Safety
/// `dst` is writable for 16 bytes.
#[target_feature(enable = "neon")]
#[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
unsafe fn push_four(lanes: uint16x8_t, several: u32, threes: u32, dst: *mut u8) -> *mut u8 {
    let index = several & 0x0f | (threes & 0x0f) << 4;
    let pushed = vqtbl1q_u8(vreinterpretq_u8_u16(lanes), load(&OF_FOUR[index as usize]));
    // SAFETY: the caller's promise.
    unsafe { vst1q_u8(dst, pushed) };
    dst.wrapping_add(4 + index.count_ones() as usize)
}

/// Eight units of three bytes.
///
/// # Safety
/// `dst` is writable for 28 bytes.
#[target_feature(enable = "neon")]
unsafe fn push_threes(units: uint16x8_t, dst: *mut u8) {
    let six = vdupq_n_u16(0x3f);
    let front = lead_of(units, vandq_u16(vshrq_n_u16::<6>(units), six));
    let back = vorrq_u16(vandq_u16(units, six), vdupq_n_u16(0x80));
    let order = load(&[0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80]);
    let lower = vqtbl1q_u8(vreinterpretq_u8_u16(vzip1q_u16(front, back)), order);
    let upper = vqtbl1q_u8(vreinterpretq_u8_u16(vzip2q_u16(front, back)), order);
    // SAFETY: the caller's promise.
    unsafe { vst1q_u8(dst, lower) };
    // SAFETY: the caller's promise.
    unsafe { vst1q_u8(dst.wrapping_add(THREES), upper) };
}

/// Up to 16 bytes, then zeros.
///
/// # Safety
/// `src` is readable for `len` bytes.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load_part(src: *const u8, len: usize) -> uint8x16_t {
    if STEP <= len {
        // SAFETY: 16 bytes are readable.
        return unsafe { vld1q_u8(src) };
    }
    // SAFETY: fewer than 16 bytes, which are readable.
    let [low, high] = unsafe { part::load(src, len) };
    vcombine_u8(vcreate_u8(low), vcreate_u8(high))
}

/// Which of 16 characters do not stay one byte. One comparison with sign finds what is below a space and beyond ASCII.
#[inline]
#[target_feature(enable = "neon")]
fn specials_of<const ESCAPE: bool>(characters: uint8x16_t) -> uint8x16_t {
    let signed = vreinterpretq_s8_u8(characters);
    if !ESCAPE {
        return vcltzq_s8(signed);
    }
    let below_space = vcltq_s8(signed, vdupq_n_s8(0x20));
    let quote = vceqq_u8(characters, vdupq_n_u8(b'"'));
    let backslash = vceqq_u8(characters, vdupq_n_u8(b'\\'));
    vorrq_u8(below_space, vorrq_u8(quote, backslash))
}

#[target_feature(enable = "neon")]
fn is_ascii(units: uint16x8_t) -> bool {
    vmaxvq_u16(units) < 0x80
}

/// Whether all units are of three bytes each.
#[target_feature(enable = "neon")]
fn is_three(units: uint16x8_t) -> bool {
    0x800 <= vminvq_u16(units) && vmaxvq_u16(surrogates_of(units)) == 0
}

#[target_feature(enable = "neon")]
fn surrogates_of(units: uint16x8_t) -> uint16x8_t {
    vceqq_u16(vandq_u16(units, vdupq_n_u16(0xf800)), vdupq_n_u16(0xd800))
}

/// A bit for each of 16 lanes that are all ones or zeros.
#[target_feature(enable = "neon")]
fn mask_of(lanes: uint8x16_t) -> u32 {
    let bits = vandq_u8(lanes, load(&BITS));
    u32::from(vaddv_u8(vget_low_u8(bits))) | u32::from(vaddv_u8(vget_high_u8(bits))) << 8
}

/// A bit for each of eight lanes that are all ones or zeros.
#[target_feature(enable = "neon")]
fn mask_of_lanes(lanes: uint16x8_t) -> u32 {
    let bits = vand_u8(vmovn_u16(lanes), vget_low_u8(load(&BITS)));
    u32::from(vaddv_u8(bits))
}

static BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
static PLACES: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

#[inline]
#[target_feature(enable = "neon")]
fn load(table: &Shuffle) -> uint8x16_t {
    // SAFETY: 16 bytes.
    unsafe { vld1q_u8(table.as_ptr()) }
}
