//! The plan of a body: which values are lifted, and which memory each of them needs. A task makes it from the text; the
//! JS thread then makes that memory.

use std::fmt::Write;
use std::mem;
use std::ops::Range;

use offloop_base64::max_decoded_len;
use offloop_experts::{ResolvedPayload, Shape};

use crate::error::{BodyError, LiftCause, LiftError};
use crate::experts;
use crate::lift::{LiftConfig, LiftKind};
use crate::numbers::ElementType;
use crate::path::{PathStep, pointer_of};
use crate::scan::{AcceptedType, MatchedType, MatchedValue, inside, scan};

/// Values from this size on have memory of their own, which can be transferred.
const OWN_MEMORY: usize = 64 << 10;
/// Small values start at multiples of this, so that typed arrays of any type can view them.
pub(crate) const ALIGNMENT: usize = 8;
/// A base64 string from this size on may be decoded into the memory of the body.
const IN_PLACE: usize = 1 << 20;
/// Values that are described between two polls.
const DESCRIBED: usize = 4096;
/// The value that replaces a lifted one in the rest.
pub(crate) const NULL: &[u8] = b"null";

/// The values that are lifted from a body, in the order of its text.
#[derive(Clone, Debug, Default)]
pub struct BodyPlan {
    pub(crate) values: Vec<PlannedValue>,
    /// Bytes of each memory. The small values share the first; each other value has one of its own.
    sizes: Vec<usize>,
    /// The index of the value that is decoded into the memory of the body.
    pub(crate) in_place: Option<usize>,
    rest_size: usize,
}

/// A value that is lifted, and its memory.
#[derive(Clone, Debug)]
pub struct PlannedValue {
    pub(crate) matched: MatchedValue,
    pub(crate) content: LiftedContent,
    /// The index of its memory. One more than the last index means the memory of the body.
    pub(crate) memory: usize,
    /// The bytes of that memory. A base64 string may need fewer.
    pub(crate) room: Range<usize>,
}

/// How the bytes of a lifted value are made.
#[derive(Clone, Debug)]
pub(crate) enum LiftedContent {
    Base64 { has_escapes: bool },
    Numbers { count: usize, element: ElementType },
    Raw,
    Experts(Box<ResolvedPayload>),
}

impl BodyPlan {
    /// Validates `text` as JSON, finds the values that `config` lifts, and assigns memory to each of them.
    ///
    /// `is_ours` says that nobody else can see the memory of `text`. The largest base64 string may then be decoded into
    /// it. `poll` is called every few microseconds of work.
    ///
    /// # Errors
    /// Invalid JSON, the first value that cannot be lifted, and those of `poll`.
    pub fn new<E>(
        text: &[u8],
        config: &LiftConfig,
        is_ours: bool,
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<Self, BodyError<E>> {
        let matches = matches(text, config, &mut poll)?;
        let largest = if is_ours { largest_text(&matches, config) } else { None };
        let mut plan =
            Self { sizes: vec![0], rest_size: text.len(), in_place: largest, ..Self::default() };
        plan.values.reserve_exact(matches.len());
        for matched in matches {
            let content = content(text, &matched, config, &mut poll)?;
            plan.add(matched, content);
        }
        plan.send_in_place();
        Ok(plan)
    }

    /// Returns the bytes of each memory that [`BodyPlan::fill`] needs.
    #[must_use]
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Returns the bytes of the rest: the text with `null` in the place of each value.
    #[must_use]
    pub fn rest_size(&self) -> usize {
        self.rest_size
    }

    /// Returns the plan as JSON, which crosses to JavaScript faster than objects do: `[restSize, sizes, values]`.
    ///
    /// A value is `[path, pattern, memory, start]`. Routed experts have three more items: `shape`, `dtype`, `start`.
    ///
    /// ```json
    /// [812, [24, 65536], [[["ids"], 1, 0, 0], [["choices", 0, "data"], 0, 1, 0]]]
    /// ```
    ///
    /// # Errors
    /// Errors of `poll`.
    pub fn describe<E>(
        &self,
        text: &[u8],
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<String, E> {
        let mut json = format!("[{},", self.rest_size);
        list_numbers(&mut json, &self.sizes);
        json.push_str(",[");
        for (index, value) in self.values.iter().enumerate() {
            if index % DESCRIBED == 0 {
                poll()?;
            }
            if index != 0 {
                json.push(',');
            }
            value.describe(text, &mut json);
        }
        json.push_str("]]");
        Ok(json)
    }

    fn add(&mut self, matched: MatchedValue, content: LiftedContent) {
        self.rest_size = self.rest_size - matched.range.len() + NULL.len();
        let size = content.most(&matched);
        let (memory, start) = match self.sizes.first_mut() {
            _ if self.in_place == Some(self.values.len()) => (0, 0),
            Some(shared) if size < OWN_MEMORY => {
                (0, mem::replace(shared, *shared + size.next_multiple_of(ALIGNMENT)))
            }
            _ => {
                self.sizes.push(size);
                (self.sizes.len() - 1, 0)
            }
        };
        self.values.push(PlannedValue { matched, content, memory, room: start..start + size });
    }

    /// Points the value that is decoded in place to the memory behind all others.
    fn send_in_place(&mut self) {
        let value = self.in_place.and_then(|index| self.values.get_mut(index));
        if let Some(value) = value {
            value.memory = self.sizes.len();
        }
    }
}

impl PlannedValue {
    pub(crate) fn lift_error(&self, text: &[u8], offset: usize, cause: LiftCause) -> LiftError {
        lift_error(text, &self.matched, offset, cause)
    }

    fn describe(&self, text: &[u8], json: &mut String) {
        let Self { matched, content, memory, room } = self;
        json.push_str("[[");
        for (index, step) in matched.path.iter().enumerate() {
            if index != 0 {
                json.push(',');
            }
            match step {
                // Writing to a String cannot fail.
                PathStep::Index(index) => drop(write!(json, "{index}")),
                PathStep::Key(key) => {
                    // The text between the quotes is valid JSON as it stands.
                    json.push('"');
                    let key = text.get(key.clone()).unwrap_or_default();
                    json.push_str(&String::from_utf8_lossy(key));
                    json.push('"');
                }
            }
        }
        let _ = write!(json, "],{},{memory},{}", matched.pattern, room.start);
        if let LiftedContent::Experts(resolved) = content {
            let payload = resolved.payload();
            let Shape { rows, layers, topk } = payload.shape;
            let (dtype, start) = (payload.dtype, payload.start);
            let _ = write!(json, ",[{rows},{layers},{topk}],\"{dtype}\",{start}");
        }
        json.push(']');
    }
}

impl LiftedContent {
    /// Returns the most bytes that the value can become.
    fn most(&self, matched: &MatchedValue) -> usize {
        match self {
            Self::Base64 { .. } => max_decoded_len(inside(&matched.range).len()),
            Self::Numbers { count, element } => count * element.size(),
            Self::Raw => matched.range.len(),
            Self::Experts(resolved) => resolved.payload().size(),
        }
    }
}

/// Writes `numbers` as a JSON array.
pub(crate) fn list_numbers(json: &mut String, numbers: &[usize]) {
    json.push('[');
    for (index, number) in numbers.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(json, "{comma}{number}");
    }
    json.push(']');
}

/// Finds the values that are lifted. Values of another type are left out or an error, as `config` says.
fn matches<E>(
    text: &[u8],
    config: &LiftConfig,
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<Vec<MatchedValue>, BodyError<E>> {
    let accepted: Vec<AcceptedType> = config.kinds.iter().map(|kind| kind.accepted()).collect();
    let mut found = scan(text, &config.patterns, &accepted, poll)?;
    if config.keeps_mismatches {
        found.retain(|matched| matched.value_type != MatchedType::Mismatch);
        return Ok(found);
    }
    let mut mismatches = found.iter().filter(|matched| matched.value_type == MatchedType::Mismatch);
    if let Some(matched) = mismatches.next() {
        let offset = matched.range.start;
        return Err(lift_error(text, matched, offset, LiftCause::Mismatch).into());
    }
    Ok(found)
}

/// Decides how the bytes of a matched value are made.
fn content<E>(
    text: &[u8],
    matched: &MatchedValue,
    config: &LiftConfig,
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<LiftedContent, BodyError<E>> {
    let mismatch = || lift_error(text, matched, matched.range.start, LiftCause::Mismatch);
    match (config.kind(matched.pattern), matched.value_type) {
        (Some(LiftKind::Base64), MatchedType::Text { has_escapes }) => {
            Ok(LiftedContent::Base64 { has_escapes })
        }
        (Some(LiftKind::Numbers(element)), MatchedType::Numbers { count }) => {
            Ok(LiftedContent::Numbers { count, element })
        }
        (Some(LiftKind::Raw), _) => Ok(LiftedContent::Raw),
        (Some(LiftKind::Experts(hints)), MatchedType::Text { .. } | MatchedType::Object) => {
            let resolved = experts::resolve(text, matched, &hints, poll)?;
            Ok(LiftedContent::Experts(Box::new(resolved.ok_or_else(mismatch)?)))
        }
        _ => Err(mismatch().into()),
    }
}

fn lift_error(text: &[u8], matched: &MatchedValue, offset: usize, cause: LiftCause) -> LiftError {
    LiftError { pointer: pointer_of(text, &matched.path), offset, cause }
}

/// Returns the index of the base64 string that is best decoded in place.
///
/// Routed experts are not: a view of all of an `ArrayBuffer` can be handed over to be concatenated.
fn largest_text(matches: &[MatchedValue], config: &LiftConfig) -> Option<usize> {
    let is_fit = |matched: &MatchedValue| {
        matched.value_type == MatchedType::Text { has_escapes: false }
            && IN_PLACE <= matched.range.len()
            && config.kind(matched.pattern) == Some(LiftKind::Base64)
    };
    let fit = matches.iter().enumerate().filter(|(_, matched)| is_fit(matched));
    fit.max_by_key(|(_, matched)| matched.range.len()).map(|(index, _)| index)
}
