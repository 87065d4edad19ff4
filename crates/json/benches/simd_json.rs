//! Compares with simd-json, as a peer: checking a text, and `MessagePack` of a RawJson.
//!
//! simd-json needs a private copy of the text, which counts. All ways take turns in one run. `tape_twin` is a prototype:
//! it reads the tape of simd-json and makes the bytes of `pack`, which is asserted.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_possible_wrap,
    clippy::doc_markdown,
    reason = "a benchmark"
)]

use std::hint::black_box;
use std::time::Instant;

use offloop_json::check;
use simd_json::Buffers;

#[path = "../tests/tape_twin/mod.rs"]
mod tape_twin;

use tape_twin::{Growing, RAW, pack_node, pack_words};

const ROUNDS: usize = 25;
/// Bytes of each document, about.
const SIZE: usize = 4 << 20;

fn main() {
    println!("GB/s of JSON, median of {ROUNDS} rounds, documents of about {} MiB", SIZE >> 20);
    println!(
        "{:<30}{:>8}{:>12}{:>8}{:>8}{:>12}{:>8}",
        "", "check", "simd-json", "÷", "pack", "simd-json", "÷"
    );
    let mut random = Random(88_172_645_463_325_252);
    for (name, item) in DOCUMENTS {
        let mut json = String::from("[");
        while json.len() < SIZE {
            json += &item(&mut random);
            json += ",";
        }
        json.pop();
        json += "]";
        report(name, json.as_bytes());
    }
}

fn report(name: &str, json: &[u8]) {
    let mut peer = Peer::new(json.len());
    let mut ours = Growing(vec![0; 2 * json.len()]);
    let len = packed(json, &mut ours);
    peer.pack(json);
    assert!(ours.0.get(..len).unwrap() == peer.packed, "{name}: the same bytes");
    let [check_time, tape_time, pack_time, peer_time] = medians([
        &mut || check(black_box(json)).unwrap(),
        &mut || assert!(0 < peer.nodes(black_box(json))),
        &mut || assert!(0 < packed(black_box(json), &mut ours)),
        &mut || Peer::new(json.len()).pack(black_box(json)),
    ]);
    let rate = |time: f64| json.len() as f64 / time / 1e9;
    println!(
        "{name:<30}{:>8.2}{:>12.2}{:>8.2}{:>8.2}{:>12.2}{:>8.2}",
        rate(check_time),
        rate(tape_time),
        check_time / tape_time,
        rate(pack_time),
        rate(peer_time),
        pack_time / peer_time,
    );
}

/// Runs the ways in turns. Returns the median seconds of each.
fn medians<const N: usize>(mut ways: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut times = [(); N].map(|()| Vec::new());
    for _ in 0..ROUNDS {
        for (way, times) in ways.iter_mut().zip(&mut times) {
            let start = Instant::now();
            way();
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times.get(ROUNDS / 2).copied().unwrap()
    })
}

// ───────────────────────────── ours ─────────────────────────────

/// Packs a tape that is one RawJson.
fn packed(json: &[u8], memory: &mut Growing) -> usize {
    pack_words(&[RAW, 0], json, memory)
}

// ───────────────────────────── simd-json ─────────────────────────────

/// Memory of simd-json.
struct Peer {
    copy: Vec<u8>,
    buffers: Buffers,
    packed: Vec<u8>,
}

impl Peer {
    fn new(len: usize) -> Self {
        Self {
            copy: Vec::with_capacity(len),
            buffers: Buffers::new(len),
            packed: Vec::with_capacity(2 * len),
        }
    }

    fn nodes(&mut self, json: &[u8]) -> usize {
        self.copy.clear();
        self.copy.extend_from_slice(json);
        simd_json::to_tape_with_buffers(&mut self.copy, &mut self.buffers).unwrap().0.len()
    }

    fn pack(&mut self, json: &[u8]) {
        self.copy.clear();
        self.copy.extend_from_slice(json);
        let tape = simd_json::to_tape_with_buffers(&mut self.copy, &mut self.buffers).unwrap();
        self.packed.clear();
        for node in &tape.0 {
            pack_node(node, &mut self.packed);
        }
    }
}

// ───────────────────────────── documents ─────────────────────────────

struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn float(&mut self) -> f64 {
        -(self.next(1 << 53) as f64) / (1_u64 << 49) as f64
    }

    fn text(&mut self, words: u64, end: &str) -> String {
        const WORDS: [&str; 8] =
            ["the", "model", "goes on", "to say", "what it", "has found", "because", "of that"];
        let word = |random: &mut Self| WORDS.get(random.next(8) as usize).copied().unwrap();
        (0..words).map(|_| word(self).to_owned() + end).collect()
    }
}

/// Makes an item of the array that is a document.
type ItemFn = fn(&mut Random) -> String;

const DOCUMENTS: [(&str, ItemFn); 9] = [
    ("text without escapes", |random| message(&random.text(1000, " "))),
    ("text, an escape every 60", |random| {
        message(&random.text(1000, " ").replace("because", "\\n"))
    }),
    ("text, an escape every 10", |random| message(&random.text(1000, "\\n"))),
    ("text, not ASCII", |random| message(&random.text(1000, " ä中 "))),
    ("token ids", |random| random.next(151_936).to_string()),
    ("floats of 17 digits", |random| random.float().to_string()),
    ("small objects", |random| {
        let (id, at, score) = (random.next(1 << 30), random.next(1000), random.float());
        format!(
            r#"{{"id":{id},"at":{at},"score":{score:.3},"ok":true,"error":null,"name":"n{at}"}}"#
        )
    }),
    ("small objects, spaces", |random| {
        let (id, at) = (random.next(1 << 30), random.next(1000));
        format!(
            "\n  {{\n    \"id\": {id},\n    \"at\": {at},\n    \"tags\": [\"a\", \"b\"],\n    \"to\": {{}}\n  }}"
        )
    }),
    ("duplicate keys", |random| {
        let (a, b) = (random.next(1 << 30), random.next(1000));
        format!(r#"{{"a":{a},"b":{b},"a":{b},"b":[{a}],"a":"x"}}"#)
    }),
];

fn message(text: &str) -> String {
    format!(r#"{{"role":"assistant","content":"{text}","tokens":1000}}"#)
}
