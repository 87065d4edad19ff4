//! The option `lift`: which values of a body are taken out, and what is made of them. `parse` resolves it once a call,
//! on the JS thread; tasks read it.

use offloop_experts::Hints;

use crate::nested::Nesting;
use crate::numbers::ElementType;
use crate::pattern::{PatternError, Patterns};
use crate::scan::{AcceptedType, Search};

/// The result that a value is lifted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiftKind {
    /// The bytes that a base64 string decodes to.
    Base64,
    /// A typed array of the little-endian numbers that a base64 string decodes to.
    Base64Numbers(ElementType),
    /// Typed arrays of the numbers of an array.
    Numbers(Nesting, ElementType),
    /// The bytes of the value's JSON.
    Raw,
    /// Nothing. The caller hears of it if it `is_listed`.
    Drop { is_listed: bool },
    /// Routed experts, decoded.
    Experts(Hints),
}

impl LiftKind {
    /// Returns the kind that `src/parse/options.ts` calls `name`; `hints` serve routed experts alone.
    #[must_use]
    pub fn named(name: &str, hints: Hints) -> Option<Self> {
        let (form, element) = name.rsplit_once(':').unzip();
        let element = ElementType::named(element.unwrap_or(name));
        Some(match (form, element) {
            (None, Some(element)) => Self::Numbers(Nesting::Flat, element),
            (Some("ragged"), Some(element)) => Self::Numbers(Nesting::Ragged, element),
            (Some("tensor"), Some(element)) => Self::Numbers(Nesting::Tensor, element),
            (Some("base64"), Some(element)) => Self::Base64Numbers(element),
            _ => match name {
                "base64" => Self::Base64,
                "raw" => Self::Raw,
                "drop" => Self::Drop { is_listed: false },
                "drop:listed" => Self::Drop { is_listed: true },
                "experts" => Self::Experts(hints),
                _ => return None,
            },
        })
    }

    /// Returns the JSON type that a value must have to be lifted.
    #[must_use]
    pub fn accepted(self) -> AcceptedType {
        match self {
            Self::Base64 | Self::Base64Numbers(_) => AcceptedType::Text,
            Self::Numbers(nesting, _) => AcceptedType::Numbers(nesting),
            Self::Raw | Self::Drop { .. } => AcceptedType::Any,
            Self::Experts(_) => AcceptedType::Payload,
        }
    }
}

/// Rules for the values that are not lifted.
#[derive(Clone, Copy, Debug)]
pub struct RestRules {
    /// Whether a value that cannot be lifted stays in the rest. Otherwise it is an error.
    pub keeps_mismatches: bool,
    /// Most bytes of a string's JSON. Longer strings become `null`.
    pub longest_string: usize,
    /// Most UTF-16 code units of the rest.
    pub longest_rest: usize,
}

impl Default for RestRules {
    fn default() -> Self {
        Self { keeps_mismatches: false, longest_string: usize::MAX, longest_rest: usize::MAX }
    }
}

/// Resolved options of `parse` and `split`.
#[derive(Clone, Debug, Default)]
pub struct LiftConfig {
    pub(crate) patterns: Patterns,
    /// The kind of each pattern, in the order of the option.
    pub(crate) kinds: Vec<LiftKind>,
    /// The type that each pattern accepts.
    accepted: Vec<AcceptedType>,
    pub(crate) rules: RestRules,
}

impl LiftConfig {
    /// Compiles `pointers`, which are UTF-8. `kinds` holds the kind for each of them.
    ///
    /// # Errors
    /// The index of the first invalid pointer, and why it is invalid.
    pub fn new(
        pointers: &[Vec<u8>],
        kinds: Vec<LiftKind>,
        rules: RestRules,
    ) -> Result<Self, (usize, PatternError)> {
        let accepted = kinds.iter().map(|kind| kind.accepted()).collect();
        Ok(Self { patterns: Patterns::new(pointers)?, kinds, accepted, rules })
    }

    pub(crate) fn kind(&self, pattern: usize) -> Option<LiftKind> {
        self.kinds.get(pattern).copied()
    }

    /// Returns whether a scan finds nothing in any text.
    pub(crate) fn finds_nothing(&self) -> bool {
        self.kinds.is_empty() && self.rules.longest_string == usize::MAX
    }

    /// Returns what a scan searches for.
    pub(crate) fn search(&self) -> Search<'_> {
        Search {
            patterns: &self.patterns,
            accepted: &self.accepted,
            longest_string: self.rules.longest_string,
        }
    }
}
