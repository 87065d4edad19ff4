//! Compares segments in memory with the streams that were written to it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use offloop_json::{Malformed, Segment, SegmentCopy, StreamLens};
use proptest::prelude::*;

/// The streams of a segment, and the room for more elements behind each.
#[derive(Clone, Debug)]
struct Streams {
    words: Vec<i32>,
    doubles: Vec<f64>,
    bytes: Vec<u8>,
    rope: Vec<u8>,
    runs: Vec<i32>,
    spare: usize,
}

impl Streams {
    fn lens(&self, spare: usize) -> StreamLens {
        StreamLens {
            words: self.words.len() + spare,
            doubles: self.doubles.len() + spare,
            bytes: self.bytes.len() + spare,
            rope: self.rope.len() + spare,
            runs: self.runs.len() + spare,
        }
    }

    /// Writes the streams as JavaScript does; returns the memory and the offset at which it is aligned.
    fn memory(&self) -> (Vec<u8>, usize) {
        let mut memory = Vec::<u8>::with_capacity(self.size() + 8);
        let start = memory.as_ptr().align_offset(8);
        memory.resize(start, 0xEE);
        let spare = |size: usize| vec![0xEE; self.spare * size];
        memory.extend(self.doubles.iter().flat_map(|double| double.to_ne_bytes()));
        memory.extend(spare(8));
        memory.extend(self.words.iter().flat_map(|word| word.to_ne_bytes()));
        memory.extend(spare(4));
        memory.extend(self.runs.iter().flat_map(|run| run.to_ne_bytes()));
        memory.extend(spare(4));
        memory.extend(&self.bytes);
        memory.extend(spare(1));
        memory.extend(&self.rope);
        memory.extend(spare(1));
        (memory, start)
    }

    fn size(&self) -> usize {
        let ints = self.words.len() + self.runs.len();
        self.doubles.len() * 8 + ints * 4 + self.bytes.len() + self.rope.len() + self.spare * 18
    }
}

/// The streams of a segment in a form that can be compared.
type ComparedStreams<'a> = (&'a [i32], Vec<u64>, &'a [u8], &'a [u8], &'a [i32]);

fn parts<'a>(segment: &Segment<'a>) -> ComparedStreams<'a> {
    let doubles = segment.doubles.iter().map(|double| double.to_bits()).collect();
    (segment.words, doubles, segment.bytes, segment.rope, segment.runs)
}

fn streams() -> impl Strategy<Value = Streams> {
    let ints = || prop::collection::vec(any::<i32>(), 0..9);
    let bytes = || prop::collection::vec(any::<u8>(), 0..9);
    let doubles = prop::collection::vec(any::<f64>(), 0..9);
    (ints(), doubles, bytes(), bytes(), ints(), 0..4_usize).prop_map(
        |(words, doubles, bytes, rope, runs, spare)| Streams {
            words,
            doubles,
            bytes,
            rope,
            runs,
            spare,
        },
    )
}

proptest! {
    #[test]
    fn a_view_and_its_copy_have_what_was_written(streams in streams()) {
        let (memory, start) = streams.memory();
        let memory = &memory[start..];
        prop_assert_eq!(memory.as_ptr().align_offset(8), 0);
        let segment = Segment::view(memory, streams.lens(streams.spare), streams.lens(0)).unwrap();
        let Streams { words, doubles, bytes, rope, runs, .. } = &streams;
        let written = Segment { words, doubles, bytes, rope, runs };
        prop_assert_eq!(parts(&segment), parts(&written));
        prop_assert_eq!(segment.size(), streams.size() - streams.spare * 18);
        let copy = SegmentCopy::new(segment).unwrap();
        prop_assert_eq!(parts(&copy.view()), parts(&written));
    }

    #[test]
    fn a_stream_beyond_its_room_is_malformed(streams in streams(), stream in 0..5_usize) {
        let (memory, start) = streams.memory();
        let mut written = streams.lens(0);
        let StreamLens { words, doubles, bytes, rope, runs } = &mut written;
        *[words, doubles, bytes, rope, runs][stream] += streams.spare + 1;
        let outcome = Segment::view(&memory[start..], streams.lens(streams.spare), written);
        prop_assert_eq!(outcome.err(), Some(Malformed));
    }
}

#[test]
fn room_beyond_the_memory_is_malformed() {
    let memory = [0; 64];
    for room in [
        StreamLens { doubles: 9, ..StreamLens::default() },
        StreamLens { words: 17, ..StreamLens::default() },
        StreamLens { runs: 17, ..StreamLens::default() },
        StreamLens { bytes: 65, ..StreamLens::default() },
        StreamLens { doubles: 8, bytes: 1, ..StreamLens::default() },
        StreamLens { doubles: usize::MAX, ..StreamLens::default() },
    ] {
        let outcome = Segment::view(&memory, room, StreamLens::default());
        assert_eq!(outcome.err(), Some(Malformed), "{room:?}");
    }
}

#[test]
fn memory_that_is_not_aligned_has_no_doubles_and_no_integers() {
    let memory = [0; 64];
    let start = memory.as_ptr().align_offset(8) + 1;
    let memory = &memory[start..start + 32];
    let room = StreamLens { doubles: 2, words: 2, ..StreamLens::default() };
    let view = |written| Segment::view(memory, room, written).map(|segment| segment.size());
    assert_eq!(view(StreamLens::default()), Ok(0));
    assert_eq!(view(StreamLens { doubles: 1, ..StreamLens::default() }), Err(Malformed));
    assert_eq!(view(StreamLens { words: 1, ..StreamLens::default() }), Err(Malformed));
    assert_eq!(view(StreamLens { rope: 8, ..StreamLens::default() }), Ok(8));
}
