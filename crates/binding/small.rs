//! A function that prints small values on the JS thread. `src/capture/small-encoder.ts` binds and calls it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::{Function, Uint8Array};
use napi_derive::napi;
use offloop_json::{Kernel, SmallEncoding, answer_small, print_small};

use crate::guard::guard;
use crate::memory::PinnedBuffer;
use crate::tape::{Lexicon, SegmentMemory, TapeSegment};

/// Memory for small results, one behind the other.
///
/// `src/encode` replaces it when it is full or was transferred.
#[napi]
#[derive(Default)]
pub struct SmallOutput(Rc<RefCell<Option<PinnedBuffer>>>);

#[napi]
impl SmallOutput {
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[napi]
    pub fn replace(&self, memory: Uint8Array) {
        self.0.replace(Some(PinnedBuffer::new(memory)));
    }
}

/// The memory that one bound function reads and writes.
struct SmallEncoder {
    header: RefCell<PinnedBuffer>,
    segment: Arc<SegmentMemory>,
    lexicon: Arc<offloop_json::Lexicon>,
    output: Rc<RefCell<Option<PinnedBuffer>>>,
    kernel: Kernel,
}

impl SmallEncoder {
    fn print(&self) -> i32 {
        let encoding = SmallEncoding {
            memory: self.segment.memory.bytes(),
            room: self.segment.room,
            lexicon: &self.lexicon,
            kernel: self.kernel,
        };
        let mut output = self.output.borrow_mut();
        let out = output.as_mut().map(PinnedBuffer::bytes_mut).unwrap_or_default();
        print_small(&encoding, self.header.borrow().bytes(), out)
    }
}

/// Returns a function that prints `segment` to `output`. Arguments and result are in `header`: see
/// `crates/json/src/small.rs`.
#[napi(ts_return_type = "() => void")]
pub fn bind_small_encoder<'env>(
    env: &'env Env,
    header: Uint8Array,
    segment: &TapeSegment,
    lexicon: &Lexicon,
    output: &SmallOutput,
) -> napi::Result<Function<'env, (), ()>> {
    let encoder = SmallEncoder {
        header: RefCell::new(PinnedBuffer::new(header)),
        segment: Arc::clone(&segment.memory),
        lexicon: Arc::clone(&lexicon.0),
        output: Rc::clone(&output.0),
        kernel: Kernel::best(),
    };
    env.create_function_from_closure("encodeSmall", move |_| {
        let answer = guard(|| Ok(encoder.print())).unwrap_or(SmallEncoding::FAILED);
        answer_small(encoder.header.borrow_mut().bytes_mut(), answer);
        Ok(())
    })
}
