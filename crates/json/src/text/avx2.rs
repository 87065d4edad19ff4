//! Steps of AVX2: 32 characters of Latin-1 or 16 units of UTF-16. Characters of different lengths are laid out in lanes of
//! two or four bytes, which shuffles from a table push together, after Lemire and Muła, "Transcoding billions of Unicode
//! characters per second with SIMD instructions" (2022).
//!
//! On any thread; `mod.rs` calls the entry points, and `driver.rs` has their loops.

#[allow(clippy::wildcard_imports, reason = "intrinsics")]
use std::arch::x86_64::*;

use super::driver::{self, TextVector};
use super::pushed::{StepMasks, below};
use super::shuffle::{LETTERS, OF_FOUR, OF_TWO, Shuffle};
use super::sse2;

const STEP: usize = 32;
/// Bytes of four units that become three bytes each.
const THREES: usize = 12;

/// Writes Latin-1; returns how many bytes.
///
/// # Safety
/// The conditions of [`super::Write`] hold, and the machine has the features below.
#[target_feature(enable = "avx2,popcnt")]
pub unsafe fn latin1<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    // SAFETY: the caller meets the conditions of this function.
    unsafe { driver::latin1::<Avx2, ESCAPE>(src, len, dst) }
}

/// Writes UTF-16; returns how many bytes.
///
/// # Safety
/// The conditions of [`super::Write`] hold, and the machine has the features below.
#[target_feature(enable = "avx2,popcnt")]
pub unsafe fn utf16<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    // SAFETY: the caller meets the conditions of this function.
    unsafe { driver::utf16::<Avx2, ESCAPE>(src, len, dst) }
}

/// The steps of this instruction set.
struct Avx2;

impl TextVector for Avx2 {
    type Characters = __m256i;
    type Units = __m256i;
    const CHARACTERS: usize = STEP;

    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn load_characters(src: *const u8, len: usize) -> __m256i {
        if STEP <= len {
            // SAFETY: 32 bytes are readable.
            return unsafe { _mm256_loadu_si256(src.cast()) };
        }
        // SAFETY: `len` bytes are readable.
        let lower = unsafe { sse2::load_part(src, len) };
        let mut upper = _mm_setzero_si128();
        if STEP / 2 < len {
            // SAFETY: the bytes behind the first 16 are readable.
            upper = unsafe { sse2::load_part(src.wrapping_add(STEP / 2), len - STEP / 2) };
        }
        _mm256_set_m128i(upper, lower)
    }

    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn load_units(src: *const u8, len: usize) -> __m256i {
        // SAFETY: the caller meets the conditions of this function.
        unsafe { Self::load_characters(src, 2 * len) }
    }

    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn is_ascii(units: __m256i) -> bool {
        _mm256_testz_si256(units, _mm256_set1_epi16(-0x80)) != 0
    }

    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn is_three(units: __m256i) -> bool {
        let upper = _mm256_and_si256(units, _mm256_set1_epi16(-0x800));
        let small = _mm256_cmpeq_epi16(upper, _mm256_setzero_si256());
        let other = _mm256_or_si256(small, surrogates_of(units));
        _mm256_testz_si256(other, other) != 0
    }

    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn push_latin1<const ESCAPE: bool>(
        characters: __m256i,
        count: usize,
        dst: *mut u8,
    ) -> StepMasks {
        let specials = specials_of::<ESCAPE>(characters) & below(count);
        if specials == 0 {
            // SAFETY: `count` characters have room, and the slack takes the rest.
            unsafe { _mm256_storeu_si256(dst.cast(), characters) };
            return StepMasks { rare: 0, several: 0, threes: 0 };
        }
        let lead = _mm256_and_si256(_mm256_srli_epi16::<6>(characters), _mm256_set1_epi8(0x03));
        let lead = _mm256_or_si256(lead, _mm256_set1_epi8(-0x40));
        // The sign of a character selects.
        let mut first = _mm256_blendv_epi8(characters, lead, characters);
        let mut second = _mm256_and_si256(characters, _mm256_set1_epi8(-0x41));
        let mut rare = 0;
        if ESCAPE {
            // Saturation makes control characters 0, and leaves all others above 0.
            let above = _mm256_subs_epu8(characters, _mm256_set1_epi8(0x1f));
            let control = _mm256_cmpeq_epi8(above, _mm256_setzero_si256());
            let backslash = _mm256_set1_epi8(b'\\'.cast_signed());
            let quoted = _mm256_or_si256(
                _mm256_cmpeq_epi8(characters, _mm256_set1_epi8(b'"'.cast_signed())),
                _mm256_cmpeq_epi8(characters, backslash),
            );
            // From 16 on the index is negative, so the shuffle makes zero.
            let index = _mm256_add_epi8(characters, _mm256_set1_epi8(0x70));
            let letters = _mm256_shuffle_epi8(twice(&LETTERS), index);
            let without = _mm256_cmpeq_epi8(letters, _mm256_setzero_si256());
            rare = movemask(_mm256_and_si256(control, without)) & below(count);
            first = _mm256_blendv_epi8(first, backslash, _mm256_or_si256(control, quoted));
            second = _mm256_blendv_epi8(second, characters, quoted);
            second = _mm256_blendv_epi8(second, letters, control);
        }
        // `even` has lanes 0–7 and 16–23, `odd` has lanes 8–15 and 24–31.
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
            // SAFETY: the lanes before wrote as many bytes as they have room for. The 16 bytes of this store end within the
            // room of eight characters and the slack.
            end = unsafe { push_two(eight, both, end) };
        }
        StepMasks { rare, several: specials, threes: 0 }
    }

    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn push_utf16<const ESCAPE: bool>(
        units: __m256i,
        count: usize,
        dst: *mut u8,
    ) -> StepMasks {
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
        // Units of one byte, of two bytes, and the first two bytes of units of three.
        let six = _mm256_set1_epi16(0x3f);
        let low = _mm256_and_si256(value, six);
        let middle = _mm256_and_si256(_mm256_srli_epi16::<6>(value), six);
        let two = _mm256_or_si256(_mm256_or_si256(middle, _mm256_slli_epi16::<8>(low)), mark);
        let mut front = _mm256_blendv_epi8(two, units, ascii);
        let mut single = ascii;
        if ESCAPE {
            let control =
                _mm256_cmpeq_epi16(_mm256_subs_epu16(units, _mm256_set1_epi16(0x1f)), zero);
            let backslash = _mm256_set1_epi16(i16::from(b'\\'));
            let quoted = _mm256_or_si256(
                _mm256_cmpeq_epi16(units, _mm256_set1_epi16(i16::from(b'"'))),
                _mm256_cmpeq_epi16(units, backslash),
            );
            // From 16 on the index is negative, so the shuffle makes zero. The upper byte has index 0, which has no letter.
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
            // SAFETY: it writes 16 bytes: at most the room of eight units, and the slack takes the rest.
            let end = unsafe { push_two(lower, first, dst) };
            // SAFETY: it starts where the bytes that count end, and its 16 bytes end within the slack.
            unsafe { push_two(upper, second, end) };
            return StepMasks { rare, several, threes };
        }
        let three = _mm256_andnot_si256(_mm256_or_si256(small, surrogate), _mm256_set1_epi8(-1));
        let lead = _mm256_or_si256(_mm256_srli_epi16::<12>(units), _mm256_slli_epi16::<8>(middle));
        let lead = _mm256_or_si256(lead, _mm256_set1_epi16(0x80e0_u16.cast_signed()));
        front = _mm256_blendv_epi8(front, lead, three);
        let back = _mm256_or_si256(low, _mm256_set1_epi16(0x80));
        // SAFETY: four lanes are at most 12 bytes, so the stores end within the room of 16 units and the slack.
        unsafe { push_fours(front, back, several, threes, dst) };
        StepMasks { rare, several, threes }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    #[allow(clippy::multiple_unsafe_ops_per_block, reason = "four stores with one condition")]
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
        // SAFETY: the caller meets the conditions of this function.
        unsafe {
            _mm_storeu_si128(dst.cast(), _mm256_castsi256_si128(even));
            _mm_storeu_si128(dst.wrapping_add(THREES).cast(), _mm256_castsi256_si128(odd));
            _mm_storeu_si128(
                dst.wrapping_add(2 * THREES).cast(),
                _mm256_extracti128_si256::<1>(even),
            );
            _mm_storeu_si128(
                dst.wrapping_add(3 * THREES).cast(),
                _mm256_extracti128_si256::<1>(odd),
            );
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn narrow(first: __m256i, second: __m256i) -> __m256i {
        // Packing leaves the first vector in quarters 0 and 2, the second in 1 and 3.
        _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(first, second))
    }
}

/// Writes eight lanes of one or two bytes each; returns where they end. `both` has a bit for each lane of two bytes.
///
/// # Safety
/// `dst` is writable for 16 bytes.
#[target_feature(enable = "avx2,popcnt")]
#[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
unsafe fn push_two(lanes: __m128i, both: u8, dst: *mut u8) -> *mut u8 {
    let pushed = _mm_shuffle_epi8(lanes, load(&OF_TWO[usize::from(both)]));
    // SAFETY: the caller meets the conditions of this function.
    unsafe { _mm_storeu_si128(dst.cast(), pushed) };
    dst.wrapping_add(8 + both.count_ones() as usize)
}

/// Turns both halves of surrogate pairs into numbers of twelve bits, which are written as two bytes each.
///
/// | half | bits of the code point |
/// |---|---|
/// | first | the upper nine of 21, after adding 0x10000 |
/// | second | the lower twelve, two of which come from the first half |
#[target_feature(enable = "avx2")]
fn halves_of(units: __m256i, high: __m256i, surrogate: __m256i) -> __m256i {
    let ten = _mm256_and_si256(units, _mm256_set1_epi16(0x3ff));
    let of_high = _mm256_srli_epi16::<2>(_mm256_add_epi16(ten, _mm256_set1_epi16(0x40)));
    // Each lane holds the unit before.
    let lower = _mm256_permute2x128_si256::<0x08>(units, units);
    let before = _mm256_alignr_epi8::<14>(units, lower);
    let of_low = _mm256_or_si256(
        ten,
        _mm256_slli_epi16::<10>(_mm256_and_si256(before, _mm256_set1_epi16(3))),
    );
    let value = _mm256_blendv_epi8(units, of_low, surrogate);
    _mm256_blendv_epi8(value, of_high, high)
}

/// Writes 16 lanes of four bytes. `front` has their lower halves, `back` the upper.
///
/// # Safety
/// `dst` is writable for 64 bytes.
#[target_feature(enable = "avx2,popcnt")]
#[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
unsafe fn push_fours(front: __m256i, back: __m256i, several: u32, threes: u32, dst: *mut u8) {
    // `even` has lanes 0–3 and 8–11, `odd` has lanes 4–7 and 12–15.
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
        // SAFETY: the lanes before wrote at most 12 bytes for each four, so this store ends at byte 52 at most.
        unsafe { _mm_storeu_si128(end.cast(), pushed) };
        end = end.wrapping_add(4 + index.count_ones() as usize);
    }
}

/// Returns which of 32 characters do not stay one byte. A signed comparison finds both control characters and those beyond
/// ASCII.
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
fn surrogates_of(units: __m256i) -> __m256i {
    let upper = _mm256_and_si256(units, _mm256_set1_epi16(-0x800));
    _mm256_cmpeq_epi16(upper, _mm256_set1_epi16(0xd800_u16.cast_signed()))
}

/// Returns a bit for each of 16 lanes.
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
    // SAFETY: `shuffle` has 16 bytes.
    unsafe { _mm_loadu_si128(shuffle.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn twice(half: &Shuffle) -> __m256i {
    _mm256_broadcastsi128_si256(load(half))
}
