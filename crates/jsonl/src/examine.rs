//! What reading a file may end with, and who is told how far it has come.

use std::error::Error;
use std::{fmt, io};

#[derive(Debug)]
pub enum ExamineError {
    Read(io::Error),
    /// The file ends before the size it had.
    Shrunk,
    /// This is no JSONL file with a torn tail; the torn rows go back to `offset` at least.
    Corrupt {
        offset: u64,
    },
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

impl From<Stopped> for ExamineError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// Bytes that need no more be looked at, of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub bytes: u64,
    pub total: u64,
}

/// The caller wants no more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Is told how far the work has come every few hundred microseconds, and may end it.
pub type Watch<'a> = &'a dyn Fn(Progress) -> Result<(), Stopped>;
