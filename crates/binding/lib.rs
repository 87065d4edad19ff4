//! The glue between JavaScript and the pure crates: converts arguments, calls one function, converts the result.
//!
//! `src/runtime/native.ts` is its only importer. Functions run on the JS thread; their work runs in tasks of libuv's pool.

#![allow(clippy::needless_pass_by_value, reason = "napi hands arguments over by value")]

mod base64;
mod batcher;
mod body;
mod copy;
mod events;
mod experts;
mod failure;
mod guard;
#[cfg(feature = "test-hooks")]
mod hooks;
mod json;
mod lock;
mod log;
mod memory;
mod progress;
mod queue;
mod read;
mod repair;
mod result;
mod save;
mod slot;
mod small;
mod snapshot;
mod source;
mod stop;
mod tape;
mod task;

use napi_derive::napi;

/// The version of the addon, which the loader compares with that of the npm package.
#[napi]
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
