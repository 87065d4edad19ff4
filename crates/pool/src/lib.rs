//! Slots: permissions to have a task in libuv's pool.
//!
//! At most `concurrency` tasks of the process run at once, and at most half of them on files. So one thread of the pool
//! stays free for `fs` and `dns`. JS threads acquire slots; tasks drop them at their end, on any thread.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The counts of a process.
#[derive(Debug, Default)]
pub struct Pool {
    /// Zero until a thread sets it.
    concurrency: AtomicU32,
    running: AtomicU32,
    /// Tasks of `running` that access files.
    on_files: AtomicU32,
    completed: AtomicU64,
}

/// The permission to have one task in the pool, until it is dropped.
#[derive(Debug)]
pub struct Slot {
    pool: &'static Pool,
    is_on_files: bool,
    is_used: bool,
}

impl Pool {
    /// Returns a pool whose concurrency is not set: only tasks that start regardless get slots.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            concurrency: AtomicU32::new(0),
            running: AtomicU32::new(0),
            on_files: AtomicU32::new(0),
            completed: AtomicU64::new(0),
        }
    }

    /// Acquires a slot if one is free; with `regardless`, always.
    pub fn acquire(&'static self, is_on_files: bool, regardless: bool) -> Option<Slot> {
        let limit = self.concurrency();
        if is_on_files && !count_up(&self.on_files, (limit / 2).max(1), regardless) {
            return None;
        }
        if !count_up(&self.running, limit, regardless) {
            if is_on_files {
                self.on_files.fetch_sub(1, Ordering::Relaxed);
            }
            return None;
        }
        Some(Slot { pool: self, is_on_files, is_used: false })
    }

    /// Sets the limit; with `only_if_unset`, unless it was set before.
    pub fn set_concurrency(&self, concurrency: u32, only_if_unset: bool) {
        if only_if_unset {
            // The exchange fails where another thread was first, and its value stays.
            let (new, order) = (concurrency, Ordering::Relaxed);
            let _ = self.concurrency.compare_exchange(0, new, order, order);
            return;
        }
        self.concurrency.store(concurrency, Ordering::Relaxed);
    }

    /// Returns the limit.
    pub fn concurrency(&self) -> u32 {
        self.concurrency.load(Ordering::Relaxed)
    }

    /// Returns the number of slots that are acquired.
    pub fn running(&self) -> u32 {
        self.running.load(Ordering::Relaxed)
    }

    /// Returns the number of tasks that have ended.
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }
}

impl Slot {
    /// Returns the slot for a task, which counts as completed when it drops it.
    #[must_use]
    pub fn used(mut self) -> Self {
        self.is_used = true;
        self
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.is_used {
            self.pool.completed.fetch_add(1, Ordering::Relaxed);
        }
        if self.is_on_files {
            self.pool.on_files.fetch_sub(1, Ordering::Relaxed);
        }
        self.pool.running.fetch_sub(1, Ordering::Relaxed);
    }
}

fn count_up(counter: &AtomicU32, limit: u32, regardless: bool) -> bool {
    let next = |count| (regardless || count < limit).then_some(count + 1);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
}
