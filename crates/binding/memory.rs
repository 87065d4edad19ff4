//! The process's recycled memory, and views of JavaScript's.

use std::ptr;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use napi::bindgen_prelude::{AsyncTask, FromNapiValue, TypeName, Uint8Array, ValidateNapiValue};
use napi::{Error, Result, Status, ValueType, check_status, sys};
use napi_derive::napi;
use offloop_memory::{Block, Recycler, trim};

use crate::failure::Failure;
use crate::stop::Flag;
use crate::task::{Job, Work, launch};

const DEFAULT_MAX_IDLE: usize = 128 << 20;

pub static RECYCLER: Recycler = Recycler::new(DEFAULT_MAX_IDLE);

/// Recycled memory for a result.
pub fn acquire(size: usize) -> std::result::Result<Block, Failure> {
    #[cfg(feature = "test-hooks")]
    crate::hooks::check_memory(size)?;
    Ok(RECYCLER.acquire(size)?)
}

/// Bytes of a `Uint8Array` argument, for the length of the call only.
pub struct View {
    start: *mut u8,
    len: usize,
    /// In a `SharedArrayBuffer`, where other threads may write at any moment.
    shared: bool,
}

impl View {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies the bytes to the start of `dst`, which holds at least as many.
    pub fn copy_to(&self, dst: &mut [u8]) {
        let len = self.len.min(dst.len());
        if len == 0 {
            return;
        }
        // SAFETY: `start` has `len` bytes, V8 said in this call, and `dst` is memory of ours. Shared bytes may change
        // meanwhile, which no reference to them observes.
        unsafe { ptr::copy_nonoverlapping(self.start, dst.as_mut_ptr(), len) };
    }

    /// As [`Self::bytes`], but not in the same memory as `other`: a view of Node's pool may reach into the place of a result.
    fn bytes_beside(&self, other: &Self) -> Option<&[u8]> {
        let (start, other_start) = (self.start.addr(), other.start.addr());
        let overlaps = start < other_start + other.len && other_start < start + self.len;
        if overlaps { None } else { self.bytes() }
    }

    /// The bytes, unless another thread may write to them.
    pub fn bytes(&self) -> Option<&[u8]> {
        if self.shared {
            return None;
        }
        if self.len == 0 {
            return Some(&[]);
        }
        // SAFETY: `start` has `len` bytes, V8 said in this call. Nothing runs on this thread until it returns, and no
        // other thread sees memory that is not shared.
        Some(unsafe { slice::from_raw_parts(self.start, self.len) })
    }

    /// The bytes, or a copy of them in `block` where [`Self::bytes_beside`] gives none.
    pub fn bytes_or_copy<'a>(
        &'a self,
        other: &Self,
        block: &'a mut Option<Block>,
    ) -> std::result::Result<&'a [u8], Failure> {
        if let Some(bytes) = self.bytes_beside(other) {
            return Ok(bytes);
        }
        let copy = block.insert(RECYCLER.acquire(self.len)?);
        self.copy_to(copy);
        Ok(copy.get(..self.len).unwrap_or_default())
    }

    /// The bytes, to be written, unless another thread sees them. The caller has no other view of the same memory.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        if self.shared {
            return None;
        }
        if self.len == 0 {
            return Some(&mut []);
        }
        // SAFETY: as above. No other reference to these bytes is alive: `bytes_beside` gives none.
        Some(unsafe { slice::from_raw_parts_mut(self.start, self.len) })
    }
}

impl TypeName for View {
    fn type_name() -> &'static str {
        "Uint8Array"
    }

    fn value_type() -> ValueType {
        ValueType::Object
    }
}

impl ValidateNapiValue for View {}

impl FromNapiValue for View {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        let (mut kind, mut len, mut start, mut buffer) = (0, 0, ptr::null_mut(), ptr::null_mut());
        // SAFETY: a live value of this env, and places for what is told about it.
        let status = unsafe {
            sys::napi_get_typedarray_info(
                env,
                value,
                &raw mut kind,
                &raw mut len,
                &raw mut start,
                &raw mut buffer,
                ptr::null_mut(),
            )
        };
        check_status!(status, "a Uint8Array is expected")?;
        if kind != sys::TypedarrayType::uint8_array {
            return Err(Error::new(Status::InvalidArg, "a Uint8Array is expected"));
        }
        let mut private = false;
        // SAFETY: the value that was just told.
        check_status!(unsafe { sys::napi_is_arraybuffer(env, buffer, &raw mut private) })?;
        Ok(Self { start: start.cast(), len, shared: !private })
    }
}

/// Memory of V8's that a task may keep and write to: `bytes.ts` made or took it, and gives no view of its `ArrayBuffer`
/// to anybody before the task has settled, so JavaScript can neither detach, shrink nor change it.
pub struct Held(Uint8Array);

impl Held {
    pub fn new(array: Uint8Array) -> Self {
        Self(array)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the promise above; the reference inside keeps the memory from being collected.
        unsafe { self.0.as_mut() }
    }
}

/// Memory as that of [`Held`], of which many pieces have one keeper: a reference to each costs more than all else.
pub struct Lent {
    start: *const u8,
    len: usize,
    /// Refers to what keeps the memory from being collected.
    _keeper: Arc<Held>,
}

// SAFETY: the memory is only read, nobody writes to it as long as the keeper lives, which may go from thread to thread.
unsafe impl Send for Lent {}

impl Lent {
    /// `keeper` refers to the object that the memory is of, and nobody else does.
    pub fn new(memory: &[u8], keeper: &Arc<Held>) -> Self {
        Self { start: memory.as_ptr(), len: memory.len(), _keeper: Arc::clone(keeper) }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `len` bytes, V8 said, which its keeper keeps.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

/// What may be idle: blocks of the recycler, and segments of tapes, which go first.
static IDLE: Mutex<Idle> = Mutex::new(Idle { most: DEFAULT_MAX_IDLE, segments: 0 });

struct Idle {
    most: usize,
    /// Bytes of segments.
    segments: usize,
}

impl Idle {
    fn lock() -> MutexGuard<'static, Self> {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_segments(&mut self, bytes: usize) {
        self.segments = bytes;
        RECYCLER.set_max_idle(self.most.saturating_sub(bytes));
    }
}

/// Counts a segment that waits to be used, while it lives.
pub struct IdleSegment(usize);

impl IdleSegment {
    /// None where too much is idle already.
    pub fn new(bytes: usize) -> Option<Self> {
        let mut idle = Idle::lock();
        let segments = idle.segments + bytes;
        if idle.most < segments {
            return None;
        }
        idle.set_segments(segments);
        Some(Self(bytes))
    }
}

impl Drop for IdleSegment {
    fn drop(&mut self) {
        let mut idle = Idle::lock();
        let segments = idle.segments.saturating_sub(self.0);
        idle.set_segments(segments);
    }
}

/// Bytes of recycled memory that wait to be used.
#[napi]
pub fn idle_bytes() -> f64 {
    (RECYCLER.idle_size() + Idle::lock().segments) as f64
}

/// The bound of [`idle_bytes`].
#[napi]
pub fn max_idle_bytes() -> f64 {
    Idle::lock().most as f64
}

/// Segments that are idle are let go by `src/capture`.
#[napi]
pub fn set_max_idle_bytes(bytes: f64) {
    let mut idle = Idle::lock();
    idle.most = bytes as usize;
    let segments = idle.segments;
    idle.set_segments(segments);
}

/// Gives idle memory back to the system, or makes some ready.
pub enum Upkeep {
    Release(Duration),
    Prewarm(usize),
}

impl Work for Upkeep {
    type Done = f64;

    fn run(&mut self, _flag: &Flag) -> std::result::Result<f64, Failure> {
        match *self {
            Self::Release(idle_for) => Ok(RECYCLER.release(idle_for) as f64),
            Self::Prewarm(bytes) => {
                RECYCLER.prewarm(bytes)?;
                Ok(bytes as f64)
            }
        }
    }

    fn recycle(&mut self) {}
}

/// Gives back what has been idle for `milliseconds`, and tells how many bytes that was.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn release_idle(milliseconds: u32) -> AsyncTask<Job<Upkeep>> {
    launch(Upkeep::Release(Duration::from_millis(milliseconds.into())), None)
}

/// Makes `bytes` of recycled memory present.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn prewarm(bytes: f64) -> AsyncTask<Job<Upkeep>> {
    launch(Upkeep::Prewarm(bytes as usize), None)
}

/// Gives back all that is free: recycled memory that is idle, and pages of the C library's heap.
pub struct Trim;

impl Work for Trim {
    type Done = bool;

    fn run(&mut self, _flag: &Flag) -> std::result::Result<bool, Failure> {
        RECYCLER.release(Duration::ZERO);
        Ok(trim())
    }

    fn recycle(&mut self) {}
}

/// Tells whether the C library has a call for its part.
#[napi(ts_return_type = "Promise<boolean | Failure>")]
pub fn trim_heap() -> AsyncTask<Job<Trim>> {
    launch(Trim, None)
}
