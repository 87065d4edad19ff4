//! Moves 64 characters at a time with AVX-512 VBMI, after Muła and Lemire, "Base64 encoding and decoding at almost the
//! speed of a memory copy" (2020): one permutation of two registers looks 64 characters up in a table of 128. Loads and
//! stores at the ends are masked, so nothing outside the given memory is touched. On any thread; `mod.rs` calls it.

#[allow(clippy::wildcard_imports, reason = "intrinsics")]
use std::arch::x86_64::*;

use super::stage::ValueStage;
use super::{KernelAdvance, rewind};
use crate::Alphabet;
use crate::alphabet::Charset;

const STEP: usize = 64;
const STEP_BYTES: usize = 48;
/// Steps between two checks for foreign characters.
const UNROLL: usize = 4;
const LOW_48: __mmask64 = 0x0000_ffff_ffff_ffff;
/// Truth table of `a | b | c`.
const OR: i32 = 0xfe;

/// Decodes; see [`super::Base64Kernel::decode`].
///
/// # Safety
/// The conditions of [`super::Base64Kernel::decode`] hold, and the machine has the features below.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
pub unsafe fn decode(src: *const u8, len: usize, dst: *mut u8, charset: Charset) -> KernelAdvance {
    let lookup = Lookup::new(charset);
    // SAFETY: the caller meets the conditions of this function.
    let clean = unsafe { decode_clean(src, len, dst, &lookup) };
    if clean.read == len {
        return clean;
    }
    let (src, dst) = (src.wrapping_add(clean.read), dst.wrapping_add(clean.written));
    // SAFETY: the rest of both ranges, which meets the same conditions.
    let rest = unsafe { decode_skipping(src, len - clean.read, dst, &lookup, charset) };
    KernelAdvance { read: clean.read + rest.read, written: clean.written + rest.written }
}

/// Decodes four steps at a time while all characters are data.
///
/// # Safety
/// The conditions of [`decode`] hold.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn decode_clean(src: *const u8, len: usize, dst: *mut u8, lookup: &Lookup) -> KernelAdvance {
    let (mut read, mut written) = (0, 0);
    while UNROLL * STEP <= len - read {
        // SAFETY: four steps of characters are left.
        let [a, b, c, d] = unsafe { load_four(src.wrapping_add(read)) };
        let (va, vb, vc, vd) =
            (lookup.values_of(a), lookup.values_of(b), lookup.values_of(c), lookup.values_of(d));
        let high_ab = _mm512_ternarylogic_epi64::<OR>(a, b, va);
        let high_cd = _mm512_ternarylogic_epi64::<OR>(c, d, vc);
        let high = _mm512_ternarylogic_epi64::<OR>(high_ab, high_cd, _mm512_or_si512(vb, vd));
        if _mm512_movepi8_mask(high) != 0 {
            break;
        }
        let bytes = [lookup.pack(va), lookup.pack(vb), lookup.pack(vc), lookup.pack(vd)];
        // SAFETY: four steps of bytes have room. In place, the overwritten characters have been loaded.
        unsafe { store_four(dst.wrapping_add(written), bytes) };
        read += UNROLL * STEP;
        written += UNROLL * STEP_BYTES;
    }
    KernelAdvance { read, written }
}

/// Decodes and skips, one step at a time. Pushes the values of data characters together on a stage, and empties the stage
/// when it is full.
///
/// # Safety
/// The conditions of [`decode`] hold.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
unsafe fn decode_skipping(
    src: *const u8,
    len: usize,
    dst: *mut u8,
    lookup: &Lookup,
    charset: Charset,
) -> KernelAdvance {
    let mut stage = Avx512Stage::new();
    let (mut read, mut written, mut stopped) = (0, 0, false);
    while read < len && !stopped {
        while read < len && !stopped && !stage.is_full() {
            let count = (len - read).min(STEP);
            // SAFETY: `count` characters are left, and the mask prevents further reads.
            let characters =
                unsafe { _mm512_maskz_loadu_epi8(mask(count), src.wrapping_add(read).cast()) };
            let (values, data, stops) = lookup.classify(characters);
            // A branch, not arithmetic: the next load must not wait for the result of this one.
            if stops == 0 && count == STEP {
                push(&mut stage, values, data);
                read += STEP;
                continue;
            }
            let end = (stops | !mask(count)).trailing_zeros() as usize;
            push(&mut stage, values, data & mask(end));
            read += end;
            stopped = end < count;
        }
        let whole = stage.len / STEP;
        for step in 0..whole {
            let bytes = lookup.pack(load(stage.step(step)));
            // SAFETY: 64 data characters have room for 48 bytes. In place, they and all before them have been loaded.
            unsafe { _mm512_mask_storeu_epi8(dst.wrapping_add(written).cast(), LOW_48, bytes) };
            written += STEP_BYTES;
        }
        stage.keep_from(whole);
    }
    let whole = stage.len / 4 * 3;
    let bytes = lookup.pack(load(stage.step(0)));
    // SAFETY: whole quanta have room, and the mask prevents further writes.
    unsafe { _mm512_mask_storeu_epi8(dst.wrapping_add(written).cast(), mask(whole), bytes) };
    // SAFETY: `src` is readable up to `read`.
    let read = unsafe { rewind(src, read, stage.len % 4, charset) };
    KernelAdvance { read, written: written + whole }
}

/// Steps of a stage. A load stalls if it meets several recent stores; with 16 steps the stores are old.
const STAGED_STEPS: usize = 16;

type Avx512Stage = ValueStage<STEP, { STAGED_STEPS + 1 }>;

/// Adds the values that `data` marks to a stage that is not full.
#[target_feature(enable = "avx512f,avx512vbmi2")]
fn push(stage: &mut Avx512Stage, values: __m512i, data: __mmask64) {
    debug_assert!(!stage.is_full());
    let kept = _mm512_maskz_compress_epi8(data, values);
    // SAFETY: a stage that is not full has room for a step.
    unsafe { _mm512_storeu_si512(stage.place(stage.len).cast(), kept) };
    stage.len += data.count_ones() as usize;
}

#[target_feature(enable = "avx512f")]
fn load(step: &[u8; STEP]) -> __m512i {
    // SAFETY: `step` has 64 bytes.
    unsafe { _mm512_loadu_si512(step.as_ptr().cast()) }
}

/// Returns a mask of the lowest `len` of 64 bits.
fn mask(len: usize) -> __mmask64 {
    if STEP <= len { !0 } else { (1 << len) - 1 }
}

/// Loads four steps.
///
/// # Safety
/// `src` is readable for 4 × 64 bytes.
#[target_feature(enable = "avx512f")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "four of the same")]
unsafe fn load_four(src: *const u8) -> [__m512i; UNROLL] {
    // SAFETY: the caller meets the conditions of this function.
    unsafe {
        [
            _mm512_loadu_si512(src.cast()),
            _mm512_loadu_si512(src.wrapping_add(STEP).cast()),
            _mm512_loadu_si512(src.wrapping_add(2 * STEP).cast()),
            _mm512_loadu_si512(src.wrapping_add(3 * STEP).cast()),
        ]
    }
}

/// Stores the bytes of four steps.
///
/// # Safety
/// `dst` is writable for 4 × 48 bytes.
#[target_feature(enable = "avx512f,avx512bw")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "four of the same")]
unsafe fn store_four(dst: *mut u8, [a, b, c, d]: [__m512i; UNROLL]) {
    // SAFETY: the caller's promise; the mask writes 48 bytes.
    unsafe {
        _mm512_mask_storeu_epi8(dst.cast(), LOW_48, a);
        _mm512_mask_storeu_epi8(dst.wrapping_add(STEP_BYTES).cast(), LOW_48, b);
        _mm512_mask_storeu_epi8(dst.wrapping_add(2 * STEP_BYTES).cast(), LOW_48, c);
        _mm512_mask_storeu_epi8(dst.wrapping_add(3 * STEP_BYTES).cast(), LOW_48, d);
    }
}

/// Tables of a charset, in registers.
struct Lookup {
    lower: __m512i,
    upper: __m512i,
    beyond_ascii: __m512i,
    order: __m512i,
}

impl Lookup {
    #[target_feature(enable = "avx512f")]
    fn new(charset: Charset) -> Self {
        let values = charset.values().as_ptr();
        Self {
            // SAFETY: the table has 256 bytes.
            lower: unsafe { _mm512_loadu_si512(values.cast()) },
            // SAFETY: the table has 256 bytes.
            upper: unsafe { _mm512_loadu_si512(values.wrapping_add(64).cast()) },
            beyond_ascii: _mm512_set1_epi8(charset.beyond_ascii().cast_signed()),
            // SAFETY: the table has 64 bytes.
            order: unsafe { _mm512_loadu_si512(ORDER.as_ptr().cast()) },
        }
    }

    /// Returns the values of 64 characters. Bytes from 128 on get the entry of the byte 128 below: check their high bit too.
    #[target_feature(enable = "avx512f,avx512vbmi")]
    fn values_of(&self, characters: __m512i) -> __m512i {
        _mm512_permutex2var_epi8(self.lower, characters, self.upper)
    }

    /// Returns the values of 64 characters, which of them are data, and which only the decoder may judge.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn classify(&self, characters: __m512i) -> (__m512i, __mmask64, __mmask64) {
        let beyond = _mm512_movepi8_mask(characters);
        let values = _mm512_mask_mov_epi8(self.values_of(characters), beyond, self.beyond_ascii);
        let foreign = _mm512_movepi8_mask(values);
        let skipped = _mm512_movepi8_mask(_mm512_add_epi8(values, values));
        (values, !foreign, foreign & !skipped)
    }

    /// Packs 64 values of six bits into 48 bytes.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn pack(&self, values: __m512i) -> __m512i {
        let pairs = _mm512_maddubs_epi16(values, _mm512_set1_epi32(0x0140_0140));
        let quanta = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x0001_1000));
        _mm512_permutexvar_epi8(self.order, quanta)
    }
}

/// Permutation that takes the three bytes of each quantum, highest first.
static ORDER: [u8; 64] = {
    let mut order = [0; 64];
    let mut quantum = 0;
    while quantum < 16 {
        let mut byte = 0;
        while byte < 3 {
            #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
            {
                order[(3 * quantum + byte) as usize] = 4 * quantum + 2 - byte;
            }
            byte += 1;
        }
        quantum += 1;
    }
    order
};

/// Encodes; see [`super::Base64Kernel::encode`].
///
/// # Safety
/// The conditions of [`super::Base64Kernel::encode`] hold, and the machine has the features below.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub unsafe fn encode(src: *const u8, len: usize, dst: *mut u8, alphabet: Alphabet) {
    // SAFETY: the table has 64 bytes.
    let characters = unsafe { _mm512_loadu_si512(alphabet.characters().as_ptr().cast()) };
    // SAFETY: the table has 64 bytes.
    let spread = unsafe { _mm512_loadu_si512(SPREAD.as_ptr().cast()) };
    // Bit offsets of the four values in each quantum, whose bytes are spread as 1 0 2 1.
    let shifts = _mm512_set1_epi64(0x3036_242a_1016_040a);
    let (mut read, mut written) = (0, 0);
    while read < len {
        let bytes = (len - read).min(STEP_BYTES);
        // SAFETY: `bytes` are left, and the mask prevents further reads.
        let input = unsafe { _mm512_maskz_loadu_epi8(mask(bytes), src.wrapping_add(read).cast()) };
        let values = _mm512_multishift_epi64_epi8(shifts, _mm512_permutexvar_epi8(spread, input));
        let text = _mm512_permutexvar_epi8(values, characters);
        let len = bytes / 3 * 4;
        // SAFETY: the text of `bytes` has room, and the mask prevents further writes.
        unsafe { _mm512_mask_storeu_epi8(dst.wrapping_add(written).cast(), mask(len), text) };
        read += bytes;
        written += len;
    }
}

/// Permutation that spreads the three bytes of each quantum as 1 0 2 1.
static SPREAD: [u8; 64] = {
    let mut spread = [0; 64];
    let mut quantum = 0;
    while quantum < 16 {
        let first = 3 * quantum as u8;
        #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            spread[4 * quantum] = first + 1;
            spread[4 * quantum + 1] = first;
            spread[4 * quantum + 2] = first + 2;
            spread[4 * quantum + 3] = first + 1;
        }
        quantum += 1;
    }
    spread
};
