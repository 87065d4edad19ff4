//! What a payload holds, told from what came with it, from its first bytes, and from what the caller knows.

use std::error::Error;
use std::fmt;

use crate::Dtype;
use crate::npy::{Npy, NpyError, is_npy};

/// The most that JavaScript counts exactly.
pub(crate) const SAFE: f64 = 9_007_199_254_740_991.0;

/// Rows of `layers` times `topk` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub rows: usize,
    pub layers: usize,
    pub topk: usize,
}

impl Shape {
    /// Bytes of all elements; none where that is no number.
    #[must_use]
    pub fn size(self, dtype: Dtype) -> Option<usize> {
        self.row_size(dtype)?.checked_mul(self.rows)
    }

    /// Bytes of a row.
    #[must_use]
    pub fn row_size(self, dtype: Dtype) -> Option<usize> {
        self.layers.checked_mul(self.topk)?.checked_mul(dtype.size())
    }

    /// As it is written in other languages.
    fn of(shape: [usize; 3]) -> Self {
        let [rows, layers, topk] = shape;
        Self { rows, layers, topk }
    }
}

/// What came with the bytes, as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    pub shape: Option<Vec<f64>>,
    pub dtype: Option<Dtype>,
    pub start: Option<f64>,
}

/// What the caller knows: of a payload that does not tell it. Where both tell `layers` or `topk`, they must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    pub layers: Option<usize>,
    pub topk: Option<usize>,
    pub dtype: Option<Dtype>,
    pub start: Option<usize>,
}

/// Bytes that are only looked at.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    /// The first of them.
    pub head: &'a [u8],
    /// Of all; or no more than that.
    pub size: usize,
    pub is_exact: bool,
}

/// What bytes hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    pub dtype: Dtype,
    pub shape: Shape,
    /// Position of its first row.
    pub start: usize,
    /// Bytes before its elements.
    pub skipped: usize,
}

impl Payload {
    /// Bytes of its elements.
    #[must_use]
    pub fn size(&self) -> usize {
        // That they can be counted was checked.
        self.shape.size(self.dtype).unwrap_or(usize::MAX)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayloadError {
    /// No list of three integers, none of them negative.
    Shape,
    /// No integer, or a negative one.
    Start,
    /// The same, of the tokens of its turn.
    Tokens,
    Dtype {
        name: String,
    },
    /// What came with a file tells another dtype than the file.
    Dtypes {
        told: Dtype,
    },
    Npy(NpyError),
    /// Neither a shape nor, from the caller, `layers` and `topk`.
    Unknown,
    /// Bytes of no file that is known, where one is expected.
    Foreign,
    Layers {
        told: usize,
        hinted: usize,
    },
    Topk {
        told: usize,
        hinted: usize,
    },
    /// Bytes, and those that the shape needs; none where that is beyond all memory.
    Size {
        is: usize,
        needed: Option<usize>,
    },
    /// Bytes that make no whole number of rows.
    Rows {
        is: usize,
        row: Option<usize>,
    },
    /// Text that begins as `nrlre1:` and does not go on so.
    Nrlre,
    /// Text that begins as an object and is no JSON.
    Json {
        offset: usize,
    },
    /// An object without data, or whose data is no text.
    Data,
    /// Of an object, neither base64 nor base85.
    Encoding,
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape => f.write_str("its shape is no list of three integers from 0 on"),
            Self::Start => f.write_str("its start is no integer from 0 on"),
            Self::Tokens => f.write_str("its tokens are no integer from 0 on"),
            Self::Dtype { name } => write!(f, "its dtype is {name:?}"),
            Self::Dtypes { told } => {
                write!(f, "it is a .npy file of {told}, and told to be another")
            }
            Self::Npy(error) => write!(f, "it is {error}"),
            Self::Unknown => f.write_str(
                "it tells no shape; text without one is understood where layers and topk are given",
            ),
            Self::Foreign => f.write_str("its bytes are no .npy file, and it tells no shape"),
            Self::Layers { told, hinted } => write!(f, "it has {told} layers, not {hinted}"),
            Self::Topk { told, hinted } => write!(f, "it has {told} experts a layer, not {hinted}"),
            Self::Size { is, needed: Some(needed) } => {
                write!(f, "it has {is} bytes of elements, and its shape needs {needed}")
            }
            Self::Size { is, needed: None } => {
                write!(
                    f,
                    "it has {is} bytes of elements, and its shape needs more than there can be"
                )
            }
            Self::Rows { is, row: Some(row) } => write!(f, "its {is} bytes are no rows of {row}"),
            Self::Rows { is, row: None } => {
                write!(f, "its {is} bytes are no rows of more bytes than there can be")
            }
            Self::Nrlre => {
                f.write_str("its text does not go on as nrlre1:<dtype>:<SxLxK>:<base64>")
            }
            Self::Json { offset } => write!(f, "its text is no JSON from byte {offset} on"),
            Self::Data => f.write_str("its data is neither text nor bytes"),
            Self::Encoding => f.write_str("its encoding is none that its data can have"),
        }
    }
}

impl Error for PayloadError {}

impl From<NpyError> for PayloadError {
    fn from(error: NpyError) -> Self {
        Self::Npy(error)
    }
}

/// How many of the first bytes of a payload must be known to tell what it holds.
///
/// # Errors
/// Where no payload begins with `first`, which are twelve bytes, or all.
pub fn head_size(first: &[u8]) -> Result<usize, PayloadError> {
    if is_npy(first) { Ok(Npy::size_of(first)?) } else { Ok(0) }
}

/// Bytes with what came with them. They may be a `.npy` file where they came without a shape, and otherwise rows of what
/// the caller knows; `implied` is their dtype where nobody tells it, and none where they must be a file. None where
/// that depends on how many bytes they are exactly.
///
/// # Errors
/// What is wrong with them.
pub fn payload(
    bytes: Bytes<'_>,
    told: &Told,
    hints: &Hints,
    implied: Option<Dtype>,
) -> Result<Option<Payload>, PayloadError> {
    let start = match told.start {
        Some(start) => whole(start).ok_or(PayloadError::Start)?,
        None => hints.start.unwrap_or(0),
    };
    let dtype = told.dtype;
    if told.shape.is_none() && is_npy(bytes.head) {
        let npy = Npy::read(bytes.head)?;
        if dtype.is_some_and(|dtype| dtype != npy.dtype) {
            return Err(PayloadError::Dtypes { told: npy.dtype });
        }
        let payload =
            Payload { dtype: npy.dtype, shape: Shape::of(npy.shape), start, skipped: npy.size };
        return checked(bytes, payload, hints);
    }
    let implied = implied.ok_or(PayloadError::Foreign)?;
    let dtype = dtype.or(hints.dtype).unwrap_or(implied);
    let shape = match told.shape.as_deref() {
        Some(shape) => shape_of(shape)?,
        None => match shape_of_rows(bytes, dtype, hints)? {
            Some(shape) => shape,
            None => return Ok(None),
        },
    };
    checked(bytes, Payload { dtype, shape, start, skipped: 0 }, hints)
}

fn checked(
    bytes: Bytes<'_>,
    payload: Payload,
    hints: &Hints,
) -> Result<Option<Payload>, PayloadError> {
    let Payload { shape, dtype, skipped, .. } = payload;
    if let Some(hinted) = hints.layers.filter(|&hinted| hinted != shape.layers) {
        return Err(PayloadError::Layers { told: shape.layers, hinted });
    }
    if let Some(hinted) = hints.topk.filter(|&hinted| hinted != shape.topk) {
        return Err(PayloadError::Topk { told: shape.topk, hinted });
    }
    let is = bytes.size.checked_sub(skipped).ok_or(NpyError::Truncated)?;
    match shape.size(dtype) {
        Some(size) if size == is => Ok(Some(payload)),
        Some(size) if size < is && !bytes.is_exact => Ok(None),
        needed => Err(PayloadError::Size { is, needed }),
    }
}

/// As many rows as there are.
fn shape_of_rows(
    bytes: Bytes<'_>,
    dtype: Dtype,
    hints: &Hints,
) -> Result<Option<Shape>, PayloadError> {
    let (Some(layers), Some(topk)) = (hints.layers, hints.topk) else {
        return Err(PayloadError::Unknown);
    };
    if !bytes.is_exact {
        return Ok(None);
    }
    let is = bytes.size;
    match (Shape { rows: 1, layers, topk }).row_size(dtype) {
        Some(0) if is == 0 => Ok(Some(Shape { rows: 0, layers, topk })),
        Some(row) if row != 0 && is.is_multiple_of(row) => {
            Ok(Some(Shape { rows: is / row, layers, topk }))
        }
        row => Err(PayloadError::Rows { is, row }),
    }
}

fn shape_of(shape: &[f64]) -> Result<Shape, PayloadError> {
    let &[rows, layers, topk] = shape else { return Err(PayloadError::Shape) };
    let whole = |value| whole(value).ok_or(PayloadError::Shape);
    Ok(Shape { rows: whole(rows)?, layers: whole(layers)?, topk: whole(topk)? })
}

/// A number that counts something.
#[must_use]
pub fn whole(value: f64) -> Option<usize> {
    ((0.0..=SAFE).contains(&value) && value.fract() == 0.0).then_some(value as usize)
}

pub(crate) fn dtype_named(name: &[u8]) -> Result<Dtype, PayloadError> {
    let error = || PayloadError::Dtype { name: String::from_utf8_lossy(name).into_owned() };
    Dtype::named(name).ok_or_else(error)
}
