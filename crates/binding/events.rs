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
use crate::source::{InputBytes, InputChunk, Taken};

/// The events of one stream.
#[napi]
pub struct EventStream(RefCell<EventReader<Taken>>);

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

    /// Copies a chunk. All events before it must have been taken.
    #[napi]
    pub fn push(&self, #[napi(ts_arg_type = "Uint8Array")] chunk: View) -> Option<Failure> {
        let pushed = self.0.borrow_mut().push(chunk.len(), &RECYCLER, |room| chunk.copy_to(room));
        pushed.err().map(Failure::from)
    }

    /// Copies the chunks of `source`, and empties it.
    #[napi]
    pub fn push_all(&self, source: &InputBytes) -> Option<Failure> {
        let chunks = source.drain();
        let size = chunks.iter().map(InputChunk::len).sum();
        let copy = |room: &mut [u8]| {
            let Ok(()) = join_chunks(&chunks, room, || Ok::<(), Infallible>(()));
        };
        let pushed = self.0.borrow_mut().push(size, &RECYCLER, copy);
        pushed.err().map(Failure::from)
    }

    /// Returns what comes next: the JSON of small events (see `EventRun`), an event for `scanBody`, a failure, true at the
    /// event that ends the stream, or null where the next chunk is needed.
    #[napi(ts_return_type = "string | InputBytes | Failure | boolean | null")]
    pub fn next<'env>(
        &self,
        env: &'env Env,
    ) -> Result<Either4<JsString<'env>, InputBytes, Failure, Option<bool>>> {
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
