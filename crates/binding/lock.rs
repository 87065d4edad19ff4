//! Locks that tasks and the JS thread share. Used in all glue files.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a panic: no code leaves a value behind a lock that others cannot use.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
