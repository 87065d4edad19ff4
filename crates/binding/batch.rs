use std::cell::RefCell;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{AsyncTask, Either, Uint8Array};
use napi_derive::napi;
use offloop_json::{Malformed, join, part};
use offloop_memory::Block;

use crate::failure::Failure;
use crate::json::{Lexicon, Sheet, TapeParts};
use crate::lock::lock;
use crate::memory::Held;
use crate::result::prepare;
use crate::stop::Flag;
use crate::task::{Job, Work, at_once, launch};

/// The JSON of items, each with a comma behind it, in recycled memory.
#[napi]
#[derive(Default)]
pub struct PrintedPage(Printed);

type Printed = Arc<Mutex<Option<Arc<Block>>>>;

#[napi]
impl PrintedPage {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives its memory back, once no task reads it.
    #[napi]
    pub fn release(&self) {
        let block = lock(&self.0).take();
        drop(block);
    }
}

/// Parts of pages, one behind the other.
#[napi]
#[derive(Default)]
pub struct Pieces(RefCell<Vec<Piece>>);

struct Piece {
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

    /// The bytes of a page from `start` to `end`.
    #[napi]
    pub fn add(&self, page: &PrintedPage, start: f64, end: f64) {
        let Some(block) = lock(&page.0).clone() else { return };
        let piece = Piece { block, start: start as usize, end: end as usize };
        self.0.borrow_mut().push(piece);
    }
}

/// Prints a page, and tells where its items end.
pub struct PrintPage {
    sheet: Sheet,
    size: usize,
    ends: Held,
    page: Printed,
}

impl Work for PrintPage {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let (mut block, len) = self.sheet.print(self.size, flag)?;
        let mut ends = self.ends.bytes_mut().chunks_exact_mut(size_of::<f64>());
        part(block.get_mut(..len).ok_or(Malformed)?, |end| {
            if let Some(place) = ends.next() {
                place.copy_from_slice(&(end as f64).to_ne_bytes());
            }
        });
        *lock(&self.page) = Some(Arc::new(block));
        Ok(len as f64)
    }

    fn recycle(&mut self) {
        self.sheet.recycle();
    }
}

fn print_of(
    page: &PrintedPage,
    tape: &TapeParts,
    lexicon: &Lexicon,
    layout: u32,
    size: f64,
    ends: Uint8Array,
) -> PrintPage {
    PrintPage {
        sheet: Sheet::sharing(tape, lexicon, layout),
        size: size as usize,
        ends: Held::new(ends),
        page: Arc::clone(&page.0),
    }
}

/// Prints rows to a page, which some `size` bytes are expected of, and tells how many they are; where each ends is written to
/// `ends`, a double for each.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn print_page(
    page: &PrintedPage,
    tape: &TapeParts,
    lexicon: &Lexicon,
    layout: u32,
    size: f64,
    ends: Uint8Array,
) -> AsyncTask<Job<PrintPage>> {
    launch(print_of(page, tape, lexicon, layout, size, ends), None)
}

/// The same at once.
#[napi]
pub fn print_page_sync(
    page: &PrintedPage,
    tape: &TapeParts,
    lexicon: &Lexicon,
    layout: u32,
    size: f64,
    ends: Uint8Array,
) -> Either<f64, Failure> {
    let mut work = print_of(page, tape, lexicon, layout, size, ends);
    at_once(|| {
        let printed = work.run(&Flag::default());
        work.recycle();
        printed
    })
}

/// Joins pieces of pages.
pub struct JoinPieces {
    pieces: Vec<Piece>,
    out: Held,
    offset: usize,
}

impl Work for JoinPieces {
    type Done = f64;

    fn run(&mut self, _flag: &Flag) -> Result<f64, Failure> {
        let out = self.out.bytes_mut();
        prepare(out);
        let pieces = self.pieces.iter().map(|Piece { block, start, end }| block.get(*start..*end));
        let pieces = pieces.collect::<Option<Vec<_>>>().ok_or(Malformed)?;
        Ok(join(pieces, out.get_mut(self.offset..).ok_or(Malformed)?) as f64)
    }

    fn recycle(&mut self) {
        self.pieces.clear();
    }
}

/// Writes the pieces, which it takes, to `out`, from `offset` on, with a comma between two of them.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn join_pieces(pieces: &Pieces, out: Uint8Array, offset: u32) -> AsyncTask<Job<JoinPieces>> {
    let offset = offset as usize;
    launch(JoinPieces { pieces: pieces.0.take(), out: Held::new(out), offset }, None)
}

/// The same at once.
#[napi]
pub fn join_pieces_sync(pieces: &Pieces, out: Uint8Array, offset: u32) -> Either<f64, Failure> {
    let offset = offset as usize;
    let mut work = JoinPieces { pieces: pieces.0.take(), out: Held::new(out), offset };
    at_once(|| work.run(&Flag::default()))
}
