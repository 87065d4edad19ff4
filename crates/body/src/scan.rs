//! The pass over a body: validates its text and finds the values that patterns match. Runs in a task; `plan` calls it.
//!
//! The scanner visits every token. It keeps a container open only while a pattern may match something inside of it.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::ops::Range;

use offloop_grammar::{CheckError, JsonVisitor, ReadError, Text, read, unescaped};

use crate::nested::{NestedNumbers, Nesting, NumberLayout};
use crate::path::{Containers, PathStep, ValuePlace};
use crate::pattern::Patterns;

/// The JSON type that a pattern accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptedType {
    /// A string.
    Text,
    /// An array of numbers, nested in this way.
    Numbers(Nesting),
    /// A string or an object.
    Payload,
    /// Every type.
    Any,
}

/// The JSON type of a matched value, as far as its pattern needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchedType {
    Text {
        has_escapes: bool,
    },
    Numbers(NumberLayout),
    Object,
    /// The pattern accepts every type.
    Any,
    /// The value has another type than its pattern accepts.
    Mismatch,
}

impl MatchedType {
    /// Returns the count of the numbers of an array; 0 for other values.
    #[must_use]
    pub fn number_count(&self) -> usize {
        if let Self::Numbers(layout) = self { layout.count() } else { 0 }
    }
}

/// A value that a pattern matches. No pattern matches `null`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedValue {
    /// The index of the pattern.
    pub pattern: usize,
    pub value_type: MatchedType,
    /// The bytes of the value. A string includes its quotes.
    pub range: Range<usize>,
    pub place: ValuePlace,
}

/// Why a text was not scanned to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanError<E> {
    Json(CheckError),
    /// The error of `poll`.
    Stopped(E),
}

impl<E: fmt::Display> fmt::Display for ScanError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => error.fmt(f),
            Self::Stopped(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for ScanError<E> {}

/// The search of a scan.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    pub patterns: &'a Patterns,
    /// The type that each pattern accepts.
    pub accepted: &'a [AcceptedType],
    /// Most bytes of a string's JSON, its quotes included. Longer strings are found too.
    pub longest_string: usize,
}

/// The findings of a scan, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The values that patterns match, but for those that a later value of the same key replaces.
    pub matches: Vec<MatchedValue>,
    /// The containers that matches are in, or were in.
    pub containers: Containers,
    /// The strings that are too long, wherever they stand.
    pub long_strings: Vec<Range<usize>>,
}

/// Validates `text` and finds what `search` asks for. `poll` is called every few microseconds of work.
///
/// # Errors
/// Invalid JSON, and the errors of `poll`.
pub fn scan<E>(
    text: &[u8],
    search: Search<'_>,
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<Findings, ScanError<E>> {
    let mut failure = None;
    let mut goes_on = || match poll() {
        Ok(()) => true,
        Err(error) => {
            failure = Some(error);
            false
        }
    };
    let found = find(text, search, &mut goes_on);
    found.map_err(|error| failure.map_or(ScanError::Json(error), ScanError::Stopped))
}

/// Scans `text` until `goes_on` returns false. It is compiled once, for all kinds of polls.
fn find(
    text: &[u8],
    search: Search<'_>,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Findings, CheckError> {
    let mut scanner = Scanner {
        text,
        search,
        open: Vec::new(),
        nodes: Vec::new(),
        next: search.patterns.start(),
        pending: None,
        skipped: 0,
        matches: Vec::new(),
        containers: Containers::default(),
        long_strings: Vec::new(),
        goes_on,
    };
    match read(text, &mut scanner) {
        Ok(()) => {}
        Err(ReadError::Unexpected(offset)) => return Err(CheckError { offset }),
        // The caller knows why it stopped.
        Err(ReadError::Visitor(Stopped)) => return Err(CheckError { offset: 0 }),
    }
    let matches = scanner.matches.into_iter().flatten().collect();
    let Scanner { containers, long_strings, .. } = scanner;
    Ok(Findings { matches, containers, long_strings })
}

/// The caller stopped the scan.
struct Stopped;

/// Returns the bytes of a string without its quotes.
pub(crate) fn inside(range: &Range<usize>) -> Range<usize> {
    range.start + 1..range.end - 1
}

/// A container in which a pattern may match something.
struct OpenContainer {
    is_object: bool,
    /// Its number, once something matches inside of it.
    number: Option<usize>,
    /// The start of its pattern nodes in `Scanner::nodes`.
    nodes: usize,
    /// The index of the next element of an array.
    index: usize,
    /// The latest key of an object.
    key: Range<usize>,
    /// The number of matches when the latest key came.
    matches: usize,
    /// The matches behind each earlier key that has any.
    by_key: HashMap<Vec<u8>, Range<usize>>,
}

impl OpenContainer {
    /// Returns the place of the next value in the container, which has a number.
    fn place(&self) -> ValuePlace {
        let step = if self.is_object {
            PathStep::Key(self.key.clone())
        } else {
            PathStep::Index(self.index)
        };
        ValuePlace { container: self.number.unwrap_or_default(), step }
    }
}

/// A container that a pattern matches, before its end is known.
struct PendingMatch {
    pattern: usize,
    start: usize,
    value_type: MatchedType,
    /// The numbers of an array, until it ends.
    numbers: Option<NestedNumbers>,
    place: ValuePlace,
}

struct Scanner<'a> {
    text: &'a [u8],
    search: Search<'a>,
    open: Vec<OpenContainer>,
    /// The pattern nodes of all open containers, outermost first.
    nodes: Vec<usize>,
    /// The pattern nodes of the next value.
    next: Vec<usize>,
    pending: Option<PendingMatch>,
    /// The number of open containers in which no pattern matches anything.
    skipped: usize,
    /// The matches in the order of the text. `None` where a later value of the same key replaced one.
    matches: Vec<Option<MatchedValue>>,
    containers: Containers,
    long_strings: Vec<Range<usize>>,
    goes_on: &'a mut dyn FnMut() -> bool,
}

impl Scanner<'_> {
    /// Begins a value outside of skipped containers. Returns the pattern that matches it.
    fn begin(&mut self) -> Option<usize> {
        if let Some(container) = self.open.last_mut().filter(|container| !container.is_object) {
            let mut digits = [0; 20];
            let key = decimal(container.index, &mut digits);
            let nodes = self.nodes.get(container.nodes..).unwrap_or_default();
            self.search.patterns.advance(nodes, key, &mut self.next);
        }
        self.search.patterns.matched(&self.next)
    }

    /// Ends a value of the innermost open container.
    fn end(&mut self) {
        if let Some(container) = self.open.last_mut() {
            container.index += 1;
        }
    }

    /// Returns the place of the next value. Numbers the containers around it.
    fn place(&mut self) -> ValuePlace {
        let is_numbered = |container: &OpenContainer| container.number.is_some();
        let first = self.open.iter().rposition(is_numbered).map_or(0, |index| index + 1);
        let mut place = match first.checked_sub(1).and_then(|index| self.open.get(index)) {
            Some(container) => container.place(),
            None => ValuePlace { container: 0, step: Containers::ROOT },
        };
        for container in self.open.get_mut(first..).unwrap_or_default() {
            container.number = Some(self.containers.add(place));
            place = container.place();
        }
        place
    }

    fn scalar(&mut self, range: Range<usize>, text: Option<Text<'_>>) {
        if self.skipped != 0 {
            return;
        }
        if let Some(pattern) = self.begin() {
            let value_type = match (self.search.accepted.get(pattern), text) {
                (Some(AcceptedType::Any), _) => MatchedType::Any,
                (
                    Some(AcceptedType::Text | AcceptedType::Payload),
                    Some(Text { has_escapes, .. }),
                ) => MatchedType::Text { has_escapes },
                _ => MatchedType::Mismatch,
            };
            let place = self.place();
            self.matches.push(Some(MatchedValue { pattern, value_type, range, place }));
        }
        self.end();
    }

    /// Records the matches behind the latest key, once its value has ended.
    fn end_member(&mut self) {
        let Some(container) = self.open.last_mut().filter(|container| container.is_object) else {
            return;
        };
        let end = self.matches.len();
        if container.matches < end {
            let key = unescaped(self.text.get(container.key.clone()).unwrap_or_default());
            container.by_key.insert(key, container.matches..end);
        }
        container.matches = end;
    }

    /// Returns the array of numbers that is being followed.
    fn numbers_of_pending(&mut self) -> Option<&mut NestedNumbers> {
        self.pending.as_mut()?.numbers.as_mut()
    }

    /// Receives a token that no array of numbers has.
    fn not_a_number(&mut self) {
        if let Some(numbers) = self.numbers_of_pending() {
            numbers.refuse();
        }
    }

    fn count_numbers(&mut self, more: usize) {
        if let Some(numbers) = self.numbers_of_pending() {
            numbers.numbers(more);
        }
    }
}

impl JsonVisitor for Scanner<'_> {
    type Error = Stopped;

    fn progress(&mut self, _: usize) -> Result<(), Stopped> {
        if (self.goes_on)() { Ok(()) } else { Err(Stopped) }
    }

    fn open(&mut self, is_object: bool, at: usize) -> Result<(), Stopped> {
        if self.skipped != 0 {
            self.skipped += 1;
            if let Some(numbers) = self.numbers_of_pending() {
                numbers.open(is_object);
            }
            return Ok(());
        }
        if let Some(pattern) = self.begin() {
            let (value_type, nesting) = match self.search.accepted.get(pattern) {
                Some(AcceptedType::Any) => (MatchedType::Any, None),
                Some(AcceptedType::Payload) if is_object => (MatchedType::Object, None),
                // The end of the array decides.
                Some(&AcceptedType::Numbers(nesting)) if !is_object => {
                    (MatchedType::Mismatch, Some(nesting))
                }
                _ => (MatchedType::Mismatch, None),
            };
            let numbers = nesting.map(NestedNumbers::new);
            let place = self.place();
            self.pending = Some(PendingMatch { pattern, start: at, value_type, numbers, place });
            self.skipped = 1;
            return Ok(());
        }
        if self.next.is_empty() {
            self.skipped = 1;
            return Ok(());
        }
        let (nodes, matches) = (self.nodes.len(), self.matches.len());
        self.nodes.extend_from_slice(&self.next);
        let by_key = HashMap::new();
        let container =
            OpenContainer { is_object, number: None, nodes, index: 0, key: 0..0, matches, by_key };
        self.open.push(container);
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<(), Stopped> {
        if self.skipped == 0 {
            self.end_member();
            if let Some(container) = self.open.pop() {
                self.nodes.truncate(container.nodes);
            }
            self.end();
            return Ok(());
        }
        self.skipped -= 1;
        if self.skipped != 0 {
            if let Some(numbers) = self.numbers_of_pending() {
                numbers.close();
            }
            return Ok(());
        }
        if let Some(PendingMatch { pattern, start, value_type, numbers, place }) =
            self.pending.take()
        {
            let layout = numbers.and_then(NestedNumbers::finish);
            let value_type = layout.map_or(value_type, MatchedType::Numbers);
            let range = start..end;
            self.matches.push(Some(MatchedValue { pattern, value_type, range, place }));
        }
        self.end();
        Ok(())
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), Stopped> {
        if self.skipped != 0 {
            return Ok(());
        }
        self.end_member();
        let key = &*text.unescaped();
        let Some(container) = self.open.last_mut() else { return Ok(()) };
        container.key = text.range();
        if !container.by_key.is_empty()
            && let Some(replaced) = container.by_key.remove(key)
        {
            self.matches.get_mut(replaced).unwrap_or_default().fill(None);
        }
        let nodes = self.nodes.get(container.nodes..).unwrap_or_default();
        self.search.patterns.advance(nodes, key, &mut self.next);
        Ok(())
    }

    fn string(&mut self, text: Text<'_>) -> Result<(), Stopped> {
        self.not_a_number();
        let Range { start, end } = text.range();
        let range = start - 1..end + 1;
        if self.search.longest_string < range.len() {
            self.long_strings.push(range.clone());
        }
        self.scalar(range, Some(text));
        Ok(())
    }

    fn skips_integers(&self) -> bool {
        self.skipped != 0
    }

    fn integers(&mut self, count: usize) -> Result<(), Stopped> {
        self.count_numbers(count);
        Ok(())
    }

    fn number(&mut self, text: &[u8], at: usize) -> Result<(), Stopped> {
        self.count_numbers(1);
        self.scalar(at..at + text.len(), None);
        Ok(())
    }

    fn literal(&mut self, value: Option<bool>, at: usize) -> Result<(), Stopped> {
        self.not_a_number();
        let Some(value) = value else {
            if self.skipped == 0 {
                self.begin();
                self.end();
            }
            return Ok(());
        };
        self.scalar(at..at + if value { 4 } else { 5 }, None);
        Ok(())
    }
}

/// Writes `value` to the end of `digits`. Returns its digits.
fn decimal(value: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut rest = value;
    let mut start = digits.len();
    for place in digits.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
        start -= 1;
        if rest == 0 {
            break;
        }
    }
    digits.get(start..).unwrap_or_default()
}
