//! JSON from the flat form of a JavaScript value.

mod check;
mod compact;
mod date;
mod indent;
mod lexicon;
mod number;
mod output;
mod sort;
mod tape;
mod text;
mod transcode;

pub use check::{CheckError, check};
pub use indent::indent;
pub use lexicon::Lexicon;
pub use output::Memory;
pub use sort::sort;
pub use tape::{Long, Malformed, Segment, Tag};
pub use text::Kernel;
pub use transcode::{Base64, Tape, TranscodeError, Written, transcode};
