//! Joins the chunks of an input: `body` scans bodies in one piece, and `src/http` copies them to results.

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use offloop_body::join_chunks;
use offloop_memory::Block;

use crate::failure::Failure;
use crate::memory::{PinnedBuffer, RECYCLER};
use crate::source::{InputBytes, InputChunk, recycle};
use crate::stop::{Flag, Stop};
use crate::task::{PoolTask, Work, launch};

/// Bytes of an input, in one piece once they are joined.
#[derive(Default)]
pub struct JoinedInput {
    /// The input. Several chunks are kept until the JS thread may release them.
    chunks: Vec<InputChunk>,
    joined: Option<(Block, usize)>,
}

impl JoinedInput {
    pub fn new(chunks: Vec<InputChunk>) -> Self {
        Self { chunks, joined: None }
    }

    /// Copies the chunks to one block, unless there is one chunk that can be written to.
    pub fn join(&mut self, flag: &Flag) -> Result<(), Failure> {
        if let [InputChunk::Copied { .. } | InputChunk::Taken(_)] | [] = self.chunks.as_slice() {
            return Ok(());
        }
        let len = self.chunks.iter().map(InputChunk::len).sum();
        let mut block = RECYCLER.acquire(len)?;
        join_chunks(self.chunks.iter().map(InputChunk::bytes), &mut block, || flag.check())?;
        self.joined = Some((block, len));
        Ok(())
    }

    /// Returns whether JavaScript gets the memory back: it was taken from the caller, and holds nothing else.
    pub fn is_taken(&self) -> bool {
        matches!(self.chunks.as_slice(), [InputChunk::Taken(_)])
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match (&mut self.joined, self.chunks.as_mut_slice()) {
            (Some((block, len)), _) => block.get_mut(..*len).unwrap_or_default(),
            (None, [InputChunk::Copied { block, len }]) => {
                block.get_mut(..*len).unwrap_or_default()
            }
            (None, [InputChunk::Taken(buffer)]) => buffer.bytes_mut(),
            _ => &mut [],
        }
    }

    /// Gives recycled memory back. The JS thread releases the rest.
    pub fn recycle(&mut self) {
        self.joined = None;
        recycle(&mut self.chunks);
    }
}

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
        join_chunks(self.0.iter().map(InputChunk::bytes), self.1.result(), || flag.check())?;
        Ok(self.1.len() as f64)
    }

    fn recycle(&mut self) {
        recycle(&mut self.0);
    }
}
