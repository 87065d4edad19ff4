//! Copies an input to a result: `src/http` does it for bodies that are wanted as bytes.

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use offloop_memory::{join_chunks, recycle};

use crate::failure::Failure;
use crate::memory::PinnedBuffer;
use crate::source::{InputBytes, InputChunk};
use crate::stop::{Flag, Stop};
use crate::task::{PoolTask, Work, launch};

/// Copies an input to `out`, which has its size, in a task; returns the size.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn copy_input(
    source: &InputBytes,
    #[napi(ts_arg_type = "Uint8Array")] out: PinnedBuffer,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<CopyInput>> {
    launch(CopyInput(source.drain(), out), stop)
}

/// Work of `copyInput`.
pub struct CopyInput(Vec<InputChunk>, PinnedBuffer);

impl Work for CopyInput {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        join_chunks(&self.0, self.1.result(), || flag.check())?;
        Ok(self.1.len() as f64)
    }

    fn recycle(&mut self) {
        recycle(&mut self.0);
    }
}
