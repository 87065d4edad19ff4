//! Text read any number of bytes at a time, compared with the decoder that takes all of it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::convert::Infallible;

use offloop_base64::{
    Alphabet, Base64Reader, DecodeError, Decoder, Mode, decoded_len, encode_into, encoded_len,
    max_decoded_len, most_decoded,
};
use proptest::prelude::*;

fn decode(text: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = Decoder::new(Mode::Forgiving, Alphabet::Standard);
    let mut bytes = vec![0; max_decoded_len(text.len())];
    let mut len = decoder.decode(text, &mut bytes)?;
    len += decoder.finish(&mut bytes[len..])?;
    bytes.truncate(len);
    Ok(bytes)
}

/// Reads pieces of these sizes, in turn.
fn read(text: &[u8], sizes: &[usize]) -> Result<Vec<u8>, DecodeError> {
    let mut reader = Base64Reader::new(text, Mode::Forgiving, Alphabet::Standard);
    let mut bytes = Vec::new();
    for &size in sizes.iter().cycle() {
        let mut piece = vec![0; size];
        let len = reader.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..len]);
        if len < size {
            assert_eq!(reader.read(&mut [0; 9]), Ok(0), "the end is the end");
            break;
        }
    }
    Ok(bytes)
}

fn counted(text: &[u8]) -> usize {
    decoded_len(text, || Ok::<_, Infallible>(())).unwrap()
}

fn encode(bytes: &[u8], padding: bool) -> Vec<u8> {
    let mut text = vec![0; encoded_len(bytes.len(), padding).unwrap()];
    encode_into(bytes, &mut text, Alphabet::Standard, padding).unwrap();
    text
}

#[test]
fn every_length_in_pieces_of_every_size() {
    let bytes: Vec<u8> = (0..120).map(|index| (index * 37) as u8).collect();
    for len in 0..=bytes.len() {
        for padding in [true, false] {
            let text = encode(&bytes[..len], padding);
            assert_eq!(most_decoded(&text), len);
            assert_eq!(counted(&text), len);
            for size in 1..=len + 2 {
                assert_eq!(read(&text, &[size]).unwrap(), bytes[..len], "{len} by {size}");
            }
        }
    }
}

proptest! {
    #[test]
    fn whatever_the_text_is_the_reader_says_what_the_decoder_says(
        text in prop::collection::vec(
            prop_oneof![10 => prop::sample::select(b"ABCDabcd0189+/".to_vec()), 1 => prop::sample::select(b"= \n\r\t-\xff".to_vec())],
            0..200,
        ),
        sizes in prop::collection::vec(1_usize..40, 1..6),
    ) {
        prop_assert_eq!(read(&text, &sizes), decode(&text));
    }

    #[test]
    fn lengths_are_told_of_text_with_white_space(
        bytes in prop::collection::vec(any::<u8>(), 0..900),
        line in 1_usize..80,
        padding in any::<bool>(),
    ) {
        let lines: Vec<_> = encode(&bytes, padding).chunks(line).map(<[u8]>::to_vec).collect();
        let text = lines.join(&b"\r\n"[..]);
        prop_assert_eq!(counted(&text), bytes.len());
        prop_assert!(bytes.len() <= most_decoded(&text));
        prop_assert_eq!(read(&text, &[7, 64]).unwrap(), bytes);
    }
}
