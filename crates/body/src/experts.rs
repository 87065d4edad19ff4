//! Routed experts inside a body. Runs in tasks; `plan` resolves a payload, `fill` decodes it.

use std::ops::Range;

use offloop_experts::{Hints, PayloadError, ResolvedPayload};
use offloop_grammar::unescaped;

use crate::error::{LiftCause, ValueError};
use crate::scan::{MatchedType, MatchedValue, inside};

/// Resolves the payload of a matched value. Returns `None` where no scan can tell what it holds.
///
/// # Errors
/// An invalid payload, and those of `poll`.
pub(crate) fn resolve<E>(
    text: &[u8],
    matched: &MatchedValue,
    hints: &Hints,
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<Option<ResolvedPayload>, ValueError<E>> {
    let arrived = text.get(payload_range(matched)).unwrap_or_default();
    let has_escapes = matched.value_type == MatchedType::Text { has_escapes: true };
    let own = has_escapes.then(|| unescaped(arrived));
    let mut scan = || poll().map_err(PayloadFailure::Stopped);
    ResolvedPayload::from_text(arrived, own, hints, Some(&mut scan))
        .map_err(|failure| failure.at(matched.range.start))
}

/// Decodes a payload to `out`, which has the payload's size.
///
/// # Errors
/// Invalid data, and those of `poll`.
pub(crate) fn decode<E>(
    text: &[u8],
    matched: &MatchedValue,
    payload: &ResolvedPayload,
    out: &mut [u8],
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<(), ValueError<E>> {
    let range = payload_range(matched);
    let arrived = text.get(range.clone()).unwrap_or_default();
    let mut poll = || poll().map_err(PayloadFailure::Stopped);
    payload.decode(arrived, out, &mut poll).map_err(|failure| {
        let within = payload.data_offset().zip(failure.offset());
        let offset = within.map(|(data, offset)| range.start + data + offset);
        failure.at(offset.unwrap_or(matched.range.start))
    })
}

/// Returns the bytes of an object, or those between the quotes of a string.
fn payload_range(matched: &MatchedValue) -> Range<usize> {
    if matched.value_type == MatchedType::Object {
        matched.range.clone()
    } else {
        inside(&matched.range)
    }
}

/// Failure of resolving or decoding a payload.
enum PayloadFailure<E> {
    Payload(PayloadError),
    Stopped(E),
}

impl<E> From<PayloadError> for PayloadFailure<E> {
    fn from(error: PayloadError) -> Self {
        Self::Payload(error)
    }
}

impl<E> PayloadFailure<E> {
    fn offset(&self) -> Option<usize> {
        match self {
            Self::Payload(error) => error.data_offset(),
            Self::Stopped(_) => None,
        }
    }

    fn at(self, offset: usize) -> ValueError<E> {
        match self {
            Self::Payload(error) => ValueError::Lift { offset, cause: LiftCause::Experts(error) },
            Self::Stopped(error) => ValueError::Stopped(error),
        }
    }
}
