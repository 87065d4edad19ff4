//! Free pages of the C library's heap. Called in a task.

/// Returns free pages of the C library's heap to the system. Returns false outside glibc, which alone has such a call.
///
/// Takes about a millisecond for some megabytes. Other threads that allocate from the same arena wait meanwhile.
#[cfg(target_os = "linux")]
#[must_use]
pub fn trim() -> bool {
    let Some(malloc_trim) = *MALLOC_TRIM else { return false };
    // SAFETY: `malloc_trim` is glibc's, takes its own locks and accepts any padding; zero keeps nothing.
    unsafe { malloc_trim(0) };
    true
}

/// Does nothing: only glibc has such a call.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn trim() -> bool {
    false
}

#[cfg(target_os = "linux")]
type MallocTrim = unsafe extern "C" fn(libc::size_t) -> libc::c_int;

/// The function, looked up in the process. An addon linked to it could not be loaded with musl, which has none.
#[cfg(target_os = "linux")]
static MALLOC_TRIM: std::sync::LazyLock<Option<MallocTrim>> = std::sync::LazyLock::new(|| {
    // SAFETY: the name ends with a zero byte; RTLD_DEFAULT searches libraries that are loaded already.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"malloc_trim".as_ptr()) };
    // SAFETY: null becomes `None`; `malloc.h` declares the function with this type; the C library is never unloaded.
    unsafe { std::mem::transmute::<*mut libc::c_void, Option<MallocTrim>>(symbol) }
});
