//! The tape: the flat form of a JavaScript value, which tasks print.
//!
//! `src/capture` writes tapes on the JS thread; `transcode` and `msgpack` read them in tasks.
//!
//! A tape is a list of segments. A segment has five streams: words, doubles, bytes, rope and runs. A value may begin in
//! one segment and end in another. A word and what it draws from the streams are in one segment.
//!
//! A word is `payload << 4 | tag`. Some tags take operands, which are the next words.
//!
//! | tag | payload | operands | takes from the streams | meaning |
//! |---|---|---|---|---|
//! | 0 `Int` | the integer, 28 bits, signed | | | an integer |
//! | 1 `Double` | | | 1 double | a number |
//! | 2 `Latin1` | length | | `length` bytes | a string of Latin-1 characters |
//! | 3 `Utf16` | length | | `2 × length` bytes | a string of UTF-16 units |
//! | 4 `Rope` | length | | `length` characters of the rope | a short string |
//! | 5 `Literal` | 0 null, 1 true, 2 false | | | a literal |
//! | 6 `Open` | 0 array, 1 object, 2 map | | | the start of a container |
//! | 7 `Close` | 0 array, 1 object, 2 map | | | the end of a container |
//! | 8 `Entry` | index in the lexicon | | | JSON text of the lexicon |
//! | 9 `Name` | a [`TextLocation`] | length, or index of a long text | the characters | a key outside the lexicon |
//! | 10 `Ints` | count | `count` integers | | elements of an array |
//! | 11 `Doubles` | count | | `count` doubles | elements of an array |
//! | 12 `Long` | index of a long text | | | a string too long for a segment |
//! | 13 `Text` | a [`TextLocation`] | length, or index of a long text; from; to | the characters | part of a JSON text |
//! | 14 `Date` | | | 1 double | the time value of a `Date` |
//! | 15 `Extra` | an [`Extra`] | see [`Extra`] | see [`Extra`] | rare things |
//!
//! Example: `[1, 0.5, "ab"]` is the words `[6, 1 << 4, 1, 2 << 4 | 4, 7]`, the double `0.5`, the rope `ab` and the run
//! `2 << 1`.

use std::error::Error;
use std::fmt;

use crate::lexicon::Lexicon;

/// The low four bits of a word. `src/capture/opcodes.ts` has an equal table; `__test__/tape.spec.ts` compares the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
    Int = 0,
    Double = 1,
    Latin1 = 2,
    Utf16 = 3,
    Rope = 4,
    /// The payload is [`NULL`], [`TRUE`] or [`FALSE`].
    Literal = 5,
    /// The payload is [`ARRAY`], [`OBJECT`] or [`MAP`].
    Open = 6,
    /// The payload is [`ARRAY`], [`OBJECT`] or [`MAP`].
    Close = 7,
    Entry = 8,
    Name = 9,
    Ints = 10,
    Doubles = 11,
    Long = 12,
    Text = 13,
    Date = 14,
    Extra = 15,
}

impl Tag {
    /// Returns the tag of a word.
    #[inline]
    #[must_use]
    pub const fn of(word: i32) -> Self {
        match word & 15 {
            0 => Self::Int,
            1 => Self::Double,
            2 => Self::Latin1,
            3 => Self::Utf16,
            4 => Self::Rope,
            5 => Self::Literal,
            6 => Self::Open,
            7 => Self::Close,
            8 => Self::Entry,
            9 => Self::Name,
            10 => Self::Ints,
            11 => Self::Doubles,
            12 => Self::Long,
            13 => Self::Text,
            14 => Self::Date,
            _ => Self::Extra,
        }
    }
}

pub const NULL: usize = 0;
pub const TRUE: usize = 1;
pub const FALSE: usize = 2;

pub const ARRAY: usize = 0;
pub const OBJECT: usize = 1;
/// A container of keys of any type and values, in turn. JSON has none.
pub const MAP: usize = 2;

/// The stream that the characters of a text are in: the payload of `Name` and `Text`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLocation {
    Latin1,
    Utf16,
    Rope,
    Long,
}

impl TextLocation {
    /// Returns the location that a payload means; `None` for an invalid payload.
    #[must_use]
    pub fn of(payload: usize) -> Option<Self> {
        match payload {
            0 => Some(Self::Latin1),
            1 => Some(Self::Utf16),
            2 => Some(Self::Rope),
            3 => Some(Self::Long),
            _ => None,
        }
    }
}

/// The payload of a word with the tag `Extra`.
///
/// | payload | operands | takes from the streams |
/// |---|---|---|
/// | 0 `Row` | | |
/// | 1 `Bytes` | an [`ElementFormat`]; size | `size` bytes |
/// | 2 `LongBytes` | an [`ElementFormat`]; index of a long text | |
/// | 3 `Raw` | index of a long text | |
/// | 4 `OnlyJson`, 5 `OnlyMsgpack`, 6 `Both` | | |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// The end of a row of JSON Lines.
    Row,
    /// The elements of a typed array, in the stream of bytes.
    Bytes,
    /// The elements of a typed array, in a long text.
    LongBytes,
    /// Raw JSON: copied as it is.
    Raw,
    /// The start of a part for JSON only. The part for `MessagePack` that replaces it follows, behind `OnlyMsgpack`.
    OnlyJson,
    /// The end of a part for JSON, and the start of one for `MessagePack` only.
    OnlyMsgpack,
    /// The end of a part for `MessagePack`: the words behind it are for both formats.
    Both,
}

impl Extra {
    /// Returns the meaning of a payload; `None` for an invalid payload.
    #[must_use]
    pub fn of(payload: usize) -> Option<Self> {
        match payload {
            0 => Some(Self::Row),
            1 => Some(Self::Bytes),
            2 => Some(Self::LongBytes),
            3 => Some(Self::Raw),
            4 => Some(Self::OnlyJson),
            5 => Some(Self::OnlyMsgpack),
            6 => Some(Self::Both),
            _ => None,
        }
    }
}

/// How the elements of a typed array are read and written: a word, `kind << 2 | style`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementFormat {
    pub kind: ElementKind,
    pub style: ElementStyle,
}

impl ElementFormat {
    /// Splits a word; `None` for an invalid kind.
    #[must_use]
    pub fn of(word: usize) -> Option<Self> {
        Some(Self { kind: ElementKind::of(word >> 2)?, style: ElementStyle::of(word & 3) })
    }
}

/// The type of the elements of a typed array. `src/capture/typed-array.ts` has an equal table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Float16,
    Float32,
    Float64,
    BigInt64,
    BigUint64,
    Uint8Clamped,
}

impl ElementKind {
    const ALL: [Self; 12] = [
        Self::Int8,
        Self::Uint8,
        Self::Int16,
        Self::Uint16,
        Self::Int32,
        Self::Uint32,
        Self::Float16,
        Self::Float32,
        Self::Float64,
        Self::BigInt64,
        Self::BigUint64,
        Self::Uint8Clamped,
    ];

    fn of(index: usize) -> Option<Self> {
        Self::ALL.get(index).copied()
    }
}

/// The JSON that a typed array becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementStyle {
    /// `[1,2]`
    Numbers,
    /// `"AQI="`
    Base64,
    /// `["1","2"]`
    Strings,
    /// `{"type":"Buffer","data":[1,2]}`
    Buffer,
}

impl ElementStyle {
    fn of(bits: usize) -> Self {
        match bits & 3 {
            0 => Self::Numbers,
            1 => Self::Base64,
            2 => Self::Strings,
            _ => Self::Buffer,
        }
    }
}

/// One block of a tape: the written part of each stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment<'a> {
    pub words: &'a [i32],
    pub doubles: &'a [f64],
    pub bytes: &'a [u8],
    /// The characters of short strings, joined.
    pub rope: &'a [u8],
    /// The widths of the rope's characters: each run is `length << 1 | is_wide`, in characters.
    pub runs: &'a [i32],
}

/// Characters of a JavaScript string: Latin-1 or UTF-16.
#[derive(Clone, Copy, Debug)]
pub struct JsText<'a> {
    pub bytes: &'a [u8],
    /// Whether a character takes two bytes.
    pub is_wide: bool,
}

/// A whole tape and what its words refer to.
#[derive(Clone, Copy, Debug)]
pub struct Tape<'a> {
    pub segments: &'a [Segment<'a>],
    /// Strings too long for a segment; also bytes of typed arrays and raw JSON.
    pub longs: &'a [JsText<'a>],
    /// The index of the first of `longs`. A part of a tape has its own longs only.
    pub first_long: usize,
    pub lexicon: &'a Lexicon,
    /// Whether the tape is rows of JSON Lines, in which raw JSON may have no line breaks.
    pub has_rows: bool,
}

impl<'a> Tape<'a> {
    /// Returns the long text at an index.
    pub(crate) fn long(&self, index: usize) -> Result<JsText<'a>, Malformed> {
        let index = index.checked_sub(self.first_long).ok_or(Malformed)?;
        self.longs.get(index).copied().ok_or(Malformed)
    }
}

#[inline]
pub(crate) fn payload_of(word: i32) -> usize {
    (word.cast_unsigned() >> 4) as usize
}

/// Splits bytes into elements of `SIZE` bytes. A typed array has whole elements only.
pub(crate) fn whole<const SIZE: usize>(bytes: &[u8]) -> &[[u8; SIZE]] {
    bytes.as_chunks().0
}

/// The error of an invalid tape, which no capture writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the tape is malformed")
    }
}

impl Error for Malformed {}
