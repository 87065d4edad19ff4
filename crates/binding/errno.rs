//! The numbers that libuv, and with it Node, has for the errors of the system.

use std::io;

/// Of an error that has no number of the system's: no caller should see one.
#[cfg(not(windows))]
const EIO: i32 = -5;

#[cfg(not(windows))]
pub fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().map_or(EIO, |number| -number)
}

/// As in `uv/errno.h`: Windows' own numbers are others.
#[cfg(windows)]
pub fn errno(error: &io::Error) -> i32 {
    use io::ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, InvalidFilename, IsADirectory, NotADirectory, NotFound,
        NotSeekable, PermissionDenied, ReadOnlyFilesystem, ResourceBusy, StorageFull, Unsupported,
    };

    /// A handle that somebody else has does not let it be opened.
    const ERROR_SHARING_VIOLATION: i32 = 32;

    if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) {
        return -4082;
    }
    match error.kind() {
        PermissionDenied => -4048,
        ResourceBusy => -4082,
        AlreadyExists => -4075,
        IsADirectory => -4068,
        InvalidFilename => -4064,
        NotFound => -4058,
        StorageFull => -4055,
        NotADirectory => -4052,
        DirectoryNotEmpty => -4051,
        Unsupported => -4049,
        ReadOnlyFilesystem => -4043,
        NotSeekable => -4041,
        _ => -4094,
    }
}
