//! Rows read in batches of any size, and from the end, against a file split at once.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::cell::Cell;
use std::convert::Infallible;
use std::io;

use offloop_grammar::{Text, check};
use offloop_jsonl::{
    BatchWriter, ExamineError, Fields, Interrupt, LastSettings, PointerError, ReadAt, RowBatches,
    RowCause, RowSelection, RowSlice, RowVisitor, Verdict, judge, last, pick, standard,
    standard_polled,
};
use proptest::prelude::*;

/// Gives a few bytes at a time.
struct Memory<'a>(&'a [u8], usize);

impl ReadAt for Memory<'_> {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(into.len()).min(self.1);
        into[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    good: Vec<(u64, Vec<u8>)>,
    bad: Vec<(u64, u64, RowCause)>,
}

impl RowVisitor for Seen {
    fn standard(&mut self, row: RowSlice<'_>) -> bool {
        let is_good = check(row.bytes).is_ok();
        if is_good {
            self.other(row);
        }
        is_good
    }

    fn other(&mut self, row: RowSlice<'_>) {
        self.good.push((row.offset, row.bytes.to_vec()));
    }

    fn bad(&mut self, offset: u64, len: u64, cause: RowCause) {
        self.bad.push((offset, len, cause));
    }
}

#[allow(clippy::unnecessary_wraps, reason = "it may fail elsewhere")]
fn go() -> Result<(), ExamineError> {
    Ok(())
}

fn read(mut rows: RowBatches, file: &[u8], piece: usize) -> Seen {
    let mut seen = Seen::default();
    let mut before = rows.position();
    while rows.batch(&Memory(file, piece), &mut seen, go).unwrap() {
        assert!(before < rows.position(), "every batch goes on");
        before = rows.position();
    }
    assert_eq!(rows.position(), file.len() as u64);
    seen
}

/// Records of a row that is only objects and arrays, by trying every length.
fn records(row: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(skip) = row[start..].iter().position(|byte| !b" \t\r".contains(byte)) {
        start += skip;
        let end = (start + 1..=row.len())
            .find(|&end| matches!(judge(&row[start..end], true), Verdict::Good(kept) if !kept.is_glued))
            .unwrap();
        found.push((start, end));
        start = end;
    }
    found
}

fn naive(file: &[u8]) -> Seen {
    naive_bounded(file, u64::MAX)
}

fn naive_bounded(file: &[u8], longest: u64) -> Seen {
    let mut seen = Seen::default();
    let mut offset = if file.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    while offset < file.len() {
        let len = file[offset..].iter().position(|&byte| byte == b'\n');
        let row = &file[offset..offset + len.unwrap_or(file.len() - offset)];
        match judge(row, len.is_some()) {
            _ if longest < row.len() as u64 => {
                seen.bad.push((offset as u64, row.len() as u64, RowCause::TooLong));
            }
            Verdict::Blank => {}
            Verdict::Torn(torn) => seen.bad.push((offset as u64, row.len() as u64, torn.cause)),
            Verdict::Good(kept) if kept.is_glued => {
                for (start, end) in records(row) {
                    seen.good.push(((offset + start) as u64, row[start..end].to_vec()));
                }
            }
            Verdict::Good(_) => seen.good.push((offset as u64, row.to_vec())),
        }
        offset += row.len() + 1;
    }
    seen
}

fn files() -> impl Strategy<Value = Vec<u8>> {
    let parts = [
        "{\"a\":1}",
        "{\"a\":\"}{\\\"\"}",
        "[1,[2]]",
        "\n",
        "\n",
        "\n",
        "\r\n",
        " ",
        "1",
        "12",
        "true",
        "NaN",
        "{\"a\":NaN}",
        "{\"a\":",
        "\"x",
        "\0",
        "{}",
        "}",
        "\u{feff}",
        "\"\u{2028}\"",
        "{\"b\":[]}{\"c\":2}",
    ];
    let part = prop_oneof![
        9 => prop::sample::select(parts.to_vec()).prop_map(|part| part.as_bytes().to_vec()),
        1 => Just(vec![0xff]),
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn batches_of_any_size_tell_the_same(file in files(), block in 1_usize..40, piece in 1_usize..20) {
        let size = file.len() as u64;
        let expected = naive(&file);
        prop_assert_eq!(&read(RowBatches::new(0, size, block), &file, piece), &expected);
        for (offset, row) in &expected.good {
            let end = offset + row.len() as u64;
            let behind = read(RowBatches::new(end, size, block), &file, piece);
            let rest = expected.good.iter().filter(|(other, _)| end <= *other);
            // Where it was the last but one of a glued row, the last is a row now, with its blanks.
            let bare = |rows: Vec<Vec<u8>>| -> Vec<_> {
                rows.iter().map(|row| row.trim_ascii().to_vec()).collect()
            };
            let rest = bare(rest.map(|(_, row)| row.clone()).collect());
            let good = bare(behind.good.into_iter().map(|(_, row)| row).collect());
            prop_assert_eq!(good, rest, "from {}", end);
        }
    }

    #[test]
    fn the_last_rows_are_the_last_of_all(file in files(), block in 1_usize..40, count in 0_usize..9) {
        let size = file.len() as u64;
        let all = naive(&file).good;
        let wanted = LastSettings { count, from: 0, longest: u64::MAX, block };
        let found: Result<_, ExamineError> = last(&Memory(&file, 7), size, wanted, go);
        let (start, skipped) = found.unwrap();
        let seen = read(RowBatches::new(start, size, block).skipping(skipped), &file, 7);
        prop_assert_eq!(&seen.good[..], &all[all.len().saturating_sub(count)..]);
    }

    #[test]
    fn rows_over_the_bound_are_bad_and_never_in_memory(
        file in files(),
        block in 1_usize..40,
        piece in 1_usize..20,
        longest in 0_u64..30,
    ) {
        let size = file.len() as u64;
        let source = Memory(&file, piece);
        let mut rows = RowBatches::new(0, size, block).bounded(longest);
        let mut seen = Seen::default();
        while rows.batch(&source, &mut seen, go).unwrap() {
            prop_assert!(rows.memory().len() <= block.max(longest as usize + 4));
        }
        prop_assert_eq!(rows.position(), size);
        prop_assert_eq!(&seen, &naive_bounded(&file, longest));
    }

    #[test]
    fn rows_over_the_bound_are_not_among_the_last(
        file in files(),
        block in 1_usize..40,
        count in 0_usize..9,
        longest in 0_u64..30,
    ) {
        let size = file.len() as u64;
        let all = naive_bounded(&file, longest).good;
        let wanted = LastSettings { count, from: 0, longest, block };
        let found: Result<_, ExamineError> = last(&Memory(&file, 7), size, wanted, go);
        let (start, skipped) = found.unwrap();
        let rows = RowBatches::new(start, size, block).bounded(longest).skipping(skipped);
        let seen = read(rows, &file, 7);
        prop_assert_eq!(&seen.good[..], &all[all.len().saturating_sub(count)..]);
    }

    #[test]
    fn what_python_wrote_becomes_json(file in files()) {
        for (_, row) in naive(&file).good {
            let (json, mark) = standard(&row);
            prop_assert!(check(json.as_bytes()).is_ok(), "{json}");
            prop_assert!(!String::from_utf8_lossy(&row).contains(&mark));
        }
    }
}

const ROW: &[u8] = b"{\"a\":1}\n";
const LONG: u64 = 96 << 20;

/// A row, a row of [`LONG`] spaces, and a row. It notes how much is read.
#[derive(Default)]
struct LongFile {
    largest: Cell<usize>,
    total: Cell<u64>,
}

impl LongFile {
    const SIZE: u64 = 2 * ROW.len() as u64 + LONG + 1;

    fn byte(offset: u64) -> u8 {
        let start = ROW.len() as u64;
        match offset {
            _ if offset < start => ROW[offset as usize],
            _ if offset == start + LONG => b'\n',
            _ if start + LONG < offset => ROW[(offset - start - LONG - 1) as usize],
            _ => b' ',
        }
    }

    fn bounded(longest: u64) -> RowBatches {
        RowBatches::new(0, Self::SIZE, 512 << 10).bounded(longest)
    }
}

impl ReadAt for LongFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = Self::SIZE.min(offset + into.len() as u64);
        let len = (end - offset) as usize;
        into[..len].fill(b' ');
        let edge = ROW.len() as u64 + LONG;
        for at in (offset..end.min(ROW.len() as u64)).chain(offset.max(edge)..end) {
            into[(at - offset) as usize] = Self::byte(at);
        }
        self.largest.set(self.largest.get().max(into.len()));
        self.total.set(self.total.get() + len as u64);
        Ok(len)
    }
}

#[test]
fn a_long_row_is_skipped_in_blocks_and_steps_while_each_byte_is_read_once() {
    let source = LongFile::default();
    let mut rows = LongFile::bounded(1000);
    let mut seen = Seen::default();
    let mut steps = Vec::new();
    let mut before = 0;
    while rows.batch(&source, &mut seen, go).unwrap() {
        assert!(rows.memory().len() <= 512 << 10);
        steps.push(rows.position() - before);
        before = rows.position();
    }
    let offset = ROW.len() as u64;
    assert_eq!(seen.bad, [(offset, LONG, RowCause::TooLong)]);
    let good: Vec<_> = seen.good.iter().map(|(offset, _)| *offset).collect();
    assert_eq!(good, [0, offset + LONG + 1]);
    assert!(5 < steps.len() && steps.iter().all(|&step| step <= 17 << 20), "{steps:?}");
    assert_eq!((source.total.get(), before), (LongFile::SIZE, LongFile::SIZE));
    assert!(source.largest.get() <= 512 << 10);
}

#[test]
fn a_long_row_is_skipped_backwards_in_blocks() {
    let source = LongFile::default();
    let wanted = LastSettings { count: 2, from: 0, longest: 1000, block: 64 << 10 };
    let found: Result<_, ExamineError> = last(&source, LongFile::SIZE, wanted, go);
    assert_eq!(found.unwrap(), (0, 0));
    assert_eq!(source.total.get(), LongFile::SIZE);
    assert!(source.largest.get() <= 64 << 10);
}

#[test]
fn skipping_a_long_row_ends_where_it_is_stopped() {
    let source = LongFile::default();
    let polls = Cell::new(0);
    let stop = || {
        polls.set(polls.get() + 1);
        if polls.get() < 10 { Ok(()) } else { Err(ExamineError::Stopped) }
    };
    let mut rows = LongFile::bounded(1000);
    let mut seen = Seen::default();
    let outcome = loop {
        match rows.batch(&source, &mut seen, stop) {
            Ok(true) => {}
            outcome => break outcome,
        }
    };
    assert!(matches!(outcome, Err(ExamineError::Stopped)));
    assert!(source.total.get() <= 10 << 20, "{} bytes", source.total.get());
    let backwards = LongFile::default();
    polls.set(0);
    let wanted = LastSettings { count: 2, from: 0, longest: 1000, block: 64 << 10 };
    assert!(last(&backwards, LongFile::SIZE, wanted, stop).is_err());
    assert!(backwards.total.get() <= 10 << 20);
}

#[test]
fn the_bound_counts_bytes_between_newlines() {
    let row = |len: usize| format!("\"{}\"", "x".repeat(len - 2));
    for (mark, end) in [("", "\n"), ("\u{feff}", "\n"), ("", ""), ("\u{feff}", "")] {
        for len in [9, 10, 11, 4095, 4096, 4097] {
            let file = format!("{mark}{}{end}", row(len));
            for longest in [len - 1, len, len + 1] {
                let rows = RowBatches::new(0, file.len() as u64, 4096).bounded(longest as u64);
                let seen = read(rows, file.as_bytes(), usize::MAX);
                let bad = (mark.len() as u64, len as u64, RowCause::TooLong);
                let expected = if longest < len { vec![bad] } else { Vec::new() };
                assert_eq!(seen.bad, expected, "{len} bytes of {longest}");
                assert_eq!(seen.good.len(), usize::from(len <= longest));
            }
        }
    }
    let blanks = b" \n\n  \n";
    let seen = read(RowBatches::new(0, 6, 4).bounded(0), blanks, usize::MAX);
    assert_eq!(seen.bad, [(0, 1, RowCause::TooLong), (3, 2, RowCause::TooLong)]);
}

#[test]
fn a_long_row_that_is_cut_while_it_is_skipped_ends_there() {
    let file = [b'x'; 20];
    let seen = {
        let mut seen = Seen::default();
        let mut rows = RowBatches::new(0, 100, 4).bounded(5);
        while rows.batch(&Memory(&file, 3), &mut seen, go).unwrap() {}
        assert_eq!(rows.end(), 20);
        seen
    };
    assert_eq!(seen.bad, [(0, 20, RowCause::TooLong)]);
}

#[test]
fn a_file_that_is_cut_while_it_is_read_ends_there() {
    let mut rows = RowBatches::new(0, 100, 4);
    let mut seen = Seen::default();
    while rows.batch(&Memory(b"{}\n{}\n{\"a\"", 3), &mut seen, go).unwrap() {}
    assert_eq!(seen.good.len(), 2);
    assert_eq!(seen.bad, [(6, 4, RowCause::Partial)]);
    assert_eq!(rows.end(), 10);
}

#[test]
fn numbers_that_json_has_not() {
    let (json, mark) =
        standard(br#"{"NaN":[NaN,-Infinity,Infinity,"-Infinity \" NaN"],"number:":1}"#);
    assert_eq!(mark, "#number:");
    let expected = r##"{"NaN":["#number:NaN","#number:-Infinity","#number:Infinity","-Infinity \" NaN"],"number:":1}"##;
    assert_eq!(json, expected);
}

/// Rows whose strings hold what marks are made of.
fn marked_rows(len: usize) -> [String; 3] {
    let numbers = vec!["NaN"; len / 4].join(",");
    let growing = (0..len.isqrt()).map(|count| format!("\"{}number:\"", "#".repeat(count)));
    let all = ["", "#", "$", "##", "#$", "$#", "$$"].map(|signs| format!("\"{signs}number:\""));
    [
        format!(r#"{{"text":"{}number:","score":[{numbers}]}}"#, "#".repeat(len)),
        format!("[{},{numbers}]", growing.collect::<Vec<_>>().join(",")),
        format!("[{},{numbers}]", all.join(",").repeat(len / 80).replace("\"\"", "\",\"")),
    ]
}

#[test]
fn no_row_makes_its_mark_long_or_its_json_large() {
    for len in [100, 1_000, 10_000, 100_000] {
        for row in marked_rows(len) {
            let (json, mark) = standard(row.as_bytes());
            assert!(check(json.as_bytes()).is_ok());
            assert!(mark.len() <= "number:".len() + row.len().ilog2() as usize, "{mark}");
            assert!(json.len() <= row.len() * (mark.len() + 6), "{} of {len}", json.len());
        }
    }
}

/// As many polls as there are pieces to be read, in all passes together.
fn count_polls(row: &[u8]) -> usize {
    let mut polls = 0;
    let never_stops = || {
        polls += 1;
        Ok::<(), Interrupt>(())
    };
    standard_polled(row, never_stops).unwrap();
    polls
}

#[test]
fn a_row_twice_as_long_takes_twice_as_many_steps() {
    let row = |len: usize| format!(r#"{{"text":"{}number:","score":NaN}}"#, "#".repeat(len));
    let [once, twice] = [1 << 22, 1 << 23].map(|len| count_polls(row(len).as_bytes()));
    assert!(64 < once && twice <= 2 * once, "{once} {twice}");
}

#[test]
fn work_on_a_row_ends_where_it_is_stopped() {
    let row = marked_rows(400_000).concat().into_bytes();
    let all = count_polls(&row);
    for most in (0..all).step_by(1 + all / 50) {
        let polls = Cell::new(0);
        let stop = || {
            polls.set(polls.get() + 1);
            if most < polls.get() { Err(Interrupt) } else { Ok(()) }
        };
        assert_eq!(standard_polled(&row, stop), Err(Interrupt));
        assert_eq!(polls.get(), most + 1);
    }
}

#[test]
fn a_batch_whose_work_was_stopped_is_not_told_as_whole() {
    let long = "x".repeat(3 << 20);
    let file = format!("{{\"a\":NaN,\"b\":\"{long}\"}}\n[\"{long}\"]\n{{\"c\":\"{long}\"}}{{}}");
    let pointers = Fields::new(&[Vec::new()]).unwrap();
    for wanted in [RowSelection::Fields(pointers), RowSelection::Bytes { own: 1 }] {
        let run = |most: usize| {
            let polls = Cell::new(0);
            let stop = || {
                polls.set(polls.get() + 1);
                if most < polls.get() { Err(Interrupt) } else { Ok(()) }
            };
            let mut told = BatchWriter::new(&wanted, &stop);
            let mut rows = RowBatches::new(0, file.len() as u64, file.len());
            let source = Memory(file.as_bytes(), usize::MAX);
            let outcome = rows.batch(&source, &mut told, || stop().map_err(ExamineError::from));
            (outcome, polls.get())
        };
        let (whole, all) = run(usize::MAX);
        assert!(whole.unwrap());
        assert!(100 < all, "{all}");
        for most in (0..all).step_by(7).chain([all - 1]) {
            let (outcome, polls) = run(most);
            assert!(matches!(outcome, Err(ExamineError::Stopped)), "{most} of {all}");
            assert!(polls <= most + 3, "{polls} polls, stopped at {most}");
        }
    }
}

/// What the strings of some JSON are to JavaScript.
#[derive(Default)]
struct Strings(Vec<Vec<u8>>);

impl offloop_grammar::JsonVisitor for Strings {
    type Error = Infallible;

    fn string(&mut self, text: Text<'_>) -> Result<(), Infallible> {
        self.0.push(text.unescaped().into_owned());
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_string_of_a_row_holds_its_mark(
        strings in prop::collection::vec(
            prop::collection::vec(
                prop::sample::select(vec![
                    "#", "$", "number:", "num", "ber:", "\\u006e", "n", "\\u0023", "\\\\", "\\n", "é", "\\u003A", "umber", ":",
                ]),
                0..8,
            ),
            0..12,
        ),
    ) {
        let strings = strings.iter().map(|parts| format!("\"{}\"", parts.concat()));
        let row = format!("[{}]", strings.chain(["NaN".to_owned()]).collect::<Vec<_>>().join(","));
        let (json, mark) = standard(row.as_bytes());
        let mut strings = Strings::default();
        prop_assert!(offloop_grammar::read(json.as_bytes(), &mut strings).is_ok(), "{json}");
        let number = strings.0.pop().unwrap();
        prop_assert_eq!(number, [mark.as_bytes(), b"NaN"].concat());
        for string in strings.0 {
            prop_assert!(!String::from_utf8_lossy(&string).contains(&mark), "{mark} {json}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_are_replaced_as_everywhere(
        bytes in prop::collection::vec(prop::sample::select(b"a\xc3\xa9\xe2\x82\xac\xf0\x9f\xff".to_vec()), 0..30),
        before in prop::sample::select(vec![0, 65_520, 131_050]),
    ) {
        let row = [b"\"", &*vec![b'x'; before], &bytes, b"\""].concat();
        prop_assert_eq!(standard(&row).0, String::from_utf8_lossy(&row));
    }
}

fn fields(pointers: &[&str]) -> Fields {
    let pointers: Vec<_> = pointers.iter().map(|pointer| pointer.as_bytes().to_vec()).collect();
    Fields::new(&pointers).unwrap()
}

fn picked(row: &str, pointers: &[&str]) -> Option<Vec<Option<String>>> {
    let found = pick(row.as_bytes(), &fields(pointers))?;
    Some(found.into_iter().map(|range| range.map(|range| row[range].to_owned())).collect())
}

/// Looking through all fields for each key would take ten thousand million steps.
#[test]
fn a_hundred_thousand_fields_are_found_in_as_many_keys() {
    let pointers: Vec<_> = (0..100_000).map(|number| format!("/p{number}").into_bytes()).collect();
    let entries: Vec<_> = (0..100_000).rev().map(|key| format!("\"p{key}\":{key}")).collect();
    let row = format!("{{{}}}", entries.join(","));
    let found = pick(row.as_bytes(), &Fields::new(&pointers).unwrap()).unwrap();
    for (number, range) in found.into_iter().enumerate() {
        assert_eq!(row[range.unwrap()], number.to_string());
    }
}

#[test]
fn values_by_pointer() {
    let row = r#"{"a":{"b":[10,{"c":"x"}],"\u0064":null},"":true,"~":1,"/":[],"a2":{"b":1}}"#;
    let found =
        picked(row, &["/a/b/1/c", "/a/d", "/", "/~0", "/~1", "/a/b", "/x", "/a/b/2", "/a/b/c", ""]);
    let expected = [
        Some(r#""x""#),
        Some("null"),
        Some("true"),
        Some("1"),
        Some("[]"),
        Some(r#"[10,{"c":"x"}]"#),
        None,
        None,
        None,
        Some(row),
    ];
    assert_eq!(found.unwrap(), expected.map(|value| value.map(str::to_owned)));
    assert_eq!(picked("12", &["", "/a"]).unwrap(), [Some("12".to_owned()), None]);
    assert_eq!(
        picked("[false]", &["/0", "/00", "/-"]).unwrap(),
        [Some("false".to_owned()), None, None]
    );
    assert_eq!(picked(r#"{"a":1"#, &["/a"]), None);
}

#[test]
fn the_last_of_duplicate_keys_counts_with_all_that_is_in_it() {
    let row = r#"{"a":{"b":1},"a":{"c":2},"d":1,"d":null}"#;
    assert_eq!(
        picked(row, &["/a/b", "/a/c", "/d"]).unwrap(),
        [None, Some("2".to_owned()), Some("null".to_owned())]
    );
    assert_eq!(
        picked(r#"{"a":{"b":1},"a":3}"#, &["/a/b", "/a"]).unwrap(),
        [None, Some("3".to_owned())]
    );
}

#[test]
fn depth_is_bounded_by_memory_only() {
    let depth = 200_000;
    let row = [&"[".repeat(depth)[..], &"]".repeat(depth)].concat();
    assert_eq!(picked(&row, &["/0/0"]).unwrap()[0].as_ref().unwrap().len(), 2 * depth - 4);
}

#[test]
fn pointers_that_are_none() {
    let error =
        |pointer: &str| Fields::new(&[b"/a".to_vec(), pointer.as_bytes().to_vec()]).unwrap_err();
    assert_eq!(error("a"), (1, PointerError::NoSlash));
    assert_eq!(error("/a~"), (1, PointerError::Escape));
    assert_eq!(error("/a~2"), (1, PointerError::Escape));
}
