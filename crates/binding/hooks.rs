//! Only in the addon that tests build for themselves.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use napi::Env;
use napi::bindgen_prelude::{AsyncTask, BufferSlice, Either};
use napi_derive::napi;

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

/// Bytes over memory that is not V8's, as other addons make them.
#[napi]
pub fn external_bytes(env: &Env, size: u32) -> napi::Result<BufferSlice<'_>> {
    BufferSlice::from_data(env, vec![b'Q'; size as usize])
}

/// The lock of a file, held by this thread.
#[napi]
pub struct HeldLock(Option<File>);

#[napi]
impl HeldLock {
    #[napi(constructor)]
    pub fn new(path: String) -> napi::Result<Self> {
        let file =
            File::open(&path).map_err(|error| napi::Error::from_reason(error.to_string()))?;
        let is_held = offloop_jsonl::lock(&file, Path::new(&path)).is_ok_and(|is_held| is_held);
        Ok(Self(is_held.then_some(file)))
    }

    #[napi(getter)]
    pub fn is_held(&self) -> bool {
        self.0.is_some()
    }

    #[napi]
    pub fn release(&mut self) {
        self.0 = None;
    }
}
