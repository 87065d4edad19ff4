//! The glue between JavaScript and the pure crates: fields in, one call, bytes out. `src/native.ts` is its only caller.

#![allow(clippy::needless_pass_by_value, reason = "napi hands arguments over by value")]

mod base64;
mod batch;
mod body;
mod errno;
mod experts;
mod failure;
mod guard;
#[cfg(feature = "test-hooks")]
mod hooks;
mod json;
mod jsonl;
mod lock;
mod log;
mod memory;
mod progress;
mod result;
mod rows;
mod save;
mod slot;
mod source;
mod stop;
mod task;

use napi_derive::napi;

#[napi]
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
