//! Turns panics into failures, in tasks and on the JS thread. `task.rs` and calls on the JS thread use it.
//!
//! A panic is a bug in offloop. napi's tasks do not catch it, and a panic that reaches C aborts the process.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::failure::{Failure, FailureCause};

/// Runs `work`; returns `ERR_OFFLOOP_INTERNAL` if it panics.
pub fn guard<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // Unwind safe: `work` owns the memory that a panic leaves half written, and drops it.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(internal(panic.as_ref())))
}

fn internal(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new(
        FailureCause::Internal,
        format!("a bug in offloop: {}", text.unwrap_or("panic without a message")),
    )
}
