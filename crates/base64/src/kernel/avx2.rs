//! Moves 32 characters at a time with AVX2, after Muła and Lemire, "Faster Base64 Encoding and Decoding Using AVX2
//! Instructions" (2018). On any thread; `mod.rs` calls it.

#[allow(clippy::wildcard_imports, reason = "intrinsics")]
use std::arch::x86_64::*;

use super::stage::ValueStage;
use super::{KernelAdvance, rewind, scalar};
use crate::Alphabet;
use crate::alphabet::Charset;

/// Characters that a step reads.
const STEP: usize = 32;
/// Bytes that a step makes.
const STEP_BYTES: usize = 24;
/// Characters that must follow a step: its store writes 8 bytes too many, for which they have room.
const SPILL: usize = 12;

/// Decodes; see [`super::Base64Kernel::decode`].
///
/// # Safety
/// The conditions of [`super::Base64Kernel::decode`] hold, and the machine has the features below.
#[target_feature(enable = "avx2,popcnt")]
pub unsafe fn decode(src: *const u8, len: usize, dst: *mut u8, charset: Charset) -> KernelAdvance {
    // SAFETY: the caller meets the conditions of this function.
    let clean = unsafe { decode_clean(src, len, dst, charset) };
    let (mut read, mut written) = (clean.read, clean.written);
    if STEP + SPILL <= len - read {
        // SAFETY: the rest of both ranges, which meets the same conditions.
        let rest = unsafe {
            decode_skipping(src.wrapping_add(read), len - read, dst.wrapping_add(written), charset)
        };
        read += rest.read;
        written += rest.written;
    }
    // SAFETY: the rest of both ranges, which meets the same conditions.
    let rest = unsafe {
        scalar::decode(src.wrapping_add(read), len - read, dst.wrapping_add(written), charset)
    };
    KernelAdvance { read: read + rest.read, written: written + rest.written }
}

/// Decodes while all characters are data.
///
/// # Safety
/// The conditions of [`decode`] hold.
#[target_feature(enable = "avx2")]
unsafe fn decode_clean(
    src: *const u8,
    len: usize,
    dst: *mut u8,
    charset: Charset,
) -> KernelAdvance {
    let (mut read, mut written) = (0, 0);
    while STEP + SPILL <= len - read {
        // SAFETY: 32 characters are left.
        let characters = unsafe { _mm256_loadu_si256(src.wrapping_add(read).cast()) };
        let (values, foreign) = values_of(characters, charset);
        if _mm256_testz_si256(foreign, foreign) == 0 {
            break;
        }
        let bytes = pack(values);
        // SAFETY: 44 characters have room for 33 bytes. In place, the overwritten characters have been loaded.
        unsafe { _mm256_storeu_si256(dst.wrapping_add(written).cast(), bytes) };
        read += STEP;
        written += STEP_BYTES;
    }
    KernelAdvance { read, written }
}

/// Decodes and skips. Pushes the values of data characters together on a stage, and empties the stage when it is full.
///
/// # Safety
/// The conditions of [`decode`] hold.
#[target_feature(enable = "avx2,popcnt")]
unsafe fn decode_skipping(
    src: *const u8,
    len: usize,
    dst: *mut u8,
    charset: Charset,
) -> KernelAdvance {
    let room = len / 4 * 3;
    let mut stage = Avx2Stage::new();
    let (mut read, mut written, mut stopped) = (0, 0, false);
    while STEP <= len - read && !stopped {
        while STEP <= len - read && !stopped && !stage.is_full() {
            // SAFETY: 32 characters are left.
            let characters = unsafe { _mm256_loadu_si256(src.wrapping_add(read).cast()) };
            let (values, foreign) = values_of(characters, charset);
            let skipped = _mm256_movemask_epi8(skipped_of(characters, charset)).cast_unsigned();
            let foreign = _mm256_movemask_epi8(foreign).cast_unsigned();
            stopped = foreign & !skipped != 0;
            if !stopped {
                push(&mut stage, values, foreign);
                read += STEP;
            }
        }
        let mut step = 0;
        // A store writes 32 bytes for 24. If the last 8 have no room, the scalar kernel does the rest.
        while STEP * (step + 1) <= stage.len && written + STEP <= room {
            let bytes = pack(load(stage.step(step)));
            // SAFETY: `written + 32 <= room`. In place: all characters of the bytes before, and at least 32 more, have
            // been loaded, and 3/4 of the former plus 32 ends at or before the last of them.
            unsafe { _mm256_storeu_si256(dst.wrapping_add(written).cast(), bytes) };
            written += STEP_BYTES;
            step += 1;
        }
        stage.keep_from(step);
        stopped |= STEP <= stage.len;
    }
    // SAFETY: `src` is readable up to `read`.
    let read = unsafe { rewind(src, read, stage.len, charset) };
    KernelAdvance { read, written }
}

/// Steps of a stage. A load stalls if it meets several recent stores; with 32 steps the stores are old.
const STAGED_STEPS: usize = 32;

type Avx2Stage = ValueStage<STEP, { STAGED_STEPS + 1 }>;

/// Adds the values that are not foreign to a stage that is not full.
#[target_feature(enable = "avx2,popcnt")]
fn push(stage: &mut Avx2Stage, values: __m256i, foreign: u32) {
    debug_assert!(!stage.is_full());
    let lower = _mm256_castsi256_si128(values);
    let upper = _mm256_extracti128_si256::<1>(values);
    let quarters = [lower, _mm_srli_si128::<8>(lower), upper, _mm_srli_si128::<8>(upper)];
    // A local copy: the compiler cannot know that the stores do not change the field.
    let mut len = stage.len;
    for (quarter, foreign) in quarters.into_iter().zip(foreign.to_le_bytes()) {
        let kept = _mm_shuffle_epi8(quarter, order_of(foreign));
        // SAFETY: a stage that is not full has room for a step, which is four times eight bytes.
        unsafe { _mm_storel_epi64(stage.place(len).cast(), kept) };
        len += foreign.count_zeros() as usize;
    }
    stage.len = len;
}

#[target_feature(enable = "avx2")]
fn load(step: &[u8; STEP]) -> __m256i {
    // SAFETY: `step` has 32 bytes.
    unsafe { _mm256_loadu_si256(step.as_ptr().cast()) }
}

/// Returns the shuffle that moves those of eight bytes that are not foreign to the front.
#[target_feature(enable = "avx2")]
#[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
fn order_of(foreign: u8) -> __m128i {
    let order = &ORDERS[usize::from(foreign)];
    // SAFETY: `order` has eight bytes.
    unsafe { _mm_loadl_epi64(order.as_ptr().cast()) }
}

static ORDERS: [[u8; 8]; 256] = {
    let mut orders = [[0; 8]; 256];
    let mut foreign = 0;
    while foreign < 256 {
        let (mut kept, mut bit) = (0, 0);
        while bit < 8 {
            if foreign >> bit & 1 == 0 {
                #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
                {
                    orders[foreign][kept] = bit;
                }
                kept += 1;
            }
            bit += 1;
        }
        foreign += 1;
    }
    orders
};

/// Returns the values of 32 characters, and which of them are foreign.
#[target_feature(enable = "avx2")]
fn values_of(characters: __m256i, charset: Charset) -> (__m256i, __m256i) {
    match charset {
        Charset::Standard => standard_values_of(characters),
        Charset::Either => standard_values_of(standardize(characters)),
        Charset::Url => {
            let plus = _mm256_cmpeq_epi8(characters, _mm256_set1_epi8(b'+'.cast_signed()));
            let slash = _mm256_cmpeq_epi8(characters, _mm256_set1_epi8(b'/'.cast_signed()));
            let (values, foreign) = standard_values_of(standardize(characters));
            (values, _mm256_or_si256(foreign, _mm256_or_si256(plus, slash)))
        }
    }
}

/// Returns the values in the standard alphabet, and which characters are foreign.
///
/// A character is data if the bit sets of its low and its high half share no bit. Its high half, and whether it is `/`,
/// index `rolls`; adding that entry turns the character into its value.
#[target_feature(enable = "avx2")]
fn standard_values_of(characters: __m256i) -> (__m256i, __m256i) {
    let sets_of_low = twice(_mm_setr_epi8(
        0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x13, 0x1a, 0x1b, 0x1b, 0x1b,
        0x1a,
    ));
    let sets_of_high = twice(_mm_setr_epi8(
        0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10,
        0x10,
    ));
    let rolls = twice(_mm_setr_epi8(0, 16, 19, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0));
    let slash = _mm256_set1_epi8(0x2f);
    let high = _mm256_and_si256(_mm256_srli_epi32(characters, 4), slash);
    let low = _mm256_and_si256(characters, slash);
    let sets = _mm256_and_si256(
        _mm256_shuffle_epi8(sets_of_low, low),
        _mm256_shuffle_epi8(sets_of_high, high),
    );
    let foreign = _mm256_cmpgt_epi8(sets, _mm256_setzero_si256());
    let is_slash = _mm256_cmpeq_epi8(characters, slash);
    let roll = _mm256_shuffle_epi8(rolls, _mm256_add_epi8(is_slash, high));
    (_mm256_add_epi8(characters, roll), foreign)
}

/// Returns which characters are skipped if they are foreign.
#[target_feature(enable = "avx2")]
fn skipped_of(characters: __m256i, charset: Charset) -> __m256i {
    if charset == Charset::Either {
        let padding = _mm256_cmpeq_epi8(characters, _mm256_set1_epi8(b'='.cast_signed()));
        return _mm256_andnot_si256(padding, _mm256_set1_epi8(-1));
    }
    // By low half: the white space character with that low half, or a character with another low half.
    let spaces =
        twice(_mm_setr_epi8(0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x0a, 0, 0x0c, 0x0d, 0, 0));
    _mm256_cmpeq_epi8(_mm256_shuffle_epi8(spaces, characters), characters)
}

/// Replaces `-` and `_` by `+` and `/`.
#[target_feature(enable = "avx2")]
fn standardize(characters: __m256i) -> __m256i {
    let minus = _mm256_cmpeq_epi8(characters, _mm256_set1_epi8(b'-'.cast_signed()));
    let underscore = _mm256_cmpeq_epi8(characters, _mm256_set1_epi8(b'_'.cast_signed()));
    let plus = _mm256_blendv_epi8(characters, _mm256_set1_epi8(b'+'.cast_signed()), minus);
    _mm256_blendv_epi8(plus, _mm256_set1_epi8(b'/'.cast_signed()), underscore)
}

/// Packs 32 values of six bits into 24 bytes, followed by 8 unused bytes.
#[target_feature(enable = "avx2")]
fn pack(values: __m256i) -> __m256i {
    let pairs = _mm256_maddubs_epi16(values, _mm256_set1_epi32(0x0140_0140));
    let quanta = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_1000));
    let order = twice(_mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1));
    let halves = _mm256_shuffle_epi8(quanta, order);
    _mm256_permutevar8x32_epi32(halves, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7))
}

#[target_feature(enable = "avx2")]
fn twice(half: __m128i) -> __m256i {
    _mm256_broadcastsi128_si256(half)
}

/// Bytes that an encoding step reads: its second load starts at byte 12 and has 16 bytes.
const ENCODE_READ: usize = 28;

/// Encodes; see [`super::Base64Kernel::encode`].
///
/// # Safety
/// The conditions of [`super::Base64Kernel::encode`] hold, and the machine has AVX2.
#[target_feature(enable = "avx2")]
pub unsafe fn encode(src: *const u8, len: usize, dst: *mut u8, alphabet: Alphabet) {
    let (mut read, mut written) = (0, 0);
    while ENCODE_READ <= len - read {
        // SAFETY: 28 bytes are left; this reads the first 16.
        let lower = unsafe { _mm_loadu_si128(src.wrapping_add(read).cast()) };
        // SAFETY: 28 bytes are left; this reads the last 16.
        let upper = unsafe { _mm_loadu_si128(src.wrapping_add(read + 12).cast()) };
        let text = characters_of(unpack(_mm256_set_m128i(upper, lower)), alphabet);
        // SAFETY: 24 bytes become 32 characters, for which `dst` has room.
        unsafe { _mm256_storeu_si256(dst.wrapping_add(written).cast(), text) };
        read += STEP_BYTES;
        written += STEP;
    }
    // SAFETY: the rest of both ranges, which meets the same conditions.
    unsafe {
        scalar::encode(src.wrapping_add(read), len - read, dst.wrapping_add(written), alphabet);
    };
}

/// Unpacks twice 12 bytes into 32 values of six bits.
#[target_feature(enable = "avx2")]
fn unpack(bytes: __m256i) -> __m256i {
    let order = twice(_mm_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10));
    let spread = _mm256_shuffle_epi8(bytes, order);
    let high = _mm256_and_si256(spread, _mm256_set1_epi32(0x0fc0_fc00));
    let high = _mm256_mulhi_epu16(high, _mm256_set1_epi32(0x0400_0040));
    let low = _mm256_and_si256(spread, _mm256_set1_epi32(0x003f_03f0));
    let low = _mm256_mullo_epi16(low, _mm256_set1_epi32(0x0100_0010));
    _mm256_or_si256(high, low)
}

#[target_feature(enable = "avx2")]
fn characters_of(values: __m256i, alphabet: Alphabet) -> __m256i {
    let (of_62, of_63) = match alphabet {
        Alphabet::Standard => (b'+', b'/'),
        Alphabet::Url => (b'-', b'_'),
    };
    // Entries of `rolls`: 0 for a–z, 1–10 for digits, 11 and 12 for the values 62 and 63, 13 for A–Z.
    let rolls = twice(_mm_setr_epi8(
        71,
        -4,
        -4,
        -4,
        -4,
        -4,
        -4,
        -4,
        -4,
        -4,
        -4,
        of_62.cast_signed() - 62,
        of_63.cast_signed() - 63,
        65,
        0,
        0,
    ));
    let row = _mm256_subs_epu8(values, _mm256_set1_epi8(51));
    let upper_case = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), values);
    let row = _mm256_or_si256(row, _mm256_and_si256(upper_case, _mm256_set1_epi8(13)));
    _mm256_add_epi8(values, _mm256_shuffle_epi8(rolls, row))
}
