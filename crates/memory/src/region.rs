//! Memory straight from the system, whole pages, zeroed. The C library's allocator would keep freed regions of this
//! size for itself or split them; here, what is dropped is gone.

use std::ptr::NonNull;
use std::slice;

use crate::OutOfMemory;
#[cfg(unix)]
use crate::prefer_huge_pages;

pub struct Region {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a region is the only owner of its memory, which no thread-local state knows.
unsafe impl Send for Region {}
// SAFETY: a shared region gives out shared slices only.
unsafe impl Sync for Region {}

impl Region {
    #[cfg(unix)]
    pub fn new(len: usize) -> Result<Self, OutOfMemory> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
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
        // SAFETY: a region is never empty, so the layout is not.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or(OutOfMemory { size: len })?;
        Ok(Self { start, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `len` bytes that this region owns, initialised by the system or by an earlier user.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed through `&mut self`.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Region {
    #[cfg(unix)]
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, whole; nothing borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }

    #[cfg(not(unix))]
    fn drop(&mut self) {
        let Some(layout) = layout(self.len) else { return };
        // SAFETY: allocated by `new` with this layout.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), layout) };
    }
}

#[cfg(not(unix))]
fn layout(len: usize) -> Option<std::alloc::Layout> {
    const PAGE: usize = 4096;
    std::alloc::Layout::from_size_align(len, PAGE).ok()
}
