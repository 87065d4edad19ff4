//! Formats of payloads, recognised by how they start.
//!
//! `resolve.rs` calls this, on the JS thread or in a task; only the first bytes are read.

use std::ops::Range;

use crate::Dtype;
use crate::payload::{Declared, PayloadError, SAFE, dtype_named};

/// How the bytes of a turn arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadFormat {
    /// UTF-8 of a text: base64, `nrlre1:…` or JSON.
    Text,
    /// Such a text in one byte a character.
    Latin1,
    /// Bytes of a `.npy` file.
    File,
    /// Data of an object, in base64.
    Base64,
    /// Data of an object, in base85.
    Base85,
    /// Data of an object, not encoded.
    Raw,
}

impl PayloadFormat {
    /// Every format, in the order in which the glue numbers them.
    pub const ALL: [Self; 6] =
        [Self::Text, Self::Latin1, Self::File, Self::Base64, Self::Base85, Self::Raw];
}

/// How data is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Base64,
    Base85,
    Raw,
}

/// Place of the data of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayloadData {
    /// At these bytes of the text.
    Range(Range<usize>),
    /// In a copy, since the text has escapes.
    Unescaped(Vec<u8>),
}

impl PayloadData {
    /// Returns the data. `text` holds the range.
    #[must_use]
    pub fn bytes<'a>(&'a self, text: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Range(range) => text.get(range.clone()).unwrap_or_default(),
            Self::Unescaped(bytes) => bytes,
        }
    }

    /// Returns where the data starts in its text; `None` for a copy.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        match self {
            Self::Range(range) => Some(range.start),
            Self::Unescaped(_) => None,
        }
    }
}

/// A payload before its data is decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct EncodedPayload {
    pub data: PayloadData,
    pub encoding: Encoding,
    pub declared: Declared,
    /// Dtype if neither the payload nor the hints name one; `None` if the data must be a `.npy` file.
    pub implied: Option<Dtype>,
}

impl Encoding {
    /// Returns the dtype of an object that declares none.
    #[must_use]
    pub fn implied(self) -> Dtype {
        match self {
            Self::Base64 | Self::Raw => Dtype::Uint8,
            Self::Base85 => Dtype::Int32,
        }
    }
}

/// Returns whether the first character that is not white space is `{`.
#[must_use]
pub fn is_object(text: &[u8]) -> bool {
    let space = text.iter().take_while(|byte| b" \t\n\r".contains(byte)).count();
    text.get(space) == Some(&b'{')
}

/// Reads a text that is not an object: `nrlre1:<dtype>:<SxLxK>:<base64>`, or base64 of a `.npy` file or of elements.
///
/// # Errors
/// If it starts with `nrlre1:` and lacks the fields of that format.
pub fn text(text: &[u8]) -> Result<EncodedPayload, PayloadError> {
    let bare = EncodedPayload {
        data: PayloadData::Range(0..text.len()),
        encoding: Encoding::Base64,
        declared: Declared::default(),
        implied: Some(Dtype::Int32),
    };
    let Some(behind) = text.strip_prefix(b"nrlre1:") else { return Ok(bare) };
    let mut colons = behind.iter().take(LONGEST).enumerate().filter(|&(_, &byte)| byte == b':');
    let (Some((first, _)), Some((second, _))) = (colons.next(), colons.next()) else {
        return Err(PayloadError::Nrlre);
    };
    let name = behind.get(..first).unwrap_or_default();
    let shape = behind.get(first + 1..second).unwrap_or_default();
    let data = PayloadData::Range(text.len() - behind.len() + second + 1..text.len());
    let dtype = dtype_named(name)?;
    let shape = shape.split(|&byte| byte == b'x').map(decimal).collect::<Option<Vec<_>>>();
    let shape = Some(shape.ok_or(PayloadError::Shape)?);
    let declared = Declared { shape, dtype: Some(dtype), start: None };
    Ok(EncodedPayload { data, declared, ..bare })
}

/// Most bytes between `nrlre1:` and the last colon. Valid fields are shorter.
const LONGEST: usize = 128;

fn decimal(digits: &[u8]) -> Option<f64> {
    let is_decimal = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let number = str::from_utf8(digits).ok().filter(|_| is_decimal)?.parse::<f64>().ok();
    number.filter(|&number| number <= SAFE)
}
