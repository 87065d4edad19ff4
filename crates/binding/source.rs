//! Inputs of tasks: bytes copied into recycled memory as they arrive, or taken from the caller.
//!
//! `src/runtime/bytes.ts` gathers them on the JS thread. A task then reads them.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::ptr;

use napi::bindgen_prelude::Uint8Array;
use napi::{Env, JsString, JsValue, Result, check_status, sys};
use napi_derive::napi;
use offloop_body::EventBytes;
use offloop_memory::{Block, Chunk, Gathered, Joined, TakenMemory};

use crate::failure::Failure;
use crate::memory::{PinnedBuffer, PinnedSlice, RECYCLER, View};

/// Memory of an input that was taken from the caller.
pub enum InputMemory {
    Whole(PinnedBuffer),
    /// A part of memory. Many slices share one reference.
    Slice(PinnedSlice),
}

impl TakenMemory for InputMemory {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(buffer) => buffer.bytes(),
            Self::Slice(slice) => slice.bytes(),
        }
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            Self::Whole(buffer) => Some(buffer.bytes_mut()),
            Self::Slice(_) => None,
        }
    }
}

/// A part of an input.
pub type InputChunk = Chunk<InputMemory>;
/// An input in one piece.
pub type JoinedInput = Joined<InputMemory>;

/// Gathers an input on the JS thread, until a task takes it.
///
/// All methods take `&self`. napi keeps the borrow of a task's argument until the task has settled, and a caller that
/// gave up may call [`InputBytes::clear`] before that.
#[napi]
#[derive(Default)]
pub struct InputBytes(RefCell<Gathered<InputMemory>>, Cell<Option<EventBytes>>);

#[napi]
impl InputBytes {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of bytes gathered.
    #[napi(getter)]
    #[must_use]
    pub fn length(&self) -> f64 {
        self.0.borrow().size() as f64
    }

    /// Makes room for `size` more bytes in one block.
    #[napi]
    pub fn reserve(&self, size: f64) -> Option<Failure> {
        self.0.borrow_mut().room(size as usize, &RECYCLER).err().map(Failure::from)
    }

    /// Copies the bytes of a chunk.
    #[napi]
    pub fn copy(&self, #[napi(ts_arg_type = "Uint8Array")] chunk: View) -> Option<Failure> {
        if chunk.len() == 0 {
            return None;
        }
        let mut gathered = self.0.borrow_mut();
        match gathered.room(chunk.len(), &RECYCLER) {
            Ok(room) => chunk.copy_to(room),
            Err(error) => return Some(error.into()),
        }
        gathered.grow(chunk.len());
        None
    }

    /// Adds a chunk without a copy. It views a whole `ArrayBuffer` that was taken from the caller, so nobody else has
    /// it.
    #[napi]
    pub fn take(&self, chunk: Uint8Array) {
        self.0.borrow_mut().take(InputMemory::Whole(PinnedBuffer::new(chunk)));
    }

    /// Copies the low byte of each character of a string.
    #[napi]
    pub fn copy_text(&self, env: Env, text: JsString<'_>) -> Result<Option<Failure>> {
        let len = len_of(env, text)?;
        let mut gathered = self.0.borrow_mut();
        let room = match gathered.room(len + NUL, &RECYCLER) {
            Ok(room) => room,
            Err(error) => return Ok(Some(error.into())),
        };
        let written = write_latin1(env, text, room)?;
        gathered.grow(written);
        Ok(None)
    }

    /// Releases all bytes that no task has taken.
    #[napi]
    pub fn clear(&self) {
        drop(self.drain());
    }

    /// Adds memory that was taken from the caller.
    pub fn lend(&self, chunk: PinnedSlice) {
        self.0.borrow_mut().take(InputMemory::Slice(chunk));
    }

    /// Returns the index of the last chunk and the range of its last `len` bytes. They arrived in one piece.
    pub fn latest(&self, len: usize) -> (usize, Range<usize>) {
        let gathered = self.0.borrow();
        let end = gathered.chunks().last().map_or(0, InputChunk::len);
        (gathered.chunks().len().saturating_sub(1), end.saturating_sub(len)..end)
    }

    /// Calls `look` with the chunks gathered so far.
    pub fn look<T>(&self, look: impl FnOnce(&[InputChunk]) -> T) -> T {
        look(self.0.borrow().chunks())
    }

    /// Returns the bytes of an event.
    pub fn of_event(gathered: Gathered<InputMemory>, event: EventBytes) -> Self {
        Self(RefCell::new(gathered), Cell::new(Some(event)))
    }

    /// Takes what the bytes are of, if that is an event.
    pub fn take_event(&self) -> Option<EventBytes> {
        self.1.take()
    }

    /// Takes all chunks and leaves none.
    pub fn drain(&self) -> Vec<InputChunk> {
        self.0.borrow_mut().drain()
    }
}

/// Byte that Node-API writes behind a string.
const NUL: usize = 1;

/// Copies the low bytes of the characters of `text` to `memory`, which grows as needed and is never cleared. Returns
/// them.
pub fn latin1_of<'a>(env: Env, text: JsString<'_>, memory: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    let size = len_of(env, text)? + NUL;
    if memory.len() < size {
        memory.resize(size, 0);
    }
    let written = write_latin1(env, text, memory)?;
    Ok(memory.get(..written).unwrap_or_default())
}

/// Copies `text` to recycled memory: the low byte of each character, or both bytes, little-endian, if it `is_wide`.
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

/// Returns the number of UTF-16 code units of a string.
fn len_of(env: Env, text: JsString<'_>) -> Result<usize> {
    // SAFETY: `text` is a live string of `env`. A null buffer makes the call write only the length to `len`.
    string_len(|len| unsafe {
        sys::napi_get_value_string_latin1(env.raw(), text.raw(), ptr::null_mut(), 0, len)
    })
}

/// Writes the low bytes of at most `room.len() - 1` characters. Returns how many it wrote.
fn write_latin1(env: Env, text: JsString<'_>, room: &mut [u8]) -> Result<usize> {
    let (place, size) = (room.as_mut_ptr().cast(), room.len());
    // SAFETY: `text` is a live string of `env`, and `place` has `size` writable bytes.
    string_len(|len| unsafe {
        sys::napi_get_value_string_latin1(env.raw(), text.raw(), place, size, len)
    })
}

/// Writes UTF-16 code units, little-endian. Returns how many it wrote.
fn write_utf16(env: Env, text: JsString<'_>, block: &mut Block) -> Result<usize> {
    let (place, size) = (block.as_mut_ptr().cast(), block.len() / 2);
    // SAFETY: `text` is a live string of `env`. `place` is aligned to a page and has room for `size` units.
    let len = string_len(|len| unsafe {
        sys::napi_get_value_string_utf16(env.raw(), text.raw(), place, size, len)
    })?;
    if cfg!(target_endian = "big") {
        block.chunks_exact_mut(2).for_each(<[u8]>::reverse);
    }
    Ok(len)
}

/// Returns the length that a call of Node-API reports for a string.
fn string_len(call: impl FnOnce(*mut usize) -> sys::napi_status) -> Result<usize> {
    let mut len = 0;
    check_status!(call(&raw mut len), "a string is expected")?;
    Ok(len)
}
