//! The forms in which payloads come, told apart by how they begin.

use std::ops::Range;

use crate::Dtype;
use crate::payload::{PayloadError, SAFE, Told, dtype_named};

/// How bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Base64,
    Base85,
    Raw,
}

/// Where the bytes of a payload are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// In the text that it came in.
    At(Range<usize>),
    /// Apart, as they were escaped there.
    Own(Vec<u8>),
}

impl Data {
    /// `text` is what it came in.
    #[must_use]
    pub fn of<'a>(&'a self, text: &'a [u8]) -> &'a [u8] {
        match self {
            Self::At(range) => text.get(range.clone()).unwrap_or_default(),
            Self::Own(bytes) => bytes,
        }
    }
}

/// A payload as it came: its bytes, how they are written, and what came with them.
#[derive(Clone, Debug, PartialEq)]
pub struct Wire {
    pub data: Data,
    pub encoding: Encoding,
    pub told: Told,
    /// The dtype where nobody tells it; none where only a `.npy` file is understood.
    pub implied: Option<Dtype>,
}

impl Encoding {
    /// The dtype of an object that does not tell it.
    #[must_use]
    pub fn implied(self) -> Dtype {
        match self {
            Self::Base64 | Self::Raw => Dtype::Uint8,
            Self::Base85 => Dtype::Int32,
        }
    }
}

/// Whether a text can only be the JSON of an object.
#[must_use]
pub fn is_object(text: &[u8]) -> bool {
    let space = text.iter().take_while(|byte| b" \t\n\r".contains(byte)).count();
    text.get(space) == Some(&b'{')
}

/// A text that is no object: `nrlre1:<dtype>:<SxLxK>:<base64>`, or base64 of a `.npy` file or of bare elements.
///
/// # Errors
/// Where it begins as the first and does not go on so.
pub fn text(text: &[u8]) -> Result<Wire, PayloadError> {
    let bare = Wire {
        data: Data::At(0..text.len()),
        encoding: Encoding::Base64,
        told: Told::default(),
        implied: Some(Dtype::Int32),
    };
    let Some(behind) = text.strip_prefix(b"nrlre1:") else { return Ok(bare) };
    let mut colons = behind.iter().take(LONGEST).enumerate().filter(|&(_, &byte)| byte == b':');
    let (Some((first, _)), Some((second, _))) = (colons.next(), colons.next()) else {
        return Err(PayloadError::Nrlre);
    };
    let name = behind.get(..first).unwrap_or_default();
    let shape = behind.get(first + 1..second).unwrap_or_default();
    let data = Data::At(text.len() - behind.len() + second + 1..text.len());
    let dtype = dtype_named(name)?;
    let shape = shape.split(|&byte| byte == b'x').map(decimal).collect::<Option<Vec<_>>>();
    let shape = Some(shape.ok_or(PayloadError::Shape)?);
    let told = Told { shape, dtype: Some(dtype), start: None };
    Ok(Wire { data, told, ..bare })
}

/// What `nrlre1:` tells is shorter.
const LONGEST: usize = 128;

fn decimal(digits: &[u8]) -> Option<f64> {
    let is_decimal = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let number = str::from_utf8(digits).ok().filter(|_| is_decimal)?.parse::<f64>().ok();
    number.filter(|&number| number <= SAFE)
}
