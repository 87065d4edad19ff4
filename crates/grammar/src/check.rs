//! Whether bytes are JSON, exactly as `JSON.parse` of their text would say.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;

use crate::read::{Stop, Visit, read};

/// Bytes that are no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckError {
    /// The first byte at which no JSON can go on so, or how many there are where it ends too early.
    pub offset: usize,
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no JSON can go on so at byte {}", self.offset)
    }
}

impl Error for CheckError {}

/// # Errors
/// Where `json` is not one JSON value in UTF-8, with white space around it or not.
pub fn check(json: &[u8]) -> Result<(), CheckError> {
    read(json, &mut Nobody).map_err(|Stop::Unexpected(offset)| CheckError { offset })
}

struct Nobody;

impl Visit for Nobody {
    type Error = Infallible;

    fn skips_integers(&self) -> bool {
        true
    }
}
