//! Takes an HTTP body of JSON apart: the values at the pointers of the option `lift`, and the JSON that is left.
//!
//! The glue calls it in two steps, each in a task (on the JS thread for small bodies):
//!
//! 1. [`BodyPlan::new`] validates the text exactly as `JSON.parse` would, finds the values, and assigns memory to each.
//! 2. [`BodyPlan::fill`] decodes the values into that memory and writes the rest.
//!
//! Nothing recurses, so memory bounds the depth of a body. The caller owns all memory that is written.

mod error;
mod events;
mod experts;
mod fill;
mod framing;
mod lift;
mod nested;
mod numbers;
mod path;
mod pattern;
mod plan;
mod scan;
mod text;

pub use error::{BodyError, LiftCause, LiftError, RestTooLong};
pub use events::{
    EventBytes, EventError, EventHead, EventReader, EventRules, EventRun, EventStep, PlanSource,
    PlannedText, RawEvent, RunEnd,
};
pub use fill::{FillTarget, FilledBody};
pub use lift::{LiftConfig, LiftKind, RestRules};
pub use nested::{Nesting, NumberLayout};
pub use numbers::{ElementType, NumberError, fill_numbers};
pub use offloop_grammar::{CheckError, PointerError, unescaped};
pub use path::{Containers, PathStep, ValuePlace, escaped_offset};
pub use pattern::{PatternError, Patterns};
pub use plan::{BodyPlan, PlannedValue};
pub use scan::{AcceptedType, Findings, MatchedType, MatchedValue, ScanError, Search, scan};
pub use text::{RestText, TextWidth};
