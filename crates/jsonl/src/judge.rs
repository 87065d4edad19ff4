//! What a row is worth. The grammar is generous: what some writer finished must be told from what none did.
//!
//! JSON as `JSON.parse` takes it, and `NaN`, `Infinity`, `-Infinity`, and any bytes from 0x80 on in strings; of objects
//! and arrays, several back to back. Nothing recurses, and a row may come in any number of blocks.

use crate::stack::Stack;
use crate::utf8::Utf8;
use memchr::memchr;
use offloop_grammar::clean;

/// Why a row or a tail is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Whole, without its "\n".
    Unterminated,
    /// The beginning of something.
    Partial,
    /// With NULs, as a power cut leaves them.
    Nul,
    /// The beginning of something, cut inside a character.
    Utf8,
    Garbage,
    /// Several objects or arrays.
    Glued,
    /// Whole, and refused by `JSON.parse`.
    Nonstandard,
}

impl Cause {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unterminated => "unterminated",
            Self::Partial => "partial",
            Self::Nul => "nul",
            Self::Utf8 => "utf8",
            Self::Garbage => "garbage",
            Self::Glued => "glued",
            Self::Nonstandard => "nonstandard",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Blank,
    Kept(Kept),
    Torn(Torn),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    pub is_glued: bool,
    /// `NaN` or infinities.
    has_words: bool,
}

impl Kept {
    /// What keeps this row from being one that `JSON.parse` takes.
    #[must_use]
    pub fn flaw(self, row: &[u8]) -> Option<Cause> {
        self.flaw_where(|| str::from_utf8(row).is_ok())
    }

    pub(crate) fn flaw_where(self, is_utf8: impl FnOnce() -> bool) -> Option<Cause> {
        if self.is_glued {
            return Some(Cause::Glued);
        }
        (self.has_words || !is_utf8()).then_some(Cause::Nonstandard)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Where the torn bytes begin in the row: behind the whole objects and arrays that it begins with.
    pub start: u64,
    pub cause: Cause,
}

/// A row in memory, without its "\n".
#[must_use]
pub fn judge(row: &[u8], is_terminated: bool) -> Verdict {
    let mut judge = Judge::default();
    judge.feed(row);
    let verdict = judge.verdict(is_terminated);
    match verdict {
        Verdict::Torn(torn) if torn.cause == Cause::Partial && !is_terminated => {
            let mut utf8 = Utf8::default();
            utf8.feed(row.get(torn.start as usize..).unwrap_or_default());
            if utf8.is_cut() { Verdict::Torn(Torn { cause: Cause::Utf8, ..torn }) } else { verdict }
        }
        _ => verdict,
    }
}

/// Judges a row that comes in blocks.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    state: State,
    stack: Stack,
    /// Bytes of earlier blocks.
    fed: u64,
    /// Where the last of the whole objects and arrays ends; zero where there is none.
    whole: u64,
    is_glued: bool,
    has_words: bool,
    /// What comes behind the string.
    behind_text: State,
    /// What is left of a word.
    word: &'static [u8],
    /// Digits left of an escape.
    digits: u8,
}

/// What has been read, or what is awaited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing, or whole objects and arrays.
    #[default]
    Top,
    /// Behind a number that is all of the value.
    Number,
    /// The same of a string or a word.
    Scalar,
    Value,
    /// Of an array, or its end.
    FirstValue,
    Key,
    /// Or the end of the object.
    FirstKey,
    Colon,
    /// Behind a value in a container.
    Comma,
    Text,
    Escape,
    Digits,
    Word,
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    Power,
    /// No row goes on so.
    Broken,
    /// The same, and somewhere behind is a NUL.
    BrokenByNul,
}

impl Judge {
    /// More of the row, without its "\n".
    pub fn feed(&mut self, block: &[u8]) {
        let mut at = 0;
        while let Some(&byte) = block.get(at) {
            at = self.step(block, at, byte);
        }
        self.fed += block.len() as u64;
    }

    /// What the row is worth that ends here. Torn bytes cut inside a character are `Partial`: only who has them all can tell.
    #[must_use]
    pub fn verdict(&self, is_terminated: bool) -> Verdict {
        let is_alone = self.whole == 0;
        let cause = match self.state {
            State::Top if is_alone => return Verdict::Blank,
            State::Top => return self.kept(),
            State::Number | State::Zero | State::Integer | State::Fraction | State::Power
                if is_alone && is_terminated && self.stack.last().is_none() =>
            {
                return self.kept();
            }
            State::Scalar if is_alone => return self.kept(),
            State::BrokenByNul => Cause::Nul,
            State::Broken | State::Scalar => Cause::Garbage,
            _ => Cause::Partial,
        };
        Verdict::Torn(Torn { start: self.whole, cause })
    }

    fn kept(&self) -> Verdict {
        Verdict::Kept(Kept { is_glued: self.is_glued, has_words: self.has_words })
    }

    /// Reads on from `at`, where `byte` stands; tells from where to read next.
    #[inline]
    fn step(&mut self, block: &[u8], at: usize, byte: u8) -> usize {
        match self.state {
            State::Text => self.text(block, at),
            State::Broken => self.broken(block, at),
            State::BrokenByNul => block.len(),
            State::Integer | State::Fraction | State::Power => self.number(block, at),
            State::Zero => self.behind_digits(byte, at),
            State::Minus | State::Point | State::Exponent | State::ExponentSign => {
                self.in_number(byte, at)
            }
            State::Escape => self.escape(byte, at),
            State::Digits => self.digit(byte, at),
            State::Word => self.word(byte, at),
            _ => self.between(byte, at),
        }
    }

    /// Outside of strings, numbers and words.
    #[inline]
    fn between(&mut self, byte: u8, at: usize) -> usize {
        match (self.state, byte) {
            (_, b' ' | b'\t' | b'\r') => {}
            (State::Key | State::FirstKey, b'"') => self.begin_text(State::Colon),
            (State::Colon, b':') => self.state = State::Value,
            (State::Comma, b',') => {
                let is_object = self.stack.last() == Some(true);
                self.state = if is_object { State::Key } else { State::Value };
            }
            (State::FirstKey, b'}') | (State::FirstValue, b']') => self.close(at),
            (State::Comma, b'}') if self.stack.last() == Some(true) => self.close(at),
            (State::Comma, b']') if self.stack.last() == Some(false) => self.close(at),
            (State::Top | State::Value | State::FirstValue, _) => return self.value(byte, at),
            _ => return self.fail(at),
        }
        at + 1
    }

    #[inline]
    fn value(&mut self, byte: u8, at: usize) -> usize {
        match byte {
            b'{' => self.open(true),
            b'[' => self.open(false),
            b'"' => self.begin_text(self.behind_scalar(State::Scalar)),
            b'0' => self.state = State::Zero,
            b'1'..=b'9' => self.state = State::Integer,
            b'-' => self.state = State::Minus,
            b't' => self.begin_word(b"rue"),
            b'f' => self.begin_word(b"alse"),
            b'n' => self.begin_word(b"ull"),
            b'N' => self.begin_own_word(b"aN"),
            b'I' => self.begin_own_word(b"nfinity"),
            _ => return self.fail(at),
        }
        at + 1
    }

    fn open(&mut self, is_object: bool) {
        self.stack.push(is_object);
        self.state = if is_object { State::FirstKey } else { State::FirstValue };
    }

    /// With the bracket that stands at `at`.
    fn close(&mut self, at: usize) {
        self.stack.pop();
        if self.stack.last().is_some() {
            self.state = State::Comma;
            return;
        }
        self.is_glued = self.whole != 0;
        self.whole = self.fed + at as u64 + 1;
        self.state = State::Top;
    }

    fn begin_text(&mut self, behind: State) {
        self.behind_text = behind;
        self.state = State::Text;
    }

    fn begin_word(&mut self, rest: &'static [u8]) {
        self.word = rest;
        self.state = State::Word;
    }

    /// One that JSON has not.
    fn begin_own_word(&mut self, rest: &'static [u8]) {
        self.has_words = true;
        self.begin_word(rest);
    }

    /// Behind a value that is no container.
    fn behind_scalar(&self, alone: State) -> State {
        if self.stack.last().is_some() { State::Comma } else { alone }
    }

    fn fail(&mut self, at: usize) -> usize {
        self.state = State::Broken;
        at
    }

    fn broken(&mut self, block: &[u8], at: usize) -> usize {
        if memchr(0, block.get(at..).unwrap_or_default()).is_some() {
            self.state = State::BrokenByNul;
        }
        block.len()
    }

    #[inline]
    fn text(&mut self, block: &[u8], mut at: usize) -> usize {
        loop {
            at += clean(block.get(at..).unwrap_or_default()).0;
            match block.get(at) {
                None => return at,
                Some(b'"') => {
                    self.state = self.behind_text;
                    return at + 1;
                }
                Some(b'\\') => {}
                Some(_) => return self.fail(at),
            }
            // Most escapes are of one letter, and whole.
            if !block.get(at + 1).copied().is_some_and(is_letter) {
                self.state = State::Escape;
                return at + 1;
            }
            at += 2;
        }
    }

    fn escape(&mut self, byte: u8, at: usize) -> usize {
        match byte {
            _ if is_letter(byte) => self.state = State::Text,
            b'u' => {
                self.digits = 4;
                self.state = State::Digits;
            }
            _ => return self.fail(at),
        }
        at + 1
    }

    fn digit(&mut self, byte: u8, at: usize) -> usize {
        if !byte.is_ascii_hexdigit() {
            return self.fail(at);
        }
        self.digits = self.digits.saturating_sub(1);
        if self.digits == 0 {
            self.state = State::Text;
        }
        at + 1
    }

    fn word(&mut self, byte: u8, at: usize) -> usize {
        let Some((&expected, rest)) = self.word.split_first() else { return self.fail(at) };
        if byte != expected {
            return self.fail(at);
        }
        self.word = rest;
        if rest.is_empty() {
            self.state = self.behind_scalar(State::Scalar);
        }
        at + 1
    }

    /// Where a digit may stand, and any number of them.
    #[inline]
    fn number(&mut self, block: &[u8], mut at: usize) -> usize {
        loop {
            match block.get(at) {
                Some(b'0'..=b'9') => at += 1,
                Some(&byte) => return self.behind_digits(byte, at),
                None => return at,
            }
        }
    }

    #[inline]
    fn behind_digits(&mut self, byte: u8, at: usize) -> usize {
        match (self.state, byte) {
            (State::Zero | State::Integer, b'.') => self.state = State::Point,
            (State::Zero | State::Integer | State::Fraction, b'e' | b'E') => {
                self.state = State::Exponent;
            }
            _ => {
                self.state = self.behind_scalar(State::Number);
                return at;
            }
        }
        at + 1
    }

    /// Where a number cannot end.
    fn in_number(&mut self, byte: u8, at: usize) -> usize {
        self.state = match (self.state, byte) {
            (State::Minus, b'0') => State::Zero,
            (State::Minus, b'1'..=b'9') => State::Integer,
            (State::Minus, b'I') => {
                self.begin_own_word(b"nfinity");
                State::Word
            }
            (State::Point, b'0'..=b'9') => State::Fraction,
            (State::Exponent, b'+' | b'-') => State::ExponentSign,
            (State::Exponent | State::ExponentSign, b'0'..=b'9') => State::Power,
            _ => State::Broken,
        };
        if self.state == State::Broken { at } else { at + 1 }
    }
}

/// Of an escape.
fn is_letter(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')
}
