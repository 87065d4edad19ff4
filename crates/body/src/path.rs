//! Paths of values, and offsets in escaped strings: the places that errors name. Runs in tasks; `plan` and `fill` call
//! it.

use std::fmt::Write;
use std::ops::Range;

use offloop_grammar::{unescape, unescaped};

/// One step of a path from the root to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A key of an object: its bytes in the text, without the quotes.
    Key(Range<usize>),
    /// An index of an array.
    Index(usize),
}

/// The place of a value in the container that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuePlace {
    /// The number of the container in [`Containers`]. Number 0 holds the root of the text, with an empty key.
    pub container: usize,
    pub step: PathStep,
}

/// The containers that hold values of interest, as places. Each is behind the one that holds it.
///
/// A path for each value would take memory that is quadratic in the depth of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Containers(Vec<ValuePlace>);

impl Containers {
    /// The step from number 0 to the root.
    pub(crate) const ROOT: PathStep = PathStep::Key(0..0);

    /// Adds a container. Returns its number.
    pub(crate) fn add(&mut self, place: ValuePlace) -> usize {
        self.0.push(place);
        self.0.len()
    }

    /// Returns the places of all containers, from number 1 on.
    pub(crate) fn places(&self) -> &[ValuePlace] {
        &self.0
    }

    /// Keeps the containers that hold one of `places`, and renumbers those.
    pub(crate) fn retain<'a>(&mut self, places: impl Iterator<Item = &'a mut ValuePlace>) {
        let mut places: Vec<_> = places.collect();
        let mut numbers = vec![0; self.0.len() + 1];
        for place in &places {
            let mut number = place.container;
            // Containers that are marked have marked ones around them.
            while let Some(mark @ 0) = numbers.get_mut(number).filter(|_| number != 0) {
                *mark = 1;
                number = self.0.get(number - 1).map_or(0, |place| place.container);
            }
        }
        let mut count = 0;
        for number in numbers.iter_mut().filter(|number| **number != 0) {
            count += 1;
            *number = count;
        }
        let renumbered = |place: &mut ValuePlace| {
            place.container = numbers.get(place.container).copied().unwrap_or_default();
        };
        let mut kept = numbers.iter().skip(1);
        self.0.retain_mut(|place| {
            renumbered(place);
            kept.next().is_some_and(|&number| number != 0)
        });
        for place in &mut places {
            renumbered(place);
        }
    }

    /// Returns the JSON Pointer of the value at `place`.
    #[must_use]
    pub fn pointer_of(&self, text: &[u8], place: &ValuePlace) -> String {
        let mut steps = Vec::new();
        let mut place = place;
        while let Some(outer) = place.container.checked_sub(1).and_then(|index| self.0.get(index)) {
            steps.push(&place.step);
            place = outer;
        }
        let mut pointer = String::new();
        for step in steps.into_iter().rev() {
            pointer.push('/');
            match step {
                // Writing to a String cannot fail.
                PathStep::Index(index) => drop(write!(pointer, "{index}")),
                PathStep::Key(key) => {
                    let key = unescaped(text.get(key.clone()).unwrap_or_default());
                    let key = String::from_utf8_lossy(&key).replace('~', "~0").replace('/', "~1");
                    pointer.push_str(&key);
                }
            }
        }
        pointer
    }
}

/// Returns the offset in `text`, which has escapes, of the byte that is at `offset` once they are removed.
#[must_use]
pub fn escaped_offset(text: &[u8], offset: usize) -> usize {
    let mut left = offset;
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        let (_, escape) = rest.split_at(at);
        let (character, behind) = unescape(escape);
        let size = character.map_or(3, char::len_utf8);
        if left < at + size {
            return text.len() - rest.len() + left.min(at);
        }
        left -= at + size;
        rest = behind;
    }
    text.len() - rest.len() + left
}
