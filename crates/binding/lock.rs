//! What tasks of one file share with the thread. A task that panicked left nothing that others could not go on with.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
