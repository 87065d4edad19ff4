//! Memory from the system itself: whole pages, zeroed. Used on any thread by the recycler.
//!
//! The C library's allocator would keep or split freed regions of this size. A dropped region returns to the system.

use std::ptr::NonNull;
use std::slice;

use crate::OutOfMemory;
#[cfg(unix)]
use crate::prefer_huge_pages;

/// Pages of the system.
pub struct Region {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a region is the only owner of its memory, and no thread-local state refers to it.
unsafe impl Send for Region {}
// SAFETY: a shared region returns shared slices only.
unsafe impl Sync for Region {}

impl Region {
    #[cfg(unix)]
    pub fn new(len: usize) -> Result<Self, OutOfMemory> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: an anonymous mapping at an address that the system chooses changes no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(OutOfMemory { size: len });
        }
        let start = NonNull::new(start.cast()).ok_or(OutOfMemory { size: len })?;
        let mut region = Self { start, len };
        prefer_huge_pages(region.as_mut_slice());
        Ok(region)
    }

    #[cfg(not(unix))]
    pub fn new(len: usize) -> Result<Self, OutOfMemory> {
        let layout = layout(len).ok_or(OutOfMemory { size: len })?;
        // SAFETY: the size of the layout is not zero, as a region is never empty.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or(OutOfMemory { size: len })?;
        Ok(Self { start, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `start` points to `len` bytes that this region owns and that the system has initialised.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `start` points to `len` initialised bytes that this region owns; `&mut self` excludes other references.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Region {
    #[cfg(unix)]
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are those of the mapping that `new` made; nothing borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }

    #[cfg(not(unix))]
    fn drop(&mut self) {
        let Some(layout) = layout(self.len) else { return };
        // SAFETY: `new` allocated `start` with this layout.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), layout) };
    }
}

#[cfg(not(unix))]
fn layout(len: usize) -> Option<std::alloc::Layout> {
    const PAGE: usize = 4096;
    std::alloc::Layout::from_size_align(len, PAGE).ok()
}
