//! JSON from the flat form of a JavaScript value.

mod date;
mod indent;
mod lexicon;
mod number;
mod output;
mod tape;
mod text;
mod transcode;

pub use indent::indent;
pub use lexicon::Lexicon;
pub use output::Memory;
pub use tape::{Long, Malformed, Segment, Tag};
pub use text::Kernel;
pub use transcode::{Tape, TranscodeError, transcode};
