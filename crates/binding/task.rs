//! Tasks in libuv's pool. Every glue file launches its work here, on the JS thread.
//!
//! A task claims a slot, polls its flag, catches panics and returns failures as data. At its end, on the pool's thread, it
//! drops recycled memory and its slot.

use napi::bindgen_prelude::{AsyncTask, Either, ToNapiValue, TypeName};
use napi::{Env, Result, Task};
use offloop_pool::Slot;

use crate::failure::Failure;
use crate::guard::guard;
use crate::slot::claim;
use crate::stop::{Flag, Stop};

/// The work of a task.
pub trait Work: Send + 'static {
    type Done: Send + ToNapiValue + TypeName + 'static;

    /// Does the work, off the JS thread. Polls `flag` every few milliseconds.
    fn run(&mut self, flag: &Flag) -> std::result::Result<Self::Done, Failure>;

    /// Drops recycled memory, if the work has any, off the JS thread, whether `run` was called or not.
    ///
    /// References to JavaScript objects stay: they may be dropped on the JS thread only.
    fn recycle(&mut self) {}
}

/// Work on its way through the pool.
pub struct PoolTask<W> {
    work: W,
    flag: Flag,
    slot: Option<Slot>,
}

/// Launches a task; returns the promise of its result or failure.
pub fn launch<W: Work>(work: W, stop: Option<&Stop>) -> AsyncTask<PoolTask<W>>
where
    PoolTask<W>: Task,
{
    AsyncTask::new(PoolTask { work, flag: stop.into(), slot: claim() })
}

impl<W: Work> Task for PoolTask<W> {
    type Output = std::result::Result<W::Done, Failure>;
    type JsValue = Either<W::Done, Failure>;

    fn compute(&mut self) -> Result<Self::Output> {
        let slot = self.slot.take();
        let outcome = self.flag.begin().and_then(|()| guard(|| self.work.run(&self.flag)));
        let recycled = guard(|| {
            self.work.recycle();
            Ok(())
        });
        drop(slot);
        Ok(outcome.and_then(|done| recycled.map(|()| done)))
    }

    fn resolve(&mut self, _env: Env, outcome: Self::Output) -> Result<Self::JsValue> {
        Ok(settle(outcome))
    }
}

/// Does work on the JS thread; returns its result or failure.
pub fn at_once<T>(work: impl FnOnce() -> std::result::Result<T, Failure>) -> Either<T, Failure> {
    settle(guard(work))
}

fn settle<T>(outcome: std::result::Result<T, Failure>) -> Either<T, Failure> {
    match outcome {
        Ok(done) => Either::A(done),
        Err(failure) => Either::B(failure),
    }
}
