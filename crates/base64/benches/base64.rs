//! Compares each kernel with a plain copy of the same text, in warm memory, in turn within one run. The ratio to the copy
//! counts; the absolute numbers depend on the machine.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use offloop_base64::{
    Alphabet, Base64Kernel, Decoder, Mode, encode_into_with, encoded_len, max_decoded_len,
};

const ROUNDS: usize = 41;

fn main() {
    for len in [1 << 10, 64 << 10, 1 << 20, 31_000_000] {
        compare(len / 4 * 4);
    }
}

/// Makes `len` characters of text.
fn compare(len: usize) {
    let bytes: Vec<u8> = (0..max_decoded_len(len))
        .map(|index| (index.wrapping_mul(0x9e37_79b1) >> 13) as u8)
        .collect();
    let mut text = vec![0; encoded_len(bytes.len(), true).unwrap()];
    encode_into_with(Base64Kernel::best(), &bytes, &mut text, Alphabet::Standard, true).unwrap();
    let lines: Vec<u8> = text.chunks(76).flat_map(|line| [line, b"\r\n"].concat()).collect();

    let mut copy = vec![0; text.len()];
    let mut out = vec![0; lines.len()];
    let mut cases: Vec<(String, Box<dyn FnMut() + '_>)> = Vec::new();
    cases.push((
        "memcpy".into(),
        Box::new(|| black_box(&mut copy).copy_from_slice(black_box(&text))),
    ));
    for kernel in Base64Kernel::available() {
        assert_eq!(decode(kernel, Mode::Strict, &text, &mut out), bytes.len());
        assert_eq!(out.get(..bytes.len()), Some(&bytes[..]));
        let (text, mut out) = (&text, out.clone());
        cases.push((
            format!("decode {kernel:?}"),
            Box::new(move || {
                decode(kernel, Mode::Forgiving, black_box(text), black_box(&mut out));
            }),
        ));
    }
    for kernel in Base64Kernel::available() {
        assert_eq!(decode(kernel, Mode::Forgiving, &lines, &mut out), bytes.len());
        let (lines, mut out) = (&lines, out.clone());
        cases.push((
            format!("decode lines of 76 {kernel:?}"),
            Box::new(move || {
                decode(kernel, Mode::Forgiving, black_box(lines), black_box(&mut out));
            }),
        ));
    }
    for kernel in Base64Kernel::available() {
        let (bytes, mut out) = (&bytes, text.clone());
        cases.push((
            format!("encode {kernel:?}"),
            Box::new(move || {
                encode_into_with(
                    kernel,
                    black_box(bytes),
                    black_box(&mut out),
                    Alphabet::Standard,
                    true,
                )
                .unwrap();
            }),
        ));
    }
    report(len, cases);
}

fn decode(kernel: Base64Kernel, mode: Mode, text: &[u8], out: &mut [u8]) -> usize {
    let mut decoder = Decoder::with_kernel(mode, Alphabet::Standard, kernel);
    let len = decoder.decode(text, out).unwrap();
    len + decoder.finish(&mut out[len..]).unwrap()
}

fn report(len: usize, mut cases: Vec<(String, Box<dyn FnMut() + '_>)>) {
    let repeats = (8_000_000 / len).max(1);
    let mut times = vec![Vec::with_capacity(ROUNDS); cases.len()];
    for _ in 0..ROUNDS {
        for ((_, case), times) in cases.iter_mut().zip(&mut times) {
            let start = Instant::now();
            for _ in 0..repeats {
                case();
            }
            times.push(start.elapsed() / repeats as u32);
        }
    }
    let medians: Vec<Duration> = times
        .iter_mut()
        .map(|times| {
            times.sort_unstable();
            times[ROUNDS / 2]
        })
        .collect();
    println!("{len} characters, median of {ROUNDS} rounds");
    for ((name, _), median) in cases.iter().zip(&medians) {
        let speed = len as f64 / median.as_nanos() as f64;
        let ratio = median.as_secs_f64() / medians[0].as_secs_f64();
        println!("  {name:38} {median:>12.2?} {speed:>7.1} GB/s {ratio:>7.2} x memcpy");
    }
}
