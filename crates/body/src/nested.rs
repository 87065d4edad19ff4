//! Follows arrays of numbers while a body is scanned: flat ones, lists of lists, and rectangular ones of any depth.
//! Runs in a task; `scan` calls it.

/// How the numbers of an array are nested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumberLayout {
    /// Numbers only.
    Flat { count: usize },
    /// Arrays of numbers: how many each of them has.
    Ragged { counts: Vec<i32> },
    /// Arrays of equal lengths: the lengths from outside in.
    Tensor { shape: Vec<usize> },
}

impl NumberLayout {
    /// Returns the count of all numbers.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Flat { count } => *count,
            Self::Ragged { counts } => counts.iter().map(|&count| count as usize).sum(),
            // The text has that many numbers, so the product does not overflow.
            Self::Tensor { shape } => shape.iter().product(),
        }
    }
}

/// The nesting that a pattern asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    Flat,
    Ragged,
    Tensor,
}

/// Follows the tokens of one array. Depth 1 is the array itself.
#[derive(Clone, Debug)]
pub(crate) struct NestedNumbers {
    nesting: Nesting,
    /// The lengths of the open arrays, outermost first.
    open: Vec<usize>,
    /// The length of the arrays of each depth; `None` until the first of them ends.
    shape: Vec<Option<usize>>,
    /// The depth of the numbers, once there is one.
    leaves: Option<usize>,
    /// The count of numbers in each array of depth 2.
    counts: Vec<i32>,
    is_mismatch: bool,
}

impl NestedNumbers {
    /// Begins behind the opening bracket of the array.
    pub(crate) fn new(nesting: Nesting) -> Self {
        Self {
            nesting,
            open: vec![0],
            shape: vec![None],
            leaves: None,
            counts: Vec::new(),
            is_mismatch: false,
        }
    }

    /// Receives a token that is neither a number nor a bracket of an array.
    pub(crate) fn refuse(&mut self) {
        self.is_mismatch = true;
    }

    pub(crate) fn open(&mut self, is_object: bool) {
        let most = match self.nesting {
            Nesting::Flat => 1,
            Nesting::Ragged => 2,
            Nesting::Tensor => usize::MAX,
        };
        let depth = self.open.len();
        // A tensor has numbers at one depth only.
        let is_leaf = self.leaves == Some(depth);
        if self.is_mismatch || is_object || is_leaf || most == depth {
            self.is_mismatch = true;
            return;
        }
        self.add(1);
        self.open.push(0);
        if self.shape.len() < self.open.len() {
            self.shape.push(None);
        }
    }

    /// Receives `count` numbers.
    pub(crate) fn numbers(&mut self, count: usize) {
        let depth = self.open.len();
        let fits = match self.nesting {
            Nesting::Flat => true,
            Nesting::Ragged => depth == 2,
            Nesting::Tensor => {
                *self.leaves.get_or_insert(depth) == depth && self.shape.len() == depth
            }
        };
        self.is_mismatch |= !fits;
        self.add(count);
    }

    /// Ends an array behind the first depth.
    pub(crate) fn close(&mut self) {
        if self.is_mismatch {
            return;
        }
        let depth = self.open.len();
        let len = self.open.pop().unwrap_or_default();
        match (self.nesting, self.shape.get_mut(depth - 1)) {
            (Nesting::Tensor, Some(length)) => {
                self.is_mismatch = *length.get_or_insert(len) != len;
            }
            (Nesting::Ragged, _) => match i32::try_from(len) {
                Ok(count) => self.counts.push(count),
                Err(_) => self.is_mismatch = true,
            },
            _ => {}
        }
    }

    /// Ends the array itself. Returns `None` if it is not nested as its pattern asks.
    pub(crate) fn finish(self) -> Option<NumberLayout> {
        if self.is_mismatch {
            return None;
        }
        let len = self.open.first().copied().unwrap_or_default();
        Some(match self.nesting {
            Nesting::Flat => NumberLayout::Flat { count: len },
            Nesting::Ragged => NumberLayout::Ragged { counts: self.counts },
            Nesting::Tensor => {
                let inner = self.shape.iter().skip(1).map(|length| length.unwrap_or_default());
                NumberLayout::Tensor { shape: [len].into_iter().chain(inner).collect() }
            }
        })
    }

    fn add(&mut self, count: usize) {
        if let Some(len) = self.open.last_mut() {
            *len += count;
        }
    }
}
