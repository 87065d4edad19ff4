//! The progress of a task. The task writes it, and `src/runtime/progress.ts` reads it on the JS thread.
//!
//! A task that called JavaScript would need a free event loop; a timer that reads does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use napi_derive::napi;

/// The end that a task writes to.
#[derive(Clone, Default)]
pub struct ProgressWriter(Arc<ProgressCounts>);

#[derive(Default)]
struct ProgressCounts {
    bytes: AtomicU64,
    total: AtomicU64,
    rows: AtomicU64,
}

impl ProgressWriter {
    /// Sets how many bytes are done, and how many there are.
    pub fn set(&self, bytes: u64, total: u64) {
        self.0.bytes.store(bytes, Ordering::Relaxed);
        self.0.total.store(total, Ordering::Relaxed);
    }

    /// Sets how many rows are done.
    pub fn set_rows(&self, rows: u64) {
        self.0.rows.store(rows, Ordering::Relaxed);
    }
}

/// The end that JavaScript reads.
#[napi]
#[derive(Default)]
pub struct TaskProgress(ProgressWriter);

#[napi]
impl TaskProgress {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes that are done.
    #[napi(getter)]
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.0.0.bytes.load(Ordering::Relaxed) as f64
    }

    /// All bytes; zero before the task has begun.
    #[napi(getter)]
    #[must_use]
    pub fn total(&self) -> f64 {
        self.0.0.total.load(Ordering::Relaxed) as f64
    }

    /// The rows that are done; zero where the task does not count them.
    #[napi(getter)]
    #[must_use]
    pub fn rows(&self) -> f64 {
        self.0.0.rows.load(Ordering::Relaxed) as f64
    }
}

impl From<Option<&TaskProgress>> for ProgressWriter {
    fn from(progress: Option<&TaskProgress>) -> Self {
        progress.map(|progress| progress.0.clone()).unwrap_or_default()
    }
}
