//! What the kernels that look shuffles up, AVX2 and NEON, tell of a vector.

/// What was made of a vector: all of it is written, but it only counts up to the first that is rare.
pub struct Pushed {
    pub rare: u32,
    /// Those that are more than one byte, and those that are three.
    pub several: u32,
    pub threes: u32,
}

impl Pushed {
    /// The bytes of the first `count`.
    #[inline]
    pub fn len(&self, count: usize) -> usize {
        let (several, threes) = (self.several & below(count), self.threes & below(count));
        count + (several.count_ones() + threes.count_ones()) as usize
    }
}

/// The lowest `len` of 32.
#[inline]
pub fn below(len: usize) -> u32 {
    ((1_u64 << len) - 1) as u32
}
