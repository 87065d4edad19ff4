//! Element types of routed experts. Every file of this crate uses them, on the JS thread and in tasks.

use std::fmt;
use std::ops::RangeInclusive;

/// Type of the elements. Smaller types come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dtype {
    Uint8,
    Int8,
    Uint16,
    Int16,
    Int32,
}

impl Dtype {
    /// Every dtype, in the order in which the glue numbers them.
    pub const ALL: [Self; 5] = [Self::Uint8, Self::Int8, Self::Uint16, Self::Int16, Self::Int32];

    /// Returns the bytes of an element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Uint8 | Self::Int8 => 1,
            Self::Uint16 | Self::Int16 => 2,
            Self::Int32 => 4,
        }
    }

    /// Returns the values that an element can have.
    #[must_use]
    pub const fn range(self) -> RangeInclusive<i32> {
        match self {
            Self::Uint8 => 0..=0xff,
            Self::Int8 => -0x80..=0x7f,
            Self::Uint16 => 0..=0xffff,
            Self::Int16 => -0x8000..=0x7fff,
            Self::Int32 => i32::MIN..=i32::MAX,
        }
    }

    /// Returns numpy's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uint8 => "uint8",
            Self::Int8 => "int8",
            Self::Uint16 => "uint16",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
        }
    }

    /// Finds a dtype by numpy's name.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name().as_bytes() == name)
    }

    /// Finds a dtype by numpy's `descr`: byte order, kind, size.
    #[must_use]
    pub fn described(descr: &[u8]) -> Option<Self> {
        match descr {
            [b'|' | b'<' | b'>' | b'=', b'u', b'1'] => Some(Self::Uint8),
            [b'|' | b'<' | b'>' | b'=', b'i', b'1'] => Some(Self::Int8),
            b"<u2" => Some(Self::Uint16),
            b"<i2" => Some(Self::Int16),
            b"<i4" => Some(Self::Int32),
            _ => None,
        }
    }

    /// Returns whether every value of `other` fits.
    #[must_use]
    pub fn holds(self, other: Self) -> bool {
        let (all, some) = (self.range(), other.range());
        all.start() <= some.start() && some.end() <= all.end()
    }

    /// Returns the smallest dtype that holds both.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        let fits = |dtype: &Self| dtype.holds(self) && dtype.holds(other);
        Self::ALL.into_iter().find(fits).unwrap_or(Self::Int32)
    }

    /// Returns the bytes of an element of this `value`, padded with zeros; `None` if the value does not fit.
    #[must_use]
    pub fn element(self, value: i64) -> Option<[u8; 4]> {
        let value = i32::try_from(value).ok()?;
        let bytes = value.to_le_bytes();
        let [low, high, ..] = bytes;
        self.range().contains(&value).then_some(match self.size() {
            1 => [low, 0, 0, 0],
            2 => [low, high, 0, 0],
            _ => bytes,
        })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
