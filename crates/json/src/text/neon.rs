//! Steps of NEON: 16 characters of Latin-1 or eight units of UTF-16. Characters of different lengths are laid out in lanes
//! of two or four bytes, which shuffles from a table push together, as in the AVX2 kernel.
//!
//! On any thread; `mod.rs` calls the entry points, and `driver.rs` has their loops.

#[allow(clippy::wildcard_imports, reason = "intrinsics")]
use std::arch::aarch64::*;

use super::driver::{self, TextVector};
use super::part;
use super::pushed::{StepMasks, below};
use super::shuffle::{LETTERS, OF_FOUR, OF_TWO, Shuffle};

const STEP: usize = 16;
/// Bytes of four units that become three bytes each.
const THREES: usize = 12;

/// Copies blocks of 16 characters up to the first with a character that must be changed; returns how many characters.
/// They are whole blocks, or all.
///
/// # Safety
/// The conditions of [`super::Write`] hold.
#[inline]
#[target_feature(enable = "neon")]
pub unsafe fn copy_clean<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    let mut read = 0;
    while read < len {
        let count = (len - read).min(STEP);
        // SAFETY: `count` characters are left.
        let characters = unsafe { Neon::load_characters(src.wrapping_add(read), count) };
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

/// Writes Latin-1; returns how many bytes.
///
/// # Safety
/// The conditions of [`super::Write`] hold, and the machine has the features below.
#[target_feature(enable = "neon")]
pub unsafe fn latin1<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    // SAFETY: the caller meets the conditions of this function.
    unsafe { driver::latin1::<Neon, ESCAPE>(src, len, dst) }
}

/// Writes UTF-16; returns how many bytes.
///
/// # Safety
/// The conditions of [`super::Write`] hold, and the machine has the features below.
#[target_feature(enable = "neon")]
pub unsafe fn utf16<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    // SAFETY: the caller meets the conditions of this function.
    unsafe { driver::utf16::<Neon, ESCAPE>(src, len, dst) }
}

/// The steps of this instruction set.
struct Neon;

impl TextVector for Neon {
    type Characters = uint8x16_t;
    type Units = uint16x8_t;
    const CHARACTERS: usize = STEP;

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load_characters(src: *const u8, len: usize) -> uint8x16_t {
        if STEP <= len {
            // SAFETY: 16 bytes are readable.
            return unsafe { vld1q_u8(src) };
        }
        // SAFETY: fewer than 16 bytes are asked for, and they are readable.
        let [low, high] = unsafe { part::load(src, len) };
        vcombine_u8(vcreate_u8(low), vcreate_u8(high))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load_units(src: *const u8, len: usize) -> uint16x8_t {
        // SAFETY: the caller meets the conditions of this function.
        vreinterpretq_u16_u8(unsafe { Self::load_characters(src, 2 * len) })
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn narrow(first: uint16x8_t, second: uint16x8_t) -> uint8x16_t {
        vcombine_u8(vmovn_u16(first), vmovn_u16(second))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn is_ascii(units: uint16x8_t) -> bool {
        vmaxvq_u16(units) < 0x80
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn is_three(units: uint16x8_t) -> bool {
        0x800 <= vminvq_u16(units) && vmaxvq_u16(surrogates_of(units)) == 0
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn push_latin1<const ESCAPE: bool>(
        characters: uint8x16_t,
        count: usize,
        dst: *mut u8,
    ) -> StepMasks {
        let specials = specials_of::<ESCAPE>(characters);
        if vmaxvq_u8(specials) == 0 {
            // SAFETY: `count` characters have room, and the slack takes the rest.
            unsafe { vst1q_u8(dst, characters) };
            return StepMasks { rare: 0, several: 0, threes: 0 };
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
        // SAFETY: it writes 16 bytes: at most the room of eight units, and the slack takes the rest.
        let end = unsafe { push_two(first, lower, dst) };
        // SAFETY: it starts where the bytes that count end, and its 16 bytes end within the slack.
        unsafe { push_two(second, upper, end) };
        StepMasks { rare, several, threes: 0 }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn push_utf16<const ESCAPE: bool>(
        units: uint16x8_t,
        count: usize,
        dst: *mut u8,
    ) -> StepMasks {
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
        // Units of one byte, of two bytes, and the first two bytes of units of three.
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
            // From 16 on the index makes zero. The upper byte has index 0, which has no letter.
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
            // SAFETY: it writes 16 bytes: at most the room of eight units, and the slack takes the rest.
            unsafe { push_two(lanes, several as u8, dst) };
            return StepMasks { rare, several, threes };
        }
        front = vbslq_u16(three, lead_of(units, middle), front);
        let back = vorrq_u16(low, vdupq_n_u16(0x80));
        let (lower, upper) = (vzip1q_u16(front, back), vzip2q_u16(front, back));
        // SAFETY: it writes 16 bytes: at most the room of eight units, and the slack takes the rest.
        let end = unsafe { push_four(lower, several, threes, dst) };
        // SAFETY: it starts where the bytes that count end, and its 16 bytes end within the slack.
        unsafe { push_four(upper, several >> 4, threes >> 4, end) };
        StepMasks { rare, several, threes }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn push_threes(units: uint16x8_t, dst: *mut u8) {
        let six = vdupq_n_u16(0x3f);
        let front = lead_of(units, vandq_u16(vshrq_n_u16::<6>(units), six));
        let back = vorrq_u16(vandq_u16(units, six), vdupq_n_u16(0x80));
        let order = load(&[0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80]);
        let lower = vqtbl1q_u8(vreinterpretq_u8_u16(vzip1q_u16(front, back)), order);
        let upper = vqtbl1q_u8(vreinterpretq_u8_u16(vzip2q_u16(front, back)), order);
        // SAFETY: the caller meets the conditions of this function.
        unsafe { vst1q_u8(dst, lower) };
        // SAFETY: the caller meets the conditions of this function.
        unsafe { vst1q_u8(dst.wrapping_add(THREES), upper) };
    }
}

/// Writes eight lanes of one or two bytes each; returns where they end. `both` has a bit for each lane of two bytes.
///
/// # Safety
/// `dst` is writable for 16 bytes.
#[target_feature(enable = "neon")]
#[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
unsafe fn push_two(lanes: uint8x16_t, both: u8, dst: *mut u8) -> *mut u8 {
    let pushed = vqtbl1q_u8(lanes, load(&OF_TWO[usize::from(both)]));
    // SAFETY: the caller meets the conditions of this function.
    unsafe { vst1q_u8(dst, pushed) };
    dst.wrapping_add(8 + both.count_ones() as usize)
}

/// Turns both halves of surrogate pairs into numbers of twelve bits, which are written as two bytes each.
///
/// | half | bits of the code point |
/// |---|---|
/// | first | the upper nine of 21, after adding 0x10000 |
/// | second | the lower twelve, two of which come from the first half |
#[target_feature(enable = "neon")]
fn halves_of(units: uint16x8_t, high: uint16x8_t, surrogate: uint16x8_t) -> uint16x8_t {
    let ten = vandq_u16(units, vdupq_n_u16(0x3ff));
    let of_high = vshrq_n_u16::<2>(vaddq_u16(ten, vdupq_n_u16(0x40)));
    // Each lane holds the unit before.
    let before = vextq_u16::<7>(vdupq_n_u16(0), units);
    let of_low = vorrq_u16(ten, vshlq_n_u16::<10>(vandq_u16(before, vdupq_n_u16(3))));
    vbslq_u16(high, of_high, vbslq_u16(surrogate, of_low, units))
}

/// Returns the first two of three bytes.
#[target_feature(enable = "neon")]
fn lead_of(units: uint16x8_t, middle: uint16x8_t) -> uint16x8_t {
    let lead = vorrq_u16(vshrq_n_u16::<12>(units), vshlq_n_u16::<8>(middle));
    vorrq_u16(lead, vdupq_n_u16(0x80e0))
}

/// Writes four lanes of four bytes, by the lowest four bits of the masks; returns where they end.
///
/// # Safety
/// `dst` is writable for 16 bytes.
#[target_feature(enable = "neon")]
#[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
unsafe fn push_four(lanes: uint16x8_t, several: u32, threes: u32, dst: *mut u8) -> *mut u8 {
    let index = several & 0x0f | (threes & 0x0f) << 4;
    let pushed = vqtbl1q_u8(vreinterpretq_u8_u16(lanes), load(&OF_FOUR[index as usize]));
    // SAFETY: the caller meets the conditions of this function.
    unsafe { vst1q_u8(dst, pushed) };
    dst.wrapping_add(4 + index.count_ones() as usize)
}

/// Returns which of 16 characters do not stay one byte. A signed comparison finds both control characters and those beyond
/// ASCII.
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
fn surrogates_of(units: uint16x8_t) -> uint16x8_t {
    vceqq_u16(vandq_u16(units, vdupq_n_u16(0xf800)), vdupq_n_u16(0xd800))
}

/// Returns a bit for each of 16 lanes, each all ones or all zeros.
#[target_feature(enable = "neon")]
fn mask_of(lanes: uint8x16_t) -> u32 {
    let bits = vandq_u8(lanes, load(&BITS));
    u32::from(vaddv_u8(vget_low_u8(bits))) | u32::from(vaddv_u8(vget_high_u8(bits))) << 8
}

/// Returns a bit for each of eight lanes, each all ones or all zeros.
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
    // SAFETY: `table` has 16 bytes.
    unsafe { vld1q_u8(table.as_ptr()) }
}
