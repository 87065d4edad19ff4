//! Plans and fills of bodies, compared with a naive twin that knows what the body was made of.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use offloop_body::{
    BodyError, BodyPlan, CheckError, ElementType, FillTarget, FilledBody, LiftCause, LiftConfig,
    LiftError, LiftKind, Nesting, RestRules, RestTooLong,
};
use offloop_experts::Hints;
use proptest::prelude::*;

type Filled = Result<(BodyPlan, FilledBody, Vec<u8>, Vec<Vec<u8>>), BodyError<()>>;

fn kind(name: &str) -> LiftKind {
    LiftKind::named(name, Hints::default()).unwrap()
}

fn config(lifts: &[(&str, &str)], keeps_mismatches: bool) -> LiftConfig {
    config_with(lifts, RestRules { keeps_mismatches, ..RestRules::default() })
}

fn config_with(lifts: &[(&str, &str)], rules: RestRules) -> LiftConfig {
    let pointers: Vec<_> = lifts.iter().map(|(pointer, _)| pointer.as_bytes().to_vec()).collect();
    let kinds = lifts.iter().map(|(_, name)| kind(name)).collect();
    LiftConfig::new(&pointers, kinds, rules).unwrap()
}

fn plan(text: &[u8], config: &LiftConfig) -> Result<BodyPlan, BodyError<()>> {
    BodyPlan::new(text, config, false, || Ok(()))
}

/// Plans and fills memory in which every byte is dirty.
fn take_apart(text: &mut [u8], config: &LiftConfig, is_ours: bool) -> Filled {
    let plan = BodyPlan::new(text, config, is_ours, || Ok(()))?;
    let mut rest = vec![0xee; plan.rest_size()];
    let mut memories: Vec<_> = plan.sizes().iter().map(|&size| vec![0xee; size]).collect();
    let mut views: Vec<_> = memories.iter_mut().map(Vec::as_mut_slice).collect();
    let target = FillTarget { rest: &mut rest, memories: &mut views, replacements: None };
    let filled = plan.fill(text, target, || Ok(()))?;
    Ok((plan, filled, rest, memories))
}

fn describe(plan: &BodyPlan, text: &[u8]) -> String {
    plan.describe(text, || Ok::<(), ()>(())).unwrap()
}

fn lift_error(pointer: &str, offset: usize, cause: LiftCause) -> BodyError<()> {
    BodyError::Lift(LiftError { pointer: pointer.to_owned(), offset, cause })
}

#[test]
fn each_kind_goes_to_its_memory() {
    let large = "A".repeat(100_000);
    let text = format!(
        r#" {{"a":"QUJD","b":[1,2],"c":{{"x":"é"}},"d":"{large}","k\"":[3,{{"e":"Q\u0055I="}}],"n":null}} "#
    );
    let lifts = [
        ("/a", "base64"),
        ("/b", "int32"),
        ("/c", "raw"),
        ("/d", "base64"),
        ("/*/*/e", "base64"),
        ("/n", "raw"),
    ];
    let (plan, filled, rest, memories) =
        take_apart(&mut text.clone().into_bytes(), &config(&lifts, false), false).unwrap();
    assert_eq!(
        describe(&plan, text.as_bytes()),
        r#"[69,[40,75000],[0,"",1,"k\"",2,1],[[1,"a",0,0,0],[1,"b",1,0,8],[1,"c",2,0,16],[1,"d",3,1,0],[3,"e",4,0,32]]]"#
    );
    assert_eq!(
        String::from_utf8(rest).unwrap(),
        r#" {"a":null,"b":null,"c":null,"d":null,"k\"":[3,{"e":null}],"n":null} "#
    );
    assert!(filled.is_ascii);
    assert_eq!(filled.lengths, [3, 8, 10, 75_000, 2]);
    assert_eq!(filled.describe(), "[3,8,10,75000,2]");
    let numbers = [1_i32, 2].map(i32::to_ne_bytes).concat();
    let shared =
        [b"ABC\0\0\0\0\0", &*numbers, "{\"x\":\"é\"}\0\0\0\0\0\0".as_bytes(), b"AB\0\0\0\0\0\0"];
    assert_eq!(memories[0], shared.concat(), "gaps are clear");
    assert_eq!(memories[1], vec![0; 75_000]);
}

#[test]
fn experts_are_described_with_their_shape() {
    let text = br#"{"e":{"data":"AQIDBAUG","shape":[3,1,2],"dtype":"uint8","start":4}}"#;
    let (plan, filled, rest, memories) =
        take_apart(&mut text.to_vec(), &config(&[("/e", "experts")], false), false).unwrap();
    assert_eq!(describe(&plan, text), r#"[10,[8],[0,""],[[1,"e",0,0,0,[3,1,2],"uint8",4]]]"#);
    assert_eq!(filled.lengths, [6]);
    assert_eq!(memories, [[1, 2, 3, 4, 5, 6, 0, 0]]);
    assert_eq!(rest, br#"{"e":null}"#);
}

#[test]
fn invalid_experts_are_named_with_their_place() {
    let lifts = config(&[("/a/e", "experts")], false);
    let text = br#"{"a":{"e":"nrlre1:uint8:1x1"}}"#;
    let Err(BodyError::Lift(error)) = plan(text, &lifts) else { panic!("it is invalid") };
    assert_eq!((&*error.pointer, error.offset), ("/a/e", 10));
    assert!(error.to_string().starts_with(r#"the routed experts at "/a/e": "#), "{error}");
    // The data is read by the second step, which knows the character.
    let text = br#"{"a":{"e":"nrlre1:uint8:1x1x3:A*ID"}}"#;
    let Err(BodyError::Lift(error)) = take_apart(&mut text.to_vec(), &lifts, false) else {
        panic!("it is invalid")
    };
    let star = text.iter().position(|&byte| byte == b'*').unwrap();
    assert_eq!((&*error.pointer, error.offset), ("/a/e", star));
}

#[test]
fn errors_tell_pointer_and_byte() {
    let lifts =
        config(&[("/a", "base64"), ("/b", "uint8"), ("/k~1", "base64"), ("/e", "base64")], false);
    for (text, error) in [
        (r#"{"a":"#, BodyError::Json(CheckError { offset: 5 })),
        (r#"{"a":[1]}"#, lift_error("/a", 5, LiftCause::Mismatch)),
        (r#"{"a":"QUJD","b":[1,"2"]}"#, lift_error("/b", 16, LiftCause::Mismatch)),
        (r#"{"a":"QU*D"}"#, lift_error("/a", 8, LiftCause::Base64)),
        (r#"{"k\/":"QUJDR"}"#, lift_error("/k~1", 13, LiftCause::Base64)),
        (r#"{"e":"Q\u0055J*"}"#, lift_error("/e", 14, LiftCause::Base64)),
        (r#"{"b":[ 1, 256]}"#, lift_error("/b", 10, LiftCause::Number)),
    ] {
        let outcome = take_apart(&mut text.as_bytes().to_vec(), &lifts, false);
        assert_eq!(outcome.map(|_| ()), Err(error), "{text}");
    }
}

#[test]
fn a_mismatch_is_reported_before_what_is_wrong_inside_of_values() {
    let lifts = config(&[("/e", "experts"), ("/b", "int32")], false);
    let text = br#"{"e":"nrlre1:","b":"x"}"#;
    assert_eq!(plan(text, &lifts).map(|_| ()), Err(lift_error("/b", 19, LiftCause::Mismatch)));
}

#[test]
fn kept_mismatches_stay_in_the_rest() {
    let text = br#"{"a":[1],"b":[1]}"#;
    let lifts = config(&[("/a", "base64"), ("/b", "uint8")], true);
    let (_, filled, rest, _) = take_apart(&mut text.to_vec(), &lifts, false).unwrap();
    assert_eq!(rest, br#"{"a":[1],"b":null}"#);
    assert_eq!(filled.lengths, [1]);
}

#[test]
fn the_rest_is_ascii_where_only_lifted_values_are_not() {
    for (text, is_ascii) in [(r#"{"a":"é"}"#, true), (r#"{"a":"é","é":1}"#, false)] {
        let lifts = config(&[("/a", "raw")], false);
        let (_, filled, _, _) = take_apart(&mut text.as_bytes().to_vec(), &lifts, false).unwrap();
        assert_eq!(filled.is_ascii, is_ascii, "{text}");
    }
}

#[test]
fn the_largest_string_is_decoded_in_place_if_the_body_is_ours() {
    let [small, large] =
        [("Q", 1 << 20), ("QUJD", 1 << 19)].map(|(part, count)| part.repeat(count));
    let text = format!(r#"{{"a":"{small}","b":"{large}","c":"QUJD"}}"#);
    let lifts = config(&[("/*", "base64")], false);
    for is_ours in [false, true] {
        let mut body = text.clone().into_bytes();
        let (plan, filled, rest, memories) = take_apart(&mut body, &lifts, is_ours).unwrap();
        assert_eq!(filled.lengths, [3 << 18, 3 << 19, 3]);
        assert_eq!(rest, br#"{"a":null,"b":null,"c":null}"#);
        assert!(memories[0].starts_with(b"ABC"));
        let expected = b"ABC".repeat(1 << 19);
        if is_ours {
            assert_eq!(plan.sizes().len(), 2);
            assert!(describe(&plan, text.as_bytes()).contains(r#"[1,"b",0,2,0]"#));
            assert!(body.starts_with(&expected));
        } else {
            assert_eq!(memories[2], expected);
            assert_eq!(body, text.as_bytes());
        }
    }
}

#[test]
fn an_invalid_character_in_place_has_its_offset_in_the_body() {
    let mut body = format!(r#"{{"a":"{}*"}}"#, "QUJD".repeat(1 << 19)).into_bytes();
    let lifts = config(&[("/a", "base64")], false);
    let star = body.len() - 3;
    let outcome = take_apart(&mut body, &lifts, true);
    assert_eq!(outcome.map(|_| ()), Err(lift_error("/a", star, LiftCause::Base64)));
}

#[test]
fn every_poll_can_stop_the_work() {
    let large = "QUJD".repeat(1 << 19);
    let text = format!(r#"{{"a":"{large}","b":"{large}","c":[1,2,3],"d":{{"x":"{large}"}}}}"#);
    let text = text.into_bytes();
    let lifts = [("/a", "base64"), ("/b", "base64"), ("/c", "int32"), ("/d", "raw")];
    let lifts = config(&lifts, false);
    let plan = BodyPlan::new(&text, &lifts, true, || Ok::<(), ()>(())).unwrap();
    let fill = |mut left: usize| {
        let mut rest = vec![0; plan.rest_size()];
        let mut memories: Vec<_> = plan.sizes().iter().map(|&size| vec![0; size]).collect();
        let mut views: Vec<_> = memories.iter_mut().map(Vec::as_mut_slice).collect();
        let mut polls = 0;
        let target = FillTarget { rest: &mut rest, memories: &mut views, replacements: None };
        let filled = plan.fill(&mut text.clone(), target, || {
            polls += 1;
            left = left.wrapping_sub(1);
            if left == 0 { Err(()) } else { Ok(()) }
        });
        (filled.map(|_| ()), polls)
    };
    let (filled, polls) = fill(0);
    assert_eq!(filled, Ok(()));
    assert!(8 <= polls, "{polls} polls of six megabytes");
    for last in 1..=polls {
        assert_eq!(fill(last), (Err(BodyError::Stopped(())), last));
    }
}

#[test]
fn a_description_of_many_values_can_be_stopped() {
    let text = format!("[{}1]", "1,".repeat(9999)).into_bytes();
    let plan = plan(&text, &config(&[("/*", "raw")], false)).unwrap();
    let mut polls = 0;
    let stopped = plan.describe(&text, || {
        polls += 1;
        if polls == 3 { Err("stopped") } else { Ok(()) }
    });
    assert_eq!((stopped, polls), (Err("stopped"), 3));
}

/// A member of a body, and what it becomes.
#[derive(Clone, Debug)]
struct Member {
    kind: &'static str,
    json: String,
    bytes: Vec<u8>,
}

fn member() -> impl Strategy<Value = Member> {
    let raw =
        prop::sample::select(vec!["{\"a\":[1,\"]\"]}", "7", "\"\\\"\"", "[]", "true", "\"é\""]);
    prop_oneof![
        prop::collection::vec(any::<u16>(), 0..40).prop_map(|numbers| Member {
            kind: "uint16",
            json: format!("{numbers:?}"),
            bytes: numbers.iter().flat_map(|number| number.to_ne_bytes()).collect(),
        }),
        prop::collection::vec(-1e9..1e9_f64, 0..40).prop_map(|numbers| Member {
            kind: "float64",
            json: format!("{numbers:?}"),
            bytes: numbers.iter().flat_map(|number| number.to_ne_bytes()).collect(),
        }),
        (0..90_usize).prop_map(|count| Member {
            kind: "base64",
            json: format!("\"{}\"", "QU JD\\n".repeat(count)),
            bytes: b"ABC".repeat(count),
        }),
        raw.prop_map(|json| Member { kind: "raw", json: json.into(), bytes: json.into() }),
        (60_000..90_000_usize).prop_map(|count| Member {
            kind: "raw",
            json: format!("\"{}\"", "x".repeat(count)),
            bytes: format!("\"{}\"", "x".repeat(count)).into(),
        }),
    ]
}

proptest! {
    #[test]
    fn values_are_where_the_description_says(members in prop::collection::vec(member(), 0..12)) {
        let pointers: Vec<_> = (0..members.len()).map(|index| format!("/{index}/v")).collect();
        let lifts: Vec<_> =
            pointers.iter().zip(&members).map(|(pointer, member)| (&**pointer, member.kind)).collect();
        let with = |json: &dyn Fn(&Member) -> String| {
            let items: Vec<_> =
                members.iter().map(|member| format!("{{\"v\": {} }}", json(member))).collect();
            format!("[{}]", items.join(","))
        };
        let text = with(&|member| member.json.clone());
        let (plan, filled, rest, memories) =
            take_apart(&mut text.clone().into_bytes(), &config(&lifts, false), false).unwrap();
        prop_assert_eq!(String::from_utf8(rest).unwrap(), with(&|_| "null".to_owned()));
        let lengths: Vec<_> = members.iter().map(|member| member.bytes.len()).collect();
        prop_assert_eq!(&filled.lengths, &lengths);
        // `[restSize,[sizes],[0,"",1,index,…],[[container,"v",pattern,memory,start],…]]`
        let description = describe(&plan, text.as_bytes());
        let mut ends = vec![0; memories.len()];
        for (index, member) in members.iter().enumerate() {
            let before = format!("[{},\"v\",{index},", index + 2);
            let behind = description.split(&before).nth(1).unwrap();
            let mut numbers = behind.split(']').next().unwrap().split(',');
            let mut number = || numbers.next().unwrap().parse::<usize>().unwrap();
            let (memory, start) = (number(), number());
            prop_assert!(start % 8 == 0 && ends[memory] <= start, "aligned, and apart");
            let end = start + member.bytes.len();
            ends[memory] = end;
            prop_assert_eq!(&memories[memory][start..end], &*member.bytes);
        }
    }
}

#[test]
fn kinds_have_their_names() {
    for (name, element) in [
        ("int8", ElementType::Int8),
        ("uint8", ElementType::Uint8),
        ("int16", ElementType::Int16),
        ("uint16", ElementType::Uint16),
        ("int32", ElementType::Int32),
        ("uint32", ElementType::Uint32),
        ("float32", ElementType::Float32),
        ("float64", ElementType::Float64),
    ] {
        assert_eq!(kind(name), LiftKind::Numbers(Nesting::Flat, element));
        assert_eq!(kind(&format!("ragged:{name}")), LiftKind::Numbers(Nesting::Ragged, element));
        assert_eq!(kind(&format!("tensor:{name}")), LiftKind::Numbers(Nesting::Tensor, element));
        assert_eq!(kind(&format!("base64:{name}")), LiftKind::Base64Numbers(element));
    }
    for name in ["int64", "raw:int8", "ragged:", "ragged", "tensor:int64", ":int8", ""] {
        assert_eq!(LiftKind::named(name, Hints::default()), None, "{name}");
    }
}

#[test]
fn nested_numbers_are_described_with_their_lengths() {
    let text = br#"{"r":[[1,2],[],[3]],"t":[[1],[2]],"b":"AQACAA=="}"#;
    let lifts = [("/r", "ragged:uint8"), ("/t", "tensor:int16"), ("/b", "base64:uint16")];
    let (plan, filled, rest, memories) =
        take_apart(&mut text.to_vec(), &config(&lifts, false), false).unwrap();
    assert_eq!(
        describe(&plan, text),
        r#"[28,[40],[0,""],[[1,"r",0,0,0,0,8,3],[1,"t",1,0,24,[2,1]],[1,"b",2,0,32]]]"#
    );
    assert_eq!(rest, br#"{"r":null,"t":null,"b":null}"#);
    assert_eq!(filled.lengths, [3, 4, 4]);
    let counts = [2_i32, 0, 1].map(i32::to_ne_bytes).concat();
    let numbers = [1_i16, 2].map(i16::to_ne_bytes).concat();
    let zeros = [0; 8];
    let shared = [
        &[1, 2, 3, 0, 0, 0, 0, 0],
        &*counts,
        &zeros[..4],
        &numbers,
        &zeros[..4],
        &numbers,
        &zeros[..4],
    ];
    assert_eq!(memories[0], shared.concat());
}

#[test]
fn base64_numbers_are_whole_elements() {
    let lifts = config(&[("/a", "base64:uint16")], false);
    let text = br#"{"a":"AQAC"}"#;
    let error = lift_error("/a", 5, LiftCause::Length(3));
    assert_eq!(take_apart(&mut text.to_vec(), &lifts, false).map(|_| ()), Err(error));
    // In place, where decoding overwrites the key.
    let mut text = format!(r#"{{"a":"{}"}}"#, "QUJD".repeat(400_001)).into_bytes();
    let error = lift_error("/a", 5, LiftCause::Length(1_200_003));
    assert_eq!(take_apart(&mut text, &lifts, true).map(|_| ()), Err(error));
}

#[test]
fn what_cannot_be_lifted_is_kept_whole() {
    let long = format!("{}*", "QUJD".repeat(10_000));
    let parts = [
        format!(r#""{long}""#),
        r#""QUJD""#.to_owned(),
        "[1,256]".to_owned(),
        "[[1],2]".to_owned(),
        "[[1],[-1]]".to_owned(),
        "[[1],[2,3]]".to_owned(),
        r#""nrlre1:uint8:1x1x3:A*ID""#.to_owned(),
        r#""nrlre1:uint8""#.to_owned(),
        r#""QUJDQQ==""#.to_owned(),
    ];
    let kinds = [
        "base64",
        "base64:uint16",
        "uint8",
        "ragged:uint8",
        "ragged:uint8",
        "tensor:uint8",
        "experts",
        "experts",
        "base64:float64",
    ];
    let text = format!("[{}]", parts.join(","));
    let pointers: Vec<_> = (0..kinds.len()).map(|index| format!("/{index}")).collect();
    let lifts: Vec<_> = pointers.iter().map(|pointer| &**pointer).zip(kinds).collect();
    let (_, filled, rest, _) =
        take_apart(&mut text.clone().into_bytes(), &config(&lifts, true), true).unwrap();
    assert!(rest == text.as_bytes());
    assert_eq!(filled.lengths, []);
}

#[test]
fn dropped_values_are_null_and_only_listed_where_that_is_asked_for() {
    let text = br#"{"a":{"b":"a long string"},"c":"a long string","d":null,"e":["a long string","short"]}"#;
    let rest_of = |lifts: &[(&str, &str)], longest_string| {
        let config = config_with(lifts, RestRules { longest_string, ..RestRules::default() });
        let (plan, _, rest, _) = take_apart(&mut text.to_vec(), &config, false).unwrap();
        (String::from_utf8(rest).unwrap(), describe(&plan, text))
    };
    let (rest, description) =
        rest_of(&[("/a", "drop"), ("/c", "drop:listed"), ("/d", "drop")], 100);
    assert_eq!(rest, r#"{"a":null,"c":null,"d":null,"e":["a long string","short"]}"#);
    assert_eq!(description, r#"[58,[0],[0,""],[[1,"c",1,0,0]]]"#);
    // A string inside of a lifted or a dropped value is not found twice.
    let (rest, description) = rest_of(&[("/a", "drop"), ("/e", "raw")], 14);
    assert_eq!(rest, r#"{"a":null,"c":null,"d":null,"e":null}"#);
    assert_eq!(description, r#"[37,[32],[0,""],[[1,"e",1,0,0]]]"#);
    let (rest, _) = rest_of(&[], 14);
    assert_eq!(rest, r#"{"a":{"b":null},"c":null,"d":null,"e":[null,"short"]}"#);
    let (rest, _) = rest_of(&[], 15);
    assert_eq!(rest.as_bytes(), text);
}

#[test]
fn replacements_stand_in_the_places_of_values() {
    let text = br#"["QUJD",7,"a long string","QQ=="]"#;
    let lifts = [("/0", "base64"), ("/1", "drop:listed"), ("/3", "base64")];
    let config = config_with(&lifts, RestRules { longest_string: 10, ..RestRules::default() });
    let plan = plan(text, &config).unwrap();
    let replacements = ["\"first\"", "\"中\"", "\"\""].map(str::to_owned);
    let size = plan.rest_size() - 12 + replacements.iter().map(String::len).sum::<usize>();
    let (mut rest, mut memory) = (vec![0xee; size], vec![0xee; plan.sizes()[0]]);
    let target = FillTarget {
        rest: &mut rest,
        memories: &mut [&mut memory],
        replacements: Some(&replacements),
    };
    let filled = plan.fill(&mut text.to_vec(), target, || Ok::<(), ()>(())).unwrap();
    assert_eq!(String::from_utf8(rest).unwrap(), r#"["first","中",null,""]"#);
    assert!(!filled.is_ascii);
}

#[test]
fn a_rest_is_measured_in_utf16() {
    for (text, units) in [(r#"["a","QUJD"]"#, 10), ("[\"é中😀\"]", 8), ("[\"QUJD\"]", 8)] {
        for (longest, is_fit) in [(units - 1, false), (units, true)] {
            let rules = RestRules { longest_rest: longest, ..RestRules::default() };
            let config = config_with(&[("/1", "base64")], rules);
            let planned = plan(text.as_bytes(), &config);
            let size = planned.as_ref().map_or_else(
                |error| match error {
                    BodyError::Rest(RestTooLong { size }) => *size,
                    other => panic!("{other:?}"),
                },
                BodyPlan::rest_size,
            );
            assert_eq!(planned.is_ok(), is_fit, "{text} {longest}");
            assert!(units <= size, "{text}");
        }
    }
}

#[test]
fn containers_of_values_that_are_replaced_are_left_out() {
    let text = br#"{"a":{"b":[{"x":1}]},"c":[{"x":2}],"a":{"d":{"x":3}},"x":4}"#;
    let (plan, ..) =
        take_apart(&mut text.to_vec(), &config(&[("/**/x", "raw")], false), false).unwrap();
    assert_eq!(
        describe(&plan, text),
        r#"[68,[24],[0,"",1,"c",2,0,1,"a",4,"d"],[[3,"x",0,0,0],[5,"x",0,0,8],[1,"x",0,0,16]]]"#
    );
    let (plan, ..) = take_apart(&mut b"7".to_vec(), &config(&[("", "raw")], false), false).unwrap();
    assert_eq!(describe(&plan, b"7"), r#"[4,[8],[],[[0,"",0,0,0]]]"#);
}

#[test]
fn many_deep_values_are_described_in_bytes_that_grow_with_the_text() {
    for (open, close, lifts) in
        [("{\"x\":1,\"a\":", "}", [("/**/x", "raw")]), ("[1,", "]", [("/**/0", "raw")])]
    {
        let len = |depth: usize| {
            let text = format!("{}0{}", open.repeat(depth), close.repeat(depth)).into_bytes();
            let plan = plan(&text, &config(&lifts, false)).unwrap();
            (describe(&plan, &text).len(), text.len())
        };
        let (description, text) = len(20_000);
        assert!(description < 10 * text, "{description} bytes of {text}");
    }
}

#[test]
fn kept_values_cost_nothing_for_their_depth() {
    let depth = 50_000;
    let text =
        format!("{}0{}", "{\"x\":\"*\",\"a\":".repeat(depth), "}".repeat(depth)).into_bytes();
    let plan = plan(&text, &config(&[("/**/x", "base64")], true)).unwrap();
    assert_eq!(plan.rest_size(), text.len());
    assert_eq!(describe(&plan, &text), format!("[{},[0],[],[]]", text.len()));
}
