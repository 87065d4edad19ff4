//! Compares `MessagePack` of a RawJson with that made from the tape of simd-json, which counts elements before.

#![allow(clippy::unwrap_used, clippy::doc_markdown, reason = "a panic is how a test fails")]

use offloop_json::Tag;
use proptest::prelude::*;

mod tape_twin;

use tape_twin::{Growing, RAW, pack_words};

/// Packs `[1, RawJson, RawJson]` into memory that has `size` bytes at first.
fn packed(json: &[u8], size: usize) -> Vec<u8> {
    let words = [Tag::Open as i32, 1 << 4 | Tag::Int as i32, RAW, 0, RAW, 0, Tag::Close as i32];
    let mut memory = Growing(vec![0xee; size]);
    let len = pack_words(&words, json, &mut memory);
    memory.0.truncate(len);
    memory.0
}

/// Asserts that both make the same bytes. Skips what simd-json refuses.
fn compare(json: &[u8]) {
    let mut copy = json.to_vec();
    let Ok(tape) = simd_json::to_tape(&mut copy) else { return };
    let mut one = Vec::new();
    for node in &tape.0 {
        tape_twin::pack_node(node, &mut one);
    }
    let expected = [&[0x93, 1][..], &one, &one].concat();
    for size in [0, 100, 4096] {
        assert!(packed(json, size) == expected, "{}", json.escape_ascii());
    }
}

#[test]
fn containers_of_every_length_of_head() {
    for count in [0, 1, 15, 16, 17, 255, 256, 65_535, 65_536, 70_000] {
        let items = vec!["7"; count].join(",");
        let entries = vec![r#""k":[]"#; count].join(",");
        for json in [
            format!("[{items}]"),
            format!("{{{entries}}}"),
            format!(r#"{{"a":[{items}],"b":{{{entries}}},"c":[[{items}],"x",[{items}]]}}"#),
        ] {
            compare(json.as_bytes());
        }
    }
}

#[test]
fn long_containers_in_long_containers() {
    let mut json = "1".to_owned();
    for depth in 0..200 {
        let items = vec!["0"; depth % 20].join(",");
        json = if items.is_empty() {
            format!("[{json}]")
        } else {
            format!("[{items},{json},{items}]")
        };
    }
    compare(json.as_bytes());
    let many = vec![format!("[{}]", vec!["\"é\\n\""; 16].join(",")); 20_000].join(",");
    compare(format!("[{many}]").as_bytes());
}

fn document() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        "-?(0|[1-9][0-9]{0,22})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
        any::<i64>().prop_map(|value| value.to_string()),
        any::<u64>().prop_map(|value| value.to_string()),
        prop::sample::select(vec![
            "-0",
            "-0.0",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            "1e19",
            "9007199254740993"
        ])
        .prop_map(str::to_owned),
    ];
    let string =
        "\"([ !#-\\[\\]-~é中😀]|\\\\[\"\\\\/bfnrt]|\\\\u00[0-9a-f]{2}|\\\\ud83d\\\\ude00){0,300}\"";
    let scalar = prop_oneof![2 => number, 2 => string, 1 => Just("null".to_owned()), 1 => Just("true".to_owned())];
    scalar.prop_recursive(5, 200, 40, |value| {
        let entry = ("\"[ab\u{e9}]{0,2}\"", value.clone())
            .prop_map(|(key, value)| format!("{key} : {value}"));
        prop_oneof![
            prop::collection::vec(value, 0..40)
                .prop_map(|items| format!("[{}]", items.join(" , "))),
            prop::collection::vec(entry, 0..40)
                .prop_map(|items| format!("{{{}}}", items.join(","))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn documents(document in document()) {
        compare(document.as_bytes());
    }
}
