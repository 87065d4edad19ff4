//! A panic is a bug of ours, and no reason to take the process down: napi's tasks do not catch it, and a panic that
//! reaches C aborts.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::failure::{Cause, Failure};

/// Runs `work`; a panic becomes `ERR_OFFLOOP_INTERNAL`.
pub fn guard<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // What `work` leaves half done is dropped with it: a task's own memory, nothing that others see.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(internal(panic.as_ref())))
}

fn internal(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new(
        Cause::Internal,
        format!("a bug in offloop: {}", text.unwrap_or("panic without a message")),
    )
}
