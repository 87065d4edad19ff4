//! Where kernels that skip push the values of data characters together until there are many steps of them.

/// `ROWS - 1` steps make it full; one more takes what the last push stores behind them. Aligned so that no step crosses a
/// cache line.
#[repr(align(64))]
pub struct Stage<const STEP: usize, const ROWS: usize> {
    values: [[u8; STEP]; ROWS],
    /// How many values are on it.
    pub len: usize,
}

impl<const STEP: usize, const ROWS: usize> Stage<STEP, ROWS> {
    pub fn new() -> Self {
        Self { values: [[0; STEP]; ROWS], len: 0 }
    }

    pub fn is_full(&self) -> bool {
        (ROWS - 1) * STEP <= self.len
    }

    /// Where the value of that number goes. For the next one, number `len`, and a whole step there is room as long as the
    /// stage is not full.
    pub fn place(&mut self, index: usize) -> *mut u8 {
        self.values.as_mut_ptr().cast::<u8>().wrapping_add(index)
    }

    #[allow(clippy::indexing_slicing, reason = "a step that `len` reaches, or the first")]
    pub fn step(&self, index: usize) -> &[u8; STEP] {
        &self.values[index]
    }

    /// Drops the steps before `index`, which is the last that `len` reaches. Where more are left, only their number is
    /// kept.
    #[allow(clippy::indexing_slicing, reason = "a step that `len` reaches")]
    pub fn keep_from(&mut self, index: usize) {
        self.values[0] = self.values[index];
        self.len -= index * STEP;
    }
}
