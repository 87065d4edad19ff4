//! Admission to libuv's pool: at most `concurrency` of our tasks at once, over all threads of the process, and at most
//! half of them on files, so that a thread stays free for `fs` and `dns`.
//!
//! A JavaScript thread reserves a slot and claims it with the task it launches in the same turn. The task gives it back
//! by itself at the end of `compute`, so a worker that is terminated meanwhile loses none; a reservation that was never
//! claimed is given back by the next one, or with its thread.

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

struct Pool {
    /// Zero until somebody says.
    concurrency: AtomicU32,
    running: AtomicU32,
    /// Those of `running` that touch files.
    on_files: AtomicU32,
    completed: AtomicU64,
}

#[napi]
#[derive(PartialEq, Eq)]
pub enum Lane {
    Memory,
    Files,
}

/// The right to be in the pool.
pub struct Slot {
    lane: Lane,
    used: bool,
}

impl Slot {
    /// One if there is one free; with `regardless`, in any case.
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

    /// The one this thread reserved.
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

/// Reserves a slot for the task that this thread launches next.
#[napi]
pub fn reserve_slot(lane: Lane, regardless: bool) -> bool {
    // An unclaimed one goes back first.
    drop(RESERVED.take());
    let slot = Slot::acquire(lane, regardless);
    let reserved = slot.is_some();
    RESERVED.set(slot);
    reserved
}

/// Gives back a slot that was reserved and not claimed.
#[napi]
pub fn release_slot() {
    drop(RESERVED.take());
}

/// The limit, from now on. The default is set by whichever thread loads the addon first.
#[napi]
pub fn set_concurrency(concurrency: u32, only_if_unset: bool) {
    if only_if_unset {
        // Whether this thread or another was first does not matter.
        let _ =
            POOL.concurrency.compare_exchange(0, concurrency, Ordering::Relaxed, Ordering::Relaxed);
        return;
    }
    POOL.concurrency.store(concurrency, Ordering::Relaxed);
}

#[napi(object, object_from_js = false)]
pub struct PoolStats {
    pub concurrency: u32,
    pub running: u32,
    pub completed: f64,
}

#[napi]
pub fn pool_stats() -> PoolStats {
    PoolStats {
        concurrency: POOL.concurrency.load(Ordering::Relaxed),
        running: POOL.running.load(Ordering::Relaxed),
        completed: POOL.completed.load(Ordering::Relaxed) as f64,
    }
}
