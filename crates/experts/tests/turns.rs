//! Lists of turns from their numbers to the sample, compared with a reference that goes element by element.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use offloop_base64::{Alphabet, DecodeError, encode_into, encoded_len};
use offloop_experts::{
    ConcatConfig, Dtype, ExpertsError, Fill, Hints, PayloadError, PayloadFormat, PlanError, Run,
    Shape, SourceRange, TURN_NUMBERS, TurnList,
};
use proptest::prelude::*;

type TestError = ExpertsError<&'static str>;

const ABSENT: f64 = f64::NAN;
const NO_HINTS: Hints = Hints { layers: None, topk: None, dtype: None, start: None };

fn base64(bytes: &[u8]) -> Vec<u8> {
    let mut text = vec![0; encoded_len(bytes.len(), true).unwrap()];
    encode_into(bytes, &mut text, Alphabet::Standard, true).unwrap();
    text
}

fn npy(rows: usize, elements: &[u8]) -> Vec<u8> {
    let dict = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows}, 1, 2), }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((dict.len() as u16).to_le_bytes());
    file.extend(dict.as_bytes());
    file.extend(elements);
    file
}

fn numbers(format: PayloadFormat) -> [f64; TURN_NUMBERS] {
    let mut numbers = [ABSENT; TURN_NUMBERS];
    numbers[0] = PayloadFormat::ALL.iter().position(|&each| each == format).unwrap() as f64;
    numbers
}

/// Numbers of an object with this shape.
fn shaped(format: PayloadFormat, shape: [usize; 3]) -> [f64; TURN_NUMBERS] {
    let mut numbers = numbers(format);
    numbers[1] = 3.0;
    for (number, dimension) in numbers[2..5].iter_mut().zip(shape) {
        *number = dimension as f64;
    }
    numbers
}

fn concat_config(tokens: usize) -> ConcatConfig {
    let fill = Fill::Value(0);
    ConcatConfig { tokens, gaps: fill, last_row: fill, later_wins: false, widens: true }
}

/// A list whose turns have one segment each.
fn list_of(
    turns: &[([f64; TURN_NUMBERS], Vec<u8>)],
    hints: Hints,
    is_chain: bool,
) -> (TurnList, Vec<Vec<u8>>) {
    let numbers: Vec<f64> = turns.iter().flat_map(|(numbers, _)| *numbers).collect();
    let mut list = TurnList::new(&numbers, hints, is_chain);
    for (index, (_, bytes)) in turns.iter().enumerate() {
        list.put(index, SourceRange { segment: index, range: 0..bytes.len() });
    }
    (list, turns.iter().map(|(_, bytes)| bytes.clone()).collect())
}

/// Plans, after a scan if one is needed, and decodes.
fn decode(
    list: &mut TurnList,
    segments: &[Vec<u8>],
    config: Option<&ConcatConfig>,
) -> Result<(Shape, Dtype, Vec<u8>), TestError> {
    if list.plan::<&str, _>(segments, config)?.is_none() {
        list.resolve(segments, || Ok(()))?;
    }
    let plan = list.plan::<&str, _>(segments, config)?.unwrap().clone();
    let mut out = vec![0xee; plan.size];
    list.fill(segments, &mut out, || Ok(()))?;
    Ok((plan.shape, plan.dtype, out))
}

fn decode_alone(
    numbers: [f64; TURN_NUMBERS],
    bytes: &[u8],
    hints: Hints,
) -> Result<(Shape, Dtype, Vec<u8>), TestError> {
    let (mut list, segments) = list_of(&[(numbers, bytes.to_vec())], hints, false);
    decode(&mut list, &segments, None)
}

const ELEMENTS: [u8; 6] = [1, 2, 3, 4, 5, 6];
const SHAPE: Shape = Shape { rows: 3, layers: 1, topk: 2 };

#[test]
fn a_payload_of_every_format_becomes_its_elements() {
    let file = npy(3, &ELEMENTS);
    let expected = (SHAPE, Dtype::Uint8, ELEMENTS.to_vec());
    let shape = [3, 1, 2];
    let object = |format, bytes: &[u8]| decode_alone(shaped(format, shape), bytes, NO_HINTS);
    let text = |format, bytes: &[u8]| decode_alone(numbers(format), bytes, NO_HINTS);
    assert_eq!(object(PayloadFormat::Raw, &ELEMENTS), Ok(expected.clone()));
    assert_eq!(object(PayloadFormat::Base64, &base64(&ELEMENTS)), Ok(expected.clone()));
    assert_eq!(text(PayloadFormat::File, &file), Ok(expected.clone()));
    assert_eq!(text(PayloadFormat::Text, &base64(&file)), Ok(expected.clone()));
    let data = String::from_utf8(base64(&ELEMENTS)).unwrap();
    let nrlre = format!("nrlre1:uint8:3x1x2:{data}");
    assert_eq!(text(PayloadFormat::Latin1, nrlre.as_bytes()), Ok(expected.clone()));
    let json = format!(r#"{{"data":"{data}","shape":[3,1,2]}}"#);
    assert_eq!(text(PayloadFormat::Text, json.as_bytes()), Ok(expected.clone()));
    let escaped = json.replace("AQID", "\\u0041QID");
    assert_eq!(text(PayloadFormat::Text, escaped.as_bytes()), Ok(expected));
    // `|NsC0` is 0xffffffff.
    let mut base85 = shaped(PayloadFormat::Base85, [1, 1, 1]);
    base85[5] = ABSENT;
    let shape = Shape { rows: 1, layers: 1, topk: 1 };
    let minus_one = (shape, Dtype::Int32, vec![0xff; 4]);
    assert_eq!(decode_alone(base85, b"|NsC0", NO_HINTS), Ok(minus_one));
}

#[test]
fn latin_1_beyond_ascii_is_read_as_utf_8() {
    let json = b"{\"note\":\"caf\xe9\",\"data\":\"AQID\",\"shape\":[3,1,1]}";
    let shape = Shape { rows: 3, layers: 1, topk: 1 };
    let expected = (shape, Dtype::Uint8, vec![1, 2, 3]);
    assert_eq!(decode_alone(numbers(PayloadFormat::Latin1), json, NO_HINTS), Ok(expected));
    let error = decode_alone(numbers(PayloadFormat::Text), json, NO_HINTS).unwrap_err();
    assert!(matches!(error, ExpertsError::Payload { error: PayloadError::Json { .. }, .. }));
}

#[test]
fn headers_resolve_what_needs_no_scan() {
    let object = br#"{"data":"AQID","shape":[3,1,1]}"#.to_vec();
    let padded = base64(&ELEMENTS[..4]);
    let lines = b"AQ\nID\nBA\nUG\n".to_vec();
    for (number, bytes, is_resolved) in [
        (shaped(PayloadFormat::Base64, [2, 1, 2]), padded, true),
        (shaped(PayloadFormat::Base64, [3, 1, 2]), lines, false),
        (numbers(PayloadFormat::Text), object, false),
        (numbers(PayloadFormat::File), npy(1, &[7, 8]), true),
    ] {
        let (mut list, segments) = list_of(&[(number, bytes.clone())], NO_HINTS, false);
        let plan = list.plan::<&str, _>(&segments, None).unwrap();
        assert_eq!(plan.is_some(), is_resolved, "{bytes:?}");
        let mut announced = TurnList::new(&number, NO_HINTS, false);
        announced.resolve_heads::<&str>([Some(&bytes[..])].into_iter()).unwrap();
        let plan = announced.plan::<&str, Vec<u8>>(&[], None).unwrap();
        assert_eq!(plan.is_some(), is_resolved, "{bytes:?}");
    }
}

#[test]
fn numbers_of_a_turn_are_checked() {
    let with = |index: usize, number: f64| {
        let mut numbers = shaped(PayloadFormat::Raw, [3, 1, 2]);
        numbers[index] = number;
        decode_alone(numbers, &ELEMENTS, NO_HINTS).map(|(_, dtype, _)| dtype)
    };
    let malformed = |error| Err(ExpertsError::Payload { turn: None, offset: None, error });
    assert_eq!(with(1, 2.0), malformed(PayloadError::Shape));
    assert_eq!(with(3, -1.0), malformed(PayloadError::Shape));
    assert_eq!(with(3, 0.5), malformed(PayloadError::Shape));
    assert_eq!(with(6, -1.0), malformed(PayloadError::Start));
    assert_eq!(with(7, -1.0), malformed(PayloadError::Start));
    assert_eq!(with(8, -1.0), malformed(PayloadError::Tokens));
    assert_eq!(with(5, 1.0), Ok(Dtype::Int8));
    assert_eq!(with(2, 4.0), malformed(PayloadError::Size { is: 6, needed: Some(8) }));
}

#[test]
fn the_start_of_the_caller_wins_over_the_declared_one() {
    let mut numbers = shaped(PayloadFormat::Raw, [3, 1, 2]);
    let start_of = |numbers: [f64; TURN_NUMBERS], hints| {
        let (mut list, segments) = list_of(&[(numbers, ELEMENTS.to_vec())], hints, false);
        list.plan::<&str, _>(&segments, None).unwrap().unwrap().start
    };
    assert_eq!(start_of(numbers, NO_HINTS), 0);
    assert_eq!(start_of(numbers, Hints { start: Some(3), ..NO_HINTS }), 3);
    numbers[6] = 5.0;
    assert_eq!(start_of(numbers, Hints { start: Some(3), ..NO_HINTS }), 5);
    numbers[7] = 7.0;
    assert_eq!(start_of(numbers, Hints { start: Some(3), ..NO_HINTS }), 7);
}

#[test]
fn failures_name_their_turn_and_the_offset_in_its_input() {
    let raw = (shaped(PayloadFormat::Raw, [3, 1, 2]), ELEMENTS.to_vec());
    let text = b"nrlre1:uint8:3x1x2:AQIDB?UG".to_vec();
    let turns = [raw.clone(), (numbers(PayloadFormat::Text), text)];
    let (mut list, segments) = list_of(&turns, NO_HINTS, true);
    let error = decode(&mut list, &segments, Some(&concat_config(9))).unwrap_err();
    let cause = PayloadError::Base64(DecodeError::InvalidCharacter { offset: 5 });
    let expected = ExpertsError::Payload { turn: Some(1), offset: Some(24), error: cause.clone() };
    assert_eq!(error, expected);
    assert_eq!(error.to_string(), format!("turn 1: {cause}"));
    let (mut alone, segments) = list_of(&turns[1..], NO_HINTS, false);
    let error = decode(&mut alone, &segments, None).unwrap_err();
    assert_eq!(error.to_string(), format!("routed experts: {cause}"));
    let mut misplaced = raw;
    misplaced.0[7] = 9.0;
    let (mut list, segments) = list_of(&[misplaced], NO_HINTS, true);
    let error = decode(&mut list, &segments, Some(&concat_config(9))).unwrap_err();
    assert_eq!(error, ExpertsError::Plan(PlanError::Start { turn: 0, start: 9, tokens: 9 }));
}

#[test]
fn a_poll_stops_the_scan_and_the_decoding() {
    let json = br#"{"data":"AQID","shape":[3,1,1]}"#.to_vec();
    let (mut list, segments) = list_of(&[(numbers(PayloadFormat::Text), json)], NO_HINTS, false);
    list.resolve(&segments, || Ok::<_, &str>(())).unwrap();
    list.plan::<&str, _>(&segments, None).unwrap().unwrap();
    let stopped = list.fill(&segments, &mut [0; 3], || Err("stopped"));
    assert_eq!(stopped, Err(ExpertsError::Stopped("stopped")));
    let lines = (shaped(PayloadFormat::Base64, [3, 1, 2]), b"AQ\nID\nBA\nUG\n".to_vec());
    let (mut list, segments) = list_of(&[lines], NO_HINTS, false);
    let stopped = list.resolve(&segments, || Err("stopped"));
    assert_eq!(stopped, Err(ExpertsError::Stopped("stopped")));
}

#[test]
fn lists_without_a_payload_or_a_plan_are_errors() {
    let nothing = [ABSENT; TURN_NUMBERS];
    let mut list = TurnList::new(&nothing, NO_HINTS, false);
    assert!(!list.has_experts(0) && !list.has_experts(1));
    let segments: [Vec<u8>; 0] = [];
    assert_eq!(list.plan::<&str, _>(&segments, None), Err(ExpertsError::NoTurn));
    let unplanned = list.fill(&segments, &mut [], || Ok::<_, &str>(()));
    assert_eq!(unplanned, Err(ExpertsError::NoPlan));
    let mut chain = TurnList::new(&nothing, NO_HINTS, true);
    let empty = chain.plan::<&str, _>(&segments, Some(&concat_config(2)));
    assert_eq!(empty, Err(ExpertsError::Plan(PlanError::Empty)));
    let hints = Hints { layers: Some(2), topk: Some(3), ..NO_HINTS };
    let mut chain = TurnList::new(&nothing, hints, true);
    let plan = chain.plan::<&str, _>(&segments, Some(&concat_config(2))).unwrap().unwrap();
    assert_eq!((plan.dtype, plan.size), (Dtype::Uint8, 12));
}

#[test]
fn turns_may_share_a_segment() {
    let numbers: Vec<f64> = [shaped(PayloadFormat::Raw, [1, 1, 2]); 3].concat();
    let mut list = TurnList::new(&numbers, NO_HINTS, true);
    for turn in 0..3 {
        let range = 2 * turn..2 * turn + 2;
        list.put(turn, SourceRange { segment: 0, range });
    }
    let config = ConcatConfig { later_wins: true, ..concat_config(1) };
    let (_, _, bytes) = decode(&mut list, &[ELEMENTS.to_vec()], Some(&config)).unwrap();
    assert_eq!(bytes, [5, 6]);
    let runs = vec![vec![], vec![], vec![Run { from: 0, to: 0, rows: 1 }]];
    let plan = list.plan::<&str, _>(&[ELEMENTS.to_vec()], Some(&config)).unwrap().unwrap();
    assert_eq!(plan.runs, runs);
}

/// A turn of rows of one element.
#[derive(Clone, Debug)]
struct GeneratedTurn {
    format: PayloadFormat,
    start: usize,
    rows: Vec<u8>,
}

fn generated_turn() -> impl Strategy<Value = GeneratedTurn> {
    let formats = [PayloadFormat::Raw, PayloadFormat::Base64, PayloadFormat::Text];
    let rows = prop::collection::vec(1_u8.., 1..20);
    (prop::sample::select(formats.to_vec()), 0_usize..20, rows)
        .prop_map(|(format, start, rows)| GeneratedTurn { format, start, rows })
}

fn written(turn: &GeneratedTurn) -> ([f64; TURN_NUMBERS], Vec<u8>) {
    let GeneratedTurn { format, start, rows } = turn;
    let mut numbers = shaped(*format, [rows.len(), 1, 1]);
    numbers[7] = *start as f64;
    let text = String::from_utf8(base64(rows)).unwrap();
    let bytes = match format {
        PayloadFormat::Raw => rows.clone(),
        PayloadFormat::Base64 => text.into_bytes(),
        _ => format!(r#"{{"shape":[{},1,1],"data":"{text}"}}"#, rows.len()).into_bytes(),
    };
    (numbers, bytes)
}

proptest! {
    #[test]
    fn a_sample_has_the_row_of_the_first_turn_that_covers_a_position(
        turns in prop::collection::vec(generated_turn(), 1..8),
        tokens in 20_usize..40,
    ) {
        let mut expected = vec![0; tokens];
        for GeneratedTurn { start, rows, .. } in &turns {
            for (position, row) in expected.iter_mut().skip(*start).zip(rows) {
                if *position == 0 {
                    *position = *row;
                }
            }
        }
        let written: Vec<_> = turns.iter().map(written).collect();
        let (mut list, segments) = list_of(&written, NO_HINTS, true);
        let (_, _, bytes) = decode(&mut list, &segments, Some(&concat_config(tokens))).unwrap();
        prop_assert_eq!(bytes, expected);
    }
}
