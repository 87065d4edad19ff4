//! Compares `transcode` and `pack` with twins written with std, and runs them on invalid tapes.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_wrap,
    reason = "a test"
)]

use std::ops::Range;

use offloop_json::{
    Floats, JsText, JsonExtent, Kernel, Lexicon, Memory, PackOptions, Segment, Tag, Tape,
    TranscodeError, check, indent, pack, sort, transcode,
};
use proptest::prelude::*;

/// Memory that grows as asked, up to a bound.
struct Growing {
    bytes: Vec<u8>,
    most: usize,
}

impl Growing {
    fn new(size: usize) -> Self {
        Self { bytes: vec![0xAA; size], most: usize::MAX }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Full;

impl Memory for Growing {
    type Error = Full;

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    fn grow(&mut self, len: usize, size: usize) -> Result<(), Full> {
        if self.most < size {
            return Err(Full);
        }
        let mut grown = vec![0xBB; size];
        grown[..len].copy_from_slice(&self.bytes[..len]);
        self.bytes = grown;
        Ok(())
    }
}

fn word(tag: Tag, payload: i32) -> i32 {
    payload << 4 | tag as i32
}

fn json_of(segments: &[Segment<'_>], longs: &[JsText<'_>], lexicon: &Lexicon) -> String {
    let mut texts = Vec::new();
    for size in [0, 70, 1 << 16] {
        let mut memory = Growing::new(size);
        let tape = Tape { segments, longs, lexicon, has_rows: false, first_long: 0 };
        let JsonExtent { len, .. } =
            transcode(tape, Kernel::best(), &mut memory, || Ok(())).unwrap();
        texts.push(String::from_utf8(memory.bytes[..len].to_vec()).unwrap());
    }
    assert!(texts.iter().all(|text| *text == texts[0]), "the memory makes no difference");
    texts.remove(0)
}

fn json_of_words(words: &[i32], doubles: &[f64]) -> String {
    json_of(&[Segment { words, doubles, ..Segment::default() }], &[], &Lexicon::default())
}

#[test]
fn every_kind_of_word() {
    let lexicon = Lexicon::default();
    let key = lexicon.add("\"key\":").unwrap() as i32;
    let pair = lexicon.add(&format!("\"{}\":null,", "long".repeat(20))).unwrap() as i32;
    let words = [
        word(Tag::Open, 1),
        word(Tag::Entry, key),
        word(Tag::Int, -5),
        word(Tag::Entry, pair),
        word(Tag::Name, 0),
        2,
        word(Tag::Latin1, 3),
        word(Tag::Name, 1),
        1,
        word(Tag::Utf16, 2),
        word(Tag::Name, 2),
        2,
        word(Tag::Rope, 1),
        word(Tag::Name, 3),
        1,
        word(Tag::Long, 0),
        word(Tag::Entry, key),
        word(Tag::Open, 0),
        word(Tag::Literal, 0),
        word(Tag::Literal, 1),
        word(Tag::Literal, 2),
        word(Tag::Double, 0),
        word(Tag::Ints, 3),
        1,
        -2,
        i32::MIN,
        word(Tag::Doubles, 2),
        word(Tag::Date, 0),
        word(Tag::Text, 0),
        4,
        1,
        3,
        word(Tag::Extra, 1),
        1 << 2 | 3,
        2,
        word(Tag::Extra, 2),
        1 << 2 | 3,
        1,
        word(Tag::Close, 0),
        word(Tag::Entry, key),
        word(Tag::Open, 1),
        word(Tag::Close, 1),
        word(Tag::Close, 1),
        word(Tag::Extra, 0),
    ];
    let segment = Segment {
        words: &words,
        doubles: &[1.5, -0.0, f64::NAN, 0.0],
        bytes: b"a\"\xe9\n.\x2d\x4e\x3d\xd8\x00\xde(12)\x01\xff",
        rope: b"\x2d\x4e\x41\x00z",
        runs: &[2 << 1 | 1, 1 << 1],
    };
    let longs =
        [JsText { bytes: b"long", is_wide: false }, JsText { bytes: b"\x2d\x4e", is_wide: true }];
    let json = json_of(&[segment], &longs, &lexicon);
    let long_key = "long".repeat(20);
    let expected = [
        r#"{"key":-5,""#,
        &long_key,
        r#"":null,"a\"":"é\n.","中":"😀","中A":"z","中":"long","key":[null,true,false,1.5,1,-2,-2147483648,0,null,"#,
        r#""1970-01-01T00:00:00.000Z",12,{"type":"Buffer","data":[1,255]},{"type":"Buffer","data":[45,78]}],"key":{}}"#,
        "\n",
    ]
    .concat();
    assert_eq!(json, expected);
}

/// Encodes bytes as base64, bit by bit.
fn naive_base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u8> =
        bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let value = |six: &[u8]| (0..6).fold(0, |value, at| value << 1 | six.get(at).unwrap_or(&0));
    let mut text: String =
        bits.chunks(6).map(|six| char::from(LETTERS[usize::from(value(six))])).collect();
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

#[test]
fn typed_arrays_of_any_length_become_base64() {
    const PIECE: usize = 3 << 12;
    for len in [0, 1, 2, 3, 4, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 2] {
        let bytes: Vec<u8> = (0..len).map(|index| (index * 7 % 256) as u8).collect();
        let words = [word(Tag::Extra, 1), 1 << 2 | 1, len as i32];
        let segment = Segment { words: &words, bytes: &bytes, ..Segment::default() };
        let json = json_of(&[segment], &[], &Lexicon::default());
        assert_eq!(json, format!("\"{}\"", naive_base64(&bytes)), "{len}");
    }
    assert_eq!(naive_base64(b"\x01\x02"), "AQI=");
}

#[test]
fn a_value_goes_on_in_the_next_segment() {
    let first = Segment { words: &[word(Tag::Open, 0), word(Tag::Int, 1)], ..Segment::default() };
    let second = Segment { words: &[word(Tag::Int, 2), word(Tag::Close, 0)], ..Segment::default() };
    assert_eq!(json_of(&[first, second], &[], &Lexicon::default()), "[1,2]");
}

#[test]
fn a_million_arrays_in_each_other() {
    let depth = 1_000_000;
    let mut words = vec![word(Tag::Open, 0); depth];
    words.extend(vec![word(Tag::Close, 0); depth]);
    assert_eq!(json_of_words(&words, &[]), "[".repeat(depth) + &"]".repeat(depth));
}

#[test]
fn strings_longer_than_a_piece_keep_their_surrogate_pairs() {
    for ahead in [0, 1, 4093, 4094, 4095, 4096, 4097] {
        let text = "中".repeat(ahead) + &"😀".repeat(5000);
        let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let words = [word(Tag::Utf16, (bytes.len() / 2) as i32)];
        let segment = Segment { words: &words, bytes: &bytes, ..Segment::default() };
        let json = json_of(&[segment], &[], &Lexicon::default());
        assert_eq!(json, format!("\"{text}\""));
    }
}

#[test]
fn a_failure_to_grow_is_told_and_nothing_is_written_outside() {
    let words = vec![word(Tag::Int, 1234); 1000];
    let segments = [Segment { words: &words, ..Segment::default() }];
    let lexicon = Lexicon::default();
    let tape =
        Tape { segments: &segments, longs: &[], lexicon: &lexicon, has_rows: false, first_long: 0 };
    let mut memory = Growing { bytes: vec![0; 100], most: 200 };
    let outcome = transcode(tape, Kernel::best(), &mut memory, || Ok(()));
    assert_eq!(outcome, Err(TranscodeError::Stopped(Full)));
    let mut memory = Growing { bytes: Vec::new(), most: 0 };
    let outcome = transcode(tape, Kernel::best(), &mut memory, || Ok(()));
    assert_eq!(outcome, Err(TranscodeError::Stopped(Full)));
}

#[test]
fn poll_stops_long_work() {
    let doubles = vec![0.1; 1 << 20];
    let words = [word(Tag::Doubles, 1 << 20)];
    let segments = [Segment { words: &words, doubles: &doubles, ..Segment::default() }];
    let lexicon = Lexicon::default();
    let tape =
        Tape { segments: &segments, longs: &[], lexicon: &lexicon, has_rows: false, first_long: 0 };
    let mut polls = 0;
    let outcome = transcode(tape, Kernel::best(), &mut Growing::new(8 << 20), || {
        polls += 1;
        if polls == 3 { Err(Full) } else { Ok(()) }
    });
    assert_eq!(outcome, Err(TranscodeError::Stopped(Full)));
    assert_eq!(polls, 3);
}

fn options(floats: Floats) -> PackOptions {
    PackOptions { floats, max_depth: usize::MAX, kernel: Kernel::best() }
}

fn packed(segments: &[Segment<'_>], longs: &[JsText<'_>], lexicon: &Lexicon) -> Vec<u8> {
    let tape = Tape { segments, longs, lexicon, has_rows: false, first_long: 0 };
    let results = [0, 65, 1 << 16].map(|size| {
        let mut memory = Growing::new(size);
        let len = pack(tape, &options(Floats::Double), &mut memory, || Ok(())).unwrap();
        memory.bytes[..len].to_vec()
    });
    assert!(results.iter().all(|bytes| *bytes == results[0]), "the memory makes no difference");
    results[0].clone()
}

const ONLY_JSON: i32 = 4 << 4 | Tag::Extra as i32;
const ONLY_MSGPACK: i32 = 5 << 4 | Tag::Extra as i32;
const BOTH: i32 = 6 << 4 | Tag::Extra as i32;

#[test]
fn what_is_for_one_alone_is_not_in_the_other() {
    let words = [
        word(Tag::Open, 0),
        word(Tag::Int, 1),
        ONLY_JSON,
        word(Tag::Open, 1),
        word(Tag::Name, 0),
        1,
        word(Tag::Open, 0),
        word(Tag::Int, 2),
        word(Tag::Close, 0),
        word(Tag::Close, 1),
        ONLY_MSGPACK,
        word(Tag::Open, 2),
        word(Tag::Int, 3),
        word(Tag::Extra, 3),
        0,
        word(Tag::Close, 2),
        BOTH,
        word(Tag::Int, 5),
        word(Tag::Close, 0),
    ];
    let json = br#"[true,{"a":[]}]"#;
    let longs = [JsText { bytes: json, is_wide: false }];
    let (head, tail) = words.split_at(8);
    let lexicon = Lexicon::default();
    let whole = [Segment { words: &words, bytes: b"k", ..Segment::default() }];
    let two = [
        Segment { words: head, bytes: b"k", ..Segment::default() },
        Segment { words: tail, ..Segment::default() },
    ];
    let expected = [0x93, 1, 0x81, 3, 0x92, 0xc3, 0x81, 0xa1, b'a', 0x90, 5];
    for segments in [&whole[..], &two] {
        assert_eq!(json_of(segments, &longs, &lexicon), r#"[1,{"k":[2]},5]"#);
        assert_eq!(packed(segments, &longs, &lexicon), expected);
    }
}

#[test]
fn entries_of_every_kind_are_packed() {
    let lexicon = Lexicon::default();
    let texts = ["\"k\\n\":", "\"a\":null,", "\"b\":\"\\\"x\",", "\"c\":{", "\"d\":[],", "\"e:\","];
    let entries = texts.map(|text| word(Tag::Entry, lexicon.add(text).unwrap() as i32));
    let [key, null, text, opens, array, element] = entries;
    let (open, close) = (word(Tag::Open, 0), word(Tag::Close, 0));
    let end = word(Tag::Close, 1);
    let words =
        [open, element, word(Tag::Open, 1), key, word(Tag::Int, 1), null, text, opens, array]
            .into_iter()
            .chain([end, end, close])
            .collect::<Vec<_>>();
    let segments = [Segment { words: &words, ..Segment::default() }];
    let expected = b"\x92\xa2e:\x84\xa2k\n\x01\xa1a\xc0\xa1b\xa2\"x\xa1c\x81\xa1d\x90";
    assert_eq!(packed(&segments, &[], &lexicon), expected);
}

#[test]
fn packing_stops_and_fails_as_printing_does() {
    let doubles = vec![0.1; 1 << 20];
    let words = [word(Tag::Open, 0), word(Tag::Doubles, 1 << 20), word(Tag::Close, 0)];
    let segments = [Segment { words: &words, doubles: &doubles, ..Segment::default() }];
    let lexicon = Lexicon::default();
    let tape =
        Tape { segments: &segments, longs: &[], lexicon: &lexicon, has_rows: false, first_long: 0 };
    let mut polls = 0;
    let outcome = pack(tape, &options(Floats::Double), &mut Growing::new(8 << 20), || {
        polls += 1;
        if polls == 3 { Err(Full) } else { Ok(()) }
    });
    assert_eq!((outcome, polls), (Err(TranscodeError::Stopped(Full)), 3));
    let mut memory = Growing { bytes: vec![0; 100], most: 200 };
    let outcome = pack(tape, &options(Floats::Double), &mut memory, || Ok(()));
    assert_eq!(outcome, Err(TranscodeError::Stopped(Full)));
    let row = [word(Tag::Int, 1), word(Tag::Extra, 0)];
    let segments = [Segment { words: &row, ..Segment::default() }];
    let tape = Tape { segments: &segments, ..tape };
    let outcome = pack(tape, &options(Floats::Double), &mut Growing::new(0), || Ok(()));
    assert_eq!(outcome, Err(TranscodeError::Malformed), "rows are none of MessagePack");
}

#[test]
fn integers_of_every_length() {
    let mut ints = vec![0, i32::MAX, i32::MIN, i32::MIN + 1];
    for power in 0..10 {
        let ten = 10_i32.pow(power);
        ints.extend([ten - 1, ten, ten + 1, -ten, 1 - ten, ten.saturating_mul(9)]);
    }
    let mut words = vec![word(Tag::Open, 0), word(Tag::Ints, ints.len() as i32)];
    words.extend(&ints);
    words.push(word(Tag::Close, 0));
    let expected: Vec<String> = ints.iter().map(ToString::to_string).collect();
    assert_eq!(json_of_words(&words, &[]), format!("[{}]", expected.join(",")));
}

fn printed(value: f64) -> String {
    json_of_words(&[word(Tag::Double, 0)], &[value])
}

#[test]
fn doubles_at_the_edges_of_their_layouts() {
    let cases = [
        (0.0, "0"),
        (-0.0, "0"),
        (f64::INFINITY, "null"),
        (f64::NAN, "null"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (123_456_789_012_345_680_000.0, "123456789012345680000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (0.000_012_3, "0.0000123"),
        (9_007_199_254_740_991.0, "9007199254740991"),
        (9_007_199_254_740_993.0, "9007199254740992"),
        (-4_294_967_296.0, "-4294967296"),
        (99_999_999.0, "99999999"),
        (100_000_000.0, "100000000"),
        (0.1, "0.1"),
        (-1.0e-5, "-0.00001"),
    ];
    for (value, expected) in cases {
        assert_eq!(printed(value), expected);
    }
}

#[test]
fn dates_far_away() {
    let cases = [
        (0.0, "\"1970-01-01T00:00:00.000Z\""),
        (-1.0, "\"1969-12-31T23:59:59.999Z\""),
        (8.64e15, "\"+275760-09-13T00:00:00.000Z\""),
        (-8.64e15, "\"-271821-04-20T00:00:00.000Z\""),
        (951_782_400_000.0, "\"2000-02-29T00:00:00.000Z\""),
        (-62_198_755_200_000.0, "\"-000001-01-01T00:00:00.000Z\""),
        (-62_167_219_200_000.0, "\"0000-01-01T00:00:00.000Z\""),
        (253_402_300_800_000.0, "\"+010000-01-01T00:00:00.000Z\""),
        (8.64e15 + 1.0, "null"),
        (f64::NAN, "null"),
    ];
    for (time, expected) in cases {
        assert_eq!(json_of_words(&[word(Tag::Date, 0)], &[time]), expected);
    }
}

#[test]
fn space_as_json_stringify_has_it() {
    let json = r#"{"a":[],"b":{},"c":[1,{"d":"x\"],{:,"}],"e":"\\"}"#;
    let expected = "{\n--\"a\": [],\n--\"b\": {},\n--\"c\": [\n----1,\n----{\n------\"d\": \"x\\\"],{:,\"\n----}\n--],\n--\"e\": \"\\\\\"\n}\n";
    let mut memory = Growing::new(0);
    let json = format!("{json}\n");
    let len = indent(json.as_bytes(), &[], b"--", &mut memory, || Ok(())).unwrap();
    assert_eq!(std::str::from_utf8(&memory.bytes[..len]).unwrap(), expected);
}

fn sorted(json: &str, raws: &[Range<usize>]) -> (String, Vec<Range<usize>>) {
    let mut memory = Growing::new(0);
    let written = sort(json.as_bytes(), raws, &mut memory, || Ok(())).unwrap();
    (std::str::from_utf8(&memory.bytes[..written.len]).unwrap().to_owned(), written.raws)
}

#[test]
fn keys_in_order() {
    let cases = [
        ("", ""),
        ("1", "1"),
        ("{}", "{}"),
        (r#"{"a":1}"#, r#"{"a":1}"#),
        (
            r#"{"b":1,"a":{"d":[{"z":"}","y":","}],"c":2}}"#,
            r#"{"a":{"c":2,"d":[{"y":",","z":"}"}]},"b":1}"#,
        ),
        (r#"{"a":{"b":1,"a":2},"b":{"b":1,"a":2}}"#, r#"{"a":{"a":2,"b":1},"b":{"a":2,"b":1}}"#),
        (
            r#"[{"\u001f":1,"\n":2,"":3,"\"":4,"!":5}]"#,
            r#"[{"":3,"\n":2,"\u001f":1,"!":5,"\"":4}]"#,
        ),
        (
            "{\"\u{e000}\":1,\"\u{1f600}\":2,\"\\ud83d\":3,\"\u{7ff}\":4}",
            "{\"\u{7ff}\":4,\"\\ud83d\":3,\"\u{1f600}\":2,\"\u{e000}\":1}",
        ),
        ("{\"b\":1,\"a\":2}\n{\"d\":1,\"c\":2}\n", "{\"a\":2,\"b\":1}\n{\"c\":2,\"d\":1}\n"),
    ];
    for (json, expected) in cases {
        assert_eq!(sorted(json, &[]).0, expected);
    }
}

#[test]
fn raws_stay_as_they_are_and_are_told_again() {
    let json = r#"{"b":{"z":1,"y":2},"a":[{"d":1,"c":{"f":1,"e":2}},]"]}"#;
    let places = [(r#"{"z""#, 13), (r#"{"f""#, 13), (r#"]"]"#, 2)];
    let raws = places.map(|(text, len)| {
        let start = json.find(text).unwrap();
        start..start + len
    });
    let (text, moved) = sorted(json, &raws);
    assert_eq!(text, r#"{"a":[{"c":{"f":1,"e":2},"d":1},]"],"b":{"z":1,"y":2}}"#);
    let texts = moved.into_iter().map(|raw| &text[raw]).collect::<Vec<_>>();
    let mut expected = raws.map(|raw| &json[raw]).to_vec();
    expected.rotate_left(1);
    assert_eq!(texts, expected);
}

#[test]
fn json_and_what_is_none() {
    let deep = "[".repeat(100_000) + "1" + &"]".repeat(100_000);
    let valid =
        ["1", " [ ] ", r#"{"a\u00e9\ud800":[{}, -0.5E+10 ,null]}"#, &deep, "\"\u{7f}\u{2028}\""];
    for json in valid {
        assert_eq!(check(json.as_bytes()), Ok(()), "{json:.50}");
    }
    let wrong: [(&[u8], usize); 10] = [
        (b"", 0),
        (b"[", 1),
        (br#"{"a":1,}"#, 7),
        (b"[1,,2]", 3),
        (b"\"a\xff\"", 2),
        (b"[1] \xc3", 4),
        (b"[1x\xff", 2),
        (b"00", 1),
        (br#""\u00g0""#, 5),
        (b"\"\xed\xa0\x80\"", 1),
    ];
    for (json, offset) in wrong {
        assert_eq!(check(json).unwrap_err().offset, offset, "{}", json.escape_ascii());
    }
}

fn twin(value: f64) -> String {
    ryu_js::Buffer::new().format_finite(value).to_owned()
}

proptest! {
    #[test]
    fn doubles_are_printed_as_ryu_js_does(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        prop_assert_eq!(printed(value), twin(value));
    }

    #[test]
    fn decimals_are_printed_as_ryu_js_does(digits in -9_999_999_i64..9_999_999, scale in -12_i32..24) {
        let value = digits as f64 * 10_f64.powi(scale);
        prop_assert_eq!(printed(value), twin(value));
    }

    /// Checks that invalid tapes neither panic nor write outside of the memory.
    #[test]
    fn malformed_tapes_fail_in_peace(
        words in prop::collection::vec(prop_oneof![any::<i32>(), 0..4096_i32], 0..64),
        doubles in prop::collection::vec(any::<f64>(), 0..8),
        bytes in prop::collection::vec(any::<u8>(), 0..256),
        rope in prop::collection::vec(any::<u8>(), 0..64),
        runs in prop::collection::vec(prop_oneof![any::<i32>(), 0..64_i32], 0..8),
        size in 0..200_usize,
    ) {
        let lexicon = Lexicon::default();
        lexicon.add("\"key\":");
        let segment =
            Segment { words: &words, doubles: &doubles, bytes: &bytes, rope: &rope, runs: &runs };
        let longs = [JsText { bytes: &bytes, is_wide: bytes.len().is_multiple_of(2) }];
        let segments = [segment, segment];
        let tape = Tape { segments: &segments, longs: &longs, lexicon: &lexicon, has_rows: true, first_long: 0 };
        let mut memory = Growing::new(size);
        memory.most = 1 << 20;
        if let Ok(written) = transcode(tape, Kernel::best(), &mut memory, || Ok(())) {
            prop_assert!(written.len <= memory.bytes.len());
            prop_assert!(written.raws.iter().all(|raw| raw.end <= written.len));
        }
        if let Ok(len) = pack(tape, &options(Floats::Single), &mut memory, || Ok(())) {
            prop_assert!(len <= memory.bytes.len());
        }
    }

    #[test]
    fn any_bytes_can_be_indented_and_sorted(raws in ranges(), json in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"{}[],:\"\\".to_vec())], 0..200)) {
        let mut memory = Growing::new(0);
        memory.most = 1 << 20;
        if let Ok(len) = indent(&json, &raws, b"  ", &mut memory, || Ok(())) {
            prop_assert!(len <= memory.bytes.len());
        }
        if let Ok(written) = sort(&json, &raws, &mut memory, || Ok(())) {
            prop_assert!(written.len <= memory.bytes.len());
        }
    }
}

/// Returns ranges in order, anywhere in a text.
fn ranges() -> impl Strategy<Value = Vec<Range<usize>>> {
    prop::collection::vec(0..220_usize, 0..6).prop_map(|mut ends| {
        ends.sort_unstable();
        ends.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect()
    })
}
