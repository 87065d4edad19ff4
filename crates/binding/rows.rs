use std::fs::File;
use std::mem;
use std::path::Path;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{AsyncTask, Uint8Array};
use napi_derive::napi;
use offloop_jsonl::{
    Census, ExamineError, Fields, FileError, Place, Rows, Told, Wanted, last, open_to_read,
};

use crate::body::WrongPointer;
use crate::failure::{Cause, Failure};
use crate::lock::lock;
use crate::memory::Held;
use crate::progress::{Progress, Reached};
use crate::stop::{Flag, Stop};
use crate::task::{Job, Work, launch};

/// Rows from this size on have memory of their own, which can be transferred.
const OWN_MEMORY: usize = 64 << 10;
/// Values of this size are parsed before more is read, so that no batch holds the loop for long.
const LARGEST_TEXT: usize = 256 << 10;
/// Units of a string, at most: V8's limit.
const LONGEST_STRING: usize = (1 << 29) - 24;
/// What is read at once: little enough to stay in the cache until it was looked at.
const LARGEST_BLOCK: usize = 512 << 10;
/// What is read at once from the end.
const LAST_BLOCK: usize = 256 << 10;

/// The rows of a file, read a batch at a time.
#[napi]
pub struct RowsReader {
    state: Shared,
    wrong: Option<WrongPointer>,
}

type Shared = Arc<Mutex<State>>;

struct State {
    path: String,
    from: u64,
    last: Option<usize>,
    block: usize,
    /// Bytes that a task reads, of values.
    batch: u64,
    wanted: Wanted,
    /// Once it was opened.
    reading: Option<(File, Rows)>,
    places: Vec<Place>,
}

#[napi]
impl RowsReader {
    /// Of the file at `path`: from `from` on, the `last` alone; the values of `fields`, or bytes; some `block` bytes at a time.
    #[napi(constructor)]
    #[must_use]
    pub fn new(
        path: String,
        from: f64,
        last: Option<f64>,
        fields: Option<Vec<String>>,
        block: f64,
    ) -> Self {
        let fields = fields.map(|fields| {
            let pointers: Vec<_> = fields.into_iter().map(String::into_bytes).collect();
            Fields::new(&pointers)
        });
        let bytes = Wanted::Bytes { own: OWN_MEMORY };
        let (wanted, wrong) = match fields {
            None => (bytes, None),
            Some(Ok(fields)) => (Wanted::Fields(fields), None),
            Some(Err((index, error))) => {
                (bytes, Some(WrongPointer { index: index as u32, reason: error.to_string() }))
            }
        };
        let state = State {
            path,
            from: from as u64,
            last: last.map(|last| last as usize),
            block: (block as usize).min(LARGEST_BLOCK),
            batch: block as u64,
            wanted,
            reading: None,
            places: Vec::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), wrong }
    }

    /// The first of the fields that is no pointer, if there is one.
    #[napi(getter)]
    #[must_use]
    pub fn wrong_pointer(&self) -> Option<WrongPointer> {
        self.wrong.clone()
    }

    #[napi]
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.reading = None;
        state.places = Vec::new();
    }
}

impl State {
    /// The next batch as JSON text; an empty text at the end.
    fn next(&mut self, flag: &Flag) -> Result<String, Failure> {
        let failed = |error: BatchError| error.failure(&self.path);
        let (file, rows) = match &mut self.reading {
            Some(reading) => reading,
            None => self.reading.insert(open(&self.path, self.from, self.last, self.block, flag)?),
        };
        let mut told = Told::new(&self.wanted);
        let start = rows.position();
        // Block by block, as each is still in the cache when it is looked at. Bytes are needed until they are copied.
        let most = if matches!(self.wanted, Wanted::Fields(_)) { self.batch } else { 0 };
        loop {
            let poll = || flag.check().map_err(BatchError::Stopped);
            let has_rows = rows.batch(file, &mut told, poll).map_err(failed)?;
            if !has_rows && rows.position() == start {
                return Ok(String::new());
            }
            if !has_rows || most <= rows.position() - start || LARGEST_TEXT <= told.size() {
                break;
            }
        }
        let (text, places) = told.finish(rows.position(), rows.end());
        self.places = places;
        if LONGEST_STRING < text.len() && LONGEST_STRING < text.encode_utf16().count() {
            let message = format!(
                "a row from byte {start} on is longer than a string can be: '{}'",
                self.path
            );
            let path = Some(self.path.clone());
            let offset = Some(start as f64);
            return Err(Failure { offset, path, ..Failure::new(Cause::TooLarge, message) });
        }
        Ok(text)
    }
}

fn open(
    path: &str,
    from: u64,
    count: Option<usize>,
    block: usize,
    flag: &Flag,
) -> Result<(File, Rows), Failure> {
    let (file, size) = open_to_read(Path::new(path))?;
    let rows = match count {
        None => Rows::new(from, size, block),
        Some(count) => {
            let poll = || flag.check().map_err(BatchError::Stopped);
            let found = last(&file, from, size, count, LAST_BLOCK, poll);
            let (start, skipped) = found.map_err(|error| error.failure(path))?;
            Rows::new(start, size, block).skipping(skipped)
        }
    };
    Ok((file, rows))
}

enum BatchError {
    Reading(ExamineError),
    Stopped(Failure),
}

impl From<ExamineError> for BatchError {
    fn from(error: ExamineError) -> Self {
        Self::Reading(error)
    }
}

impl BatchError {
    fn failure(self, path: &str) -> Failure {
        match self {
            Self::Stopped(failure) => failure,
            Self::Reading(ExamineError::Read(source)) => {
                FileError { syscall: "read", path: path.into(), source }.into()
            }
            Self::Reading(error) => Failure::new(Cause::Internal, error.to_string()),
        }
    }
}

/// Reads the next rows.
pub struct NextRows(Shared);

impl Work for NextRows {
    type Done = String;

    fn run(&mut self, flag: &Flag) -> Result<String, Failure> {
        lock(&self.0).next(flag)
    }

    fn recycle(&mut self) {}
}

/// Copies the bytes of the rows of a batch to the memory made for them.
pub struct CopyRows {
    state: Shared,
    memories: Vec<Held>,
}

impl Work for CopyRows {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let state = &mut *lock(&self.state);
        let places = mem::take(&mut state.places);
        let Some((_, rows)) = &state.reading else { return Ok(0.0) };
        for Place { memory, start, from } in places {
            flag.check()?;
            let bytes = rows.memory().get(from).unwrap_or_default();
            let memory = self.memories.get_mut(memory).map(Held::bytes_mut).unwrap_or_default();
            if let Some(place) = memory.get_mut(start..start + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        }
        Ok(0.0)
    }

    fn recycle(&mut self) {}
}

/// The next batch, as the JSON that `Told` writes; an empty text at the end.
#[napi(ts_return_type = "Promise<string | Failure>")]
pub fn next_rows(reader: &RowsReader, stop: Option<&Stop>) -> AsyncTask<Job<NextRows>> {
    launch(NextRows(Arc::clone(&reader.state)), stop)
}

/// Fills the memory whose sizes the last batch told.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn copy_rows(
    reader: &RowsReader,
    memories: Vec<Uint8Array>,
    stop: Option<&Stop>,
) -> AsyncTask<Job<CopyRows>> {
    let memories = memories.into_iter().map(Held::new).collect();
    launch(CopyRows { state: Arc::clone(&reader.state), memories }, stop)
}

/// Counts the rows of a file, the bad ones by their causes, and the keys at their top.
pub struct CountRows {
    path: String,
    reached: Reached,
}

impl Work for CountRows {
    type Done = RowsCounted;

    fn run(&mut self, flag: &Flag) -> Result<RowsCounted, Failure> {
        let (file, size) = open_to_read(Path::new(&self.path))?;
        let mut rows = Rows::new(0, size, COUNT_BLOCK);
        let mut census = Census::default();
        let poll = || flag.check().map_err(BatchError::Stopped);
        while rows.batch(&file, &mut census, poll).map_err(|error| error.failure(&self.path))? {
            self.reached.set(rows.position(), rows.end());
            self.reached.set_rows(census.rows);
        }
        let (offset, length) = census.biggest.unzip();
        let named = |(key, count): (&[u8], u64)| (String::from_utf8_lossy(key).into_owned(), count);
        let fields = census.fields.iter().map(|(key, &count)| named((key, count)));
        let bad = census.bad.iter().map(|(name, &count)| named((name.as_bytes(), count)));
        Ok(RowsCounted {
            bytes: rows.end() as f64,
            rows: census.rows as f64,
            biggest_offset: offset.map(|offset| offset as f64),
            biggest_length: length.map(|length| length as f64),
            bad: bad.map(|(name, count)| Counted { name, count: count as f64 }).collect(),
            fields: fields.map(|(name, count)| Counted { name, count: count as f64 }).collect(),
        })
    }

    fn recycle(&mut self) {}
}

#[napi(object, object_from_js = false)]
pub struct RowsCounted {
    pub bytes: f64,
    pub rows: f64,
    pub biggest_offset: Option<f64>,
    pub biggest_length: Option<f64>,
    pub bad: Vec<Counted>,
    pub fields: Vec<Counted>,
}

#[napi(object, object_from_js = false)]
pub struct Counted {
    pub name: String,
    pub count: f64,
}

/// What is read at once to be counted.
const COUNT_BLOCK: usize = 1 << 20;

/// Counts what a file holds.
#[napi(ts_return_type = "Promise<RowsCounted | Failure>")]
pub fn count_rows(
    path: String,
    progress: Option<&Progress>,
    stop: Option<&Stop>,
) -> AsyncTask<Job<CountRows>> {
    launch(CountRows { path, reached: progress.into() }, stop)
}
