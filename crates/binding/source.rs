//! What a task reads: bytes copied into recycled memory when they came, or taken from the caller.

use std::cell::RefCell;
use std::ops::Range;
use std::ptr;

use napi::bindgen_prelude::Uint8Array;
use napi::{Env, JsString, JsValue, Result, check_status, sys};
use napi_derive::napi;
use offloop_memory::Block;

use crate::failure::Failure;
use crate::memory::{Held, Lent, RECYCLER, View};

/// What chunks of unknown number are first gathered in; later blocks are as large as all before them, up to a bound.
const FIRST_BLOCK: usize = 64 << 10;
const LARGEST_BLOCK: usize = 8 << 20;

pub enum Segment {
    Copied {
        block: Block,
        len: usize,
    },
    Taken(Held),
    /// The same, one of many.
    Lent(Lent),
}

impl Segment {
    pub fn len(&self) -> usize {
        match self {
            Self::Copied { len, .. } => *len,
            Self::Taken(held) => held.len(),
            Self::Lent(lent) => lent.len(),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Copied { block, len } => block.get(..*len).unwrap_or_default(),
            Self::Taken(held) => held.bytes(),
            Self::Lent(lent) => lent.bytes(),
        }
    }
}

/// Gathers an input on the JS thread; a task takes it as it is then.
///
/// Every method borrows it shared: napi lets a task keep the borrow of an argument until it has settled, and a caller
/// that gave up may clear what it gathered before that.
#[napi]
#[derive(Default)]
pub struct Source(RefCell<Gathered>);

#[derive(Default)]
struct Gathered {
    segments: Vec<Segment>,
    len: usize,
}

#[napi]
impl Source {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes gathered.
    #[napi(getter)]
    #[must_use]
    pub fn length(&self) -> f64 {
        self.0.borrow().len as f64
    }

    /// Makes room for so many more bytes in one piece.
    #[napi]
    pub fn reserve(&self, size: f64) -> Option<Failure> {
        self.0.borrow_mut().room(size as usize).err()
    }

    /// Copies a chunk.
    #[napi]
    pub fn copy(&self, #[napi(ts_arg_type = "Uint8Array")] chunk: View) -> Option<Failure> {
        if chunk.len() == 0 {
            return None;
        }
        let mut gathered = self.0.borrow_mut();
        match gathered.room(chunk.len()) {
            Ok(room) => chunk.copy_to(room),
            Err(failure) => return Some(failure),
        }
        gathered.grow(chunk.len());
        None
    }

    /// Keeps a chunk that was taken from the caller: a view of a whole `ArrayBuffer` that nobody else has.
    #[napi]
    pub fn take(&self, chunk: Uint8Array) {
        let held = Held::new(chunk);
        let mut gathered = self.0.borrow_mut();
        gathered.len += held.len();
        gathered.segments.push(Segment::Taken(held));
    }

    /// Copies a piece of a string, one byte a character, of each its low byte.
    #[napi]
    pub fn copy_text(&self, env: Env, text: JsString<'_>) -> Result<Option<Failure>> {
        let len = len_of(env, text)?;
        let mut gathered = self.0.borrow_mut();
        let room = match gathered.room(len + NUL) {
            Ok(room) => room,
            Err(failure) => return Ok(Some(failure)),
        };
        let written = write_latin1(env, text, room)?;
        gathered.grow(written);
        Ok(None)
    }

    /// Gives back what no task has taken.
    #[napi]
    pub fn clear(&self) {
        drop(self.drain());
    }

    pub fn lend(&self, chunk: Lent) {
        let mut gathered = self.0.borrow_mut();
        gathered.len += chunk.len();
        gathered.segments.push(Segment::Lent(chunk));
    }

    /// Where the last `len` bytes gathered stand: the index of their segment, and the place in it. They came in one piece.
    pub fn latest(&self, len: usize) -> (usize, Range<usize>) {
        let gathered = self.0.borrow();
        let end = gathered.segments.last().map_or(0, Segment::len);
        (gathered.segments.len().saturating_sub(1), end.saturating_sub(len)..end)
    }

    pub fn look<T>(&self, look: impl FnOnce(&[Segment]) -> T) -> T {
        look(&self.0.borrow().segments)
    }

    /// Everything gathered, leaving nothing.
    pub fn drain(&self) -> Vec<Segment> {
        self.0.take().segments
    }
}

impl Gathered {
    /// `size` bytes behind what has been copied, in a new block where the last has too few.
    fn room(&mut self, size: usize) -> std::result::Result<&mut [u8], Failure> {
        let (left, ahead) = match self.segments.last() {
            Some(Segment::Copied { block, len }) => {
                (block.len() - len, self.len.clamp(FIRST_BLOCK, LARGEST_BLOCK))
            }
            // The first piece is often the only one, and one between taken ones often stands alone.
            _ => (0, 0),
        };
        if left < size {
            let block = RECYCLER.acquire(size.max(ahead))?;
            self.segments.push(Segment::Copied { block, len: 0 });
        }
        match self.segments.last_mut() {
            Some(Segment::Copied { block, len }) => {
                Ok(block.get_mut(*len..*len + size).unwrap_or_default())
            }
            _ => Ok(&mut []),
        }
    }

    fn grow(&mut self, size: usize) {
        if let Some(Segment::Copied { len, .. }) = self.segments.last_mut() {
            *len += size;
            self.len += size;
        }
    }
}

/// Node ends what it writes with one.
const NUL: usize = 1;

/// The low bytes of the characters of `text`, in `memory`, which grows as needed and is never cleared.
pub fn latin1_of<'a>(env: Env, text: JsString<'_>, memory: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    let size = len_of(env, text)? + NUL;
    if memory.len() < size {
        memory.resize(size, 0);
    }
    let written = write_latin1(env, text, memory)?;
    Ok(memory.get(..written).unwrap_or_default())
}

/// The low bytes of the characters of `text`; or, if it `is_wide`, both, little-endian. In recycled memory.
pub fn block_of(
    env: Env,
    text: JsString<'_>,
    is_wide: bool,
) -> Result<std::result::Result<(Block, usize), Failure>> {
    let width = if is_wide { 2 } else { 1 };
    let mut block = match RECYCLER.acquire((len_of(env, text)? + NUL) * width) {
        Ok(block) => block,
        Err(error) => return Ok(Err(error.into())),
    };
    let len = if is_wide {
        write_utf16(env, text, &mut block)?
    } else {
        write_latin1(env, text, &mut block)?
    };
    Ok(Ok((block, len * width)))
}

/// Characters, or units where they are wide.
fn len_of(env: Env, text: JsString<'_>) -> Result<usize> {
    // SAFETY: a live string; without a place to write to, only its length is told.
    told(|len| unsafe {
        sys::napi_get_value_string_latin1(env.raw(), text.raw(), ptr::null_mut(), 0, len)
    })
}

/// Writes at most `room.len() - 1` characters and tells how many.
fn write_latin1(env: Env, text: JsString<'_>, room: &mut [u8]) -> Result<usize> {
    let (place, size) = (room.as_mut_ptr().cast(), room.len());
    // SAFETY: a live string, and `size` bytes to write to.
    told(|len| unsafe {
        sys::napi_get_value_string_latin1(env.raw(), text.raw(), place, size, len)
    })
}

/// As [`write_latin1`], units of two bytes, little-endian.
fn write_utf16(env: Env, text: JsString<'_>, block: &mut Block) -> Result<usize> {
    let (place, size) = (block.as_mut_ptr().cast(), block.len() / 2);
    // SAFETY: a live string, and a block, which is aligned to a page, of `size` units.
    let len = told(|len| unsafe {
        sys::napi_get_value_string_utf16(env.raw(), text.raw(), place, size, len)
    })?;
    if cfg!(target_endian = "big") {
        for unit in block.chunks_exact_mut(2) {
            unit.reverse();
        }
    }
    Ok(len)
}

/// What a call of Node-API tells of a string.
fn told(call: impl FnOnce(*mut usize) -> sys::napi_status) -> Result<usize> {
    let mut len = 0;
    check_status!(call(&raw mut len), "a string is expected")?;
    Ok(len)
}

/// Gives copied segments back and keeps what must be let go on the JS thread.
pub fn recycle(segments: &mut Vec<Segment>) {
    segments.retain(|segment| !matches!(segment, Segment::Copied { .. }));
}
