//! A stack of bits: which of the open containers are objects. Readers of JSON use it on any thread.
//!
//! A bit for each container means that memory bounds the depth, not the stack of the thread.

/// A stack of bits.
#[derive(Clone, Debug, Default)]
pub struct BitStack {
    /// The latest bits, at most 64. The last one is the lowest.
    top: u64,
    /// Full words below `top`.
    below: Vec<u64>,
    len: usize,
}

impl BitStack {
    #[inline]
    pub fn push(&mut self, bit: bool) {
        if self.len != 0 && self.len.is_multiple_of(64) {
            self.below.push(self.top);
        }
        self.top = self.top << 1 | u64::from(bit);
        self.len += 1;
    }

    /// Removes the last bit. Does nothing where the stack is empty.
    #[inline]
    pub fn pop(&mut self) {
        self.top >>= 1;
        self.len = self.len.saturating_sub(1);
        if self.len != 0 && self.len.is_multiple_of(64) {
            self.top = self.below.pop().unwrap_or_default();
        }
    }

    /// Returns the last bit, or `None` where the stack is empty.
    #[inline]
    #[must_use]
    pub fn last(&self) -> Option<bool> {
        (self.len != 0).then_some(self.top & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pushes bits, or pops where there is none.
    fn run(steps: &[Option<bool>]) {
        let (mut stack, mut twin) = (BitStack::default(), Vec::new());
        for &step in steps {
            if let Some(bit) = step {
                stack.push(bit);
                twin.push(bit);
            } else {
                stack.pop();
                twin.pop();
            }
            assert_eq!(stack.last(), twin.last().copied(), "at a depth of {}", twin.len());
        }
    }

    proptest! {
        #[test]
        fn it_does_what_a_vector_of_bools_does(
            bits in prop::collection::vec(any::<bool>(), 0..300),
            steps in prop::collection::vec(prop::option::of(any::<bool>()), 0..300),
        ) {
            let pushes = bits.iter().copied().map(Some);
            // More pops than bits: an empty stack stays empty.
            let pops = std::iter::repeat_n(None, bits.len() + steps.len());
            run(&pushes.chain(steps.iter().copied()).chain(pops).collect::<Vec<_>>());
        }
    }
}
