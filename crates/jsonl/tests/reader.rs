//! Batches read from files, against the same files split at once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use offloop_jsonl::{
    BatchReadError, BatchReader, Census, ExamineError, Fields, Interrupt, ReadSettings, RowBatches,
    RowSelection, ScanSettings, describe_rows,
};
use proptest::prelude::*;

/// A file that is removed at the end of its test.
struct TestFile(PathBuf);

impl TestFile {
    fn new(bytes: &[u8]) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("offloop-reader-{}-{number}.jsonl", std::process::id());
        let file = Self(std::env::temp_dir().join(name));
        fs::write(&file.0, bytes).unwrap();
        file
    }

    fn reader(&self, settings: ReadSettings) -> BatchReader {
        BatchReader::new(self.0.clone(), settings)
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

const OWN: usize = 12;

fn settings(batch_size: u64, selection: RowSelection) -> ReadSettings {
    ReadSettings {
        from: 0,
        last: None,
        longest_row: u64::MAX,
        batch_size,
        longest_text: 1 << 20,
        selection,
    }
}

fn bytes_of(batch_size: u64) -> ReadSettings {
    settings(batch_size, RowSelection::Bytes { own: OWN })
}

fn fields_of(batch_size: u64, pointers: &[&str]) -> ReadSettings {
    let pointers: Vec<_> = pointers.iter().map(|pointer| pointer.as_bytes().to_vec()).collect();
    settings(batch_size, RowSelection::Fields(Fields::new(&pointers).unwrap()))
}

#[allow(clippy::unnecessary_wraps, reason = "a poll has this signature")]
fn go_on() -> Result<(), Interrupt> {
    Ok(())
}

/// Splits `[a,[b]],c` at the commas that stand outside of brackets.
fn items(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut items) = (0, 0, Vec::new());
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b',' if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if start < list.len() {
        items.push(&list[start..]);
    }
    items
}

fn inner(list: &str) -> Vec<&str> {
    items(list.strip_prefix('[').unwrap().strip_suffix(']').unwrap())
}

fn numbers(list: &str) -> Vec<usize> {
    inner(list).iter().map(|number| number.parse().unwrap()).collect()
}

/// Reads all batches of bytes as JavaScript does. Returns offset and bytes of each row.
fn read_all(mut reader: BatchReader) -> Vec<(usize, Vec<u8>)> {
    let mut rows = Vec::new();
    while let Some(text) = reader.next_batch(&go_on).unwrap() {
        let parts = inner(&text);
        let columns: Vec<_> = inner(parts[0]).into_iter().map(numbers).collect();
        let mut memories: Vec<_> =
            numbers(parts[4]).into_iter().map(|size| vec![0; size]).collect();
        let mut views: Vec<_> = memories.iter_mut().map(Vec::as_mut_slice).collect();
        reader.copy_rows(&mut views, &go_on).unwrap();
        for (row, &offset) in columns[0].iter().enumerate() {
            let (len, memory, start) = (columns[1][row], columns[2][row], columns[3][row]);
            assert_eq!(memory == 0, len < OWN, "long rows have memory of their own");
            rows.push((offset, memories[memory][start..start + len].to_vec()));
        }
    }
    rows
}

fn naive(file: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let mut offset = 0;
    let mut rows = Vec::new();
    for row in file.split(|&byte| byte == b'\n') {
        if !row.is_empty() {
            rows.push((offset, row.to_vec()));
        }
        offset += row.len() + 1;
    }
    rows
}

fn files() -> impl Strategy<Value = Vec<u8>> {
    let row = prop_oneof![
        Just(String::new()),
        Just("{}".to_owned()),
        "[1-9][0-9]{0,6}",
        "\"[a-z]{5,30}\"",
        Just(r#"{"a":[1,2,{"b":null}]}"#.to_owned()),
    ];
    proptest::collection::vec(row, 0..30).prop_map(|rows| {
        let rows: Vec<_> = rows.into_iter().map(|row| row + "\n").collect();
        rows.concat().into_bytes()
    })
}

fn scan_of(file: &TestFile) -> ScanSettings {
    ScanSettings { path: file.0.clone(), has_stats: false }
}

/// Counts the rows of a file. Returns its size too.
fn count_rows(path: &TestFile) -> (Census, u64) {
    let file = fs::File::open(&path.0).unwrap();
    let mut rows = RowBatches::new(0, file.metadata().unwrap().len(), 1 << 20);
    let mut census = Census::default();
    while rows.batch(&file, &mut census, || Ok::<(), ExamineError>(())).unwrap() {}
    (census, rows.end())
}

proptest! {
    #[test]
    fn batches_of_any_size_have_the_rows_of_the_file(file in files(), size in 1_u64..80) {
        let on_disk = TestFile::new(&file);
        prop_assert_eq!(read_all(on_disk.reader(bytes_of(size))), naive(&file));
    }

    #[test]
    fn the_last_rows_are_the_end_of_all(file in files(), size in 1_u64..80, count in 0_usize..9) {
        let on_disk = TestFile::new(&file);
        let last = ReadSettings { last: Some(count), ..bytes_of(size) };
        let all = naive(&file);
        prop_assert_eq!(read_all(on_disk.reader(last)), &all[all.len().saturating_sub(count)..]);
    }

    #[test]
    fn rows_are_counted_with_the_longest_of_them(file in files()) {
        let on_disk = TestFile::new(&file);
        let (census, size) = count_rows(&on_disk);
        let all = naive(&file);
        let longest = all.iter().map(|(_, row)| row.len()).max();
        prop_assert_eq!(census.rows as usize, all.len());
        prop_assert_eq!(census.biggest.map(|(_, len)| len as usize), longest);
        prop_assert_eq!(size as usize, file.len());
    }
}

#[test]
fn a_batch_of_fields_covers_as_many_bytes_as_were_asked_for() {
    let file = TestFile::new(b"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n");
    let mut texts = Vec::new();
    let mut reader = file.reader(fields_of(16, &["/a", "/b"]));
    while let Some(text) = reader.next_batch(&go_on).unwrap() {
        texts.push(text);
    }
    let expected = [
        "[[[0,8],[7,7],[1,2],[null,null]],[0,1,1,1],[],[],[0],16,24]",
        "[[[16],[7],[3],[null]],[0,1],[],[],[0],24,24]",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn a_batch_that_would_be_too_long_a_string_fails_with_its_offset() {
    let file = TestFile::new("{}\n\"ööööö\"\n{}\n".as_bytes());
    let of_longest = |longest_text| {
        let settings = ReadSettings { from: 3, longest_text, ..fields_of(1, &[""]) };
        file.reader(settings).next_batch(&go_on)
    };
    let text = of_longest(1000).unwrap().unwrap();
    let units = text.encode_utf16().count();
    assert!(units < text.len());
    assert_eq!(of_longest(units).unwrap().unwrap(), text);
    assert!(matches!(of_longest(units - 1), Err(BatchReadError::TooLong { offset: 3 })));
}

#[test]
fn reading_ends_where_it_is_stopped() {
    let file = TestFile::new(&b"{\"a\":1}\n".repeat(200));
    let stop = || Err(Interrupt);
    let outcome = file.reader(bytes_of(100)).next_batch(&stop);
    assert!(matches!(outcome, Err(BatchReadError::Stopped)));
    let outcome = describe_rows(&scan_of(&file), &stop, |_, _, _| {});
    assert!(matches!(outcome, Err(BatchReadError::Stopped)));

    let mut reader = file.reader(bytes_of(100));
    reader.next_batch(&go_on).unwrap().unwrap();
    let polls = Cell::new(0);
    let stop_late = || {
        polls.set(polls.get() + 1);
        if polls.get() < 4 { Ok(()) } else { Err(Interrupt) }
    };
    let mut memory = vec![0; 200];
    assert_eq!(reader.copy_rows(&mut [&mut memory], &stop_late), Err(Interrupt));
    assert_eq!(memory[..21], *b"{\"a\":1}{\"a\":1}{\"a\":1}");
    assert_eq!(memory[21..28], [0; 7]);
}

#[test]
fn a_reader_that_is_closed_begins_anew() {
    let file = TestFile::new(b"1\n2\n");
    let mut reader = file.reader(bytes_of(1));
    let first = reader.next_batch(&go_on).unwrap();
    reader.close();
    assert_eq!(reader.next_batch(&go_on).unwrap(), first);
}

#[test]
fn a_file_that_is_missing_fails_with_its_path() {
    let path = PathBuf::from("/nowhere/rows.jsonl");
    let outcome = BatchReader::new(path.clone(), bytes_of(1)).next_batch(&go_on);
    let Err(BatchReadError::File(error)) = outcome else { panic!("no error of the system") };
    assert_eq!((error.syscall, error.path), ("open", path));
}

#[test]
fn counting_reports_how_far_it_has_come() {
    let file = TestFile::new(b"{\"a\":1}\nnot json\n{\"a\":2,\"b\":3}\n");
    let reports = RefCell::new(Vec::new());
    let on_progress = |bytes, total, rows| reports.borrow_mut().push((bytes, total, rows));
    describe_rows(&scan_of(&file), &go_on, on_progress).unwrap();
    let (census, _) = count_rows(&file);
    assert_eq!(*reports.borrow(), [(31, 31, 2)]);
    assert_eq!(census.bad.into_iter().collect::<Vec<_>>(), [("garbage", 1)]);
    let fields: Vec<_> = census.fields.into_iter().collect();
    assert_eq!(fields, [(b"a".to_vec(), 2), (b"b".to_vec(), 1)]);
}

#[test]
fn rows_as_json_are_rewritten_where_json_parse_refuses_them() {
    let file = TestFile::new(b"{\"a\":1}\n[NaN]\n{\"long\":[1,2,-Infinity]}\n\"\xff\"\n");
    let mut reader = file.reader(settings(100, RowSelection::Json { own: OWN }));
    let text = reader.next_batch(&go_on).unwrap().unwrap();
    let parts = inner(&text);
    let columns: Vec<_> = inner(parts[0]).into_iter().map(numbers).collect();
    let rows =
        [r#"{"a":1}"#, r#"["number:NaN"]"#, r#"{"long":[1,2,"number:-Infinity"]}"#, "\"\u{fffd}\""];
    assert_eq!(columns[1], [7, 5, 24, 3], "lengths in the file");
    assert_eq!(columns[4], rows.map(str::len), "lengths in memory");
    assert_eq!(parts[2], r#"[1,"number:",2,"number:",3,"number:"]"#);
    let mut memories: Vec<_> = numbers(parts[4]).into_iter().map(|size| vec![0; size]).collect();
    let mut views: Vec<_> = memories.iter_mut().map(Vec::as_mut_slice).collect();
    reader.copy_rows(&mut views, &go_on).unwrap();
    for (row, text) in rows.iter().enumerate() {
        let (memory, start) = (&memories[columns[2][row]], columns[3][row]);
        assert_eq!(&memory[start..start + text.len()], text.as_bytes());
    }
}

#[test]
fn rows_over_the_bound_are_bad_in_batches_and_among_the_last() {
    let file = TestFile::new(b"{\"a\":1}\n{\"a\":22222}\n[]\n\n{\"a\":333333}\n");
    let bounded = ReadSettings { longest_row: 10, ..fields_of(100, &["/a"]) };
    let text = file.reader(bounded.clone()).next_batch(&go_on).unwrap().unwrap();
    let bad = r#"[8,11,"too-long",24,12,"too-long"]"#;
    assert_eq!(text, format!("[[[0,20],[7,2],[1,null]],[1,0],[],{bad},[0],37,37]"));
    let last = ReadSettings { last: Some(2), ..bounded };
    assert_eq!(file.reader(last).next_batch(&go_on).unwrap().unwrap(), text);
}
