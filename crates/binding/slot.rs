//! Slots: permissions to have a task in libuv's pool. `src/runtime/pool.ts` reserves them on JS threads.
//!
//! At most `concurrency` tasks of the process run at once, and at most half of them on files. So one thread of the pool
//! stays free for `fs` and `dns`.
//!
//! A JS thread reserves a slot and launches a task in the same turn, which claims it. The task drops the slot at the end
//! of `compute`, also if its worker was terminated. A slot that no task claims is dropped by the next reservation, or with
//! its thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use napi_derive::napi;

static POOL: Pool = Pool {
    concurrency: AtomicU32::new(0),
    running: AtomicU32::new(0),
    on_files: AtomicU32::new(0),
    completed: AtomicU64::new(0),
};

thread_local! {
    static RESERVED: Cell<Option<Slot>> = const { Cell::new(None) };
}

/// The counts of the process.
struct Pool {
    /// Zero until a thread sets it.
    concurrency: AtomicU32,
    running: AtomicU32,
    /// Tasks of `running` that access files.
    on_files: AtomicU32,
    completed: AtomicU64,
}

/// The resource that a task works on, which limits its slots.
#[napi]
#[derive(PartialEq, Eq)]
pub enum Lane {
    Memory,
    Files,
}

/// The permission to have one task in the pool.
pub struct Slot {
    lane: Lane,
    used: bool,
}

impl Slot {
    /// Acquires a slot if one is free; with `regardless`, always.
    fn acquire(lane: Lane, regardless: bool) -> Option<Self> {
        let limit = POOL.concurrency.load(Ordering::Relaxed);
        if lane == Lane::Files && !count_up(&POOL.on_files, (limit / 2).max(1), regardless) {
            return None;
        }
        if !count_up(&POOL.running, limit, regardless) {
            if lane == Lane::Files {
                POOL.on_files.fetch_sub(1, Ordering::Relaxed);
            }
            return None;
        }
        Some(Self { lane, used: false })
    }

    /// Takes the slot that this thread has reserved.
    pub fn claim() -> Option<Self> {
        let mut slot = RESERVED.take()?;
        slot.used = true;
        Some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.used {
            POOL.completed.fetch_add(1, Ordering::Relaxed);
        }
        if self.lane == Lane::Files {
            POOL.on_files.fetch_sub(1, Ordering::Relaxed);
        }
        POOL.running.fetch_sub(1, Ordering::Relaxed);
    }
}

fn count_up(counter: &AtomicU32, limit: u32, regardless: bool) -> bool {
    let next = |count| (regardless || count < limit).then_some(count + 1);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
}

/// Reserves a slot for the task that this thread launches next. Returns false if none is free.
#[napi]
pub fn reserve_slot(lane: Lane, regardless: bool) -> bool {
    // Drops a slot that no task claimed, before it counts against the limit.
    drop(RESERVED.take());
    let slot = Slot::acquire(lane, regardless);
    let reserved = slot.is_some();
    RESERVED.set(slot);
    reserved
}

/// Drops a slot that was reserved and not claimed.
#[napi]
pub fn release_slot() {
    drop(RESERVED.take());
}

/// Sets the limit. The first thread that loads the addon sets the default, with `onlyIfUnset`.
#[napi]
pub fn set_concurrency(concurrency: u32, only_if_unset: bool) {
    if only_if_unset {
        // The exchange fails where another thread was first, and its value stays.
        let _ =
            POOL.concurrency.compare_exchange(0, concurrency, Ordering::Relaxed, Ordering::Relaxed);
        return;
    }
    POOL.concurrency.store(concurrency, Ordering::Relaxed);
}

/// The counts of the process, for `stats`.
#[napi(object, object_from_js = false)]
pub struct PoolStats {
    pub concurrency: u32,
    pub running: u32,
    pub completed: f64,
}

/// Returns the counts of the process.
#[napi]
pub fn pool_stats() -> PoolStats {
    PoolStats {
        concurrency: POOL.concurrency.load(Ordering::Relaxed),
        running: POOL.running.load(Ordering::Relaxed),
        completed: POOL.completed.load(Ordering::Relaxed) as f64,
    }
}
