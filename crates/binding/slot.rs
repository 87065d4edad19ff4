//! The pool's slots. `src/runtime/pool.ts` reserves them on JS threads.
//!
//! A JS thread reserves a slot and launches a task in the same turn, which claims it. The task drops the slot at the end
//! of `compute`, also if its worker was terminated. A slot that no task claims is dropped by the next reservation, or with
//! its thread.

use std::cell::Cell;

use napi_derive::napi;
use offloop_pool::{Pool, Slot};

static POOL: Pool = Pool::new();

thread_local! {
    static RESERVED: Cell<Option<Slot>> = const { Cell::new(None) };
}

/// The resource that a task works on, which limits its slots.
#[napi]
#[derive(PartialEq, Eq)]
pub enum Lane {
    Memory,
    Files,
}

/// Takes the slot that this thread has reserved.
pub fn claim() -> Option<Slot> {
    RESERVED.take().map(Slot::used)
}

/// Reserves a slot for the task that this thread launches next. Returns false if none is free.
#[napi]
pub fn reserve_slot(lane: Lane, regardless: bool) -> bool {
    // Drops a slot that no task claimed, before it counts against the limit.
    drop(RESERVED.take());
    let slot = POOL.acquire(lane == Lane::Files, regardless);
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
    POOL.set_concurrency(concurrency, only_if_unset);
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
    let completed = POOL.completed() as f64;
    PoolStats { concurrency: POOL.concurrency(), running: POOL.running(), completed }
}
