//! Kernels, which move whole quanta between text and bytes, one for each instruction set.
//!
//! `decode.rs` and `encode.rs` call them, on any thread. Kernels allocate nothing and neither read nor write outside the
//! given memory: text may end where a page does.

use offloop_cpu::InstructionSet;

use crate::Alphabet;
use crate::alphabet::{Charset, FOREIGN};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(all(target_arch = "x86_64", avx512))]
#[allow(
    clippy::incompatible_msrv,
    reason = "build.rs leaves this out where the compiler is too old for it"
)]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod stage;

/// Characters read and bytes written by a kernel: always whole quanta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelAdvance {
    pub read: usize,
    pub written: usize,
}

/// The kernel of an instruction set that the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base64Kernel(InstructionSet);

impl Base64Kernel {
    /// Returns the fastest kernel that runs on this machine.
    #[must_use]
    pub fn best() -> Self {
        Self::available().next_back().unwrap_or(Self(InstructionSet::Scalar))
    }

    /// Returns every kernel that runs on this machine, the scalar one first, the fastest last.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        let has_kernel =
            |set: &InstructionSet| *set == InstructionSet::Scalar || set.has_byte_shuffle();
        InstructionSet::available().filter(has_kernel).map(Self)
    }

    /// Decodes quanta up to the first that is not whole or has a character that only the decoder may judge. A kernel may
    /// pass over skipped characters, but need not.
    ///
    /// # Safety
    /// - `src` is readable for `len` bytes, and `dst` is writable for `len / 4 * 3` bytes.
    /// - If the two overlap, `dst` does not start after `src`.
    pub(crate) unsafe fn decode(
        self,
        src: *const u8,
        len: usize,
        dst: *mut u8,
        charset: Charset,
    ) -> KernelAdvance {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the caller meets the conditions of this function, and the machine has the instructions.
            InstructionSet::Avx2 => unsafe { avx2::decode(src, len, dst, charset) },
            #[cfg(all(target_arch = "x86_64", avx512))]
            // SAFETY: the caller meets the conditions of this function, and the machine has the instructions.
            InstructionSet::Avx512 => unsafe { avx512::decode(src, len, dst, charset) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the caller meets the conditions of this function, and the machine has the instructions.
            InstructionSet::Neon => unsafe { neon::decode(src, len, dst, charset) },
            // SAFETY: the caller meets the conditions of this function.
            _ => unsafe { scalar::decode(src, len, dst, charset) },
        }
    }

    /// Encodes `len` bytes, a multiple of three.
    ///
    /// # Safety
    /// - `src` is readable for `len` bytes, and `dst` is writable for `len / 3 * 4` bytes.
    /// - The two do not overlap.
    pub(crate) unsafe fn encode(
        self,
        src: *const u8,
        len: usize,
        dst: *mut u8,
        alphabet: Alphabet,
    ) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the caller meets the conditions of this function, and the machine has the instructions.
            InstructionSet::Avx2 => unsafe { avx2::encode(src, len, dst, alphabet) },
            #[cfg(all(target_arch = "x86_64", avx512))]
            // SAFETY: the caller meets the conditions of this function, and the machine has the instructions.
            InstructionSet::Avx512 => unsafe { avx512::encode(src, len, dst, alphabet) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the caller meets the conditions of this function, and the machine has the instructions.
            InstructionSet::Neon => unsafe { neon::encode(src, len, dst, alphabet) },
            // SAFETY: the caller meets the conditions of this function.
            _ => unsafe { scalar::encode(src, len, dst, alphabet) },
        }
    }
}

/// Returns the offset from which the last `count` data characters before `read` are read again. A kernel that skips may
/// have passed the start of a quantum whose end it did not find.
///
/// # Safety
/// `src` is readable for `read` bytes.
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only kernels that skip need it")
)]
#[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
unsafe fn rewind(src: *const u8, mut read: usize, mut count: usize, charset: Charset) -> usize {
    while 0 < count && 0 < read {
        read -= 1;
        // SAFETY: `read` is below its value at the call, up to which `src` is readable.
        let character = unsafe { src.wrapping_add(read).read() };
        if charset.values()[usize::from(character)] < FOREIGN {
            count -= 1;
        }
    }
    read
}
