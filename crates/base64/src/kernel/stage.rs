//! A buffer on which kernels that skip push the values of data characters together, until it holds many steps. On any
//! thread; the AVX2 and AVX-512 kernels use it.

/// Values of data characters, without gaps. `ROWS - 1` steps make it full; one more row takes the bytes that the last push
/// stores behind them. The alignment keeps every step within a cache line.
#[repr(align(64))]
pub struct ValueStage<const STEP: usize, const ROWS: usize> {
    values: [[u8; STEP]; ROWS],
    /// Values on the stage.
    pub len: usize,
}

impl<const STEP: usize, const ROWS: usize> ValueStage<STEP, ROWS> {
    pub fn new() -> Self {
        Self { values: [[0; STEP]; ROWS], len: 0 }
    }

    pub fn is_full(&self) -> bool {
        (ROWS - 1) * STEP <= self.len
    }

    /// Returns the place of a value. From place `len` on there is room for a whole step unless the stage is full.
    pub fn place(&mut self, index: usize) -> *mut u8 {
        self.values.as_mut_ptr().cast::<u8>().wrapping_add(index)
    }

    #[allow(clippy::indexing_slicing, reason = "a step that `len` reaches, or the first")]
    pub fn step(&self, index: usize) -> &[u8; STEP] {
        &self.values[index]
    }

    /// Drops the steps before `index`, which is the last that `len` reaches. If `len` reaches further steps, only their
    /// number is kept.
    #[allow(clippy::indexing_slicing, reason = "a step that `len` reaches")]
    pub fn keep_from(&mut self, index: usize) {
        self.values[0] = self.values[index];
        self.len -= index * STEP;
    }
}
