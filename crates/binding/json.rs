use std::cell::{Cell, RefCell};
use std::mem;
use std::rc::Rc;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{AsyncTask, Either, Function, ObjectFinalize, Uint8Array};
use napi::{Env, JsString};
use napi_derive::napi;
use offloop_base64::{Alphabet, encode_into};
use offloop_json::{
    Floats, Kernel, Long, Malformed, Memory, Segment, Tag, Tape, TranscodeError, Written, check,
    indent, pack, sort, transcode,
};
use offloop_memory::{Block, OutOfMemory, prefer_huge_pages};
use sha2::{Digest, Sha256};

use crate::failure::{Cause, Failure};
use crate::guard::guard;
use crate::lock::lock;
use crate::memory::{Held, IdleSegment, RECYCLER, View, acquire};
use crate::result::{Growing, clear_rest, prepare};
use crate::source::block_of;
use crate::stop::{Flag, Stop};
use crate::task::{Job, Work, at_once, launch};

/// JSON text that the tapes of one encoder refer to by number.
#[napi]
#[derive(Default)]
pub struct Lexicon(Arc<offloop_json::Lexicon>);

#[napi]
impl Lexicon {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of the text; -1 when the lexicon is full.
    #[napi]
    #[must_use]
    pub fn add(&self, text: String) -> f64 {
        self.0.add(&text).map_or(-1.0, |index| index as f64)
    }
}

/// How many elements of each stream: of a segment, or of what is written of one.
#[derive(Clone, Copy)]
struct Counts {
    words: usize,
    doubles: usize,
    bytes: usize,
    rope: usize,
    runs: usize,
}

/// Memory that a tape is written to, private to `src/capture`: the streams stand in it one behind the other, in the
/// order doubles, words, runs, bytes, rope.
struct SegmentMemory {
    memory: SegmentBytes,
    room: Counts,
}

enum SegmentBytes {
    Held(Held),
    /// Aligned as the streams in them must be.
    Copied(Vec<u64>),
}

impl SegmentBytes {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Held(memory) => memory.bytes(),
            Self::Copied(words) => bytes_of(words),
        }
    }
}

impl Counts {
    /// Bytes of memory that holds so much and no more.
    fn size(self) -> usize {
        (self.doubles * 8) + (self.words + self.runs) * 4 + self.bytes + self.rope
    }
}

impl SegmentMemory {
    /// What is written of it, alone.
    fn copy(&self, counts: Counts) -> Result<Self, Failure> {
        let Segment { doubles, words, runs, bytes, rope } = self.view(counts)?;
        let mut copy = Vec::new();
        let len = counts.size().div_ceil(8);
        copy.try_reserve_exact(len).map_err(|_| OutOfMemory { size: counts.size() })?;
        copy.resize(len, 0);
        let mut to = bytes_of_mut(&mut copy);
        for stream in
            [bytes_of_doubles(doubles), bytes_of_ints(words), bytes_of_ints(runs), bytes, rope]
        {
            let (place, rest) = to.split_at_mut_checked(stream.len()).ok_or(Malformed)?;
            place.copy_from_slice(stream);
            to = rest;
        }
        Ok(Self { memory: SegmentBytes::Copied(copy), room: counts })
    }

    fn view(&self, counts: Counts) -> Result<Segment<'_>, Malformed> {
        let Counts { doubles, words, runs, bytes, .. } = self.room;
        let memory = self.memory.bytes();
        let (double_stream, rest) = memory.split_at_checked(doubles * 8).ok_or(Malformed)?;
        let (word_stream, rest) = rest.split_at_checked(words * 4).ok_or(Malformed)?;
        let (run_stream, rest) = rest.split_at_checked(runs * 4).ok_or(Malformed)?;
        let (byte_stream, rope_stream) = rest.split_at_checked(bytes).ok_or(Malformed)?;
        Ok(Segment {
            doubles: doubles_of(double_stream).get(..counts.doubles).ok_or(Malformed)?,
            words: ints_of(word_stream).get(..counts.words).ok_or(Malformed)?,
            runs: ints_of(run_stream).get(..counts.runs).ok_or(Malformed)?,
            bytes: byte_stream.get(..counts.bytes).ok_or(Malformed)?,
            rope: rope_stream.get(..counts.rope).ok_or(Malformed)?,
        })
    }
}

/// None of them where the memory is not aligned, which V8's is.
fn doubles_of(bytes: &[u8]) -> &[f64] {
    // SAFETY: any bits are a double.
    let (_, doubles, _) = unsafe { bytes.align_to::<f64>() };
    if doubles.len() * 8 == bytes.len() { doubles } else { &[] }
}

fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: any integers are bytes.
    let (_, bytes, _) = unsafe { words.align_to::<u8>() };
    bytes
}

fn bytes_of_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: any bytes are integers.
    let (_, bytes, _) = unsafe { words.align_to_mut::<u8>() };
    bytes
}

fn bytes_of_doubles(doubles: &[f64]) -> &[u8] {
    // SAFETY: doubles are bytes.
    let (_, bytes, _) = unsafe { doubles.align_to::<u8>() };
    bytes
}

fn bytes_of_ints(ints: &[i32]) -> &[u8] {
    // SAFETY: integers are bytes.
    let (_, bytes, _) = unsafe { ints.align_to::<u8>() };
    bytes
}

fn ints_of(bytes: &[u8]) -> &[i32] {
    // SAFETY: any bits are an integer.
    let (_, ints, _) = unsafe { bytes.align_to::<i32>() };
    if ints.len() * 4 == bytes.len() { ints } else { &[] }
}

/// A segment, which serves one tape after the other.
#[napi]
pub struct TapeSegment {
    memory: Arc<SegmentMemory>,
    idle: RefCell<Option<IdleSegment>>,
}

#[napi]
impl TapeSegment {
    #[napi(constructor)]
    #[must_use]
    pub fn new(
        mut memory: Uint8Array,
        words: u32,
        doubles: u32,
        bytes: u32,
        runs: u32,
        is_dense: bool,
    ) -> Self {
        if is_dense {
            // SAFETY: nobody but `src/capture` has this memory, and it waits for this call.
            prefer_huge_pages(unsafe { memory.as_mut() });
        }
        let room = counts_of(words, doubles, bytes, 0, runs);
        let memory =
            Arc::new(SegmentMemory { memory: SegmentBytes::Held(Held::new(memory)), room });
        Self { memory, idle: RefCell::default() }
    }
}

#[napi]
impl TapeSegment {
    /// It waits to be used; false where too much does so already.
    #[napi]
    #[must_use]
    pub fn rest(&self) -> bool {
        let idle = IdleSegment::new(self.memory.memory.bytes().len());
        let rests = idle.is_some();
        self.idle.replace(idle);
        rests
    }

    /// It does so no longer.
    #[napi]
    pub fn wake(&self) {
        self.idle.take();
    }
}

/// What was captured of one value, on its way to a task.
///
/// Every method borrows it shared: napi lets a task keep the borrow of an argument until it has settled.
#[napi]
#[derive(Default)]
pub struct TapeParts {
    parts: RefCell<Parts>,
    spill: Spill,
}

/// The result, where the memory made for it was too small.
#[derive(Clone, Default)]
struct Spill(Arc<Mutex<Option<Block>>>);

#[derive(Clone, Default)]
struct Parts {
    segments: Vec<(Arc<SegmentMemory>, Counts)>,
    longs: Vec<LongMemory>,
}

#[derive(Clone)]
enum LongMemory {
    Copied { block: Arc<Block>, len: usize, is_wide: bool },
    Kept(Arc<Held>),
}

/// JSON as it is, in memory that nobody writes to.
#[napi]
pub struct Fragment(Arc<Held>);

#[napi]
impl Fragment {
    #[napi(constructor)]
    #[must_use]
    pub fn new(memory: Uint8Array) -> Self {
        Self(Arc::new(Held::new(memory)))
    }

    /// Why it is no JSON, if it is not.
    #[napi]
    #[must_use]
    pub fn check(&self) -> Option<Failure> {
        guard(|| Ok(check(self.0.bytes())?)).err()
    }
}

fn counts_of(words: u32, doubles: u32, bytes: u32, rope: u32, runs: u32) -> Counts {
    Counts {
        words: words as usize,
        doubles: doubles as usize,
        bytes: bytes as usize,
        rope: rope as usize,
        runs: runs as usize,
    }
}

#[napi]
impl TapeParts {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A segment and what is written of it. It may not be written to before the task has settled.
    #[napi]
    pub fn add_segment(
        &self,
        segment: &TapeSegment,
        words: u32,
        doubles: u32,
        bytes: u32,
        rope: u32,
        runs: u32,
    ) {
        let counts = counts_of(words, doubles, bytes, rope, runs);
        self.parts.borrow_mut().segments.push((Arc::clone(&segment.memory), counts));
    }

    /// A copy of what is written of a segment.
    #[napi]
    pub fn copy_segment(
        &self,
        segment: &TapeSegment,
        words: u32,
        doubles: u32,
        bytes: u32,
        rope: u32,
        runs: u32,
    ) -> Option<Failure> {
        let counts = counts_of(words, doubles, bytes, rope, runs);
        match segment.memory.copy(counts) {
            Ok(copy) => self.parts.borrow_mut().segments.push((Arc::new(copy), counts)),
            Err(failure) => return Some(failure),
        }
        None
    }

    /// Copies a string too long for a segment.
    #[napi]
    pub fn add_text(
        &self,
        env: Env,
        text: JsString<'_>,
        is_wide: bool,
    ) -> napi::Result<Option<Failure>> {
        let copied = block_of(env, text, is_wide)?;
        Ok(copied.map(|(block, len)| self.add_long(block, len, is_wide)).err())
    }

    /// Copies bytes too many for a segment.
    #[napi]
    pub fn add_bytes(&self, #[napi(ts_arg_type = "Uint8Array")] bytes: View) -> Option<Failure> {
        let mut block = match RECYCLER.acquire(bytes.len()) {
            Ok(block) => block,
            Err(error) => return Some(error.into()),
        };
        bytes.copy_to(&mut block);
        self.add_long(block, bytes.len(), false);
        None
    }

    /// Forgets the long strings from that index on.
    #[napi]
    pub fn cut_longs(&self, len: u32) {
        self.parts.borrow_mut().longs.truncate(len as usize);
    }

    /// Forgets everything that no task has taken.
    #[napi]
    pub fn clear(&self) {
        drop(self.parts.take());
        drop(lock(&self.spill.0).take());
    }

    fn add_long(&self, block: Block, len: usize, is_wide: bool) {
        let block = Arc::new(block);
        self.parts.borrow_mut().longs.push(LongMemory::Copied { block, len, is_wide });
    }

    /// Refers to JSON as it is; tells how long that is.
    #[napi]
    pub fn add_fragment(&self, fragment: &Fragment) -> f64 {
        self.parts.borrow_mut().longs.push(LongMemory::Kept(Arc::clone(&fragment.0)));
        fragment.0.bytes().len() as f64
    }
}

/// What was captured, for any number of tasks. V8 is told of the memory that is not its own.
#[napi(custom_finalize)]
pub struct KeptParts {
    parts: RefCell<Parts>,
    /// Bytes that V8 was told of.
    told: Cell<i64>,
}

#[napi]
impl KeptParts {
    /// Takes them from `tape`.
    #[napi(constructor)]
    pub fn new(env: Env, tape: &TapeParts) -> napi::Result<Self> {
        let parts = tape.parts.take();
        let told = i64::try_from(parts.own_size()).unwrap_or(i64::MAX);
        env.adjust_external_memory(told)?;
        Ok(Self { parts: RefCell::new(parts), told: Cell::new(told) })
    }

    /// Bytes that are held.
    #[napi(getter)]
    #[must_use]
    pub fn size(&self) -> f64 {
        self.parts.borrow().size() as f64
    }

    /// The same parts, for one task.
    #[napi]
    #[must_use]
    pub fn share(&self) -> TapeParts {
        TapeParts { parts: self.parts.clone(), ..TapeParts::default() }
    }

    /// Forgets them.
    #[napi]
    pub fn clear(&self, env: Env) -> napi::Result<()> {
        drop(self.parts.take());
        env.adjust_external_memory(-self.told.take())?;
        Ok(())
    }
}

impl ObjectFinalize for KeptParts {
    fn finalize(self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(-self.told.get())?;
        Ok(())
    }
}

/// What is made of a tape: bits, and JSON without white space in the order of capture where there are none.
#[napi]
pub enum Layout {
    /// JSON Lines, in which no line may break.
    Rows = 1,
    SortedKeys = 2,
    /// A newline at the end.
    Newline = 4,
    Msgpack = 8,
    /// Numbers that are no integers have 32 bits in it.
    Singles = 16,
    /// In hexadecimal digits, the SHA-256 of the JSON.
    Digest = 32,
}

/// The same, read.
pub struct Shape {
    bits: u32,
    gap: Option<String>,
}

impl Shape {
    fn has(&self, bit: Layout) -> bool {
        self.bits & bit as u32 != 0
    }
}

/// The word that ends a row.
const ROW: [i32; 1] = [Tag::Extra as i32];

impl Parts {
    /// Bytes that are held.
    fn size(&self) -> usize {
        let segments = self.segments.iter().map(|(segment, _)| segment.memory.bytes().len());
        segments.chain(self.longs.iter().map(|long| long.view().bytes.len())).sum()
    }

    /// Gives recycled memory back. What V8 owns is let go on its thread.
    fn recycle(&mut self) {
        self.longs.retain(|long| matches!(long, LongMemory::Kept(_)));
    }

    /// Those of them that are no memory of V8's.
    fn own_size(&self) -> usize {
        let segments = self.segments.iter().map(|(segment, _)| match &segment.memory {
            SegmentBytes::Held(_) => 0,
            SegmentBytes::Copied(words) => words.len() * 8,
        });
        let longs = self.longs.iter().map(|long| match long {
            LongMemory::Copied { block, .. } => block.len(),
            LongMemory::Kept(_) => 0,
        });
        segments.chain(longs).sum()
    }

    /// Writes what is asked for to `out`; or, where that has no room for it, to recycled memory.
    fn encode<'o>(
        &self,
        lexicon: &offloop_json::Lexicon,
        shape: &Shape,
        mut out: Growing<'o>,
        flag: &Flag,
    ) -> Result<(Growing<'o>, usize), Failure> {
        let views = self.segments.iter().map(|(segment, counts)| segment.view(*counts));
        let mut segments = views.collect::<Result<Vec<_>, _>>()?;
        if shape.has(Layout::Newline) {
            segments.push(Segment { words: &ROW, ..Segment::default() });
        }
        let longs = self.longs.iter().map(LongMemory::view).collect::<Vec<_>>();
        let has_rows = shape.has(Layout::Rows);
        let tape = Tape { segments: &segments, longs: &longs, lexicon, has_rows, base64 };
        prepare(out.bytes());
        if shape.has(Layout::Digest) {
            let size = out.bytes().len();
            let (mut json, len) = print(tape, shape, Growing::Own(RECYCLER.acquire(size)?), flag)?;
            let len = digest(json.written(len), out.bytes(), flag)?;
            return Ok((out, len));
        }
        if !shape.has(Layout::Msgpack) {
            return print(tape, shape, out, flag);
        }
        let floats = if shape.has(Layout::Singles) { Floats::Single } else { Floats::Double };
        let len = pack(tape, floats, Kernel::best(), &mut out, || flag.check())?;
        Ok((out, len))
    }
}

fn print<'o>(
    tape: Tape<'_>,
    shape: &Shape,
    mut memory: Growing<'o>,
    flag: &Flag,
) -> Result<(Growing<'o>, usize), Failure> {
    let poll = || flag.check();
    let sorts = shape.has(Layout::SortedKeys);
    if !sorts && shape.gap.is_none() {
        let Written { len, .. } = transcode(tape, Kernel::best(), &mut memory, poll)?;
        return Ok((memory, len));
    }
    let mut compact = Growing::Own(RECYCLER.acquire(memory.bytes().len())?);
    let mut written = transcode(tape, Kernel::best(), &mut compact, poll)?;
    let Some(gap) = &shape.gap else {
        let json = compact.written(written.len);
        let Written { len, .. } = sort(json, &written.raws, &mut memory, poll)?;
        return Ok((memory, len));
    };
    if sorts {
        let mut sorted = Growing::Own(RECYCLER.acquire(written.len)?);
        written = sort(compact.written(written.len), &written.raws, &mut sorted, poll)?;
        compact = sorted;
    }
    let json = compact.written(written.len);
    let len = indent(json, &written.raws, gap.as_bytes(), &mut memory, poll)?;
    Ok((memory, len))
}

fn digest(json: &[u8], out: &mut [u8], flag: &Flag) -> Result<usize, Failure> {
    let mut hash = Sha256::new();
    for piece in json.chunks(PIECE) {
        flag.check()?;
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

/// What there is no room for is a failure to grow, which the transcoder keeps.
fn base64(bytes: &[u8], room: &mut [u8]) -> usize {
    encode_into(bytes, room, Alphabet::Standard, true).unwrap_or(0)
}

impl LongMemory {
    fn view(&self) -> Long<'_> {
        match self {
            Self::Copied { block, len, is_wide } => {
                Long { bytes: block.get(..*len).unwrap_or_default(), is_wide: *is_wide }
            }
            Self::Kept(memory) => Long { bytes: memory.bytes(), is_wide: false },
        }
    }
}

pub struct Encode {
    parts: Parts,
    lexicon: Arc<offloop_json::Lexicon>,
    shape: Shape,
    out: Held,
    spill: Spill,
}

impl Work for Encode {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let out = Growing::Given(self.out.bytes_mut());
        let (memory, len) = self.parts.encode(&self.lexicon, &self.shape, out, flag)?;
        let Growing::Own(block) = memory else {
            clear_rest(self.out.bytes_mut(), len, flag)?;
            return Ok(len as f64);
        };
        // It may have asked for more room than it then needed.
        match (self.out.bytes_mut().get_mut(..len), block.get(..len)) {
            (Some(out), Some(json)) => out.copy_from_slice(json),
            _ => *lock(&self.spill.0) = Some(block),
        }
        clear_rest(self.out.bytes_mut(), len, flag)?;
        Ok(len as f64)
    }

    fn recycle(&mut self) {
        self.parts.recycle();
    }
}

/// What was captured, and how it is to be printed: for tasks that need its bytes, and no result of JavaScript's.
pub struct Sheet {
    parts: Parts,
    lexicon: Arc<offloop_json::Lexicon>,
    shape: Shape,
}

impl Sheet {
    /// Takes what was captured.
    pub fn new(tape: &TapeParts, lexicon: &Lexicon, layout: u32, gap: Option<String>) -> Self {
        let parts = mem::take(&mut *tape.parts.borrow_mut());
        Self { parts, lexicon: Arc::clone(&lexicon.0), shape: Shape { bits: layout, gap } }
    }

    /// Leaves long strings there: without its last row, the rest can be captured of it again.
    pub fn sharing(tape: &TapeParts, lexicon: &Lexicon, layout: u32) -> Self {
        let longs = tape.parts.borrow().longs.clone();
        let sheet = Self::new(tape, lexicon, layout, None);
        tape.parts.borrow_mut().longs = longs;
        sheet
    }

    /// In recycled memory, and how many bytes of it; `size` of them are expected.
    pub fn print(&self, size: usize, flag: &Flag) -> Result<(Block, usize), Failure> {
        let out = Growing::Own(acquire(size)?);
        match self.parts.encode(&self.lexicon, &self.shape, out, flag)? {
            (Growing::Own(block), len) => Ok((block, len)),
            (Growing::Given(_), _) => Err(Malformed.into()),
        }
    }

    /// Gives back what is no longer needed, off the JS thread.
    pub fn recycle(&mut self) {
        self.parts.recycle();
    }
}

fn encode_of(tape: &TapeParts, lexicon: &Lexicon, shape: Shape, out: Uint8Array) -> Encode {
    Encode {
        parts: mem::take(&mut *tape.parts.borrow_mut()),
        lexicon: Arc::clone(&lexicon.0),
        shape,
        out: Held::new(out),
        spill: tape.spill.clone(),
    }
}

/// Writes what `layout`, bits of [`Layout`], says of a tape to `out`; tells how long it is. Where that is more than `out` has room for, `takeSpill`
/// gives it.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn encode_tape(
    tape: &TapeParts,
    lexicon: &Lexicon,
    layout: u32,
    gap: Option<String>,
    out: Uint8Array,
    stop: Option<&Stop>,
) -> AsyncTask<Job<Encode>> {
    launch(encode_of(tape, lexicon, Shape { bits: layout, gap }, out), stop)
}

/// The same at once.
#[napi]
pub fn encode_tape_sync(
    tape: &TapeParts,
    lexicon: &Lexicon,
    layout: u32,
    gap: Option<String>,
    out: Uint8Array,
) -> Either<f64, Failure> {
    let mut work = encode_of(tape, lexicon, Shape { bits: layout, gap }, out);
    at_once(|| work.run(&Flag::default()))
}

/// Copies what the memory of a result had no room for.
pub struct TakeSpill {
    spill: Spill,
    out: Held,
}

impl Work for TakeSpill {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let block = lock(&self.spill.0).take();
        let out = self.out.bytes_mut();
        let Some(text) = block.as_ref().and_then(|block| block.get(..out.len())) else {
            return Err(Failure::new(Cause::Internal, "there is no such spill"));
        };
        prepare(out);
        for (to, from) in out.chunks_mut(PIECE).zip(text.chunks(PIECE)) {
            flag.check()?;
            to.copy_from_slice(from);
        }
        Ok(text.len() as f64)
    }

    fn recycle(&mut self) {}
}

/// Bytes copied between two looks at the flag.
const PIECE: usize = 1 << 20;

/// Fills `out`, which has the size that `encodeTape` told, with its result.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn take_spill(
    tape: &TapeParts,
    out: Uint8Array,
    stop: Option<&Stop>,
) -> AsyncTask<Job<TakeSpill>> {
    launch(TakeSpill { spill: tape.spill.clone(), out: Held::new(out) }, stop)
}

/// The same at once.
#[napi]
pub fn take_spill_sync(tape: &TapeParts, out: Uint8Array) -> Either<f64, Failure> {
    let mut work = TakeSpill { spill: tape.spill.clone(), out: Held::new(out) };
    at_once(|| work.run(&Flag::default()))
}

/// Where small results are made, one behind the other. `src/capture` gives new memory when it is full or was
/// transferred away.
#[napi]
#[derive(Default)]
pub struct Slab(Rc<RefCell<Option<Held>>>);

#[napi]
impl Slab {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[napi]
    pub fn replace(&self, memory: Uint8Array) {
        self.0.replace(Some(Held::new(memory)));
    }
}

/// A segment, what it refers to, and where its JSON goes: all that `bindDesk` makes a function of. Its arguments and
/// its result are in `header`, as passing them through Node-API costs more than small values take.
struct Desk {
    header: RefCell<Held>,
    segment: Arc<SegmentMemory>,
    lexicon: Arc<offloop_json::Lexicon>,
    slab: Rc<RefCell<Option<Held>>>,
    kernel: Kernel,
}

/// In the header: how much of each stream is written, where in the slab the JSON goes; and then how long it is.
const WORDS: usize = 0;
const DOUBLES: usize = 1;
const BYTES: usize = 2;
const ROPE: usize = 3;
const RUNS: usize = 4;
const OFFSET: usize = 5;
const LENGTH: usize = 6;

const NO_ROOM: i32 = -1;
const FAILED: i32 = -2;

impl Desk {
    fn encode(&self) -> Result<i32, Failure> {
        let header = self.header.borrow();
        let field = |index: usize| match ints_of(header.bytes()).get(index) {
            Some(&value) => usize::try_from(value).map_err(|_| Malformed),
            None => Err(Malformed),
        };
        let counts = Counts {
            words: field(WORDS)?,
            doubles: field(DOUBLES)?,
            bytes: field(BYTES)?,
            rope: field(ROPE)?,
            runs: field(RUNS)?,
        };
        let mut slab = self.slab.borrow_mut();
        let memory = slab.as_mut().map(Held::bytes_mut).unwrap_or_default();
        let Some(room) = memory.get_mut(field(OFFSET)?..) else { return Ok(NO_ROOM) };
        let segments = [self.segment.view(counts)?];
        let tape = Tape {
            segments: &segments,
            longs: &[],
            lexicon: &self.lexicon,
            has_rows: false,
            base64,
        };
        match transcode(tape, self.kernel, &mut Fixed(room), || Ok(())) {
            Ok(Written { len, .. }) => Ok(i32::try_from(len).unwrap_or(NO_ROOM)),
            Err(TranscodeError::Stopped(NoRoom)) => Ok(NO_ROOM),
            Err(_) => Err(Malformed.into()),
        }
    }

    fn answer(&self, length: i32) {
        let mut header = self.header.borrow_mut();
        let field = header.bytes_mut().chunks_exact_mut(4).nth(LENGTH);
        if let Some(field) = field {
            field.copy_from_slice(&length.to_ne_bytes());
        }
    }
}

/// Memory that does not grow.
struct Fixed<'a>(&'a mut [u8]);

struct NoRoom;

impl Memory for Fixed<'_> {
    type Error = NoRoom;

    fn bytes(&mut self) -> &mut [u8] {
        self.0
    }

    fn grow(&mut self, _len: usize, _size: usize) -> Result<(), NoRoom> {
        Err(NoRoom)
    }
}

/// A function that writes the JSON of `segment` into the slab.
#[napi(ts_return_type = "() => void")]
pub fn bind_desk<'env>(
    env: &'env Env,
    header: Uint8Array,
    segment: &TapeSegment,
    lexicon: &Lexicon,
    slab: &Slab,
) -> napi::Result<Function<'env, (), ()>> {
    let desk = Desk {
        header: RefCell::new(Held::new(header)),
        segment: Arc::clone(&segment.memory),
        lexicon: Arc::clone(&lexicon.0),
        slab: Rc::clone(&slab.0),
        kernel: Kernel::best(),
    };
    env.create_function_from_closure("encodeDesk", move |_| {
        let length = guard(|| desk.encode()).unwrap_or(FAILED);
        desk.answer(length);
        Ok(())
    })
}
