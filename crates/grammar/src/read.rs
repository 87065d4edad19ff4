//! Reads JSON token by token. Runs on any thread; every crate that reads JSON implements [`JsonVisitor`].
//!
//! A stack of bits takes the place of recursion, so memory bounds the depth.

use std::borrow::Cow;
use std::ops::Range;

use crate::bits::BitStack;
use crate::clean::clean;
use crate::integers::integers;
use crate::unescape::unescaped;

/// Receives the tokens of a text, in its order. An error of a visitor ends the reading.
#[allow(clippy::missing_errors_doc, reason = "each visitor has errors of its own")]
pub trait JsonVisitor {
    type Error;

    /// Begins an object or an array. `at` is the offset of its bracket.
    fn open(&mut self, _is_object: bool, _at: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Ends an object or an array. `end` is the offset behind its bracket.
    fn close(&mut self, _end: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Receives a key of the innermost object.
    fn key(&mut self, _text: Text<'_>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Receives a string that is a value.
    fn string(&mut self, _text: Text<'_>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Receives a number and its offset.
    fn number(&mut self, _text: &[u8], _at: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Returns whether the visitor only counts integers: [`Self::integers`] may then replace [`Self::number`].
    fn skips_integers(&self) -> bool {
        false
    }

    /// Skips `count` integers of an array.
    fn integers(&mut self, _count: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Receives how far the text was read, at least once every [`PROGRESS`] bytes.
    fn progress(&mut self, _at: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Receives `true`, `false`, or `None` for `null`.
    fn literal(&mut self, _value: Option<bool>, _at: usize) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// A string without its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The bytes in the text, escapes included.
    pub bytes: &'a [u8],
    /// The offset of its first byte.
    pub at: usize,
    pub has_escapes: bool,
}

impl<'a> Text<'a> {
    /// Returns the string without its escapes: see [`unescaped`].
    #[must_use]
    pub fn unescaped(self) -> Cow<'a, [u8]> {
        if self.has_escapes { unescaped(self.bytes).into() } else { self.bytes.into() }
    }

    /// Returns the range of the bytes in the text.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.at..self.at + self.bytes.len()
    }
}

/// Why a text was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError<E> {
    /// The text is invalid at this offset.
    Unexpected(usize),
    /// The error of the visitor.
    Visitor(E),
}

/// Reads one JSON value in UTF-8. White space may surround it.
///
/// # Errors
/// Invalid JSON, and the errors of the visitor.
pub fn read<V: JsonVisitor>(json: &[u8], visitor: &mut V) -> Result<(), ReadError<V::Error>> {
    TokenReader { text: json, at: 0, reported: 0, stack: BitStack::default(), visitor }.document()
}

/// Bytes of text between two reports of progress: some microseconds of work.
pub const PROGRESS: usize = 32 << 10;

/// Reads one document.
struct TokenReader<'a, 'v, V> {
    text: &'a [u8],
    at: usize,
    /// The offset that the visitor last received as progress.
    reported: usize,
    stack: BitStack,
    visitor: &'v mut V,
}

impl<'a, V: JsonVisitor> TokenReader<'a, '_, V> {
    fn document(&mut self) -> Result<(), ReadError<V::Error>> {
        loop {
            self.report_progress()?;
            self.space();
            self.skip_integers()?;
            match self.peek() {
                Some(b'{') => {
                    self.visitor.open(true, self.at).map_err(ReadError::Visitor)?;
                    self.at += 1;
                    self.space();
                    if self.peek() != Some(b'}') {
                        self.stack.push(true);
                        self.key()?;
                        continue;
                    }
                    self.close()?;
                }
                Some(b'[') => {
                    self.visitor.open(false, self.at).map_err(ReadError::Visitor)?;
                    self.at += 1;
                    self.space();
                    if self.peek() != Some(b']') {
                        self.stack.push(false);
                        continue;
                    }
                    self.close()?;
                }
                _ => self.scalar()?,
            }
            if self.behind_value()? {
                return Ok(());
            }
        }
    }

    /// Closes containers up to the next value. Returns true at the end of the document.
    fn behind_value(&mut self) -> Result<bool, ReadError<V::Error>> {
        loop {
            self.space();
            let Some(is_object) = self.stack.last() else {
                return if self.peek().is_none() { Ok(true) } else { Err(self.unexpected()) };
            };
            match (self.peek(), is_object) {
                (Some(b','), false) => {
                    self.at += 1;
                    return Ok(false);
                }
                (Some(b','), true) => {
                    self.at += 1;
                    self.space();
                    self.key()?;
                    return Ok(false);
                }
                (Some(b']'), false) | (Some(b'}'), true) => {
                    self.close()?;
                    self.stack.pop();
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    #[inline]
    fn report_progress(&mut self) -> Result<(), ReadError<V::Error>> {
        if self.at - self.reported < PROGRESS {
            return Ok(());
        }
        self.reported = self.at;
        self.visitor.progress(self.at).map_err(ReadError::Visitor)
    }

    fn close(&mut self) -> Result<(), ReadError<V::Error>> {
        self.at += 1;
        self.visitor.close(self.at).map_err(ReadError::Visitor)
    }

    fn key(&mut self) -> Result<(), ReadError<V::Error>> {
        self.byte(b'"')?;
        let text = self.string()?;
        self.visitor.key(text).map_err(ReadError::Visitor)?;
        self.space();
        self.byte(b':')
    }

    fn scalar(&mut self) -> Result<(), ReadError<V::Error>> {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                let text = self.string()?;
                self.visitor.string(text).map_err(ReadError::Visitor)
            }
            Some(b'-' | b'0'..=b'9') => self.numbers(),
            Some(b't') => self.literal(b"true", Some(true)),
            Some(b'f') => self.literal(b"false", Some(false)),
            Some(b'n') => self.literal(b"null", None),
            _ => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> ReadError<V::Error> {
        ReadError::Unexpected(self.at)
    }

    fn from(&self, start: usize) -> &'a [u8] {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Reads the rest of a string and its closing quote.
    fn string(&mut self) -> Result<Text<'a>, ReadError<V::Error>> {
        let at = self.at;
        let mut has_escapes = false;
        loop {
            self.clean()?;
            match self.peek() {
                Some(b'"') => {
                    let bytes = self.from(at);
                    self.at += 1;
                    return Ok(Text { bytes, at, has_escapes });
                }
                Some(b'\\') => {
                    self.at += 1;
                    has_escapes = true;
                    self.escape()?;
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// Skips characters up to a quote, an escape, a control character or invalid UTF-8.
    fn clean(&mut self) -> Result<(), ReadError<V::Error>> {
        loop {
            self.report_progress()?;
            let rest = self.text.get(self.at..).unwrap_or_default();
            let window = rest.get(..PROGRESS).unwrap_or(rest);
            let (len, is_ascii) = clean(window);
            let part = window.get(..len).unwrap_or(window);
            let utf8 = if is_ascii { Ok("") } else { str::from_utf8(part) };
            let Err(error) = utf8 else {
                self.at += part.len();
                if part.len() < PROGRESS {
                    return Ok(());
                }
                continue;
            };
            self.at += error.valid_up_to();
            // The next window may hold the rest of a character.
            if part.len() < PROGRESS || error.error_len().is_some() || error.valid_up_to() == 0 {
                return Err(self.unexpected());
            }
        }
    }

    fn escape(&mut self) -> Result<(), ReadError<V::Error>> {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    self.one(|byte| byte.is_ascii_hexdigit())?;
                }
            }
            _ => return Err(self.unexpected()),
        }
        Ok(())
    }

    /// Skips integers of an array where the visitor only counts them. Leaves the last few.
    #[inline]
    fn skip_integers(&mut self) -> Result<(), ReadError<V::Error>> {
        let is_number = matches!(self.peek(), Some(b'-' | b'0'..=b'9'));
        if !is_number || self.stack.last() != Some(false) || !self.visitor.skips_integers() {
            return Ok(());
        }
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let (len, count) = integers(rest.get(..PROGRESS).unwrap_or(rest));
            if len == 0 {
                self.space();
                return Ok(());
            }
            self.at += len;
            self.visitor.integers(count).map_err(ReadError::Visitor)?;
            self.report_progress()?;
            // One space may follow the comma.
            if self.peek() == Some(b' ') {
                self.at += 1;
            }
        }
    }

    /// Reads one number. In an array it reads on while only a comma stands between two numbers.
    fn numbers(&mut self) -> Result<(), ReadError<V::Error>> {
        let is_array = self.stack.last() == Some(false);
        loop {
            let start = self.at;
            self.number()?;
            self.visitor.number(self.from(start), start).map_err(ReadError::Visitor)?;
            match self.text.get(self.at..) {
                Some([b',', b'-' | b'0'..=b'9', ..]) if is_array => self.at += 1,
                _ => return Ok(()),
            }
            self.report_progress()?;
        }
    }

    #[inline]
    fn number(&mut self) -> Result<(), ReadError<V::Error>> {
        if let Some(len) = short_integer(self.text.get(self.at..).unwrap_or_default()) {
            self.at += len;
            return Ok(());
        }
        self.any_number()
    }

    fn any_number(&mut self) -> Result<(), ReadError<V::Error>> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Reads at least one digit.
    fn digits(&mut self) -> Result<(), ReadError<V::Error>> {
        self.one(|byte| byte.is_ascii_digit())?;
        // Most numbers end within eight bytes.
        while let Some(&eight) = self.text.get(self.at..).and_then(<[u8]>::first_chunk) {
            let count = leading_digits(eight);
            self.at += count;
            if count < eight.len() {
                return Ok(());
            }
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn literal(&mut self, text: &[u8], value: Option<bool>) -> Result<(), ReadError<V::Error>> {
        let start = self.at;
        text.iter().try_for_each(|&byte| self.byte(byte))?;
        self.visitor.literal(value, start).map_err(ReadError::Visitor)
    }

    fn byte(&mut self, byte: u8) -> Result<(), ReadError<V::Error>> {
        self.one(|found| found == byte)
    }

    fn one(&mut self, fits: impl Fn(u8) -> bool) -> Result<(), ReadError<V::Error>> {
        if !self.peek().is_some_and(fits) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }
}

/// Returns the length of an integer of up to seven digits, which most numbers are. Returns `None` for any other number.
#[inline]
fn short_integer(text: &[u8]) -> Option<usize> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let eight = text.get(sign..)?.first_chunk::<8>()?;
    let count = leading_digits(*eight);
    let is_json = count == 1 || count != 0 && eight.first() != Some(&b'0');
    let is_whole = !matches!(eight.get(count)?, b'.' | b'e' | b'E');
    (is_json && is_whole).then_some(sign + count)
}

/// Returns the number of digits at the start of eight bytes.
fn leading_digits(eight: [u8; 8]) -> usize {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    const SIXES: u64 = 0x0606_0606_0606_0606;
    let bytes = u64::from_le_bytes(eight);
    // The high half of a digit is three, and stays three when six is added. Only a byte that is not a digit carries
    // into the next, so only bytes behind it come out wrong.
    let others = (bytes & HIGH ^ ZEROS) | (bytes.wrapping_add(SIXES) & HIGH ^ ZEROS);
    others.trailing_zeros() as usize / 8
}
