//! What is there while a file is written, and when it is.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use offloop_jsonl::{Draft, SyncLevel};

/// A folder, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("offloop-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn the_old_file_is_there_until_the_new_one_is_whole() {
    let folder = Folder::new("draft-replaces");
    let path = folder.file("a.json");
    fs::write(&path, "old").unwrap();
    let mut draft = Draft::create(&path, None, SyncLevel::Full).unwrap();
    draft.write(b"ne").unwrap();
    draft.write(b"w").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(draft.commit().unwrap(), 3);
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(folder.names(), ["a.json"]);
}

#[test]
fn a_draft_that_is_dropped_was_never_there() {
    let folder = Folder::new("draft-dropped");
    let mut draft = Draft::create(&folder.file("a.json"), None, SyncLevel::Data).unwrap();
    draft.write(b"new").unwrap();
    drop(draft);
    assert!(folder.names().is_empty());
}

#[test]
fn a_rename_that_fails_leaves_no_temporary() {
    let folder = Folder::new("draft-rename");
    let path = folder.file("a");
    let draft = Draft::create(&path, None, SyncLevel::None).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(draft.commit().unwrap_err().syscall, "rename");
    assert_eq!(folder.names(), ["a"]);
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let folder = Folder::new("draft-folder");
    fs::create_dir(folder.file("a")).unwrap();
    let error = Draft::create(&folder.file("a"), None, SyncLevel::None).err().unwrap();
    assert_eq!(error.source.raw_os_error(), Some(libc::EISDIR));
    let error = Draft::create("/dev/null".as_ref(), None, SyncLevel::None).err().unwrap();
    assert_eq!(error.source.raw_os_error(), Some(libc::ESPIPE));
    assert_eq!(folder.names(), ["a"]);
}

#[test]
fn the_mode_is_the_old_files_or_what_is_asked_for() {
    let folder = Folder::new("draft-mode");
    let path = folder.file("a");
    let mode_after = |mode| {
        Draft::create(&path, mode, SyncLevel::None).unwrap().commit().unwrap();
        fs::metadata(&path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode_after(Some(0o640)), 0o640);
    assert_eq!(mode_after(None), 0o640);
    assert_eq!(mode_after(Some(0o600)), 0o600);
    fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
    assert_eq!(mode_after(None), 0o777);
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_replaced() {
    let folder = Folder::new("draft-link");
    fs::create_dir(folder.file("to")).unwrap();
    symlink("to/a", folder.file("link")).unwrap();
    let mut draft = Draft::create(&folder.file("link"), None, SyncLevel::Full).unwrap();
    draft.write(b"1").unwrap();
    draft.commit().unwrap();
    assert_eq!(fs::read_to_string(folder.file("to/a")).unwrap(), "1");
    assert!(folder.file("link").is_symlink());
}
