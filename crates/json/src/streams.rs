//! What a segment's words draw from, in their order.

use crate::tape::{Characters, Form, Long, Malformed, Segment, long};

pub(crate) struct Streams<'a> {
    words: &'a [i32],
    doubles: &'a [f64],
    bytes: &'a [u8],
    rope: &'a [u8],
    runs: &'a [i32],
    /// Characters that are left of the run of the rope.
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

    #[inline]
    pub fn next_word(&mut self) -> Option<i32> {
        let (&word, rest) = self.words.split_first()?;
        self.words = rest;
        Some(word)
    }

    /// A word that is a length or an index.
    pub fn size(&mut self) -> Result<usize, Malformed> {
        self.next_word().and_then(|word| usize::try_from(word).ok()).ok_or(Malformed)
    }

    /// The characters that the payload of a word and the next word name.
    pub fn located(&mut self, payload: usize, longs: &[Long<'a>]) -> Result<Long<'a>, Malformed> {
        let len = self.size()?;
        match Characters::of(payload).ok_or(Malformed)? {
            Characters::Latin1 => Ok(Long { bytes: self.bytes(len)?, is_wide: false }),
            Characters::Utf16 => Ok(Long { bytes: self.wide_bytes(len)?, is_wide: true }),
            Characters::Rope => self.rope(len),
            Characters::Long => long(longs, len),
        }
    }

    /// The elements of a typed array, and how they are written.
    pub fn elements(
        &mut self,
        are_long: bool,
        longs: &[Long<'a>],
    ) -> Result<(Form, &'a [u8]), Malformed> {
        let form = Form::of(self.size()?).ok_or(Malformed)?;
        let at = self.size()?;
        let bytes = if are_long { long(longs, at)?.bytes } else { self.bytes(at)? };
        Ok((form, bytes))
    }

    /// JSON text.
    pub fn text(&mut self, payload: usize, longs: &[Long<'a>]) -> Result<Long<'a>, Malformed> {
        let Long { bytes, is_wide } = self.located(payload, longs)?;
        let width = if is_wide { 2 } else { 1 };
        let (from, to) = (self.size()? * width, self.size()? * width);
        Ok(Long { bytes: bytes.get(from..to).ok_or(Malformed)?, is_wide })
    }

    #[inline]
    pub fn double(&mut self) -> Result<f64, Malformed> {
        let (&double, rest) = self.doubles.split_first().ok_or(Malformed)?;
        self.doubles = rest;
        Ok(double)
    }

    pub fn ints(&mut self, len: usize) -> Result<&'a [i32], Malformed> {
        take(&mut self.words, len)
    }

    pub fn doubles(&mut self, len: usize) -> Result<&'a [f64], Malformed> {
        take(&mut self.doubles, len)
    }

    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        take(&mut self.bytes, len)
    }

    #[inline]
    pub fn wide_bytes(&mut self, characters: usize) -> Result<&'a [u8], Malformed> {
        take(&mut self.bytes, characters * 2)
    }

    /// No string stands in two runs.
    #[inline]
    pub fn rope(&mut self, len: usize) -> Result<Long<'a>, Malformed> {
        while self.run_left == 0 && len != 0 {
            let (&run, rest) = self.runs.split_first().ok_or(Malformed)?;
            self.runs = rest;
            self.run_left = usize::try_from(run >> 1).map_err(|_| Malformed)?;
            self.run_is_wide = run & 1 != 0;
        }
        self.run_left = self.run_left.checked_sub(len).ok_or(Malformed)?;
        let size = if self.run_is_wide { len * 2 } else { len };
        Ok(Long { bytes: take(&mut self.rope, size)?, is_wide: self.run_is_wide })
    }
}

#[inline]
fn take<'a, T>(stream: &mut &'a [T], len: usize) -> Result<&'a [T], Malformed> {
    let (taken, rest) = stream.split_at_checked(len).ok_or(Malformed)?;
    *stream = rest;
    Ok(taken)
}
