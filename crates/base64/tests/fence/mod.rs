//! Memory between pages that cannot be accessed. The tests of kernels in all crates use it.

/// One page between two that fault on access.
pub struct Fence {
    base: *mut u8,
    page: usize,
}

impl Fence {
    pub fn new() -> Self {
        // SAFETY: the call only returns a constant.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, which nothing else owns.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), 3 * page, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let base = base.cast::<u8>();
        // SAFETY: inside the mapping.
        let middle = unsafe { base.add(page) };
        // SAFETY: a whole page of the mapping.
        let status =
            unsafe { libc::mprotect(middle.cast(), page, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(status, 0);
        Self { base, page }
    }

    pub fn slice(&mut self, len: usize, at_end: bool) -> &mut [u8] {
        assert!(len <= self.page);
        let offset = self.page + if at_end { self.page - len } else { 0 };
        // SAFETY: inside the mapping.
        let start = unsafe { self.base.add(offset) };
        // SAFETY: `len` bytes of the page that may be touched, borrowed through `self`.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, whole.
        unsafe { libc::munmap(self.base.cast(), 3 * self.page) };
    }
}
