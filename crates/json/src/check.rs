//! Whether bytes are JSON, exactly as `JSON.parse` of their text would say. A stack of bits instead of the machine's:
//! depth is bounded by memory.

use std::error::Error;
use std::fmt;

/// Bytes that are no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckError {
    /// The first byte at which no JSON can go on so, or how many there are where it ends too early.
    pub offset: usize,
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no JSON can go on so at byte {}", self.offset)
    }
}

impl Error for CheckError {}

/// # Errors
/// Where `json` is not one JSON value in UTF-8, with white space around it or not.
pub fn check(json: &[u8]) -> Result<(), CheckError> {
    let (text, is_whole) = match str::from_utf8(json) {
        Ok(_) => (json, true),
        Err(error) => (json.get(..error.valid_up_to()).unwrap_or_default(), false),
    };
    let mut checker = Checker { text, at: 0, stack: Stack::default() };
    match checker.document() {
        // What is no UTF-8 stands where nothing, or the rest of a value, was awaited.
        Ok(()) if is_whole => Ok(()),
        Ok(()) => Err(CheckError { offset: text.len() }),
        Err(Unexpected) => Err(CheckError { offset: checker.at }),
    }
}

/// At `at` of the checker.
struct Unexpected;

struct Checker<'a> {
    text: &'a [u8],
    at: usize,
    stack: Stack,
}

impl Checker<'_> {
    fn document(&mut self) -> Result<(), Unexpected> {
        loop {
            self.space();
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.space();
                    if self.peek() != Some(b'}') {
                        self.stack.push(true);
                        self.key()?;
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'[') => {
                    self.at += 1;
                    self.space();
                    if self.peek() != Some(b']') {
                        self.stack.push(false);
                        continue;
                    }
                    self.at += 1;
                }
                _ => self.scalar()?,
            }
            if self.behind_value()? {
                return Ok(());
            }
        }
    }

    /// What closes containers, up to where the next value is awaited; true at the end.
    fn behind_value(&mut self) -> Result<bool, Unexpected> {
        loop {
            self.space();
            let Some(is_object) = self.stack.last() else {
                return if self.peek().is_none() { Ok(true) } else { Err(Unexpected) };
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
                    self.at += 1;
                    self.stack.pop();
                }
                _ => return Err(Unexpected),
            }
        }
    }

    fn key(&mut self) -> Result<(), Unexpected> {
        self.byte(b'"')?;
        self.string()?;
        self.space();
        self.byte(b':')
    }

    fn scalar(&mut self) -> Result<(), Unexpected> {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.string()
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            _ => Err(Unexpected),
        }
    }

    /// The rest of one, with its closing quote.
    fn string(&mut self) -> Result<(), Unexpected> {
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let clean = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            self.at += clean.unwrap_or(rest.len());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                _ => return Err(Unexpected),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Unexpected> {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    self.one(|byte| byte.is_ascii_hexdigit())?;
                }
            }
            _ => return Err(Unexpected),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Unexpected> {
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
    fn digits(&mut self) -> Result<(), Unexpected> {
        self.one(|byte| byte.is_ascii_digit())?;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn literal(&mut self, text: &[u8]) -> Result<(), Unexpected> {
        text.iter().try_for_each(|&byte| self.byte(byte))
    }

    fn byte(&mut self, byte: u8) -> Result<(), Unexpected> {
        self.one(|found| found == byte)
    }

    fn one(&mut self, fits: impl Fn(u8) -> bool) -> Result<(), Unexpected> {
        if !self.peek().is_some_and(fits) {
            return Err(Unexpected);
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
