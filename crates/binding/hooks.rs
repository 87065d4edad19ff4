//! Exports for tests, in the addon that tests build. `__test__/fixtures/hooks.ts` calls them on the JS thread.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use napi::Env;
use napi::bindgen_prelude::{AsyncTask, BufferSlice, Either};
use napi_derive::napi;
use offloop_memory::OutOfMemory;

use crate::failure::Failure;
use crate::stop::{Flag, Stop};
use crate::task::{PoolTask, Work, at_once, launch};

/// The work of `panicTask`.
pub struct Panic(String);

impl Work for Panic {
    type Done = f64;

    #[allow(clippy::panic, reason = "a test needs a panic")]
    fn run(&mut self, _flag: &Flag) -> Result<f64, Failure> {
        panic!("{}", self.0)
    }
}

/// Launches a task that panics.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn panic_task(message: String) -> AsyncTask<PoolTask<Panic>> {
    launch(Panic(message), None)
}

/// Panics on the JS thread.
#[napi]
#[allow(clippy::panic, reason = "a test needs a panic")]
pub fn panic_sync(message: String) -> Either<f64, Failure> {
    at_once(|| panic!("{message}"))
}

/// The work of `waitTask`.
pub struct Wait(Duration);

impl Work for Wait {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let start = Instant::now();
        while start.elapsed() < self.0 {
            flag.check()?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }
}

/// Launches a task that waits, and polls its flag every millisecond. Resolves to the milliseconds it waited.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn wait_task(milliseconds: u32, stop: Option<&Stop>) -> AsyncTask<PoolTask<Wait>> {
    launch(Wait(Duration::from_millis(milliseconds.into())), stop)
}

/// Polls that are left until one finds its flag raised; zero never raises one.
static LOOKS_LEFT: AtomicU32 = AtomicU32::new(0);

/// Raises the flag that the poll of this number reads, counted from now over all flags.
#[napi]
pub fn stop_at_look(look: u32) {
    LOOKS_LEFT.store(look, Ordering::Relaxed);
}

/// Counts a poll; returns whether it is the one that finds its flag raised.
pub fn is_last_look() -> bool {
    let next = |left: u32| left.checked_sub(1);
    LOOKS_LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) == Ok(1)
}

/// Returns the polls that are left.
#[napi]
pub fn looks_left() -> u32 {
    LOOKS_LEFT.load(Ordering::Relaxed)
}

/// The largest result that [`check_memory`] accepts, in bytes.
static MOST_MEMORY: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Makes memory for results of more than `bytes` bytes fail.
#[napi]
pub fn limit_memory(bytes: f64) {
    MOST_MEMORY.store(bytes as usize, Ordering::Relaxed);
}

/// Fails for results larger than `limitMemory` has set.
pub fn check_memory(size: usize) -> Result<(), OutOfMemory> {
    if MOST_MEMORY.load(Ordering::Relaxed) < size { Err(OutOfMemory { size }) } else { Ok(()) }
}

/// Returns a Buffer over memory that V8 does not own, as other addons make them.
#[napi]
pub fn external_bytes(env: &Env, size: u32) -> napi::Result<BufferSlice<'_>> {
    BufferSlice::from_data(env, vec![b'Q'; size as usize])
}

/// Makes callgrind write its counts since the last call, under this label.
///
/// Returns false outside valgrind, and on processors other than x86-64.
#[napi]
pub fn dump_counts(label: String) -> bool {
    let Ok(label) = std::ffi::CString::new(label) else { return false };
    is_in_valgrind() && request(&[DUMP_AT, label.as_ptr() as usize, 0, 0, 0, 0]) != NO_ANSWER
}

/// `CALLGRIND_DUMP_STATS_AT` of `valgrind/callgrind.h`.
const DUMP_AT: usize = ((b'C' as usize) << 24 | (b'T' as usize) << 16) + 3;

/// Returns whether valgrind runs this process: `RUNNING_ON_VALGRIND` of `valgrind/valgrind.h`.
fn is_in_valgrind() -> bool {
    !matches!(request(&[0x1001, 0, 0, 0, 0, 0]), 0 | NO_ANSWER)
}

/// The answer of a request outside valgrind.
const NO_ANSWER: usize = usize::MAX;

/// Sends a request to valgrind, and returns its answer.
#[cfg(target_arch = "x86_64")]
fn request(arguments: &[usize; 6]) -> usize {
    let mut answer = NO_ANSWER;
    // SAFETY: outside valgrind, rotations by 128 bits together and an exchange of a register with itself change nothing.
    // Valgrind reads `arguments`, which outlives the block, and writes `rdx`.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}

/// Returns [`NO_ANSWER`]: the request of this processor is not written here.
#[cfg(not(target_arch = "x86_64"))]
fn request(_arguments: &[usize; 6]) -> usize {
    NO_ANSWER
}
