//! Tests of the scan and of numbers. `__test__/body.spec.ts` compares their results with `JSON.parse`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use offloop_body::{
    AcceptedType, ElementType, MatchedType, MatchedValue, Nesting, NumberError, NumberLayout,
    PatternError, Patterns, PointerError, ScanError, Search, escaped_offset, fill_numbers, scan,
    unescaped,
};
use offloop_grammar::check;
use proptest::prelude::*;

fn patterns(pointers: &[&str]) -> Patterns {
    let pointers: Vec<_> = pointers.iter().map(|pointer| pointer.as_bytes().to_vec()).collect();
    Patterns::new(&pointers).unwrap()
}

fn search<'a>(patterns: &'a Patterns, accepted: &'a [AcceptedType]) -> Search<'a> {
    Search { patterns, accepted, longest_string: usize::MAX }
}

fn finds(text: &str, pointers: &[&str], accepted: AcceptedType) -> Vec<(String, String)> {
    let accepted = vec![accepted; pointers.len()];
    let patterns = patterns(pointers);
    let found = scan(text.as_bytes(), search(&patterns, &accepted), || Ok::<(), ()>(())).unwrap();
    let shown = |find: &MatchedValue| {
        (
            found.containers.pointer_of(text.as_bytes(), &find.place),
            text[find.range.clone()].to_owned(),
        )
    };
    found.matches.iter().map(shown).collect()
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
    assert_eq!(finds(text, &["/1"], AcceptedType::Numbers(Nesting::Flat)), [pair("/1", "[ 1 ]")]);
}

/// The layout of `text` by each nesting: flat, ragged, tensor.
#[test]
fn numbers_have_the_nesting_that_is_asked_for() {
    let flat = |count| Some(NumberLayout::Flat { count });
    let ragged = |counts: &[i32]| Some(NumberLayout::Ragged { counts: counts.to_vec() });
    let tensor = |shape: &[usize]| Some(NumberLayout::Tensor { shape: shape.to_vec() });
    for (text, layouts) in [
        ("[]", [flat(0), ragged(&[]), tensor(&[0])]),
        ("[1, 2,3]", [flat(3), None, tensor(&[3])]),
        ("[ [1,2 ] , [3] ]", [None, ragged(&[2, 1]), None]),
        ("[[1,2],[3,4]]", [None, ragged(&[2, 2]), tensor(&[2, 2])]),
        ("[[],[ ]]", [None, ragged(&[0, 0]), tensor(&[2, 0])]),
        ("[[[1],[2]],[[3],[4]],[[5],[6]]]", [None, None, tensor(&[3, 2, 1])]),
        ("[[[]]]", [None, None, tensor(&[1, 1, 0])]),
        ("[[],[[]]]", [None, None, None]),
        ("[[[]],[[1]]]", [None, None, None]),
        ("[1,[2]]", [None, None, None]),
        ("[[2],1]", [None, None, None]),
        ("[[],1]", [None, None, None]),
        ("[[1],[2,3],4]", [None, None, None]),
        ("[[1,null]]", [None, None, None]),
        ("[[1],{}]", [None, None, None]),
        ("[[{}]]", [None, None, None]),
        ("[\"1\"]", [None, None, None]),
        ("[[\"1\"]]", [None, None, None]),
        ("{}", [None, None, None]),
        ("1", [None, None, None]),
    ] {
        let nestings = [Nesting::Flat, Nesting::Ragged, Nesting::Tensor];
        for (nesting, layout) in nestings.into_iter().zip(layouts) {
            let patterns = patterns(&[""]);
            let accepted = [AcceptedType::Numbers(nesting)];
            let found = scan(text.as_bytes(), search(&patterns, &accepted), || Ok::<(), ()>(()));
            let [matched] = &found.unwrap().matches[..] else { panic!("{text}: one match") };
            let expected = layout.map_or(MatchedType::Mismatch, MatchedType::Numbers);
            assert_eq!(matched.value_type, expected, "{text} {nesting:?}");
        }
    }
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
        let stopped = scan(
            text.as_bytes(),
            search(&patterns, &[AcceptedType::Numbers(Nesting::Flat)]),
            || {
                polls += 1;
                if polls == last { Err(polls) } else { Ok(()) }
            },
        );
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
            let outcome = scan(&text, search(&patterns, &[]), || Ok::<(), ()>(()));
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
        let patterns = patterns(&["/**/a", "/0", "/1", "/*/*"]);
        let accepted = [
            AcceptedType::Text,
            AcceptedType::Numbers(Nesting::Flat),
            AcceptedType::Numbers(Nesting::Ragged),
            AcceptedType::Numbers(Nesting::Tensor),
        ];
        let search = Search { longest_string: 4, ..search(&patterns, &accepted) };
        match scan(&text, search, || Ok::<(), ()>(())) {
            Ok(findings) => {
                prop_assert_eq!(check(&text), Ok(()));
                prop_assert!(findings.long_strings.is_sorted_by_key(|range| range.start));
                for range in findings.long_strings {
                    prop_assert!(4 < range.len() && text[range.start] == b'"' && text[range.end - 1] == b'"');
                }
                prop_assert!(findings.matches.is_sorted_by_key(|find| find.range.start));
                for find in findings.matches {
                    prop_assert!(find.range.end <= text.len());
                    if let MatchedType::Numbers(layout) = find.value_type {
                        let mut out = vec![0; layout.count() * 8];
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
        for name in ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"] {
            let kind = ElementType::named(name).unwrap();
            let _ = fill_numbers(&text, kind, &mut vec![0; size], || Ok::<(), ()>(()));
        }
    }
}
