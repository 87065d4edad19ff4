//! Writes the characters of a JavaScript string as the inside of a JSON string in UTF-8, exactly as `JSON.stringify` and a
//! `TextEncoder` do.
//!
//! A string is Latin-1 or UTF-16, as engines store it. `"`, `\`, control characters and surrogates without a partner are
//! escaped; all other characters stay as they are.
//!
//! Kernels allocate nothing and neither read nor write outside the given memory: text may end where a page does. The
//! printer of this crate calls them, on the JS thread for small values and otherwise in tasks.
//!
//! | file | instruction set | how it writes characters of several bytes |
//! |---|---|---|
//! | `scalar.rs` | none | one at a time; the other kernels leave rare characters to it |
//! | `sse2.rs` | SSE2 | as the scalar kernel; only runs of ASCII by vector |
//! | `avx2.rs`, `neon.rs` | AVX2, NEON | in lanes, which shuffles from a table push together; loops in `driver.rs` |
//! | `avx512.rs` | AVX-512 VBMI2 | in lanes, which `vpcompressb` pushes together |
//!
//! A lane has one, two or three bytes that count. An escape has two, and each half of a surrogate pair has two of the four.
//! Only `\u001f` and surrogates without a partner are too rare for lanes.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(all(target_arch = "x86_64", avx512))]
#[allow(
    clippy::incompatible_msrv,
    reason = "build.rs leaves this out where the compiler is too old for it"
)]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod driver;
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

use offloop_cpu::InstructionSet;

// The kernel that runs on every machine of the architecture.
#[cfg(target_arch = "aarch64")]
use neon as native;
#[cfg(target_arch = "x86_64")]
use sse2 as native;

/// Units read and bytes written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextAdvance {
    read: usize,
    written: usize,
}

/// Most bytes that a character becomes: `\u001f`.
const LONGEST: usize = 6;
/// Bytes that a kernel may overwrite behind its output: it stores a whole vector even if only one byte counts.
const SLACK: usize = 64;
/// Latin-1 of fewer characters is first tried without a call, by the kernel of every machine of the architecture.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const SHORT: usize = 64;

/// Writes text for the inside of a JSON string and returns how many bytes.
///
/// # Safety
/// - `src` is readable for `len` characters of one byte, or `len` units of two bytes.
/// - `dst` is writable for `room_for(len)` bytes.
/// - The two do not overlap.
/// - The machine has the instructions of the kernel.
type Write = unsafe fn(src: *const u8, len: usize, dst: *mut u8) -> usize;

/// The kernel of an instruction set that the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(InstructionSet);

impl Kernel {
    /// Returns the fastest kernel that runs on this machine.
    #[must_use]
    pub fn best() -> Self {
        Self::available().next_back().unwrap_or(Self(InstructionSet::Scalar))
    }

    /// Returns every kernel that runs on this machine, the scalar one first, the fastest last.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        InstructionSet::available().map(Self)
    }

    /// Returns the memory that `characters` need: the most bytes that they become, and the slack.
    #[must_use]
    pub const fn room_for(characters: usize) -> usize {
        characters.saturating_mul(LONGEST).saturating_add(SLACK)
    }

    /// Writes Latin-1 for the inside of a JSON string and returns how many bytes. Returns `None`, and writes nothing, if
    /// `out` is shorter than [`Self::room_for`] requires.
    #[inline]
    pub fn escape_latin1(self, text: &[u8], out: &mut [u8]) -> Option<usize> {
        self.latin1::<true>(text, out)
    }

    /// Writes UTF-16 for the inside of a JSON string, as [`Self::escape_latin1`] does. Units are little-endian and need no
    /// alignment. An odd last byte is ignored.
    #[inline]
    pub fn escape_utf16(self, text: &[u8], out: &mut [u8]) -> Option<usize> {
        self.utf16::<true>(text, out)
    }

    /// Writes Latin-1 as UTF-8 without escapes, for text that is JSON already. Otherwise like [`Self::escape_latin1`].
    #[inline]
    pub fn transcode_latin1(self, text: &[u8], out: &mut [u8]) -> Option<usize> {
        self.latin1::<false>(text, out)
    }

    /// Writes UTF-16 as UTF-8 without escapes, for text that is JSON already. Surrogates without a partner become U+FFFD.
    /// Otherwise like [`Self::escape_utf16`].
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
        if len < SHORT && self.0 != InstructionSet::Scalar {
            // SAFETY: `len` characters are readable and have room. Every machine of the architecture has the instructions
            // of `native`.
            let clean = unsafe { native::copy_clean::<ESCAPE>(src, len, dst) };
            if clean == len {
                return Some(len);
            }
            let (src, dst) = (src.wrapping_add(clean), dst.wrapping_add(clean));
            // SAFETY: the rest of both ranges, which meets the same conditions.
            return Some(clean + unsafe { self.write::<false, ESCAPE>(src, len - clean, dst) });
        }
        // SAFETY: `len` characters are readable and have room.
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

    /// Calls the kernel.
    ///
    /// # Safety
    /// The conditions of [`Write`] hold.
    unsafe fn write<const WIDE: bool, const ESCAPE: bool>(
        self,
        src: *const u8,
        len: usize,
        dst: *mut u8,
    ) -> usize {
        let [latin1, utf16]: [Write; 2] = match self.0 {
            InstructionSet::Scalar => [scalar::latin1::<ESCAPE>, scalar::utf16::<ESCAPE>],
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Sse2 => [sse2::latin1::<ESCAPE>, sse2::utf16::<ESCAPE>],
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => [avx2::latin1::<ESCAPE>, avx2::utf16::<ESCAPE>],
            #[cfg(all(target_arch = "x86_64", avx512))]
            InstructionSet::Avx512 => [avx512::latin1::<ESCAPE>, avx512::utf16::<ESCAPE>],
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => [neon::latin1::<ESCAPE>, neon::utf16::<ESCAPE>],
        };
        let write = if WIDE { utf16 } else { latin1 };
        // SAFETY: the caller meets the conditions of this function, and the machine has the instructions.
        unsafe { write(src, len, dst) }
    }
}
