//! Checks the header, the answers and the output of small values.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use offloop_json::{Kernel, Lexicon, SmallEncoding, StreamLens, Tag, answer_small, print_small};

const OUT: i32 = 256;
const NO_ROOM: i32 = -1;

fn header(fields: [i32; 6]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_ne_bytes()).collect()
}

/// Prints `[7]` after JavaScript wrote `fields`; returns the answer and the output.
fn answer_of(header: &[u8]) -> (i32, Vec<u8>) {
    let words = [6, 7 << 4, 7_i32].map(i32::to_ne_bytes).concat();
    let mut memory = vec![0; words.len() + 8];
    let start = memory.as_ptr().align_offset(8);
    memory[start..start + words.len()].copy_from_slice(&words);
    let lexicon = Lexicon::default();
    let encoding = SmallEncoding {
        memory: &memory[start..start + words.len()],
        room: StreamLens { words: 3, ..StreamLens::default() },
        lexicon: &lexicon,
        kernel: Kernel::best(),
    };
    let mut out = vec![0xAA; OUT as usize];
    (print_small(&encoding, header, &mut out), out)
}

#[test]
fn the_json_is_where_the_header_says() {
    assert_eq!([Tag::Open as i32, Tag::Close as i32], [6, 7]);
    for offset in [0, 1, 100] {
        let (answer, out) = answer_of(&header([3, 0, 0, 0, 0, offset]));
        assert_eq!(answer, 3);
        let offset = offset as usize;
        assert_eq!(&out[offset..offset + 3], b"[7]");
        assert!(out[..offset].iter().all(|&byte| byte == 0xAA));
    }
}

#[test]
fn an_output_without_room_is_answered_so() {
    for offset in [OUT - 1, OUT, OUT + 1, i32::MAX] {
        let (answer, out) = answer_of(&header([3, 0, 0, 0, 0, offset]));
        assert_eq!(answer, NO_ROOM, "{offset}");
        assert!(out.iter().all(|&byte| byte == 0xAA));
    }
}

#[test]
fn an_invalid_header_fails() {
    for index in 0..6 {
        let mut fields = [3, 0, 0, 0, 0, 0];
        fields[index] = -1;
        assert_eq!(answer_of(&header(fields)).0, SmallEncoding::FAILED, "{index}");
    }
    for index in 0..5 {
        let mut fields = [3, 0, 0, 0, 0, 0];
        fields[index] += 1000;
        assert_eq!(answer_of(&header(fields)).0, SmallEncoding::FAILED, "{index}");
    }
    assert_eq!(answer_of(&header([3, 0, 0, 0, 0, 0])[..20]).0, SmallEncoding::FAILED);
    assert_eq!(answer_of(&[]).0, SmallEncoding::FAILED);
}

#[test]
fn the_answer_is_behind_the_arguments() {
    let mut header = header([1, 2, 3, 4, 5, 6]);
    header.extend([0; 8]);
    let mut expected = header.clone();
    expected[24..28].copy_from_slice(&(-2_i32).to_ne_bytes());
    answer_small(&mut header, -2);
    assert_eq!(header, expected);
    answer_small(&mut [0; 27], 5);
}
