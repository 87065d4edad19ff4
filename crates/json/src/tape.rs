//! The flat form of a JavaScript value, as `src/capture` writes it: words, and the streams that they draw from.
//!
//! A word is `payload << 4 | tag`. A tape is a list of segments; a value may begin in one and end in another, but
//! a word and what it draws from its streams stand in the same one.

use std::error::Error;
use std::fmt;

use crate::lexicon::Lexicon;

/// The low four bits of a word. `src/capture/tape.ts` holds the same table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
    /// The payload itself, 28 bits.
    Int = 0,
    /// The next double.
    Double = 1,
    /// A string of `payload` Latin-1 characters, the next bytes.
    Latin1 = 2,
    /// A string of `payload` UTF-16 units, the next bytes.
    Utf16 = 3,
    /// A string of `payload` characters, the next of the rope.
    Rope = 4,
    /// [`NULL`], [`TRUE`] or [`FALSE`].
    Literal = 5,
    /// [`ARRAY`], [`OBJECT`] or [`MAP`].
    Open = 6,
    /// The same.
    Close = 7,
    /// The text in the lexicon.
    Entry = 8,
    /// A key outside the lexicon. The payload says where its characters are, the next word how many.
    Name = 9,
    /// `payload` words that are integers as they are.
    Ints = 10,
    /// The next `payload` doubles.
    Doubles = 11,
    /// The long string of that index.
    Long = 12,
    /// Characters of JSON text. The payload is a [`Characters`]; the next words are how many there are, or the index
    /// of a long string; the first of them to be written; and the first no longer to be.
    Text = 13,
    /// The next double is the time value of a `Date`.
    Date = 14,
    /// What its payload, an [`Extra`], says.
    Extra = 15,
}

impl Tag {
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
/// Keys of any kind and values, in turn. There is none in JSON.
pub const MAP: usize = 2;

/// Where characters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Characters {
    Latin1,
    Utf16,
    Rope,
    Long,
}

impl Characters {
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

/// Rare things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// The end of a row of JSON Lines.
    Row,
    /// The elements of a typed array. The next words are a [`Form`], and how many of the next bytes they are.
    Bytes,
    /// The same of the bytes that are the long string of the index that the second word is.
    LongBytes,
    /// JSON as it is: the bytes that are the long string of the index that the next word is.
    Raw,
    /// The value behind it is for JSON alone; the next one, behind [`Extra::OnlyMsgpack`], is the same for `MessagePack`.
    OnlyJson,
    OnlyMsgpack,
    /// The end of that.
    Both,
}

impl Extra {
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

/// How a typed array is written: `kind << 2 | style`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub kind: Kind,
    pub style: Style,
}

impl Form {
    #[must_use]
    pub fn of(word: usize) -> Option<Self> {
        Some(Self { kind: Kind::of(word >> 2)?, style: Style::of(word & 3) })
    }
}

/// What elements are. `src/capture/typed.ts` holds the same table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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

impl Kind {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// An array of numbers.
    Numbers,
    /// A string: their bytes as base64.
    Base64,
    /// An array of strings that are numbers.
    Strings,
    /// What `Buffer.prototype.toJSON` makes.
    Buffer,
}

impl Style {
    fn of(bits: usize) -> Self {
        match bits & 3 {
            0 => Self::Numbers,
            1 => Self::Base64,
            2 => Self::Strings,
            _ => Self::Buffer,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Segment<'a> {
    pub words: &'a [i32],
    pub doubles: &'a [f64],
    pub bytes: &'a [u8],
    /// The characters of short strings, one behind the other.
    pub rope: &'a [u8],
    /// How many characters of the rope stand in one width: `characters << 1 | is_wide`.
    pub runs: &'a [i32],
}

/// A string too long for a segment.
#[derive(Clone, Copy, Debug)]
pub struct Long<'a> {
    pub bytes: &'a [u8],
    /// Two bytes a character.
    pub is_wide: bool,
}

/// A whole tape, and what it refers to.
#[derive(Clone, Copy, Debug)]
pub struct Tape<'a> {
    pub segments: &'a [Segment<'a>],
    pub longs: &'a [Long<'a>],
    pub lexicon: &'a Lexicon,
    /// It is rows, in which no line may break.
    pub has_rows: bool,
    pub base64: Base64,
}

/// Writes bytes as base64 to memory that has room for it; tells how many characters that are. All calls but the last of
/// a text get a multiple of three.
pub type Base64 = fn(bytes: &[u8], room: &mut [u8]) -> usize;

impl<'a> Tape<'a> {
    pub(crate) fn long(&self, index: usize) -> Result<Long<'a>, Malformed> {
        long(self.longs, index)
    }
}

pub(crate) fn long<'a>(longs: &[Long<'a>], index: usize) -> Result<Long<'a>, Malformed> {
    longs.get(index).copied().ok_or(Malformed)
}

#[inline]
pub(crate) fn payload_of(word: i32) -> usize {
    (word.cast_unsigned() >> 4) as usize
}

/// The whole elements; a view has no others.
pub(crate) fn whole<const SIZE: usize>(bytes: &[u8]) -> &[[u8; SIZE]] {
    bytes.as_chunks().0
}

/// A tape that its own rules forbid: a bug of whoever wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the tape is malformed")
    }
}

impl Error for Malformed {}
