//! Why nothing was made of a tape.

use std::error::Error;
use std::fmt;

use offloop_grammar::CheckError;

use crate::tape::Malformed;

/// A value has more elements or bytes than `MessagePack` can say, or than there is memory to count them.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscodeError<E> {
    Malformed,
    /// A fragment is no JSON, and nobody had looked.
    Json(CheckError),
    /// [`TooLarge`].
    TooLarge,
    /// What `Memory::grow` or `poll` failed with.
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
