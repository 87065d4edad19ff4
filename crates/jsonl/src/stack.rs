//! Which containers are open, a bit for each, so that depth is bounded by memory.

#[derive(Clone, Debug, Default)]
pub(crate) struct Stack {
    /// The innermost ones, up to 64; the last of them is the lowest bit.
    top: u64,
    below: Vec<u64>,
    len: usize,
}

impl Stack {
    pub fn push(&mut self, bit: bool) {
        if self.len != 0 && self.len.is_multiple_of(64) {
            self.below.push(self.top);
        }
        self.top = self.top << 1 | u64::from(bit);
        self.len += 1;
    }

    pub fn pop(&mut self) {
        self.top >>= 1;
        self.len = self.len.saturating_sub(1);
        if self.len != 0 && self.len.is_multiple_of(64) {
            self.top = self.below.pop().unwrap_or_default();
        }
    }

    /// The innermost; none where nothing is open.
    pub fn last(&self) -> Option<bool> {
        (self.len != 0).then_some(self.top & 1 != 0)
    }
}
