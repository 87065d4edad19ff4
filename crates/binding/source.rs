//! What a task reads: bytes copied into recycled memory when they came, or taken from the caller.

use std::cell::RefCell;
use std::ptr;

use napi::bindgen_prelude::Uint8Array;
use napi::{Env, JsString, JsValue, Result, check_status, sys};
use napi_derive::napi;
use offloop_memory::Block;

use crate::failure::Failure;
use crate::memory::{Held, RECYCLER, View};

/// What chunks of unknown number are first gathered in; later blocks are as large as all before them, up to a bound.
const FIRST_BLOCK: usize = 64 << 10;
const LARGEST_BLOCK: usize = 8 << 20;

pub enum Segment {
    Copied { block: Block, len: usize },
    Taken(Held),
}

impl Segment {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Copied { block, len } => block.get(..*len).unwrap_or_default(),
            Self::Taken(held) => held.bytes(),
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
        let len = latin1_len(env, text)?;
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
    let size = latin1_len(env, text)? + NUL;
    if memory.len() < size {
        memory.resize(size, 0);
    }
    let written = write_latin1(env, text, memory)?;
    Ok(memory.get(..written).unwrap_or_default())
}

fn latin1_len(env: Env, text: JsString<'_>) -> Result<usize> {
    let mut len = 0;
    let (value, nowhere) = (text.raw(), ptr::null_mut());
    // SAFETY: a live string; without a place to write to, only its length is told.
    let status =
        unsafe { sys::napi_get_value_string_latin1(env.raw(), value, nowhere, 0, &raw mut len) };
    check_status!(status, "a string is expected")?;
    Ok(len)
}

/// Writes at most `room.len() - 1` characters and tells how many.
fn write_latin1(env: Env, text: JsString<'_>, room: &mut [u8]) -> Result<usize> {
    let mut len = 0;
    let (value, place) = (text.raw(), room.as_mut_ptr().cast());
    // SAFETY: a live string, and `room.len()` bytes to write to.
    let status = unsafe {
        sys::napi_get_value_string_latin1(env.raw(), value, place, room.len(), &raw mut len)
    };
    check_status!(status, "a string is expected")?;
    Ok(len)
}

/// As [`latin1_of`], two bytes a character, little-endian; in recycled memory.
pub fn utf16_block(
    env: Env,
    text: JsString<'_>,
) -> Result<std::result::Result<(Block, usize), Failure>> {
    let mut len = 0;
    let (value, nowhere) = (text.raw(), ptr::null_mut());
    // SAFETY: a live string; without a place to write to, only its length is told.
    let status =
        unsafe { sys::napi_get_value_string_utf16(env.raw(), value, nowhere, 0, &raw mut len) };
    check_status!(status, "a string is expected")?;
    let units = len + NUL;
    let mut block = match RECYCLER.acquire(units * 2) {
        Ok(block) => block,
        Err(error) => return Ok(Err(error.into())),
    };
    let place = block.as_mut_ptr().cast();
    // SAFETY: a live string, and a block, which is aligned to a page, of that many units at least.
    let status =
        unsafe { sys::napi_get_value_string_utf16(env.raw(), value, place, units, &raw mut len) };
    check_status!(status, "a string is expected")?;
    if cfg!(target_endian = "big") {
        for unit in block.chunks_exact_mut(2) {
            unit.reverse();
        }
    }
    Ok(Ok((block, len * 2)))
}

/// The low bytes of the characters of `text`, in recycled memory.
pub fn latin1_block(
    env: Env,
    text: JsString<'_>,
) -> Result<std::result::Result<(Block, usize), Failure>> {
    let size = latin1_len(env, text)? + NUL;
    match RECYCLER.acquire(size) {
        Ok(mut block) => {
            let len = write_latin1(env, text, &mut block)?;
            Ok(Ok((block, len)))
        }
        Err(error) => Ok(Err(error.into())),
    }
}

/// Gives copied segments back and keeps what must be let go on the JS thread.
pub fn recycle(segments: &mut Vec<Segment>) {
    segments.retain(|segment| matches!(segment, Segment::Taken(_)));
}
