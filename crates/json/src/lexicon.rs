//! Text that a tape refers to by number: keys, keys with their usual values. One thread adds, any thread reads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::msgpack::PackedEntry;

const CHUNK: usize = 128;
const CHUNKS: usize = 64;

/// Entries up to this length are copied as one block of it.
pub(crate) const SHORT: usize = 32;

/// A bounded list that only grows; what is in it stays where it is.
#[derive(Debug)]
pub struct Lexicon {
    chunks: [OnceLock<Box<[OnceLock<Entry>; CHUNK]>>; CHUNKS],
    len: AtomicUsize,
}

impl Default for Lexicon {
    fn default() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS], len: AtomicUsize::new(0) }
    }
}

#[derive(Debug)]
pub(crate) struct Entry {
    /// Zeros up to [`SHORT`] behind a short text.
    bytes: Box<[u8]>,
    len: usize,
    packed: OnceLock<PackedEntry>,
}

impl Entry {
    fn new(text: &str) -> Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(text.len().max(SHORT), 0);
        Self { bytes: bytes.into_boxed_slice(), len: text.len(), packed: OnceLock::new() }
    }

    /// The text as the start of a block, if it is that short.
    #[inline]
    pub(crate) fn short(&self) -> Option<(&[u8; SHORT], usize)> {
        if SHORT < self.len {
            return None;
        }
        Some((self.bytes.first_chunk()?, self.len))
    }

    /// The same in `MessagePack`, which not everybody asks for.
    #[inline]
    pub(crate) fn packed(&self) -> &PackedEntry {
        self.packed.get_or_init(|| PackedEntry::of(str::from_utf8(self.text()).unwrap_or_default()))
    }

    pub(crate) fn text(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Lexicon {
    /// Adds JSON text; tells its number. None when the lexicon is full.
    pub fn add(&self, text: &str) -> Option<usize> {
        let index = self.len.fetch_add(1, Ordering::Relaxed);
        let chunk = self.chunks.get(index / CHUNK)?.get_or_init(empty_chunk);
        chunk.get(index % CHUNK)?.set(Entry::new(text)).ok()?;
        Some(index)
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&Entry> {
        self.chunks.get(index / CHUNK)?.get()?.get(index % CHUNK)?.get()
    }
}

fn empty_chunk() -> Box<[OnceLock<Entry>; CHUNK]> {
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
        let texts = (0..capacity).map(|index| lexicon.get(index).map(Entry::text));
        assert!(texts.enumerate().all(|(index, text)| text == Some(index.to_string().as_bytes())));
        assert!(lexicon.get(capacity).is_none());
    }
}
