//! Advisory lock that keeps two writers off one file. It ends with the handle or the process. Taken in tasks, on opening.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::file::{FileError, failed, uninterrupted};

/// Takes the lock for as long as the handle is open. Returns false if another handle of the file holds it, in this process or
/// another.
///
/// # Errors
/// Errors of the system; some file systems have no locks.
pub fn lock(file: &File, path: &Path) -> Result<bool, FileError> {
    uninterrupted(|| try_lock(file)).map_err(failed("flock", path))
}

/// Locks the open file with `flock`. A lock of `fcntl` belongs to the process and ends with any of its handles.
#[cfg(unix)]
fn try_lock(file: &File) -> io::Result<bool> {
    use std::os::fd::AsRawFd;

    // SAFETY: the descriptor is open while `file` is borrowed; `flock` gets no pointers.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) }
}

#[cfg(windows)]
fn try_lock(file: &File) -> io::Result<bool> {
    use std::os::windows::io::AsRawHandle;

    let mut place =
        Overlapped { low: u32::MAX - 1, high: i32::MAX as u32, ..Overlapped::default() };
    let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open while `file` is borrowed; `place` outlives the call, which returns at once because of
    // LOCKFILE_FAIL_IMMEDIATELY.
    if unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut place) } != 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(ERROR_LOCK_VIOLATION) { Ok(false) } else { Err(error) }
}

#[cfg(windows)]
const LOCKFILE_FAIL_IMMEDIATELY: u32 = 1;
#[cfg(windows)]
const LOCKFILE_EXCLUSIVE_LOCK: u32 = 2;
#[cfg(windows)]
const ERROR_LOCK_VIOLATION: i32 = 33;

/// `OVERLAPPED` of Windows: the offset of the locked byte, which lies behind any data because a locked byte cannot be read.
#[cfg(windows)]
#[repr(C)]
#[derive(Default)]
struct Overlapped {
    internal: usize,
    internal_high: usize,
    low: u32,
    high: u32,
    event: usize,
}

#[cfg(windows)]
#[link(name = "kernel32")]
unsafe extern "system" {
    fn LockFileEx(
        file: std::os::windows::io::RawHandle,
        flags: u32,
        reserved: u32,
        low: u32,
        high: u32,
        place: *mut Overlapped,
    ) -> i32;
}

#[cfg(not(any(unix, windows)))]
fn try_lock(_file: &File) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}
