//! Every kernel, compared with the scalar one and with a naive decoder.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

#[cfg(unix)]
mod fence;

#[cfg(unix)]
use fence::Fence;
use offloop_base64::{
    Alphabet, Base64Kernel, DecodeError, Decoder, Mode, encode_into_with, encoded_len,
    max_decoded_len,
};
use proptest::prelude::*;

const MODES: [Mode; 3] = [Mode::Node, Mode::Forgiving, Mode::Strict];
const ALPHABETS: [Alphabet; 2] = [Alphabet::Standard, Alphabet::Url];

fn decode(
    kernel: Base64Kernel,
    mode: Mode,
    alphabet: Alphabet,
    text: &[u8],
) -> Result<Vec<u8>, DecodeError> {
    decode_parts(kernel, mode, alphabet, &[text])
}

fn decode_parts(
    kernel: Base64Kernel,
    mode: Mode,
    alphabet: Alphabet,
    parts: &[&[u8]],
) -> Result<Vec<u8>, DecodeError> {
    let mut bytes = vec![0; max_decoded_len(parts.iter().map(|part| part.len()).sum())];
    let mut decoder = Decoder::with_kernel(mode, alphabet, kernel);
    let mut len = 0;
    for part in parts {
        len += decoder.decode(part, &mut bytes[len..])?;
    }
    len += decoder.finish(&mut bytes[len..])?;
    bytes.truncate(len);
    Ok(bytes)
}

fn decode_in_place(
    kernel: Base64Kernel,
    mode: Mode,
    alphabet: Alphabet,
    text: &[u8],
    step: usize,
) -> Result<Vec<u8>, DecodeError> {
    let mut memory = text.to_vec();
    let mut decoder = Decoder::with_kernel(mode, alphabet, kernel);
    let (mut read, mut len) = (0, 0);
    while read < text.len() {
        let end = text.len().min(read + step);
        len += decoder.decode_in_place(&mut memory, read..end, len)?;
        read = end;
    }
    len += decoder.finish(&mut memory[len..])?;
    memory.truncate(len);
    Ok(memory)
}

fn encode(kernel: Base64Kernel, alphabet: Alphabet, padding: bool, bytes: &[u8]) -> Vec<u8> {
    let mut text = vec![0; encoded_len(bytes.len(), padding).unwrap()];
    let len = encode_into_with(kernel, bytes, &mut text, alphabet, padding).unwrap();
    assert_eq!(len, text.len());
    text
}

/// Decodes bit by bit, by the rules of the contract.
fn naive(mode: Mode, alphabet: Alphabet, text: &[u8]) -> Result<Vec<u8>, usize> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' if mode == Mode::Node || alphabet == Alphabet::Standard => Some(62),
        b'/' if mode == Mode::Node || alphabet == Alphabet::Standard => Some(63),
        b'-' if mode == Mode::Node || alphabet == Alphabet::Url => Some(62),
        b'_' if mode == Mode::Node || alphabet == Alphabet::Url => Some(63),
        _ => None,
    };
    let space = |byte: u8| matches!(byte, 9 | 10 | 12 | 13 | 32);
    let mut bits: Vec<bool> = Vec::new();
    let (mut latest, mut pads, mut ended) = (0, 0, false);
    for (offset, &byte) in text.iter().enumerate() {
        let partial = bits.len() % 24 / 6;
        if mode == Mode::Node {
            if byte == b'=' {
                break;
            }
        } else if space(byte) {
            continue;
        } else if byte == b'=' {
            let wanted = if ended { 0 } else { [0, 0, 2, 1][partial] };
            if pads == wanted {
                return Err(offset);
            }
            let excess = [0, 0, 4, 2][partial];
            if mode == Mode::Strict && bits[bits.len() - excess..].contains(&true) {
                return Err(latest);
            }
            pads += 1;
            ended |= pads == wanted;
            if ended {
                pads = 0;
            }
            continue;
        } else if value(byte).is_none() || 0 < pads || ended {
            return Err(offset);
        }
        if let Some(value) = value(byte) {
            bits.extend((0..6).rev().map(|bit| value >> bit & 1 == 1));
            latest = offset;
        }
    }
    let partial = bits.len() % 24 / 6;
    let complete = ended || partial == 0;
    if mode != Mode::Node && (0 < pads || (!complete && (mode == Mode::Strict || partial == 1))) {
        return Err(text.len());
    }
    Ok(bits
        .chunks_exact(8)
        .map(|bits| bits.iter().fold(0, |byte, &bit| byte << 1 | u8::from(bit)))
        .collect())
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

/// Inserts `end` behind every `len` characters of `text`.
fn lines(text: &[u8], len: usize, end: &[u8]) -> Vec<u8> {
    text.chunks(len).flat_map(|line| [line, end].concat()).collect()
}

#[test]
fn every_kernel_encodes_and_decodes_every_length() {
    for kernel in Base64Kernel::available() {
        for alphabet in ALPHABETS {
            for len in 0..=300 {
                let bytes = noise(len, len as u64 + 1);
                let text = encode(kernel, alphabet, true, &bytes);
                assert_eq!(
                    text,
                    encode(Base64Kernel::available().next().unwrap(), alphabet, true, &bytes)
                );
                for mode in MODES {
                    assert_eq!(
                        decode(kernel, mode, alphabet, &text).as_ref(),
                        Ok(&bytes),
                        "{kernel:?} {mode:?} {len}"
                    );
                }
                let bare = encode(kernel, alphabet, false, &bytes);
                assert_eq!(
                    bare,
                    text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(&text)
                );
                assert_eq!(decode(kernel, Mode::Forgiving, alphabet, &bare), Ok(bytes));
            }
        }
    }
}

#[test]
fn every_kernel_works_at_every_alignment() {
    /// Value of the bytes around the output.
    const GUARD: u8 = 0xa5;
    /// Bytes around the output: at least as many as a step of any kernel.
    const AROUND: usize = 64;
    for len in 0..=300 {
        let bytes = noise(len, 5);
        let clean = encode(Base64Kernel::best(), Alphabet::Standard, true, &bytes);
        for text in [lines(&clean, 19, b"\r\n"), clean] {
            let size = max_decoded_len(text.len());
            for kernel in Base64Kernel::available() {
                for offset in 0..AROUND {
                    // Decoding in place covers every distance between text and bytes.
                    let at = (offset * 37 + len) % AROUND;
                    let src = [&vec![b'*'; offset], &text[..]].concat();
                    let mut dst = vec![GUARD; at + size + AROUND];
                    let mut decoder =
                        Decoder::with_kernel(Mode::Strict, Alphabet::Standard, kernel);
                    let written = decoder.decode(&src[offset..], &mut dst[at..at + size]);
                    assert_eq!(written, Ok(len), "{kernel:?} {len} {offset}");
                    assert_eq!(dst[at..at + len], bytes, "{kernel:?} {len} {offset}");
                    assert_eq!(decoder.finish(&mut []), Ok(0));
                    dst.drain(at..at + size);
                    assert!(dst.iter().all(|&byte| byte == GUARD), "{kernel:?} {len} {offset}");
                }
            }
        }
    }
}

#[test]
fn every_kernel_encodes_at_every_alignment() {
    for len in 0..=300 {
        let bytes = noise(len, 6);
        let text = encode(Base64Kernel::available().next().unwrap(), Alphabet::Url, false, &bytes);
        for kernel in Base64Kernel::available() {
            for offset in 0..64 {
                let at = (offset * 37 + len) % 64;
                let src = [&vec![0; offset], &bytes[..]].concat();
                let mut dst = vec![b'*'; at + text.len() + 64];
                let room = &mut dst[at..at + text.len()];
                encode_into_with(kernel, &src[offset..], room, Alphabet::Url, false).unwrap();
                assert_eq!(room, text, "{kernel:?} {len} {offset}");
                dst.drain(at..at + text.len());
                assert!(dst.iter().all(|&byte| byte == b'*'), "{kernel:?} {len} {offset}");
            }
        }
    }
}

#[test]
fn a_foreign_byte_at_every_place_stops_every_kernel_there() {
    for kernel in Base64Kernel::available() {
        for len in [4, 8, 44, 64, 76, 256, 260, 300] {
            let text = vec![b'Q'; len];
            for offset in 0..len {
                for foreign in [0, b'*', b'=', b'-', 0x7f, 0x80, 0xc1, 0xff] {
                    let mut text = text.clone();
                    text[offset] = foreign;
                    let expected = naive(Mode::Forgiving, Alphabet::Standard, &text);
                    let actual = decode(kernel, Mode::Forgiving, Alphabet::Standard, &text);
                    assert_eq!(
                        actual.map_err(|error| error.offset().unwrap()),
                        expected,
                        "{kernel:?} {offset}/{len} {foreign}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_byte_value_means_the_same_to_every_kernel() {
    for kernel in Base64Kernel::available() {
        for alphabet in ALPHABETS {
            for mode in MODES {
                for byte in 0..=255 {
                    let mut text = vec![b'Q'; 128];
                    text[70] = byte;
                    let actual = decode(kernel, mode, alphabet, &text)
                        .map_err(|error| error.offset().unwrap());
                    assert_eq!(
                        actual,
                        naive(mode, alphabet, &text),
                        "{kernel:?} {mode:?} {alphabet:?} {byte}"
                    );
                }
            }
        }
    }
}

#[test]
fn all_short_texts_over_a_small_alphabet_agree_with_the_naive_decoder() {
    let characters = b"AB-/= *\n";
    for len in 0..=6_u32 {
        for mut index in 0..characters.len().pow(len) {
            let text: Vec<u8> = (0..len)
                .map(|_| {
                    let character = characters[index % characters.len()];
                    index /= characters.len();
                    character
                })
                .collect();
            for mode in MODES {
                for alphabet in ALPHABETS {
                    let actual = decode(Base64Kernel::best(), mode, alphabet, &text);
                    let actual = actual.map_err(|error| error.offset().unwrap());
                    assert_eq!(
                        actual,
                        naive(mode, alphabet, &text),
                        "{mode:?} {alphabet:?} {:?}",
                        text.escape_ascii().to_string()
                    );
                }
            }
        }
    }
}

#[test]
fn causes_and_places() {
    let error = |mode, text: &[u8]| {
        decode(Base64Kernel::best(), mode, Alphabet::Standard, text).unwrap_err()
    };
    assert_eq!(error(Mode::Forgiving, b"QUJD*UJD"), DecodeError::InvalidCharacter { offset: 4 });
    assert_eq!(error(Mode::Forgiving, b"QU-D"), DecodeError::InvalidCharacter { offset: 2 });
    assert_eq!(error(Mode::Forgiving, b"QQ==*"), DecodeError::InvalidCharacter { offset: 4 });
    assert_eq!(error(Mode::Forgiving, b"QQ==Q"), DecodeError::InvalidPadding { offset: 4 });
    assert_eq!(error(Mode::Forgiving, b"QUJD="), DecodeError::InvalidPadding { offset: 4 });
    assert_eq!(error(Mode::Forgiving, b"QQ="), DecodeError::MissingPadding { offset: 3 });
    assert_eq!(error(Mode::Forgiving, b"QUJDQ"), DecodeError::LoneCharacter { offset: 5 });
    assert_eq!(error(Mode::Strict, b"QQ"), DecodeError::MissingPadding { offset: 2 });
    assert_eq!(error(Mode::Strict, b"Q R =="), DecodeError::ExcessBits { offset: 2 });
    assert_eq!(error(Mode::Strict, b"QUF="), DecodeError::ExcessBits { offset: 2 });
}

#[test]
fn memory_that_is_too_small_is_refused_untouched() {
    let mut bytes = [7; 2];
    let mut decoder = Decoder::new(Mode::Strict, Alphabet::Standard);
    assert_eq!(decoder.decode(b"QUJD", &mut bytes), Err(DecodeError::OutputTooSmall));
    assert_eq!(decoder.decode_in_place(&mut bytes, 0..4, 0), Err(DecodeError::OutputTooSmall));
    assert_eq!(decoder.decode_in_place(&mut [0; 8], 2..6, 3), Err(DecodeError::OutputTooSmall));
    assert!(
        encode_into_with(Base64Kernel::best(), b"abc", &mut bytes, Alphabet::Standard, true)
            .is_err()
    );
    assert_eq!(bytes, [7; 2]);
    let mut decoder = Decoder::new(Mode::Forgiving, Alphabet::Standard);
    assert_eq!(decoder.decode(b"QUI", &mut [0; 2]), Ok(0));
    assert_eq!(decoder.finish(&mut [0; 1]), Err(DecodeError::OutputTooSmall));
}

#[test]
fn lengths_near_the_end_of_the_address_space_do_not_wrap() {
    assert_eq!(encoded_len(usize::MAX, true), None);
    assert_eq!(encoded_len(usize::MAX / 4 * 3 + 3, false), None);
    assert_eq!(max_decoded_len(usize::MAX), usize::MAX / 4 * 3 + 2);
}

/// Puts the end of the text before a page that cannot be read, and the end of the bytes before one that cannot be written.
#[cfg(unix)]
#[test]
fn nothing_outside_the_given_memory_is_touched() {
    let mut text = Fence::new();
    let mut bytes = Fence::new();
    for kernel in Base64Kernel::available() {
        for len in 0..=300 {
            let input = noise(len, 3);
            let encoded = encode(kernel, Alphabet::Standard, true, &input);
            for at_end in [true, false] {
                let src = text.slice(encoded.len(), at_end);
                src.copy_from_slice(&encoded);
                let dst = bytes.slice(max_decoded_len(encoded.len()), at_end);
                let mut decoder = Decoder::with_kernel(Mode::Strict, Alphabet::Standard, kernel);
                assert_eq!(decoder.decode(src, dst).map(|written| &dst[..written]), Ok(&input[..]));

                let src = bytes.slice(len, at_end);
                src.copy_from_slice(&input);
                let dst = text.slice(encoded.len(), at_end);
                encode_into_with(kernel, src, dst, Alphabet::Standard, true).unwrap();
                assert_eq!(dst, encoded);
            }
        }
    }
}

/// Generates clean text, and text at which kernels skip, stop, or leave the rest to the decoder.
#[cfg(unix)]
fn texts_of(len: usize, alphabet: Alphabet) -> Vec<Vec<u8>> {
    let clean = encode(Base64Kernel::best(), alphabet, true, &noise(len, 3));
    let with = |offset: usize, byte: u8| {
        let mut text = clean.clone();
        if let Some(place) = text.get_mut(offset) {
            *place = byte;
        }
        text
    };
    vec![
        lines(&clean, 19, b"\r\n"),
        lines(&clean, 76, b"\n"),
        lines(&clean, 13, b"*"),
        with(len / 2, b'*'),
        with(len, b'-'),
        with(clean.len().saturating_sub(1), b'/'),
        with(len / 3, b'='),
        [&clean[..], b" \t"].concat(),
        clean,
    ]
}

/// Covers runs of skipped characters of any length, also longer than a stage.
#[cfg(unix)]
#[test]
fn nothing_outside_is_touched_where_characters_are_skipped_or_wrong() {
    let (mut src, mut dst) = (Fence::new(), Fence::new());
    for len in (0..=300).chain([767, 768, 769, 1500, 2301, 2700]) {
        for alphabet in ALPHABETS {
            for (text, mode) in
                texts_of(len, alphabet).iter().flat_map(|text| MODES.map(|mode| (text, mode)))
            {
                let expected = naive(mode, alphabet, text);
                for (kernel, at_end) in
                    Base64Kernel::available().flat_map(|kernel| [(kernel, true), (kernel, false)])
                {
                    let src = src.slice(text.len(), at_end);
                    src.copy_from_slice(text);
                    let dst = dst.slice(max_decoded_len(text.len()), at_end);
                    let mut decoder = Decoder::with_kernel(mode, alphabet, kernel);
                    let result = decoder.decode(src, dst).and_then(|written| {
                        let rest = decoder.finish(&mut dst[written..])?;
                        Ok(&dst[..written + rest])
                    });
                    let result = result.map_err(|error| error.offset().unwrap());
                    assert_eq!(result, expected.as_deref().map_err(|&offset| offset));

                    let mut decoder = Decoder::with_kernel(mode, alphabet, kernel);
                    let result =
                        decoder.decode_in_place(src, 0..text.len(), 0).and_then(|written| {
                            let rest = decoder.finish(&mut src[written..])?;
                            Ok(&src[..written + rest])
                        });
                    let result = result.map_err(|error| error.offset().unwrap());
                    assert_eq!(result, expected.as_deref().map_err(|&offset| offset));
                }
            }
        }
    }
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let character = prop_oneof![
        60 => prop::sample::select(b"ABCDwxyz0189".to_vec()),
        4 => prop::sample::select(b"+/-_".to_vec()),
        2 => prop::sample::select(b" \n\r\t\x0c".to_vec()),
        1 => Just(b'='),
        1 => any::<u8>(),
    ];
    prop::collection::vec(character, 0..400)
}

/// Generates more characters than the stages of kernels that skip hold.
fn long_text() -> impl Strategy<Value = Vec<u8>> {
    let rare = prop::sample::select(b" \n=*-/\xc3".to_vec());
    let given = (
        1_usize..200,
        0_usize..9000,
        any::<u64>(),
        prop::collection::vec((any::<prop::sample::Index>(), rare), 0..3),
    );
    given.prop_map(|(line, len, seed, changes)| {
        let text = encode(Base64Kernel::best(), Alphabet::Standard, true, &noise(len, seed));
        let mut text = lines(&text, line, b"\r\n");
        for (index, byte) in changes {
            if !text.is_empty() {
                let index = index.index(text.len());
                text[index] = byte;
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_and_junk_of_any_length_decode_alike(text in long_text(), step in 1_usize..3000) {
        for mode in MODES {
            let expected = naive(mode, Alphabet::Standard, &text);
            for kernel in Base64Kernel::available() {
                let whole = decode(kernel, mode, Alphabet::Standard, &text);
                prop_assert_eq!(&decode_in_place(kernel, mode, Alphabet::Standard, &text, step), &whole);
                prop_assert_eq!(whole.map_err(|error| error.offset().unwrap()), expected.clone());
            }
        }
    }

    #[test]
    fn whatever_the_text_all_ways_agree(text in text(), cuts in prop::collection::vec(0_usize..400, 0..4), step in 1_usize..90) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.push(0);
        cuts.push(text.len());
        cuts.sort_unstable();
        let parts: Vec<&[u8]> = cuts.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect();
        for mode in MODES {
            for alphabet in ALPHABETS {
                let expected = naive(mode, alphabet, &text);
                for kernel in Base64Kernel::available() {
                    let whole = decode(kernel, mode, alphabet, &text);
                    prop_assert_eq!(&decode_parts(kernel, mode, alphabet, &parts), &whole);
                    prop_assert_eq!(&decode_in_place(kernel, mode, alphabet, &text, step), &whole);
                    prop_assert_eq!(whole.map_err(|error| error.offset().unwrap()), expected.clone());
                }
            }
        }
    }
}
