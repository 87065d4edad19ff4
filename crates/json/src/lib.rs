//! Prints tapes, the flat form of JavaScript values, as JSON and `MessagePack`.
//!
//! The glue calls it in tasks, and on the JS thread for small values. The caller owns all memory. Nothing here panics.

mod buffer;
mod compact;
mod date;
mod digits;
mod error;
mod indent;
pub mod layout;
mod lexicon;
mod msgpack;
mod nesting;
mod number;
mod output;
mod parts;
mod print;
mod queue;
mod rows;
mod segment;
mod size;
mod small;
mod sort;
mod streams;
mod tape;
mod text;
mod transcode;
mod writer;

pub use buffer::{AcquireFn, OutputBuffer};
pub use error::{TooDeep, TooLarge, TranscodeError};
pub use indent::indent;
pub use lexicon::Lexicon;
pub use msgpack::{Floats, PackOptions, pack};
pub use offloop_grammar::{CheckError, check};
pub use output::Memory;
pub use parts::{LongPart, SegmentJob, SegmentMemory, SegmentPart, TapeMemory};
pub use print::{JsonLayout, PrintConfig, PrintFormat, Workspace, print, print_texts};
pub use queue::{PrintedSegment, SegmentQueue};
pub use rows::{join, part};
pub use segment::{SegmentCopy, StreamLens};
pub use small::{SmallEncoding, answer_small, print_small};
pub use sort::sort;
pub use tape::{JsText, Malformed, Segment, Tag, Tape};
pub use text::Kernel;
pub use transcode::{JsonExtent, transcode};
