//! File operations whose errors name the system call and the path. They run in tasks; all modules that touch files call them.

use std::error::Error;
use std::fs::{File, Metadata, OpenOptions};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use crate::repair::SyncLevel;

/// A system call that failed.
#[derive(Debug)]
pub struct FileError {
    pub syscall: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} '{}': {}", self.syscall, self.path.display(), self.source)
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// Returns a function that adds the system call and the path to an error.
pub(crate) fn failed<'a>(
    syscall: &'static str,
    path: &'a Path,
) -> impl Fn(io::Error) -> FileError + 'a {
    move |source| FileError { syscall, path: path.to_owned(), source }
}

/// Repeats a call that a signal interrupted. On file systems of a network or of user space, any call may be interrupted. The
/// standard library repeats opening, reading, writing, cutting and syncing by itself.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Opens a file. Returns `None` if there is no file of that name.
pub(crate) fn open(path: &Path, is_written: bool) -> Result<Option<File>, FileError> {
    let mut options = nonblocking();
    options.read(true).write(is_written);
    match options.open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("open", path)(error)),
    }
}

/// Opens a file for reading, cutting and appending. A missing file is created with `mode`, less the umask.
pub(crate) fn open_to_append(path: &Path, mode: u32) -> Result<File, FileError> {
    let mut options = nonblocking();
    options.read(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options.append(true), mode);
    #[cfg(not(unix))]
    let _ = (options.write(true), mode);
    options.open(path).map_err(failed("open", path))
}

/// Returns options that never wait: opening a FIFO without a writer would.
#[cfg(unix)]
fn nonblocking() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

/// Returns options for systems where opening a file never waits.
#[cfg(not(unix))]
fn nonblocking() -> OpenOptions {
    OpenOptions::new()
}

/// Opens a regular file for reading. Returns its size, too.
///
/// # Errors
/// Errors of the system; a missing file and a file that is not regular are errors.
pub fn open_to_read(path: &Path) -> Result<(File, u64), FileError> {
    let missing = || failed("open", path)(os_error(io::ErrorKind::NotFound));
    let file = open(path, false)?.ok_or_else(missing)?;
    let size = metadata(&file, path)?.len();
    Ok((file, size))
}

/// Returns the metadata of a regular file. Any other file fails with the error of reading it at an offset.
pub(crate) fn metadata(file: &File, path: &Path) -> Result<Metadata, FileError> {
    let metadata = uninterrupted(|| file.metadata()).map_err(failed("fstat", path))?;
    regular(metadata).map_err(failed("read", path))
}

/// Returns the metadata of a file to replace, or `None` if there is no such file. It must be regular.
pub(crate) fn metadata_of(path: &Path) -> Result<Option<Metadata>, FileError> {
    match uninterrupted(|| fs::metadata(path)) {
        Ok(metadata) => regular(metadata).map(Some).map_err(failed("rename", path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("stat", path)(error)),
    }
}

fn regular(metadata: Metadata) -> io::Result<Metadata> {
    if metadata.is_file() {
        return Ok(metadata);
    }
    let error =
        if metadata.is_dir() { io::ErrorKind::IsADirectory } else { io::ErrorKind::NotSeekable };
    Err(os_error(error))
}

/// Makes an error with the number of the system, which JavaScript needs.
#[cfg(unix)]
fn os_error(kind: io::ErrorKind) -> io::Error {
    let number = match kind {
        io::ErrorKind::IsADirectory => libc::EISDIR,
        io::ErrorKind::NotFound => libc::ENOENT,
        _ => libc::ESPIPE,
    };
    io::Error::from_raw_os_error(number)
}

#[cfg(not(unix))]
fn os_error(kind: io::ErrorKind) -> io::Error {
    kind.into()
}

/// Mode of a new file that no other user can read before [`give_mode`].
pub(crate) const PRIVATE: u32 = 0o600;

/// Creates a new file with `mode`, less the umask.
pub(crate) fn create_new(path: &Path, mode: u32) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path).map_err(failed("open", path))
}

/// Copies the mode of `model`.
#[cfg(unix)]
pub(crate) fn give_mode(file: &File, model: &Metadata, path: &Path) -> Result<(), FileError> {
    file.set_permissions(model.permissions()).map_err(failed("fchmod", path))
}

/// Does nothing: such systems have no modes, the folder decides who may read a file.
#[cfg(not(unix))]
pub(crate) fn give_mode(_file: &File, _model: &Metadata, _path: &Path) -> Result<(), FileError> {
    Ok(())
}

/// Copies the owner of `model`, if the system allows it.
#[cfg(unix)]
pub(crate) fn give_owner(file: &File, model: &Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};

    // Only the owner of the old file cares. A file that cannot be given away is still written.
    if file.metadata().is_ok_and(|own| (own.uid(), own.gid()) != (model.uid(), model.gid())) {
        let _ = fchown(file, Some(model.uid()), Some(model.gid()));
    }
}

#[cfg(not(unix))]
pub(crate) fn give_owner(_file: &File, _model: &Metadata) {}

pub(crate) fn write_at(
    file: &File,
    bytes: &[u8],
    offset: u64,
    path: &Path,
) -> Result<(), FileError> {
    #[cfg(unix)]
    let written = std::os::unix::fs::FileExt::write_all_at(file, bytes, offset);
    #[cfg(not(unix))]
    let written = {
        use std::io::{Seek, SeekFrom, Write};

        let mut file = file;
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.write_all(bytes))
    };
    written.map_err(failed("write", path))
}

pub(crate) fn sync(file: &File, durability: SyncLevel, path: &Path) -> Result<(), FileError> {
    durability.sync(file).map_err(failed(durability.syscall(), path))
}

impl SyncLevel {
    pub(crate) fn sync(self, file: &File) -> io::Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Data => file.sync_data(),
            // On macOS this is F_FULLFSYNC.
            Self::Full => file.sync_all(),
        }
    }

    pub(crate) fn syscall(self) -> &'static str {
        if self == Self::Full { "fsync" } else { "fdatasync" }
    }
}

/// Closes a file and returns the error that dropping it would hide.
#[cfg(unix)]
pub(crate) fn close(file: File) -> io::Result<()> {
    use std::os::fd::IntoRawFd;

    // SAFETY: `into_raw_fd` makes this function the owner of the open descriptor, which is not used again.
    if unsafe { libc::close(file.into_raw_fd()) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // An interrupted `close` has closed the descriptor.
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

#[cfg(not(unix))]
pub(crate) fn close(file: File) -> io::Result<()> {
    drop(file);
    Ok(())
}

/// Makes the name of a new file durable.
#[cfg(unix)]
pub(crate) fn sync_folder_of(path: &Path, durability: SyncLevel) -> Result<(), FileError> {
    if durability == SyncLevel::None {
        return Ok(());
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let opened = File::open(folder).map_err(failed("open", folder))?;
    match opened.sync_all() {
        Err(error) if has_no_sync(&error) => Ok(()),
        outcome => outcome.map_err(failed("fsync", folder)),
    }
}

/// Recognizes the errors of network file systems that cannot sync folders.
#[cfg(unix)]
fn has_no_sync(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTSUP | libc::EBADF))
}

/// Does nothing: such systems cannot sync names.
#[cfg(not(unix))]
pub(crate) fn sync_folder_of(_path: &Path, _durability: SyncLevel) -> Result<(), FileError> {
    Ok(())
}

/// Number of links that Linux follows.
const MOST_LINKS: usize = 40;

/// Returns the path that `path` links to, through any number of links up to [`MOST_LINKS`]. The file may be missing. A name that
/// is not a link costs one call.
pub(crate) fn real_path(path: &Path) -> Result<PathBuf, FileError> {
    let mut real = path.to_owned();
    for _ in 0..MOST_LINKS {
        match uninterrupted(|| fs::read_link(&real)) {
            // A relative target is relative to the folder of the link.
            Ok(target) => real = real.parent().unwrap_or(Path::new("")).join(target),
            Err(error) if is_no_link(&error) || error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(failed("readlink", path)(error)),
        }
    }
    Ok(real)
}

#[cfg(not(windows))]
fn is_no_link(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

#[cfg(windows)]
fn is_no_link(error: &io::Error) -> bool {
    const ERROR_NOT_A_REPARSE_POINT: i32 = 4390;

    error.raw_os_error() == Some(ERROR_NOT_A_REPARSE_POINT)
}
