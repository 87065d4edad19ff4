//! JSON Pointers with wildcards, as an automaton over the keys and indexes that lead to a value.

use std::error::Error;
use std::fmt;

use offloop_grammar::key_of;

/// A pointer that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerError {
    /// It is not empty, and has no `/` at its start.
    NoSlash,
    /// A `~` that is neither `~0` nor `~1`.
    Escape,
    /// `**` behind other segments.
    Deep,
}

impl fmt::Display for PointerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSlash => "must be empty or begin with /",
            Self::Escape => "has a ~ that is neither ~0 nor ~1",
            Self::Deep => "may have ** at its start only",
        })
    }
}

impl Error for PointerError {}

/// What the automaton awaits in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Key(Vec<u8>),
    Any,
    /// Any number of any.
    Deep,
    /// The pattern of that index is matched.
    End(usize),
}

/// Pointers, in the order in which they are listed. A state is a segment; a set of them is a row of bits.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    segments: Vec<Segment>,
    starts: Vec<usize>,
}

/// Of states.
const BITS: usize = u64::BITS as usize;

impl Patterns {
    /// `pointers` in UTF-8, halves of surrogate pairs in three bytes each.
    ///
    /// # Errors
    /// The first pointer that is none, and why.
    pub fn new(pointers: &[Vec<u8>]) -> Result<Self, (usize, PointerError)> {
        let mut patterns = Self::default();
        for (index, pointer) in pointers.iter().enumerate() {
            patterns.add(pointer, index).map_err(|error| (index, error))?;
        }
        Ok(patterns)
    }

    fn add(&mut self, pointer: &[u8], index: usize) -> Result<(), PointerError> {
        self.starts.push(self.segments.len());
        let mut texts = pointer.split(|&byte| byte == b'/');
        if texts.next() != Some(&[]) {
            return Err(PointerError::NoSlash);
        }
        let mut is_first = true;
        for text in texts {
            self.segments.push(match text {
                b"*" => Segment::Any,
                b"**" if is_first => Segment::Deep,
                b"**" => return Err(PointerError::Deep),
                _ => Segment::Key(key_of(text).ok_or(PointerError::Escape)?),
            });
            is_first = false;
        }
        self.segments.push(Segment::End(index));
        Ok(())
    }

    /// Words of a set.
    pub(crate) fn width(&self) -> usize {
        self.segments.len().div_ceil(BITS)
    }

    /// The states at the top.
    pub(crate) fn start(&self, set: &mut [u64]) {
        for &state in &self.starts {
            self.add_state(state, set);
        }
    }

    /// The states behind `key`, which begin empty. True if there are any.
    pub(crate) fn advance(&self, from: &[u64], key: &[u8], to: &mut [u64]) -> bool {
        to.fill(0);
        for state in states(from) {
            match self.segments.get(state) {
                Some(Segment::Deep) => self.add_state(state, to),
                Some(Segment::Any) => self.add_state(state + 1, to),
                Some(Segment::Key(wanted)) if wanted == key => self.add_state(state + 1, to),
                _ => {}
            }
        }
        to.iter().any(|&word| word != 0)
    }

    /// The first pattern that is matched.
    pub(crate) fn matched(&self, set: &[u64]) -> Option<usize> {
        states(set).find_map(|state| match self.segments.get(state) {
            Some(Segment::End(index)) => Some(*index),
            _ => None,
        })
    }

    fn add_state(&self, state: usize, set: &mut [u64]) {
        if let Some(word) = set.get_mut(state / BITS) {
            *word |= 1 << (state % BITS);
        }
        if self.segments.get(state) == Some(&Segment::Deep) {
            self.add_state(state + 1, set);
        }
    }
}

/// In order: those of the patterns listed first come first.
fn states(set: &[u64]) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(index, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (bit < BITS).then_some(index * BITS + bit)
        })
    })
}
