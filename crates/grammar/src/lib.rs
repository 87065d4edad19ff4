//! The grammar of JSON: accepts exactly what `JSON.parse` accepts, and names the byte at which a text becomes invalid.
//!
//! `json`, `body`, `experts` and `jsonl` build on it. It runs on any thread. Nothing recurses, and reading allocates
//! only a bit for each level of depth.

mod bits;
mod check;
mod clean;
mod integers;
mod keys;
mod pointer;
mod read;
mod string;
mod unescape;

pub use bits::BitStack;
pub use check::{CheckError, check};
pub use clean::clean;
pub use keys::{ChildKeys, KeyTree};
pub use pointer::{PointerError, PointerKeys, pointer_keys};
pub use read::{JsonVisitor, PROGRESS, ReadError, Text, read};
pub use string::string_len;
pub use unescape::{unescape, unescaped};
