/// Gives pages that are free in the C library's heap back to the system; false where there is no such call: outside glibc.
/// Takes a millisecond for some megabytes that it gives back, with the arena they are of locked: who allocates there waits.
#[cfg(target_os = "linux")]
#[must_use]
pub fn trim() -> bool {
    let Some(malloc_trim) = *MALLOC_TRIM else { return false };
    // SAFETY: glibc's own function, which takes its own locks; zero keeps nothing at the top of the heap.
    unsafe { malloc_trim(0) };
    true
}

/// Elsewhere there is nobody to ask.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn trim() -> bool {
    false
}

#[cfg(target_os = "linux")]
type MallocTrim = unsafe extern "C" fn(libc::size_t) -> libc::c_int;

/// Looked for in the process rather than linked to: musl has none, and an addon that asks for it could not be loaded there.
#[cfg(target_os = "linux")]
static MALLOC_TRIM: std::sync::LazyLock<Option<MallocTrim>> = std::sync::LazyLock::new(|| {
    // SAFETY: a name that ends with a zero, looked for in what is loaded already.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"malloc_trim".as_ptr()) };
    // SAFETY: null is `None`; malloc.h declares it with this type, and the C library stays as long as the process.
    unsafe { std::mem::transmute::<*mut libc::c_void, Option<MallocTrim>>(symbol) }
});
