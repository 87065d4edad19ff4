//! Makes `MessagePack` of the nodes of a tape of simd-json: a twin of `pack`, and a prototype to measure.

use std::convert::Infallible;

use offloop_json::{
    Floats, JsText, Kernel, Lexicon, Memory, PackOptions, Segment, Tag, Tape, pack,
};
use simd_json::{Node, StaticNode};

/// The word of a tape for a RawJson; the index of its text follows.
pub const RAW: i32 = 3 << 4 | Tag::Extra as i32;

/// Memory that grows, with dirty bytes.
pub struct Growing(pub Vec<u8>);

impl Memory for Growing {
    type Error = Infallible;

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn grow(&mut self, _len: usize, size: usize) -> Result<(), Infallible> {
        self.0.resize(size, 0xee);
        Ok(())
    }
}

/// Packs a tape of `words`, whose only long text is `json`. Returns the length of the `MessagePack`.
pub fn pack_words(words: &[i32], json: &[u8], memory: &mut Growing) -> usize {
    let segments = [Segment { words, ..Segment::default() }];
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

/// Appends a node of a tape.
pub fn pack_node(node: &Node<'_>, to: &mut Vec<u8>) {
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

/// Appends a double, as an integer if it is one of 64 bits.
fn double(value: f64, to: &mut Vec<u8>) {
    let whole = value as i64;
    let is_whole = (whole as f64).to_bits() == value.to_bits() || value == 0.0;
    if is_whole && value < 2_f64.powi(63) {
        integer(whole, to);
    } else if (2_f64.powi(63)..2_f64.powi(64)).contains(&value) {
        natural(value as u64, to);
    } else {
        tagged(0xcb, value.to_be_bytes(), to);
    }
}
