//! The recycled memory of the process, and references to memory of JavaScript.
//!
//! All glue files use it. `src/runtime` calls the functions on the JS thread.

use std::mem;
use std::ptr;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{AsyncTask, FromNapiValue, TypeName, Uint8Array, ValidateNapiValue};
use napi::{Error, Result, Status, ValueType, check_status, sys};
use napi_derive::napi;
use offloop_memory::{Block, IdleBudget, IdleShare, Recycler, prepare_result, trim};

use crate::failure::Failure;
use crate::stop::Flag;
use crate::task::{PoolTask, Work, launch};

const DEFAULT_MAX_IDLE: usize = 128 << 20;

/// The recycled memory of the process.
pub static RECYCLER: Recycler = Recycler::new(DEFAULT_MAX_IDLE);

/// The bound of idle recycled memory and idle memory of V8.
pub static IDLE_BUDGET: IdleBudget = IdleBudget::new(&RECYCLER, DEFAULT_MAX_IDLE);

thread_local! {
    /// Idle memory of V8 that this thread keeps: tape segments and results.
    static IDLE_SHARE: IdleShare = const { IDLE_BUDGET.share() };
}

/// Acquires recycled memory for a result.
pub fn acquire(size: usize) -> std::result::Result<Block, Failure> {
    #[cfg(feature = "test-hooks")]
    crate::hooks::check_memory(size)?;
    Ok(RECYCLER.acquire(size)?)
}

/// The bytes of a `Uint8Array` argument, valid during the call only.
pub struct View {
    start: *mut u8,
    len: usize,
    /// Bytes of the `ArrayBuffer` behind the view.
    behind: usize,
    /// Whether the memory is a `SharedArrayBuffer`, to which other threads may write at any moment.
    shared: bool,
}

impl View {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies the bytes to the start of `dst`, up to its length.
    pub fn copy_to(&self, dst: &mut [u8]) {
        let len = self.len.min(dst.len());
        if len == 0 {
            return;
        }
        // SAFETY: V8 reported in this call that `start` has `len` bytes, and `len` fits `dst`, which is native memory and
        // so does not overlap. No Rust reference exists to shared bytes, which may change during the copy.
        unsafe { ptr::copy_nonoverlapping(self.start, dst.as_mut_ptr(), len) };
    }

    /// Returns the bytes as [`Self::bytes`] does; `None` also where they overlap `other`.
    ///
    /// Views of Node's buffer pool share one `ArrayBuffer`, so an input may overlap the memory of a result.
    fn bytes_beside(&self, other: &Self) -> Option<&[u8]> {
        let (start, other_start) = (self.start.addr(), other.start.addr());
        let overlaps = start < other_start + other.len && other_start < start + self.len;
        if overlaps { None } else { self.bytes() }
    }

    /// Returns the bytes; `None` for shared memory, to which other threads may write.
    pub fn bytes(&self) -> Option<&[u8]> {
        if self.shared {
            return None;
        }
        if self.len == 0 {
            return Some(&[]);
        }
        // SAFETY: V8 reported in this call that `start` has `len` bytes. No JavaScript runs on this thread before the call
        // returns, and no other thread sees memory that is not shared.
        Some(unsafe { slice::from_raw_parts(self.start, self.len) })
    }

    /// Returns the bytes, or a copy in `block` where they are shared or overlap `other`.
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

    /// Returns the bytes for writing; `None` for shared memory. The caller has no other reference to them.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        if self.shared {
            return None;
        }
        if self.len == 0 {
            return Some(&mut []);
        }
        // SAFETY: V8 reported in this call that `start` has `len` bytes, which no other thread sees. No other reference to
        // them is alive: `bytes_or_copy` copies what overlaps.
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
        let (mut kind, mut len, mut offset, mut size) = (0, 0, 0, 0);
        let (mut start, mut buffer) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: `value` is a live value of `env`; the pointers are to live variables, or null.
        let status = unsafe {
            sys::napi_get_typedarray_info(
                env,
                value,
                &raw mut kind,
                &raw mut len,
                &raw mut start,
                &raw mut buffer,
                &raw mut offset,
            )
        };
        check_status!(status, "a Uint8Array is expected")?;
        if kind != sys::TypedarrayType::uint8_array {
            return Err(Error::new(Status::InvalidArg, "a Uint8Array is expected"));
        }
        let mut private = false;
        // SAFETY: `buffer` is a live value of `env`, which the call above has set.
        check_status!(unsafe { sys::napi_is_arraybuffer(env, buffer, &raw mut private) })?;
        if private {
            // SAFETY: `buffer` is a live `ArrayBuffer` of `env`.
            let status = unsafe {
                sys::napi_get_arraybuffer_info(env, buffer, ptr::null_mut(), &raw mut size)
            };
            check_status!(status)?;
        }
        let behind = size.saturating_sub(offset + len);
        Ok(Self { start: start.cast(), len, behind, shared: !private })
    }
}

/// Memory of V8 that a task may read and write.
///
/// `src/runtime/bytes.ts` made or took the memory. No JavaScript outside offloop has a view of its `ArrayBuffer` before the
/// task has settled, so JavaScript cannot detach, shrink or change it.
pub struct PinnedBuffer {
    array: Uint8Array,
    /// Bytes of the `ArrayBuffer` behind the array that the array has to itself.
    behind: usize,
}

/// Least size of an array that has its `ArrayBuffer` to itself: `OWN_BUFFER` of `src/runtime/results.ts`.
const OWN_BUFFER: usize = 64 << 10;

impl PinnedBuffer {
    pub fn new(array: Uint8Array) -> Self {
        Self { array, behind: 0 }
    }

    pub fn len(&self) -> usize {
        self.array.len()
    }

    /// Bytes of memory that the array keeps alive.
    pub fn capacity(&self) -> usize {
        self.len() + self.behind
    }

    pub fn bytes(&self) -> &[u8] {
        &self.array
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: only the owner of this `PinnedBuffer` accesses the memory, see above. The reference in it keeps the memory
        // from being collected.
        unsafe { self.array.as_mut() }
    }

    /// Returns the memory of a result, and clears what lies behind it: JavaScript can read that, and it may hold earlier
    /// results.
    pub fn result(&mut self) -> &mut [u8] {
        let behind = mem::take(&mut self.behind);
        if behind != 0 {
            // SAFETY: `from_napi_value` has seen that the `ArrayBuffer` has `behind` bytes behind the array, which nobody else
            // accesses.
            unsafe { self.bytes_mut().as_mut_ptr_range().end.write_bytes(0, behind) };
        }
        let bytes = self.bytes_mut();
        prepare_result(bytes);
        bytes
    }
}

impl AsRef<[u8]> for PinnedBuffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl TypeName for PinnedBuffer {
    fn type_name() -> &'static str {
        "Uint8Array"
    }

    fn value_type() -> ValueType {
        ValueType::Object
    }
}

impl ValidateNapiValue for PinnedBuffer {}

impl FromNapiValue for PinnedBuffer {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        // SAFETY: `value` is a live value of `env`.
        let view = unsafe { View::from_napi_value(env, value)? };
        // SAFETY: as above.
        let array = unsafe { Uint8Array::from_napi_value(env, value)? };
        let behind = if view.len < OWN_BUFFER { 0 } else { view.behind };
        Ok(Self { array, behind })
    }
}

/// A part of memory that a [`PinnedBuffer`] keeps. Many slices share one keeper: a reference for each takes longer than
/// all other work on it.
pub struct PinnedSlice {
    start: *const u8,
    len: usize,
    /// The reference that keeps the memory from being collected.
    _keeper: Arc<PinnedBuffer>,
}

// SAFETY: nobody writes to the memory while the keeper lives, and the keeper may be sent to another thread.
unsafe impl Send for PinnedSlice {}

impl PinnedSlice {
    /// Returns a slice of `memory`. `keeper` has the only reference to the object that owns the memory.
    pub fn new(memory: &[u8], keeper: &Arc<PinnedBuffer>) -> Self {
        Self { start: memory.as_ptr(), len: memory.len(), _keeper: Arc::clone(keeper) }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `start` and `len` are those of a slice, whose memory the keeper keeps.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

/// Returns the bytes of idle memory.
#[napi]
pub fn idle_bytes() -> f64 {
    IDLE_BUDGET.idle_size() as f64
}

/// Adds to the idle memory of V8 that this thread keeps. Returns false where all idle memory would exceed its bound.
#[napi]
pub fn report_idle(bytes: f64) -> bool {
    IDLE_SHARE.with(|share| share.grow(bytes as usize))
}

/// Subtracts from the idle memory of V8 that this thread keeps.
#[napi]
pub fn report_used(bytes: f64) {
    IDLE_SHARE.with(|share| share.shrink(bytes as usize));
}

/// Returns the bound of [`idle_bytes`].
#[napi]
pub fn max_idle_bytes() -> f64 {
    IDLE_BUDGET.max_size() as f64
}

/// Sets the bound of [`idle_bytes`]. JavaScript releases idle memory of V8.
#[napi]
pub fn set_max_idle_bytes(bytes: f64) {
    IDLE_BUDGET.set_max_size(bytes as usize);
}

/// The work of `releaseIdle` and `prewarm`.
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
}

/// Returns recycled memory that has been idle for `milliseconds` to the system. Resolves to its bytes.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn release_idle(milliseconds: u32) -> AsyncTask<PoolTask<Upkeep>> {
    launch(Upkeep::Release(Duration::from_millis(milliseconds.into())), None)
}

/// Makes `bytes` of recycled memory idle and warm.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn prewarm(bytes: f64) -> AsyncTask<PoolTask<Upkeep>> {
    launch(Upkeep::Prewarm(bytes as usize), None)
}

/// The work of `trimHeap`.
pub struct Trim;

impl Work for Trim {
    type Done = bool;

    fn run(&mut self, _flag: &Flag) -> std::result::Result<bool, Failure> {
        RECYCLER.release(Duration::ZERO);
        Ok(trim())
    }
}

/// Returns idle recycled memory and free pages of the C library's heap to the system.
///
/// Resolves to false where the C library has no call for its pages.
#[napi(ts_return_type = "Promise<boolean | Failure>")]
pub fn trim_heap() -> AsyncTask<PoolTask<Trim>> {
    launch(Trim, None)
}
