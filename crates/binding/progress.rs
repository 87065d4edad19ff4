//! How far a task has come, for JavaScript to look at: a task that called would need the loop to be free.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use napi_derive::napi;

/// The task's end.
#[derive(Clone, Default)]
pub struct Reached(Arc<Counts>);

#[derive(Default)]
struct Counts {
    bytes: AtomicU64,
    total: AtomicU64,
    rows: AtomicU64,
}

impl Reached {
    pub fn set(&self, bytes: u64, total: u64) {
        self.0.bytes.store(bytes, Ordering::Relaxed);
        self.0.total.store(total, Ordering::Relaxed);
    }

    pub fn set_rows(&self, rows: u64) {
        self.0.rows.store(rows, Ordering::Relaxed);
    }
}

/// JavaScript's end.
#[napi]
#[derive(Default)]
pub struct Progress(Reached);

#[napi]
impl Progress {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[napi(getter)]
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.0.0.bytes.load(Ordering::Relaxed) as f64
    }

    /// Zero before the task has begun.
    #[napi(getter)]
    #[must_use]
    pub fn total(&self) -> f64 {
        self.0.0.total.load(Ordering::Relaxed) as f64
    }

    /// Where the task counts them.
    #[napi(getter)]
    #[must_use]
    pub fn rows(&self) -> f64 {
        self.0.0.rows.load(Ordering::Relaxed) as f64
    }
}

impl From<Option<&Progress>> for Reached {
    fn from(progress: Option<&Progress>) -> Self {
        progress.map(|progress| progress.0.clone()).unwrap_or_default()
    }
}
