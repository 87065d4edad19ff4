//! Where JSON goes: memory that grows where a guess at its size was too low.

use std::ptr;

/// Memory of the caller.
pub trait Memory {
    type Error;

    fn bytes(&mut self) -> &mut [u8];

    /// Makes it hold at least `size` bytes, the first `len` of them as they are.
    ///
    /// # Errors
    /// Where there is no more; it stays as it is then.
    fn grow(&mut self, len: usize, size: usize) -> Result<(), Self::Error>;
}

/// Appends to a [`Memory`]. A failure to grow is kept until it is asked for: what is written meanwhile is lost, within
/// bounds, so that the writing itself has no errors to pass on.
pub(crate) struct Output<'m, M: Memory> {
    memory: &'m mut M,
    /// What `memory.bytes()` said last.
    start: *mut u8,
    capacity: usize,
    len: usize,
    error: Option<M::Error>,
}

/// What there is room for in any memory: the largest block that is written at once.
const LEAST: usize = 64;

impl<'m, M: Memory> Output<'m, M> {
    /// # Errors
    /// Where `memory` is too small and cannot grow.
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

    /// Bytes that can be written without growing.
    #[inline]
    pub fn left(&self) -> usize {
        self.capacity - self.len
    }

    /// The failure that was kept.
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
        // SAFETY: the memory is ours until `make_room` looks again, and has room for N bytes.
        unsafe { ptr::copy_nonoverlapping(block.as_ptr(), end, N) };
        self.len += len.min(N);
    }

    /// Appends what `write` has written to the place given, as long as it says.
    #[inline]
    pub fn place<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N]) -> usize) {
        const { assert!(N <= LEAST) };
        // Too little room is a failure to grow, which is kept.
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

    /// At least `size` bytes behind what is written; none after a failure.
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
        // SAFETY: what is behind `len`; the memory is borrowed as long as `self` is.
        unsafe { std::slice::from_raw_parts_mut(end, capacity - len) }
    }

    /// Takes `len` bytes of the room as written.
    #[inline]
    pub fn advance(&mut self, len: usize) {
        self.len = (self.len + len).min(self.capacity);
    }

    /// Puts `byte` in the place of a comma at the end, or behind what stands there.
    #[inline]
    pub fn close(&mut self, byte: u8) {
        if self.len == 0 {
            return self.byte(byte);
        }
        let last = self.start.wrapping_add(self.len - 1);
        // SAFETY: a byte that was written.
        let is_comma = unsafe { *last } == b',';
        if !is_comma {
            return self.byte(byte);
        }
        // SAFETY: as above.
        unsafe { *last = byte };
    }

    /// Takes a comma at the end back.
    pub fn drop_comma(&mut self) {
        if self.len == 0 {
            return;
        }
        // SAFETY: a byte that was written.
        let last = unsafe { *self.start.wrapping_add(self.len - 1) };
        if last == b',' {
            self.len -= 1;
        }
    }

    /// Forgets all but the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Puts `bytes` in the place of those from `start` to `end`; what is behind them moves.
    pub fn replace(&mut self, start: usize, end: usize, bytes: &[u8]) {
        let behind = start + bytes.len();
        self.room(behind.saturating_sub(end));
        // Less is written than there was only after a failure to grow.
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
