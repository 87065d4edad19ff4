//! The judge, the walk and the scan against the naive twin, on all short files and on what crashes leave of real ones.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod naive;

use std::cell::Cell;
use std::io;

use naive::Worth;
use offloop_jsonl::{
    ExamineError, Interrupt, ProgressFn, ReadAt, Tail, Verdict, judge, scan, walk,
};
use proptest::prelude::*;

struct Memory<'a>(&'a [u8]);

impl ReadAt for Memory<'_> {
    /// Short reads are no ends.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(into.len()).min(30_000);
        into[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

const GO_ON: ProgressFn<'static> = &|_| Ok(());

const SIZES: [usize; 5] = [1, 2, 3, 4096, 65536];

fn walked(file: &[u8], block: usize) -> Result<Tail, u64> {
    walk(&Memory(file), file.len() as u64, block, GO_ON).map_err(|error| match error {
        ExamineError::Corrupt { offset } => offset,
        error => panic!("{error}"),
    })
}

fn check_judge(row: &[u8]) {
    for is_terminated in [false, true] {
        let expected = naive::worth(row, is_terminated);
        let is_same = match (judge(row, is_terminated), expected) {
            (Verdict::Blank, Worth::Blank) => true,
            (Verdict::Good(kept), Worth::Good { is_glued, is_standard }) => {
                kept.is_glued == is_glued && kept.flaw(row).is_none() == (is_standard && !is_glued)
            }
            (Verdict::Torn(torn), Worth::Torn { start, cause }) => {
                (torn.start, torn.cause) == (start as u64, cause)
            }
            _ => false,
        };
        assert!(is_same, "{:?} {:?}", row.escape_ascii().to_string(), judge(row, is_terminated));
    }
}

fn check_file(file: &[u8], sizes: &[usize]) {
    let expected = naive::tail(file);
    for &size in sizes {
        assert_eq!(walked(file, size), expected, "{} by {size}", shown(file));
    }
}

/// Of what stands before the tail, as a repair has it.
fn check_scan(file: &[u8], sizes: &[usize]) {
    let Ok(tail) = naive::tail(file) else { return };
    let len = file.len() as u64;
    let end = tail.torn.map_or(len, |torn| torn.offset);
    let expected = naive::bad_rows(&file[..end as usize]);
    for &size in sizes {
        let found = scan(&Memory(file), 0..end, len, size, GO_ON).unwrap();
        assert_eq!(found, expected, "{} by {size}", shown(file));
    }
}

fn shown(file: &[u8]) -> String {
    file[..file.len().min(300)].escape_ascii().to_string()
}

/// Every string of these bytes up to that length.
fn each(alphabet: &[u8], longest: usize, check: impl Fn(&[u8])) {
    let mut digits = Vec::new();
    loop {
        let text = digits.iter().map(|&digit: &usize| alphabet[digit]).collect::<Vec<_>>();
        check(&text);
        let mut at = 0;
        while digits.get(at) == Some(&(alphabet.len() - 1)) {
            digits[at] = 0;
            at += 1;
        }
        if at == longest {
            return;
        }
        match digits.get_mut(at) {
            Some(digit) => *digit += 1,
            None => digits.push(0),
        }
    }
}

const FILES: &[u8] = b"{}\"\\1,\n\r\0\xc3 ";
const ROWS: &[u8] = b"{}[]\":,-01.eNInu\\\x80 ";

#[test]
fn every_short_file_has_the_tail_and_the_bad_rows_that_the_rules_say() {
    each(FILES, 5, |file| {
        check_file(file, &[1, 3]);
        check_scan(file, &[2]);
    });
}

#[test]
fn every_short_row_is_worth_what_the_rules_say() {
    each(ROWS, 4, check_judge);
}

#[test]
#[ignore = "half a minute, optimised: cargo test --release -p offloop-jsonl -- --ignored"]
fn every_longer_file_and_row_too() {
    each(FILES, 7, |file| check_file(file, &[1, 65536]));
    each(ROWS, 5, check_judge);
}

fn real_file() -> Vec<u8> {
    let rows = [
        r#"{"example_id": 0, "prompt": [{"role": "user", "content": "h\u00e9 \"you\""}], "reward": 1.0}"#,
        r#"{"example_id": 1, "completion": "añ€😀", "metrics": {}, "error": null, "info": [1e-7, -0.5, NaN]}"#,
        "",
        r#"{"example_id":2,"ok":true,"ids":[1,22,333],"s":"\ud800"}{"example_id":3}"#,
        "[[], {}, [[{\"a\": [false]}]]]\r",
        r#"{"example_id": 4, "reward": -Infinity, "stop": "\\"}"#,
    ];
    rows.join("\n").into_bytes()
}

/// The file as a crash leaves it that was cut at `at`.
fn torn(file: &[u8], at: usize) -> Vec<Vec<u8>> {
    let (whole, lost) = file.split_at(at);
    let with = |bytes: &[u8]| [whole, bytes].concat();
    let zeroed = |size: usize, ending: &[u8]| {
        let mut bytes = [whole, lost, ending].concat();
        let end = bytes.len().min(at + size);
        bytes[at..end].fill(0);
        bytes
    };
    vec![
        with(b""),
        with(b"\n"),
        with(&vec![0; lost.len()]),
        with(&[&vec![0; lost.len()][..], b"\n"].concat()),
        zeroed(512, b"\n"),
        zeroed(4096, b""),
        with(b"\x07garbage\xff\n"),
        with(&file[..at.min(40)]),
        with(b"{\"a\": 1}\n{\"b\""),
        with(b"\n\n \r\n"),
    ]
}

#[test]
fn every_prefix_of_a_real_file_and_what_a_crash_puts_behind_it() {
    let file = real_file();
    for at in 0..=file.len() {
        for bytes in torn(&file, at) {
            check_file(&bytes, &SIZES);
            check_scan(&bytes, &[1, 4096]);
        }
    }
}

#[test]
fn rows_larger_than_any_block_are_told_wherever_they_are_cut() {
    let long = format!("{{\"a\": \"{}\", \"b\": [\"é\"]}}", "x€\\n".repeat(40_000));
    let file = format!("{{\"id\": 1}}\n{long}\n{long}{long}\n{long}").into_bytes();
    for at in (0..file.len()).step_by(9_973).chain(file.len() - 20..=file.len()) {
        for bytes in torn(&file, at) {
            check_file(&bytes, &[4096, 65536]);
            check_scan(&bytes, &[4096]);
        }
    }
}

#[test]
fn a_mark_at_the_start_of_the_file_belongs_to_no_row() {
    each(b"\xef\xbb\xbf{}\n1", 5, |ending| {
        let file = [b"\xef\xbb\xbf", ending].concat();
        check_file(&file, &[1, 2, 65536]);
        check_file(ending, &[1, 65536]);
        check_scan(&file, &[1, 2, 65536]);
    });
}

#[test]
fn a_million_levels_cost_a_bit_each() {
    let depth = 1_000_000;
    let deep = ["[".repeat(depth), "]".repeat(depth)].concat().into_bytes();
    assert!(matches!(judge(&deep, true), Verdict::Good(_)));
    assert!(matches!(judge(&deep[..deep.len() - 1], true), Verdict::Torn(_)));
    let mixed = ["{\"a\":[".repeat(depth), "]}".repeat(depth)].concat().into_bytes();
    assert!(matches!(judge(&mixed, true), Verdict::Good(_)));
    assert!(walked(&mixed, 4096).unwrap().is_unterminated);
}

#[test]
fn more_torn_rows_than_4096_are_no_tail() {
    let file = |rows: usize| [b"{}\n".to_vec(), b"x\n".repeat(rows)].concat();
    assert_eq!(walked(&file(4096), 65536).unwrap().torn.unwrap().offset, 3);
    assert_eq!(walked(&file(4097), 65536), Err(3));
    assert_eq!(walked(&file(5000), 1), Err(3 + 2 * (5000 - 4097)));
}

#[test]
fn a_long_last_row_is_read_twice_at_most() {
    struct Counted<'a>(Memory<'a>, Cell<usize>);
    impl ReadAt for Counted<'_> {
        fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
            let read = self.0.read_at(into, offset)?;
            self.1.set(self.1.get() + read);
            Ok(read)
        }
    }
    let file = ["{}\n{\"a\": \"", &"x".repeat(10_000_000)].concat().into_bytes();
    let source = Counted(Memory(&file), Cell::new(0));
    let tail = walk(&source, file.len() as u64, 65536, GO_ON).unwrap();
    assert_eq!(tail.torn.unwrap().offset, 3);
    // Once for its start, once to be judged, and once for how its characters end.
    assert!(source.1.get() <= 3 * file.len());
}

#[test]
fn the_watch_ends_it() {
    let file = b"{}\n".repeat(100);
    let stop = |_| Err(Interrupt);
    let len = file.len() as u64;
    assert!(matches!(walk(&Memory(&file), len, 4096, &stop), Err(ExamineError::Stopped)));
    assert!(matches!(scan(&Memory(&file), 0..len, len, 9, &stop), Err(ExamineError::Stopped)));
}

#[test]
fn a_file_that_shrinks_is_told() {
    let error = walk(&Memory(b"{}\n"), 10, 4096, GO_ON).unwrap_err();
    assert!(matches!(error, ExamineError::Shrunk));
}

proptest! {
    #[test]
    fn any_bytes_in_any_blocks(
        file in proptest::collection::vec(
            prop_oneof![
                proptest::sample::select(b"{}[]\",:\n\\u0-1.eE+ \r\t\0\xe2\x82\xac\xc3".to_vec()).prop_map(|byte| vec![byte]),
                proptest::sample::select(vec!["true", "null", "NaN", "-Infinity", "{\"a\":", "\"b\"", "12", "{}\n", "\\u00e9", "\\n"])
                    .prop_map(|text| text.as_bytes().to_vec()),
            ],
            0..60,
        ).prop_map(|parts| parts.concat()),
        size in 1_usize..40,
    ) {
        check_file(&file, &[size]);
        check_scan(&file, &[size]);
        file.split(|&byte| byte == b'\n').for_each(check_judge);
    }

    /// What stands before a torn tail is never touched, and what is left is clean.
    #[test]
    fn what_is_left_is_clean(at in 0_usize..500, ending in 0_usize..10) {
        let file = real_file();
        let torn = &torn(&file, at.min(file.len()))[ending];
        if let Ok(Tail { torn: Some(tail), .. }) = walked(torn, 4096) {
            let mut left = torn[..tail.offset as usize].to_vec();
            if tail.is_behind_row {
                left.push(b'\n');
            }
            let again = walked(&left, 4096).unwrap();
            prop_assert_eq!((again.torn, again.is_unterminated), (None, false));
        }
    }
}
