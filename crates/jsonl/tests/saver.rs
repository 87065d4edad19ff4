//! Files that are saved in several writes.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use offloop_jsonl::{FileError, FileSaver, FileTooLarge, SyncLevel};

/// A folder that is removed at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("offloop-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.json"), "old").unwrap();
        Self(folder)
    }

    fn saver(&self) -> FileSaver {
        FileSaver::new(self.0.join("a.json"), None, SyncLevel::None)
    }

    fn text(&self) -> String {
        fs::read_to_string(self.0.join("a.json")).unwrap()
    }

    fn names(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[derive(Debug)]
enum Failure {
    File,
    TooLarge(u64),
    Stopped,
}

impl From<FileError> for Failure {
    fn from(_: FileError) -> Self {
        Self::File
    }
}

impl From<FileTooLarge> for Failure {
    fn from(error: FileTooLarge) -> Self {
        Self::TooLarge(error.max_size)
    }
}

#[allow(clippy::unnecessary_wraps, reason = "a poll has this signature")]
fn go_on() -> Result<(), Failure> {
    Ok(())
}

#[test]
fn the_last_write_replaces_the_old_file() {
    let folder = Folder::new("saver-writes");
    let mut saver = folder.saver();
    assert_eq!(saver.write([b"one ".as_slice(), b"two "], go_on).unwrap(), None);
    assert_eq!(saver.write([], go_on).unwrap(), None);
    assert_eq!((folder.text().as_str(), folder.names()), ("old", 2));
    saver.end();
    assert_eq!(saver.write([b"three".as_slice()], go_on).unwrap(), Some(13));
    assert_eq!((folder.text().as_str(), folder.names()), ("one two three", 1));
}

#[test]
fn a_write_that_is_stopped_leaves_the_old_file_alone() {
    let folder = Folder::new("saver-stops");
    let large = vec![b'x'; 9 << 20];
    // Three pieces of 4 MiB at most, and the poll before the file is replaced.
    for most in 0..4 {
        let mut saver = folder.saver();
        saver.end();
        let polls = Cell::new(0);
        let stop = || {
            polls.set(polls.get() + 1);
            if polls.get() <= most { Ok(()) } else { Err(Failure::Stopped) }
        };
        assert!(matches!(saver.write([large.as_slice()], stop), Err(Failure::Stopped)));
        assert_eq!((folder.text().as_str(), folder.names()), ("old", 1), "{most}");
    }
}

#[test]
fn a_draft_that_is_discarded_is_removed() {
    let folder = Folder::new("saver-discards");
    let mut saver = folder.saver();
    saver.write([b"new".as_slice()], go_on).unwrap();
    assert_eq!(folder.names(), 2);
    saver.discard();
    assert_eq!((folder.text().as_str(), folder.names()), ("old", 1));
}

#[test]
fn a_folder_that_is_missing_is_an_error_of_the_system() {
    let path = PathBuf::from("/nowhere/a.json");
    let mut saver = FileSaver::new(path, None, SyncLevel::None);
    assert!(matches!(saver.write([b"new".as_slice()], go_on), Err(Failure::File)));
}

#[test]
fn a_file_of_the_greatest_size_is_saved_and_a_larger_one_leaves_nothing() {
    let folder = Folder::new("saver-bound");
    let save = |max_size| {
        let mut saver = folder.saver();
        saver.bound(max_size);
        saver.write([b"one ".as_slice()], go_on)?;
        saver.end();
        saver.write([b"two ".as_slice(), b"3"], go_on)
    };
    for max_size in [0, 3, 4, 8] {
        assert!(matches!(save(max_size), Err(Failure::TooLarge(size)) if size == max_size));
        assert_eq!((folder.names(), &*folder.text()), (1, "old"));
    }
    assert_eq!(save(9).unwrap(), Some(9));
    assert_eq!(folder.text(), "one two 3");
}
