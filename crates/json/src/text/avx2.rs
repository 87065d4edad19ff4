//! 32 characters of Latin-1 or 16 units of UTF-16 at a time. What is not the same length throughout is laid out in lanes
//! of two or four bytes and pushed together by shuffles from a table, after Lemire and Muła, "Transcoding billions of
//! Unicode characters per second with SIMD instructions" (2022).

#[allow(clippy::wildcard_imports, reason = "intrinsics")]
use std::arch::x86_64::*;

use super::pushed::{Pushed, below};
use super::shuffle::{LETTERS, OF_FOUR, OF_TWO, Shuffle};
use super::{scalar, sse2};

const STEP: usize = 32;
const UNITS: usize = 16;
/// Bytes of four units of three.
const THREES: usize = 12;

pub fn is_supported() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
}

/// # Safety
/// As [`super::Write`], on a machine that [`is_supported`].
#[target_feature(enable = "avx2,popcnt")]
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
#[target_feature(enable = "avx2,popcnt")]
unsafe fn push_latin1<const ESCAPE: bool>(
    characters: __m256i,
    count: usize,
    dst: *mut u8,
) -> Pushed {
    let specials = specials_of::<ESCAPE>(characters) & below(count);
    if specials == 0 {
        // SAFETY: `count` characters have room, and the slack takes the rest.
        unsafe { _mm256_storeu_si256(dst.cast(), characters) };
        return Pushed { rare: 0, several: 0, threes: 0 };
    }
    let lead = _mm256_and_si256(_mm256_srli_epi16::<6>(characters), _mm256_set1_epi8(0x03));
    let lead = _mm256_or_si256(lead, _mm256_set1_epi8(-0x40));
    // The sign of a character chooses.
    let mut first = _mm256_blendv_epi8(characters, lead, characters);
    let mut second = _mm256_and_si256(characters, _mm256_set1_epi8(-0x41));
    let mut rare = 0;
    if ESCAPE {
        // Not what is beyond ASCII, which the saturation leaves alone.
        let above = _mm256_subs_epu8(characters, _mm256_set1_epi8(0x1f));
        let control = _mm256_cmpeq_epi8(above, _mm256_setzero_si256());
        let backslash = _mm256_set1_epi8(b'\\'.cast_signed());
        let quoted = _mm256_or_si256(
            _mm256_cmpeq_epi8(characters, _mm256_set1_epi8(b'"'.cast_signed())),
            _mm256_cmpeq_epi8(characters, backslash),
        );
        // From 16 on the index is negative, which makes zero.
        let index = _mm256_add_epi8(characters, _mm256_set1_epi8(0x70));
        let letters = _mm256_shuffle_epi8(twice(&LETTERS), index);
        let without = _mm256_cmpeq_epi8(letters, _mm256_setzero_si256());
        rare = movemask(_mm256_and_si256(control, without)) & below(count);
        first = _mm256_blendv_epi8(first, backslash, _mm256_or_si256(control, quoted));
        second = _mm256_blendv_epi8(second, characters, quoted);
        second = _mm256_blendv_epi8(second, letters, control);
    }
    // Eights 0 and 2, 1 and 3.
    let even = _mm256_unpacklo_epi8(first, second);
    let odd = _mm256_unpackhi_epi8(first, second);
    let eights = [
        _mm256_castsi256_si128(even),
        _mm256_castsi256_si128(odd),
        _mm256_extracti128_si256::<1>(even),
        _mm256_extracti128_si256::<1>(odd),
    ];
    let mut end = dst;
    for (eight, both) in eights.into_iter().zip(specials.to_le_bytes()) {
        // SAFETY: each of the eights before is eight bytes and one for each that is special, which all have room; what
        // is behind them ends within the slack.
        end = unsafe { push_two(eight, both, end) };
    }
    Pushed { rare, several: specials, threes: 0 }
}

/// Writes eight lanes of two bytes and tells where they end.
///
/// # Safety
/// `dst` is writable for 16 bytes.
#[target_feature(enable = "avx2,popcnt")]
#[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
unsafe fn push_two(lanes: __m128i, both: u8, dst: *mut u8) -> *mut u8 {
    let pushed = _mm_shuffle_epi8(lanes, load(&OF_TWO[usize::from(both)]));
    // SAFETY: the caller's promise.
    unsafe { _mm_storeu_si128(dst.cast(), pushed) };
    dst.wrapping_add(8 + both.count_ones() as usize)
}

/// # Safety
/// As [`super::Write`], on a machine that [`is_supported`].
#[target_feature(enable = "avx2,popcnt")]
pub unsafe fn utf16<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    let (mut read, mut written) = (0, 0);
    while read < len {
        let (from, to) = (src.wrapping_add(2 * read), dst.wrapping_add(written));
        // SAFETY: at least one unit is left.
        let mut count = unsafe { scalar::whole(from, len - read, UNITS) };
        // SAFETY: the units of this step, and one that waits for its second half.
        let units = unsafe { load_part(from, 2 * (len - read).min(UNITS)) };
        let pushed = if STEP <= len - read && is_ascii(units) {
            count = STEP;
            // SAFETY: 32 units are left.
            let others = unsafe { _mm256_loadu_si256(from.wrapping_add(STEP).cast()) };
            if !is_ascii(others) {
                count = UNITS;
            }
            let characters = narrow(units, others);
            // SAFETY: these have room.
            unsafe { push_latin1::<ESCAPE>(characters, count, to) }
        } else if count == UNITS && is_three(units) {
            // SAFETY: 16 units have room.
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
#[target_feature(enable = "avx2,popcnt")]
unsafe fn push_utf16<const ESCAPE: bool>(units: __m256i, count: usize, dst: *mut u8) -> Pushed {
    let zero = _mm256_setzero_si256();
    let surrogate = surrogates_of(units);
    let surrogates = mask_of(surrogate) & below(count);
    let ascii = _mm256_cmpeq_epi16(_mm256_and_si256(units, _mm256_set1_epi16(-0x80)), zero);
    let small = _mm256_cmpeq_epi16(_mm256_and_si256(units, _mm256_set1_epi16(-0x800)), zero);
    let mut rare = 0;

    let mut value = units;
    let mut mark = _mm256_set1_epi16(0x80c0_u16.cast_signed());
    if surrogates != 0 {
        let bit = _mm256_cmpgt_epi16(_mm256_set1_epi16(0xdc00_u16.cast_signed()), units);
        let high = _mm256_and_si256(surrogate, bit);
        let highs = mask_of(high) & below(count);
        let lows = surrogates & !highs;
        rare = highs & !(lows >> 1) | lows & !(highs << 1);
        value = halves_of(units, high, surrogate);
        mark = _mm256_blendv_epi8(mark, _mm256_set1_epi16(0x8080_u16.cast_signed()), surrogate);
        mark = _mm256_blendv_epi8(mark, _mm256_set1_epi16(0x80f0_u16.cast_signed()), high);
    }
    // One, two, and the first two of three bytes.
    let six = _mm256_set1_epi16(0x3f);
    let low = _mm256_and_si256(value, six);
    let middle = _mm256_and_si256(_mm256_srli_epi16::<6>(value), six);
    let two = _mm256_or_si256(_mm256_or_si256(middle, _mm256_slli_epi16::<8>(low)), mark);
    let mut front = _mm256_blendv_epi8(two, units, ascii);
    let mut single = ascii;
    if ESCAPE {
        let control = _mm256_cmpeq_epi16(_mm256_subs_epu16(units, _mm256_set1_epi16(0x1f)), zero);
        let backslash = _mm256_set1_epi16(i16::from(b'\\'));
        let quoted = _mm256_or_si256(
            _mm256_cmpeq_epi16(units, _mm256_set1_epi16(i16::from(b'"'))),
            _mm256_cmpeq_epi16(units, backslash),
        );
        // From 16 on the index is negative, which makes zero; so does the upper byte, which is zero.
        let index = _mm256_add_epi16(units, _mm256_set1_epi16(0x70));
        let letters = _mm256_shuffle_epi8(twice(&LETTERS), index);
        let without = _mm256_and_si256(control, _mm256_cmpeq_epi16(letters, zero));
        rare |= mask_of(without) & below(count);
        let escaped = _mm256_or_si256(control, quoted);
        let letters = _mm256_blendv_epi8(units, letters, control);
        let escape = _mm256_or_si256(_mm256_slli_epi16::<8>(letters), backslash);
        front = _mm256_blendv_epi8(front, escape, escaped);
        single = _mm256_andnot_si256(escaped, ascii);
    }
    let several = !mask_of(single) & below(count);
    let threes = !(mask_of(small) | surrogates) & below(count);
    if threes == 0 {
        let [first, second, ..] = several.to_le_bytes();
        let lower = _mm256_castsi256_si128(front);
        let upper = _mm256_extracti128_si256::<1>(front);
        // SAFETY: at most 16 bytes, with room for as many.
        let end = unsafe { push_two(lower, first, dst) };
        // SAFETY: it begins at most 16 bytes in and ends within the slack.
        unsafe { push_two(upper, second, end) };
        return Pushed { rare, several, threes };
    }
    let three = _mm256_andnot_si256(_mm256_or_si256(small, surrogate), _mm256_set1_epi8(-1));
    let lead = _mm256_or_si256(_mm256_srli_epi16::<12>(units), _mm256_slli_epi16::<8>(middle));
    let lead = _mm256_or_si256(lead, _mm256_set1_epi16(0x80e0_u16.cast_signed()));
    front = _mm256_blendv_epi8(front, lead, three);
    let back = _mm256_or_si256(low, _mm256_set1_epi16(0x80));
    // SAFETY: each four is at most 12 bytes, so all end within the slack.
    unsafe { push_fours(front, back, several, threes, dst) };
    Pushed { rare, several, threes }
}

/// The halves of pairs as numbers of twelve bits, which are written as any other: of the 21 bits of a code the upper nine,
/// for 0x10000 is added to them, and the lower twelve, two of which the first half knows.
#[target_feature(enable = "avx2")]
fn halves_of(units: __m256i, high: __m256i, surrogate: __m256i) -> __m256i {
    let ten = _mm256_and_si256(units, _mm256_set1_epi16(0x3ff));
    let of_high = _mm256_srli_epi16::<2>(_mm256_add_epi16(ten, _mm256_set1_epi16(0x40)));
    // Each unit's place taken by the one before.
    let lower = _mm256_permute2x128_si256::<0x08>(units, units);
    let before = _mm256_alignr_epi8::<14>(units, lower);
    let of_low = _mm256_or_si256(
        ten,
        _mm256_slli_epi16::<10>(_mm256_and_si256(before, _mm256_set1_epi16(3))),
    );
    let value = _mm256_blendv_epi8(units, of_low, surrogate);
    _mm256_blendv_epi8(value, of_high, high)
}

/// Lanes of four bytes, whose halves these are.
///
/// # Safety
/// `dst` is writable for 64 bytes.
#[target_feature(enable = "avx2,popcnt")]
#[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
unsafe fn push_fours(front: __m256i, back: __m256i, several: u32, threes: u32, dst: *mut u8) {
    // Fours 0 and 2, 1 and 3.
    let even = _mm256_unpacklo_epi16(front, back);
    let odd = _mm256_unpackhi_epi16(front, back);
    let fours = [
        _mm256_castsi256_si128(even),
        _mm256_castsi256_si128(odd),
        _mm256_extracti128_si256::<1>(even),
        _mm256_extracti128_si256::<1>(odd),
    ];
    let mut end = dst;
    for (four, shift) in fours.into_iter().zip([0, 4, 8, 12]) {
        let index = several >> shift & 0x0f | (threes >> shift & 0x0f) << 4;
        let pushed = _mm_shuffle_epi8(four, load(&OF_FOUR[index as usize]));
        // SAFETY: at most 12 bytes for each of the fours before: 52 bytes.
        unsafe { _mm_storeu_si128(end.cast(), pushed) };
        end = end.wrapping_add(4 + index.count_ones() as usize);
    }
}

/// 16 units of three bytes.
///
/// # Safety
/// `dst` is writable for 52 bytes.
#[target_feature(enable = "avx2")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "four of the same")]
unsafe fn push_threes(units: __m256i, dst: *mut u8) {
    let six = _mm256_set1_epi16(0x3f);
    let low = _mm256_and_si256(units, six);
    let middle = _mm256_slli_epi16::<8>(_mm256_and_si256(_mm256_srli_epi16::<6>(units), six));
    let front = _mm256_or_si256(_mm256_srli_epi16::<12>(units), middle);
    let front = _mm256_or_si256(front, _mm256_set1_epi16(0x80e0_u16.cast_signed()));
    let back = _mm256_or_si256(low, _mm256_set1_epi16(0x80));
    let order = twice(&[0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80]);
    let even = _mm256_shuffle_epi8(_mm256_unpacklo_epi16(front, back), order);
    let odd = _mm256_shuffle_epi8(_mm256_unpackhi_epi16(front, back), order);
    // SAFETY: the caller's promise.
    unsafe {
        _mm_storeu_si128(dst.cast(), _mm256_castsi256_si128(even));
        _mm_storeu_si128(dst.wrapping_add(THREES).cast(), _mm256_castsi256_si128(odd));
        _mm_storeu_si128(dst.wrapping_add(2 * THREES).cast(), _mm256_extracti128_si256::<1>(even));
        _mm_storeu_si128(dst.wrapping_add(3 * THREES).cast(), _mm256_extracti128_si256::<1>(odd));
    }
}

/// Up to 32 bytes, then zeros.
///
/// # Safety
/// `src` is readable for `len` bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_part(src: *const u8, len: usize) -> __m256i {
    if STEP <= len {
        // SAFETY: 32 bytes are readable.
        return unsafe { _mm256_loadu_si256(src.cast()) };
    }
    // SAFETY: `len` bytes are readable.
    let lower = unsafe { sse2::load_part(src, len) };
    let mut upper = _mm_setzero_si128();
    if STEP / 2 < len {
        // SAFETY: what is left of them.
        upper = unsafe { sse2::load_part(src.wrapping_add(STEP / 2), len - STEP / 2) };
    }
    _mm256_set_m128i(upper, lower)
}

/// Which of 32 characters do not stay one byte. One comparison with sign finds what is below a space and beyond ASCII.
#[target_feature(enable = "avx2")]
fn specials_of<const ESCAPE: bool>(characters: __m256i) -> u32 {
    if !ESCAPE {
        return movemask(characters);
    }
    let space = _mm256_set1_epi8(b' '.cast_signed());
    let quote = _mm256_cmpeq_epi8(characters, _mm256_set1_epi8(b'"'.cast_signed()));
    let backslash = _mm256_cmpeq_epi8(characters, _mm256_set1_epi8(b'\\'.cast_signed()));
    let specials = _mm256_or_si256(quote, backslash);
    movemask(_mm256_or_si256(specials, _mm256_cmpgt_epi8(space, characters)))
}

#[target_feature(enable = "avx2")]
fn is_ascii(units: __m256i) -> bool {
    _mm256_testz_si256(units, _mm256_set1_epi16(-0x80)) != 0
}

/// Whether all units are of three bytes each.
#[target_feature(enable = "avx2")]
fn is_three(units: __m256i) -> bool {
    let upper = _mm256_and_si256(units, _mm256_set1_epi16(-0x800));
    let small = _mm256_cmpeq_epi16(upper, _mm256_setzero_si256());
    let other = _mm256_or_si256(small, surrogates_of(units));
    _mm256_testz_si256(other, other) != 0
}

#[target_feature(enable = "avx2")]
fn surrogates_of(units: __m256i) -> __m256i {
    let upper = _mm256_and_si256(units, _mm256_set1_epi16(-0x800));
    _mm256_cmpeq_epi16(upper, _mm256_set1_epi16(0xd800_u16.cast_signed()))
}

/// Units of ASCII as characters.
#[target_feature(enable = "avx2")]
fn narrow(first: __m256i, second: __m256i) -> __m256i {
    // Quarters 0 and 2 are of the first, 1 and 3 of the second.
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(first, second))
}

/// A bit for each of 16 lanes.
#[target_feature(enable = "avx2")]
fn mask_of(lanes: __m256i) -> u32 {
    let lower = _mm256_castsi256_si128(lanes);
    let narrow = _mm_packs_epi16(lower, _mm256_extracti128_si256::<1>(lanes));
    _mm_movemask_epi8(narrow).cast_unsigned()
}

#[target_feature(enable = "avx2")]
fn movemask(lanes: __m256i) -> u32 {
    _mm256_movemask_epi8(lanes).cast_unsigned()
}

#[target_feature(enable = "avx2")]
fn load(shuffle: &Shuffle) -> __m128i {
    // SAFETY: 16 bytes.
    unsafe { _mm_loadu_si128(shuffle.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn twice(half: &Shuffle) -> __m256i {
    _mm256_broadcastsi128_si256(load(half))
}
