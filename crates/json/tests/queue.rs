//! Compares segments that are printed one by one, in any order, with their whole tape.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_wrap,
    reason = "a test"
)]

use std::convert::Infallible;
use std::sync::Arc;

use offloop_json::{
    JsText, JsonLayout, Lexicon, LongPart, Malformed, Memory, PrintConfig, PrintFormat, Segment,
    SegmentCopy, SegmentPart, SegmentQueue, Tag, Tape, TapeMemory, TranscodeError, Workspace,
    print, print_texts,
};
use proptest::prelude::*;

struct Growing(Vec<u8>);

impl Memory for Growing {
    type Error = Infallible;

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn grow(&mut self, len: usize, size: usize) -> Result<(), Infallible> {
        self.0.truncate(len);
        self.0.resize(size, 0xBB);
        Ok(())
    }
}

struct Heap;

impl Workspace for Heap {
    type Memory = Growing;

    fn acquire(&self, size: usize) -> Result<Growing, Infallible> {
        Ok(Growing(vec![0xAA; size]))
    }

    fn poll(&self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Value {
    Int(i32),
    Ints(Vec<i32>),
    Double(f64),
    Text(String),
    Raw(String),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (-1000..1000).prop_map(Value::Int),
        prop::collection::vec(-9..9, 0..4).prop_map(Value::Ints),
        (-1e9..1e9).prop_map(Value::Double),
        "[a-z,]{0,5}".prop_map(Value::Text),
        "( |\n)?[1-9]( |\r|,)?".prop_filter("JSON", |raw| !raw.contains(',')).prop_map(Value::Raw),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec(("[a-c]{1,2}", inner), 0..6).prop_map(Value::Object),
        ]
    })
}

/// Words that must be in one segment, and what they draw from its streams.
#[derive(Clone, Debug, Default)]
struct Step {
    words: Vec<i32>,
    doubles: Vec<f64>,
    rope: String,
    long: Option<String>,
}

fn word(tag: Tag, payload: usize) -> i32 {
    (payload as i32) << 4 | tag as i32
}

fn step(words: &[i32]) -> Step {
    Step { words: words.to_vec(), ..Step::default() }
}

fn write(value: &Value, longs: &mut usize, steps: &mut Vec<Step>) {
    match value {
        Value::Int(int) => steps.push(step(&[int << 4])),
        // Elements of an array; no elements are no value.
        Value::Ints(ints) => {
            steps.push(step(&[word(Tag::Open, 0)]));
            let mut words = vec![word(Tag::Ints, ints.len())];
            words.extend(ints);
            steps.push(step(&words));
            steps.push(step(&[word(Tag::Close, 0)]));
        }
        Value::Double(double) => {
            steps.push(Step { doubles: vec![*double], ..step(&[word(Tag::Double, 0)]) });
        }
        Value::Text(text) => {
            steps.push(Step { rope: text.clone(), ..step(&[word(Tag::Rope, text.len())]) });
        }
        Value::Raw(raw) => {
            let words = [word(Tag::Extra, 3), *longs as i32];
            steps.push(Step { long: Some(raw.clone()), ..step(&words) });
            *longs += 1;
        }
        Value::Array(values) => {
            steps.push(step(&[word(Tag::Open, 0)]));
            for value in values {
                write(value, longs, steps);
            }
            steps.push(step(&[word(Tag::Close, 0)]));
        }
        Value::Object(entries) => {
            steps.push(step(&[word(Tag::Open, 1)]));
            for (key, value) in entries {
                let words = [word(Tag::Name, 2), key.len() as i32];
                steps.push(Step { rope: key.clone(), ..step(&words) });
                write(value, longs, steps);
            }
            steps.push(step(&[word(Tag::Close, 1)]));
        }
    }
}

/// The streams of one segment, and its long texts.
#[derive(Default)]
struct Streams {
    words: Vec<i32>,
    doubles: Vec<f64>,
    rope: String,
    runs: Vec<i32>,
    longs: Vec<String>,
}

impl Streams {
    fn of(steps: &[Step]) -> Self {
        let mut streams = Self::default();
        for step in steps {
            streams.words.extend(&step.words);
            streams.doubles.extend(&step.doubles);
            streams.rope.push_str(&step.rope);
            streams.runs.push((step.rope.len() as i32) << 1);
            streams.longs.extend(step.long.clone());
        }
        streams
    }

    fn view(&self) -> Segment<'_> {
        let (words, doubles, runs) = (&self.words, &self.doubles, &self.runs);
        Segment { words, doubles, bytes: &[], rope: self.rope.as_bytes(), runs }
    }
}

fn config(layout: JsonLayout<'_>) -> PrintConfig<'_> {
    PrintConfig { format: PrintFormat::Json(layout), has_newline: false, expected_size: 99 }
}

/// Prints the tape as a whole.
fn whole(parts: &[Streams], layout: JsonLayout<'_>, has_rows: bool) -> String {
    let segments = parts.iter().map(Streams::view).collect::<Vec<_>>();
    let longs = parts.iter().flat_map(|part| &part.longs);
    let longs =
        longs.map(|long| JsText { bytes: long.as_bytes(), is_wide: false }).collect::<Vec<_>>();
    let lexicon = Lexicon::default();
    let tape =
        Tape { segments: &segments, longs: &longs, first_long: 0, lexicon: &lexicon, has_rows };
    let mut out = Growing(Vec::new());
    let len = print(tape, &config(layout), &mut out, &Heap).unwrap();
    String::from_utf8(out.0[..len].to_vec()).unwrap()
}

type Queue = SegmentQueue<Vec<u8>, Growing>;

/// Adds every segment, in an order that `turn` rotates.
fn fill(parts: &[Streams], turn: usize) -> Queue {
    let queue = Queue::default();
    for index in 0..parts.len() {
        let index = (index + turn) % parts.len();
        let first = parts[..index].iter().map(|part| part.longs.len()).sum::<usize>();
        let end = first + parts[index].longs.len();
        let pinned = |long: &String| LongPart::Pinned(Arc::new(long.clone().into_bytes()));
        let mut memory = TapeMemory {
            segments: vec![SegmentPart::Copied(Arc::new(
                SegmentCopy::new(parts[index].view()).unwrap(),
            ))],
            longs: parts.iter().flat_map(|part| &part.longs).map(pinned).collect(),
        };
        queue.add(index, memory.split_job(first..end, 10).unwrap()).unwrap();
    }
    queue
}

/// Prints the segments one by one; returns the JSON, and its length before it was joined.
fn pieces(
    parts: &[Streams],
    turn: usize,
    layout: JsonLayout<'_>,
    has_rows: bool,
) -> (String, usize) {
    let queue = fill(parts, turn);
    assert_eq!(queue.print(&mut None, &Lexicon::default(), has_rows, &Heap), Ok(parts.len()));
    assert!((0..parts.len()).all(|index| queue.is_printed(index)));
    let len = queue.joined_len();
    let mut out = Growing(vec![0xCC; len]);
    let mut texts = queue.take_texts().unwrap();
    let written = print_texts(&mut texts, &config(layout), &mut out, &Heap).unwrap();
    (String::from_utf8(out.0[..written].to_vec()).unwrap(), len)
}

const LAYOUTS: [JsonLayout<'_>; 4] = [
    JsonLayout { sorts_keys: false, gap: None },
    JsonLayout { sorts_keys: true, gap: None },
    JsonLayout { sorts_keys: false, gap: Some(b" ") },
    JsonLayout { sorts_keys: true, gap: Some(b"\t") },
];

fn cut(steps: &[Step], cuts: &[usize]) -> Vec<Streams> {
    let mut ends = cuts.iter().map(|cut| cut % (steps.len() + 1)).collect::<Vec<_>>();
    ends.push(steps.len());
    ends.sort_unstable();
    let mut start = 0;
    let segment = |end| {
        let segment = Streams::of(&steps[start..end]);
        start = end;
        segment
    };
    ends.into_iter().map(segment).collect()
}

proptest! {
    #[test]
    fn segments_join_to_the_text_of_the_tape(
        value in values(),
        cuts in prop::collection::vec(any::<usize>(), 0..30),
        turn in 0..30_usize,
    ) {
        let mut steps = Vec::new();
        write(&value, &mut 0, &mut steps);
        let parts = cut(&steps, &cuts);
        for layout in LAYOUTS {
            let expected = whole(&parts, layout, false);
            let (text, len) = pieces(&parts, turn, layout, false);
            prop_assert_eq!(&text, &expected);
            if layout.gap.is_none() {
                prop_assert_eq!(len, text.len(), "the length is known before");
            }
        }
    }

    #[test]
    fn rows_join_to_rows(
        values in prop::collection::vec(values(), 1..5),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
        turn in 0..20_usize,
    ) {
        let (mut steps, mut longs) = (Vec::new(), 0);
        for value in &values {
            write(value, &mut longs, &mut steps);
            steps.push(step(&[word(Tag::Extra, 0)]));
        }
        let parts = cut(&steps, &cuts);
        for layout in &LAYOUTS[..2] {
            let (text, len) = pieces(&parts, turn, *layout, true);
            prop_assert_eq!(&text, &whole(&parts, *layout, true));
            prop_assert_eq!(len, text.len());
            prop_assert_eq!(text.lines().count(), values.len());
        }
    }
}

fn numbers(count: i32) -> Vec<Streams> {
    let steps = (0..count).map(|int| step(&[int << 4])).collect::<Vec<_>>();
    steps.iter().map(|step| Streams::of(std::slice::from_ref(step))).collect()
}

#[test]
fn two_tasks_at_most_are_asked_for() {
    let queue = Queue::new(2);
    let job = || {
        let segment = SegmentCopy::new(numbers(1)[0].view()).unwrap();
        let mut memory = TapeMemory::default();
        memory.segments.push(SegmentPart::Copied(Arc::new(segment)));
        memory.split_job(0..0, 1).unwrap()
    };
    let asked = (0..5).map(|index| queue.add(index, job()).unwrap()).collect::<Vec<_>>();
    assert_eq!(asked, [true, true, false, false, false]);
    assert_eq!(queue.print(&mut None, &Lexicon::default(), false, &Heap), Ok(5));
    assert_eq!(queue.add(5, job()), Ok(true), "one task has ended");
    assert_eq!(queue.add(6, job()), Ok(false), "the other one has not");
    assert_eq!(queue.add(6, job()), Err(Malformed), "the place is taken");
    assert!(!queue.is_printed(6));
    assert!(queue.take_texts().is_err(), "two segments are not printed");
}

#[test]
fn an_invalid_segment_stays_with_its_task() {
    let mut parts = numbers(3);
    parts[1].words = vec![word(Tag::Literal, 9)];
    let queue = fill(&parts, 0);
    let mut job = None;
    let outcome = queue.print(&mut job, &Lexicon::default(), false, &Heap);
    assert_eq!(outcome, Err(TranscodeError::Malformed));
    assert!(job.is_some());
    assert!(queue.is_printed(0));
    assert!(!queue.is_printed(1));
    queue.clear();
    assert!(!queue.is_printed(0));
    assert_eq!(queue.joined_len(), 0);
}

#[test]
fn a_part_for_messagepack_does_not_end_in_another_segment() {
    let mut parts = numbers(2);
    parts[0].words.push(word(Tag::Extra, 5));
    let outcome = fill(&parts, 0).print(&mut None, &Lexicon::default(), false, &Heap);
    assert_eq!(outcome, Err(TranscodeError::Malformed));
}

#[test]
fn other_formats_have_no_segments() {
    let queue = fill(&numbers(2), 1);
    queue.print(&mut None, &Lexicon::default(), false, &Heap).unwrap();
    let mut texts = queue.take_texts().unwrap();
    let digest = PrintConfig {
        format: PrintFormat::Digest(JsonLayout::default()),
        ..config(JsonLayout::default())
    };
    let outcome = print_texts(&mut texts, &digest, &mut Growing(Vec::new()), &Heap);
    assert_eq!(outcome, Err(TranscodeError::Malformed));
}
