//! Reads the header of a `.npy` file as numpy's `format.py` defines it: a magic, a version, a length and a Python dict.
//!
//! `payload.rs` calls it, on the JS thread or in a task; a header has at most 64 KiB.

use std::error::Error;
use std::fmt;

use crate::Dtype;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Most bytes of a header. numpy writes 118, and by default reads at most 10,000.
const LONGEST: usize = 64 << 10;

/// Dtype and shape of a `.npy` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    pub dtype: Dtype,
    pub shape: [usize; 3],
    /// Bytes before the elements.
    pub size: usize,
}

/// Why a `.npy` file holds no routed experts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NpyError {
    /// The version is not 1, 2 or 3.
    Version { major: u8 },
    /// The header is longer than 64 KiB.
    TooLong { size: usize },
    /// The file ends within its header.
    Truncated,
    /// The header is not a dict with `descr`, `fortran_order` and `shape`.
    Malformed,
    /// The dtype is not one of [`Dtype`], for example big-endian, float or object.
    Dtype { descr: String },
    /// The elements are in Fortran order.
    FortranOrder,
    /// The array does not have three dimensions.
    Rank { rank: usize },
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

/// Returns whether bytes start with the magic of a `.npy` file.
#[must_use]
pub fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

impl NpyHeader {
    /// Returns the size of the header from the first 12 bytes of a file.
    ///
    /// # Errors
    /// If the version is unknown, the header is too long, or there are too few bytes.
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

    /// Reads a header from the first [`Self::size_of`] bytes of a file.
    ///
    /// # Errors
    /// If the file holds no routed experts.
    pub fn read(bytes: &[u8]) -> Result<Self, NpyError> {
        let size = Self::size_of(bytes)?;
        let from = if bytes.get(6) == Some(&1) { 10 } else { 12 };
        let dict = bytes.get(from..size).ok_or(NpyError::Truncated)?;
        let NpyDict { descr, fortran_order, shape } =
            NpyDict::read(dict).ok_or(NpyError::Malformed)?;
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

/// The dict of a header.
struct NpyDict {
    descr: Vec<u8>,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl NpyDict {
    fn read(text: &[u8]) -> Option<Self> {
        let mut reader = DictReader { rest: text };
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

/// Reads the subset of Python literals that numpy writes into headers.
struct DictReader<'a> {
    rest: &'a [u8],
}

impl<'a> DictReader<'a> {
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

    /// Reads a string. Escapes are malformed: numpy writes none.
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

    /// Reads a string, or the text of the list of a structured dtype.
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

    /// Reads a tuple of integers ≥ 0. Python 2 wrote an `L` behind them.
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
