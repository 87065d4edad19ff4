//! The class for a captured value that is kept. `src/encode/snapshot.ts` calls it on the JS thread.

use std::cell::{Cell, RefCell};

use napi::Env;
use napi::bindgen_prelude::ObjectFinalize;
use napi_derive::napi;

use crate::tape::{TapeMemory, TapeParts};

/// The memory of a snapshot, for any number of tasks. V8 counts what it does not own as external memory.
#[napi(custom_finalize)]
pub struct SnapshotParts {
    memory: RefCell<TapeMemory>,
    /// The bytes that V8 counts as external memory.
    external_size: Cell<i64>,
}

#[napi]
impl SnapshotParts {
    /// Takes the memory of `tape`.
    #[napi(constructor)]
    pub fn new(env: Env, tape: &TapeParts) -> napi::Result<Self> {
        let memory = tape.take();
        let external_size = i64::try_from(memory.native_size()).unwrap_or(i64::MAX);
        env.adjust_external_memory(external_size)?;
        Ok(Self { memory: RefCell::new(memory), external_size: Cell::new(external_size) })
    }

    /// The bytes of all memory.
    #[napi(getter)]
    #[must_use]
    pub fn size(&self) -> f64 {
        self.memory.borrow().size() as f64
    }

    /// Returns references to the memory, for one task.
    #[napi]
    #[must_use]
    pub fn share(&self) -> TapeParts {
        self.memory.borrow().clone().into()
    }

    /// Drops the memory, once no task reads it.
    #[napi]
    pub fn clear(&self, env: Env) -> napi::Result<()> {
        drop(self.memory.take());
        env.adjust_external_memory(-self.external_size.take())?;
        Ok(())
    }
}

impl ObjectFinalize for SnapshotParts {
    fn finalize(self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(-self.external_size.get())?;
        Ok(())
    }
}
