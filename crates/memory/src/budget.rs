//! One bound for all idle memory: the blocks of a [`Recycler`], and memory that its owner reports.
//!
//! JS threads report idle tape segments and results, each to a share of its own.

use std::cell::Cell;
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

/// Idle memory that one thread reports. It counts until it is used, or the share is dropped with its thread.
pub struct IdleShare {
    size: Cell<usize>,
    budget: &'static IdleBudget,
}

impl IdleBudget {
    /// Returns a budget of `max_size` bytes, which is also the bound of `recycler`.
    #[must_use]
    pub const fn new(recycler: &'static Recycler, max_size: usize) -> Self {
        Self { recycler, bound: Mutex::new(IdleBound { max_size, reported: 0 }) }
    }

    /// Returns an empty share.
    #[must_use]
    pub const fn share(&'static self) -> IdleShare {
        IdleShare { size: Cell::new(0), budget: self }
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

impl IdleShare {
    /// Adds `size` bytes; returns false, and adds none, where all reports would exceed three quarters of the bound. The
    /// rest is for blocks.
    pub fn grow(&self, size: usize) -> bool {
        let mut bound = self.budget.lock();
        let reported = bound.reported.saturating_add(size);
        if bound.max_size / 4 * 3 < reported {
            return false;
        }
        self.budget.set_reported(&mut bound, reported);
        self.size.set(self.size.get() + size);
        true
    }

    /// Subtracts `size` bytes, or as many as there are.
    pub fn shrink(&self, size: usize) {
        let size = size.min(self.size.get());
        self.size.set(self.size.get() - size);
        let mut bound = self.budget.lock();
        let reported = bound.reported.saturating_sub(size);
        self.budget.set_reported(&mut bound, reported);
    }
}

impl Drop for IdleShare {
    fn drop(&mut self) {
        self.shrink(self.size.get());
    }
}
