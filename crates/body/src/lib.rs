//! Finds values in the text of a body by their pointers, and takes the text apart: the values where they stand, and what
//! is left without them.
//!
//! One pass checks the whole text as `JSON.parse` would and follows the pointers with a small automaton. Nothing recurses.

mod numbers;
mod pattern;
mod scan;

pub use numbers::{Kind, NumberError, fill_numbers};
pub use offloop_grammar::{CheckError, unescaped};
pub use pattern::{Patterns, PointerError};
pub use scan::{Find, Found, ScanError, Step, Wanted, place_of, pointer_of, scan};
