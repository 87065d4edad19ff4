//! Only in the addon that tests build for themselves.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use napi::Env;
use napi::bindgen_prelude::{AsyncTask, BufferSlice, Either};
use napi_derive::napi;
use offloop_memory::OutOfMemory;

use crate::failure::Failure;
use crate::stop::{Flag, Stop};
use crate::task::{Job, Work, at_once, launch};

pub struct Panic(String);

impl Work for Panic {
    type Done = f64;

    #[allow(clippy::panic, reason = "what this is for")]
    fn run(&mut self, _flag: &Flag) -> Result<f64, Failure> {
        panic!("{}", self.0)
    }

    fn recycle(&mut self) {}
}

/// A task that panics.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn panic_task(message: String) -> AsyncTask<Job<Panic>> {
    launch(Panic(message), None)
}

/// A panic on the JS thread.
#[napi]
#[allow(clippy::panic, reason = "what this is for")]
pub fn panic_sync(message: String) -> Either<f64, Failure> {
    at_once(|| panic!("{message}"))
}

/// Waits in the pool, looking at its flag every millisecond; tells for how long it waited.
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

    fn recycle(&mut self) {}
}

/// A task that waits.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn wait_task(milliseconds: u32, stop: Option<&Stop>) -> AsyncTask<Job<Wait>> {
    launch(Wait(Duration::from_millis(milliseconds.into())), stop)
}

/// Looks at flags until one finds its flag raised; none counts where it is zero.
static LOOKS_LEFT: AtomicU32 = AtomicU32::new(0);

/// The look of that number from now on, at any flag, finds the flag raised, as if the abort had come just before.
#[napi]
pub fn stop_at_look(look: u32) {
    LOOKS_LEFT.store(look, Ordering::Relaxed);
}

/// Whether the stop that was asked for comes now.
pub fn is_last_look() -> bool {
    let next = |left: u32| left.checked_sub(1);
    LOOKS_LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) == Ok(1)
}

/// How many looks are left until then.
#[napi]
pub fn looks_left() -> u32 {
    LOOKS_LEFT.load(Ordering::Relaxed)
}

/// The largest block that there is memory for.
static MOST_MEMORY: AtomicUsize = AtomicUsize::new(usize::MAX);

/// There is no memory for results that do not fit blocks of so many bytes, from now on.
#[napi]
pub fn limit_memory(bytes: f64) {
    MOST_MEMORY.store(bytes as usize, Ordering::Relaxed);
}

pub fn check_memory(size: usize) -> Result<(), OutOfMemory> {
    if MOST_MEMORY.load(Ordering::Relaxed) < size { Err(OutOfMemory { size }) } else { Ok(()) }
}

/// Bytes over memory that is not V8's, as other addons make them.
#[napi]
pub fn external_bytes(env: &Env, size: u32) -> napi::Result<BufferSlice<'_>> {
    BufferSlice::from_data(env, vec![b'Q'; size as usize])
}
