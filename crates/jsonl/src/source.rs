//! What can be read at an offset.

use std::fs::File;
use std::io;

use crate::examine::ExamineError;

pub trait ReadAt {
    /// As `read(2)`: fewer bytes than asked for are no end, none are.
    ///
    /// # Errors
    /// Those of the source.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    #[cfg(unix)]
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, into, offset)
    }

    /// Moves the handle's place, which nothing here relies on.
    #[cfg(not(unix))]
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        use std::io::{Read, Seek, SeekFrom};

        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.read(into)
    }
}

/// Fills all of `into`.
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
