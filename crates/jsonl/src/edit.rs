//! Decides how a policy changes a tail. Pure; `repair` calls it.

use crate::judge::RowCause;
use crate::tail::Tail;

/// Way to treat a torn tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Moves it to a sidecar.
    Quarantine,
    /// Cuts it off.
    Truncate,
    /// Ends it with a "\n".
    Isolate,
    /// Fails where `Quarantine` would change something.
    Strict,
    /// Changes nothing and reports what `Quarantine` would do.
    Report,
}

impl Policy {
    /// Returns whether the policy may change files.
    #[must_use]
    pub fn changes(self) -> bool {
        matches!(self, Self::Quarantine | Self::Truncate | Self::Isolate)
    }
}

/// Change that a repair made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    None,
    /// Added the "\n" that the last row lacked.
    Terminated,
    Quarantined,
    Truncated,
    Isolated,
}

impl Action {
    /// Returns the name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Terminated => "terminated",
            Self::Quarantined => "quarantined",
            Self::Truncated => "truncated",
            Self::Isolated => "isolated",
        }
    }
}

/// Change of a tail: first the cut, then the "\n".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailEdit {
    pub action: Action,
    /// Size to cut the file to.
    pub cut: Option<u64>,
    pub adds_newline: bool,
}

impl TailEdit {
    pub fn new(tail: &Tail, policy: Policy) -> Self {
        let nothing = Self { action: Action::None, cut: None, adds_newline: false };
        let newline = |action| Self { action, adds_newline: true, ..nothing };
        let Some(torn) = tail.torn else {
            return if tail.is_unterminated { newline(Action::Terminated) } else { nothing };
        };
        let cut =
            |action| Self { action, cut: Some(torn.offset), adds_newline: torn.is_behind_row };
        match policy {
            Policy::Isolate if tail.ends_with_newline => nothing,
            Policy::Isolate => newline(Action::Isolated),
            Policy::Truncate => cut(Action::Truncated),
            Policy::Quarantine | Policy::Strict | Policy::Report => cut(Action::Quarantined),
        }
    }

    /// Returns the size that a file of `size` bytes has after the change.
    pub fn size_after(&self, size: u64) -> u64 {
        self.cut.unwrap_or(size) + u64::from(self.adds_newline)
    }
}

/// Returns why the tail is not clean.
pub(crate) fn cause_of(tail: &Tail) -> Option<RowCause> {
    match tail.torn {
        Some(torn) => Some(torn.cause),
        None if tail.is_glued => Some(RowCause::Glued),
        None => tail.is_unterminated.then_some(RowCause::Unterminated),
    }
}
