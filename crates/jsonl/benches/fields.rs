//! Statistics of fields of a JSONL file of 200 MB, compared with simd-json as a peer. All ways take turns in one run.
//!
//! The tape of simd-json has no offsets, so it cannot give the sizes of values. The peer makes a tape of a copy of each
//! row, and counts types in a tree of fields; "tape" is without the counting.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark"
)]

use std::fs::{self, File};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use offloop_jsonl::{
    ExamineError, RowBatches, RowCause, RowSlice, RowVisitor, ScanSettings, describe_rows,
};
use simd_json::{Buffers, Node, StaticNode};

const SIZE: usize = 200_000_000;
const ROUNDS: usize = 5;

fn main() {
    println!(
        "GB/s of a file of {} MB in the page cache, median of {ROUNDS} rounds",
        SIZE / 1_000_000
    );
    println!("{:<28}{:>10}{:>10}{:>12}{:>18}", "rows", "scan", "--stats", "tape", "tape and types");
    let word = "the model goes on to say what it has found, and why it is right; ";
    let text = word.repeat(30).replace(", ", ",\\n\\\"");
    let ids = (0..3000).map(|id: u32| (id * 7919 % 151_936).to_string()).collect::<Vec<_>>();
    let (ids, logprobs) = (ids.join(","), vec!["-0.0012345678"; 300].join(","));
    let message = format!(r#"{{"role": "user", "content": "{text}"}}"#);
    report("200 B, small values", |id| {
        format!(
            r#"{{"id": {id}, "at": 1763600000.25, "ok": true, "error": null, "name": "n{id}", "tags": ["a", "b"], "usage": {{"prompt": 117, "completion": {id}, "details": {{"cached": 0}}}}, "score": 0.125}}"#
        )
    });
    report("4 KB, text", |id| {
        format!(r#"{{"id": {id}, "messages": [{message}, {message}], "reward": 0.5}}"#)
    });
    report("20 KB, token ids", |id| format!(r#"{{"id": {id}, "ids": [{ids}], "text": "short"}}"#));
    report("25 KB, all of it", |id| {
        format!(
            r#"{{"id": {id}, "messages": [{message}], "ids": [{ids}], "logprobs": [{logprobs}]}}"#
        )
    });
}

fn report(name: &str, row: impl Fn(usize) -> String) {
    let mut rows = String::with_capacity(SIZE + (64 << 10));
    for id in 0.. {
        rows += &row(id);
        rows.push('\n');
        if SIZE <= rows.len() {
            break;
        }
    }
    let path = std::env::temp_dir().join(format!("offloop-fields-{}.jsonl", std::process::id()));
    fs::write(&path, &rows).unwrap();
    let mut times = [(); 4].map(|()| Vec::new());
    for _ in 0..ROUNDS {
        for (way, times) in times.iter_mut().enumerate() {
            let start = Instant::now();
            run(way, &path);
            times.push(start.elapsed().as_secs_f64());
        }
    }
    fs::remove_file(&path).unwrap();
    let rates = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        rows.len() as f64 / times[ROUNDS / 2] / 1e9
    });
    println!("{name:<28}{:>10.2}{:>10.2}{:>12.2}{:>18.2}", rates[0], rates[1], rates[2], rates[3]);
}

fn run(way: usize, path: &PathBuf) {
    if way < 2 {
        let settings = ScanSettings { path: path.clone(), has_stats: way == 1 };
        black_box(describe_rows(&settings, &|| Ok(()), |_, _, _| {}).unwrap());
        return;
    }
    let file = File::open(path).unwrap();
    let mut rows = RowBatches::new(0, file.metadata().unwrap().len(), 1 << 20);
    let mut peer = Peer::new(way == 3);
    while rows.batch(&file, &mut peer, || Ok::<(), ExamineError>(())).unwrap() {}
    black_box(peer.fields);
}

/// Visitor that makes a tape of each row.
struct Peer {
    counts_types: bool,
    copy: Vec<u8>,
    buffers: Buffers,
    fields: Vec<PeerField>,
}

#[derive(Default)]
struct PeerField {
    key: String,
    children: Vec<usize>,
    elements: Option<usize>,
    types: [u64; 6],
}

impl Peer {
    fn new(counts_types: bool) -> Self {
        let fields = vec![PeerField::default()];
        Self { counts_types, copy: Vec::new(), buffers: Buffers::new(1 << 20), fields }
    }

    fn count(&mut self, row: &[u8]) {
        self.copy.clear();
        self.copy.extend_from_slice(row);
        let mut copy = std::mem::take(&mut self.copy);
        let tape = simd_json::to_tape_with_buffers(&mut copy, &mut self.buffers).unwrap();
        if self.counts_types {
            let mut nodes = tape.0.iter();
            self.value(&mut nodes, 0);
        } else {
            black_box(&tape);
        }
        drop(tape);
        self.copy = copy;
    }

    fn value<'a>(&mut self, nodes: &mut impl Iterator<Item = &'a Node<'a>>, field: usize) {
        match *nodes.next().unwrap() {
            Node::Object { len, .. } => {
                self.fields[field].types[0] += 1;
                for place in 0..len {
                    let Some(Node::String(key)) = nodes.next() else { return };
                    let child = self.child(field, key, place);
                    self.value(nodes, child);
                }
            }
            Node::Array { len, .. } => {
                self.fields[field].types[1] += 1;
                let elements = self.elements(field);
                for _ in 0..len {
                    self.value(nodes, elements);
                }
            }
            Node::String(_) => self.fields[field].types[2] += 1,
            Node::Static(StaticNode::F64(_)) => self.fields[field].types[3] += 1,
            Node::Static(StaticNode::I64(_) | StaticNode::U64(_)) => {
                self.fields[field].types[4] += 1;
            }
            Node::Static(_) => self.fields[field].types[5] += 1,
        }
    }

    fn child(&mut self, field: usize, key: &str, place: usize) -> usize {
        let children = &self.fields[field].children;
        let is_right = |&child: &usize| self.fields[child].key == key;
        let guessed = children.get(place).copied().filter(is_right);
        guessed.or_else(|| children.iter().copied().find(is_right)).unwrap_or_else(|| {
            let child = self.fields.len();
            self.fields.push(PeerField { key: key.to_owned(), ..PeerField::default() });
            self.fields[field].children.push(child);
            child
        })
    }

    fn elements(&mut self, field: usize) -> usize {
        let next = self.fields.len();
        let elements = *self.fields[field].elements.get_or_insert(next);
        if elements == next {
            self.fields.push(PeerField::default());
        }
        elements
    }
}

impl RowVisitor for Peer {
    fn standard(&mut self, row: RowSlice<'_>) -> bool {
        self.count(row.bytes);
        true
    }

    fn other(&mut self, _: RowSlice<'_>) {}

    fn bad(&mut self, _: u64, _: u64, _: RowCause) {}
}
