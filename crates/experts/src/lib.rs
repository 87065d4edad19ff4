//! Routed experts: which form a payload has, what it holds, and where the rows of many go in one.
//!
//! Nothing here is believed before it is checked, and nothing is allocated that a payload only claims to need.

mod base85;
mod chain;
mod dtype;
mod npy;
mod object;
mod payload;
mod place;
mod widen;
mod wire;

pub use base85::{Base85Error, Base85Reader, base85_len};
pub use chain::{Fill, Plan, PlanError, Rules, Run, Turn, plan};
pub use dtype::Dtype;
pub use npy::NpyError;
pub use object::object;
pub use payload::{Bytes, Hints, Payload, PayloadError, Shape, Told, head_size, payload, whole};
pub use place::{fill, place};
pub use wire::{Data, Encoding, Wire, is_object, text};
