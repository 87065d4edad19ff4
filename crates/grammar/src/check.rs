//! Validates JSON exactly as `JSON.parse` does. Runs on any thread; `json` and the tests of other crates call it.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;

use crate::read::{JsonVisitor, ReadError, read};

/// Not valid JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckError {
    /// The first invalid byte, or the length of a text that ends too early.
    pub offset: usize,
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no JSON can go on so at byte {}", self.offset)
    }
}

impl Error for CheckError {}

/// Validates that `json` is one JSON value in UTF-8. White space may surround it.
///
/// # Errors
/// The offset at which `json` is invalid.
pub fn check(json: &[u8]) -> Result<(), CheckError> {
    read(json, &mut Ignore).map_err(|ReadError::Unexpected(offset)| CheckError { offset })
}

/// Ignores every token.
struct Ignore;

impl JsonVisitor for Ignore {
    type Error = Infallible;

    fn skips_integers(&self) -> bool {
        true
    }
}
