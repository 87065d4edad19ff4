//! JSON and `MessagePack` from the flat form of a JavaScript value.

mod compact;
mod date;
mod error;
mod indent;
mod lexicon;
mod msgpack;
mod number;
mod output;
mod rows;
mod sort;
mod streams;
mod tape;
mod text;
mod transcode;
mod writer;

pub use error::{TooLarge, TranscodeError};
pub use indent::indent;
pub use lexicon::Lexicon;
pub use msgpack::{Floats, pack};
pub use offloop_grammar::{CheckError, check};
pub use output::Memory;
pub use rows::{join, part};
pub use sort::sort;
pub use tape::{Base64, Long, Malformed, Segment, Tag, Tape};
pub use text::Kernel;
pub use transcode::{Written, transcode};
