//! Formats of payloads, and the errors of malformed ones.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use offloop_experts::{
    Base85Error, Base85Reader, Declared, Dtype, Encoding, Hints, NpyError, Payload, PayloadData,
    PayloadError, PayloadHead, Shape, base85_len, head_size, is_object, payload, text,
};
use proptest::prelude::*;

fn npy(version: u8, dict: &str) -> Vec<u8> {
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    let len = (dict.len() + 1) as u32;
    if version == 1 {
        file.extend(&len.to_le_bytes()[..2]);
    } else {
        file.extend(len.to_le_bytes());
    }
    file.extend(dict.as_bytes());
    file.push(b'\n');
    file
}

fn dict(descr: &str, order: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}")
}

fn object(json: &[u8]) -> Result<offloop_experts::EncodedPayload, PayloadError> {
    offloop_experts::object(json, || Ok(()))
}

const NOTHING: Hints = Hints { layers: None, topk: None, dtype: None, start: None };

fn judge(file: &[u8], elements: usize) -> Result<Option<Payload>, PayloadError> {
    let head = file.get(..head_size(&file[..file.len().min(12)])?).unwrap_or(file);
    let bytes = PayloadHead { bytes: head, size: file.len() + elements, is_exact: true };
    payload(bytes, &Declared::default(), &NOTHING, None)
}

#[test]
fn files_of_every_version_and_dtype() {
    let kinds = [
        ("|u1", Dtype::Uint8),
        ("<u2", Dtype::Uint16),
        ("|i1", Dtype::Int8),
        ("<i2", Dtype::Int16),
        ("<i4", Dtype::Int32),
    ];
    for (descr, dtype) in kinds {
        for version in 1..=3 {
            let file = npy(version, &dict(descr, "False", "(2, 3, 4)"));
            let shape = Shape { rows: 2, layers: 3, topk: 4 };
            let payload = Payload { dtype, shape, start: 0, skipped: file.len() };
            assert_eq!(judge(&file, 24 * dtype.size()), Ok(Some(payload)));
            assert_eq!(payload.size(), 24 * dtype.size());
        }
    }
    let double = npy(1, r#"{"shape":(2L,1,2),"fortran_order":False,"descr":"|u1"}"#);
    assert!(judge(&double, 4).unwrap().is_some());
}

#[test]
fn files_of_something_else() {
    let error = |file: &[u8]| {
        let PayloadError::Npy(error) = judge(file, 0).unwrap_err() else { unreachable!() };
        error
    };
    let file = |descr, order, shape| npy(1, &dict(descr, order, shape));
    assert_eq!(error(&file("|u1", "True", "(2, 1, 2)")), NpyError::FortranOrder);
    assert_eq!(error(&file("|u1", "False", "(4,)")), NpyError::Rank { rank: 1 });
    assert_eq!(error(&file("|u1", "False", "()")), NpyError::Rank { rank: 0 });
    for descr in ["|O", ">u2", "<f4", "<i8", "<u4", "|V1", "u2", ""] {
        let dtype = NpyError::Dtype { descr: descr.to_owned() };
        assert_eq!(error(&file(descr, "False", "(2, 1, 2)")), dtype);
    }
    let record =
        "{'descr': [('a', '|u1'), (']', '<u2')], 'fortran_order': False, 'shape': (1, 1, 1)}";
    let descr = "[('a', '|u1'), (']', '<u2')]".to_owned();
    assert_eq!(error(&npy(1, record)), NpyError::Dtype { descr });
    assert_eq!(error(&npy(4, "{}")), NpyError::Version { major: 4 });
    for dict in [
        "",
        "{",
        "{}",
        "x",
        "{'descr': '|u1'}",
        "{'descr': '|u1', 'fortran_order': 1, 'shape': (1, 1, 1)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-1, 1, 1)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1.5, 1, 1)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999, 1, 1)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1)} x",
        "{'descr': '|u1' 'fortran_order': False, 'shape': (1, 1, 1)}",
        "{'other': 1}",
        "{'descr': [(', 'fortran_order': False}",
    ] {
        assert_eq!(error(&npy(1, dict)), NpyError::Malformed, "{dict}");
    }
    let whole = npy(2, &dict("|u1", "False", "(0, 1, 1)"));
    for len in 6..whole.len() {
        assert_eq!(error(&whole[..len]), NpyError::Truncated, "{len}");
    }
    let mut long = npy(2, "");
    long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(error(&long), NpyError::TooLong { .. }));
}

#[test]
fn shapes_are_believed_when_the_bytes_are_there() {
    let judge = |shape: &[f64], size, is_exact| {
        let declared = Declared { shape: Some(shape.to_vec()), dtype: None, start: Some(3.0) };
        payload(PayloadHead { bytes: &[], size, is_exact }, &declared, &NOTHING, Some(Dtype::Uint8))
    };
    assert_eq!(judge(&[2.0, 3.0, 4.0], 24, true).unwrap().unwrap().start, 3);
    assert_eq!(judge(&[2.0, 3.0, 4.0], 30, false), Ok(None));
    for size in [0, 23, 25] {
        let error = PayloadError::Size { is: size, needed: Some(24) };
        assert_eq!(judge(&[2.0, 3.0, 4.0], size, true), Err(error));
    }
    assert_eq!(
        judge(&[2.0, 3.0, 4.0], 23, false),
        Err(PayloadError::Size { is: 23, needed: Some(24) })
    );
    let most = 9_007_199_254_740_991.0;
    for shape in [[most, most, most], [0.0, most, most]] {
        assert_eq!(judge(&shape, 4, true), Err(PayloadError::Size { is: 4, needed: None }));
    }
    for shape in [
        &[1.0, 2.0][..],
        &[1.0; 4],
        &[],
        &[-1.0, 1.0, 1.0],
        &[1.5, 1.0, 1.0],
        &[f64::NAN, 1.0, 1.0],
        &[f64::INFINITY, 1.0, 1.0],
        &[most + 1.0, 1.0, 1.0],
    ] {
        assert_eq!(judge(shape, 4, true), Err(PayloadError::Shape), "{shape:?}");
    }
}

#[test]
fn what_is_told_and_what_is_hinted() {
    let judge = |declared: &Declared, hints: &Hints, size| {
        payload(
            PayloadHead { bytes: &[], size, is_exact: true },
            declared,
            hints,
            Some(Dtype::Int32),
        )
    };
    let declared = Declared { shape: Some(vec![1.0, 2.0, 2.0]), ..Declared::default() };
    let hints = Hints { layers: Some(2), topk: Some(2), dtype: Some(Dtype::Uint8), start: Some(5) };
    let found = judge(&declared, &hints, 4).unwrap().unwrap();
    assert_eq!((found.dtype, found.start), (Dtype::Uint8, 5));
    assert_eq!(judge(&Declared::default(), &hints, 12).unwrap().unwrap().shape.rows, 3);
    assert_eq!(
        judge(&Declared::default(), &hints, 13),
        Err(PayloadError::Rows { is: 13, row: Some(4) })
    );
    let layers = Hints { layers: Some(3), ..hints };
    assert_eq!(judge(&declared, &layers, 4), Err(PayloadError::Layers { declared: 2, hinted: 3 }));
    let topk = Hints { topk: Some(3), ..hints };
    assert_eq!(judge(&declared, &topk, 4), Err(PayloadError::Topk { declared: 2, hinted: 3 }));
    assert_eq!(judge(&Declared::default(), &NOTHING, 4), Err(PayloadError::Unknown));
    let start = |start| judge(&Declared { start: Some(start), ..declared.clone() }, &hints, 4);
    assert_eq!(start(7.0).unwrap().unwrap().start, 7);
    for wrong in [-1.0, 0.5, f64::NAN, f64::INFINITY, 9_007_199_254_740_992.0] {
        assert_eq!(start(wrong), Err(PayloadError::Start));
    }
    let none = Hints { layers: Some(0), topk: Some(2), ..NOTHING };
    assert_eq!(judge(&Declared::default(), &none, 0).unwrap().unwrap().shape.rows, 0);
    assert_eq!(
        judge(&Declared::default(), &none, 4),
        Err(PayloadError::Rows { is: 4, row: Some(0) })
    );
}

#[test]
fn texts_that_tell_their_shape() {
    let wire = text(b"nrlre1:int8:3x1x2:AAEC").unwrap();
    assert_eq!(wire.data.bytes(b"nrlre1:int8:3x1x2:AAEC"), b"AAEC");
    assert_eq!(wire.declared.shape, Some(vec![3.0, 1.0, 2.0]));
    assert_eq!(wire.declared.dtype, Some(Dtype::Int8));
    assert_eq!(text(b"nrlre2:int8:1x1x1:AA==").unwrap().declared, Declared::default());
    for (wrong, error) in [
        ("nrlre1:", PayloadError::Nrlre),
        ("nrlre1:int8:1x1x1", PayloadError::Nrlre),
        ("nrlre1:int9:1x1x1:AA==", PayloadError::Dtype { name: "int9".to_owned() }),
        ("nrlre1:int8:1x1xq:AA==", PayloadError::Shape),
        ("nrlre1:int8:1xx1:AA==", PayloadError::Shape),
        ("nrlre1:int8:1x-1x1:AA==", PayloadError::Shape),
        ("nrlre1:int8:1x1e3x1:AA==", PayloadError::Shape),
        ("nrlre1:int8:99999999999999999x1x1:AA==", PayloadError::Shape),
    ] {
        assert_eq!(text(wrong.as_bytes()), Err(error), "{wrong}");
    }
}

#[test]
fn texts_of_objects() {
    assert!(is_object(b" \n{") && !is_object(b"[{") && !is_object(b""));
    let wire = object(
        br#"{"data":"AQ\u0049D\/","shape":[1,1,3],"start":2,"dtype":"uint16","more":{"data":[1]}}"#,
    );
    let wire = wire.unwrap();
    assert_eq!(wire.data, PayloadData::Unescaped(b"AQID/".to_vec()));
    assert_eq!(wire.encoding, Encoding::Base64);
    let declared =
        Declared { shape: Some(vec![1.0, 1.0, 3.0]), dtype: Some(Dtype::Uint16), start: Some(2.0) };
    assert_eq!(wire.declared, declared);
    let nulls =
        object(br#"{"d\u0061ta":"","start":null,"dtype":null,"shape":null,"encoding":"base85"}"#)
            .unwrap();
    assert_eq!((nulls.declared, nulls.implied), (Declared::default(), Some(Dtype::Int32)));
    let twice =
        object(br#"{"data":1,"shape":7,"data":"a","shape":[1],"start":"x","start":0}"#).unwrap();
    assert_eq!(
        (twice.data, twice.declared.shape, twice.declared.start),
        (PayloadData::Range(28..29), Some(vec![1.0]), Some(0.0))
    );
    for (wrong, error) in [
        (r#"{"data":"A""#, PayloadError::Json { offset: 11 }),
        ("{}", PayloadError::Data),
        (r#"{"data":["A"]}"#, PayloadError::Data),
        (r#"{"x":{"data":"A"}}"#, PayloadError::Data),
        (r#"{"data":"A","shape":"1,1,1"}"#, PayloadError::Shape),
        (r#"{"data":"A","shape":[1,1,[1]]}"#, PayloadError::Shape),
        (r#"{"data":"A","shape":[1,1,true]}"#, PayloadError::Shape),
        (r#"{"data":"A","shape":[1,1,null]}"#, PayloadError::Shape),
        (r#"{"data":"A","shape":{"0":1}}"#, PayloadError::Shape),
        (r#"{"data":"A","start":"0"}"#, PayloadError::Start),
        (r#"{"data":"A","encoding":"raw"}"#, PayloadError::Encoding),
        (r#"{"data":"A","encoding":1}"#, PayloadError::Encoding),
    ] {
        assert_eq!(object(wrong.as_bytes()), Err(error), "{wrong}");
    }
    assert!(matches!(object(br#"{"data":"A","dtype":1}"#), Err(PayloadError::Dtype { .. })));
    for name in ["float32", "Uint8", "", "|u1"] {
        let json = format!(r#"{{"data":"A","dtype":"{name}"}}"#);
        let error = PayloadError::Dtype { name: name.to_owned() };
        assert_eq!(object(json.as_bytes()), Err(error));
    }
}

fn read85(text: &[u8], size: usize) -> Result<Vec<u8>, Base85Error> {
    let mut reader = Base85Reader::new(text);
    let mut bytes = Vec::new();
    loop {
        let mut piece = vec![0; size];
        let len = reader.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..len]);
        if len < size {
            return Ok(bytes);
        }
    }
}

const CHARACTERS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Encodes as Python's `b85encode` does: pads with zeros, then cuts as many characters off.
fn encode85(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for group in bytes.chunks(4) {
        let mut whole = [0; 4];
        whole[..group.len()].copy_from_slice(group);
        let mut value = u32::from_be_bytes(whole);
        let mut characters = [0; 5];
        for place in characters.iter_mut().rev() {
            *place = CHARACTERS[(value % 85) as usize];
            value /= 85;
        }
        text.extend_from_slice(&characters[..=group.len()]);
    }
    text
}

proptest! {
    #[test]
    fn base85_in_pieces_of_any_size(bytes in prop::collection::vec(any::<u8>(), 0..200), size in 1_usize..30) {
        let text = encode85(&bytes);
        prop_assert_eq!(base85_len(text.len()), bytes.len());
        prop_assert_eq!(read85(&text, size).unwrap(), bytes);
    }

    #[test]
    fn no_header_of_a_file_ends_the_process(file in prop::collection::vec(any::<u8>(), 0..80), dict in "[{}()\\[\\]'\"a-z0-9,: L\\\\]{0,60}") {
        let _ = judge(&file, 0);
        let _ = judge(&npy(1, &dict), 0);
        let _ = object(dict.as_bytes());
        let _ = text(dict.as_bytes());
    }
}

#[test]
fn text_that_is_not_base85() {
    assert_eq!(read85(b"0123 ", 4), Err(Base85Error::InvalidCharacter { offset: 4 }));
    assert_eq!(read85(b"01234\"", 4), Err(Base85Error::LoneCharacter { offset: 6 }));
    assert_eq!(read85(b"01234,0", 4), Err(Base85Error::InvalidCharacter { offset: 5 }));
    assert_eq!(read85(b"01234~~~~~", 4), Err(Base85Error::Overflow { offset: 5 }));
    // `|NsC0` is the largest group that Python's b85decode accepts.
    assert_eq!(read85(b"|NsC0", 4).unwrap(), [0xff; 4]);
    assert_eq!(read85(b"|NsC1", 4), Err(Base85Error::Overflow { offset: 0 }));
}
