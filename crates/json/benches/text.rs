//! Measures each kernel on texts of each class, in warm memory, taking turns in one run.
//!
//! Prints GB/s of JSON for strings of 4096 characters, and nanoseconds for a short string.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark"
)]

use std::hint::black_box;
use std::time::Instant;

use offloop_json::Kernel;

const ROUNDS: usize = 41;
const LEN: usize = 4096;
/// The number of different texts of each class.
const TEXTS: usize = 16;
const SHORT_LENS: [usize; 7] = [0, 3, 8, 15, 30, 63, 100];

fn main() {
    let kernels: Vec<Kernel> = Kernel::available().collect();
    println!("GB/s of output, strings of {LEN} characters, median of {ROUNDS} rounds");
    heading(&kernels);
    for kind in KINDS {
        let texts: Vec<Vec<u8>> = (0..TEXTS).map(|seed| kind.text(LEN, seed as u64)).collect();
        report(&kind, &texts, &kernels, |bytes, _, nanos| bytes / nanos);
    }
    for len in SHORT_LENS {
        println!("\nns a string of {len} characters");
        heading(&kernels);
        for kind in KINDS {
            let texts: Vec<Vec<u8>> = (0..256).map(|seed| kind.text(len, seed)).collect();
            report(&kind, &texts, &kernels, |_, texts, nanos| nanos / texts);
        }
    }
}

fn heading(kernels: &[Kernel]) {
    print!("  {:34}", "");
    for kernel in kernels {
        print!("{:>16}", format!("{kernel:?}"));
    }
    println!();
}

/// Prints a row of the table. `figure` takes the bytes written, the number of texts and the nanoseconds of one round.
fn report(
    kind: &Kind,
    texts: &[Vec<u8>],
    kernels: &[Kernel],
    figure: impl Fn(f64, f64, f64) -> f64,
) {
    // A text has one unit more than its length where a pair ends it.
    let mut out = vec![0; Kernel::room_for(LEN + 1)];
    let expected = kind.write(kernels[0], &texts[0], &mut out);
    let expected = out[..expected].to_vec();
    let mut times = vec![Vec::with_capacity(ROUNDS); kernels.len()];
    let mut bytes = 0;
    let repeats = 400_000 / texts.iter().map(|text| text.len() + 50).sum::<usize>() + 1;
    for _ in 0..ROUNDS {
        for (&kernel, times) in kernels.iter().zip(&mut times) {
            let len = kind.write(kernel, &texts[0], &mut out);
            assert_eq!(out[..len], expected);
            let start = Instant::now();
            for _ in 0..repeats {
                bytes = 0;
                for text in texts {
                    bytes += kind.write(kernel, black_box(text), black_box(&mut out));
                }
            }
            times.push(start.elapsed().as_nanos() as f64 / repeats as f64);
        }
    }
    print!("  {:34}", kind.name);
    for times in &mut times {
        times.sort_unstable_by(f64::total_cmp);
        print!("{:>16.2}", figure(bytes as f64, texts.len() as f64, times[ROUNDS / 2]));
    }
    println!();
}

struct Kind {
    name: &'static str,
    wide: bool,
    escape: bool,
    unit: fn(random: u32) -> Piece,
}

/// One unit, or a surrogate pair.
type Piece = (u16, Option<u16>);

const KINDS: [Kind; 13] = [
    Kind { name: "Latin-1 clean", wide: false, escape: true, unit: |random| (ascii(random), None) },
    Kind {
        name: "Latin-1, an escape in 100",
        wide: false,
        escape: true,
        unit: |random| (if one_in(random, 100) { 0x0a } else { ascii(random) }, None),
    },
    Kind {
        name: "Latin-1, an escape in 30",
        wide: false,
        escape: true,
        unit: |random| (if one_in(random, 30) { escaped(random) } else { ascii(random) }, None),
    },
    Kind {
        name: "Latin-1, an escape in 8",
        wide: false,
        escape: true,
        unit: |random| (if one_in(random, 8) { escaped(random) } else { ascii(random) }, None),
    },
    Kind {
        name: "Latin-1, an accent in 8",
        wide: false,
        escape: true,
        unit: |random| (if one_in(random, 8) { 0xe9 } else { ascii(random) }, None),
    },
    Kind {
        name: "Latin-1, \\u001b in 60",
        wide: false,
        escape: true,
        unit: |random| (if one_in(random, 60) { 0x1b } else { ascii(random) }, None),
    },
    Kind { name: "UTF-16 CJK", wide: true, escape: true, unit: |random| (cjk(random), None) },
    Kind {
        name: "UTF-16 CJK, 15 % ASCII, lines",
        wide: true,
        escape: true,
        unit: |random| {
            if one_in(random, 30) {
                return (0x0a, None);
            }
            (if one_in(random / 30, 7) { ascii(random) } else { cjk(random) }, None)
        },
    },
    Kind {
        name: "UTF-16 CJK, emoji in 5",
        wide: true,
        escape: true,
        unit: |random| if one_in(random, 5) { emoji(random) } else { (cjk(random), None) },
    },
    Kind {
        name: "UTF-16 ASCII, emoji in 5",
        wide: true,
        escape: true,
        unit: |random| if one_in(random, 5) { emoji(random) } else { (ascii(random), None) },
    },
    Kind {
        name: "UTF-16 Cyrillic and spaces",
        wide: true,
        escape: true,
        unit: |random| {
            (if one_in(random, 6) { 0x20 } else { 0x430 + (random >> 8 & 0x1f) as u16 }, None)
        },
    },
    Kind {
        name: "UTF-16 ASCII, an escape in 30",
        wide: true,
        escape: true,
        unit: |random| {
            if one_in(random, 30) {
                return (escaped(random), None);
            }
            (if one_in(random / 30, 500) { cjk(random) } else { ascii(random) }, None)
        },
    },
    Kind {
        name: "UTF-16 CJK, 15 % ASCII, transcoded",
        wide: true,
        escape: false,
        unit: |random| (if one_in(random, 7) { ascii(random) } else { cjk(random) }, None),
    },
];

fn one_in(random: u32, count: u32) -> bool {
    random.is_multiple_of(count)
}

fn ascii(random: u32) -> u16 {
    u16::from(b'a') + (random >> 20) as u16 % 26
}

fn escaped(random: u32) -> u16 {
    u16::from(b"\"\\\n\n"[(random >> 20) as usize % 4])
}

fn cjk(random: u32) -> u16 {
    0x4e00 + (random >> 16 & 0xfff) as u16
}

fn emoji(random: u32) -> Piece {
    (0xd83d, Some(0xde00 + (random >> 20 & 0x3f) as u16))
}

impl Kind {
    fn text(&self, len: usize, seed: u64) -> Vec<u8> {
        let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut units = Vec::with_capacity(len + 1);
        while units.len() < len {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let (unit, second) = (self.unit)((state >> 32) as u32);
            units.push(unit);
            units.extend(second);
        }
        if self.wide {
            return units.into_iter().flat_map(u16::to_le_bytes).collect();
        }
        units.into_iter().map(|unit| unit as u8).collect()
    }

    #[inline]
    fn write(&self, kernel: Kernel, text: &[u8], out: &mut [u8]) -> usize {
        match (self.wide, self.escape) {
            (false, true) => kernel.escape_latin1(text, out),
            (false, false) => kernel.transcode_latin1(text, out),
            (true, true) => kernel.escape_utf16(text, out),
            (true, false) => kernel.transcode_utf16(text, out),
        }
        .unwrap()
    }
}
