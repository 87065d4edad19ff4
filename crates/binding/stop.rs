//! Cancellation: a flag that JavaScript raises on the JS thread and a task polls.
//!
//! `src/runtime/abort.ts` raises it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use napi_derive::napi;

use crate::failure::{Failure, FailureCause};

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const STOPPED: u8 = 2;

/// The end of the flag that a task polls. The default is never raised.
#[derive(Clone, Default)]
pub struct Flag(Option<Arc<AtomicU8>>);

impl Flag {
    /// Marks the task as running; fails if the flag is raised already.
    pub fn begin(&self) -> Result<(), Failure> {
        let Some(state) = &self.0 else { return Ok(()) };
        match state.compare_exchange(WAITING, RUNNING, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => self.check(),
        }
    }

    /// Fails if the flag is raised. A task calls it at least every few milliseconds.
    pub fn check(&self) -> Result<(), Failure> {
        let Some(state) = &self.0 else { return Ok(()) };
        #[cfg(feature = "test-hooks")]
        if crate::hooks::is_last_look() {
            state.store(STOPPED, Ordering::Relaxed);
        }
        if state.load(Ordering::Relaxed) == STOPPED {
            return Err(Failure::new(FailureCause::Aborted, "aborted"));
        }
        Ok(())
    }
}

/// The end of the flag that JavaScript raises. It may serve several tasks, one after the other.
#[napi]
#[derive(Default)]
pub struct Stop(Flag);

#[napi]
impl Stop {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self(Flag(Some(Arc::new(AtomicU8::new(WAITING)))))
    }

    /// Raises the flag. Returns true if the task had not begun, and so never will.
    #[napi]
    #[must_use]
    pub fn request(&self) -> bool {
        self.0.0.as_ref().is_some_and(|state| state.swap(STOPPED, Ordering::Relaxed) == WAITING)
    }
}

impl From<Option<&Stop>> for Flag {
    fn from(stop: Option<&Stop>) -> Self {
        stop.map(|stop| stop.0.clone()).unwrap_or_default()
    }
}
