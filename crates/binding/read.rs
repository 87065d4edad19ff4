//! Glue of `readJsonl` and `offloop scan`: tasks read batches of rows. `src/jsonl/read.ts` and `src/cli/cli.ts` call it.

use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use offloop_jsonl::{
    BatchReadError, BatchReader, Fields, Interrupt, ReadSettings, RowSelection, ScanSettings,
    describe_rows,
};

use crate::body::WrongPointer;
use crate::failure::{Failure, FailureCause};
use crate::lock::lock;
use crate::memory::PinnedBuffer;
use crate::progress::{ProgressWriter, TaskProgress};
use crate::stop::{Flag, Stop};
use crate::task::{PoolTask, Work, launch};

/// Rows from this size on get memory of their own, which JavaScript can transfer.
const OWN_MEMORY: usize = 64 << 10;
/// UTF-16 units of the longest string that V8 makes.
const LONGEST_STRING: usize = (1 << 29) - 24;

/// The rows of a file, read one batch at a time.
#[napi]
pub struct RowsReader {
    path: String,
    reader: SharedReader,
    wrong: Option<WrongPointer>,
}

/// Locked by one task at a time, and by `close`.
type SharedReader = Arc<Mutex<BatchReader>>;

/// Arguments of a [`RowsReader`].
#[napi(object, object_to_js = false)]
pub struct ReadInput {
    pub path: String,
    /// Offset to start at.
    pub from: f64,
    /// Read only this many rows from the end.
    pub last: Option<f64>,
    /// Most bytes of a row; Infinity means any.
    pub longest_row: f64,
    /// JSON Pointers of the values to pick; without them, rows are read as bytes.
    pub fields: Option<Vec<String>>,
    /// Whether rows that `JSON.parse` refuses are rewritten as JSON.
    pub is_json: bool,
    /// Bytes of the file in a batch.
    pub batch_size: f64,
}

#[napi]
impl RowsReader {
    #[napi(constructor)]
    #[must_use]
    pub fn new(input: ReadInput) -> Self {
        let (selection, wrong) = selection_of(input.fields, input.is_json);
        let settings = ReadSettings {
            from: input.from as u64,
            last: input.last.map(|last| last as usize),
            longest_row: input.longest_row as u64,
            batch_size: input.batch_size as u64,
            longest_text: LONGEST_STRING,
            selection,
        };
        let reader = BatchReader::new(input.path.clone().into(), settings);
        Self { path: input.path, reader: Arc::new(Mutex::new(reader)), wrong }
    }

    /// The first of the fields that is not a valid JSON Pointer.
    #[napi(getter)]
    #[must_use]
    pub fn wrong_pointer(&self) -> Option<WrongPointer> {
        self.wrong.clone()
    }

    /// Closes the file.
    #[napi]
    pub fn close(&self) {
        lock(&self.reader).close();
    }
}

fn selection_of(
    fields: Option<Vec<String>>,
    is_json: bool,
) -> (RowSelection, Option<WrongPointer>) {
    let own = OWN_MEMORY;
    let bytes = if is_json { RowSelection::Json { own } } else { RowSelection::Bytes { own } };
    let Some(fields) = fields else { return (bytes, None) };
    let pointers: Vec<_> = fields.into_iter().map(String::into_bytes).collect();
    match Fields::new(&pointers) {
        Ok(fields) => (RowSelection::Fields(fields), None),
        Err((index, error)) => {
            (bytes, Some(WrongPointer { index: index as u32, reason: error.to_string() }))
        }
    }
}

fn failure_of(error: BatchReadError, path: &str) -> Failure {
    let message = error.to_string();
    match error {
        BatchReadError::File(error) => error.into(),
        BatchReadError::Stopped => Failure::new(FailureCause::Aborted, message),
        BatchReadError::Internal(_) => Failure::new(FailureCause::Internal, message),
        BatchReadError::TooLong { offset } => Failure {
            offset: Some(offset as f64),
            path: Some(path.to_owned()),
            ..Failure::new(FailureCause::TooLarge, format!("{message}: '{path}'"))
        },
    }
}

/// Task that reads the next rows.
pub struct NextRows {
    path: String,
    reader: SharedReader,
}

impl Work for NextRows {
    type Done = String;

    fn run(&mut self, flag: &Flag) -> Result<String, Failure> {
        let poll = || flag.check().map_err(|_| Interrupt);
        let text = lock(&self.reader).next_batch(&poll);
        text.map(Option::unwrap_or_default).map_err(|error| failure_of(error, &self.path))
    }
}

/// Task that copies the rows of a batch to the memory made for them.
pub struct CopyRows {
    reader: SharedReader,
    memories: Vec<PinnedBuffer>,
}

impl Work for CopyRows {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let mut memories: Vec<_> = self.memories.iter_mut().map(PinnedBuffer::result).collect();
        let poll = || flag.check().map_err(|_| Interrupt);
        let copied = lock(&self.reader).copy_rows(&mut memories, &poll);
        copied.map_err(|Interrupt| Failure::new(FailureCause::Aborted, "aborted"))?;
        Ok(0.0)
    }
}

/// Reads the next batch as the JSON text that `BatchWriter` makes; an empty text at the end of the file.
#[napi(ts_return_type = "Promise<string | Failure>")]
pub fn next_rows(reader: &RowsReader, stop: Option<&Stop>) -> AsyncTask<PoolTask<NextRows>> {
    let work = NextRows { path: reader.path.clone(), reader: Arc::clone(&reader.reader) };
    launch(work, stop)
}

/// Copies the rows of the last batch to `memories`, whose sizes its text lists.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn copy_rows(
    reader: &RowsReader,
    #[napi(ts_arg_type = "Uint8Array[]")] memories: Vec<PinnedBuffer>,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<CopyRows>> {
    launch(CopyRows { reader: Arc::clone(&reader.reader), memories }, stop)
}

/// Task that counts the rows of a file, its bad rows by cause, and its keys or the values of all fields.
pub struct CountRows {
    path: String,
    has_stats: bool,
    reached: ProgressWriter,
}

impl Work for CountRows {
    type Done = String;

    fn run(&mut self, flag: &Flag) -> Result<String, Failure> {
        let poll = || flag.check().map_err(|_| Interrupt);
        let settings = ScanSettings { path: self.path.clone().into(), has_stats: self.has_stats };
        let counts = describe_rows(&settings, &poll, |bytes, total, rows| {
            self.reached.set(bytes, total);
            self.reached.set_rows(rows);
        });
        counts.map_err(|error| failure_of(error, &self.path))
    }
}

/// Counts the rows of the file at `path`. Resolves to JSON: see `Census::describe`, and `describe_rows` with statistics.
#[napi(js_name = "countRows", ts_return_type = "Promise<string | Failure>")]
pub fn count_rows_of(
    path: String,
    has_stats: bool,
    progress: Option<&TaskProgress>,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<CountRows>> {
    launch(CountRows { path, has_stats, reached: progress.into() }, stop)
}
