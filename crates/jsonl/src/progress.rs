//! Progress, interruption and errors of reading a file. Every walk over a file uses them.

use std::error::Error;
use std::{fmt, io};

/// Why reading a file ended.
#[derive(Debug)]
pub enum ExamineError {
    Read(io::Error),
    /// The file ends before the size that it had.
    Shrunk,
    /// The file is not a JSONL file with a torn tail. Torn rows begin at `offset` or before.
    Corrupt {
        offset: u64,
    },
    /// The caller ended the work.
    Stopped,
}

impl fmt::Display for ExamineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Shrunk => f.write_str("the file became shorter while it was read"),
            Self::Corrupt { offset } => {
                write!(f, "no JSONL file with a torn tail: torn rows from byte {offset} on")
            }
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl Error for ExamineError {}

impl From<Interrupt> for ExamineError {
    fn from(_: Interrupt) -> Self {
        Self::Stopped
    }
}

/// Bytes that are done, of all bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExamineProgress {
    pub bytes: u64,
    pub total: u64,
}

/// Error of a callback that ends the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt;

/// Gets the progress every few hundred microseconds; an error ends the work.
pub type ProgressFn<'a> = &'a dyn Fn(ExamineProgress) -> Result<(), Interrupt>;

/// Called every few hundred microseconds, also between the pieces of long rows; an error ends the work.
pub type PollFn<'a> = &'a dyn Fn() -> Result<(), Interrupt>;
