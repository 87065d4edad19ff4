//! Prints a tape in the format that the caller asks for.
//!
//! The glue calls it in tasks, and on the JS thread for small values. JSON is written compactly first. Sorting keys and
//! indenting each read that text and write it anew, through memory of the [`Workspace`]. The JSON of segments may be
//! written already: see `queue`.

use sha2::{Digest, Sha256};

use crate::error::TranscodeError;
use crate::indent::indent;
use crate::msgpack::{Floats, PackOptions, pack};
use crate::number::wide;
use crate::output::{Memory, Output};
use crate::queue::{PrintedSegment, join_texts};
use crate::size::json_size;
use crate::sort::sort;
use crate::tape::{JsText, Segment, Tag, Tape, TextLocation};
use crate::text::Kernel;
use crate::transcode::{JsonExtent, transcode};

/// Bytes hashed between two calls of [`Workspace::poll`].
const PIECE: usize = 1 << 20;

/// The word that ends a row.
const ROW: [i32; 1] = [Tag::Extra as i32];

/// The word of a JSON text that is a long text.
const LONG_TEXT: i32 = (TextLocation::Long as i32) << 4 | Tag::Text as i32;

/// The memory and the poll that the caller of [`print`] provides.
pub trait Workspace {
    type Memory: Memory;

    /// Returns memory of at least `size` bytes for an intermediate text.
    ///
    /// # Errors
    /// Fails where there is none.
    fn acquire(&self, size: usize) -> Result<Self::Memory, <Self::Memory as Memory>::Error>;

    /// Is called every 0.1 to 1 ms of work.
    ///
    /// # Errors
    /// Fails to stop the printing.
    fn poll(&self) -> Result<(), <Self::Memory as Memory>::Error>;
}

/// How a tape is printed.
#[derive(Clone, Copy, Debug)]
pub struct PrintConfig<'a> {
    pub format: PrintFormat<'a>,
    /// Whether the text ends with a newline.
    pub has_newline: bool,
    /// The expected size of the compact JSON, in bytes. Intermediate memory begins with it.
    pub expected_size: usize,
}

/// The format in which a tape is printed.
#[derive(Clone, Copy, Debug)]
pub enum PrintFormat<'a> {
    Json(JsonLayout<'a>),
    /// The SHA-256 of the JSON, as 64 hexadecimal digits.
    Digest(JsonLayout<'a>),
    /// The length of the JSON in bytes, as decimal digits. The order of keys does not change it.
    JsonSize {
        /// The white space of one level; `None` for compact JSON.
        gap: Option<&'a [u8]>,
    },
    Msgpack {
        floats: Floats,
        /// The most levels of nesting.
        max_depth: usize,
    },
}

/// The order of keys and the white space of JSON.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonLayout<'a> {
    pub sorts_keys: bool,
    /// The white space of one level; `None` for compact JSON.
    pub gap: Option<&'a [u8]>,
}

/// Prints `tape` to the start of `out`; returns the length. A tape without segments is the JSON text in its only long.
///
/// # Errors
/// Fails as `out` and `workspace` do, for values beyond the limits of `MessagePack`, for invalid raw JSON, and for an
/// invalid tape.
pub fn print<M, W>(
    tape: Tape<'_>,
    config: &PrintConfig<'_>,
    out: &mut M,
    workspace: &W,
) -> Result<usize, TranscodeError<M::Error>>
where
    M: Memory,
    W: Workspace<Memory: Memory<Error = M::Error>>,
{
    if let ([], [text]) = (tape.segments, tape.longs) {
        let words = whole(*text)?;
        let segments = [Segment { words: &words, ..Segment::default() }];
        return print_document(Tape { segments: &segments, ..tape }, config, out, workspace);
    }
    print_document(tape, config, out, workspace)
}

/// Returns the words of a tape that is one long JSON text.
fn whole<E>(text: JsText<'_>) -> Result<[i32; 4], TranscodeError<E>> {
    let len = if text.is_wide { text.bytes.len() / 2 } else { text.bytes.len() };
    let len = i32::try_from(len).map_err(|_| TranscodeError::TooLarge)?;
    Ok([LONG_TEXT, 0, 0, len])
}

fn print_document<M, W>(
    tape: Tape<'_>,
    config: &PrintConfig<'_>,
    out: &mut M,
    workspace: &W,
) -> Result<usize, TranscodeError<M::Error>>
where
    M: Memory,
    W: Workspace<Memory: Memory<Error = M::Error>>,
{
    if config.has_newline {
        let newline = Segment { words: &ROW, ..Segment::default() };
        let segments = tape.segments.iter().copied().chain([newline]).collect::<Vec<_>>();
        return print_segments(Tape { segments: &segments, ..tape }, config, out, workspace);
    }
    print_segments(tape, config, out, workspace)
}

/// Prints segments whose JSON is printed already: joins it, sorts keys and indents. `texts` is all of the tape.
///
/// # Errors
/// Fails as `out` and `workspace` do, and for a format other than JSON.
pub fn print_texts<M, W>(
    texts: &mut [PrintedSegment<W::Memory>],
    config: &PrintConfig<'_>,
    out: &mut M,
    workspace: &W,
) -> Result<usize, TranscodeError<M::Error>>
where
    M: Memory,
    W: Workspace<Memory: Memory<Error = M::Error>>,
{
    let (PrintFormat::Json(layout), false) = (config.format, config.has_newline) else {
        return Err(TranscodeError::Malformed);
    };
    print_json(JsonSource::Texts(texts), layout, config.expected_size, out, workspace)
}

fn print_segments<M, W>(
    tape: Tape<'_>,
    config: &PrintConfig<'_>,
    out: &mut M,
    workspace: &W,
) -> Result<usize, TranscodeError<M::Error>>
where
    M: Memory,
    W: Workspace<Memory: Memory<Error = M::Error>>,
{
    let size = config.expected_size;
    let source = JsonSource::<W::Memory>::Tape(tape);
    match config.format {
        PrintFormat::Json(layout) => print_json(source, layout, size, out, workspace),
        PrintFormat::Digest(layout) => {
            let mut json = workspace.acquire(size).map_err(TranscodeError::Stopped)?;
            let len = print_json(source, layout, size, &mut json, workspace)?;
            digest(first(&mut json, len), out.bytes(), workspace).map_err(TranscodeError::Stopped)
        }
        PrintFormat::JsonSize { gap } => {
            let len = json_size(tape, gap, size, workspace)?;
            let mut digits = Output::new(out).map_err(TranscodeError::Stopped)?;
            digits.place(|place| wide(false, len as u64, place) - 1);
            Ok(digits.len())
        }
        PrintFormat::Msgpack { floats, max_depth } => {
            let options = PackOptions { floats, max_depth, kernel: Kernel::best() };
            pack(tape, &options, out, || workspace.poll())
        }
    }
}

/// What compact JSON is made of.
enum JsonSource<'a, T> {
    Tape(Tape<'a>),
    Texts(&'a mut [PrintedSegment<T>]),
}

impl<T: Memory> JsonSource<'_, T> {
    /// Writes compact JSON to the start of `memory`.
    fn write<M: Memory>(
        self,
        memory: &mut M,
        poll: impl FnMut() -> Result<(), M::Error>,
    ) -> Result<JsonExtent, TranscodeError<M::Error>> {
        match self {
            Self::Tape(tape) => transcode(tape, Kernel::best(), memory, poll),
            Self::Texts(texts) => join_texts(texts, memory, poll),
        }
    }
}

fn print_json<M, W>(
    source: JsonSource<'_, W::Memory>,
    layout: JsonLayout<'_>,
    expected_size: usize,
    out: &mut M,
    workspace: &W,
) -> Result<usize, TranscodeError<M::Error>>
where
    M: Memory,
    W: Workspace<Memory: Memory<Error = M::Error>>,
{
    let poll = || workspace.poll();
    if !layout.sorts_keys && layout.gap.is_none() {
        return Ok(source.write(out, poll)?.len);
    }
    let mut compact = workspace.acquire(expected_size).map_err(TranscodeError::Stopped)?;
    let extent = source.write(&mut compact, poll)?;
    let json = first(&mut compact, extent.len);
    let Some(gap) = layout.gap else {
        return Ok(sort(json, &extent.raws, out, poll)?.len);
    };
    if !layout.sorts_keys {
        return indent(json, &extent.raws, gap, out, poll);
    }
    let mut sorted = workspace.acquire(extent.len).map_err(TranscodeError::Stopped)?;
    let JsonExtent { len, raws } = sort(json, &extent.raws, &mut sorted, poll)?;
    drop(compact);
    indent(first(&mut sorted, len), &raws, gap, out, poll)
}

/// Writes the SHA-256 of `json` to the start of `out`; returns how many digits `out` has room for.
fn digest<W: Workspace>(
    json: &[u8],
    out: &mut [u8],
    workspace: &W,
) -> Result<usize, <W::Memory as Memory>::Error> {
    let mut hash = Sha256::new();
    for piece in json.chunks(PIECE) {
        workspace.poll()?;
        hash.update(piece);
    }
    let digits = hash.finalize().into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let mut len = 0;
    for (to, digit) in out.iter_mut().zip(digits) {
        *to = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        len += 1;
    }
    Ok(len)
}

fn first<M: Memory>(memory: &mut M, len: usize) -> &[u8] {
    memory.bytes().get(..len).unwrap_or_default()
}
