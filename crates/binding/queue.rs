//! Prints the full segments of a tape while the rest is captured. `src/capture/segment-printer.ts` calls it.

use std::result::Result;
use std::sync::Arc;

use napi::bindgen_prelude::{AsyncTask, Either};
use napi_derive::napi;
use offloop_json::SegmentJob;

use crate::failure::Failure;
use crate::memory::PinnedBuffer;
use crate::result::TaskWorkspace;
use crate::stop::{Flag, Stop};
use crate::tape::{Lexicon, SegmentQueue, TapeParts};
use crate::task::{PoolTask, Work, at_once, launch};

/// The work of `printSegments`.
pub struct PrintSegments {
    queue: Arc<SegmentQueue>,
    lexicon: Arc<offloop_json::Lexicon>,
    has_rows: bool,
    /// The segment in work. After a panic, the JS thread drops its memory.
    job: Option<SegmentJob<PinnedBuffer>>,
}

impl PrintSegments {
    fn new(tape: &TapeParts, lexicon: &Lexicon, has_rows: bool) -> Self {
        let queue = Arc::clone(tape.queue.get_or_init(Arc::default));
        Self { queue, lexicon: Arc::clone(&lexicon.0), has_rows, job: None }
    }
}

impl Work for PrintSegments {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let Self { queue, lexicon, has_rows, job } = self;
        Ok(queue.print(job, lexicon, *has_rows, &TaskWorkspace(flag))? as f64)
    }

    fn recycle(&mut self) {
        self.job.iter_mut().for_each(SegmentJob::recycle);
    }
}

/// Prints the queued segments of a tape until there is none.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn print_segments(
    tape: &TapeParts,
    lexicon: &Lexicon,
    has_rows: bool,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<PrintSegments>> {
    launch(PrintSegments::new(tape, lexicon, has_rows), stop)
}

/// Prints segments as `printSegments` does, on the JS thread.
#[napi]
pub fn print_segments_sync(
    tape: &TapeParts,
    lexicon: &Lexicon,
    has_rows: bool,
) -> Either<f64, Failure> {
    let mut work = PrintSegments::new(tape, lexicon, has_rows);
    at_once(|| work.run(&Flag::default()))
}
