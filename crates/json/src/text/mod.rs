//! The characters of JavaScript's strings as the inside of a JSON string in UTF-8: exactly what `JSON.stringify` and a
//! `TextEncoder` make of them.
//!
//! A string is Latin-1 or UTF-16, as engines keep it. Of the characters, `"`, `\` and those below a space are escaped,
//! and so are surrogates without a partner, which UTF-8 cannot say; all others stay what they are.
//!
//! Kernels allocate nothing and touch no memory outside what they are given, not even to read: text may end where a page
//! does. All but the scalar ones work alike: a unit is one, two or three bytes (each half of a surrogate pair is two of
//! the four, an escape two), a vector holds them in lanes of equal width, and a shuffle pushes the bytes that count
//! together. Only what is rare leaves the vector: `\u001f`, and surrogates without a partner.

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
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod part;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod pushed;
mod scalar;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod shuffle;
#[cfg(target_arch = "x86_64")]
mod sse2;

// What every machine of the architecture has.
#[cfg(target_arch = "aarch64")]
use neon as native;
#[cfg(target_arch = "x86_64")]
use sse2 as native;

/// How far a run came, in units of UTF-16 and in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    read: usize,
    written: usize,
}

/// The longest a character becomes: `\u001f`.
const LONGEST: usize = 6;
/// What a kernel may overwrite behind the bytes it tells: a whole vector stored where one byte counts.
const SLACK: usize = 64;
/// Latin-1 below this many characters is looked at without a call, by what every machine of the architecture has.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const SHORT: usize = 64;

/// Writes text for the inside of a JSON string and tells how many bytes.
///
/// # Safety
/// `src` is readable for `len` characters of one byte or units of two, `dst` writable for `room_for(len)`, the two do not
/// overlap, and the machine has the instructions.
type Write = unsafe fn(src: *const u8, len: usize, dst: *mut u8) -> usize;

/// An instruction set that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Sse2,
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
            Some(Set::Sse2),
            #[cfg(target_arch = "x86_64")]
            avx2::is_supported().then_some(Set::Avx2),
            #[cfg(all(target_arch = "x86_64", avx512))]
            avx512::is_supported().then_some(Set::Avx512),
        ]
        .into_iter()
        .flatten()
        .map(Self)
    }

    /// The memory that `characters` need: the most bytes they become, and some more that may be overwritten.
    #[must_use]
    pub const fn room_for(characters: usize) -> usize {
        characters.saturating_mul(LONGEST).saturating_add(SLACK)
    }

    /// Writes Latin-1 for the inside of a JSON string and tells how many bytes; `None`, and nothing is written, if `out`
    /// is shorter than [`Self::room_for`] so many characters.
    #[inline]
    pub fn escape_latin1(self, text: &[u8], out: &mut [u8]) -> Option<usize> {
        self.latin1::<true>(text, out)
    }

    /// As [`Self::escape_latin1`], for UTF-16 in little-endian units at any address. An odd last byte is left out.
    #[inline]
    pub fn escape_utf16(self, text: &[u8], out: &mut [u8]) -> Option<usize> {
        self.utf16::<true>(text, out)
    }

    /// Latin-1 as UTF-8, nothing escaped: text that is JSON already. Otherwise as [`Self::escape_latin1`].
    #[inline]
    pub fn transcode_latin1(self, text: &[u8], out: &mut [u8]) -> Option<usize> {
        self.latin1::<false>(text, out)
    }

    /// UTF-16 as UTF-8, nothing escaped, surrogates without a partner as U+FFFD. Otherwise as [`Self::escape_utf16`].
    #[inline]
    pub fn transcode_utf16(self, text: &[u8], out: &mut [u8]) -> Option<usize> {
        self.utf16::<false>(text, out)
    }

    #[inline]
    fn latin1<const ESCAPE: bool>(self, text: &[u8], out: &mut [u8]) -> Option<usize> {
        let (src, len, dst) = (text.as_ptr(), text.len(), out.as_mut_ptr());
        if out.len() < Self::room_for(len) {
            return None;
        }
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        if len < SHORT && self.0 != Set::Scalar {
            // SAFETY: readable, and with room for `len` characters; where another kernel than the scalar one is available,
            // so is what `native` needs.
            let clean = unsafe { native::copy_clean::<ESCAPE>(src, len, dst) };
            if clean == len {
                return Some(len);
            }
            let (src, dst) = (src.wrapping_add(clean), dst.wrapping_add(clean));
            // SAFETY: what is left of both.
            return Some(clean + unsafe { self.write::<false, ESCAPE>(src, len - clean, dst) });
        }
        // SAFETY: readable, and with room for `len` characters.
        Some(unsafe { self.write::<false, ESCAPE>(src, len, dst) })
    }

    #[inline]
    fn utf16<const ESCAPE: bool>(self, text: &[u8], out: &mut [u8]) -> Option<usize> {
        let (src, len, dst) = (text.as_ptr(), text.len() / 2, out.as_mut_ptr());
        if out.len() < Self::room_for(len) {
            return None;
        }
        // SAFETY: `len` units are readable and have room.
        Some(unsafe { self.write::<true, ESCAPE>(src, len, dst) })
    }

    /// # Safety
    /// As [`Write`] says.
    unsafe fn write<const WIDE: bool, const ESCAPE: bool>(
        self,
        src: *const u8,
        len: usize,
        dst: *mut u8,
    ) -> usize {
        let [latin1, utf16]: [Write; 2] = match self.0 {
            Set::Scalar => [scalar::latin1::<ESCAPE>, scalar::utf16::<ESCAPE>],
            #[cfg(target_arch = "x86_64")]
            Set::Sse2 => [sse2::latin1::<ESCAPE>, sse2::utf16::<ESCAPE>],
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => [avx2::latin1::<ESCAPE>, avx2::utf16::<ESCAPE>],
            #[cfg(all(target_arch = "x86_64", avx512))]
            Set::Avx512 => [avx512::latin1::<ESCAPE>, avx512::utf16::<ESCAPE>],
            #[cfg(target_arch = "aarch64")]
            Set::Neon => [neon::latin1::<ESCAPE>, neon::utf16::<ESCAPE>],
        };
        let write = if WIDE { utf16 } else { latin1 };
        // SAFETY: the caller's promise; `available` found the instructions.
        unsafe { write(src, len, dst) }
    }
}
