//! Detects at run time which instruction sets the machine has, and how many cores. Nothing else in the repository asks
//! the CPU.
//!
//! Crates with kernels call it on whatever thread they run on. The standard library caches the answers, so a call costs
//! one atomic load for each feature.

use std::sync::OnceLock;
use std::thread::available_parallelism;

/// Returns how many cores are left beside one for a JS thread, at least one.
#[must_use]
pub fn spare_cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, |cores| cores.get().max(2) - 1))
}

/// An instruction set for which there are kernels. Later ones are faster.
///
/// | set | needs |
/// |---|---|
/// | `Scalar` | nothing |
/// | `Sse2` | any x86-64 |
/// | `Avx2` | AVX2, POPCNT |
/// | `Avx512` | AVX-512 BW, VL, VBMI and VBMI2, POPCNT |
/// | `Neon` | any arm64 |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstructionSet {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Sse2,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Absent if the compiler is too old for its intrinsics; see `crates/base64/build.rs`.
    #[cfg(all(target_arch = "x86_64", avx512))]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl InstructionSet {
    /// Every set that this build has kernels for, the slowest first.
    pub const ALL: &[Self] = &[
        Self::Scalar,
        #[cfg(target_arch = "x86_64")]
        Self::Sse2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(all(target_arch = "x86_64", avx512))]
        Self::Avx512,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
    ];

    /// Returns the sets that the machine has, the slowest first.
    #[must_use]
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        Self::ALL.iter().copied().filter(|set| set.is_available())
    }

    /// Returns whether the set can permute the bytes of a vector, which SSE2 cannot.
    #[must_use]
    pub const fn has_byte_shuffle(self) -> bool {
        match self {
            Self::Scalar => false,
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => false,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => true,
            #[cfg(all(target_arch = "x86_64", avx512))]
            Self::Avx512 => true,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
        }
    }

    /// Returns whether the machine has this set.
    #[must_use]
    #[inline]
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => has_avx2(),
            #[cfg(all(target_arch = "x86_64", avx512))]
            Self::Avx512 => has_avx512(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
}

#[cfg(all(target_arch = "x86_64", avx512))]
#[inline]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(test)]
mod tests {
    use super::InstructionSet;

    #[test]
    fn sets_are_listed_from_slow_to_fast_and_scalar_is_always_there() {
        assert!(InstructionSet::ALL.is_sorted());
        let available: Vec<_> = InstructionSet::available().collect();
        assert_eq!(available.first(), Some(&InstructionSet::Scalar));
        for set in InstructionSet::ALL {
            assert_eq!(available.contains(set), set.is_available(), "{set:?}");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_machine_with_avx_512_has_avx2_and_sse2() {
        let available: Vec<_> = InstructionSet::available().collect();
        assert!(available.contains(&InstructionSet::Sse2));
        let has_avx2 = std::fs::read_to_string("/proc/cpuinfo")
            .map_or(InstructionSet::Avx2.is_available(), |text| text.contains(" avx2 "));
        assert_eq!(available.contains(&InstructionSet::Avx2), has_avx2);
        assert!(available.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
