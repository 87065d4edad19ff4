//! Files with errors that say what was tried on which of them.

use std::error::Error;
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use crate::repair::Durability;

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

/// Adds to an error what was tried.
pub(crate) fn failed<'a>(
    syscall: &'static str,
    path: &'a Path,
) -> impl Fn(io::Error) -> FileError + 'a {
    move |source| FileError { syscall, path: path.to_owned(), source }
}

/// Tries again what a signal interrupted, as on file systems of a network, or of user space, any call may be. What the standard
/// library does so itself is opening, reading, writing, cutting and syncing.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// A regular file; none where there is no file of that name.
pub(crate) fn open(path: &Path, is_written: bool) -> Result<Option<File>, FileError> {
    let mut options = unwaiting();
    options.read(true).write(is_written);
    match options.open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("open", path)(error)),
    }
}

/// To be read, cut, and written to at its end, wherever that is; created with `mode`, less the umask, where it is missing.
pub(crate) fn open_to_append(path: &Path, mode: u32) -> Result<File, FileError> {
    let mut options = unwaiting();
    options.read(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options.append(true), mode);
    #[cfg(not(unix))]
    let _ = (options.write(true), mode);
    options.open(path).map_err(failed("open", path))
}

/// A FIFO nobody writes to would be waited for.
fn unwaiting() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    options
}

/// A regular file to be read, and its size.
///
/// # Errors
/// Where there is none, or it cannot be read.
pub fn open_to_read(path: &Path) -> Result<(File, u64), FileError> {
    let missing = || failed("open", path)(os_error(io::ErrorKind::NotFound));
    let file = open(path, false)?.ok_or_else(missing)?;
    let size = metadata(&file, path)?.len();
    Ok((file, size))
}

/// Refuses what is no regular file, with the error that reading it at an offset has.
pub(crate) fn metadata(file: &File, path: &Path) -> Result<Metadata, FileError> {
    let metadata = uninterrupted(|| file.metadata()).map_err(failed("fstat", path))?;
    regular(metadata).map_err(failed("read", path))
}

/// Of what is to be replaced, if there is such; refuses what is no regular file.
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

/// With the system's number, which JavaScript knows it by.
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

/// The mode of a new file that nobody else can read before [`give_mode`].
pub(crate) const PRIVATE: u32 = 0o600;

/// A new file, with `mode` less the umask.
pub(crate) fn create_new(path: &Path, mode: u32) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path).map_err(failed("open", path))
}

#[cfg(unix)]
pub(crate) fn give_mode(file: &File, model: &Metadata, path: &Path) -> Result<(), FileError> {
    file.set_permissions(model.permissions()).map_err(failed("fchmod", path))
}

/// There is none: who may read a file is its folder's matter.
#[cfg(not(unix))]
pub(crate) fn give_mode(_file: &File, _model: &Metadata, _path: &Path) -> Result<(), FileError> {
    Ok(())
}

/// Where that is somebody else and the system allows it.
#[cfg(unix)]
pub(crate) fn give_owner(file: &File, model: &Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};

    // It is the old one's owner who cares: a file that cannot be given away is still written.
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

pub(crate) fn sync(file: &File, durability: Durability, path: &Path) -> Result<(), FileError> {
    durability.sync(file).map_err(failed(durability.syscall(), path))
}

impl Durability {
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

/// With the error that dropping it would hide.
#[cfg(unix)]
pub(crate) fn close(file: File) -> io::Result<()> {
    use std::os::fd::IntoRawFd;

    // SAFETY: the descriptor is this function's own, and not used again.
    if unsafe { libc::close(file.into_raw_fd()) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // It is closed then.
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

#[cfg(not(unix))]
pub(crate) fn close(file: File) -> io::Result<()> {
    drop(file);
    Ok(())
}

/// Makes the name of a new file durable.
#[cfg(unix)]
pub(crate) fn sync_folder_of(path: &Path, durability: Durability) -> Result<(), FileError> {
    if durability == Durability::None {
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

/// As file systems of networks say it of folders: then nobody can do better.
#[cfg(unix)]
fn has_no_sync(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTSUP | libc::EBADF))
}

/// Names cannot be synced there.
#[cfg(not(unix))]
pub(crate) fn sync_folder_of(_path: &Path, _durability: Durability) -> Result<(), FileError> {
    Ok(())
}

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;

/// The file that `path` links to, whatever its folders are, and whether it is there or not. A name that is no link costs one
/// call.
pub(crate) fn real_path(path: &Path) -> Result<PathBuf, FileError> {
    let mut real = path.to_owned();
    for _ in 0..MOST_LINKS {
        match uninterrupted(|| fs::read_link(&real)) {
            // Beside the link, where it is relative.
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

/// `path` with `ending` behind it.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}
