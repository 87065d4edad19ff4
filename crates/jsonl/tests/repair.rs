//! What happens to files while a repair is under way. What it does to them is tested from JavaScript.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use offloop_jsonl::{
    Action, Durability, Policy, RepairError, Settings, Stopped, Watch, lock, repair,
};

const SETTINGS: Settings = Settings {
    policy: Policy::Quarantine,
    verify_from: None,
    durability: Durability::None,
    locks: true,
};
const GO_ON: Watch<'static> = &|_| Ok(());

/// A folder of its own for a file, gone with it.
struct Place(PathBuf);

impl Place {
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

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn a_file_that_grows_before_the_cut_is_looked_at_again() {
    let place = Place::new("grows", b"{\"a\":1}\n{\"a\":2");
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
    let place = Place::new("shrinks", b"{\"a\":1}\n{\"a\":2");
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
    let place = Place::new("overwritten", b"{\"a\":1}\n{\"a\":2 ");
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
    let place = Place::new("unsettled", b"{\"a\":1}\n{\"a\":2");
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
    let place = Place::new("stopped", b"{\"a\":1}\n{\"a\":2");
    for at in 1..=3 {
        let told = Cell::new(0);
        let stop = |_| {
            told.set(told.get() + 1);
            if told.get() == at { Err(Stopped) } else { Ok(()) }
        };
        let error = repair(&place.file(), &SETTINGS, &stop).unwrap_err();
        assert!(matches!(error, RepairError::Stopped));
        assert_eq!(place.bytes(), b"{\"a\":1}\n{\"a\":2");
        assert_eq!(place.names(), 1);
    }
}

#[test]
fn the_lock_is_one_handles_and_gone_with_it() {
    let place = Place::new("lock", b"{}");
    let holder = File::open(place.file()).unwrap();
    assert!(lock(&holder, &place.file()).unwrap());
    let error = repair(&place.file(), &SETTINGS, GO_ON).unwrap_err();
    assert!(matches!(error, RepairError::Locked));
    let without = Settings { locks: false, ..SETTINGS };
    assert_eq!(repair(&place.file(), &without, GO_ON).unwrap().action, Action::Terminated);
    drop(holder);
    assert_eq!(repair(&place.file(), &SETTINGS, GO_ON).unwrap().action, Action::None);
}
