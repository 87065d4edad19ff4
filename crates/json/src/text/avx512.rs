//! Writes 64 characters of Latin-1 or 32 units of UTF-16 at a time with AVX-512 VBMI2. Characters are laid out in lanes of
//! two or four bytes, unused bytes are zero, and `vpcompressb` keeps those that are not. On any thread; `mod.rs` calls it.
//!
//! It has loops of its own instead of those of `driver.rs`, since three things differ. It counts the bytes that were kept
//! instead of deriving them from lanes. Clean vectors need no count and take a separate path. Without escapes, zero
//! characters are rare to it, because compressing drops zeros.

#[allow(clippy::wildcard_imports, reason = "intrinsics")]
use std::arch::x86_64::*;

use super::scalar;

const STEP: usize = 64;
const UNITS: usize = 32;
/// Truth table of `a & b | c`.
const AND_OR: i32 = 0xea;

/// Output of a step. It counts only up to the first rare character.
struct CompressedStep {
    /// Characters that the scalar kernel must write.
    rare: __mmask64,
    /// Bytes kept of one or two vectors of lanes.
    kept: [__mmask64; 2],
    /// Bytes of a lane.
    lane: usize,
}

impl CompressedStep {
    #[target_feature(enable = "popcnt")]
    fn len(&self) -> usize {
        let [lower, upper] = self.kept;
        (lower.count_ones() + upper.count_ones()) as usize
    }

    /// Returns the bytes of the first `count` lanes.
    #[target_feature(enable = "popcnt")]
    fn len_of(&self, count: usize) -> usize {
        let [lower, upper] = self.kept;
        let end = self.lane * count;
        let lower = lower & below(end);
        let upper = upper & below(end.saturating_sub(STEP));
        (lower.count_ones() + upper.count_ones()) as usize
    }
}

/// Writes Latin-1; returns how many bytes.
///
/// # Safety
/// The conditions of [`super::Write`] hold, and the machine has the features below.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
pub unsafe fn latin1<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    let (mut read, mut written) = (0, 0);
    while read < len {
        let count = (len - read).min(STEP);
        let (from, to) = (src.wrapping_add(read), dst.wrapping_add(written));
        // SAFETY: `count` characters are left, and the mask prevents further reads.
        let characters = unsafe { _mm512_maskz_loadu_epi8(below(count), from.cast()) };
        let escapes = if ESCAPE { escapes_of(characters) & below(count) } else { 0 };
        let beyond = _mm512_movepi8_mask(characters);
        if escapes | beyond == 0 {
            // SAFETY: `count` characters have room, and the slack takes the rest.
            unsafe { _mm512_storeu_si512(to.cast(), characters) };
            read += count;
            written += count;
            continue;
        }
        // SAFETY: the characters have room.
        let mut pushed = unsafe { push_latin1(characters, escapes, beyond, to) };
        if !ESCAPE {
            pushed.rare = _mm512_testn_epi8_mask(characters, characters) & below(count);
        }
        // A branch, not arithmetic: the next load must not wait for the result of this one.
        if pushed.rare == 0 {
            read += count;
            written += pushed.len();
            continue;
        }
        let plain = pushed.rare.trailing_zeros() as usize;
        read += plain;
        written += pushed.len_of(plain);
        // SAFETY: `read` is below `len`, since the rare character is one of `count`.
        let character = unsafe { src.wrapping_add(read).read() };
        let to = dst.wrapping_add(written);
        // SAFETY: a character has room for six bytes, and the slack for two.
        written += unsafe { scalar::one::<ESCAPE>(u16::from(character), to) };
        read += 1;
    }
    written
}

/// Writes characters, each as one or two bytes. Zero characters are not written.
///
/// # Safety
/// `dst` has room for the other characters.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
unsafe fn push_latin1(
    characters: __m512i,
    escapes: __mmask64,
    beyond: __mmask64,
    dst: *mut u8,
) -> CompressedStep {
    let letters = letters_of(characters);
    let rare = _mm512_mask_testn_epi8_mask(escapes, letters, letters);
    let lead = _mm512_ternarylogic_epi64::<AND_OR>(
        _mm512_srli_epi16::<6>(characters),
        _mm512_set1_epi8(0x03),
        _mm512_set1_epi8(-0x40),
    );
    let first = _mm512_mask_mov_epi8(characters, beyond, lead);
    let first = _mm512_mask_mov_epi8(first, escapes, _mm512_set1_epi8(b'\\'.cast_signed()));
    let trail = _mm512_and_si512(characters, _mm512_set1_epi8(-0x41));
    let second = _mm512_maskz_mov_epi8(beyond, trail);
    let second = _mm512_mask_mov_epi8(second, escapes, letters);
    let [lower, upper] = in_turn(first, second);
    // SAFETY: the store of 64 bytes ends within the room of the characters and the slack.
    let lower = unsafe { push(lower, dst) };
    // SAFETY: it starts behind at most two bytes for each character before, and the slack takes 64.
    let upper = unsafe { push(upper, dst.wrapping_add(lower.count_ones() as usize)) };
    CompressedStep { rare, kept: [lower, upper], lane: 2 }
}

/// Writes UTF-16; returns how many bytes.
///
/// # Safety
/// The conditions of [`super::Write`] hold, and the machine has the features below.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
pub unsafe fn utf16<const ESCAPE: bool>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    let (mut read, mut written) = (0, 0);
    while read < len {
        let (from, to) = (src.wrapping_add(2 * read), dst.wrapping_add(written));
        // SAFETY: at least one unit is left.
        let count = unsafe { scalar::whole(from, len - read, UNITS) };
        let active = below(count) as __mmask32;
        // SAFETY: `count` units are left, and the mask prevents further reads.
        let units = unsafe { _mm512_maskz_loadu_epi16(active, from.cast()) };
        let kinds = UnitKinds::of::<ESCAPE>(units, active);
        if kinds.beyond | kinds.escapes == 0 {
            let characters = _mm512_cvtepi16_epi8(units);
            // SAFETY: `count` units have room, and the slack takes the rest.
            unsafe { _mm256_storeu_si256(to.cast(), characters) };
            read += count;
            written += count;
            continue;
        }
        if kinds.threes == !0 {
            // SAFETY: 32 units have room.
            unsafe { push_threes(units, to) };
            read += UNITS;
            written += 3 * UNITS;
            continue;
        }
        // SAFETY: the units have room.
        let mut pushed = unsafe { push_utf16(units, &kinds, to) };
        if !ESCAPE {
            pushed.rare |= u64::from(_mm512_testn_epi16_mask(units, units) & active);
        }
        // A branch, not arithmetic: the next load must not wait for the result of this one.
        if pushed.rare == 0 {
            read += count;
            written += pushed.len();
            continue;
        }
        let plain = pushed.rare.trailing_zeros() as usize;
        read += plain;
        written += pushed.len_of(plain);
        // SAFETY: `read` is below `len`, since the rare unit is one of `count`.
        let unit = unsafe { scalar::unit_at(src, read) };
        // SAFETY: a character has room for six bytes, and the slack for two.
        written += unsafe { scalar::one::<ESCAPE>(unit, dst.wrapping_add(written)) };
        read += 1;
    }
    written
}

/// Kinds of the units of a vector, as masks.
struct UnitKinds {
    escapes: __mmask32,
    /// Units beyond ASCII.
    beyond: __mmask32,
    surrogates: __mmask32,
    threes: __mmask32,
}

impl UnitKinds {
    #[target_feature(enable = "avx512f,avx512bw")]
    fn of<const ESCAPE: bool>(units: __m512i, active: __mmask32) -> Self {
        let mut escapes = 0;
        if ESCAPE {
            let space = _mm512_set1_epi16(i16::from(b' '));
            escapes = _mm512_mask_cmplt_epu16_mask(active, units, space)
                | _mm512_cmpeq_epi16_mask(units, _mm512_set1_epi16(i16::from(b'"')))
                | _mm512_cmpeq_epi16_mask(units, _mm512_set1_epi16(i16::from(b'\\')));
        }
        let beyond = _mm512_test_epi16_mask(units, _mm512_set1_epi16(-0x80));
        let upper = _mm512_and_si512(units, _mm512_set1_epi16(-0x800));
        let high = _mm512_set1_epi16(0xd800_u16.cast_signed());
        let surrogates = _mm512_cmpeq_epi16_mask(upper, high);
        let threes = _mm512_test_epi16_mask(upper, upper) & !surrogates;
        Self { escapes, beyond, surrogates, threes }
    }
}

/// Writes units of any kind. Zero units are not written.
///
/// # Safety
/// `dst` has room for the other units.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
unsafe fn push_utf16(units: __m512i, kinds: &UnitKinds, dst: *mut u8) -> CompressedStep {
    let mut rare = 0;
    let mut value = units;
    let mut mark = _mm512_set1_epi16(0x80c0_u16.cast_signed());
    if kinds.surrogates != 0 {
        let low = _mm512_set1_epi16(0xdc00_u16.cast_signed());
        let highs = _mm512_mask_cmplt_epu16_mask(kinds.surrogates, units, low);
        let lows = kinds.surrogates & !highs;
        rare = highs & !(lows >> 1) | lows & !(highs << 1);
        value = halves_of(units, highs, lows);
        mark = _mm512_mask_mov_epi16(mark, lows, _mm512_set1_epi16(0x8080_u16.cast_signed()));
        mark = _mm512_mask_mov_epi16(mark, highs, _mm512_set1_epi16(0x80f0_u16.cast_signed()));
    }
    // Bit offsets in each lane of 16 bits: 6 and 0.
    let shifts = _mm512_set1_epi64(0x3036_2026_1016_0006);
    let sixes = _mm512_multishift_epi64_epi8(shifts, value);
    let two = _mm512_ternarylogic_epi64::<AND_OR>(sixes, _mm512_set1_epi8(0x3f), mark);
    let mut front = _mm512_mask_mov_epi16(units, kinds.beyond, two);
    if kinds.escapes != 0 {
        let letters = _mm512_slli_epi16::<8>(letters_of(units));
        rare |= _mm512_mask_testn_epi16_mask(kinds.escapes, letters, letters);
        let escape = _mm512_or_si512(letters, _mm512_set1_epi16(i16::from(b'\\')));
        front = _mm512_mask_mov_epi16(front, kinds.escapes, escape);
    }
    let rare = u64::from(rare);
    if kinds.threes == 0 {
        // SAFETY: the store of 64 bytes ends within the room of the units and the slack.
        let kept = unsafe { push(front, dst) };
        return CompressedStep { rare, kept: [kept, 0], lane: 2 };
    }
    let lower = lanes_of(
        _mm512_castsi512_si256(units),
        _mm512_castsi512_si256(front),
        kinds.threes as __mmask16,
    );
    let upper = lanes_of(
        _mm512_extracti64x4_epi64::<1>(units),
        _mm512_extracti64x4_epi64::<1>(front),
        (kinds.threes >> 16) as __mmask16,
    );
    // SAFETY: the store of 64 bytes ends within the room of the units and the slack.
    let lower = unsafe { push(lower, dst) };
    // SAFETY: it starts behind at most three bytes for each unit before, and the slack takes 64.
    let upper = unsafe { push(upper, dst.wrapping_add(lower.count_ones() as usize)) };
    CompressedStep { rare, kept: [lower, upper], lane: 4 }
}

/// Turns both halves of surrogate pairs into numbers of twelve bits, which are written as two bytes each.
///
/// | half | bits of the code point |
/// |---|---|
/// | first | the upper nine of 21, after adding 0x10000 |
/// | second | the lower twelve, two of which come from the first half |
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
fn halves_of(units: __m512i, highs: __mmask32, lows: __mmask32) -> __m512i {
    let ten = _mm512_and_si512(units, _mm512_set1_epi16(0x3ff));
    let of_high = _mm512_srli_epi16::<2>(_mm512_add_epi16(ten, _mm512_set1_epi16(0x40)));
    // Each lane holds the unit before, shifted out of the lane of 32 bits that has it.
    let before = _mm512_alignr_epi32::<15>(units, units);
    let before = _mm512_shldi_epi32::<16>(units, before);
    let before = _mm512_and_si512(before, _mm512_set1_epi16(3));
    let of_low = _mm512_or_si512(ten, _mm512_slli_epi16::<10>(before));
    let value = _mm512_mask_mov_epi16(units, highs, of_high);
    _mm512_mask_mov_epi16(value, lows, of_low)
}

/// Lays 16 units out in lanes of four bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn lanes_of(units: __m256i, front: __m256i, threes: __mmask16) -> __m512i {
    let three = three_of(_mm512_cvtepu16_epi32(units));
    _mm512_mask_mov_epi32(_mm512_cvtepu16_epi32(front), threes, three)
}

/// Returns the three bytes of each code, in lanes of four.
#[target_feature(enable = "avx512f,avx512vbmi")]
fn three_of(codes: __m512i) -> __m512i {
    // Bit offsets in each lane of 32 bits: 12, 6 and 0.
    let shifts = _mm512_set1_epi64(0x0020_262c_0000_060c);
    let sixes = _mm512_multishift_epi64_epi8(shifts, codes);
    let six = _mm512_set1_epi32(0x003f_3f3f);
    _mm512_ternarylogic_epi64::<AND_OR>(sixes, six, _mm512_set1_epi32(0x0080_80e0))
}

/// Writes 32 units of three bytes.
///
/// # Safety
/// `dst` is writable for 112 bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn push_threes(units: __m512i, dst: *mut u8) {
    // SAFETY: the table has 64 bytes.
    let order = unsafe { _mm512_loadu_si512(THREES.as_ptr().cast()) };
    let lower = three_of(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(units)));
    let upper = three_of(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(units)));
    let lower = _mm512_permutexvar_epi8(order, lower);
    let upper = _mm512_permutexvar_epi8(order, upper);
    // SAFETY: the caller meets the conditions of this function.
    unsafe { _mm512_storeu_si512(dst.cast(), lower) };
    // SAFETY: the caller meets the conditions of this function.
    unsafe { _mm512_storeu_si512(dst.wrapping_add(48).cast(), upper) };
}

/// Permutation that takes the first three bytes of each lane of four.
static THREES: [u8; 64] = {
    let mut order = [0; 64];
    let mut byte = 0;
    while byte < 48 {
        #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            order[byte] = (byte / 3 * 4 + byte % 3) as u8;
        }
        byte += 1;
    }
    order
};

/// Writes the bytes that are not zero; returns which they are.
///
/// # Safety
/// `dst` is writable for 64 bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
unsafe fn push(lanes: __m512i, dst: *mut u8) -> __mmask64 {
    let kept = _mm512_test_epi8_mask(lanes, lanes);
    // Compresses to a register: with memory as its target the instruction takes about 100 cycles on Zen 4.
    let pushed = _mm512_maskz_compress_epi8(kept, lanes);
    // SAFETY: the caller meets the conditions of this function.
    unsafe { _mm512_storeu_si512(dst.cast(), pushed) };
    kept
}

#[target_feature(enable = "avx512f,avx512bw")]
fn escapes_of(characters: __m512i) -> __mmask64 {
    _mm512_cmplt_epu8_mask(characters, _mm512_set1_epi8(b' '.cast_signed()))
        | _mm512_cmpeq_epi8_mask(characters, _mm512_set1_epi8(b'"'.cast_signed()))
        | _mm512_cmpeq_epi8_mask(characters, _mm512_set1_epi8(b'\\'.cast_signed()))
}

/// Returns the letter of the escape of each ASCII character; zero if it has none.
#[target_feature(enable = "avx512f,avx512vbmi")]
fn letters_of(characters: __m512i) -> __m512i {
    // SAFETY: the table has 128 bytes.
    let lower = unsafe { _mm512_loadu_si512(LETTERS.as_ptr().cast()) };
    // SAFETY: the table has 128 bytes.
    let upper = unsafe { _mm512_loadu_si512(LETTERS.as_ptr().wrapping_add(64).cast()) };
    _mm512_permutex2var_epi8(lower, characters, upper)
}

static LETTERS: [u8; 128] = {
    let mut letters = [0; 128];
    #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
    {
        letters[b'"' as usize] = b'"';
        letters[b'\\' as usize] = b'\\';
        letters[0x08] = b'b';
        letters[b'\t' as usize] = b't';
        letters[b'\n' as usize] = b'n';
        letters[0x0c] = b'f';
        letters[b'\r' as usize] = b'r';
    }
    letters
};

/// Interleaves the bytes of two vectors, as lanes of two bytes.
#[target_feature(enable = "avx512f,avx512vbmi")]
fn in_turn(first: __m512i, second: __m512i) -> [__m512i; 2] {
    IN_TURN.each_ref().map(|order| {
        // SAFETY: the table has 64 bytes.
        let order = unsafe { _mm512_loadu_si512(order.as_ptr().cast()) };
        _mm512_permutex2var_epi8(first, order, second)
    })
}

static IN_TURN: [[u8; 64]; 2] = {
    let mut lanes = [[0; 64]; 2];
    let mut byte = 0;
    while byte < 128 {
        #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            lanes[byte / 64][byte % 64] = (byte / 2 + byte % 2 * 64) as u8;
        }
        byte += 1;
    }
    lanes
};

/// The lowest `len` of 64.
fn below(len: usize) -> __mmask64 {
    if STEP <= len { !0 } else { (1 << len) - 1 }
}
