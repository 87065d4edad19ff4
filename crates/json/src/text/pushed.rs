//! The result of a step of the kernels that look shuffles up, AVX2 and NEON. On any thread; `driver.rs` reads it.

/// Lanes that a step wrote, as bits. Output counts only up to the first rare lane.
pub struct StepMasks {
    /// Lanes that the scalar kernel must write.
    pub rare: u32,
    /// Lanes of more than one byte.
    pub several: u32,
    /// Lanes of three bytes.
    pub threes: u32,
}

impl StepMasks {
    /// Returns the bytes of the first `count` lanes.
    #[inline]
    pub fn len(&self, count: usize) -> usize {
        let (several, threes) = (self.several & below(count), self.threes & below(count));
        count + (several.count_ones() + threes.count_ones()) as usize
    }
}

/// Returns a mask of the lowest `len` of 32 bits.
#[inline]
pub fn below(len: usize) -> u32 {
    ((1_u64 << len) - 1) as u32
}
