//! What happens to files while a repair is under way. What it does to them is tested from JavaScript.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use offloop_jsonl::{
    Action, Interrupt, Policy, ProgressFn, RepairError, RepairSettings, SyncLevel, lock, repair,
};

const SETTINGS: RepairSettings = RepairSettings {
    policy: Policy::Quarantine,
    verify_from: None,
    durability: SyncLevel::None,
    locks: true,
};
const GO_ON: ProgressFn<'static> = &|_| Ok(());

/// A folder of its own for a file, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let folder = std::env::temp_dir().join(format!("offloop-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let place = Self(folder);
        fs::write(place.file(), bytes).unwrap();
        place
    }

    fn file(&self) -> PathBuf {
        self.0.join("rows.jsonl")
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.file()).unwrap()
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

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn a_file_that_grows_before_the_cut_is_looked_at_again() {
    let place = Folder::new("grows", b"{\"a\":1}\n{\"a\":2");
    let told = Cell::new(0);
    // Told before the only block is read, before the copy, and before the cut.
    let grow = |_| {
        told.set(told.get() + 1);
        if told.get() == 3 {
            append(&place.file(), b"}\n{\"a\"");
        }
        Ok(())
    };
    let report = repair(&place.file(), &SETTINGS, &grow).unwrap();
    assert_eq!((report.action, report.offset), (Action::Quarantined, Some(16)));
    assert_eq!(place.bytes(), b"{\"a\":1}\n{\"a\":2}\n");
    assert_eq!(fs::read(report.sidecar.unwrap()).unwrap(), b"{\"a\"");
    assert_eq!(place.names(), 2);
}

#[test]
fn a_file_that_shrinks_is_looked_at_again() {
    let place = Folder::new("shrinks", b"{\"a\":1}\n{\"a\":2");
    for at in 1..=3 {
        fs::write(place.file(), b"{\"a\":1}\n{\"a\":2").unwrap();
        let told = Cell::new(0);
        let shrink = |_| {
            told.set(told.get() + 1);
            if told.get() == at {
                File::options().write(true).open(place.file()).unwrap().set_len(8).unwrap();
            }
            Ok(())
        };
        let report = repair(&place.file(), &SETTINGS, &shrink).unwrap();
        assert_eq!((report.action, report.size_before), (Action::None, 8));
        assert_eq!(place.names(), 1);
    }
}

#[test]
fn a_file_that_is_overwritten_before_the_cut_is_looked_at_again() {
    let place = Folder::new("overwritten", b"{\"a\":1}\n{\"a\":2 ");
    let told = Cell::new(0);
    let finish = |_| {
        told.set(told.get() + 1);
        if told.get() == 3 {
            let mut file = File::options().write(true).open(place.file()).unwrap();
            file.write_all(b"{\"a\":1}\n{\"a\":2}").unwrap();
            // The clock of a file system may stand still for some milliseconds.
            let later = SystemTime::now() + Duration::from_secs(1);
            file.set_modified(later).unwrap();
        }
        Ok(())
    };
    let report = repair(&place.file(), &SETTINGS, &finish).unwrap();
    assert_eq!(report.action, Action::Terminated);
    assert_eq!(place.bytes(), b"{\"a\":1}\n{\"a\":2}\n");
    assert_eq!(place.names(), 1);
}

#[test]
fn a_file_that_never_settles_is_left_alone() {
    let place = Folder::new("unsettled", b"{\"a\":1}\n{\"a\":2");
    let grow = |_| {
        append(&place.file(), b" ");
        Ok(())
    };
    let error = repair(&place.file(), &SETTINGS, &grow).unwrap_err();
    assert!(matches!(error, RepairError::Unsettled));
    assert!(place.bytes().starts_with(b"{\"a\":1}\n{\"a\":2 "));
    assert_eq!(place.names(), 1);
}

#[test]
fn stopped_before_the_cut_nothing_is_left_behind() {
    let place = Folder::new("stopped", b"{\"a\":1}\n{\"a\":2");
    for at in 1..=3 {
        let told = Cell::new(0);
        let stop = |_| {
            told.set(told.get() + 1);
            if told.get() == at { Err(Interrupt) } else { Ok(()) }
        };
        let error = repair(&place.file(), &SETTINGS, &stop).unwrap_err();
        assert!(matches!(error, RepairError::Stopped));
        assert_eq!(place.bytes(), b"{\"a\":1}\n{\"a\":2");
        assert_eq!(place.names(), 1);
    }
}

/// What a file system allows.
const LONGEST_NAME: usize = 255;

/// Repairs a torn file of that name, twice; the names of the sidecars.
fn sidecar_names(folder: &Path, name: &OsStr) -> [Vec<u8>; 2] {
    let path = folder.join(name);
    [0, 1].map(|_| {
        fs::write(&path, b"{\"a\":1}\n{\"a\":2").unwrap();
        let report = repair(&path, &SETTINGS, GO_ON).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"{\"a\":1}\n");
        let sidecar = report.sidecar.unwrap();
        assert_eq!(fs::read(&sidecar).unwrap(), b"{\"a\":2");
        assert_eq!(sidecar.parent(), Some(folder));
        sidecar.file_name().unwrap().as_encoded_bytes().to_vec()
    })
}

#[test]
fn a_name_as_long_as_any_has_a_sidecar() {
    for (index, character) in ["x", "é", "€", "😀"].into_iter().enumerate() {
        for len in LONGEST_NAME - 25..=LONGEST_NAME {
            let place = Folder::new(&format!("long-{index}-{len}"), b"");
            let count = len / character.len();
            let name = ["y".repeat(len % character.len()), character.repeat(count)].concat();
            for (number, sidecar) in sidecar_names(&place.0, name.as_ref()).iter().enumerate() {
                let sidecar = str::from_utf8(sidecar).unwrap();
                let ending = format!(".torn-8-{number}");
                let beginning = sidecar.strip_suffix(&ending).unwrap();
                if len + ending.len() <= LONGEST_NAME {
                    assert_eq!(beginning, name);
                    continue;
                }
                assert!(LONGEST_NAME - 4 < sidecar.len() && sidecar.len() <= LONGEST_NAME);
                let (kept, hash) = beginning.rsplit_once('~').unwrap();
                assert!(name.starts_with(kept), "{kept}");
                assert!(hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
            }
        }
    }
}

/// Names that differ only behind what is kept of them do not share their sidecars' names.
#[test]
fn long_names_that_begin_alike_have_sidecars_of_their_own() {
    let place = Folder::new("alike", b"");
    let name = |last: &str| ["x".repeat(LONGEST_NAME - 1), last.to_owned()].concat();
    let [first, _] = sidecar_names(&place.0, name("1").as_ref());
    let [second, _] = sidecar_names(&place.0, name("2").as_ref());
    assert_ne!(first, second);
    assert!(first.ends_with(b"~dff61f324c9966e4.torn-8-0"), "{}", first.escape_ascii());
}

#[cfg(target_os = "linux")]
#[test]
fn a_long_name_that_is_no_unicode_is_cut_at_a_byte() {
    use std::os::unix::ffi::OsStrExt;

    let place = Folder::new("bytes", b"");
    let name = vec![0xbf; LONGEST_NAME];
    let [first, _] = sidecar_names(&place.0, OsStr::from_bytes(&name));
    assert_eq!(first.len(), LONGEST_NAME);
    assert!(first.starts_with(&[0xbf; 200]));
}

#[test]
fn the_lock_is_one_handles_and_gone_with_it() {
    let place = Folder::new("lock", b"{}");
    let holder = File::open(place.file()).unwrap();
    assert!(lock(&holder, &place.file()).unwrap());
    let error = repair(&place.file(), &SETTINGS, GO_ON).unwrap_err();
    assert!(matches!(error, RepairError::Locked));
    let without = RepairSettings { locks: false, ..SETTINGS };
    assert_eq!(repair(&place.file(), &without, GO_ON).unwrap().action, Action::Terminated);
    drop(holder);
    assert_eq!(repair(&place.file(), &SETTINGS, GO_ON).unwrap().action, Action::None);
}
