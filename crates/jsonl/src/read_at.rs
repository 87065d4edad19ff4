//! Sources that can be read at an offset: files, and memory in tests. Every walk over a file reads through it.

use std::fs::File;
use std::io;

use crate::progress::ExamineError;

/// Source that can be read at an offset.
pub trait ReadAt {
    /// Reads like `pread(2)`: 0 means the end, fewer bytes than asked for do not.
    ///
    /// # Errors
    /// Errors of the source.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    #[cfg(unix)]
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, into, offset)
    }

    /// Reads at an offset. It moves the position of the handle, on which nothing relies.
    #[cfg(not(unix))]
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        use std::io::{Read, Seek, SeekFrom};

        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.read(into)
    }
}

/// Fills all of `into`; a shorter source is an error.
pub(crate) fn fill<R: ReadAt + ?Sized>(
    source: &R,
    into: &mut [u8],
    offset: u64,
) -> Result<(), ExamineError> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match source.read_at(rest, offset + filled as u64) {
            Ok(0) => return Err(ExamineError::Shrunk),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ExamineError::Read(error)),
        }
    }
    Ok(())
}
