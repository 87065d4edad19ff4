//! Judges rows: good, blank or torn. Runs in tasks; every walk over a file calls it.
//!
//! The grammar is generous, because it only has to distinguish rows that a writer finished from rows that it did not. It accepts
//! JSON as `JSON.parse` does, and besides:
//!
//! - `NaN`, `Infinity`, `-Infinity`;
//! - any bytes from 0x80 on in strings;
//! - several objects and arrays back to back (a glued row).
//!
//! Nothing recurses. A row may come in any number of blocks.

use std::convert::Infallible;

use crate::utf8::Utf8;
use memchr::memchr;
use offloop_grammar::{BitStack, clean};

/// Why a row or a tail is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowCause {
    /// The row is whole, but lacks its "\n".
    Unterminated,
    /// The bytes are the beginning of a row.
    Partial,
    /// The row contains NULs, as a power cut leaves them.
    Nul,
    /// The bytes are the beginning of a row, cut inside a character.
    Utf8,
    /// No row begins like this.
    Garbage,
    /// The row is several objects or arrays.
    Glued,
    /// The row is whole, but `JSON.parse` refuses it.
    Nonstandard,
    /// The row is longer than its reader allows. Nobody looked into it.
    TooLong,
}

impl RowCause {
    /// Returns the name for reports.
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
            Self::TooLong => "too-long",
        }
    }
}

/// Judgement of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Blank,
    Good(GoodRow),
    Torn(TornRow),
}

/// A row that a repair keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoodRow {
    pub is_glued: bool,
    /// The row contains `NaN` or infinities.
    has_words: bool,
}

impl GoodRow {
    /// Returns why `JSON.parse` refuses the row, if it does.
    #[must_use]
    pub fn flaw(self, row: &[u8]) -> Option<RowCause> {
        self.flaw_where(|| str::from_utf8(row).is_ok())
    }

    /// Returns what [`Self::flaw`] returns. Calls `poll` between the pieces of a long row.
    pub(crate) fn flaw_polled<E>(
        self,
        row: &[u8],
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<RowCause>, E> {
        let mut utf8 = Utf8::default();
        if !self.is_glued && !self.has_words {
            each_piece(row, &mut poll, |piece| utf8.feed(piece))?;
        }
        Ok(self.flaw_where(|| utf8.is_whole()))
    }

    pub(crate) fn flaw_where(self, is_utf8: impl FnOnce() -> bool) -> Option<RowCause> {
        if self.is_glued {
            return Some(RowCause::Glued);
        }
        (self.has_words || !is_utf8()).then_some(RowCause::Nonstandard)
    }
}

/// A row that is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornRow {
    /// Start of the torn bytes in the row: behind its whole objects and arrays.
    pub start: u64,
    pub cause: RowCause,
}

/// Judges a row in memory, without its "\n".
#[must_use]
pub fn judge(row: &[u8], is_terminated: bool) -> Verdict {
    let never = || Ok::<(), Infallible>(());
    match judge_polled(row, is_terminated, never) {
        Ok(verdict) => verdict,
        Err(never) => match never {},
    }
}

/// Judges like [`judge`]. Calls `poll` between the pieces of a long row.
pub(crate) fn judge_polled<E>(
    row: &[u8],
    is_terminated: bool,
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<Verdict, E> {
    let mut judge = Judge::default();
    each_piece(row, &mut poll, |piece| judge.feed(piece))?;
    let verdict = judge.verdict(is_terminated);
    match verdict {
        Verdict::Torn(torn) if torn.cause == RowCause::Partial && !is_terminated => {
            let mut utf8 = Utf8::default();
            let torn_bytes = row.get(torn.start as usize..).unwrap_or_default();
            each_piece(torn_bytes, &mut poll, |piece| utf8.feed(piece))?;
            let cause = if utf8.is_cut() { RowCause::Utf8 } else { torn.cause };
            Ok(Verdict::Torn(TornRow { cause, ..torn }))
        }
        _ => Ok(verdict),
    }
}

/// Bytes that are judged between two polls: a millisecond of work.
const PIECE: usize = 512 << 10;

fn each_piece<E>(
    row: &[u8],
    poll: &mut impl FnMut() -> Result<(), E>,
    mut feed: impl FnMut(&[u8]),
) -> Result<(), E> {
    for (index, piece) in row.chunks(PIECE).enumerate() {
        if 0 < index {
            poll()?;
        }
        feed(piece);
    }
    Ok(())
}

/// Judge of a row that comes in blocks.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    state: JudgeState,
    stack: BitStack,
    /// Number of bytes of earlier blocks.
    fed: u64,
    /// End of the last whole object or array; zero if there is none.
    whole: u64,
    is_glued: bool,
    has_words: bool,
    /// State behind the string that is being read.
    behind_text: JudgeState,
    /// Bytes left of a word.
    word: &'static [u8],
    /// Number of digits left of an escape.
    digits: u8,
}

/// Token that was read last, or that must come next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum JudgeState {
    /// Nothing, or whole objects and arrays, were read.
    #[default]
    Top,
    /// A number was read that is the whole row.
    Number,
    /// A string or a word was read that is the whole row.
    Scalar,
    Value,
    /// The first value of an array must come, or the end of the array.
    FirstValue,
    Key,
    /// The first key of an object must come, or the end of the object.
    FirstKey,
    Colon,
    /// A value in a container was read.
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
    /// The bytes are not the beginning of a row.
    Broken,
    /// The bytes are not the beginning of a row, and a NUL follows.
    BrokenByNul,
}

impl Judge {
    /// Reads more of the row, without its "\n".
    pub fn feed(&mut self, block: &[u8]) {
        let mut at = 0;
        while let Some(&byte) = block.get(at) {
            at = self.step(block, at, byte);
        }
        self.fed += block.len() as u64;
    }

    /// Returns the verdict on the row that ends here. Torn bytes that are cut inside a character count as `Partial`: deciding that
    /// takes all bytes.
    #[must_use]
    pub fn verdict(&self, is_terminated: bool) -> Verdict {
        let is_alone = self.whole == 0;
        let cause = match self.state {
            JudgeState::Top if is_alone => return Verdict::Blank,
            JudgeState::Top => return self.good(),
            JudgeState::Number
            | JudgeState::Zero
            | JudgeState::Integer
            | JudgeState::Fraction
            | JudgeState::Power
                if is_alone && is_terminated && self.stack.last().is_none() =>
            {
                return self.good();
            }
            JudgeState::Scalar if is_alone => return self.good(),
            JudgeState::BrokenByNul => RowCause::Nul,
            JudgeState::Broken | JudgeState::Scalar => RowCause::Garbage,
            _ => RowCause::Partial,
        };
        Verdict::Torn(TornRow { start: self.whole, cause })
    }

    fn good(&self) -> Verdict {
        Verdict::Good(GoodRow { is_glued: self.is_glued, has_words: self.has_words })
    }

    /// Reads `byte` at `at`, or more. Returns where to read next.
    #[inline]
    fn step(&mut self, block: &[u8], at: usize, byte: u8) -> usize {
        match self.state {
            JudgeState::Text => self.text(block, at),
            JudgeState::Broken => self.broken(block, at),
            JudgeState::BrokenByNul => block.len(),
            JudgeState::Integer | JudgeState::Fraction | JudgeState::Power => {
                self.number(block, at)
            }
            JudgeState::Zero => self.behind_digits(byte, at),
            JudgeState::Minus
            | JudgeState::Point
            | JudgeState::Exponent
            | JudgeState::ExponentSign => self.in_number(byte, at),
            JudgeState::Escape => self.escape(byte, at),
            JudgeState::Digits => self.digit(byte, at),
            JudgeState::Word => self.word(byte, at),
            _ => self.between(byte, at),
        }
    }

    /// Reads a byte outside of strings, numbers and words.
    #[inline]
    fn between(&mut self, byte: u8, at: usize) -> usize {
        match (self.state, byte) {
            (_, b' ' | b'\t' | b'\r') => {}
            (JudgeState::Key | JudgeState::FirstKey, b'"') => self.begin_text(JudgeState::Colon),
            (JudgeState::Colon, b':') => self.state = JudgeState::Value,
            (JudgeState::Comma, b',') => {
                let is_object = self.stack.last() == Some(true);
                self.state = if is_object { JudgeState::Key } else { JudgeState::Value };
            }
            (JudgeState::FirstKey, b'}') | (JudgeState::FirstValue, b']') => self.close(at),
            (JudgeState::Comma, b'}') if self.stack.last() == Some(true) => self.close(at),
            (JudgeState::Comma, b']') if self.stack.last() == Some(false) => self.close(at),
            (JudgeState::Top | JudgeState::Value | JudgeState::FirstValue, _) => {
                return self.value(byte, at);
            }
            _ => return self.fail(at),
        }
        at + 1
    }

    #[inline]
    fn value(&mut self, byte: u8, at: usize) -> usize {
        match byte {
            b'{' => self.open(true),
            b'[' => self.open(false),
            b'"' => self.begin_text(self.behind_scalar(JudgeState::Scalar)),
            b'0' => self.state = JudgeState::Zero,
            b'1'..=b'9' => self.state = JudgeState::Integer,
            b'-' => self.state = JudgeState::Minus,
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
        self.state = if is_object { JudgeState::FirstKey } else { JudgeState::FirstValue };
    }

    /// Closes a container with the bracket at `at`.
    fn close(&mut self, at: usize) {
        self.stack.pop();
        if self.stack.last().is_some() {
            self.state = JudgeState::Comma;
            return;
        }
        self.is_glued = self.whole != 0;
        self.whole = self.fed + at as u64 + 1;
        self.state = JudgeState::Top;
    }

    fn begin_text(&mut self, behind: JudgeState) {
        self.behind_text = behind;
        self.state = JudgeState::Text;
    }

    fn begin_word(&mut self, rest: &'static [u8]) {
        self.word = rest;
        self.state = JudgeState::Word;
    }

    /// Begins a word that JSON does not have.
    fn begin_own_word(&mut self, rest: &'static [u8]) {
        self.has_words = true;
        self.begin_word(rest);
    }

    /// Returns the state behind a scalar: `alone` outside of containers.
    fn behind_scalar(&self, alone: JudgeState) -> JudgeState {
        if self.stack.last().is_some() { JudgeState::Comma } else { alone }
    }

    fn fail(&mut self, at: usize) -> usize {
        self.state = JudgeState::Broken;
        at
    }

    fn broken(&mut self, block: &[u8], at: usize) -> usize {
        if memchr(0, block.get(at..).unwrap_or_default()).is_some() {
            self.state = JudgeState::BrokenByNul;
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
            // Most escapes are one letter in the same block.
            if !block.get(at + 1).copied().is_some_and(is_letter) {
                self.state = JudgeState::Escape;
                return at + 1;
            }
            at += 2;
        }
    }

    fn escape(&mut self, byte: u8, at: usize) -> usize {
        match byte {
            _ if is_letter(byte) => self.state = JudgeState::Text,
            b'u' => {
                self.digits = 4;
                self.state = JudgeState::Digits;
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
            self.state = JudgeState::Text;
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
            self.state = self.behind_scalar(JudgeState::Scalar);
        }
        at + 1
    }

    /// Reads digits.
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
            (JudgeState::Zero | JudgeState::Integer, b'.') => self.state = JudgeState::Point,
            (JudgeState::Zero | JudgeState::Integer | JudgeState::Fraction, b'e' | b'E') => {
                self.state = JudgeState::Exponent;
            }
            _ => {
                self.state = self.behind_scalar(JudgeState::Number);
                return at;
            }
        }
        at + 1
    }

    /// Reads a byte where a number cannot end.
    fn in_number(&mut self, byte: u8, at: usize) -> usize {
        self.state = match (self.state, byte) {
            (JudgeState::Minus, b'0') => JudgeState::Zero,
            (JudgeState::Minus, b'1'..=b'9') => JudgeState::Integer,
            (JudgeState::Minus, b'I') => {
                self.begin_own_word(b"nfinity");
                JudgeState::Word
            }
            (JudgeState::Point, b'0'..=b'9') => JudgeState::Fraction,
            (JudgeState::Exponent, b'+' | b'-') => JudgeState::ExponentSign,
            (JudgeState::Exponent | JudgeState::ExponentSign, b'0'..=b'9') => JudgeState::Power,
            _ => JudgeState::Broken,
        };
        if self.state == JudgeState::Broken { at } else { at + 1 }
    }
}

/// Returns whether `byte` is an escape of one letter.
fn is_letter(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')
}
