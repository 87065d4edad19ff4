//! Compares the reader with the crate simd-json, which only tests and benchmarks use.
//!
//! simd-json accepts a strict subset: all that the reader accepts, except for three kinds of text ([`Refusal`]). Both read
//! the same tokens. One value differs: simd-json reads `-0` as 0.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::convert::Infallible;

use offloop_grammar::{JsonVisitor, Text, check, read};
use proptest::prelude::*;
use simd_json::{ErrorType, Node, StaticNode};

/// A part of a tree, in the order of the text. Equal lists are equal trees, with the order of keys and duplicates.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Open { is_object: bool },
    Close,
    Key(Vec<u8>),
    String(Vec<u8>),
    Number(u64),
    Literal(Option<bool>),
}

/// Why simd-json refuses valid JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// Half of a surrogate pair.
    Surrogate,
    /// A number that is larger than any double.
    Overflow,
    /// More than 1,024 levels.
    Depth,
}

impl Refusal {
    fn of(error: &ErrorType) -> Option<Self> {
        match error {
            ErrorType::InvalidUnicodeCodepoint => Some(Self::Surrogate),
            ErrorType::InvalidNumber => Some(Self::Overflow),
            ErrorType::DepthLimitExceeded => Some(Self::Depth),
            _ => None,
        }
    }
}

/// Builds the tokens of a text, and the reasons for simd-json to refuse it.
#[derive(Default)]
struct Builder {
    tokens: Vec<Token>,
    refusals: Vec<Refusal>,
    depth: usize,
}

impl Builder {
    fn text(&mut self, text: Text<'_>) -> Vec<u8> {
        let bytes = text.unescaped().into_owned();
        if str::from_utf8(&bytes).is_err() {
            self.refusals.push(Refusal::Surrogate);
        }
        bytes
    }
}

impl JsonVisitor for Builder {
    type Error = Infallible;

    fn open(&mut self, is_object: bool, _: usize) -> Result<(), Infallible> {
        self.depth += 1;
        if simd_json::DEFAULT_MAX_DEPTH < self.depth {
            self.refusals.push(Refusal::Depth);
        }
        self.tokens.push(Token::Open { is_object });
        Ok(())
    }

    fn close(&mut self, _: usize) -> Result<(), Infallible> {
        self.depth -= 1;
        self.tokens.push(Token::Close);
        Ok(())
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), Infallible> {
        let key = self.text(text);
        self.tokens.push(Token::Key(key));
        Ok(())
    }

    fn string(&mut self, text: Text<'_>) -> Result<(), Infallible> {
        let string = self.text(text);
        self.tokens.push(Token::String(string));
        Ok(())
    }

    fn number(&mut self, text: &[u8], _: usize) -> Result<(), Infallible> {
        let value: f64 = str::from_utf8(text).unwrap().parse().unwrap();
        if value.is_infinite() {
            self.refusals.push(Refusal::Overflow);
        }
        // simd-json reads -0 as an integer, which has no sign. It keeps the sign of -0.0.
        let value = if text == b"-0" { 0.0 } else { value };
        self.tokens.push(Token::Number(value.to_bits()));
        Ok(())
    }

    fn literal(&mut self, value: Option<bool>, _: usize) -> Result<(), Infallible> {
        self.tokens.push(Token::Literal(value));
        Ok(())
    }
}

/// Returns the tokens of simd-json. It unescapes strings in the text, so it needs a copy.
fn simd_tokens(text: &[u8]) -> Result<Vec<Token>, simd_json::Error> {
    let mut copy = text.to_vec();
    let tape = simd_json::to_tape(&mut copy)?;
    let mut tokens = Vec::new();
    // Values that are left in each open container; keys count.
    let mut open: Vec<(bool, usize)> = Vec::new();
    for node in &tape.0 {
        let is_key = open.last().is_some_and(|&(is_object, left)| is_object && left % 2 == 0);
        if let Some((_, left)) = open.last_mut() {
            *left -= 1;
        }
        match node {
            Node::String(text) if is_key => tokens.push(Token::Key(text.as_bytes().to_vec())),
            Node::String(text) => tokens.push(Token::String(text.as_bytes().to_vec())),
            Node::Object { len, .. } => {
                tokens.push(Token::Open { is_object: true });
                open.push((true, 2 * len));
            }
            Node::Array { len, .. } => {
                tokens.push(Token::Open { is_object: false });
                open.push((false, *len));
            }
            Node::Static(value) => tokens.push(static_token(*value)),
        }
        while open.last().is_some_and(|&(_, left)| left == 0) {
            open.pop();
            tokens.push(Token::Close);
        }
    }
    assert_eq!(open, [], "the tape is whole");
    Ok(tokens)
}

fn static_token(value: StaticNode) -> Token {
    match value {
        StaticNode::I64(value) => Token::Number((value as f64).to_bits()),
        StaticNode::U64(value) => Token::Number((value as f64).to_bits()),
        StaticNode::F64(value) => Token::Number(value.to_bits()),
        StaticNode::Bool(value) => Token::Literal(Some(value)),
        StaticNode::Null => Token::Literal(None),
    }
}

/// Asserts that both read the same tokens, or that one of the three reasons explains the refusal. Returns the refusal.
fn compare(text: &[u8]) -> Option<Refusal> {
    let mut ours = Builder::default();
    let accepts = read(text, &mut ours).is_ok();
    assert_eq!(check(text).is_ok(), accepts);
    let theirs = simd_tokens(text);
    let shown = text.escape_ascii();
    match theirs {
        Ok(tokens) => {
            assert!(accepts, "simd-json accepts what the reader refuses: {shown}");
            assert_eq!(ours.refusals, [], "{shown}");
            assert_eq!(tokens, ours.tokens, "{shown}");
            None
        }
        Err(error) if accepts => {
            let refusal = Refusal::of(error.error());
            let explains = refusal.is_some_and(|refusal| ours.refusals.contains(&refusal));
            assert!(explains, "no reason explains {error:?}, found {:?}: {shown}", ours.refusals);
            refusal
        }
        Err(_) => None,
    }
}

/// Valid texts that both accept.
#[rustfmt::skip]
const ACCEPTED: &[&str] = &[
    // Scalars alone.
    "0", "-0", "1", " 1 ", "\"\"", "\"a\"", "true", "false", "null", "\n null\r\t",
    // Structure and white space.
    "[]", "{}", "[ ]", "{ }", "\n[\t]\r", "[[]]", "[{}]", "{\"a\":{}}", "[[],[]]",
    " { \"a\" : [ 1 , 2 ] } ", "[1,null,true,false,\"x\",{},[]]", "{\"a\":1,\"b\":2}",
    "{\"b\":1,\"a\":2,\"1\":3}",
    // Keys.
    "{\"\":0}", "{\"a\":1,\"a\":2}", "{\"a\":{\"b\":1},\"a\":3,\"\\u0061\":4}",
    "{\"__proto__\":{}}", "{\"\\u0000\":1}", "{\"/~*\":1}", "{\"\\\"\":1}",
    // Integers.
    "[-1,10,100,1234567890]", "9007199254740991", "9007199254740993", "-9007199254740993",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551615", "18446744073709551616", "123456789012345678901234567890",
    // Fractions and exponents.
    "[-0.0]", "0.1", "-0.5", "1.0", "1e0", "1E+2", "1e-2", "0e5", "0E0", "0.1e1", "-1.25e-7",
    "1e22", "1e23", "1e308", "1.7976931348623157e308", "-1.7976931348623157e308",
    "2.2250738585072014e-308", "2.2250738585072011e-308", "4.9e-324", "2.4703282292062328e-324",
    "2.4703282292062327e-324", "1e-400", "-1e-400", "0e999999999999", "1e-99999999999999999999",
    "0.000000000000000000000000000000000000000000000000000000000000000000000000001",
    "3.14159265358979323846264338327950288419716939937510",
    "9.999999999999999999999999999999999999999", "9007199254740992.5",
    "9007199254740993.00000000000000000000000000001", "7.2057594037927933e+16",
    // Escapes.
    r#""\"\\\/\b\f\n\r\t""#, r#""\u0041\u00e9\u00E9\u4e2d""#, r#""\u0000\u001f\u007f""#,
    r#""\ud83d\ude00""#, r#""\uD83D\uDE00a\uDBFF\uDFFF""#, r#""\uffff\ufffe\ufdd0""#,
    r#""\u2028\u2029""#, r#""\\u0041""#, r#""a\\""#,
    // UTF-8.
    "\"é中😀\"", "\"\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}\"",
    "\"\u{2028}\u{2029}\u{feff}\"", "{\"é\":\"中\"}", "[\"a\u{0301}\"]",
];

/// Valid texts that simd-json refuses.
const REFUSED: &[(&str, Refusal)] = &[
    (r#""\ud800""#, Refusal::Surrogate),
    (r#""\udc00""#, Refusal::Surrogate),
    (r#""\udbff""#, Refusal::Surrogate),
    (r#""\udfffx""#, Refusal::Surrogate),
    (r#""\ud800x""#, Refusal::Surrogate),
    (r#""\ud800\n""#, Refusal::Surrogate),
    (r#""\ud800\u0041""#, Refusal::Surrogate),
    (r#""\ud800\ud800""#, Refusal::Surrogate),
    (r#""\udc00\ud800""#, Refusal::Surrogate),
    (r#""\ud83d\ude00\ud83d""#, Refusal::Surrogate),
    (r#"["\ud83d"]"#, Refusal::Surrogate),
    (r#"{"\ud800":1}"#, Refusal::Surrogate),
    (r#"{"a":"\udead"}"#, Refusal::Surrogate),
    ("1e309", Refusal::Overflow),
    ("[1e400]", Refusal::Overflow),
    ("[-1e400]", Refusal::Overflow),
    ("[0.1e1000]", Refusal::Overflow),
    ("1.7976931348623159e308", Refusal::Overflow),
    ("[1e99999999999999999999]", Refusal::Overflow),
    (r#"{"a":-1E+999}"#, Refusal::Overflow),
];

/// Invalid texts.
#[rustfmt::skip]
const INVALID: &[&[u8]] = &[
    // Structure.
    b"", b" ", b"[", b"]", b"{", b"}", b"[1", b"[1,", b"[1,]", b"[,1]", b"[,]", b"[1,,2]", b"[1 2]",
    b"[1}", b"{]", b"[1]]", b"{\"a\"}", b"{\"a\":}", b"{\"a\":1,}", b"{,}", b"{:1}", b"{1:1}",
    b"{a:1}", b"{'a':1}", b"{\"a\":1 \"b\":2}", b"{\"a\"::1}", b"{\"a\",1}", b"[\"a\":1]",
    b"{\"a\":1}}", b"1 2", b"[]1", b"{}{}", b"[][]", b",", b":", b"[:]", b"{[]:1}",
    // Numbers.
    b"01", b"-01", b"00", b"-", b"--1", b"+1", b".1", b"1.", b"-.1", b"1.e1", b"1e", b"1e+", b"1E-",
    b"1e1.5", b"0x1", b"1_0", b"1,0", b"1a", b"[1.]", b"[-]", b"[1e]", b"[0e]", b"[2.e3]", b"[1+2]",
    b"[0.1.2]", b"NaN", b"Infinity", b"[-Infinity]", b"[NaN]", "１".as_bytes(),
    // Literals.
    b"t", b"tru", b"truex", b"True", b"nul", b"nullx", b"NULL", b"fals", b"falsy", b"[truex]",
    b"[nul]", b"undefined", b"truefalse",
    // Strings.
    b"\"", b"\"a", b"\"a\\\"", b"\"\\", b"\"\\\"", b"a", b"'a'", b"\"\\x\"", b"\"\\u\"",
    b"\"\\u1\"", b"\"\\u12\"", b"\"\\u123\"", b"\"\\u123g\"", b"\"\\U1234\"", b"\"\\a\"",
    b"\"\\ \"", b"\"\\0\"", b"\"\\'\"", b"\"\n\"", b"\"\t\"", b"\"\0\"", b"\"\x1f\"", b"\"\\\n\"",
    b"\"a\"b", b"\"\"\"", b"[\"\\ud800\\u\"]", b"[\"\\ud800\\\"]", b"[\"\\ud800\\u12\"]",
    // UTF-8.
    b"\"\xff\"", b"\"\x80\"", b"\"\xc3\"", b"\"\xc0\x80\"", b"\"\xc1\xbf\"", b"\"\xe0\x80\x80\"",
    b"\"\xed\xa0\x80\"", b"\"\xed\xbf\xbf\"", b"\"\xf0\x80\x80\x80\"", b"\"\xf4\x90\x80\x80\"",
    b"\"\xf8\x88\x80\x80\x80\"", b"\"\xe4\xb8\"", b"\"\xf0\x9f\x98\"", b"\xff", b"[\xff]",
    b"{\"\xff\":1}", b"\xef\xbb\xbf1", b"\xef\xbb\xbf", b"\xc3\xa9",
    // White space that JSON does not have, and NUL.
    b"\x0c1", b"1\x0b", b"[\xc2\xa0]", b"\xe2\x80\xa81", b"1\0", b"[1]\0", b"\0", b"[\0]", b"[1\0]",
    // Comments.
    b"// a\n1", b"/* a */1", b"[1]//", b"[1/**/]", b"#\n1",
];

#[test]
fn valid_texts_that_both_accept() {
    for text in ACCEPTED {
        assert!(simd_tokens(text.as_bytes()).is_ok(), "{text}");
        assert_eq!(compare(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn three_reasons_explain_every_refusal_of_valid_texts() {
    for (text, refusal) in REFUSED {
        assert_eq!(compare(text.as_bytes()), Some(*refusal), "{text}");
    }
    let valid = ACCEPTED.iter().chain(REFUSED.iter().map(|(text, _)| text));
    let refused = valid.clone().filter(|text| compare(text.as_bytes()).is_some());
    assert_eq!((refused.count(), valid.count()), (REFUSED.len(), ACCEPTED.len() + REFUSED.len()));
}

#[test]
fn both_refuse_invalid_texts() {
    for text in INVALID {
        let shown = text.escape_ascii();
        assert!(read(text, &mut Builder::default()).is_err(), "{shown}");
        assert!(simd_tokens(text).is_err(), "{shown}");
    }
}

#[test]
fn simd_json_refuses_more_than_1024_levels() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        for depth in [1, 63, 64, 65, 1023, 1024] {
            assert_eq!(compare(nested(depth).as_bytes()), None, "{depth}");
        }
        for depth in [1025, 1026, 100_000] {
            assert_eq!(compare(nested(depth).as_bytes()), Some(Refusal::Depth), "{depth}");
        }
    }
}

#[test]
fn strings_and_spaces_of_every_length() {
    // Both work in blocks of up to 64 bytes: each special byte comes to each place of a block.
    for len in 0..200 {
        let (letters, spaces) = ("x".repeat(len), " ".repeat(len));
        for special in ["", "é", "😀", "\\n", "\\\\", "\\\"", "\\u00e9", "\\ud83d\\ude00"] {
            let text = format!("{spaces}[{spaces}\"{letters}{special}{letters}\"{spaces},{len}]");
            assert_eq!(compare(text.as_bytes()), None);
        }
        for bad in [&b"\n"[..], b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\\x", b"\\u00"] {
            let text = [b"[\"", letters.as_bytes(), bad, letters.as_bytes(), b"\"]"].concat();
            assert!(simd_tokens(&text).is_err() && read(&text, &mut Builder::default()).is_err());
        }
    }
}

fn space() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(String::new()), 1 => "[ \t\r\n]{0,70}"]
}

fn escaped(character: char) -> String {
    let units = character
        .encode_utf16(&mut [0; 2])
        .iter()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect::<Vec<_>>();
    units.concat()
}

fn string() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        8 => "[ !#-\\[\\]-~]{0,40}",
        2 => "[é中😀\u{7f}\u{80}\u{2028}\u{ffff}]{0,6}",
        2 => prop::sample::select(vec![r#"\""#, r"\\", r"\/", r"\b", r"\f", r"\n", r"\r", r"\t"]).prop_map(str::to_owned),
        2 => any::<char>().prop_map(escaped),
    ];
    let half = (0xd800_u16..0xe000).prop_map(|unit| format!("\\u{unit:04X}"));
    let part = prop_oneof![200 => part, 1 => half];
    prop::collection::vec(part, 0..6).prop_map(|parts| format!("\"{}\"", parts.concat()))
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<i64>().prop_map(|value| value.to_string()),
        2 => any::<u64>().prop_map(|value| value.to_string()),
        3 => (-1000_i32..1000).prop_map(|value| value.to_string()),
        3 => any::<f64>().prop_filter("JSON has it", |value| value.is_finite()).prop_map(|value| format!("{value:e}")),
        2 => (-1e9_f64..1e9).prop_map(|value| value.to_string()),
        3 => "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?",
    ]
}

/// Valid JSON with white space, escapes and duplicate keys.
fn document() -> impl Strategy<Value = String> {
    let literal = prop::sample::select(vec!["true", "false", "null"]).prop_map(str::to_owned);
    let key = prop_oneof![3 => "\"[ab]\"", 1 => string()];
    prop_oneof![2 => string(), 3 => number(), 1 => literal].prop_recursive(6, 80, 8, move |value| {
        let item = (space(), value.clone(), space()).prop_map(|(a, value, b)| a + &value + &b);
        let entry = (space(), key.clone(), space(), space(), value, space())
            .prop_map(|(a, key, b, c, value, d)| format!("{a}{key}{b}:{c}{value}{d}"));
        prop_oneof![
            prop::collection::vec(item, 1..8).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(entry, 1..8).prop_map(|items| format!("{{{}}}", items.join(","))),
            space().prop_map(|space| format!("[{space}]")),
            space().prop_map(|space| format!("{{{space}}}")),
        ]
    })
}

#[derive(Clone, Debug)]
enum Damage {
    Replace(u8),
    Insert(u8),
    Remove,
    Cut,
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = || prop_oneof![any::<u8>(), prop::sample::select(b"[]{},:\"\\u0 -.e\n".to_vec())];
    prop_oneof![
        byte().prop_map(Damage::Replace),
        byte().prop_map(Damage::Insert),
        Just(Damage::Remove),
        Just(Damage::Cut),
    ]
}

fn damaged(text: &mut Vec<u8>, at: usize, damage: &Damage) {
    match damage {
        Damage::Replace(byte) => text[at] = *byte,
        Damage::Insert(byte) => text.insert(at, *byte),
        Damage::Remove => drop(text.remove(at)),
        Damage::Cut => text.truncate(at),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn valid_documents(document in document()) {
        prop_assert!(read(document.as_bytes(), &mut Builder::default()).is_ok(), "{}", document);
        compare(document.as_bytes());
    }

    #[test]
    fn damaged_documents(
        document in document(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), damage()), 1..3),
    ) {
        let mut text = document.into_bytes();
        for (at, damage) in damages {
            if !text.is_empty() {
                let at = at.index(text.len());
                damaged(&mut text, at, &damage);
            }
        }
        compare(&text);
    }

    #[test]
    fn numbers(number in number()) {
        compare(number.as_bytes());
    }

    #[test]
    fn characters_of_json(text in prop::collection::vec(prop::sample::select(b"[]{},:\"\\ \n0123456789-+.eEntrufalsdx\x80\xc3\xa9\xf0\x9f\x98\x80".to_vec()), 0..40)) {
        compare(&text);
    }

    #[test]
    fn tokens_of_json(tokens in prop::collection::vec(prop::sample::select(vec!["[", "]", "{", "}", ",", ":", "\"a\"", "\"\\ud800\"", "1", "-0", "1e999", "1.5", "true", "null", " ", "[]", "\"a\":"]), 0..16)) {
        compare(tokens.concat().as_bytes());
    }

    #[test]
    fn any_bytes(text in prop::collection::vec(any::<u8>(), 0..80)) {
        compare(&text);
    }
}
