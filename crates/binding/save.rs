//! Glue of `saveFile`: tasks write a file beside the one it replaces. `src/jsonl/save.ts` calls it.

use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{AsyncTask, ClassInstance};
use napi_derive::napi;
use offloop_jsonl::FileSaver;
use offloop_memory::recycle;

use crate::failure::Failure;
use crate::json::PrintJob;
use crate::lock::lock;
use crate::repair::DurabilityName;
use crate::source::{InputBytes, InputChunk};
use crate::stop::{Flag, Stop};
use crate::tape::{Lexicon, TapeParts};
use crate::task::{PoolTask, Work, launch};

/// A file that is written beside the one it replaces.
#[napi]
pub struct SavedFile(SharedSaver);

/// Locked by one task at a time, and by `end`.
type SharedSaver = Arc<Mutex<FileSaver>>;

#[napi]
impl SavedFile {
    #[napi(constructor)]
    #[must_use]
    pub fn new(path: String, mode: Option<u32>, durability: DurabilityName) -> Self {
        let saver = FileSaver::new(path.into(), mode, durability.into());
        Self(Arc::new(Mutex::new(saver)))
    }

    /// Refuses a file of more than `max_bytes`; Infinity stands for no limit.
    #[napi]
    pub fn bound(&self, max_bytes: f64) {
        lock(&self.0).bound(max_bytes as u64);
    }

    /// Makes the next write the last one: it replaces the old file.
    #[napi]
    pub fn end(&self) {
        lock(&self.0).end();
    }
}

/// Captured values of a file.
#[napi(object, object_to_js = false)]
pub struct SaveTapeInput<'env> {
    pub tape: ClassInstance<'env, TapeParts>,
    pub lexicon: ClassInstance<'env, Lexicon>,
    pub layout: u32,
    pub gap: Option<String>,
    /// Bytes expected.
    pub size: f64,
}

/// Task that prints captured values and writes them.
pub struct SaveTape {
    saver: SharedSaver,
    job: PrintJob,
    size: usize,
}

impl Work for SaveTape {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let mut saver = lock(&self.saver);
        let (block, len) = self.job.print(self.size, flag).inspect_err(|_| saver.discard())?;
        let size = saver.write([block.get(..len).unwrap_or_default()], || flag.check())?;
        Ok(size.unwrap_or_default() as f64)
    }

    fn recycle(&mut self) {
        self.job.recycle();
    }
}

/// Writes captured values. Returns the size of the file after the last write, else 0.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn save_tape(
    file: &SavedFile,
    input: SaveTapeInput<'_>,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<SaveTape>> {
    let SaveTapeInput { tape, lexicon, layout, gap, size } = input;
    let job = PrintJob::new(&tape, &lexicon, layout, gap);
    launch(SaveTape { saver: Arc::clone(&file.0), job, size: size as usize }, stop)
}

/// Task that writes bytes.
pub struct SaveBytes {
    saver: SharedSaver,
    chunks: Vec<InputChunk>,
}

impl Work for SaveBytes {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let blocks = self.chunks.iter().map(InputChunk::bytes);
        let size = lock(&self.saver).write(blocks, || flag.check())?;
        Ok(size.unwrap_or_default() as f64)
    }

    fn recycle(&mut self) {
        recycle(&mut self.chunks);
    }
}

/// Writes all of `source`. Returns the size of the file after the last write, else 0.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn save_bytes(
    file: &SavedFile,
    source: &InputBytes,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<SaveBytes>> {
    launch(SaveBytes { saver: Arc::clone(&file.0), chunks: source.drain() }, stop)
}

/// Task that removes the draft of a file.
pub struct DropSaved(SharedSaver);

impl Work for DropSaved {
    type Done = f64;

    fn run(&mut self, _flag: &Flag) -> Result<f64, Failure> {
        lock(&self.0).discard();
        Ok(0.0)
    }
}

/// Removes the draft of a file that is not to be.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn drop_saved(file: &SavedFile) -> AsyncTask<PoolTask<DropSaved>> {
    launch(DropSaved(Arc::clone(&file.0)), None)
}
