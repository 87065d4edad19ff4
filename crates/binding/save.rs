use std::path::Path;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use offloop_jsonl::{Draft, Durability};

use crate::failure::Failure;
use crate::json::{Lexicon, Sheet, TapeParts};
use crate::jsonl::FileDurability;
use crate::lock::lock;
use crate::source::{Segment, Source, recycle};
use crate::stop::{Flag, Stop};
use crate::task::{Job, Work, launch};

/// A file that is written beside the one it is to replace.
#[napi]
pub struct SavedFile(Arc<Mutex<State>>);

struct State {
    path: String,
    mode: Option<u32>,
    durability: Durability,
    /// Once something was written.
    draft: Option<Draft>,
    is_last: bool,
}

#[napi]
impl SavedFile {
    #[napi(constructor)]
    #[must_use]
    pub fn new(path: String, mode: Option<u32>, durability: FileDurability) -> Self {
        let durability = durability.into();
        Self(Arc::new(Mutex::new(State { path, mode, durability, draft: None, is_last: false })))
    }

    /// With what is written next, the file takes its place.
    #[napi]
    pub fn end(&self) {
        lock(&self.0).is_last = true;
    }
}

/// Bytes written between two looks at the flag.
const PIECE: usize = 4 << 20;

impl State {
    /// Where that fails, nothing is left of it.
    fn write<'b>(
        &mut self,
        blocks: impl IntoIterator<Item = &'b [u8]>,
        flag: &Flag,
    ) -> Result<f64, Failure> {
        let mut draft = match self.draft.take() {
            Some(draft) => draft,
            None => Draft::create(Path::new(&self.path), self.mode, self.durability)?,
        };
        for piece in blocks.into_iter().flat_map(|block| block.chunks(PIECE)) {
            flag.check()?;
            draft.write(piece)?;
        }
        flag.check()?;
        if self.is_last {
            return Ok(draft.commit()? as f64);
        }
        self.draft = Some(draft);
        Ok(0.0)
    }
}

/// Writes what was captured.
pub struct SaveSheet {
    state: Arc<Mutex<State>>,
    sheet: Sheet,
    size: usize,
}

impl Work for SaveSheet {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let mut state = lock(&self.state);
        let (block, len) = self.sheet.print(self.size, flag).inspect_err(|_| state.draft = None)?;
        state.write([block.get(..len).unwrap_or_default()], flag)
    }

    fn recycle(&mut self) {
        self.sheet.recycle();
    }
}

/// Writes what was captured, some `size` bytes. Tells how many the file has once it has taken its place.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn save_sheet(
    file: &SavedFile,
    tape: &TapeParts,
    lexicon: &Lexicon,
    layout: u32,
    gap: Option<String>,
    size: f64,
    stop: Option<&Stop>,
) -> AsyncTask<Job<SaveSheet>> {
    let sheet = Sheet::new(tape, lexicon, layout, gap);
    launch(SaveSheet { state: Arc::clone(&file.0), sheet, size: size as usize }, stop)
}

/// Writes bytes.
pub struct SaveBytes {
    state: Arc<Mutex<State>>,
    segments: Vec<Segment>,
}

impl Work for SaveBytes {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        lock(&self.state).write(self.segments.iter().map(Segment::bytes), flag)
    }

    fn recycle(&mut self) {
        recycle(&mut self.segments);
    }
}

/// Writes all of `source`. Tells how many bytes the file has once it has taken its place.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn save_bytes(
    file: &SavedFile,
    source: &Source,
    stop: Option<&Stop>,
) -> AsyncTask<Job<SaveBytes>> {
    launch(SaveBytes { state: Arc::clone(&file.0), segments: source.drain() }, stop)
}

/// Removes what is written.
pub struct DropSaved(Arc<Mutex<State>>);

impl Work for DropSaved {
    type Done = f64;

    fn run(&mut self, _flag: &Flag) -> Result<f64, Failure> {
        drop(lock(&self.0).draft.take());
        Ok(0.0)
    }

    fn recycle(&mut self) {}
}

/// Removes what is written of a file that is not to be.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn drop_saved(file: &SavedFile) -> AsyncTask<Job<DropSaved>> {
    launch(DropSaved(Arc::clone(&file.0)), None)
}
