//! What a policy makes of a tail.

use crate::judge::Cause;
use crate::tail::Tail;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Quarantine,
    Truncate,
    Isolate,
    /// Refuses what `Quarantine` would change.
    Strict,
    /// Changes nothing.
    Report,
}

impl Policy {
    #[must_use]
    pub fn changes(self) -> bool {
        matches!(self, Self::Quarantine | Self::Truncate | Self::Isolate)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    None,
    Terminated,
    Quarantined,
    Truncated,
    Isolated,
}

/// First the cut, then the "\n".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub action: Action,
    /// The size to cut the file to.
    pub cut: Option<u64>,
    pub adds_newline: bool,
}

impl Plan {
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

    /// How large a file of `size` bytes is then.
    pub fn size_after(&self, size: u64) -> u64 {
        self.cut.unwrap_or(size) + u64::from(self.adds_newline)
    }
}

/// Why the tail is not clean.
pub(crate) fn cause_of(tail: &Tail) -> Option<Cause> {
    match tail.torn {
        Some(torn) => Some(torn.cause),
        None if tail.is_glued => Some(Cause::Glued),
        None => tail.is_unterminated.then_some(Cause::Unterminated),
    }
}
