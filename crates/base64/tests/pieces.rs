//! Texts decoded and encoded in pieces, compared with the same text taken at once.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use offloop_base64::{
    Alphabet, DecodeError, EncodeError, Mode, PIECE, PieceDecoder, decode_into, encode_into,
    encode_pieces, encoded_len, max_decoded_len,
};
use proptest::prelude::*;

/// An error of the text or of the poll.
#[derive(Debug, PartialEq)]
enum PieceError {
    Decode(DecodeError),
    Encode(EncodeError),
    Stopped,
}

impl From<DecodeError> for PieceError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<EncodeError> for PieceError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

const MODES: [Mode; 3] = [Mode::Node, Mode::Forgiving, Mode::Strict];

fn at_once(text: &[u8], mode: Mode) -> Result<Vec<u8>, DecodeError> {
    let mut out = vec![0; max_decoded_len(text.len())];
    let len = decode_into(text, &mut out, mode, Alphabet::Standard)?;
    out.truncate(len);
    Ok(out)
}

fn in_parts(text: &[u8], part: usize, mode: Mode) -> Result<Vec<u8>, PieceError> {
    let mut out = vec![0; max_decoded_len(text.len())];
    let mut decoder = PieceDecoder::new(mode, Alphabet::Standard);
    for parts in text.chunks(2 * part) {
        decoder.decode(parts.chunks(part), &mut out, || Ok::<_, PieceError>(()))?;
    }
    let len = decoder.finish(&mut out)?;
    assert_eq!(decoder.written(), len);
    out.truncate(len);
    Ok(out)
}

/// Decodes text that stands behind a gap of `start` bytes.
fn in_place(text: &[u8], start: usize, mode: Mode) -> Result<Vec<u8>, PieceError> {
    let mut memory = vec![b'!'; start];
    memory.extend_from_slice(text);
    let range = start..memory.len();
    let decoder = PieceDecoder::new(mode, Alphabet::Standard);
    let len = decoder.decode_in_place(&mut memory, range, || Ok::<_, PieceError>(()))?;
    assert!(memory[len..].iter().all(|&byte| byte == 0), "bytes behind the result");
    memory.truncate(len);
    Ok(memory)
}

fn sample(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 + index / 257) as u8).collect()
}

fn encoded(bytes: &[u8]) -> Vec<u8> {
    let mut text = vec![0; encoded_len(bytes.len(), true).unwrap()];
    encode_into(bytes, &mut text, Alphabet::Standard, true).unwrap();
    text
}

proptest! {
    #[test]
    fn a_text_in_parts_becomes_what_it_becomes_at_once(
        text in prop::collection::vec(
            prop_oneof![12 => prop::sample::select(b"ABCDabcd0189+/".to_vec()), 1 => prop::sample::select(b"= \n-\xff".to_vec())],
            0..120,
        ),
        part in 1_usize..40,
        start in 0_usize..9,
    ) {
        for mode in MODES {
            let expected = at_once(&text, mode).map_err(PieceError::from);
            prop_assert_eq!(&in_parts(&text, part, mode), &expected);
            prop_assert_eq!(&in_place(&text, start, mode), &expected);
        }
    }
}

#[test]
fn texts_of_several_pieces_are_decoded_and_encoded_whole() {
    for len in [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 5] {
        let bytes = sample(len);
        let text = encoded(&bytes);
        let mut out = vec![0; text.len()];
        let mut polls = 0;
        let count = || {
            polls += 1;
            Ok::<_, PieceError>(())
        };
        let written = encode_pieces(&bytes, &mut out, (Alphabet::Standard, true), count).unwrap();
        assert_eq!(polls, len.div_ceil(PIECE));
        assert_eq!(written, text.len());
        assert!(out == text, "{len} bytes");
        assert!(in_parts(&text, text.len(), Mode::Strict).unwrap() == bytes, "{len} bytes");
        assert!(in_place(&text, 3, Mode::Strict).unwrap() == bytes, "{len} bytes");
    }
}

#[test]
fn offsets_of_errors_count_from_the_start_of_the_text() {
    let mut text = encoded(&sample(2 * PIECE));
    text[PIECE + 100] = b'!';
    let error = PieceError::Decode(DecodeError::InvalidCharacter { offset: PIECE + 100 });
    assert_eq!(in_parts(&text, PIECE / 2 + 1, Mode::Forgiving).unwrap_err(), error);
    let moved = in_place(&text, 5, Mode::Forgiving).unwrap_err();
    assert_eq!(moved, error);
}

#[test]
fn a_poll_stops_before_the_next_piece() {
    let bytes = sample(2 * PIECE);
    let text = encoded(&bytes);
    let stop_at = |last: usize| {
        let mut polls = 0;
        move || {
            polls += 1;
            if polls == last { Err(PieceError::Stopped) } else { Ok(()) }
        }
    };
    let mut out = vec![0; bytes.len()];
    let mut decoder = PieceDecoder::new(Mode::Strict, Alphabet::Standard);
    assert_eq!(decoder.decode([&text[..]], &mut out, stop_at(2)), Err(PieceError::Stopped));
    assert_eq!(decoder.written(), PIECE / 4 * 3);
    let mut out = vec![0; text.len()];
    let stopped = encode_pieces(&bytes, &mut out, (Alphabet::Standard, true), stop_at(2));
    assert_eq!(stopped, Err(PieceError::Stopped));
    assert!(out[PIECE / 3 * 4..].iter().all(|&byte| byte == 0));
}

#[test]
fn memory_that_is_too_small_is_an_error() {
    let text = encoded(&sample(30));
    let mut out = [0; 29];
    let small = DecodeError::OutputTooSmall;
    assert_eq!(decode_into(&text, &mut out, Mode::Strict, Alphabet::Standard), Err(small));
    let mut decoder = PieceDecoder::new(Mode::Strict, Alphabet::Standard);
    let outcome = decoder.decode([&text[..]], &mut out, || Ok::<_, PieceError>(()));
    assert_eq!(outcome, Err(PieceError::Decode(small)));
    let short =
        encode_pieces(&[1, 2, 3], &mut [0; 3], (Alphabet::Url, false), || Ok::<_, PieceError>(()));
    assert_eq!(short, Err(PieceError::Encode(EncodeError::OutputTooSmall)));
}
