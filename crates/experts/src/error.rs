//! The failure of a list of turns: [`TurnList`](crate::TurnList) returns it to the glue.

use std::error::Error;
use std::fmt;

use crate::{PayloadError, PlanError};

/// A failure of resolving, planning or decoding a list of turns. `S` is the error of the poll that stopped the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpertsError<S> {
    /// A payload is malformed.
    Payload {
        /// Index of its turn; `None` for a payload that is decoded alone.
        turn: Option<usize>,
        /// Byte of the input at which decoding its data failed, if known.
        offset: Option<usize>,
        error: PayloadError,
    },
    /// The turns do not fit together.
    Plan(PlanError),
    /// The list has no payload to decode alone.
    NoTurn,
    /// The list was not planned before it was filled.
    NoPlan,
    /// The poll stopped the work.
    Stopped(S),
}

impl<S> ExpertsError<S> {
    /// Names the turn of a payload's failure; other failures stay unchanged.
    pub(crate) fn in_turn(self, turn: Option<usize>) -> Self {
        match self {
            Self::Payload { offset, error, .. } => Self::Payload { turn, offset, error },
            other => other,
        }
    }

    /// Counts the offset of a payload's failure from `start`; without a start the failure has no offset.
    pub(crate) fn offset_by(self, start: Option<usize>) -> Self {
        match self {
            Self::Payload { turn, offset, error } => {
                let offset = start.zip(offset).map(|(start, offset)| start + offset);
                Self::Payload { turn, offset, error }
            }
            other => other,
        }
    }
}

impl<S> From<PayloadError> for ExpertsError<S> {
    fn from(error: PayloadError) -> Self {
        Self::Payload { turn: None, offset: error.data_offset(), error }
    }
}

impl<S> From<PlanError> for ExpertsError<S> {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl<S> fmt::Display for ExpertsError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Payload { turn: Some(turn), error, .. } => write!(f, "turn {turn}: {error}"),
            Self::Payload { turn: None, error, .. } => write!(f, "routed experts: {error}"),
            Self::Plan(error) => error.fmt(f),
            Self::NoTurn => f.write_str("nothing was given to decode"),
            Self::NoPlan => f.write_str("nothing was planned"),
            Self::Stopped(_) => f.write_str("stopped"),
        }
    }
}

impl<S: fmt::Debug> Error for ExpertsError<S> {}
