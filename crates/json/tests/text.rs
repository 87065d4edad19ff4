//! Compares every kernel with a twin written with std.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

#[cfg(unix)]
#[path = "../../base64/tests/fence/mod.rs"]
mod fence;

use std::fmt::Write;

#[cfg(unix)]
use fence::Fence;
use offloop_json::Kernel;
use proptest::prelude::*;

/// A unit of each class, and the ends of each range of units.
const UNITS: [u16; 32] = [
    b'a' as u16,
    b' ' as u16,
    b'/' as u16,
    b'"' as u16,
    b'\\' as u16,
    b'\n' as u16,
    0x00,
    0x07,
    0x08,
    0x09,
    0x0b,
    0x0c,
    0x0d,
    0x10,
    0x1c,
    0x1f,
    0x7f,
    0x80,
    0xa2,
    0xff,
    0x7ff,
    0x800,
    0x2028,
    0x4e2d,
    0xd7ff,
    0xd83d,
    0xdbff,
    0xdc00,
    0xde00,
    0xdfff,
    0xe000,
    0xffff,
];
/// A surrogate pair.
const PAIR: [u16; 2] = [0xd83d, 0xde00];

fn naive(units: &[u16], escape: bool) -> String {
    let mut text = String::new();
    for character in char::decode_utf16(units.iter().copied()) {
        match character {
            Ok(character) if !escape => text.push(character),
            Ok('"') => text.push_str("\\\""),
            Ok('\\') => text.push_str("\\\\"),
            Ok('\u{8}') => text.push_str("\\b"),
            Ok('\t') => text.push_str("\\t"),
            Ok('\n') => text.push_str("\\n"),
            Ok('\u{c}') => text.push_str("\\f"),
            Ok('\r') => text.push_str("\\r"),
            Ok(character @ ..'\u{20}') => {
                write!(text, "\\u{:04x}", u32::from(character)).unwrap();
            }
            Ok(character) => text.push(character),
            Err(lone) if escape => write!(text, "\\u{:x}", lone.unpaired_surrogate()).unwrap(),
            Err(_) => text.push(char::REPLACEMENT_CHARACTER),
        }
    }
    text
}

fn bytes_of(units: &[u16]) -> Vec<u8> {
    units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
}

fn latin1_of(units: &[u16]) -> Option<Vec<u8>> {
    units.iter().map(|&unit| u8::try_from(unit).ok()).collect()
}

/// Writes `text` to `out`; returns the written bytes.
fn write(kernel: Kernel, escape: bool, latin1: bool, text: &[u8], out: &mut [u8]) -> Vec<u8> {
    let len = match (escape, latin1) {
        (true, true) => kernel.escape_latin1(text, out),
        (false, true) => kernel.transcode_latin1(text, out),
        (true, false) => kernel.escape_utf16(text, out),
        (false, false) => kernel.transcode_utf16(text, out),
    };
    out[..len.unwrap()].to_vec()
}

/// Compares all kernels, with and without escapes, as UTF-16 and, where the units allow it, as Latin-1.
fn check(units: &[u16]) {
    check_for(units, &mut vec![0xaa; Kernel::room_for(units.len())]);
}

fn check_for(units: &[u16], out: &mut [u8]) {
    let wide = bytes_of(units);
    let narrow = latin1_of(units);
    for escape in [true, false] {
        let expected = naive(units, escape);
        for kernel in Kernel::available() {
            let actual = write(kernel, escape, false, &wide, out);
            assert!(actual == expected.as_bytes(), "{kernel:?} {escape} {units:x?}");
            if let Some(narrow) = &narrow {
                let actual = write(kernel, escape, true, narrow, out);
                assert!(actual == expected.as_bytes(), "{kernel:?} {escape} {narrow:x?}");
            }
        }
    }
}

fn noise(seed: u64) -> impl Iterator<Item = u32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    })
}

/// Returns a text in which `share` of 256 units are of any class and the others are `ground`.
fn mixed(len: usize, ground: u16, share: u32, seed: u64) -> Vec<u16> {
    let mut noise = noise(seed);
    let mut next = || noise.next().unwrap();
    let mut units = Vec::with_capacity(len);
    while units.len() < len {
        if share <= next() & 0xff {
            units.push(ground + (next() & 0xf) as u16);
            continue;
        }
        match next() % 4 {
            0 => units.extend(PAIR),
            1 => units.push(next() as u16),
            2 => units.push((next() & 0xff) as u16),
            _ => units.push(UNITS[next() as usize % UNITS.len()]),
        }
    }
    units.truncate(len);
    units
}

#[test]
fn every_unit_means_the_same_to_every_kernel() {
    let mut out = vec![0; Kernel::room_for(48)];
    for unit in 0..=u16::MAX {
        check_for(&[unit], &mut out);
        let mut units = [0x41; 48];
        units[unit as usize % 48] = unit;
        check_for(&units, &mut out);
        units = [0x4e00; 48];
        units[unit as usize % 48] = unit;
        check_for(&units, &mut out);
    }
}

#[test]
fn every_unit_alone_at_every_place_of_a_run() {
    let mut out = vec![0; Kernel::room_for(140)];
    for ground in [u16::from(b'a'), 0xe4, 0x416, 0x4e2d] {
        for unit in UNITS {
            for offset in 0..70 {
                let mut units = [ground; 140];
                units[offset] = unit;
                check_for(&units, &mut out);
                check_for(&units[..=offset], &mut out);
                check_for(&units[..70], &mut out);
            }
        }
    }
}

#[test]
fn every_pair_at_every_place() {
    let mut out = vec![0; Kernel::room_for(140)];
    for first in UNITS {
        for second in UNITS {
            check_for(&[first, second], &mut out);
            for ground in [u16::from(b'a'), 0x4e2d] {
                for offset in [0, 3, 6, 7, 14, 15, 16, 30, 31, 32, 62, 63] {
                    let mut units = [ground; 140];
                    units[offset] = first;
                    units[offset + 1] = second;
                    check_for(&units, &mut out);
                    check_for(&units[..offset + 2], &mut out);
                }
            }
        }
    }
}

#[test]
fn all_of_one_kind_in_every_length() {
    let mut out = vec![0; Kernel::room_for(200)];
    for unit in UNITS {
        for len in 0..=200 {
            check_for(&vec![unit; len], &mut out);
        }
    }
    for len in 0..=200 {
        let pairs: Vec<u16> = PAIR.into_iter().cycle().take(len).collect();
        check_for(&pairs, &mut out);
        check_for(&pairs[len.min(1)..], &mut out);
    }
}

#[test]
fn mixed_text_of_every_length() {
    for len in (0..300).chain([4095, 4096]) {
        for ground in [u16::from(b'a'), 0xe0, 0x410, 0x4e00] {
            for share in [4, 32, 128, 256] {
                check(&mixed(len, ground, share, len as u64));
            }
        }
    }
}

#[test]
fn text_and_memory_at_any_address() {
    let units = mixed(150, 0x4e00, 32, 5);
    let latin1: Vec<u8> = mixed(150, 0x61, 32, 6).iter().map(|&unit| unit as u8).collect();
    let of_latin1: Vec<u16> = latin1.iter().map(|&character| u16::from(character)).collect();
    for offset in 0..64 {
        let wide = [vec![0; offset], bytes_of(&units)].concat();
        let narrow = [vec![0; offset], latin1.clone()].concat();
        let mut out = vec![0; offset + Kernel::room_for(150)];
        for kernel in Kernel::available() {
            let actual = write(kernel, true, false, &wide[offset..], &mut out[offset..]);
            assert_eq!(actual, naive(&units, true).as_bytes());
            let actual = write(kernel, true, true, &narrow[offset..], &mut out[offset..]);
            assert_eq!(actual, naive(&of_latin1, true).as_bytes());
        }
    }
}

#[test]
fn memory_that_is_too_small_is_refused_untouched() {
    for kernel in Kernel::available() {
        let mut out = vec![7; Kernel::room_for(3) - 1];
        assert_eq!(kernel.escape_latin1(b"abc", &mut out), None);
        assert_eq!(kernel.transcode_latin1(b"abc", &mut out), None);
        assert_eq!(kernel.escape_utf16(b"a\0b\0c\0", &mut out), None);
        assert_eq!(kernel.transcode_utf16(b"a\0b\0c\0", &mut out), None);
        assert!(out.iter().all(|&byte| byte == 7));
    }
    assert_eq!(Kernel::room_for(usize::MAX), usize::MAX);
}

/// Puts the text before a page that cannot be read, and the room before one that cannot be written.
#[cfg(unix)]
#[test]
fn nothing_outside_the_given_memory_is_touched() {
    let mut text = Fence::new();
    let mut memory = Fence::new();
    let seeds = (0..=200).flat_map(|len| [4, 128, 256].map(|share| (len, share)));
    for (len, share) in seeds {
        for ground in [0x61, 0xe0, 0x4e00] {
            let units = mixed(len, ground, share, 3);
            let latin1: Vec<u8> = units.iter().map(|&unit| unit as u8).collect();
            let of_latin1: Vec<u16> = latin1.iter().map(|&byte| u16::from(byte)).collect();
            for kernel in Kernel::available() {
                for (at_end, escape) in [(true, true), (true, false), (false, true)] {
                    let out = memory.slice(Kernel::room_for(len), at_end);
                    let src = text.slice(2 * len, at_end);
                    src.copy_from_slice(&bytes_of(&units));
                    let actual = write(kernel, escape, false, src, out);
                    assert!(actual == naive(&units, escape).as_bytes());

                    let src = text.slice(len, at_end);
                    src.copy_from_slice(&latin1);
                    let actual = write(kernel, escape, true, src, out);
                    assert!(actual == naive(&of_latin1, escape).as_bytes());
                }
            }
        }
    }
}

/// Checks that the longest form leaves only the slack of the room.
#[cfg(unix)]
#[test]
fn the_longest_text_fits_its_room() {
    let mut memory = Fence::new();
    for len in 0..=200 {
        for units in [vec![1; len], vec![0xdc00; len], vec![0xffff; len], vec![0x22; len]] {
            check_for(&units, memory.slice(Kernel::room_for(len), true));
        }
    }
}

/// Returns texts with runs of one class, as real text has them.
fn text() -> impl Strategy<Value = Vec<u16>> {
    let run = prop_oneof![
        8 => prop::collection::vec(0x20..0x7f_u16, 0..60),
        4 => prop::collection::vec(0x80..0x800_u16, 0..30),
        4 => prop::collection::vec(0x800..0xd800_u16, 0..60),
        4 => prop::collection::vec((0xd800..0xdc00_u16, 0xdc00..0xe000_u16), 0..5)
            .prop_map(|pairs| pairs.into_iter().flat_map(|(high, low)| [high, low]).collect()),
        4 => prop::collection::vec(prop::sample::select(UNITS.to_vec()), 0..4),
        1 => prop::collection::vec(any::<u16>(), 0..20),
    ];
    prop::collection::vec(run, 0..12).prop_map(|runs| runs.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_text_all_kernels_agree(units in text()) {
        check(&units);
    }

    #[test]
    fn latin1_of_any_kind(text in prop::collection::vec(prop_oneof![8 => 0x20..0x7f_u16, 1 => 0..0x100_u16], 0..300)) {
        check(&text);
    }
}
