//! What every task does around its work: claim a slot, look at the flag, catch panics, return failures as data, and
//! give memory and slot back on the pool's thread.

use napi::bindgen_prelude::{AsyncTask, Either, ToNapiValue, TypeName};
use napi::{Env, Result, Task};

use crate::failure::Failure;
use crate::guard::guard;
use crate::slot::Slot;
use crate::stop::{Flag, Stop};

pub trait Work: Send + 'static {
    type Done: Send + ToNapiValue + TypeName + 'static;

    /// Off the JS thread. Looks at `flag` every few milliseconds.
    fn run(&mut self, flag: &Flag) -> std::result::Result<Self::Done, Failure>;

    /// Gives back recycled memory, whether `run` was called or not, still off the JS thread. References to JavaScript
    /// objects stay: they are let go on the JS thread.
    fn recycle(&mut self);
}

pub struct Job<W> {
    work: W,
    flag: Flag,
    slot: Option<Slot>,
}

/// The promise of `work`'s result or failure.
pub fn launch<W: Work>(work: W, stop: Option<&Stop>) -> AsyncTask<Job<W>>
where
    Job<W>: Task,
{
    AsyncTask::new(Job { work, flag: stop.into(), slot: Slot::claim() })
}

impl<W: Work> Task for Job<W> {
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

/// The same for work that is done on the JS thread.
pub fn at_once<T>(work: impl FnOnce() -> std::result::Result<T, Failure>) -> Either<T, Failure> {
    settle(guard(work))
}

fn settle<T>(outcome: std::result::Result<T, Failure>) -> Either<T, Failure> {
    match outcome {
        Ok(done) => Either::A(done),
        Err(failure) => Either::B(failure),
    }
}
