//! Compares with simd-json, as a peer: checking a text, and `MessagePack` of a RawJson.
//!
//! simd-json needs a private copy of the text, which counts. All ways take turns in one run. `pack_tape` is a prototype:
//! it reads the tape of simd-json and makes the bytes of `pack`, which is asserted.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_possible_wrap,
    clippy::doc_markdown,
    reason = "a benchmark"
)]

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

use offloop_json::{
    Floats, JsText, Kernel, Lexicon, Memory, PackOptions, Segment, Tag, Tape, check, pack,
};
use simd_json::{Buffers, Node, StaticNode};

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
    let mut ours = Fixed(vec![0; 2 * json.len()]);
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

/// Packs a tape that is one RawJson.
fn packed(json: &[u8], memory: &mut Fixed) -> usize {
    let words = [3 << 4 | Tag::Extra as i32, 0];
    let segments = [Segment { words: &words, ..Segment::default() }];
    let longs = [JsText { bytes: json, is_wide: false }];
    let lexicon = Lexicon::default();
    let tape = Tape {
        segments: &segments,
        longs: &longs,
        lexicon: &lexicon,
        has_rows: false,
        first_long: 0,
    };
    let options =
        PackOptions { floats: Floats::Double, max_depth: usize::MAX, kernel: Kernel::best() };
    pack(tape, &options, memory, || Ok(())).unwrap()
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

fn pack_node(node: &Node<'_>, to: &mut Vec<u8>) {
    match *node {
        Node::String(text) => {
            head([0xa0, 0xda, 0xdb], (31, Some(0xd9)), text.len(), to);
            to.extend_from_slice(text.as_bytes());
        }
        Node::Object { len, .. } => head([0x80, 0xde, 0xdf], (15, None), len, to),
        Node::Array { len, .. } => head([0x90, 0xdc, 0xdd], (15, None), len, to),
        Node::Static(StaticNode::Null) => to.push(0xc0),
        Node::Static(StaticNode::Bool(value)) => to.push(if value { 0xc3 } else { 0xc2 }),
        Node::Static(StaticNode::I64(value)) => integer(value, to),
        Node::Static(StaticNode::U64(value)) => natural(value, to),
        Node::Static(StaticNode::F64(value)) => double(value, to),
    }
}

fn head(
    [small, two, four]: [u8; 3],
    (most, one): (usize, Option<u8>),
    len: usize,
    to: &mut Vec<u8>,
) {
    match (len, one) {
        _ if len <= most => to.push(small | len as u8),
        (..=0xff, Some(one)) => to.extend_from_slice(&[one, len as u8]),
        (..=0xffff, _) => tagged(two, (len as u16).to_be_bytes(), to),
        _ => tagged(four, (len as u32).to_be_bytes(), to),
    }
}

fn tagged<const N: usize>(tag: u8, bytes: [u8; N], to: &mut Vec<u8>) {
    to.push(tag);
    to.extend_from_slice(&bytes);
}

fn natural(value: u64, to: &mut Vec<u8>) {
    match value {
        0..0x80 => to.push(value as u8),
        0x80..=0xff => to.extend_from_slice(&[0xcc, value as u8]),
        0x100..=0xffff => tagged(0xcd, (value as u16).to_be_bytes(), to),
        0x1_0000..=0xffff_ffff => tagged(0xce, (value as u32).to_be_bytes(), to),
        _ => tagged(0xcf, value.to_be_bytes(), to),
    }
}

fn integer(value: i64, to: &mut Vec<u8>) {
    match value {
        0.. => natural(value.cast_unsigned(), to),
        -32..0 => to.push(value as u8),
        -0x80..-32 => tagged(0xd0, (value as i8).to_be_bytes(), to),
        -0x8000..-0x80 => tagged(0xd1, (value as i16).to_be_bytes(), to),
        -0x8000_0000..-0x8000 => tagged(0xd2, (value as i32).to_be_bytes(), to),
        _ => tagged(0xd3, value.to_be_bytes(), to),
    }
}

/// Writes a double as an integer if it is one. The documents have none beyond 64 bits.
fn double(value: f64, to: &mut Vec<u8>) {
    let whole = value as i64;
    if (whole as f64).to_bits() == value.to_bits() || value == 0.0 {
        integer(whole, to);
    } else {
        tagged(0xcb, value.to_be_bytes(), to);
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
