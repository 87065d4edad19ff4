//! Glue of `createBatcher`: prints pages of items and joins their slices to bodies. `src/kit/batch` calls it.

use std::cell::RefCell;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{AsyncTask, ClassInstance, Either, Uint8Array};
use napi_derive::napi;
use offloop_json::{Malformed, join, part};
use offloop_jsonl::EndsWriter;
use offloop_memory::Block;

use crate::failure::Failure;
use crate::json::PrintJob;
use crate::lock::lock;
use crate::memory::PinnedBuffer;
use crate::stop::Flag;
use crate::tape::{Lexicon, TapeParts};
use crate::task::{PoolTask, Work, at_once, launch};

/// The JSON of a page's items, each followed by a comma, in recycled memory.
#[napi]
#[derive(Default)]
pub struct PrintedPage(SharedPage);

/// `None` before the page is printed and after it is released.
type SharedPage = Arc<Mutex<Option<Arc<Block>>>>;

#[napi]
impl PrintedPage {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the memory back, once no task reads it.
    #[napi]
    pub fn release(&self) {
        let block = lock(&self.0).take();
        drop(block);
    }
}

/// Slices of pages in the order of a body.
#[napi]
#[derive(Default)]
pub struct Pieces(RefCell<Vec<PageSlice>>);

struct PageSlice {
    block: Arc<Block>,
    start: usize,
    end: usize,
}

#[napi]
impl Pieces {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the bytes of a page from `start` to `end`.
    #[napi]
    pub fn add(&self, page: &PrintedPage, start: f64, end: f64) {
        let Some(block) = lock(&page.0).clone() else { return };
        let slice = PageSlice { block, start: start as usize, end: end as usize };
        self.0.borrow_mut().push(slice);
    }
}

/// Captured items of a page.
#[napi(object, object_to_js = false)]
pub struct PrintPageInput<'env> {
    pub page: ClassInstance<'env, PrintedPage>,
    pub tape: ClassInstance<'env, TapeParts>,
    pub lexicon: ClassInstance<'env, Lexicon>,
    pub layout: u32,
    /// Bytes expected.
    pub size: f64,
    /// Memory for the end of each item: 8 bytes an item.
    pub ends: Uint8Array,
}

/// Task that prints a page and writes where its items end.
pub struct PrintPage {
    job: PrintJob,
    size: usize,
    ends: PinnedBuffer,
    page: SharedPage,
}

impl Work for PrintPage {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let (mut block, len) = self.job.print(self.size, flag)?;
        let mut ends = EndsWriter::new(self.ends.bytes_mut());
        part(block.get_mut(..len).ok_or(Malformed)?, |end| ends.push(end));
        *lock(&self.page) = Some(Arc::new(block));
        Ok(len as f64)
    }

    fn recycle(&mut self) {
        self.job.recycle();
    }
}

impl From<PrintPageInput<'_>> for PrintPage {
    fn from(input: PrintPageInput<'_>) -> Self {
        let PrintPageInput { page, tape, lexicon, layout, size, ends } = input;
        let job = PrintJob::sharing(&tape, &lexicon, layout);
        Self { job, size: size as usize, ends: PinnedBuffer::new(ends), page: Arc::clone(&page.0) }
    }
}

/// Prints a page in a task. Returns its size in bytes.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn print_page(input: PrintPageInput<'_>) -> AsyncTask<PoolTask<PrintPage>> {
    launch(input.into(), None)
}

/// Prints a page on the JS thread. Returns its size in bytes.
#[napi]
pub fn print_page_sync(input: PrintPageInput<'_>) -> Either<f64, Failure> {
    at_once(|| run_now(PrintPage::from(input)))
}

/// Task that joins slices of pages.
pub struct JoinPieces {
    slices: Vec<PageSlice>,
    out: PinnedBuffer,
    offset: usize,
}

impl JoinPieces {
    /// Takes the slices of `pieces`.
    fn new(pieces: &Pieces, out: PinnedBuffer, offset: u32) -> Self {
        Self { slices: pieces.0.take(), out, offset: offset as usize }
    }
}

impl Work for JoinPieces {
    type Done = f64;

    fn run(&mut self, _flag: &Flag) -> Result<f64, Failure> {
        let out = self.out.result();
        let slices = self.slices.iter().map(|slice| slice.block.get(slice.start..slice.end));
        let slices = slices.collect::<Option<Vec<_>>>().ok_or(Malformed)?;
        Ok(join(slices, out.get_mut(self.offset..).ok_or(Malformed)?) as f64)
    }

    fn recycle(&mut self) {
        self.slices.clear();
    }
}

/// Joins pieces in a task: writes them to `out`, from `offset` on, with a comma between two of them.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn join_pieces(
    pieces: &Pieces,
    #[napi(ts_arg_type = "Uint8Array")] out: PinnedBuffer,
    offset: u32,
) -> AsyncTask<PoolTask<JoinPieces>> {
    launch(JoinPieces::new(pieces, out, offset), None)
}

/// Joins pieces on the JS thread.
#[napi]
pub fn join_pieces_sync(
    pieces: &Pieces,
    #[napi(ts_arg_type = "Uint8Array")] out: PinnedBuffer,
    offset: u32,
) -> Either<f64, Failure> {
    at_once(|| run_now(JoinPieces::new(pieces, out, offset)))
}

fn run_now<W: Work>(mut work: W) -> Result<W::Done, Failure> {
    let done = work.run(&Flag::default());
    work.recycle();
    done
}
