//! Reads the streams of a segment in order, for `transcode` and `msgpack`, in tasks.

use crate::tape::{ElementFormat, JsText, Malformed, Segment, Tape, TextLocation};

/// The rest of each stream of a segment.
pub(crate) struct Streams<'a> {
    words: &'a [i32],
    doubles: &'a [f64],
    bytes: &'a [u8],
    rope: &'a [u8],
    runs: &'a [i32],
    /// Characters of the current run of the rope that are left.
    run_left: usize,
    run_is_wide: bool,
}

impl<'a> Streams<'a> {
    pub fn new(segment: &Segment<'a>) -> Self {
        Self {
            words: segment.words,
            doubles: segment.doubles,
            bytes: segment.bytes,
            rope: segment.rope,
            runs: segment.runs,
            run_left: 0,
            run_is_wide: false,
        }
    }

    /// Takes a word; `None` at the end.
    #[inline]
    pub fn next_word(&mut self) -> Option<i32> {
        let (&word, rest) = self.words.split_first()?;
        self.words = rest;
        Some(word)
    }

    /// Takes a word that is a length or an index.
    pub fn size(&mut self) -> Result<usize, Malformed> {
        self.next_word().and_then(|word| usize::try_from(word).ok()).ok_or(Malformed)
    }

    /// Takes the characters whose location is `payload` and whose length or index is the next word.
    pub fn located(&mut self, payload: usize, tape: &Tape<'a>) -> Result<JsText<'a>, Malformed> {
        let len = self.size()?;
        match TextLocation::of(payload).ok_or(Malformed)? {
            TextLocation::Latin1 => Ok(JsText { bytes: self.bytes(len)?, is_wide: false }),
            TextLocation::Utf16 => Ok(JsText { bytes: self.wide_bytes(len)?, is_wide: true }),
            TextLocation::Rope => self.rope(len),
            TextLocation::Long => tape.long(len),
        }
    }

    /// Takes the elements of a typed array and their format.
    pub fn elements(
        &mut self,
        are_long: bool,
        tape: &Tape<'a>,
    ) -> Result<(ElementFormat, &'a [u8]), Malformed> {
        let form = ElementFormat::of(self.size()?).ok_or(Malformed)?;
        let at = self.size()?;
        let bytes = if are_long { tape.long(at)?.bytes } else { self.bytes(at)? };
        Ok((form, bytes))
    }

    /// Takes a part of a JSON text.
    pub fn text(&mut self, payload: usize, tape: &Tape<'a>) -> Result<JsText<'a>, Malformed> {
        let JsText { bytes, is_wide } = self.located(payload, tape)?;
        let width = if is_wide { 2 } else { 1 };
        let (from, to) = (self.size()? * width, self.size()? * width);
        Ok(JsText { bytes: bytes.get(from..to).ok_or(Malformed)?, is_wide })
    }

    /// Takes a double.
    #[inline]
    pub fn double(&mut self) -> Result<f64, Malformed> {
        let (&double, rest) = self.doubles.split_first().ok_or(Malformed)?;
        self.doubles = rest;
        Ok(double)
    }

    /// Takes words that are integers.
    pub fn ints(&mut self, len: usize) -> Result<&'a [i32], Malformed> {
        take(&mut self.words, len)
    }

    /// Takes doubles.
    pub fn doubles(&mut self, len: usize) -> Result<&'a [f64], Malformed> {
        take(&mut self.doubles, len)
    }

    /// Takes bytes.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        take(&mut self.bytes, len)
    }

    /// Takes the bytes of UTF-16 units.
    #[inline]
    pub fn wide_bytes(&mut self, characters: usize) -> Result<&'a [u8], Malformed> {
        take(&mut self.bytes, characters * 2)
    }

    /// Takes characters of the rope, which are all in one run.
    #[inline]
    pub fn rope(&mut self, len: usize) -> Result<JsText<'a>, Malformed> {
        while self.run_left == 0 && len != 0 {
            let (&run, rest) = self.runs.split_first().ok_or(Malformed)?;
            self.runs = rest;
            self.run_left = usize::try_from(run >> 1).map_err(|_| Malformed)?;
            self.run_is_wide = run & 1 != 0;
        }
        self.run_left = self.run_left.checked_sub(len).ok_or(Malformed)?;
        let size = if self.run_is_wide { len * 2 } else { len };
        Ok(JsText { bytes: take(&mut self.rope, size)?, is_wide: self.run_is_wide })
    }
}

#[inline]
fn take<'a, T>(stream: &mut &'a [T], len: usize) -> Result<&'a [T], Malformed> {
    let (taken, rest) = stream.split_at_checked(len).ok_or(Malformed)?;
    *stream = rest;
    Ok(taken)
}
