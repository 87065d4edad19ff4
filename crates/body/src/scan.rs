//! The pass over a text: what of it is wanted, and where that stands.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::ops::Range;

use offloop_grammar::{CheckError, Stop, Text, Visit, read, unescape, unescaped};

use crate::pattern::Patterns;

/// What a pattern wants of the values that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A string.
    Text,
    /// An array of numbers.
    Numbers,
    /// A string or an object.
    Payload,
    /// Whatever it is.
    Raw,
}

/// A key, as it stands in the text between its quotes, or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Key(Range<usize>),
    Index(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Text {
        has_escapes: bool,
    },
    Numbers {
        count: usize,
    },
    Object,
    Raw,
    /// A value of another type than the pattern wants.
    Mismatch,
}

/// A value that a pattern matches. `null` is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    pub pattern: usize,
    pub found: Found,
    /// The value, a string with its quotes.
    pub range: Range<usize>,
    pub path: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanError<E> {
    Json(CheckError),
    /// What `poll` failed with.
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

/// Looks at the whole of `text` and finds what `patterns` match, each of which wants what stands in `wanted`: in the
/// order of the text, without what a later value of the same key replaces. `poll` is called every few microseconds of work.
///
/// # Errors
/// Where `text` is no JSON, and those of `poll`.
pub fn scan<E>(
    text: &[u8],
    patterns: &Patterns,
    wanted: &[Wanted],
    poll: impl FnMut() -> Result<(), E>,
) -> Result<Vec<Find>, ScanError<E>> {
    let width = patterns.width();
    let mut scanner = Scanner {
        text,
        patterns,
        wanted,
        width,
        frames: Vec::new(),
        sets: vec![0; width],
        next: vec![0; width],
        pending: None,
        skipped: 0,
        finds: Vec::new(),
        poll,
    };
    patterns.start(&mut scanner.next);
    match read(text, &mut scanner) {
        Ok(()) => {}
        Err(Stop::Unexpected(offset)) => return Err(ScanError::Json(CheckError { offset })),
        Err(Stop::Visitor(error)) => return Err(ScanError::Stopped(error)),
    }
    Ok(scanner.finds.into_iter().flatten().collect())
}

/// A container that a pattern may match something in.
struct Frame {
    is_object: bool,
    /// Of the element that comes.
    index: usize,
    key: Range<usize>,
    /// How many finds there were when its last key came.
    finds: usize,
    /// The finds behind the keys before, by key, where there are any.
    found: HashMap<Vec<u8>, Range<usize>>,
}

/// A container that is wanted, up to its end.
struct Pending {
    pattern: usize,
    start: usize,
    found: Found,
    path: Vec<Step>,
}

struct Scanner<'a, P> {
    text: &'a [u8],
    patterns: &'a Patterns,
    wanted: &'a [Wanted],
    width: usize,
    frames: Vec<Frame>,
    /// The states at each frame, one row behind the other, behind an empty one.
    sets: Vec<u64>,
    /// Those at the value that comes.
    next: Vec<u64>,
    pending: Option<Pending>,
    /// Containers that are open in which nothing is looked for.
    skipped: usize,
    /// None for what was replaced.
    finds: Vec<Option<Find>>,
    poll: P,
}

impl<P> Scanner<'_, P> {
    /// A value begins in which, or in whose container, something is looked for. Tells which pattern it matches.
    fn begin(&mut self) -> Option<usize> {
        if let Some(frame) = self.frames.last_mut().filter(|frame| !frame.is_object) {
            let mut digits = [0; 20];
            let key = decimal(frame.index, &mut digits);
            let from = self.sets.len() - self.width;
            let set = self.sets.get(from..).unwrap_or_default();
            self.patterns.advance(set, key, &mut self.next);
        }
        self.patterns.matched(&self.next)
    }

    /// A value has ended whose container is the last frame.
    fn end(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.index += 1;
        }
    }

    fn path(&self) -> Vec<Step> {
        let step = |frame: &Frame| {
            if frame.is_object { Step::Key(frame.key.clone()) } else { Step::Index(frame.index) }
        };
        self.frames.iter().map(step).collect()
    }

    fn scalar(&mut self, range: Range<usize>, text: Option<Text<'_>>) {
        if self.skipped != 0 {
            return;
        }
        if let Some(pattern) = self.begin() {
            let found = match (self.wanted.get(pattern), text) {
                (Some(Wanted::Raw), _) => Found::Raw,
                (Some(Wanted::Text | Wanted::Payload), Some(Text { has_escapes, .. })) => {
                    Found::Text { has_escapes }
                }
                _ => Found::Mismatch,
            };
            let path = self.path();
            self.finds.push(Some(Find { pattern, found, range, path }));
        }
        self.end();
    }

    /// What was found behind the last key is known now.
    fn settle(&mut self) {
        let Some(frame) = self.frames.last_mut().filter(|frame| frame.is_object) else { return };
        let end = self.finds.len();
        if frame.finds < end {
            let key = unescaped(self.text.get(frame.key.clone()).unwrap_or_default());
            frame.found.insert(key, frame.finds..end);
        }
        frame.finds = end;
    }
}

impl<E, P: FnMut() -> Result<(), E>> Visit for Scanner<'_, P> {
    type Error = E;

    fn progress(&mut self, _: usize) -> Result<(), E> {
        (self.poll)()
    }

    fn open(&mut self, is_object: bool, at: usize) -> Result<(), E> {
        if self.skipped != 0 {
            self.skipped += 1;
            self.not_a_number();
            return Ok(());
        }
        if let Some(pattern) = self.begin() {
            let found = match self.wanted.get(pattern) {
                Some(Wanted::Raw) => Found::Raw,
                Some(Wanted::Numbers) if !is_object => Found::Numbers { count: 0 },
                Some(Wanted::Payload) if is_object => Found::Object,
                _ => Found::Mismatch,
            };
            self.pending = Some(Pending { pattern, start: at, found, path: self.path() });
            self.skipped = 1;
        } else if self.next.iter().all(|&word| word == 0) {
            self.skipped = 1;
        } else {
            self.sets.extend_from_slice(&self.next);
            let (finds, found) = (self.finds.len(), HashMap::new());
            self.frames.push(Frame { is_object, index: 0, key: 0..0, finds, found });
        }
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<(), E> {
        if self.skipped == 0 {
            self.settle();
            self.frames.pop();
            self.sets.truncate(self.sets.len() - self.width);
            self.end();
            return Ok(());
        }
        self.skipped -= 1;
        if self.skipped == 0 {
            if let Some(Pending { pattern, start, found, path }) = self.pending.take() {
                self.finds.push(Some(Find { pattern, found, range: start..end, path }));
            }
            self.end();
        }
        Ok(())
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), E> {
        if self.skipped != 0 {
            return Ok(());
        }
        self.settle();
        let key = &*text.unescaped();
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        frame.key = text.range();
        if !frame.found.is_empty()
            && let Some(replaced) = frame.found.remove(key)
        {
            self.finds.get_mut(replaced).unwrap_or_default().fill(None);
        }
        let from = self.sets.len() - self.width;
        let set = self.sets.get(from..).unwrap_or_default();
        self.patterns.advance(set, key, &mut self.next);
        Ok(())
    }

    fn string(&mut self, text: Text<'_>) -> Result<(), E> {
        self.not_a_number();
        let Range { start, end } = text.range();
        self.scalar(start - 1..end + 1, Some(text));
        Ok(())
    }

    fn skips_integers(&self) -> bool {
        self.skipped != 0
    }

    fn integers(&mut self, count: usize) -> Result<(), E> {
        if let Some(Pending { found: Found::Numbers { count: numbers }, .. }) = &mut self.pending {
            *numbers += count;
        }
        Ok(())
    }

    fn number(&mut self, text: &[u8], at: usize) -> Result<(), E> {
        if let Some(Pending { found: Found::Numbers { count }, .. }) = &mut self.pending {
            *count += 1;
        }
        self.scalar(at..at + text.len(), None);
        Ok(())
    }

    fn literal(&mut self, value: Option<bool>, at: usize) -> Result<(), E> {
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

impl<P> Scanner<'_, P> {
    /// An element that makes an array none of numbers.
    fn not_a_number(&mut self) {
        if let Some(pending) = &mut self.pending
            && matches!(pending.found, Found::Numbers { .. })
        {
            pending.found = Found::Mismatch;
        }
    }
}

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

/// Where the byte of its unescaped form that is at `offset` stands in `text`.
#[must_use]
pub fn place_of(text: &[u8], offset: usize) -> usize {
    let mut left = offset;
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        let (_, escape) = rest.split_at(at);
        let (character, behind) = unescape(escape);
        let size = character.map_or(3, char::len_utf8);
        if left < at + size {
            return text.len() - rest.len() + left.min(at);
        }
        left -= at + size;
        rest = behind;
    }
    text.len() - rest.len() + left
}

/// JSON Pointer of a path.
#[must_use]
pub fn pointer_of(text: &[u8], path: &[Step]) -> String {
    let mut pointer = String::new();
    for step in path {
        pointer.push('/');
        match step {
            Step::Index(index) => pointer.push_str(&index.to_string()),
            Step::Key(key) => {
                let key = unescaped(text.get(key.clone()).unwrap_or_default());
                let key = String::from_utf8_lossy(&key).replace('~', "~0").replace('/', "~1");
                pointer.push_str(&key);
            }
        }
    }
    pointer
}
