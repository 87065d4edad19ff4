//! Measures `transcode`: nanoseconds for an element, GB/s of JSON. Run by `npm run bench -- kernels`.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    clippy::print_stdout,
    reason = "a benchmark"
)]

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

use offloop_json::{Kernel, Lexicon, Memory, Segment, Tag, Tape, transcode};

const ELEMENTS: usize = 1_000_000;
const ROUNDS: usize = 15;

struct Fixed(Vec<u8>);

impl Memory for Fixed {
    type Error = Infallible;

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn grow(&mut self, _len: usize, size: usize) -> Result<(), Infallible> {
        self.0.resize(size, 0);
        Ok(())
    }
}

fn word(tag: Tag, payload: usize) -> i32 {
    (payload as i32) << 4 | tag as i32
}

fn measure(name: &str, segment: Segment<'_>, lexicon: &Lexicon) {
    let segments = [segment];
    let tape = Tape { segments: &segments, longs: &[], lexicon, has_rows: false, first_long: 0 };
    let mut memory = Fixed(vec![0; 64 << 20]);
    let (mut best, mut len) = (f64::INFINITY, 0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        len = black_box(transcode(tape, Kernel::best(), &mut memory, || Ok(())).unwrap()).len;
        best = best.min(start.elapsed().as_secs_f64());
    }
    let (each, rate) = (best * 1e9 / ELEMENTS as f64, len as f64 / best / 1e9);
    println!("{name:<24} {each:>7.2} ns {rate:>7.2} GB/s");
}

fn main() {
    let lexicon = Lexicon::default();
    let key = lexicon.add("\"a\":").unwrap();
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };

    let ints: Vec<i32> = (0..ELEMENTS).map(|_| (random() % 1000) as i32).collect();
    let mut words = vec![word(Tag::Ints, ELEMENTS)];
    words.extend(&ints);
    measure("integers below 1000", Segment { words: &words, ..Segment::default() }, &lexicon);

    let ids: Vec<i32> = (0..ELEMENTS).map(|_| (random() % 151_936) as i32).collect();
    words.truncate(1);
    words.extend(&ids);
    measure("token ids", Segment { words: &words, ..Segment::default() }, &lexicon);

    let wide: Vec<i32> = (0..ELEMENTS).map(|_| random() as i32).collect();
    words.truncate(1);
    words.extend(&wide);
    measure("integers of 32 bits", Segment { words: &words, ..Segment::default() }, &lexicon);

    let doubles: Vec<f64> =
        (0..ELEMENTS).map(|_| (random() >> 11) as f64 / (1_u64 << 53) as f64 * 1e4).collect();
    let words = [word(Tag::Doubles, ELEMENTS)];
    measure(
        "doubles",
        Segment { words: &words, doubles: &doubles, ..Segment::default() },
        &lexicon,
    );

    let object =
        [word(Tag::Open, 1), word(Tag::Entry, key), word(Tag::Int, 7), word(Tag::Close, 1)];
    let words = object.repeat(ELEMENTS);
    measure("objects {\"a\":7}", Segment { words: &words, ..Segment::default() }, &lexicon);

    let words = vec![word(Tag::Rope, 12); ELEMENTS];
    let rope = vec![b'x'; 12 * ELEMENTS];
    let runs = [(12 * ELEMENTS as i32) << 1];
    let segment = Segment { words: &words, rope: &rope, runs: &runs, ..Segment::default() };
    measure("strings of 12", segment, &lexicon);
}
