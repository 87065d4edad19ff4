//! JSON text that tapes refer to by index: keys, and keys with frequent values.
//!
//! The JS thread adds text; tasks read it at the same time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::msgpack::PackedEntry;

const CHUNK: usize = 128;
const CHUNKS: usize = 64;

/// The length up to which an entry is copied as one block, in bytes.
pub(crate) const SHORT: usize = 32;

/// A bounded list of text that only grows. Entries never move.
#[derive(Debug)]
pub struct Lexicon {
    chunks: [OnceLock<Box<[OnceLock<LexiconEntry>; CHUNK]>>; CHUNKS],
    len: AtomicUsize,
}

impl Default for Lexicon {
    fn default() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS], len: AtomicUsize::new(0) }
    }
}

/// One text, as JSON and as `MessagePack`.
#[derive(Debug)]
pub(crate) struct LexiconEntry {
    /// The text. Zeros up to [`SHORT`] follow a short text.
    bytes: Box<[u8]>,
    len: usize,
    packed: OnceLock<PackedEntry>,
}

impl LexiconEntry {
    fn new(text: &str) -> Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(text.len().max(SHORT), 0);
        Self { bytes: bytes.into_boxed_slice(), len: text.len(), packed: OnceLock::new() }
    }

    /// Returns a block that begins with the text, and the length of the text; `None` for a long text.
    #[inline]
    pub(crate) fn short(&self) -> Option<(&[u8; SHORT], usize)> {
        if SHORT < self.len {
            return None;
        }
        Some((self.bytes.first_chunk()?, self.len))
    }

    /// Returns the text as `MessagePack`, made at the first call.
    #[inline]
    pub(crate) fn packed(&self) -> &PackedEntry {
        self.packed.get_or_init(|| PackedEntry::of(str::from_utf8(self.text()).unwrap_or_default()))
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Lexicon {
    /// Adds a text; returns its index, or `None` if the lexicon is full.
    pub fn add(&self, text: &str) -> Option<usize> {
        let index = self.len.fetch_add(1, Ordering::Relaxed);
        let chunk = self.chunks.get(index / CHUNK)?.get_or_init(empty_chunk);
        chunk.get(index % CHUNK)?.set(LexiconEntry::new(text)).ok()?;
        Some(index)
    }

    /// Returns the text at an index.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&LexiconEntry> {
        self.chunks.get(index / CHUNK)?.get()?.get(index % CHUNK)?.get()
    }
}

fn empty_chunk() -> Box<[OnceLock<LexiconEntry>; CHUNK]> {
    Box::new([const { OnceLock::new() }; CHUNK])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_numbers_until_it_is_full() {
        let capacity = CHUNK * CHUNKS;
        let lexicon = Lexicon::default();
        for index in 0..capacity {
            assert_eq!(lexicon.add(&index.to_string()), Some(index));
        }
        assert_eq!(lexicon.add("more"), None);
        let texts = (0..capacity).map(|index| lexicon.get(index).map(LexiconEntry::text));
        assert!(texts.enumerate().all(|(index, text)| text == Some(index.to_string().as_bytes())));
        assert!(lexicon.get(capacity).is_none());
    }
}
