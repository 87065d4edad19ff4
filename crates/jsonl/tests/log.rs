//! What a log does where the system writes half, fails, or lies about nothing: every script of failures up to some length.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use offloop_jsonl::{Log, Medium, SyncLevel, SyscallCounts};

/// What the system does to one call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    All,
    /// A write takes so many bytes and no more.
    Some(usize),
    Nothing,
    Interrupted,
    Fails,
}

const STEPS: [Step; 7] = [
    Step::All,
    Step::Some(1),
    Step::Some(3),
    Step::Some(4),
    Step::Nothing,
    Step::Interrupted,
    Step::Fails,
];

#[derive(Default)]
struct Disk {
    bytes: Vec<u8>,
    /// So many of them survive a crash.
    durable: usize,
    end: usize,
    /// For writes, one after the other; what comes after it goes well.
    script: VecDeque<Step>,
    fails: Fails,
    /// Somebody else's, right behind a write that failed.
    foreign: &'static [u8],
}

/// Which calls fail: bits.
type Fails = u8;

const NONE: Fails = 0;
const POSITION: Fails = 1;
const SIZE: Fails = 2;
const CUT: Fails = 4;
const SYNC: Fails = 8;

fn failure() -> io::Error {
    io::Error::other("the disk is on fire")
}

fn attempt(fails: Fails, call: Fails) -> io::Result<()> {
    if fails & call == 0 { Ok(()) } else { Err(failure()) }
}

impl Medium for &mut Disk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = match self.script.pop_front().unwrap_or(Step::All) {
            Step::All => bytes.len(),
            Step::Some(len) => len.min(bytes.len()),
            Step::Nothing => 0,
            Step::Interrupted => return Err(io::ErrorKind::Interrupted.into()),
            Step::Fails => {
                self.bytes.extend_from_slice(self.foreign);
                return Err(failure());
            }
        };
        self.bytes.extend_from_slice(&bytes[..len]);
        self.end = self.bytes.len();
        Ok(len)
    }

    fn position(&mut self) -> io::Result<u64> {
        attempt(self.fails, POSITION)?;
        Ok(self.end as u64)
    }

    fn size(&mut self) -> io::Result<u64> {
        attempt(self.fails, SIZE)?;
        Ok(self.bytes.len() as u64)
    }

    fn cut(&mut self, size: u64) -> io::Result<()> {
        attempt(self.fails, CUT)?;
        self.bytes.truncate(usize::try_from(size).unwrap());
        Ok(())
    }

    fn sync(&mut self, _durability: SyncLevel) -> io::Result<()> {
        attempt(self.fails, SYNC)?;
        self.durable = self.bytes.len();
        Ok(())
    }
}

const OLD: &[u8] = b"{}\n";
const ROWS: [&[u8]; 4] = [b"1\n", b"[2,3]\n", b"\"four\"\n", b"5\n"];

fn disk(script: &[Step], fails: Fails) -> Disk {
    let (bytes, end) = (OLD.to_vec(), OLD.len());
    Disk { bytes, durable: end, end, script: script.iter().copied().collect(), fails, foreign: b"" }
}

fn log(disk: &mut Disk, durability: SyncLevel) -> Log<&mut Disk> {
    Log::new(disk, PathBuf::from("rows.jsonl"), durability, 1 << 20)
}

/// Every list of up to `len` steps.
fn scripts(len: usize) -> Vec<Vec<Step>> {
    let mut all = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..len {
        let to = all.len();
        for index in from..to {
            for step in STEPS {
                all.push([all[index].as_slice(), &[step]].concat());
            }
        }
        from = to;
    }
    all
}

#[test]
fn what_is_acknowledged_is_in_the_file_whole_and_durable_whatever_fails() {
    let rows = ROWS.concat();
    let ends: Vec<_> = ROWS
        .iter()
        .scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        })
        .collect();
    for script in scripts(4) {
        for fails in 0..16 {
            for durability in [SyncLevel::None, SyncLevel::Data] {
                let case = format!("{script:?} {fails:b} {durability:?}");
                let mut disk = disk(&script, fails);
                let appended = log(&mut disk, durability).append(&rows);
                let kept = &rows[..appended.len];
                assert!(appended.len == 0 || ends.contains(&appended.len), "{case}");
                assert_eq!(appended.error.is_none(), appended.len == rows.len(), "{case}");
                if 0 < appended.len {
                    assert_eq!(appended.offset, OLD.len() as u64, "{case}");
                    assert!(disk.bytes[OLD.len()..].starts_with(kept), "{case}");
                    let durable = OLD.len() + appended.len <= disk.durable;
                    assert!(durable || durability == SyncLevel::None, "{case}");
                }
                let may_be_torn = fails & (POSITION | SIZE | CUT) != 0;
                assert!(may_be_torn || disk.bytes.ends_with(b"\n"), "{case}");
                if fails & (POSITION | SYNC) == 0 {
                    assert!(may_be_torn || disk.bytes == [OLD, kept].concat(), "{case}");
                }
            }
        }
    }
}

#[test]
fn a_short_write_is_resumed() {
    let script = [Step::Some(3), Step::Interrupted, Step::Some(1), Step::All];
    let mut disk = disk(&script, NONE);
    let mut log = log(&mut disk, SyncLevel::Data);
    let appended = log.append(b"[1,2,3]\n");
    assert_eq!((appended.offset, appended.len), (3, 8));
    assert_eq!(log.counts(), SyscallCounts { writes: 4, syncs: 1 });
    assert_eq!(disk.bytes, b"{}\n[1,2,3]\n");
}

#[test]
fn one_group_is_one_write_and_one_sync() {
    let mut disk = disk(&[], NONE);
    let mut log = log(&mut disk, SyncLevel::Full);
    log.append(&ROWS.concat());
    assert_eq!(log.counts(), SyscallCounts { writes: 1, syncs: 1 });
    log.flush().unwrap();
    assert_eq!(log.counts(), SyscallCounts { writes: 1, syncs: 1 });
}

#[test]
fn a_write_takes_whole_rows_as_many_as_it_may() {
    for (most, writes) in [(1, 4), (2, 4), (8, 3), (10, 2), (17, 1), (100, 1)] {
        let mut disk = disk(&[], NONE);
        let path = PathBuf::from("rows.jsonl");
        let mut log = Log::new(&mut disk, path, SyncLevel::Data, most);
        assert_eq!(log.append(&ROWS.concat()).len, 17);
        assert_eq!(log.counts(), SyscallCounts { writes, syncs: 1 }, "{most}");
        assert_eq!(disk.bytes, [OLD, &ROWS.concat()].concat());
    }
}

#[test]
fn without_durability_rows_are_synced_by_a_flush_alone() {
    let mut disk = disk(&[], NONE);
    let mut log = log(&mut disk, SyncLevel::None);
    log.append(b"1\n");
    log.append(b"2\n");
    assert_eq!(log.counts(), SyscallCounts { writes: 2, syncs: 0 });
    log.flush().unwrap();
    log.flush().unwrap();
    assert_eq!(log.counts(), SyscallCounts { writes: 2, syncs: 1 });
    assert_eq!(disk.durable, disk.bytes.len());
}

#[test]
fn a_group_is_flushed_where_it_is_asked_for_and_nothing_failed() {
    for (script, fails, flushes, syncs, has_failed) in [
        (vec![], NONE, false, 0, false),
        (vec![], NONE, true, 1, false),
        (vec![], SYNC, true, 1, true),
        (vec![Step::Fails], NONE, true, 0, true),
    ] {
        let mut disk = disk(&script, fails);
        let mut log = log(&mut disk, SyncLevel::None);
        let result = log.append_group(&ROWS.concat(), flushes);
        assert_eq!((result.error.is_some(), log.counts().syncs), (has_failed, syncs));
    }
}

#[test]
fn a_group_without_rows_writes_nothing_and_can_flush() {
    let mut disk = disk(&[], NONE);
    let mut log = log(&mut disk, SyncLevel::None);
    log.append(ROWS[0]);
    let result = log.append_group(b"", true);
    assert_eq!((result.offset, result.len, result.error.is_none()), (0, 0, true));
    assert_eq!(log.counts(), SyscallCounts { writes: 1, syncs: 1 });
    assert_eq!(disk.durable, disk.bytes.len());
}

#[test]
fn a_sync_that_fails_acknowledges_nothing() {
    let mut disk = disk(&[], SYNC);
    let appended = log(&mut disk, SyncLevel::Data).append(b"1\n2\n");
    assert_eq!(appended.len, 0);
    assert_eq!(appended.error.unwrap().syscall, "fdatasync");
}

#[test]
fn a_write_that_takes_nothing_fails_instead_of_going_on_forever() {
    let mut disk = disk(&[Step::Nothing], NONE);
    let appended = log(&mut disk, SyncLevel::None).append(b"1\n");
    assert_eq!(appended.error.unwrap().syscall, "write");
}

#[test]
fn what_somebody_else_appended_meanwhile_is_not_cut_off() {
    let mut disk = Disk { foreign: b"{\"a\":1}\n", ..disk(&[Step::Some(4), Step::Fails], NONE) };
    let appended = log(&mut disk, SyncLevel::Data).append(b"1\n[2]\n");
    assert_eq!(appended.len, 2);
    assert_eq!(disk.bytes, b"{}\n1\n[2{\"a\":1}\n");
}
