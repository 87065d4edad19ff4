//! Rows read in batches of any size, and from the end, against a file split at once.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::io;

use offloop_grammar::check;
use offloop_jsonl::{
    Cause, ExamineError, Fields, PointerError, ReadAt, Row, Rows, Verdict, Visit, judge, last,
    pick, standard,
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
    bad: Vec<(u64, u64, Cause)>,
}

impl Visit for Seen {
    fn standard(&mut self, row: Row<'_>) -> bool {
        let is_good = check(row.bytes).is_ok();
        if is_good {
            self.other(row);
        }
        is_good
    }

    fn other(&mut self, row: Row<'_>) {
        self.good.push((row.offset, row.bytes.to_vec()));
    }

    fn bad(&mut self, offset: u64, len: u64, cause: Cause) {
        self.bad.push((offset, len, cause));
    }
}

#[allow(clippy::unnecessary_wraps, reason = "it may fail elsewhere")]
fn go() -> Result<(), ExamineError> {
    Ok(())
}

fn read(mut rows: Rows, file: &[u8], piece: usize) -> Seen {
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
            .find(|&end| matches!(judge(&row[start..end], true), Verdict::Kept(kept) if !kept.is_glued))
            .unwrap();
        found.push((start, end));
        start = end;
    }
    found
}

fn naive(file: &[u8]) -> Seen {
    let mut seen = Seen::default();
    let mut offset = if file.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    while offset < file.len() {
        let len = file[offset..].iter().position(|&byte| byte == b'\n');
        let row = &file[offset..offset + len.unwrap_or(file.len() - offset)];
        match judge(row, len.is_some()) {
            Verdict::Blank => {}
            Verdict::Torn(torn) => seen.bad.push((offset as u64, row.len() as u64, torn.cause)),
            Verdict::Kept(kept) if kept.is_glued => {
                for (start, end) in records(row) {
                    seen.good.push(((offset + start) as u64, row[start..end].to_vec()));
                }
            }
            Verdict::Kept(_) => seen.good.push((offset as u64, row.to_vec())),
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
        prop_assert_eq!(&read(Rows::new(0, size, block), &file, piece), &expected);
        for (offset, row) in &expected.good {
            let end = offset + row.len() as u64;
            let behind = read(Rows::new(end, size, block), &file, piece);
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
        let found: Result<_, ExamineError> = last(&Memory(&file, 7), 0, size, count, block, go);
        let (start, skipped) = found.unwrap();
        let seen = read(Rows::new(start, size, block).skipping(skipped), &file, 7);
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

#[test]
fn a_file_that_is_cut_while_it_is_read_ends_there() {
    let mut rows = Rows::new(0, 100, 4);
    let mut seen = Seen::default();
    while rows.batch(&Memory(b"{}\n{}\n{\"a\"", 3), &mut seen, go).unwrap() {}
    assert_eq!(seen.good.len(), 2);
    assert_eq!(seen.bad, [(6, 4, Cause::Partial)]);
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

fn fields(pointers: &[&str]) -> Fields {
    let pointers: Vec<_> = pointers.iter().map(|pointer| pointer.as_bytes().to_vec()).collect();
    Fields::new(&pointers).unwrap()
}

fn picked(row: &str, pointers: &[&str]) -> Option<Vec<Option<String>>> {
    let found = pick(row.as_bytes(), &fields(pointers))?;
    Some(found.into_iter().map(|range| range.map(|range| row[range].to_owned())).collect())
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
