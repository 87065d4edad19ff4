//! One bound for all idle memory: the blocks of a [`Recycler`], and memory that its owner reports.
//!
//! The glue reports idle tape segments on JS threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Recycler;

/// Bounds the idle blocks of a recycler and reported idle memory together. Blocks leave first.
pub struct IdleBudget {
    recycler: &'static Recycler,
    bound: Mutex<IdleBound>,
}

struct IdleBound {
    max_size: usize,
    /// Bytes of reported memory.
    reported: usize,
}

/// A report of idle memory, which counts until it is dropped.
pub struct IdleReport {
    size: usize,
    budget: &'static IdleBudget,
}

impl IdleBudget {
    /// Returns a budget of `max_size` bytes, which is also the bound of `recycler`.
    #[must_use]
    pub const fn new(recycler: &'static Recycler, max_size: usize) -> Self {
        Self { recycler, bound: Mutex::new(IdleBound { max_size, reported: 0 }) }
    }

    /// Reports `size` bytes of idle memory; `None` where reports would exceed the bound.
    pub fn report(&'static self, size: usize) -> Option<IdleReport> {
        let mut bound = self.lock();
        let reported = bound.reported + size;
        if bound.max_size < reported {
            return None;
        }
        self.set_reported(&mut bound, reported);
        Some(IdleReport { size, budget: self })
    }

    /// Returns the bytes that are idle.
    pub fn idle_size(&self) -> usize {
        let reported = self.lock().reported;
        self.recycler.idle_size() + reported
    }

    /// Returns the bound.
    pub fn max_size(&self) -> usize {
        self.lock().max_size
    }

    /// Sets the bound. Blocks that exceed it leave at once; the owner of reported memory lets go of it.
    pub fn set_max_size(&self, max_size: usize) {
        let mut bound = self.lock();
        bound.max_size = max_size;
        let reported = bound.reported;
        self.set_reported(&mut bound, reported);
    }

    fn set_reported(&self, bound: &mut IdleBound, reported: usize) {
        bound.reported = reported;
        self.recycler.set_max_idle(bound.max_size.saturating_sub(reported));
    }

    fn lock(&self) -> MutexGuard<'_, IdleBound> {
        // A panic under this lock leaves two integers, either of which is valid.
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for IdleReport {
    fn drop(&mut self) {
        let mut bound = self.budget.lock();
        let reported = bound.reported.saturating_sub(self.size);
        self.budget.set_reported(&mut bound, reported);
    }
}
