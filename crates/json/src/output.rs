//! Appends bytes to memory of the caller, in tasks. The memory grows where its size was underestimated.

use std::ptr;

/// Memory of the caller.
pub trait Memory {
    type Error;

    /// Whether the bytes are only counted. Then [`Output`] uses the memory again and again, and keeps the last byte alone.
    const COUNTS: bool = false;

    /// Returns all bytes.
    fn bytes(&mut self) -> &mut [u8];

    /// Grows to at least `size` bytes. The first `len` bytes keep their values.
    ///
    /// # Errors
    /// Fails where there is no memory; the memory then stays as it is.
    fn grow(&mut self, len: usize, size: usize) -> Result<(), Self::Error>;
}

/// Appends to a [`Memory`].
///
/// A failure to grow is kept until [`Output::check`]. Until then bytes are lost, within bounds. So the functions that
/// write return no errors.
pub(crate) struct Output<'m, M: Memory> {
    memory: &'m mut M,
    /// The start of `memory.bytes()`, as of the last `look`.
    start: *mut u8,
    capacity: usize,
    /// The bytes of the memory that are written.
    len: usize,
    /// The bytes before those of the memory, where the memory counts.
    forgotten: usize,
    error: Option<M::Error>,
}

/// A place in an [`Output`], to go back to.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    len: usize,
    /// The byte before the place; 0 at the start.
    last: u8,
}

/// Bytes that replace the byte at `at`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WideBlock {
    pub at: usize,
    pub bytes: [u8; 5],
    /// How many of `bytes` to use, at least one.
    pub len: usize,
}

/// The least size of memory, and the largest block that is written at once.
const LEAST: usize = 64;

impl<'m, M: Memory> Output<'m, M> {
    /// Appends from the start of `memory` on.
    ///
    /// # Errors
    /// Fails where `memory` is smaller than [`LEAST`] and cannot grow.
    pub fn new(memory: &'m mut M) -> Result<Self, M::Error> {
        if memory.bytes().len() < LEAST {
            memory.grow(0, LEAST)?;
        }
        let start = ptr::null_mut();
        let mut output = Self { memory, start, capacity: 0, len: 0, forgotten: 0, error: None };
        output.look();
        Ok(output)
    }

    fn look(&mut self) {
        let bytes = self.memory.bytes();
        (self.start, self.capacity) = (bytes.as_mut_ptr(), bytes.len());
    }

    pub fn len(&self) -> usize {
        if M::COUNTS { self.forgotten + self.len } else { self.len }
    }

    /// Returns the bytes that can be written without growing.
    #[inline]
    pub fn left(&self) -> usize {
        self.capacity - self.len
    }

    /// Returns the failure that was kept.
    pub fn check(&mut self) -> Result<(), M::Error> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Appends the first `len` bytes of `block`.
    #[inline]
    pub fn put<const N: usize>(&mut self, block: &[u8; N], len: usize) {
        const { assert!(N <= LEAST) };
        if self.capacity - self.len < N {
            self.make_room(N);
        }
        let end = self.start.wrapping_add(self.len);
        // SAFETY: `start` has `capacity` writable bytes, borrowed as long as `self`. `N <= capacity - len` holds: `make_room`
        // grows, or sets `len` to zero, and `N <= LEAST <= capacity`. `block` is no part of the memory.
        unsafe { ptr::copy_nonoverlapping(block.as_ptr(), end, N) };
        self.len += len.min(N);
    }

    /// Appends the bytes that `write` writes to a block; `write` returns their length.
    #[inline]
    pub fn place<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N]) -> usize) {
        const { assert!(N <= LEAST) };
        // There is too little room only after a failure to grow, which is kept.
        let Some(place) = self.room(N).first_chunk_mut() else { return };
        let len = write(place);
        self.advance(len);
    }

    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.put(&[byte], 1);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        if M::COUNTS && LEAST < bytes.len() {
            return self.count(bytes);
        }
        let Some(room) = self.room(bytes.len()).get_mut(..bytes.len()) else { return };
        room.copy_from_slice(bytes);
        self.advance(bytes.len());
    }

    /// Returns the bytes behind the written ones, at least `size`; none after a failure to grow.
    #[inline]
    pub fn room(&mut self, size: usize) -> &mut [u8] {
        if self.capacity - self.len < size {
            self.make_room(size);
        }
        let (len, capacity) = (self.len, self.capacity);
        if capacity - len < size {
            return &mut [];
        }
        let end = self.start.wrapping_add(len);
        // SAFETY: `start` has `capacity` initialised bytes, borrowed as long as `self`, and `len <= capacity`.
        unsafe { std::slice::from_raw_parts_mut(end, capacity - len) }
    }

    /// Counts `len` bytes of the room as written.
    #[inline]
    pub fn advance(&mut self, len: usize) {
        self.len = (self.len + len).min(self.capacity);
    }

    /// Returns the last byte.
    #[inline]
    fn last(&self) -> Option<u8> {
        let last = self.len.checked_sub(1)?;
        // SAFETY: `last < len <= capacity`, so this is a readable byte of the memory.
        Some(unsafe { *self.start.wrapping_add(last) })
    }

    /// Replaces a comma at the end by `byte`; without a comma, appends `byte`.
    #[inline]
    pub fn close(&mut self, byte: u8) {
        self.drop_comma();
        self.byte(byte);
    }

    /// Removes a comma at the end.
    #[inline]
    pub fn drop_comma(&mut self) {
        if self.last() == Some(b',') {
            self.len -= 1;
        }
    }

    /// Returns the place behind the last byte.
    pub fn mark(&self) -> Mark {
        Mark { len: self.len(), last: self.last().unwrap_or_default() }
    }

    /// Removes all bytes behind `mark`.
    pub fn go_back(&mut self, mark: Mark) {
        if M::COUNTS && mark.len <= self.forgotten {
            // The byte before the mark is not in the memory any more.
            self.forgotten = mark.len.saturating_sub(1);
            self.len = 0;
            if 0 < mark.len {
                self.byte(mark.last);
            }
            return;
        }
        self.len = self.len.min(mark.len - self.forgotten);
    }

    /// Replaces the bytes from `start` to `end` by `bytes`. The bytes behind them move. Memory that counts has them no more.
    pub fn replace(&mut self, start: usize, end: usize, bytes: &[u8]) {
        const { assert!(!M::COUNTS) };
        let behind = start + bytes.len();
        self.room(behind.saturating_sub(end));
        // `len` is below `end` only after a failure to grow.
        let Some(len) = self.len.checked_sub(end).map(|rest| behind + rest) else { return };
        let memory = self.memory.bytes();
        if behind != end {
            memory.copy_within(end..self.len, behind);
        }
        if let Some(place) = memory.get_mut(start..behind) {
            place.copy_from_slice(bytes);
        }
        self.len = len;
        self.look();
    }

    /// Replaces the byte at `at`.
    #[inline]
    pub fn set(&mut self, at: usize, byte: u8) {
        const { assert!(!M::COUNTS) };
        if let Some(place) = self.memory.bytes().get_mut(at).filter(|_| at < self.len) {
            *place = byte;
        }
    }

    /// Replaces single bytes by blocks, the last one first. All other bytes move at most once.
    pub fn widen(&mut self, blocks: &[WideBlock]) {
        const { assert!(!M::COUNTS) };
        let added = blocks.iter().map(|block| block.len.saturating_sub(1)).sum();
        self.room(added);
        let is_inside = blocks.first().is_some_and(|block| block.at < self.len);
        // `len` is below a place, or there is no room, only after a failure to grow.
        if !is_inside || self.left() < added {
            return;
        }
        let memory = self.memory.bytes();
        let (mut from, mut to) = (self.len, self.len + added);
        for block in blocks {
            let moved = from.saturating_sub(block.at + 1);
            to -= moved;
            memory.copy_within(from - moved..from, to);
            to -= block.len;
            let bytes = block.bytes.get(..block.len);
            if let (Some(place), Some(bytes)) = (memory.get_mut(to..to + block.len), bytes) {
                place.copy_from_slice(bytes);
            }
            from = block.at;
        }
        self.len += added;
        self.look();
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, size: usize) {
        if M::COUNTS {
            self.forget();
            if size <= self.left() {
                return;
            }
        }
        let wanted = (self.len + size).max(self.capacity + self.capacity / 2);
        match self.memory.grow(self.len, wanted) {
            Ok(()) => self.look(),
            Err(error) => {
                self.error.get_or_insert(error);
                self.len = 0;
            }
        }
    }

    /// Forgets all bytes but the last.
    fn forget(&mut self) {
        let Some(last) = self.last() else { return };
        if let Some(first) = self.memory.bytes().first_mut() {
            *first = last;
        }
        self.forgotten += self.len - 1;
        self.len = 1;
        self.look();
    }

    /// Counts `bytes` and keeps the last one.
    fn count(&mut self, bytes: &[u8]) {
        let Some((&last, rest)) = bytes.split_last() else { return };
        self.forgotten += self.len + rest.len();
        self.len = 0;
        self.byte(last);
    }
}
