//! Glue of `parseEvents`: chunks of a stream go in, events come out, on the JS thread. `src/parse/events.ts` calls it.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;

use napi::bindgen_prelude::Either4;
use napi::{Env, JsString, Result};
use napi_derive::napi;
use offloop_body::{EventReader, EventRules, EventStep};
use offloop_memory::join_chunks;

use crate::body::LiftPointers;
use crate::failure::Failure;
use crate::memory::{RECYCLER, View};
use crate::source::{InputBytes, InputChunk, InputMemory};

type NativeStep<'env> = Either4<JsString<'env>, InputBytes, Failure, Option<bool>>;

/// The events of one stream.
#[napi]
pub struct EventStream(RefCell<EventReader<InputMemory>>);

impl EventStream {
    /// Adds `size` bytes, which `copy` writes, and returns what [`Self::next`] returns.
    fn push_bytes<'env>(
        &self,
        env: &'env Env,
        size: usize,
        copy: impl FnOnce(&mut [u8]),
    ) -> Result<NativeStep<'env>> {
        let pushed = self.0.borrow_mut().push(size, &RECYCLER, copy);
        pushed.map_or_else(|error| Ok(Either4::C(error.into())), |()| self.next(env))
    }
}

#[napi]
impl EventStream {
    /// `done` is the data of the event that ends the stream.
    #[napi(constructor)]
    #[must_use]
    pub fn new(lifts: &LiftPointers, done: Option<String>, max_event_bytes: f64) -> Self {
        let done = done.map(|done| Arc::from(done.into_bytes()));
        let rules = EventRules { done, max_size: max_event_bytes as usize };
        Self(RefCell::new(EventReader::new(lifts.config(), rules)))
    }

    /// Copies a chunk and returns what [`Self::next`] returns. All events before it must have been taken. `skipped` bytes
    /// before it are left out: see `EventReader::skip`.
    #[napi(ts_return_type = "string | InputBytes | Failure | boolean | null")]
    pub fn push<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "Uint8Array")] chunk: View,
        skipped: f64,
    ) -> Result<NativeStep<'env>> {
        self.0.borrow_mut().skip(skipped as usize);
        self.push_bytes(env, chunk.len(), |room| chunk.copy_to(room))
    }

    /// Copies the chunks of `source`, empties it, and returns what [`Self::next`] returns.
    #[napi(ts_return_type = "string | InputBytes | Failure | boolean | null")]
    pub fn push_all<'env>(&self, env: &'env Env, source: &InputBytes) -> Result<NativeStep<'env>> {
        let chunks = source.drain();
        let size = chunks.iter().map(InputChunk::len).sum();
        self.push_bytes(env, size, |room| {
            let Ok(()) = join_chunks(&chunks, room, || Ok::<(), Infallible>(()));
        })
    }

    /// Returns what comes next: the JSON of small events (see `EventRun`), an event for `scanBody`, a failure, true at the
    /// event that ends the stream, or null where the next chunk is needed.
    #[napi(ts_return_type = "string | InputBytes | Failure | boolean | null")]
    pub fn next<'env>(&self, env: &'env Env) -> Result<NativeStep<'env>> {
        Ok(match self.0.borrow_mut().next(&RECYCLER) {
            Some(EventStep::Run(json)) if json.is_ascii() => {
                Either4::A(env.create_string_latin1(json.as_bytes())?)
            }
            Some(EventStep::Run(json)) => Either4::A(env.create_string(&json)?),
            Some(EventStep::Event(gathered, event)) => {
                Either4::B(InputBytes::of_event(gathered, event))
            }
            Some(EventStep::Failed(error)) => Either4::C(error.into()),
            Some(EventStep::Done) => Either4::D(Some(true)),
            None => Either4::D(None),
        })
    }
}
