//! Compares `print` in every format with the steps that it consists of.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_wrap,
    reason = "a test"
)]

use std::cell::{Cell, RefCell};

use offloop_json::{
    Floats, JsText, JsonLayout, Kernel, Lexicon, Memory, PackOptions, PrintConfig, PrintFormat,
    Segment, Tag, Tape, TranscodeError, Workspace, indent, pack, print, sort, transcode,
};
use proptest::prelude::*;

#[derive(Debug, PartialEq, Eq)]
struct Stopped;

/// Memory that grows as asked.
struct GrowingBytes(Vec<u8>);

impl Memory for GrowingBytes {
    type Error = Stopped;

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn grow(&mut self, len: usize, size: usize) -> Result<(), Stopped> {
        let mut grown = vec![0xBB; size];
        grown[..len].copy_from_slice(&self.0[..len]);
        self.0 = grown;
        Ok(())
    }
}

/// Memory that begins with the sizes asked for, and stops at a poll.
struct Desk {
    sizes: RefCell<Vec<usize>>,
    polls_left: Cell<usize>,
}

impl Desk {
    fn new() -> Self {
        Self { sizes: RefCell::default(), polls_left: Cell::new(usize::MAX) }
    }
}

impl Workspace for Desk {
    type Memory = GrowingBytes;

    fn acquire(&self, size: usize) -> Result<GrowingBytes, Stopped> {
        self.sizes.borrow_mut().push(size);
        Ok(GrowingBytes(vec![0xAA; size]))
    }

    fn poll(&self) -> Result<(), Stopped> {
        self.polls_left.set(self.polls_left.get().checked_sub(1).ok_or(Stopped)?);
        Ok(())
    }
}

fn word(tag: Tag, payload: i32) -> i32 {
    payload << 4 | tag as i32
}

/// Prints the tape of [`with_tape`].
fn printed(format: PrintFormat<'_>, has_newline: bool, expected_size: usize) -> (Vec<u8>, Desk) {
    let desk = Desk::new();
    let mut out = GrowingBytes(vec![0; 64]);
    let config = PrintConfig { format, has_newline, expected_size };
    let len = with_tape(|tape| print(tape, &config, &mut out, &desk)).unwrap();
    out.0.truncate(len);
    (out.0, desk)
}

/// Reads the tape of `{"b":1,"a":[raw,{"d":null,"c":true}]}`, with raw JSON that no layout changes.
fn with_tape<T>(read: impl FnOnce(Tape<'_>) -> T) -> T {
    let names = |len: i32| [word(Tag::Name, 0), len];
    let words = [
        &[word(Tag::Open, 1)][..],
        &names(1),
        &[word(Tag::Int, 1)],
        &names(1),
        &[word(Tag::Open, 0), word(Tag::Extra, 3), 0, word(Tag::Open, 1)],
        &names(1),
        &[word(Tag::Literal, 0)],
        &names(1),
        &[word(Tag::Literal, 1), word(Tag::Close, 1), word(Tag::Close, 0), word(Tag::Close, 1)],
    ]
    .concat();
    let segments = [Segment { words: &words, bytes: b"badc", ..Segment::default() }];
    let longs = [JsText { bytes: br#"{"z":[1, 2],"y":0}"#, is_wide: false }];
    let lexicon = Lexicon::default();
    read(Tape {
        segments: &segments,
        longs: &longs,
        lexicon: &lexicon,
        has_rows: false,
        first_long: 0,
    })
}

const COMPACT: &str = r#"{"b":1,"a":[{"z":[1, 2],"y":0},{"d":null,"c":true}]}"#;
const SORTED: &str = r#"{"a":[{"z":[1, 2],"y":0},{"c":true,"d":null}],"b":1}"#;
const SPACED: &str = "{\n \"b\": 1,\n \"a\": [\n  {\"z\":[1, 2],\"y\":0},\n  {\n   \"d\": null,\n   \"c\": true\n  }\n ]\n}";
const SORTED_SPACED: &str = "{\n \"a\": [\n  {\"z\":[1, 2],\"y\":0},\n  {\n   \"c\": true,\n   \"d\": null\n  }\n ],\n \"b\": 1\n}";

fn layouts() -> [(JsonLayout<'static>, &'static str); 4] {
    let gap = Some(&b" "[..]);
    [
        (JsonLayout::default(), COMPACT),
        (JsonLayout { sorts_keys: true, gap: None }, SORTED),
        (JsonLayout { sorts_keys: false, gap }, SPACED),
        (JsonLayout { sorts_keys: true, gap }, SORTED_SPACED),
    ]
}

#[test]
fn every_layout_is_printed_at_any_expected_size() {
    for (layout, expected) in layouts() {
        for size in [0, 64, 1 << 16] {
            let (json, _) = printed(PrintFormat::Json(layout), false, size);
            assert_eq!(str::from_utf8(&json).unwrap(), expected);
            let (json, _) = printed(PrintFormat::Json(layout), true, size);
            assert_eq!(str::from_utf8(&json).unwrap(), format!("{expected}\n"));
        }
    }
}

#[test]
fn intermediate_memory_has_the_expected_size_and_compact_json_needs_none() {
    let sizes = layouts().map(|(layout, _)| printed(PrintFormat::Json(layout), false, 99).1.sizes);
    let sizes = sizes.map(RefCell::into_inner);
    assert_eq!(sizes, [vec![], vec![99], vec![99], vec![99, COMPACT.len()]]);
}

#[test]
fn a_digest_is_the_sha256_of_the_json_that_is_printed_otherwise() {
    for (layout, expected) in layouts() {
        let (digest, _) = printed(PrintFormat::Digest(layout), false, 0);
        assert_eq!(str::from_utf8(&digest).unwrap(), sha256_of(expected));
    }
}

#[test]
fn the_size_is_the_length_of_the_json_that_is_printed_otherwise() {
    for (layout, expected) in layouts() {
        for size in [0, 64, 1 << 16] {
            let format = PrintFormat::JsonSize { gap: layout.gap };
            let (digits, _) = printed(format, false, size);
            assert_eq!(str::from_utf8(&digits).unwrap(), expected.len().to_string());
            let (digits, _) = printed(format, true, size);
            assert_eq!(str::from_utf8(&digits).unwrap(), (expected.len() + 1).to_string());
        }
    }
}

#[test]
fn the_size_of_compact_json_needs_one_small_block() {
    let (_, desk) = printed(PrintFormat::JsonSize { gap: None }, false, 1 << 20);
    assert_eq!(desk.sizes.into_inner(), [32 << 10]);
}

fn sha256_of(text: &str) -> String {
    use sha2::{Digest, Sha256};
    let digits: Vec<_> = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

#[test]
fn the_digest_of_a_number_is_known() {
    let desk = Desk::new();
    let mut out = GrowingBytes(vec![0; 64]);
    let words = [word(Tag::Int, 1)];
    let segments = [Segment { words: &words, ..Segment::default() }];
    let lexicon = Lexicon::default();
    let tape =
        Tape { segments: &segments, longs: &[], lexicon: &lexicon, has_rows: false, first_long: 0 };
    let format = PrintFormat::Digest(JsonLayout::default());
    let config = PrintConfig { format, has_newline: false, expected_size: 0 };
    assert_eq!(print(tape, &config, &mut out, &desk), Ok(64));
    let expected = b"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";
    assert_eq!(out.0, expected);
}

#[test]
fn messagepack_is_what_pack_writes() {
    for floats in [Floats::Double, Floats::Single] {
        let (bytes, _) = printed(PrintFormat::Msgpack { floats, max_depth: 3 }, false, 0);
        let mut memory = GrowingBytes(Vec::new());
        let options = PackOptions { floats, max_depth: 3, kernel: Kernel::best() };
        let len = with_tape(|tape| pack(tape, &options, &mut memory, || Ok(()))).unwrap();
        assert_eq!(bytes, memory.0[..len]);
    }
    let format = PrintFormat::Msgpack { floats: Floats::Double, max_depth: 2 };
    let config = PrintConfig { format, has_newline: false, expected_size: 0 };
    let mut out = GrowingBytes(Vec::new());
    let outcome = with_tape(|tape| print(tape, &config, &mut out, &Desk::new()));
    assert!(matches!(outcome, Err(TranscodeError::TooDeep(error)) if error.max_depth == 2));
}

#[test]
fn every_step_can_be_stopped() {
    for (layout, _) in layouts() {
        let size = PrintFormat::JsonSize { gap: layout.gap };
        for format in [PrintFormat::Json(layout), PrintFormat::Digest(layout), size] {
            let (_, desk) = printed(format, false, 0);
            let polls = usize::MAX - desk.polls_left.get();
            assert!(0 < polls, "{format:?}");
            let config = PrintConfig { format, has_newline: false, expected_size: 0 };
            for left in 0..polls {
                let desk = Desk { polls_left: Cell::new(left), ..Desk::new() };
                let mut out = GrowingBytes(vec![0; 64]);
                let outcome = with_tape(|tape| print(tape, &config, &mut out, &desk));
                assert_eq!(outcome, Err(TranscodeError::Stopped(Stopped)), "{format:?}");
            }
        }
    }
}

/// A desk with less memory than asked for, so that memory that counts is used again for each word.
struct NarrowDesk;

impl Workspace for NarrowDesk {
    type Memory = GrowingBytes;

    fn acquire(&self, _size: usize) -> Result<GrowingBytes, Stopped> {
        Ok(GrowingBytes(vec![b','; 64]))
    }

    fn poll(&self) -> Result<(), Stopped> {
        Ok(())
    }
}

/// Words of one value of an array, of an object's key and value, or of a part for `MessagePack` only.
fn any_words() -> impl Strategy<Value = Vec<i32>> {
    let part = prop::collection::vec(-9..99, 0..40).prop_map(|ints| {
        let part = ints.into_iter().map(|int| word(Tag::Int, int));
        [4, 5].map(|payload| word(Tag::Extra, payload)).into_iter().chain(part).collect::<Vec<_>>()
    });
    prop_oneof![
        (-9..99_999).prop_map(|int| vec![word(Tag::Int, int)]),
        (0..3).prop_map(|literal| vec![word(Tag::Literal, literal)]),
        (0..200).prop_map(|len| vec![word(Tag::Latin1, len)]),
        (0..200).prop_map(|len| vec![word(Tag::Utf16, len)]),
        prop::collection::vec(any::<i32>(), 0..300).prop_map(|ints| {
            let open = [word(Tag::Open, 0), word(Tag::Ints, ints.len() as i32)];
            [&open[..], &ints, &[word(Tag::Close, 0)]].concat()
        }),
        // A Buffer.
        (0..300).prop_map(|size| vec![word(Tag::Extra, 1), 1 << 2 | 3, size]),
        // Base64.
        (0..300).prop_map(|size| vec![word(Tag::Extra, 1), 1 << 2 | 1, size]),
        Just(vec![word(Tag::Extra, 3), 0]),
        Just(vec![word(Tag::Long, 1)]),
        part.prop_map(|part| [part, vec![word(Tag::Extra, 6)]].concat()),
        Just(vec![word(Tag::Open, 1), word(Tag::Close, 1)]),
    ]
}

proptest! {
    #[test]
    fn the_size_is_counted_in_memory_of_any_size(
        values in prop::collection::vec(any_words(), 0..20),
        depth in 0..3_usize,
        gap in prop::option::of("[ \t]{0,3}"),
        has_newline in any::<bool>(),
    ) {
        let mut words = vec![word(Tag::Open, 0); depth + 1];
        words.extend(values.concat());
        words.extend(vec![word(Tag::Close, 0); depth + 1]);
        let bytes = (0..20_000).map(|index| (index % 251) as u8).collect::<Vec<_>>();
        let segments = [Segment { words: &words, bytes: &bytes, ..Segment::default() }];
        let long = "long \u{7}".repeat(100);
        let longs = [br#"{"z":[1, 2]}"#, long.as_bytes()].map(|bytes| JsText { bytes, is_wide: false });
        let lexicon = Lexicon::default();
        let tape = Tape {
            segments: &segments,
            longs: &longs,
            first_long: 0,
            lexicon: &lexicon,
            has_rows: false,
        };
        let gap = gap.as_deref().map(str::as_bytes);
        let config = |format| PrintConfig { format, has_newline, expected_size: 0 };

        let mut out = GrowingBytes(Vec::new());
        let json = config(PrintFormat::Json(JsonLayout { sorts_keys: false, gap }));
        let len = print(tape, &json, &mut out, &NarrowDesk).unwrap();
        let size = config(PrintFormat::JsonSize { gap });
        let expected = len.to_string();
        let len = print(tape, &size, &mut out, &NarrowDesk).unwrap();
        prop_assert_eq!(str::from_utf8(&out.0[..len]).unwrap(), expected.as_str());
        let len = print(tape, &size, &mut out, &Desk::new()).unwrap();
        prop_assert_eq!(str::from_utf8(&out.0[..len]).unwrap(), expected.as_str());
    }

    /// Compares with a naive twin, whose steps each have memory of their own.
    #[test]
    fn printing_is_its_steps_one_after_the_other(
        keys in prop::collection::vec("[a-e]{0,3}", 0..20),
        sorts_keys in any::<bool>(),
        gap in prop::option::of("[ \t]{0,3}"),
    ) {
        let bytes = keys.concat();
        let mut words = vec![word(Tag::Open, 1)];
        for key in &keys {
            words.extend([word(Tag::Name, 0), key.len() as i32, word(Tag::Ints, 1), 7]);
        }
        words.push(word(Tag::Close, 1));
        let segments = [Segment { words: &words, bytes: bytes.as_bytes(), ..Segment::default() }];
        let lexicon = Lexicon::default();
        let tape = Tape { segments: &segments, longs: &[], lexicon: &lexicon, has_rows: false, first_long: 0 };

        let mut expected = GrowingBytes(Vec::new());
        let extent = transcode(tape, Kernel::best(), &mut expected, || Ok(())).unwrap();
        expected.0.truncate(extent.len);
        if sorts_keys {
            let mut sorted = GrowingBytes(Vec::new());
            let extent = sort(&expected.0, &extent.raws, &mut sorted, || Ok(())).unwrap();
            sorted.0.truncate(extent.len);
            expected = sorted;
        }
        if let Some(gap) = &gap {
            let mut spaced = GrowingBytes(Vec::new());
            let len = indent(&expected.0, &[], gap.as_bytes(), &mut spaced, || Ok(())).unwrap();
            spaced.0.truncate(len);
            expected = spaced;
        }

        let layout = JsonLayout { sorts_keys, gap: gap.as_deref().map(str::as_bytes) };
        let format = PrintFormat::Json(layout);
        let config = PrintConfig { format, has_newline: false, expected_size: 10 };
        let mut out = GrowingBytes(Vec::new());
        let len = print(tape, &config, &mut out, &Desk::new()).unwrap();
        prop_assert_eq!(&out.0[..len], expected.0);
    }
}

#[test]
fn a_tape_without_segments_is_its_only_long_text() {
    let text = r#"{"a":[1,"\u00e9",2]}"#;
    let wide = text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    for (bytes, is_wide) in [(text.as_bytes(), false), (wide.as_slice(), true)] {
        let longs = [JsText { bytes, is_wide }];
        let lexicon = Lexicon::default();
        let tape = Tape {
            segments: &[],
            longs: &longs,
            first_long: 0,
            lexicon: &lexicon,
            has_rows: false,
        };
        for (has_newline, expected) in [(false, text.to_owned()), (true, format!("{text}\n"))] {
            let format = PrintFormat::Json(JsonLayout::default());
            let config = PrintConfig { format, has_newline, expected_size: 10 };
            let mut out = GrowingBytes(Vec::new());
            let len = print(tape, &config, &mut out, &Desk::new()).unwrap();
            assert_eq!(out.0.get(..len), Some(expected.as_bytes()));
        }
    }
}
