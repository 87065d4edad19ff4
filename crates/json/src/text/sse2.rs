//! Writes runs of ASCII by vector, and all other characters by the scalar kernel: SSE2, which every x86-64 machine has,
//! has no shuffle of bytes. On any thread; `mod.rs` calls it.

#[allow(clippy::wildcard_imports, reason = "intrinsics")]
use std::arch::x86_64::*;

use super::{part, scalar};

const STEP: usize = 16;
const UNITS: usize = 8;

/// Copies blocks of 16 characters up to the first with a character that must be changed; returns how many characters.
/// They are whole blocks, or all.
///
/// # Safety
/// The conditions of [`super::Write`] hold.
#[inline]
#[target_feature(enable = "sse2")]
pub unsafe fn copy_clean<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    let mut read = 0;
    while STEP <= len - read {
        // SAFETY: 16 characters are left.
        let characters = unsafe { _mm_loadu_si128(src.wrapping_add(read).cast()) };
        // SAFETY: 16 characters have room.
        unsafe { _mm_storeu_si128(dst.wrapping_add(read).cast(), characters) };
        if specials_of::<ESCAPE>(characters) != 0 {
            return read;
        }
        read += STEP;
    }
    let left = len - read;
    // SAFETY: `left` characters are left.
    let characters = unsafe { load_part(src.wrapping_add(read), left) };
    // SAFETY: the characters that are left have room, and the slack takes the rest of the vector.
    unsafe { _mm_storeu_si128(dst.wrapping_add(read).cast(), characters) };
    if specials_of::<ESCAPE>(characters) & below(left) != 0 {
        return read;
    }
    len
}

/// Writes Latin-1; returns how many bytes.
///
/// # Safety
/// The conditions of [`super::Write`] hold.
#[target_feature(enable = "sse2")]
pub unsafe fn latin1<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    let (mut read, mut written) = (0, 0);
    while read < len {
        let left = (len - read).min(STEP);
        // SAFETY: `left` characters are left.
        let characters = unsafe { load_part(src.wrapping_add(read), left) };
        // SAFETY: the characters that are left have room, and the slack takes the rest of the vector.
        unsafe { _mm_storeu_si128(dst.wrapping_add(written).cast(), characters) };
        let mut specials = specials_of::<ESCAPE>(characters) & below(left);
        if specials == 0 {
            read += left;
            written += left;
            continue;
        }
        let plain = specials.trailing_zeros() as usize;
        read += plain;
        written += plain;
        specials >>= plain;
        while specials & 1 == 1 {
            // SAFETY: special characters are among those that are left.
            let character = unsafe { src.wrapping_add(read).read() };
            let to = dst.wrapping_add(written);
            // SAFETY: a character has room for six bytes, and the slack for two.
            written += unsafe { scalar::one::<ESCAPE>(u16::from(character), to) };
            read += 1;
            specials >>= 1;
        }
    }
    written
}

/// Writes UTF-16; returns how many bytes.
///
/// # Safety
/// The conditions of [`super::Write`] hold.
#[target_feature(enable = "sse2")]
pub unsafe fn utf16<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    let (mut read, mut written) = (0, 0);
    while UNITS <= len - read {
        // SAFETY: eight units are left.
        let units = unsafe { _mm_loadu_si128(src.wrapping_add(2 * read).cast()) };
        // Packing turns units from 0x8000 on into 0, so units beyond ASCII are found by themselves.
        let narrow = _mm_packus_epi16(units, _mm_setzero_si128());
        let ascii =
            _mm_cmpeq_epi16(_mm_and_si128(units, _mm_set1_epi16(-0x80)), _mm_setzero_si128());
        let ascii = _mm_movemask_epi8(_mm_packs_epi16(ascii, _mm_setzero_si128()));
        let specials = (specials_of::<ESCAPE>(narrow) | !ascii.cast_unsigned()) & below(UNITS);
        // SAFETY: eight units have room, and the slack takes the rest of the vector.
        unsafe { _mm_storeu_si128(dst.wrapping_add(written).cast(), narrow) };
        if specials == 0 {
            read += UNITS;
            written += UNITS;
            continue;
        }
        let plain = specials.trailing_zeros() as usize;
        read += plain;
        written += plain;
        let (left, stop) = (len - read, UNITS - plain);
        let (src, dst) = (src.wrapping_add(2 * read), dst.wrapping_add(written));
        // SAFETY: the rest of both ranges, which meets the same conditions.
        let rest = unsafe { scalar::utf16_until::<ESCAPE>(src, left, stop, dst) };
        read += rest.read;
        written += rest.written;
    }
    let (src, dst) = (src.wrapping_add(2 * read), dst.wrapping_add(written));
    // SAFETY: the rest of both ranges, which meets the same conditions.
    written + unsafe { scalar::utf16::<ESCAPE>(src, len - read, dst) }
}

/// Loads up to 16 bytes, followed by zeros.
///
/// # Safety
/// `src` is readable for `len` bytes.
#[inline]
#[target_feature(enable = "sse2")]
pub unsafe fn load_part(src: *const u8, len: usize) -> __m128i {
    if STEP <= len {
        // SAFETY: 16 bytes are readable.
        return unsafe { _mm_loadu_si128(src.cast()) };
    }
    // SAFETY: fewer than 16 bytes are asked for, and they are readable.
    let [low, high] = unsafe { part::load(src, len) };
    _mm_set_epi64x(high.cast_signed(), low.cast_signed())
}

/// Returns which of 16 characters do not stay one byte. A signed comparison finds both control characters and those beyond
/// ASCII.
#[inline]
#[target_feature(enable = "sse2")]
fn specials_of<const ESCAPE: bool>(characters: __m128i) -> u32 {
    if !ESCAPE {
        return _mm_movemask_epi8(characters).cast_unsigned();
    }
    let below_space = _mm_cmplt_epi8(characters, _mm_set1_epi8(b' '.cast_signed()));
    let quote = _mm_cmpeq_epi8(characters, _mm_set1_epi8(b'"'.cast_signed()));
    let backslash = _mm_cmpeq_epi8(characters, _mm_set1_epi8(b'\\'.cast_signed()));
    let specials = _mm_or_si128(below_space, _mm_or_si128(quote, backslash));
    _mm_movemask_epi8(specials).cast_unsigned()
}

/// Returns a mask of the lowest `len` bits, at most 16.
#[inline]
fn below(len: usize) -> u32 {
    (1 << len) - 1
}
