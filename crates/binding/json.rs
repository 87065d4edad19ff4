//! Prints tapes: in tasks, and on the JS thread for values that take less time than a task. `src/encode` calls it.

use std::result::Result;
use std::sync::Arc;

use napi::bindgen_prelude::{AsyncTask, Either};
use napi_derive::napi;
use offloop_json::{Malformed, PrintConfig, PrintFormat, Tape, layout, print, print_texts};
use offloop_memory::{Block, copy_pieces};

use crate::failure::{Failure, FailureCause};
use crate::memory::{PinnedBuffer, acquire};
use crate::result::{OutputBuffer, TaskWorkspace};
use crate::stop::{Flag, Stop};
use crate::tape::{Lexicon, Overflow, SegmentQueue, TapeMemory, TapeParts};
use crate::task::{PoolTask, Work, at_once, launch};

/// Bits of `PrintOptions.layout`. Without any, a tape becomes compact JSON with keys in the order of capture.
#[napi]
pub enum Layout {
    /// JSON Lines: raw JSON loses its line breaks.
    Rows = 1,
    SortedKeys = 2,
    /// Ends the JSON with a newline.
    Newline = 4,
    /// `MessagePack` instead of JSON.
    Msgpack = 8,
    /// Floats of 32 bits in `MessagePack`.
    Singles = 16,
    /// The SHA-256 of the JSON in hexadecimal digits, instead of the JSON.
    Digest = 32,
    /// The length of the JSON in decimal digits, instead of the JSON.
    Size = 64,
}

const _: () = assert!(
    Layout::Rows as u32 == layout::ROWS
        && Layout::SortedKeys as u32 == layout::SORTED_KEYS
        && Layout::Newline as u32 == layout::NEWLINE
        && Layout::Msgpack as u32 == layout::MSGPACK
        && Layout::Singles as u32 == layout::SINGLES
        && Layout::Digest as u32 == layout::DIGEST
        && Layout::Size as u32 == layout::SIZE
);

/// How a tape is printed.
#[napi(object, object_to_js = false)]
pub struct PrintOptions {
    /// Bits of [`Layout`].
    pub layout: u32,
    /// The white space of one level; undefined for compact JSON.
    #[napi(ts_type = "string | undefined")]
    pub gap: Option<String>,
    /// The most levels of nesting of `MessagePack`.
    #[napi(ts_type = "number | undefined")]
    pub max_depth: Option<u32>,
}

impl PrintOptions {
    fn config(&self, expected_size: usize) -> PrintConfig<'_> {
        let gap = self.gap.as_deref().map(str::as_bytes);
        let max_depth = self.max_depth.map_or(usize::MAX, |depth| depth as usize);
        let format = PrintFormat::of(self.layout, gap, max_depth);
        let has_newline = self.layout & layout::NEWLINE != 0;
        PrintConfig { format, has_newline, expected_size }
    }
}

/// A captured value and how it is printed.
pub struct PrintJob {
    memory: TapeMemory,
    /// The queue that has printed all segments, if there is one.
    queue: Option<Arc<SegmentQueue>>,
    lexicon: Arc<offloop_json::Lexicon>,
    settings: PrintOptions,
}

impl PrintJob {
    /// Takes the memory of `tape`.
    pub fn new(tape: &TapeParts, lexicon: &Lexicon, layout: u32, gap: Option<String>) -> Self {
        Self::with_settings(tape.take(), lexicon, PrintOptions { layout, gap, max_depth: None })
    }

    /// Takes the segments of `tape` only: the tape keeps its long strings, for rows that are captured again.
    pub fn sharing(tape: &TapeParts, lexicon: &Lexicon, layout: u32) -> Self {
        let settings = PrintOptions { layout, gap: None, max_depth: None };
        Self::with_settings(tape.take_segments(), lexicon, settings)
    }

    fn with_settings(memory: TapeMemory, lexicon: &Lexicon, settings: PrintOptions) -> Self {
        Self { memory, queue: None, lexicon: Arc::clone(&lexicon.0), settings }
    }

    /// Prints to recycled memory of `size` bytes, which grows; returns it and the length of the text.
    pub fn print(&self, size: usize, flag: &Flag) -> Result<(Block, usize), Failure> {
        let mut out = OutputBuffer::new(&mut [], size, acquire)?;
        let len = self.print_to(&mut out, size, flag)?;
        Ok((out.into_block().ok_or(Malformed)?, len))
    }

    /// Prints to `out`; returns the length. Intermediate text begins with `expected_size` bytes of memory.
    fn print_to(
        &self,
        out: &mut OutputBuffer<'_>,
        expected_size: usize,
        flag: &Flag,
    ) -> Result<usize, Failure> {
        let (config, workspace) = (self.settings.config(expected_size), TaskWorkspace(flag));
        if let Some(queue) = &self.queue {
            return Ok(print_texts(&mut queue.take_texts()?, &config, out, &workspace)?);
        }
        let (segments, longs) = (self.memory.segments()?, self.memory.longs());
        let has_rows = self.settings.layout & layout::ROWS != 0;
        let tape = Tape {
            segments: &segments,
            longs: &longs,
            lexicon: &self.lexicon,
            has_rows,
            first_long: 0,
        };
        Ok(print(tape, &config, out, &workspace)?)
    }

    /// Drops recycled memory.
    pub fn recycle(&mut self) {
        self.memory.recycle();
    }
}

/// The work of `encodeTape`.
pub struct EncodeTape {
    printer: PrintJob,
    out: PinnedBuffer,
    expected_size: usize,
    overflow: Overflow,
}

impl Work for EncodeTape {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let capacity = self.out.capacity();
        let mut out = OutputBuffer::new(self.out.result(), self.expected_size, acquire)?;
        let len = self.printer.print_to(&mut out, self.expected_size, flag)?;
        let Some(block) = out.finish(len, capacity, || flag.check())? else {
            return Ok(len as f64);
        };
        self.overflow.put(block);
        Ok(-(len as f64))
    }

    fn recycle(&mut self) {
        self.printer.recycle();
    }
}

impl EncodeTape {
    fn new(
        tape: &TapeParts,
        lexicon: &Lexicon,
        settings: PrintOptions,
        out: PinnedBuffer,
        expected_size: f64,
    ) -> Self {
        let printer = PrintJob::with_settings(tape.take(), lexicon, settings);
        Self {
            printer: PrintJob { queue: tape.queue.get().cloned(), ..printer },
            out,
            expected_size: expected_size as usize,
            overflow: tape.overflow.clone(),
        }
    }
}

/// Prints a tape to `out`; returns the length of the result.
///
/// The length is negative where `out` is too small or far too large. Then `takeOverflow` returns the result. An empty
/// `out` is always too small, and recycled memory of `expectedSize` bytes serves instead.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn encode_tape(
    tape: &TapeParts,
    lexicon: &Lexicon,
    settings: PrintOptions,
    #[napi(ts_arg_type = "Uint8Array")] out: PinnedBuffer,
    expected_size: f64,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<EncodeTape>> {
    launch(EncodeTape::new(tape, lexicon, settings, out, expected_size), stop)
}

/// Prints a tape as `encodeTape` does, on the JS thread.
#[napi]
pub fn encode_tape_sync(
    tape: &TapeParts,
    lexicon: &Lexicon,
    settings: PrintOptions,
    #[napi(ts_arg_type = "Uint8Array")] out: PinnedBuffer,
    expected_size: f64,
) -> Either<f64, Failure> {
    let mut work = EncodeTape::new(tape, lexicon, settings, out, expected_size);
    at_once(|| work.run(&Flag::default()))
}

/// The work of `takeOverflow`.
pub struct TakeOverflow {
    overflow: Overflow,
    out: PinnedBuffer,
}

impl Work for TakeOverflow {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let block = self.overflow.take();
        let out = self.out.result();
        let Some(text) = block.as_ref().and_then(|block| block.get(..out.len())) else {
            return Err(Failure::new(FailureCause::Internal, "there is no such overflow"));
        };
        copy_pieces(text, out, || flag.check())?;
        Ok(text.len() as f64)
    }
}

/// Copies the result of `encodeTape` to `out`, which has the size of the result.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn take_overflow(
    tape: &TapeParts,
    #[napi(ts_arg_type = "Uint8Array")] out: PinnedBuffer,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<TakeOverflow>> {
    launch(TakeOverflow { overflow: tape.overflow.clone(), out }, stop)
}

/// Copies a result as `takeOverflow` does, on the JS thread.
#[napi]
pub fn take_overflow_sync(
    tape: &TapeParts,
    #[napi(ts_arg_type = "Uint8Array")] out: PinnedBuffer,
) -> Either<f64, Failure> {
    let mut work = TakeOverflow { overflow: tape.overflow.clone(), out };
    at_once(|| work.run(&Flag::default()))
}
