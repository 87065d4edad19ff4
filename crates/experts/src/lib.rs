//! Routed experts: recognises the format of a payload, checks what it holds, and places the rows of many turns in one
//! sample.
//!
//! The glue calls [`TurnList`] for `decodeExperts` and `concatExperts`, and [`ResolvedPayload`] for payloads inside a
//! body. Reading a header runs on the JS thread; everything that grows with the data runs in a task.
//!
//! Every size and offset that a payload claims is checked before it is used. Nothing is allocated only because a
//! payload claims to need it.

mod base85;
mod concat;
mod dtype;
mod error;
mod format;
mod npy;
mod object;
mod payload;
mod place;
mod reader;
mod resolve;
mod turns;
mod widen;

pub use base85::{Base85Error, Base85Reader, base85_len};
pub use concat::{ConcatConfig, ExpertsPlan, Fill, PlanError, Run, Turn, plan};
pub use dtype::Dtype;
pub use error::ExpertsError;
pub use format::{EncodedPayload, Encoding, PayloadData, PayloadFormat, is_object, text};
pub use npy::NpyError;
pub use object::object;
pub use payload::{
    Declared, Hints, Payload, PayloadError, PayloadHead, Shape, head_size, payload, whole,
};
pub use place::{fill, place};
pub use reader::PayloadReader;
pub use resolve::{PollFn, ResolvedPayload};
pub use turns::{SourceRange, TURN_NUMBERS, TurnInput, TurnList};
