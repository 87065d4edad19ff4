//! JSON read as its grammar has it, exactly what `JSON.parse` takes. A stack of bits instead of the machine's: depth is
//! bounded by memory.

/// Is told what a text holds, in its order.
pub(crate) trait Visit {
    type Error;

    fn open(&mut self, _is_object: bool) -> Result<(), Self::Error> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// What stands between its quotes.
    fn key(&mut self, _text: &[u8]) -> Result<(), Self::Error> {
        Ok(())
    }

    fn string(&mut self, _text: &[u8]) -> Result<(), Self::Error> {
        Ok(())
    }

    fn number(&mut self, _text: &[u8]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// `None` for `null`.
    fn literal(&mut self, _value: Option<bool>) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Why a text is not read to its end.
pub(crate) enum Stop<E> {
    /// No JSON goes on so at this byte.
    Unexpected(usize),
    Visitor(E),
}

/// One JSON value in UTF-8, with white space around it or not.
pub(crate) fn read<V: Visit>(json: &[u8], visitor: &mut V) -> Result<(), Stop<V::Error>> {
    let (text, is_whole) = match str::from_utf8(json) {
        Ok(_) => (json, true),
        Err(error) => (json.get(..error.valid_up_to()).unwrap_or_default(), false),
    };
    Reader { text, at: 0, stack: Stack::default(), visitor }.document()?;
    // What is no UTF-8 stands where nothing, or the rest of a value, was awaited.
    if is_whole { Ok(()) } else { Err(Stop::Unexpected(text.len())) }
}

struct Reader<'a, 'v, V> {
    text: &'a [u8],
    at: usize,
    stack: Stack,
    visitor: &'v mut V,
}

impl<'a, V: Visit> Reader<'a, '_, V> {
    fn document(&mut self) -> Result<(), Stop<V::Error>> {
        loop {
            self.space();
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.visitor.open(true).map_err(Stop::Visitor)?;
                    self.space();
                    if self.peek() != Some(b'}') {
                        self.stack.push(true);
                        self.key()?;
                        continue;
                    }
                    self.close()?;
                }
                Some(b'[') => {
                    self.at += 1;
                    self.visitor.open(false).map_err(Stop::Visitor)?;
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

    fn close(&mut self) -> Result<(), Stop<V::Error>> {
        self.at += 1;
        self.visitor.close().map_err(Stop::Visitor)
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
            Some(b'-' | b'0'..=b'9') => {
                let start = self.at;
                self.number()?;
                self.visitor.number(self.from(start)).map_err(Stop::Visitor)
            }
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
    fn string(&mut self) -> Result<&'a [u8], Stop<V::Error>> {
        let start = self.at;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let clean = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            self.at += clean.unwrap_or(rest.len());
            match self.peek() {
                Some(b'"') => {
                    let text = self.from(start);
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                _ => return Err(self.unexpected()),
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

    fn number(&mut self) -> Result<(), Stop<V::Error>> {
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
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn literal(&mut self, text: &[u8], value: Option<bool>) -> Result<(), Stop<V::Error>> {
        text.iter().try_for_each(|&byte| self.byte(byte))?;
        self.visitor.literal(value).map_err(Stop::Visitor)
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
