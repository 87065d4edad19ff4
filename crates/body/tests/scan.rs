//! Tests of the scan and of numbers. `__test__/body.spec.ts` compares their results with `JSON.parse`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use offloop_body::{
    AcceptedType, ElementType, MatchedType, MatchedValue, NumberError, PatternError, Patterns,
    PointerError, ScanError, escaped_offset, fill_numbers, pointer_of, scan, unescaped,
};
use offloop_grammar::check;
use proptest::prelude::*;

fn patterns(pointers: &[&str]) -> Patterns {
    let pointers: Vec<_> = pointers.iter().map(|pointer| pointer.as_bytes().to_vec()).collect();
    Patterns::new(&pointers).unwrap()
}

fn finds(text: &str, pointers: &[&str], accepted: AcceptedType) -> Vec<(String, String)> {
    let accepted = vec![accepted; pointers.len()];
    let found = scan(text.as_bytes(), &patterns(pointers), &accepted, || Ok::<(), ()>(())).unwrap();
    let shown = |find: &MatchedValue| {
        (pointer_of(text.as_bytes(), &find.path), text[find.range.clone()].to_owned())
    };
    found.iter().map(shown).collect()
}

fn pair(pointer: &str, text: &str) -> (String, String) {
    (pointer.to_owned(), text.to_owned())
}

#[test]
fn values_are_found_where_they_stand() {
    let text = r#" {"a" : [1, {"b\u0063/~":"x"}, [ ]], "a" : {"d":true} } "#;
    assert_eq!(finds(text, &["/a/*/bc~1~0"], AcceptedType::Text), [], "it was replaced");
    assert_eq!(finds(text, &["/**/d"], AcceptedType::Any), [pair("/a/d", "true")]);
    assert_eq!(finds(text, &[""], AcceptedType::Any), [pair("", text.trim())]);
    let text = r#"[{"b\u0063/~":"x\""},[ 1 ]]"#;
    assert_eq!(finds(text, &["/*/bc~1~0"], AcceptedType::Text), [pair("/0/bc~1~0", r#""x\"""#)]);
    assert_eq!(finds(text, &["/1"], AcceptedType::Numbers), [pair("/1", "[ 1 ]")]);
}

#[test]
fn more_states_than_fit_a_word() {
    let pointers: Vec<String> = (0..100).map(|index| format!("/a/b/{index}/c")).collect();
    let pointers: Vec<&str> = pointers.iter().map(String::as_str).collect();
    let text = r#"{"a":{"b":{"7":{"c":1},"99":{"c":2},"100":{"c":3}}}}"#;
    let found = [pair("/a/b/7/c", "1"), pair("/a/b/99/c", "2")];
    assert_eq!(finds(text, &pointers, AcceptedType::Any), found);
}

#[test]
fn pointers_that_are_none() {
    for (pointer, error) in [
        ("a", PointerError::NoSlash.into()),
        ("/~", PointerError::Escape.into()),
        ("/a~2", PointerError::Escape.into()),
        ("/a/**", PatternError::DeepWildcard),
    ] {
        let pointers = [Vec::new(), pointer.as_bytes().to_vec()];
        assert_eq!(Patterns::new(&pointers).unwrap_err(), (1, error));
    }
}

#[test]
fn offsets_in_what_was_unescaped() {
    let text = br"ab\u00e9c\ud83d\ude00d\ud800e\n";
    let bytes = unescaped(text);
    for (byte, place) in [(b'a', 0), (b'c', 8), (b'd', 21), (b'e', 28), (b'\n', 29)] {
        let offset = bytes.iter().position(|&found| found == byte).unwrap();
        assert_eq!(escaped_offset(text, offset), place, "{}", char::from(byte));
    }
    assert_eq!(escaped_offset(text, bytes.len()), text.len());
}

#[test]
fn both_passes_can_be_stopped() {
    let text = format!("[\"{}\",[{}1]]", "x".repeat(1 << 20), "1,".repeat(1 << 20));
    let patterns = patterns(&["/1"]);
    for last in [1, 20, 60] {
        let mut polls = 0;
        let stopped = scan(text.as_bytes(), &patterns, &[AcceptedType::Numbers], || {
            polls += 1;
            if polls == last { Err(polls) } else { Ok(()) }
        });
        assert_eq!(stopped, Err(ScanError::Stopped(last)));
    }
    let numbers = text.get((1 << 20) + 4..text.len() - 1).unwrap();
    let mut polls = 0;
    let stopped =
        fill_numbers(numbers.as_bytes(), ElementType::Uint8, &mut vec![0; 1 << 20], || {
            polls += 1;
            if polls == 5 { Err(()) } else { Ok(()) }
        });
    assert_eq!(stopped, Err(NumberError::Stopped(())));
}

/// Puts a character at every place of the windows in which a string is read.
#[test]
fn characters_between_windows() {
    let patterns = patterns(&[]);
    for before in (32 << 10) - 8..(32 << 10) + 2 {
        for (character, is_whole) in [
            (&b"\xf0\x9f\x98\x80"[..], true),
            (b"\xe4\xb8\xad", true),
            (b"\xf0\x9f\x98", false),
            (b"\xed\xa0\x80", false),
        ] {
            let mut text = vec![b'"'];
            text.resize(before, b'x');
            text.extend_from_slice(character);
            text.extend_from_slice(&[b'y'; 100]);
            text.push(b'"');
            let outcome = scan(&text, &patterns, &[], || Ok::<(), ()>(()));
            assert_eq!(outcome.is_ok(), is_whole, "{before} {character:?}");
            if !is_whole {
                let error = offloop_body::CheckError { offset: before };
                assert_eq!(outcome, Err(ScanError::Json(error)));
                assert_eq!(check(&text), Err(error));
            }
        }
    }
}

proptest! {
    /// The scan accepts what the grammar accepts, and finds values inside of the text.
    #[test]
    fn any_bytes(text in prop::collection::vec(prop_oneof![
        any::<u8>(), prop::sample::select(br#"{}[]:,"\ 0123456789-.eEabtrufalsn"#.to_vec())
    ], 0..120)) {
        let patterns = patterns(&["/**/a", "/0", "/*/*"]);
        let accepted = [AcceptedType::Text, AcceptedType::Numbers, AcceptedType::Any];
        match scan(&text, &patterns, &accepted, || Ok::<(), ()>(())) {
            Ok(finds) => {
                prop_assert_eq!(check(&text), Ok(()));
                prop_assert!(finds.is_sorted_by_key(|find| find.range.start));
                for find in finds {
                    prop_assert!(find.range.end <= text.len());
                    if let MatchedType::Numbers { count } = find.value_type {
                        let mut out = vec![0; count * 8];
                        fill_numbers(&text[find.range], ElementType::Float64, &mut out, || Ok::<(), ()>(())).unwrap();
                    }
                }
            }
            Err(ScanError::Json(error)) => prop_assert_eq!(check(&text), Err(error)),
            Err(ScanError::Stopped(())) => prop_assert!(false, "nobody stops it"),
        }
    }

    #[test]
    fn numbers_are_read_as_std_reads_them(numbers in prop::collection::vec(any::<f64>().prop_filter("finite", |n| n.is_finite()), 0..20)) {
        let text = format!("{numbers:?}");
        let mut out = vec![0; numbers.len() * 8];
        fill_numbers(text.as_bytes(), ElementType::Float64, &mut out, || Ok::<(), ()>(())).unwrap();
        let expected: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        prop_assert_eq!(out, expected);
    }

    /// No text panics, also one with fewer numbers than elements, or with none.
    #[test]
    fn numbers_of_any_bytes(text in prop::collection::vec(any::<u8>(), 0..60), size in 0..40_usize) {
        for kind in [ElementType::Int32, ElementType::Uint8, ElementType::Uint16, ElementType::Float32, ElementType::Float64] {
            let _ = fill_numbers(&text, kind, &mut vec![0; size], || Ok::<(), ()>(()));
        }
    }
}
