//! Every small history of a log: an opening with any policy, rows that are appended, a crash, the next opening. The files
//! are real, and the repair is the real one.
//!
//! The model tries every file that these crashes leave:
//!
//! | crash                    | file                                                        | sidecar     |
//! | ------------------------ | ----------------------------------------------------------- | ----------- |
//! | during a write           | the old bytes and a prefix of the new ones                  | none        |
//! | loss of power            | as above, with NULs in place of some blocks of the new ones | none        |
//! | while a tail is copied   | as it was before the repair                                 | empty, half |
//! | before the cut           | as it was before the repair                                 | whole       |
//! | between cut and newline  | cut                                                         | whole       |
//!
//! The states inside a repair are derived from what it did to the file. A test in `__test__/repair.spec.ts` kills a repair at
//! each of its system calls, with strace, and finds no other state.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use offloop_jsonl::{
    Action, ExamineError, Policy, ReadAt, RepairError, RepairSettings, Report, RowBatches,
    RowCause, RowSlice, RowVisitor, SyncLevel, Verdict, judge, repair,
};

/// An object, an array, a number whose beginning is a number too, and a string that can be cut inside a character.
const ROWS: [&str; 4] = ["{\"a\":1}", "[]", "12", "\"é\""];
/// Enough for crashes after the first.
const SHORT_ROWS: [&str; 3] = ["[]", "12", "\"é\""];
const CHANGING: [Policy; 3] = [Policy::Quarantine, Policy::Truncate, Policy::Isolate];

/// A file after an opening, or what a crash made of it.
type Bytes = Vec<u8>;

/// A file that a crash left behind, and its rows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Crashed {
    file: Bytes,
    /// Rows that were acknowledged, or seen by an earlier opening.
    acknowledged: Vec<Bytes>,
    /// All rows that were written or begun, whether they were acknowledged or not.
    written: Vec<Bytes>,
}

/// The folder of one log, gone when the test has ended.
struct Folder(PathBuf);

impl Folder {
    /// In memory where the system has such a folder: tens of thousands of files are repaired.
    fn new(name: &str) -> Self {
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let folder = parent.join(format!("offloop-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    fn repair(&self, policy: Policy) -> Result<Report, RepairError> {
        let durability = SyncLevel::None;
        let settings = RepairSettings { policy, verify_from: None, durability, locks: true };
        repair(&self.log(), &settings, &|_| Ok(()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// The outcome of an opening.
#[derive(Clone)]
struct Opening {
    file: Bytes,
    rows: Vec<Bytes>,
    /// The file if the repair had been killed behind its cut.
    half_repaired: Option<Bytes>,
}

/// Opens files, each once with each policy.
struct Opener {
    place: Folder,
    known: BTreeMap<(usize, Bytes), Opening>,
    /// Openings so far. Known files count again.
    openings: usize,
}

impl Opener {
    fn new(name: &str) -> Self {
        Self { place: Folder::new(name), known: BTreeMap::new(), openings: 0 }
    }

    fn open(&mut self, file: &[u8], policy: usize) -> Opening {
        self.openings += 1;
        let key = (policy, file.to_vec());
        if let Some(opened) = self.known.get(&key) {
            return opened.clone();
        }
        let opened = self.open_new(file, CHANGING[policy]);
        self.known.insert(key, opened.clone());
        opened
    }

    fn open_new(&self, before: &[u8], policy: Policy) -> Opening {
        let shown = before.escape_ascii();
        let path = self.place.log();
        fs::write(&path, before).unwrap();
        let report = self.place.repair(policy).unwrap_or_else(|error| panic!("{shown}: {error}"));
        let file = fs::read(&path).unwrap();
        assert_eq!(report.size, file.len() as u64, "{shown}");
        let cut = matches!(report.action, Action::Quarantined | Action::Truncated);
        let left = if cut { &before[..report.offset.unwrap() as usize] } else { before };
        assert!(file == left || file == [left, b"\n"].concat(), "{shown}");
        if let Some(sidecar) = &report.sidecar {
            assert_eq!(fs::read(sidecar).unwrap(), before[left.len()..], "{shown}");
            fs::remove_file(sidecar).unwrap();
            self.copy_again(before, left.len(), &file);
        }
        let again = self.place.repair(policy);
        assert_eq!(again.unwrap().action, Action::None, "{policy:?} twice of {shown}");
        assert_eq!(fs::read(&path).unwrap(), file, "{policy:?} twice of {shown}");
        if policy == Policy::Quarantine {
            self.refuse_or_report(before, &report);
        }
        let half_repaired = (cut && left != file).then(|| left.to_vec());
        Opening { rows: rows_of(&file), file, half_repaired }
    }

    /// The repair was killed while it copied the tail: the copy stays, and another is made.
    fn copy_again(&self, before: &[u8], offset: usize, expected: &[u8]) {
        let tail = &before[offset..];
        for copied in BTreeSet::from([0, tail.len() / 2, tail.len()]) {
            fs::write(self.place.log(), before).unwrap();
            let first = self.place.0.join(format!("log.torn-{offset}-0"));
            fs::write(&first, &tail[..copied]).unwrap();
            let sidecar = self.place.repair(Policy::Quarantine).unwrap().sidecar.unwrap();
            assert_eq!(sidecar, self.place.0.join(format!("log.torn-{offset}-1")));
            assert_eq!(fs::read(&sidecar).unwrap(), tail);
            assert_eq!(fs::read(&first).unwrap(), tail[..copied]);
            assert_eq!(fs::read(self.place.log()).unwrap(), expected);
            fs::remove_file(first).unwrap();
            fs::remove_file(sidecar).unwrap();
        }
    }

    /// `strict` refuses what quarantine changes, and nothing else; `report` says what quarantine does.
    fn refuse_or_report(&self, before: &[u8], quarantined: &Report) {
        let path = self.place.log();
        fs::write(&path, before).unwrap();
        let is_clean = match self.place.repair(Policy::Strict) {
            Ok(report) => report.action == Action::None,
            Err(RepairError::Torn { .. }) => false,
            Err(error) => panic!("strict of {}: {error}", before.escape_ascii()),
        };
        assert_eq!(is_clean, quarantined.action == Action::None, "{}", before.escape_ascii());
        let reported = self.place.repair(Policy::Report).unwrap();
        assert_eq!(reported, Report { sidecar: None, ..quarantined.clone() });
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

struct Memory<'a>(&'a [u8]);

impl ReadAt for Memory<'_> {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

#[derive(Default)]
struct Seen(Vec<Bytes>);

impl RowVisitor for Seen {
    fn standard(&mut self, _: RowSlice<'_>) -> bool {
        false
    }

    fn other(&mut self, row: RowSlice<'_>) {
        self.0.push(row.bytes.to_vec());
    }

    fn bad(&mut self, _: u64, _: u64, _: RowCause) {}
}

/// The rows that a reader of the file sees.
fn rows_of(file: &[u8]) -> Vec<Bytes> {
    let mut seen = Seen::default();
    let mut rows = RowBatches::new(0, file.len() as u64, 4096);
    while rows.batch(&Memory(file), &mut seen, || Ok::<(), ExamineError>(())).unwrap() {}
    seen.0
}

/// The rows that some opening of the file may show: torn rows that begin with whole records hide those.
fn hidden_rows_of(file: &[u8]) -> Vec<Bytes> {
    let whole = |row: &[u8]| match judge(row, true) {
        Verdict::Torn(torn) => row[..torn.start as usize].to_vec(),
        _ => row.to_vec(),
    };
    let file = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file);
    let rows: Vec<_> = file.split(|&byte| byte == b'\n').map(whole).collect();
    rows_of(&rows.join(&b'\n'))
}

/// Rows that were acknowledged are all there, once and in order. No other row is there that was not written, and none twice.
fn check_rows(crashed: &Crashed, opened: &Opening, policy: Policy) {
    let Crashed { file, acknowledged, written } = crashed;
    let shown = file.escape_ascii();
    let mut found = opened.rows.iter();
    let is_kept = acknowledged.iter().all(|row| found.any(|other| other == row));
    assert!(is_kept, "{policy:?} of {shown}");
    let mut written = written.iter();
    for row in &opened.rows {
        // The beginning of a number is a number, once `isolate` has ended it with a newline.
        let is_piece = |whole: &Bytes| policy == Policy::Isolate && whole.starts_with(row);
        let is_written = written.any(|whole| whole == row || is_piece(whole));
        assert!(is_written, "{policy:?} of {shown}");
    }
}

/// Returns the files that a crash leaves of rows being appended, cut at any byte. Whole rows are acknowledged.
fn cuts(file: &[u8], rows: &[&str]) -> Vec<Crashed> {
    let text = rows.iter().flat_map(|row| [row.as_bytes(), b"\n"].concat()).collect::<Bytes>();
    let bytes = |rows: &[&str]| rows.iter().map(|row| row.as_bytes().to_vec()).collect::<Vec<_>>();
    let cut_at = |len: usize| {
        let whole = text[..len].split(|&byte| byte == b'\n').count() - 1;
        Crashed {
            file: [file, &text[..len]].concat(),
            acknowledged: [rows_of(file), bytes(&rows[..whole])].concat(),
            written: [hidden_rows_of(file), bytes(rows)].concat(),
        }
    };
    (0..=text.len()).map(cut_at).collect()
}

/// Bytes of a block, which a power cut leaves or loses as a whole.
const BLOCK: usize = 3;

/// Returns the files that a power cut leaves of rows that were not synced. None of the rows is acknowledged.
fn holes(file: &[u8], rows: &[&str]) -> Vec<Crashed> {
    let mut left = Vec::new();
    for cut in cuts(file, rows) {
        let blocks = (cut.file.len() - file.len()).div_ceil(BLOCK);
        for lost in 1..1_u32 << blocks {
            let mut holed = Crashed { acknowledged: rows_of(file), ..cut.clone() };
            for (index, byte) in holed.file[file.len()..].iter_mut().enumerate() {
                if lost >> (index / BLOCK) & 1 != 0 {
                    *byte = 0;
                }
            }
            left.push(holed);
        }
    }
    left
}

/// Opens what a crash left with every policy. Files that openings leave are added to `next`, whole or half repaired.
fn open_all(opener: &mut Opener, crashed: &Crashed, next: &mut BTreeSet<Bytes>) {
    for (index, policy) in CHANGING.into_iter().enumerate() {
        let left = opener.open(&crashed.file, index);
        check_rows(crashed, &left, policy);
        if let Some(file) = left.half_repaired {
            // The crash came before the newline: the next opening adds it, whatever its policy is.
            for index in 0..CHANGING.len() {
                assert_eq!(opener.open(&file, index).rows, left.rows, "{}", file.escape_ascii());
            }
        }
        next.insert(left.file);
    }
}

/// The batches that are appended between crashes: one row each, and at first two as well.
fn batches(is_first: bool, rows: &[&'static str]) -> Vec<Vec<&'static str>> {
    let single = rows.iter().map(|&row| vec![row]);
    let pairs = ROWS.iter().flat_map(|&first| ROWS.iter().map(move |&second| vec![first, second]));
    single.chain(pairs.filter(|_| is_first)).collect()
}

fn run(name: &str, crashes: usize, crash: impl Fn(bool, &[u8]) -> Vec<Crashed>) {
    let mut opener = Opener::new(name);
    let starts = ["", "\u{feff}", "[0]\n"];
    let mut files: BTreeSet<Bytes> = starts.map(|text| text.as_bytes().to_vec()).into();
    for number in 0..crashes {
        let left: BTreeSet<_> = files.iter().flat_map(|file| crash(number == 0, file)).collect();
        files.clear();
        for crashed in &left {
            open_all(&mut opener, crashed, &mut files);
        }
    }
    println!("{} openings of {} files", opener.openings, opener.known.len() / CHANGING.len());
}

#[test]
fn three_crashes_at_any_byte_lose_and_double_no_row() {
    run("cuts", 3, |is_first, file| {
        let batches = batches(is_first, &SHORT_ROWS);
        batches.iter().flat_map(|rows| cuts(file, rows)).collect()
    });
}

#[test]
fn two_power_cuts_lose_and_double_no_row() {
    run("holes", 2, |is_first, file| {
        let batches = batches(is_first, &SHORT_ROWS);
        batches.iter().flat_map(|rows| holes(file, rows)).collect()
    });
}

#[test]
#[ignore = "16 seconds, optimised: cargo test --release -p offloop-jsonl -- --ignored"]
fn three_crashes_of_longer_rows_too() {
    run("long", 3, |is_first, file| {
        let batches = batches(is_first, &ROWS);
        batches.iter().flat_map(|rows| cuts(file, rows)).collect()
    });
}
