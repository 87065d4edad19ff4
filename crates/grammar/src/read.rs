//! JSON read as its grammar has it. A stack of bits instead of the machine's: depth is bounded by memory.

use std::borrow::Cow;
use std::ops::Range;

use crate::clean::clean;
use crate::integers::integers;
use crate::unescape::unescaped;

/// Is told what a text holds, in its order, and at which byte it begins. Its errors end the reading.
#[allow(clippy::missing_errors_doc, reason = "they are whatever the visitor makes of them")]
pub trait Visit {
    type Error;

    fn open(&mut self, _is_object: bool, _at: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// `end` is behind the bracket.
    fn close(&mut self, _end: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    fn key(&mut self, _text: Text<'_>) -> Result<(), Self::Error> {
        Ok(())
    }

    fn string(&mut self, _text: Text<'_>) -> Result<(), Self::Error> {
        Ok(())
    }

    fn number(&mut self, _text: &[u8], _at: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether integers may be told by their number alone, as [`Self::integers`].
    fn skips_integers(&self) -> bool {
        false
    }

    /// So many of an array, one behind the other.
    fn integers(&mut self, _count: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// All up to this byte has been read: told at least every [`PROGRESS`] bytes.
    fn progress(&mut self, _at: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// `None` for `null`.
    fn literal(&mut self, _value: Option<bool>, _at: usize) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// What stands between the quotes of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    pub bytes: &'a [u8],
    /// Its first byte.
    pub at: usize,
    pub has_escapes: bool,
}

impl<'a> Text<'a> {
    /// As [`unescaped`].
    #[must_use]
    pub fn unescaped(self) -> Cow<'a, [u8]> {
        if self.has_escapes { unescaped(self.bytes).into() } else { self.bytes.into() }
    }

    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.at..self.at + self.bytes.len()
    }
}

/// Why a text is not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop<E> {
    /// No JSON goes on so at this byte.
    Unexpected(usize),
    Visitor(E),
}

/// Reads one JSON value in UTF-8, with white space around it or not.
///
/// # Errors
/// Where it is none, and those of the visitor.
pub fn read<V: Visit>(json: &[u8], visitor: &mut V) -> Result<(), Stop<V::Error>> {
    Reader { text: json, at: 0, told: 0, stack: Stack::default(), visitor }.document()
}

/// Bytes of text, some microseconds of work.
pub const PROGRESS: usize = 32 << 10;

struct Reader<'a, 'v, V> {
    text: &'a [u8],
    at: usize,
    /// What the visitor was told last.
    told: usize,
    stack: Stack,
    visitor: &'v mut V,
}

impl<'a, V: Visit> Reader<'a, '_, V> {
    fn document(&mut self) -> Result<(), Stop<V::Error>> {
        loop {
            self.tell()?;
            self.space();
            self.skip_integers()?;
            match self.peek() {
                Some(b'{') => {
                    self.visitor.open(true, self.at).map_err(Stop::Visitor)?;
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
                    self.visitor.open(false, self.at).map_err(Stop::Visitor)?;
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

    /// What closes containers, up to where the next value is awaited; true at the end.
    fn behind_value(&mut self) -> Result<bool, Stop<V::Error>> {
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
    fn tell(&mut self) -> Result<(), Stop<V::Error>> {
        if self.at - self.told < PROGRESS {
            return Ok(());
        }
        self.told = self.at;
        self.visitor.progress(self.at).map_err(Stop::Visitor)
    }

    fn close(&mut self) -> Result<(), Stop<V::Error>> {
        self.at += 1;
        self.visitor.close(self.at).map_err(Stop::Visitor)
    }

    fn key(&mut self) -> Result<(), Stop<V::Error>> {
        self.byte(b'"')?;
        let text = self.string()?;
        self.visitor.key(text).map_err(Stop::Visitor)?;
        self.space();
        self.byte(b':')
    }

    fn scalar(&mut self) -> Result<(), Stop<V::Error>> {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                let text = self.string()?;
                self.visitor.string(text).map_err(Stop::Visitor)
            }
            Some(b'-' | b'0'..=b'9') => self.numbers(),
            Some(b't') => self.literal(b"true", Some(true)),
            Some(b'f') => self.literal(b"false", Some(false)),
            Some(b'n') => self.literal(b"null", None),
            _ => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> Stop<V::Error> {
        Stop::Unexpected(self.at)
    }

    fn from(&self, start: usize) -> &'a [u8] {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Up to its closing quote, which it goes behind.
    fn string(&mut self) -> Result<Text<'a>, Stop<V::Error>> {
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

    /// Goes to the first byte that ends a string, begins an escape, or may not stand there: what is no UTF-8 as well.
    fn clean(&mut self) -> Result<(), Stop<V::Error>> {
        loop {
            self.tell()?;
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
            // A character may go on in the next window.
            if part.len() < PROGRESS || error.error_len().is_some() || error.valid_up_to() == 0 {
                return Err(self.unexpected());
            }
        }
    }

    fn escape(&mut self) -> Result<(), Stop<V::Error>> {
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

    /// Integers of an array that nobody wants one by one, but for the last few.
    #[inline]
    fn skip_integers(&mut self) -> Result<(), Stop<V::Error>> {
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
            self.visitor.integers(count).map_err(Stop::Visitor)?;
            self.tell()?;
            // What is behind the comma.
            if self.peek() == Some(b' ') {
                self.at += 1;
            }
        }
    }

    /// One; and in an array, all that follow each other with nothing but a comma between.
    fn numbers(&mut self) -> Result<(), Stop<V::Error>> {
        let is_array = self.stack.last() == Some(false);
        loop {
            let start = self.at;
            self.number()?;
            self.visitor.number(self.from(start), start).map_err(Stop::Visitor)?;
            match self.text.get(self.at..) {
                Some([b',', b'-' | b'0'..=b'9', ..]) if is_array => self.at += 1,
                _ => return Ok(()),
            }
            self.tell()?;
        }
    }

    #[inline]
    fn number(&mut self) -> Result<(), Stop<V::Error>> {
        if let Some(len) = short_integer(self.text.get(self.at..).unwrap_or_default()) {
            self.at += len;
            return Ok(());
        }
        self.any_number()
    }

    fn any_number(&mut self) -> Result<(), Stop<V::Error>> {
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

    /// One at least.
    fn digits(&mut self) -> Result<(), Stop<V::Error>> {
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

    fn literal(&mut self, text: &[u8], value: Option<bool>) -> Result<(), Stop<V::Error>> {
        let start = self.at;
        text.iter().try_for_each(|&byte| self.byte(byte))?;
        self.visitor.literal(value, start).map_err(Stop::Visitor)
    }

    fn byte(&mut self, byte: u8) -> Result<(), Stop<V::Error>> {
        self.one(|found| found == byte)
    }

    fn one(&mut self, fits: impl Fn(u8) -> bool) -> Result<(), Stop<V::Error>> {
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

/// The length of an integer of up to seven digits, which most numbers are. None of all others.
#[inline]
fn short_integer(text: &[u8]) -> Option<usize> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let eight = text.get(sign..)?.first_chunk::<8>()?;
    let count = leading_digits(*eight);
    let is_json = count == 1 || count != 0 && eight.first() != Some(&b'0');
    let is_whole = !matches!(eight.get(count)?, b'.' | b'e' | b'E');
    (is_json && is_whole).then_some(sign + count)
}

/// How many digits eight bytes begin with.
fn leading_digits(eight: [u8; 8]) -> usize {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    const SIXES: u64 = 0x0606_0606_0606_0606;
    let bytes = u64::from_le_bytes(eight);
    // A digit has a three in its high half, and has it still when six is added. What a byte carries into the next makes
    // only those wrong that come behind one that is no digit.
    let others = (bytes & HIGH ^ ZEROS) | (bytes.wrapping_add(SIXES) & HIGH ^ ZEROS);
    others.trailing_zeros() as usize / 8
}

/// Of bits.
#[derive(Default)]
struct Stack {
    words: Vec<u64>,
    len: usize,
}

impl Stack {
    fn push(&mut self, bit: bool) {
        let (word, mask) = (self.len / 64, 1 << (self.len % 64));
        if word == self.words.len() {
            self.words.push(0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word = if bit { *word | mask } else { *word & !mask };
        }
        self.len += 1;
    }

    fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
    }

    fn last(&self) -> Option<bool> {
        let index = self.len.checked_sub(1)?;
        self.words.get(index / 64).map(|word| word >> (index % 64) & 1 != 0)
    }
}
