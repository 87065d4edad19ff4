//! The plan of a body: which values are lifted, and which memory each of them needs. A task makes it from the text; the
//! JS thread then makes that memory.

use std::fmt::Write;
use std::iter;
use std::mem;
use std::ops::Range;

use offloop_base64::{Alphabet, Base64Reader, Mode, max_decoded_len};
use offloop_experts::{ResolvedPayload, Shape};
use offloop_grammar::unescaped;

use crate::error::{BodyError, LiftCause, RestTooLong, ValueError};
use crate::experts;
use crate::lift::{LiftConfig, LiftKind};
use crate::nested::NumberLayout;
use crate::numbers::{ElementType, NumberError, check_numbers};
use crate::path::{Containers, PathStep, ValuePlace};
use crate::scan::{Findings, MatchedType, MatchedValue, inside, scan};
use crate::text::utf16_len;

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
    /// The containers that hold the values.
    containers: Containers,
    /// The other values that are not in the rest.
    pub(crate) dropped: Vec<Range<usize>>,
    /// Bytes of each memory. The small values share the first; each other value has one of its own.
    sizes: Vec<usize>,
    /// The index of the value that is decoded into the memory of the body.
    pub(crate) in_place: Option<usize>,
    rest_size: usize,
    /// Whether the text has carriage returns that are not part of its values.
    pub(crate) has_gaps: bool,
    /// The offset of the text in the stream that it is from.
    pub(crate) offset: usize,
}

/// A value that is lifted, and its memory.
#[derive(Clone, Debug)]
pub struct PlannedValue {
    pub(crate) matched: MatchedValue,
    pub(crate) content: LiftedContent,
    /// Its bytes. A base64 string may need fewer. One more than the last index means the memory of the body.
    pub(crate) room: Room,
    /// The counts of a list of lists, 32-bit integers.
    pub(crate) counts: Option<Room>,
}

/// A part of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// The index of the memory.
    pub(crate) memory: usize,
    pub(crate) bytes: Range<usize>,
}

/// How the bytes of a lifted value are made.
#[derive(Clone, Debug)]
pub(crate) enum LiftedContent {
    Base64 { has_escapes: bool, element: Option<ElementType> },
    Numbers { element: ElementType },
    Raw,
    Dropped,
    Experts(Box<ResolvedPayload>),
}

/// A part of the text that is not in the rest.
pub(crate) struct Cut {
    pub(crate) range: Range<usize>,
    /// The index of the value. `None` for a value that the caller does not hear of.
    pub(crate) value: Option<usize>,
}

impl BodyPlan {
    /// Validates `text` as JSON, finds the values that `config` lifts, and assigns memory to each of them.
    ///
    /// `is_ours` says that nobody else can see the memory of `text`. The largest base64 string may then be decoded into
    /// it. `poll` is called every few microseconds of work.
    ///
    /// # Errors
    /// Invalid JSON, the first value that cannot be lifted, a rest that is too long, and those of `poll`.
    pub fn new<E>(
        text: &[u8],
        config: &LiftConfig,
        is_ours: bool,
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<Self, BodyError<E>> {
        let found = scan(text, config.search(), &mut poll)?;
        let Findings { matches, containers, long_strings } = found;
        let mut plan =
            Self { sizes: vec![0], rest_size: text.len(), containers, ..Self::default() };
        let (contents, hidden) = plan.contents(text, matches, config, &mut poll)?;
        plan.in_place = if is_ours { largest_text(&contents) } else { None };
        plan.values.reserve_exact(contents.len());
        for (matched, content) in contents {
            plan.add(matched, content);
        }
        plan.containers.retain(plan.values.iter_mut().map(|value| &mut value.matched.place));
        plan.send_in_place();
        plan.drop_all(hidden, long_strings);
        plan.check_length(text, config.rules.longest_rest, &mut poll)?;
        Ok(plan)
    }

    /// Returns the bytes of each memory that [`BodyPlan::fill`] needs.
    #[must_use]
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Returns the bytes of the rest: the text with `null` in the place of each value that it lacks.
    #[must_use]
    pub fn rest_size(&self) -> usize {
        self.rest_size
    }

    /// Returns the plan as JSON, which crosses to JavaScript faster than objects do: `[restSize, sizes, containers, values]`.
    ///
    /// `containers` has two items for each container from number 1 on: the number of the one that holds it, and its key or
    /// index there. Number 0 holds the root, with an empty key. A value is `[container, key, pattern, memory, start]`, with
    /// more items for some:
    ///
    /// | value | further items |
    /// |---|---|
    /// | routed experts | `shape`, `dtype`, `start` |
    /// | list of lists | `memory`, `start` and `length` of its counts |
    /// | tensor | `shape` |
    ///
    /// ```json
    /// [812, [24, 65536], [0, "", 1, "choices", 2, 0], [[1, "ids", 1, 0, 0], [3, "data", 0, 1, 0]]]
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
        for (index, place) in self.containers.places().iter().enumerate() {
            if index % DESCRIBED == 0 {
                poll()?;
            }
            if index != 0 {
                json.push(',');
            }
            describe_place(place, text, &mut json);
        }
        json.push_str("],[");
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

    /// Decides how the bytes of each matched value are made. Values that cannot be lifted are left out or an error, as
    /// `config` says.
    fn contents<E>(
        &self,
        text: &[u8],
        matches: Vec<MatchedValue>,
        config: &LiftConfig,
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<Contents, BodyError<E>> {
        let pointer_of = |matched: &MatchedValue| self.containers.pointer_of(text, &matched.place);
        if !config.rules.keeps_mismatches {
            let mut types = matches.iter();
            if let Some(matched) = types.find(|matched| matched.value_type == MatchedType::Mismatch)
            {
                return Err(mismatch(matched).at(|| pointer_of(matched)));
            }
        }
        let mut contents = Vec::with_capacity(matches.len());
        let mut hidden = Vec::new();
        for matched in matches {
            if config.kind(matched.pattern) == Some(LiftKind::Drop { is_listed: false }) {
                hidden.push(matched.range);
                continue;
            }
            match content(text, &matched, config, poll) {
                Ok(content) => contents.push((matched, content)),
                Err(ValueError::Lift { .. }) if config.rules.keeps_mismatches => {}
                Err(error) => return Err(error.at(|| pointer_of(&matched))),
            }
        }
        Ok((contents, hidden))
    }

    /// Returns the pointer of a value.
    pub(crate) fn pointer_of(&self, text: &[u8], value: &PlannedValue) -> String {
        self.containers.pointer_of(text, &value.matched.place)
    }

    /// Returns the parts of the text that are not in the rest, in its order.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = Cut> {
        let values = self.values.iter().map(|value| value.matched.range.clone()).enumerate();
        let mut values = values.map(|(index, range)| Cut { range, value: Some(index) }).peekable();
        let mut dropped = self.dropped.iter().cloned().peekable();
        iter::from_fn(move || match (values.peek(), dropped.peek()) {
            (Some(cut), Some(range)) if cut.range.start < range.start => values.next(),
            (_, Some(_)) => dropped.next().map(|range| Cut { range, value: None }),
            (_, None) => values.next(),
        })
    }

    fn add(&mut self, matched: MatchedValue, content: LiftedContent) {
        self.rest_size = self.rest_size - matched.range.len() + NULL.len();
        let size = content.most(&matched);
        let room = if self.in_place == Some(self.values.len()) {
            Room { memory: 0, bytes: 0..size }
        } else {
            self.room(size)
        };
        let counts = match &matched.value_type {
            MatchedType::Numbers(NumberLayout::Ragged { counts }) => {
                Some(self.room(size_of_val(counts.as_slice())))
            }
            _ => None,
        };
        self.values.push(PlannedValue { matched, content, room, counts });
    }

    fn room(&mut self, size: usize) -> Room {
        let (memory, start) = match self.sizes.first_mut() {
            Some(shared) if size < OWN_MEMORY => {
                (0, mem::replace(shared, *shared + size.next_multiple_of(ALIGNMENT)))
            }
            _ => {
                self.sizes.push(size);
                (self.sizes.len() - 1, 0)
            }
        };
        Room { memory, bytes: start..start + size }
    }

    /// Points the value that is decoded in place to the memory behind all others.
    fn send_in_place(&mut self) {
        let value = self.in_place.and_then(|index| self.values.get_mut(index));
        if let Some(value) = value {
            value.room.memory = self.sizes.len();
        }
    }

    /// Drops values that a pattern matches, and strings that stand in no other value.
    fn drop_all(&mut self, hidden: Vec<Range<usize>>, long_strings: Vec<Range<usize>>) {
        let mut values = self.values.iter().map(|value| &value.matched.range).peekable();
        let mut outer = hidden.iter().peekable();
        let mut strings = Vec::new();
        for string in long_strings {
            while values.next_if(|range| range.end <= string.start).is_some() {}
            while outer.next_if(|range| range.end <= string.start).is_some() {}
            let is_in = |range: Option<&&Range<usize>>| {
                range.is_some_and(|range| range.start <= string.start)
            };
            if !is_in(values.peek()) && !is_in(outer.peek()) {
                strings.push(string);
            }
        }
        self.dropped = hidden;
        self.dropped.append(&mut strings);
        self.dropped.sort_unstable_by_key(|range| range.start);
        let bytes: usize = self.dropped.iter().map(ExactSizeIterator::len).sum();
        self.rest_size = self.rest_size + self.dropped.len() * NULL.len() - bytes;
    }

    /// Checks that the rest has at most `longest` UTF-16 code units.
    fn check_length<E>(
        &self,
        text: &[u8],
        longest: usize,
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<(), BodyError<E>> {
        // No character has fewer bytes than code units.
        if self.rest_size <= longest {
            return Ok(());
        }
        let mut from = 0;
        let mut units = 0;
        let end = Cut { range: text.len()..text.len(), value: None };
        for Cut { range, .. } in self.cuts().chain([end]) {
            units += utf16_len(text.get(from..range.start).unwrap_or_default(), poll)
                .map_err(BodyError::Stopped)?;
            units += NULL.len();
            from = range.end;
        }
        let is_fit = units - NULL.len() <= longest;
        if is_fit { Ok(()) } else { Err(BodyError::Rest(RestTooLong { size: self.rest_size })) }
    }
}

impl PlannedValue {
    fn describe(&self, text: &[u8], json: &mut String) {
        let Self { matched, content, room, counts } = self;
        json.push('[');
        describe_place(&matched.place, text, json);
        let _ = write!(json, ",{},{},{}", matched.pattern, room.memory, room.bytes.start);
        if let LiftedContent::Experts(resolved) = content {
            let payload = resolved.payload();
            let Shape { rows, layers, topk } = payload.shape;
            let (dtype, start) = (payload.dtype, payload.start);
            let _ = write!(json, ",[{rows},{layers},{topk}],\"{dtype}\",{start}");
        }
        if let Some(Room { memory, bytes }) = counts {
            let len = bytes.len() / size_of::<i32>();
            let _ = write!(json, ",{memory},{},{len}", bytes.start);
        }
        if let MatchedType::Numbers(NumberLayout::Tensor { shape }) = &matched.value_type {
            json.push(',');
            list_numbers(json, shape);
        }
        json.push(']');
    }
}

impl LiftedContent {
    /// Returns the most bytes that the value can become.
    fn most(&self, matched: &MatchedValue) -> usize {
        match self {
            Self::Base64 { .. } => max_decoded_len(inside(&matched.range).len()),
            Self::Numbers { element } => matched.value_type.number_count() * element.size(),
            Self::Raw => matched.range.len(),
            Self::Dropped => 0,
            Self::Experts(resolved) => resolved.payload().size(),
        }
    }
}

/// Writes the number of the container and the key or index in it.
fn describe_place(ValuePlace { container, step }: &ValuePlace, text: &[u8], json: &mut String) {
    let _ = write!(json, "{container},");
    match step {
        // Writing to a String cannot fail.
        PathStep::Index(index) => drop(write!(json, "{index}")),
        PathStep::Key(key) => {
            // The text between the quotes is valid JSON as it stands.
            json.push('"');
            json.push_str(&String::from_utf8_lossy(text.get(key.clone()).unwrap_or_default()));
            json.push('"');
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

/// Matched values and how their bytes are made, and the ranges of those that are dropped without a word.
type Contents = (Vec<(MatchedValue, LiftedContent)>, Vec<Range<usize>>);

/// Decides how the bytes of a matched value are made. Checks them too, if values that cannot be lifted stay.
fn content<E>(
    text: &[u8],
    matched: &MatchedValue,
    config: &LiftConfig,
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<LiftedContent, ValueError<E>> {
    let content = match (config.kind(matched.pattern), &matched.value_type) {
        (Some(LiftKind::Base64), &MatchedType::Text { has_escapes }) => {
            LiftedContent::Base64 { has_escapes, element: None }
        }
        (Some(LiftKind::Base64Numbers(element)), &MatchedType::Text { has_escapes }) => {
            LiftedContent::Base64 { has_escapes, element: Some(element) }
        }
        (Some(LiftKind::Numbers(_, element)), MatchedType::Numbers(_)) => {
            LiftedContent::Numbers { element }
        }
        (Some(LiftKind::Raw), _) => LiftedContent::Raw,
        (Some(LiftKind::Drop { .. }), _) => LiftedContent::Dropped,
        (Some(LiftKind::Experts(hints)), MatchedType::Text { .. } | MatchedType::Object) => {
            let resolved = experts::resolve(text, matched, &hints, poll)?;
            let resolved = resolved.ok_or_else(|| mismatch(matched))?;
            LiftedContent::Experts(Box::new(resolved))
        }
        _ => return Err(mismatch(matched)),
    };
    if config.rules.keeps_mismatches {
        check_content(text, matched, &content, poll)?;
    }
    Ok(content)
}

/// Checks that the bytes of a value can be made.
fn check_content<E>(
    text: &[u8],
    matched: &MatchedValue,
    content: &LiftedContent,
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<(), ValueError<E>> {
    let bytes = text.get(matched.range.clone()).unwrap_or_default();
    match content {
        LiftedContent::Base64 { has_escapes, element } => {
            let characters = text.get(inside(&matched.range)).unwrap_or_default();
            let own = has_escapes.then(|| unescaped(characters));
            let len = check_base64(own.as_deref().unwrap_or(characters), poll)?;
            let is_whole =
                element.is_none_or(|element| len.is_some_and(|len| len % element.size() == 0));
            if len.is_some() && is_whole { Ok(()) } else { Err(mismatch(matched)) }
        }
        LiftedContent::Numbers { element } => {
            let count = matched.value_type.number_count();
            check_numbers(bytes, *element, count, poll).map_err(|error| match error {
                NumberError::Unfit { .. } => mismatch(matched),
                NumberError::Stopped(error) => ValueError::Stopped(error),
            })
        }
        LiftedContent::Experts(payload) => {
            let mut out = vec![0; payload.payload().size()];
            experts::decode(text, matched, payload, &mut out, poll)
        }
        LiftedContent::Raw | LiftedContent::Dropped => Ok(()),
    }
}

/// Returns the decoded size of a text, or `None` if it is not base64.
fn check_base64<E>(
    text: &[u8],
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<Option<usize>, ValueError<E>> {
    let mut reader = Base64Reader::new(text, Mode::Forgiving, Alphabet::Standard);
    let mut scratch = vec![0; CHECKED];
    let mut size = 0;
    loop {
        poll().map_err(ValueError::Stopped)?;
        let Ok(len) = reader.read(&mut scratch) else { return Ok(None) };
        size += len;
        if len < CHECKED {
            return Ok(Some(size));
        }
    }
}

/// Bytes that are decoded at a time to check them: they stay in the cache.
const CHECKED: usize = 16 << 10;

fn mismatch<E>(matched: &MatchedValue) -> ValueError<E> {
    ValueError::Lift { offset: matched.range.start, cause: LiftCause::Mismatch }
}

/// Returns the index of the base64 string that is best decoded in place.
///
/// Routed experts are not: a view of all of an `ArrayBuffer` can be handed over to be concatenated.
fn largest_text(contents: &[(MatchedValue, LiftedContent)]) -> Option<usize> {
    let is_fit = |(matched, content): &(MatchedValue, LiftedContent)| {
        matches!(content, LiftedContent::Base64 { has_escapes: false, .. })
            && IN_PLACE <= matched.range.len()
    };
    let fit = contents.iter().enumerate().filter(|(_, value)| is_fit(value));
    fit.max_by_key(|(_, (matched, _))| matched.range.len()).map(|(index, _)| index)
}
