//! Moves 64 characters at a time with NEON, whose structure loads and stores take quanta apart and put them together. On
//! any thread; `mod.rs` calls it.

#[allow(clippy::wildcard_imports, reason = "intrinsics")]
use std::arch::aarch64::*;

use super::{KernelAdvance, scalar};
use crate::Alphabet;
use crate::alphabet::{Charset, FOREIGN};

const STEP: usize = 64;
const STEP_BYTES: usize = 48;

/// Decodes; see [`super::Base64Kernel::decode`].
///
/// # Safety
/// The conditions of [`super::Base64Kernel::decode`] hold, and the machine has NEON.
#[target_feature(enable = "neon")]
pub unsafe fn decode(src: *const u8, len: usize, dst: *mut u8, charset: Charset) -> KernelAdvance {
    let values = charset.values().as_ptr();
    // SAFETY: the table has 256 bytes.
    let lower = unsafe { vld1q_u8_x4(values) };
    // SAFETY: the table has 256 bytes.
    let upper = unsafe { vld1q_u8_x4(values.wrapping_add(64)) };
    let (mut read, mut written) = (0, 0);
    while STEP <= len - read {
        // SAFETY: 64 characters are left.
        let text = unsafe { vld4q_u8(src.wrapping_add(read)) };
        let a = values_of(text.0, lower, upper);
        let b = values_of(text.1, lower, upper);
        let c = values_of(text.2, lower, upper);
        let d = values_of(text.3, lower, upper);
        let any = vorrq_u8(vorrq_u8(a, b), vorrq_u8(c, d));
        if FOREIGN <= vmaxvq_u8(any) {
            break;
        }
        let first = vorrq_u8(vshlq_n_u8::<2>(a), vshrq_n_u8::<4>(b));
        let second = vorrq_u8(vshlq_n_u8::<4>(b), vshrq_n_u8::<2>(c));
        let third = vorrq_u8(vshlq_n_u8::<6>(c), d);
        // SAFETY: 48 bytes have room. In place, the overwritten characters have been loaded.
        unsafe { vst3q_u8(dst.wrapping_add(written), uint8x16x3_t(first, second, third)) };
        read += STEP;
        written += STEP_BYTES;
    }
    // SAFETY: the rest of both ranges, which meets the same conditions.
    let rest = unsafe {
        scalar::decode(src.wrapping_add(read), len - read, dst.wrapping_add(written), charset)
    };
    KernelAdvance { read: read + rest.read, written: written + rest.written }
}

/// Returns the values of 16 characters. Bytes from 128 on keep their high bit, which marks them as foreign.
#[target_feature(enable = "neon")]
fn values_of(characters: uint8x16_t, lower: uint8x16x4_t, upper: uint8x16x4_t) -> uint8x16_t {
    let of_lower = vqtbl4q_u8(lower, characters);
    let above = veorq_u8(characters, vdupq_n_u8(64));
    let of_upper = vqtbl4q_u8(upper, above);
    let high = vandq_u8(characters, vdupq_n_u8(FOREIGN));
    vorrq_u8(vorrq_u8(of_lower, of_upper), high)
}

/// Encodes; see [`super::Base64Kernel::encode`].
///
/// # Safety
/// The conditions of [`super::Base64Kernel::encode`] hold, and the machine has NEON.
#[target_feature(enable = "neon")]
pub unsafe fn encode(src: *const u8, len: usize, dst: *mut u8, alphabet: Alphabet) {
    // SAFETY: the table has 64 bytes.
    let characters = unsafe { vld1q_u8_x4(alphabet.characters().as_ptr()) };
    let six = vdupq_n_u8(0x3f);
    let (mut read, mut written) = (0, 0);
    while STEP_BYTES <= len - read {
        // SAFETY: 48 bytes are left.
        let bytes = unsafe { vld3q_u8(src.wrapping_add(read)) };
        let a = vshrq_n_u8::<2>(bytes.0);
        let b = vandq_u8(vorrq_u8(vshlq_n_u8::<4>(bytes.0), vshrq_n_u8::<4>(bytes.1)), six);
        let c = vandq_u8(vorrq_u8(vshlq_n_u8::<2>(bytes.1), vshrq_n_u8::<6>(bytes.2)), six);
        let d = vandq_u8(bytes.2, six);
        let text = uint8x16x4_t(
            vqtbl4q_u8(characters, a),
            vqtbl4q_u8(characters, b),
            vqtbl4q_u8(characters, c),
            vqtbl4q_u8(characters, d),
        );
        // SAFETY: 64 characters have room.
        unsafe { vst4q_u8(dst.wrapping_add(written), text) };
        read += STEP_BYTES;
        written += STEP;
    }
    // SAFETY: the rest of both ranges, which meets the same conditions.
    unsafe {
        scalar::encode(src.wrapping_add(read), len - read, dst.wrapping_add(written), alphabet)
    };
}
