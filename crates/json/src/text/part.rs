//! Loads text that ends within a vector. On any thread; the kernels without masked loads call it.

/// Loads fewer than 16 bytes, the first in the lowest bits, followed by zeros. Two loads overlap, so that neither reads
/// beyond the end.
///
/// # Safety
/// `src` is readable for `len` bytes.
#[inline]
pub unsafe fn load(src: *const u8, len: usize) -> [u64; 2] {
    debug_assert!(len < 16);
    if 8 <= len {
        // SAFETY: at least eight bytes are readable.
        let first = unsafe { src.cast::<u64>().read_unaligned() };
        // SAFETY: these are the last eight bytes.
        let last = unsafe { src.wrapping_add(len - 8).cast::<u64>().read_unaligned() };
        // Two shifts, since shifting by 64 overflows.
        return [first, last >> (8 * (15 - len)) >> 8];
    }
    if 4 <= len {
        // SAFETY: at least four bytes are readable.
        let first = unsafe { src.cast::<u32>().read_unaligned() };
        // SAFETY: these are the last four bytes.
        let last = unsafe { src.wrapping_add(len - 4).cast::<u32>().read_unaligned() };
        return [u64::from(first) | u64::from(last) << (8 * (len - 4)), 0];
    }
    if len == 0 {
        return [0, 0];
    }
    // SAFETY: at least one byte is readable.
    let first = unsafe { src.read() };
    // SAFETY: `len / 2` is below `len`.
    let middle = unsafe { src.wrapping_add(len / 2).read() };
    // SAFETY: this is the last byte.
    let last = unsafe { src.wrapping_add(len - 1).read() };
    let bytes = u64::from(first)
        | u64::from(middle) << (8 * (len / 2))
        | u64::from(last) << (8 * (len - 1));
    [bytes, 0]
}
