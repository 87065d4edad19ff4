//! The error numbers of libuv and Node for errors of the system. Runs on any thread; the glue makes failures of them.

use std::io;

/// The number for an error that does not come from the system. No caller should see it.
#[cfg(not(windows))]
const EIO: i32 = -5;

/// Returns libuv's number for an error: the system's, negated.
#[cfg(not(windows))]
#[must_use]
pub fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().map_or(EIO, |number| -number)
}

/// Returns the number that `uv/errno.h` has for an error: Windows' own numbers differ.
#[cfg(windows)]
#[must_use]
pub fn errno(error: &io::Error) -> i32 {
    use io::ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, InvalidFilename, IsADirectory, NotADirectory, NotFound,
        NotSeekable, PermissionDenied, ReadOnlyFilesystem, ResourceBusy, StorageFull, Unsupported,
    };

    /// The number of Windows for a file that another handle keeps from being opened.
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Error;

    use super::errno;

    #[test]
    fn an_error_of_the_system_has_its_number() {
        let missing = File::open("no such folder/no such file").err().map(|error| errno(&error));
        assert_eq!(missing, Some(if cfg!(windows) { -4058 } else { -2 }));
    }

    #[test]
    fn an_error_without_a_number_is_one_of_input_and_output() {
        assert_eq!(errno(&Error::other("no number")), if cfg!(windows) { -4094 } else { -5 });
    }
}
