//! Finds what a payload holds: from what its sender declared, from its first bytes, and from the caller's hints.
//!
//! Runs on the JS thread for headers and in a task otherwise; `resolve.rs` calls it.

use std::error::Error;
use std::fmt;

use offloop_base64::DecodeError;

use crate::npy::{NpyError, NpyHeader, is_npy};
use crate::{Base85Error, Dtype};

/// `Number.MAX_SAFE_INTEGER`: the largest integer that JavaScript counts exactly.
pub(crate) const SAFE: f64 = 9_007_199_254_740_991.0;

/// Shape of a payload: `rows` rows of `layers` × `topk` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub rows: usize,
    pub layers: usize,
    pub topk: usize,
}

impl Shape {
    /// Returns the bytes of all elements; `None` if that overflows.
    #[must_use]
    pub fn size(self, dtype: Dtype) -> Option<usize> {
        self.row_size(dtype)?.checked_mul(self.rows)
    }

    /// Returns the bytes of one row; `None` if that overflows.
    #[must_use]
    pub fn row_size(self, dtype: Dtype) -> Option<usize> {
        self.layers.checked_mul(self.topk)?.checked_mul(dtype.size())
    }

    /// Converts a shape in C order.
    fn of(shape: [usize; 3]) -> Self {
        let [rows, layers, topk] = shape;
        Self { rows, layers, topk }
    }
}

/// Fields that came with the data, not checked yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declared {
    pub shape: Option<Vec<f64>>,
    pub dtype: Option<Dtype>,
    pub start: Option<f64>,
}

/// Fields that the caller gives for payloads that do not declare them. Declared `layers` and `topk` must equal the hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    pub layers: Option<usize>,
    pub topk: Option<usize>,
    pub dtype: Option<Dtype>,
    pub start: Option<usize>,
}

/// First bytes of a payload, and the size of all its bytes.
#[derive(Clone, Copy, Debug)]
pub struct PayloadHead<'a> {
    /// Header of a `.npy` file; empty if the payload is not one.
    pub bytes: &'a [u8],
    /// Bytes of the whole payload; an upper bound unless `is_exact`.
    pub size: usize,
    pub is_exact: bool,
}

/// Dtype, shape and position of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    pub dtype: Dtype,
    pub shape: Shape,
    /// Position of the first row among the sample's tokens.
    pub start: usize,
    /// Bytes of the header before the elements.
    pub skipped: usize,
}

impl Payload {
    /// Returns the bytes of the elements.
    #[must_use]
    pub fn size(&self) -> usize {
        // `checked` has made sure that the size does not overflow.
        self.shape.size(self.dtype).unwrap_or(usize::MAX)
    }
}

/// Why a payload is malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayloadError {
    /// The shape is not a list of three integers ≥ 0.
    Shape,
    /// The start is not an integer ≥ 0.
    Start,
    /// The tokens of the turn are not an integer ≥ 0.
    Tokens,
    /// The dtype is not one of [`Dtype`].
    Dtype {
        name: String,
    },
    /// A `.npy` file has another dtype than was declared.
    Dtypes {
        file: Dtype,
    },
    Npy(NpyError),
    /// The text is not base64.
    Base64(DecodeError),
    /// The text is not base85.
    Base85(Base85Error),
    /// The payload declares no shape, and the hints lack `layers` or `topk`.
    Unknown,
    /// The bytes are not a `.npy` file, which bytes without a shape must be.
    Foreign,
    /// The payload has another number of layers than the hints.
    Layers {
        declared: usize,
        hinted: usize,
    },
    /// The payload has another number of experts a layer than the hints.
    Topk {
        declared: usize,
        hinted: usize,
    },
    /// The elements have `is` bytes and their shape needs `needed`; `None` if that overflows.
    Size {
        is: usize,
        needed: Option<usize>,
    },
    /// The `is` bytes are not a whole number of rows of `row` bytes.
    Rows {
        is: usize,
        row: Option<usize>,
    },
    /// The text starts with `nrlre1:` but lacks the fields of that format.
    Nrlre,
    /// The text starts like an object but is not JSON from `offset` on.
    Json {
        offset: usize,
    },
    /// The object has no data, or its data is not a string.
    Data,
    /// The encoding of the object is neither base64 nor base85.
    Encoding,
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape => f.write_str("its shape is no list of three integers from 0 on"),
            Self::Start => f.write_str("its start is no integer from 0 on"),
            Self::Tokens => f.write_str("its tokens are no integer from 0 on"),
            Self::Dtype { name } => write!(f, "its dtype is {name:?}"),
            Self::Dtypes { file } => {
                write!(f, "it is a .npy file of {file}, and told to be another")
            }
            Self::Npy(error) => write!(f, "it is {error}"),
            Self::Base64(error) => error.fmt(f),
            Self::Base85(error) => error.fmt(f),
            Self::Unknown => f.write_str(
                "it tells no shape; text without one is understood where layers and topk are given",
            ),
            Self::Foreign => f.write_str("its bytes are no .npy file, and it tells no shape"),
            Self::Layers { declared, hinted } => {
                write!(f, "it has {declared} layers, not {hinted}")
            }
            Self::Topk { declared, hinted } => {
                write!(f, "it has {declared} experts a layer, not {hinted}")
            }
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

impl PayloadError {
    /// Offset in the encoded data at which decoding failed; `None` for other failures.
    #[must_use]
    pub fn data_offset(&self) -> Option<usize> {
        match self {
            Self::Base64(error) => error.offset(),
            Self::Base85(error) => Some(error.offset()),
            _ => None,
        }
    }
}

impl From<DecodeError> for PayloadError {
    fn from(error: DecodeError) -> Self {
        Self::Base64(error)
    }
}

impl From<Base85Error> for PayloadError {
    fn from(error: Base85Error) -> Self {
        Self::Base85(error)
    }
}

impl From<NpyError> for PayloadError {
    fn from(error: NpyError) -> Self {
        Self::Npy(error)
    }
}

/// Returns the size of the `.npy` header that a payload starts with; 0 if it does not start with one.
///
/// `first` holds the first 12 bytes, or the whole payload if that is shorter.
///
/// # Errors
/// If the start of the header is malformed.
pub fn head_size(first: &[u8]) -> Result<usize, PayloadError> {
    if is_npy(first) { Ok(NpyHeader::size_of(first)?) } else { Ok(0) }
}

/// Finds dtype, shape and start of a payload.
///
/// Without a declared shape the payload is a `.npy` file, or rows of the `layers` and `topk` of the hints. `implied` is
/// the dtype if neither the payload nor the hints name one; it is `None` if the payload must be a `.npy` file.
/// Returns `None` if the answer needs the exact size.
///
/// # Errors
/// If the payload is malformed or does not fit the hints.
pub fn payload(
    head: PayloadHead<'_>,
    declared: &Declared,
    hints: &Hints,
    implied: Option<Dtype>,
) -> Result<Option<Payload>, PayloadError> {
    let start = match declared.start {
        Some(start) => whole(start).ok_or(PayloadError::Start)?,
        None => hints.start.unwrap_or(0),
    };
    let dtype = declared.dtype;
    if declared.shape.is_none() && is_npy(head.bytes) {
        let npy = NpyHeader::read(head.bytes)?;
        if dtype.is_some_and(|dtype| dtype != npy.dtype) {
            return Err(PayloadError::Dtypes { file: npy.dtype });
        }
        let payload =
            Payload { dtype: npy.dtype, shape: Shape::of(npy.shape), start, skipped: npy.size };
        return checked(head, payload, hints);
    }
    let implied = implied.ok_or(PayloadError::Foreign)?;
    let dtype = dtype.or(hints.dtype).unwrap_or(implied);
    let shape = match declared.shape.as_deref() {
        Some(shape) => shape_of(shape)?,
        None => match shape_of_rows(head, dtype, hints)? {
            Some(shape) => shape,
            None => return Ok(None),
        },
    };
    checked(head, Payload { dtype, shape, start, skipped: 0 }, hints)
}

/// Checks a payload against the hints and its size; `None` if the size is not exact.
fn checked(
    head: PayloadHead<'_>,
    payload: Payload,
    hints: &Hints,
) -> Result<Option<Payload>, PayloadError> {
    let Payload { shape, dtype, skipped, .. } = payload;
    if let Some(hinted) = hints.layers.filter(|&hinted| hinted != shape.layers) {
        return Err(PayloadError::Layers { declared: shape.layers, hinted });
    }
    if let Some(hinted) = hints.topk.filter(|&hinted| hinted != shape.topk) {
        return Err(PayloadError::Topk { declared: shape.topk, hinted });
    }
    let is = head.size.checked_sub(skipped).ok_or(NpyError::Truncated)?;
    match shape.size(dtype) {
        Some(size) if size == is => Ok(Some(payload)),
        Some(size) if size < is && !head.is_exact => Ok(None),
        needed => Err(PayloadError::Size { is, needed }),
    }
}

/// Returns the shape of all rows; `None` if the size is not exact.
fn shape_of_rows(
    head: PayloadHead<'_>,
    dtype: Dtype,
    hints: &Hints,
) -> Result<Option<Shape>, PayloadError> {
    let (Some(layers), Some(topk)) = (hints.layers, hints.topk) else {
        return Err(PayloadError::Unknown);
    };
    if !head.is_exact {
        return Ok(None);
    }
    let is = head.size;
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

/// Converts a number of JavaScript that is an integer ≥ 0.
#[must_use]
pub fn whole(value: f64) -> Option<usize> {
    ((0.0..=SAFE).contains(&value) && value.fract() == 0.0).then_some(value as usize)
}

pub(crate) fn dtype_named(name: &[u8]) -> Result<Dtype, PayloadError> {
    let error = || PayloadError::Dtype { name: String::from_utf8_lossy(name).into_owned() };
    Dtype::named(name).ok_or_else(error)
}
