//! The grammar of JSON, for all who read it: exactly what `JSON.parse` takes, and the byte at which it takes no more.
//!
//! Nothing here recurses, and nothing is allocated but a bit for each level of depth.

mod check;
mod clean;
mod integers;
mod pointer;
mod read;
mod unescape;

pub use check::{CheckError, check};
pub use clean::clean;
pub use pointer::key_of;
pub use read::{PROGRESS, Stop, Text, Visit, read};
pub use unescape::{unescape, unescaped};
