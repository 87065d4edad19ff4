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

/// Returns the JSON Pointer of `path`.
#[must_use]
pub fn pointer_of(text: &[u8], path: &[PathStep]) -> String {
    let mut pointer = String::new();
    for step in path {
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
