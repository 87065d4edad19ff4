//! The errors of printing a tape. The glue makes failures of them.

use std::error::Error;
use std::fmt;

use offloop_grammar::CheckError;

use crate::tape::Malformed;

/// The error of a value with more elements or bytes than `MessagePack` has room for, or than memory can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a value has more elements or bytes than MessagePack can say, or memory can hold",
        )
    }
}

impl Error for TooLarge {}

/// The error of containers that are nested deeper than `max_depth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooDeep {
    pub max_depth: usize,
}

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the value is nested more than maxDepth, {}, levels deep", self.max_depth)
    }
}

impl Error for TooDeep {}

/// Why a tape cannot be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscodeError<E> {
    /// See [`Malformed`].
    Malformed,
    /// Raw JSON is invalid, and was not checked before.
    Json(CheckError),
    /// See [`TooLarge`].
    TooLarge,
    /// See [`TooDeep`].
    TooDeep(TooDeep),
    /// `Memory::grow` or `poll` failed.
    Stopped(E),
}

impl<E: fmt::Display> fmt::Display for TranscodeError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => Malformed.fmt(f),
            Self::Json(error) => error.fmt(f),
            Self::TooLarge => {
                f.write_str("more elements or bytes in one value than can be written")
            }
            Self::TooDeep(error) => error.fmt(f),
            Self::Stopped(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for TranscodeError<E> {}

impl<E> From<Malformed> for TranscodeError<E> {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl<E> From<CheckError> for TranscodeError<E> {
    fn from(error: CheckError) -> Self {
        Self::Json(error)
    }
}
