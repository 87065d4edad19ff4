//! Errors of taking a body apart. Tasks return them; the glue turns them into data for JavaScript.

use std::error::Error;
use std::fmt;

use offloop_base64::DecodeError;
use offloop_experts::PayloadError;
use offloop_grammar::CheckError;

use crate::scan::ScanError;

/// Why a body cannot be taken apart. `E` is the error of `poll`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyError<E> {
    /// Not valid JSON.
    Json(CheckError),
    /// A value cannot be lifted.
    Lift(LiftError),
    /// The rest is longer than the rules allow.
    Rest(RestTooLong),
    /// The memory of a value is too small, which only a defect of the plan can cause.
    Memory(DecodeError),
    /// The error of `poll`.
    Stopped(E),
}

impl<E> BodyError<E> {
    /// Moves the offset by `bytes`.
    pub(crate) fn moved(self, bytes: usize) -> Self {
        match self {
            Self::Json(CheckError { offset }) => Self::Json(CheckError { offset: offset + bytes }),
            Self::Lift(error) => Self::Lift(LiftError { offset: error.offset + bytes, ..error }),
            other => other,
        }
    }
}

/// The rest of a body is longer than a string can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestTooLong {
    /// Bytes of the rest.
    pub size: usize,
}

impl fmt::Display for RestTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size;
        write!(
            f,
            "the rest of the body, {size} bytes, is longer than a string can be: lift or drop heavy values"
        )
    }
}

impl Error for RestTooLong {}

/// A value that cannot be lifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiftError {
    /// JSON Pointer of the value.
    pub pointer: String,
    /// Byte of the body at which the value is invalid.
    pub offset: usize,
    pub cause: LiftCause,
}

/// Why the bytes of a value cannot be made. Its pointer is found only for an error that is returned.
pub(crate) enum ValueError<E> {
    /// The text is invalid at this offset.
    Lift { offset: usize, cause: LiftCause },
    /// The memory is too small.
    Memory(DecodeError),
    /// The error of `poll`.
    Stopped(E),
}

impl<E> ValueError<E> {
    /// Returns the error of the value at `pointer`.
    pub(crate) fn at(self, pointer: impl FnOnce() -> String) -> BodyError<E> {
        match self {
            Self::Lift { offset, cause } => LiftError { pointer: pointer(), offset, cause }.into(),
            Self::Memory(error) => BodyError::Memory(error),
            Self::Stopped(error) => BodyError::Stopped(error),
        }
    }
}

/// Why a value cannot be lifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiftCause {
    /// The value has another JSON type.
    Mismatch,
    /// The string is not base64.
    Base64,
    /// The string is base64 of so many bytes, which are not a whole number of elements.
    Length(usize),
    /// A number does not fit its element type.
    Number,
    /// The routed experts are invalid.
    Experts(PayloadError),
}

impl fmt::Display for LiftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, cause, .. } = self;
        let what = match cause {
            LiftCause::Mismatch => "of another type",
            LiftCause::Base64 => "no base64",
            LiftCause::Length(size) => {
                return write!(
                    f,
                    "the value at {pointer:?} is base64 of {size} bytes, no whole number of elements"
                );
            }
            LiftCause::Number => "an array of numbers of which one does not fit its element type",
            LiftCause::Experts(error) => {
                return write!(f, "the routed experts at {pointer:?}: {error}");
            }
        };
        write!(f, "the value at {pointer:?} is {what}")
    }
}

impl Error for LiftError {}

impl<E: fmt::Display> fmt::Display for BodyError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => error.fmt(f),
            Self::Lift(error) => error.fmt(f),
            Self::Rest(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
            Self::Stopped(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for BodyError<E> {}

impl<E> From<LiftError> for BodyError<E> {
    fn from(error: LiftError) -> Self {
        Self::Lift(error)
    }
}

impl<E> From<ScanError<E>> for BodyError<E> {
    fn from(error: ScanError<E>) -> Self {
        match error {
            ScanError::Json(error) => Self::Json(error),
            ScanError::Stopped(error) => Self::Stopped(error),
        }
    }
}
