//! The option `lift`: which values of a body are taken out, and what is made of them. `parse` resolves it once a call,
//! on the JS thread; tasks read it.

use offloop_experts::Hints;

use crate::numbers::ElementType;
use crate::pattern::{PatternError, Patterns};
use crate::scan::AcceptedType;

/// The result that a value is lifted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiftKind {
    /// The bytes that a base64 string decodes to.
    Base64,
    /// A typed array of the numbers of an array.
    Numbers(ElementType),
    /// The bytes of the value's JSON.
    Raw,
    /// Routed experts, decoded.
    Experts(Hints),
}

impl LiftKind {
    /// Returns the kind that the option calls `name`; `hints` serve routed experts alone.
    #[must_use]
    pub fn named(name: &str, hints: Hints) -> Option<Self> {
        Some(match name {
            "base64" => Self::Base64,
            "int32" => Self::Numbers(ElementType::Int32),
            "uint8" => Self::Numbers(ElementType::Uint8),
            "uint16" => Self::Numbers(ElementType::Uint16),
            "float32" => Self::Numbers(ElementType::Float32),
            "float64" => Self::Numbers(ElementType::Float64),
            "raw" => Self::Raw,
            "experts" => Self::Experts(hints),
            _ => return None,
        })
    }

    /// Returns the JSON type that a value must have to be lifted.
    #[must_use]
    pub fn accepted(self) -> AcceptedType {
        match self {
            Self::Base64 => AcceptedType::Text,
            Self::Numbers(_) => AcceptedType::Numbers,
            Self::Raw => AcceptedType::Any,
            Self::Experts(_) => AcceptedType::Payload,
        }
    }
}

/// Resolved options of `parse` and `split`.
#[derive(Clone, Debug, Default)]
pub struct LiftConfig {
    pub(crate) patterns: Patterns,
    /// The kind of each pattern, in the order of the option.
    pub(crate) kinds: Vec<LiftKind>,
    pub(crate) keeps_mismatches: bool,
}

impl LiftConfig {
    /// Compiles `pointers`, which are UTF-8. `kinds` holds the kind for each of them.
    ///
    /// With `keeps_mismatches`, a value of another JSON type stays in the body. Otherwise it is an error.
    ///
    /// # Errors
    /// The index of the first invalid pointer, and why it is invalid.
    pub fn new(
        pointers: &[Vec<u8>],
        kinds: Vec<LiftKind>,
        keeps_mismatches: bool,
    ) -> Result<Self, (usize, PatternError)> {
        Ok(Self { patterns: Patterns::new(pointers)?, kinds, keeps_mismatches })
    }

    pub(crate) fn kind(&self, pattern: usize) -> Option<LiftKind> {
        self.kinds.get(pattern).copied()
    }
}
