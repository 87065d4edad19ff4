//! Appends bytes to memory of the caller, in tasks. The memory grows where its size was underestimated.

use std::ptr;

/// Memory of the caller.
pub trait Memory {
    type Error;

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
    len: usize,
    error: Option<M::Error>,
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
        let mut output = Self { memory, start: ptr::null_mut(), capacity: 0, len: 0, error: None };
        output.look();
        Ok(output)
    }

    fn look(&mut self) {
        let bytes = self.memory.bytes();
        (self.start, self.capacity) = (bytes.as_mut_ptr(), bytes.len());
    }

    pub fn len(&self) -> usize {
        self.len
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

    /// Replaces a comma at the end by `byte`; without a comma, appends `byte`.
    #[inline]
    pub fn close(&mut self, byte: u8) {
        if self.len == 0 {
            return self.byte(byte);
        }
        let last = self.start.wrapping_add(self.len - 1);
        // SAFETY: `0 < len <= capacity`, so `last` is a readable byte of the memory.
        let is_comma = unsafe { *last } == b',';
        if !is_comma {
            return self.byte(byte);
        }
        // SAFETY: `0 < len <= capacity`, so `last` is a writable byte of the memory.
        unsafe { *last = byte };
    }

    /// Removes a comma at the end.
    pub fn drop_comma(&mut self) {
        if self.len == 0 {
            return;
        }
        // SAFETY: `0 < len <= capacity`, so this is a readable byte of the memory.
        let last = unsafe { *self.start.wrapping_add(self.len - 1) };
        if last == b',' {
            self.len -= 1;
        }
    }

    /// Removes all but the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Replaces the bytes from `start` to `end` by `bytes`. The bytes behind them move.
    pub fn replace(&mut self, start: usize, end: usize, bytes: &[u8]) {
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

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, size: usize) {
        let wanted = (self.len + size).max(self.capacity + self.capacity / 2);
        match self.memory.grow(self.len, wanted) {
            Ok(()) => self.look(),
            Err(error) => {
                self.error.get_or_insert(error);
                self.len = 0;
            }
        }
    }
}
