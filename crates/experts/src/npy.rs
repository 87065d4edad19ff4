//! The header of a `.npy` file, as numpy's `format.py` describes it: a magic, a version, a length, and a Python dict.

use std::error::Error;
use std::fmt;

use crate::Dtype;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// What a header may be in length; numpy writes 118 bytes, and by default reads no more than 10,000.
const LONGEST: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Npy {
    pub dtype: Dtype,
    pub shape: [usize; 3],
    /// What stands before the elements.
    pub size: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NpyError {
    /// Not 1, 2 or 3.
    Version {
        major: u8,
    },
    TooLong {
        size: usize,
    },
    Truncated,
    /// No dict with `descr`, `fortran_order` and `shape`.
    Malformed,
    /// Big-endian, objects, floats, and what else is none of ours.
    Dtype {
        descr: String,
    },
    FortranOrder,
    /// Not of three dimensions.
    Rank {
        rank: usize,
    },
}

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { major } => write!(f, "a .npy file of version {major}"),
            Self::TooLong { size } => write!(f, "a .npy file whose header has {size} bytes"),
            Self::Truncated => f.write_str("a .npy file that ends within its header"),
            Self::Malformed => f.write_str("a .npy file whose header is malformed"),
            Self::Dtype { descr } => write!(f, "a .npy file of dtype {descr:?}"),
            Self::FortranOrder => f.write_str("a .npy file in Fortran order"),
            Self::Rank { rank } => write!(f, "a .npy file of {rank} dimensions, not of 3"),
        }
    }
}

impl Error for NpyError {}

#[must_use]
pub fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

impl Npy {
    /// The length of the bytes to give to [`Self::read`], from the first twelve of a file.
    ///
    /// # Errors
    /// Where that cannot be told.
    pub fn size_of(bytes: &[u8]) -> Result<usize, NpyError> {
        let Some((version, behind)) = bytes.strip_prefix(MAGIC).and_then(<[u8]>::split_first)
        else {
            return Err(NpyError::Truncated);
        };
        let size = match (version, behind) {
            (1, [_, low, high, ..]) => 10 + usize::from(u16::from_le_bytes([*low, *high])),
            (2 | 3, [_, a, b, c, d, ..]) => {
                12_usize.saturating_add(u32::from_le_bytes([*a, *b, *c, *d]) as usize)
            }
            (1..=3, _) => return Err(NpyError::Truncated),
            (&major, _) => return Err(NpyError::Version { major }),
        };
        if LONGEST < size { Err(NpyError::TooLong { size }) } else { Ok(size) }
    }

    /// What a file holds, from its first [`Self::size_of`] bytes.
    ///
    /// # Errors
    /// Where it holds no routed experts.
    pub fn read(bytes: &[u8]) -> Result<Self, NpyError> {
        let size = Self::size_of(bytes)?;
        let from = if bytes.get(6) == Some(&1) { 10 } else { 12 };
        let dict = bytes.get(from..size).ok_or(NpyError::Truncated)?;
        let Dict { descr, fortran_order, shape } = Dict::read(dict).ok_or(NpyError::Malformed)?;
        let Some(dtype) = Dtype::described(&descr) else {
            return Err(NpyError::Dtype { descr: String::from_utf8_lossy(&descr).into_owned() });
        };
        if fortran_order {
            return Err(NpyError::FortranOrder);
        }
        let rank = shape.len();
        let shape = shape.try_into().map_err(|_| NpyError::Rank { rank })?;
        Ok(Self { dtype, shape, size })
    }
}

/// The part of Python's literals that numpy writes there.
struct Dict {
    descr: Vec<u8>,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Dict {
    fn read(text: &[u8]) -> Option<Self> {
        let mut reader = Reader { rest: text };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        reader.expect(b'{')?;
        while !reader.accepts(b'}') {
            let key = reader.string()?;
            reader.expect(b':')?;
            match key {
                b"descr" => descr = Some(reader.descr()?),
                b"fortran_order" => fortran_order = Some(reader.boolean()?),
                b"shape" => shape = Some(reader.tuple()?),
                _ => return None,
            }
            if !reader.accepts(b',') {
                reader.expect(b'}')?;
                break;
            }
        }
        reader.space();
        if !reader.rest.is_empty() {
            return None;
        }
        Some(Self { descr: descr?, fortran_order: fortran_order?, shape: shape? })
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn accepts(&mut self, byte: u8) -> bool {
        self.space();
        let behind = self.rest.strip_prefix(&[byte]);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.accepts(byte).then_some(())
    }

    /// Without escapes, which numpy has no use for.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.space();
        let (&quote, behind) = self.rest.split_first()?;
        if quote != b'\'' && quote != b'"' {
            return None;
        }
        let end = behind.iter().position(|&byte| byte == quote || byte == b'\\')?;
        let (text, behind) = behind.split_at_checked(end)?;
        self.rest = behind.strip_prefix(&[quote])?;
        Some(text)
    }

    /// A string; or the list of a structured dtype, as it stands.
    fn descr(&mut self) -> Option<Vec<u8>> {
        self.space();
        if self.rest.first() != Some(&b'[') {
            return self.string().map(<[u8]>::to_vec);
        }
        let start = self.rest;
        let mut depth = 0_usize;
        loop {
            match self.rest.first()? {
                b'[' | b'(' => depth += 1,
                b']' | b')' => depth = depth.checked_sub(1)?,
                b'\'' | b'"' => {
                    self.string()?;
                    continue;
                }
                _ => {}
            }
            self.rest = self.rest.get(1..)?;
            if depth == 0 {
                return start.get(..start.len() - self.rest.len()).map(<[u8]>::to_vec);
            }
        }
    }

    fn boolean(&mut self) -> Option<bool> {
        self.space();
        let (value, behind) = match self.rest {
            [b'T', b'r', b'u', b'e', behind @ ..] => (true, behind),
            [b'F', b'a', b'l', b's', b'e', behind @ ..] => (false, behind),
            _ => return None,
        };
        self.rest = behind;
        Some(value)
    }

    /// Of numbers that are not negative, with the `L` that Python 2 wrote or without.
    fn tuple(&mut self) -> Option<Vec<usize>> {
        self.expect(b'(')?;
        let mut numbers = Vec::new();
        while !self.accepts(b')') {
            self.space();
            let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, behind) = self.rest.split_at_checked(len)?;
            numbers.push(str::from_utf8(digits).ok()?.parse().ok()?);
            self.rest = behind.strip_prefix(b"L").unwrap_or(behind);
            if !self.accepts(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Some(numbers)
    }
}
