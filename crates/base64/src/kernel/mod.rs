//! Kernels move whole quanta between text and bytes. They allocate nothing and touch no memory outside what they are
//! given, not even to read: text may end where a page does.

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

/// How far a kernel came: always whole quanta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub read: usize,
    pub written: usize,
}

/// An instruction set that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(all(target_arch = "x86_64", avx512))]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Kernel {
    /// The fastest of [`Self::available`].
    #[must_use]
    pub fn best() -> Self {
        Self::available().next_back().unwrap_or(Self(Set::Scalar))
    }

    /// Every kernel that runs here, the scalar one first, the fastest last.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        [
            Some(Set::Scalar),
            #[cfg(target_arch = "aarch64")]
            std::arch::is_aarch64_feature_detected!("neon").then_some(Set::Neon),
            #[cfg(target_arch = "x86_64")]
            avx2::is_supported().then_some(Set::Avx2),
            #[cfg(all(target_arch = "x86_64", avx512))]
            avx512::is_supported().then_some(Set::Avx512),
        ]
        .into_iter()
        .flatten()
        .map(Self)
    }

    /// Decodes quanta up to the first that is not whole or holds a character that only the decoder may judge. It may
    /// pass over skipped characters, but need not.
    ///
    /// # Safety
    /// `src` is readable for `len` bytes, `dst` writable for `len / 4 * 3`. `dst` may lie in the same memory if it does
    /// not start after `src`.
    pub(crate) unsafe fn decode(
        self,
        src: *const u8,
        len: usize,
        dst: *mut u8,
        charset: Charset,
    ) -> Progress {
        match self.0 {
            // SAFETY: the caller's promise.
            Set::Scalar => unsafe { scalar::decode(src, len, dst, charset) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the caller's promise; `available` found the instructions.
            Set::Avx2 => unsafe { avx2::decode(src, len, dst, charset) },
            #[cfg(all(target_arch = "x86_64", avx512))]
            // SAFETY: the caller's promise; `available` found the instructions.
            Set::Avx512 => unsafe { avx512::decode(src, len, dst, charset) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the caller's promise; `available` found the instructions.
            Set::Neon => unsafe { neon::decode(src, len, dst, charset) },
        }
    }

    /// Encodes `len` bytes, a multiple of three.
    ///
    /// # Safety
    /// `src` is readable for `len` bytes, `dst` writable for `len / 3 * 4`, and the two do not overlap.
    pub(crate) unsafe fn encode(
        self,
        src: *const u8,
        len: usize,
        dst: *mut u8,
        alphabet: Alphabet,
    ) {
        match self.0 {
            // SAFETY: the caller's promise.
            Set::Scalar => unsafe { scalar::encode(src, len, dst, alphabet) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the caller's promise; `available` found the instructions.
            Set::Avx2 => unsafe { avx2::encode(src, len, dst, alphabet) },
            #[cfg(all(target_arch = "x86_64", avx512))]
            // SAFETY: the caller's promise; `available` found the instructions.
            Set::Avx512 => unsafe { avx512::encode(src, len, dst, alphabet) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the caller's promise; `available` found the instructions.
            Set::Neon => unsafe { neon::encode(src, len, dst, alphabet) },
        }
    }
}

/// Where to stand so that the last `count` data characters before `read` are still to be read: kernels that skip may
/// have passed the beginning of a quantum whose end they did not find.
///
/// # Safety
/// `src` is readable for `read` bytes.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for kernels that skip"))]
#[allow(clippy::indexing_slicing, reason = "a byte always indexes a table of 256")]
unsafe fn rewind(src: *const u8, mut read: usize, mut count: usize, charset: Charset) -> usize {
    while 0 < count && 0 < read {
        read -= 1;
        // SAFETY: `read` was greater, and readable up to there.
        let character = unsafe { src.wrapping_add(read).read() };
        if charset.values()[usize::from(character)] < FOREIGN {
            count -= 1;
        }
    }
    read
}
