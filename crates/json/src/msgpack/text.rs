//! Writes `MessagePack` from JSON text, in tasks, in one pass.
//!
//! A head contains the number of elements, which is known at the end of the container. One byte is left for it. Heads
//! that need more bytes are inserted at the end, all at once.

use memchr::memchr;
use offloop_grammar::{CheckError, JsonVisitor, ReadError, Text, read, unescape};

use crate::error::TranscodeError;
use crate::msgpack::count::push;
use crate::msgpack::form::{
    FALSE, Floats, HEAD, HeadKind, NIL, NUMBER, TRUE, head, integer, natural, number,
};
use crate::output::{Memory, WideBlock};
use crate::tape::Malformed;
use crate::writer::Writer;

/// Writes the value of `json`.
pub(super) fn write_text<M: Memory, P: FnMut() -> Result<(), M::Error>>(
    json: &[u8],
    writer: &mut Writer<'_, M, P>,
    floats: Floats,
) -> Result<(), TranscodeError<M::Error>> {
    let mut packer = TextPacker { open: Vec::new(), wide: Vec::new(), writer, floats };
    read(json, &mut packer).map_err(failure)?;
    let TextPacker { wide, writer, .. } = packer;
    if !wide.is_empty() {
        writer.pause()?;
        writer.out.widen(&descending(wide)?);
    }
    Ok(())
}

/// Returns heads by their places, the last one first. They come in the order in which containers end.
fn descending<E>(ended: Vec<WideBlock>) -> Result<Vec<WideBlock>, TranscodeError<E>> {
    let (mut heads, mut outer) = (Vec::new(), Vec::<WideBlock>::new());
    // Backwards, a container comes before those in it, and after those behind it.
    for block in ended.into_iter().rev() {
        while let Some(last) = outer.pop_if(|last| block.at < last.at) {
            push(&mut heads, last)?;
        }
        push(&mut outer, block)?;
    }
    while let Some(last) = outer.pop() {
        push(&mut heads, last)?;
    }
    Ok(heads)
}

fn failure<E>(stop: ReadError<TranscodeError<E>>) -> TranscodeError<E> {
    match stop {
        ReadError::Unexpected(offset) => CheckError { offset }.into(),
        ReadError::Visitor(error) => error,
    }
}

/// A container that has not ended.
struct OpenHead {
    /// The offset of the byte left for its head.
    at: usize,
    kind: HeadKind,
    count: u64,
}

/// Writes each value of a text.
struct TextPacker<'w, 'm, M: Memory, P> {
    open: Vec<OpenHead>,
    /// Heads longer than a byte, in the order in which their containers end.
    wide: Vec<WideBlock>,
    writer: &'w mut Writer<'m, M, P>,
    floats: Floats,
}

impl<M: Memory, P: FnMut() -> Result<(), M::Error>> TextPacker<'_, '_, M, P> {
    /// Counts a value of the innermost container.
    #[inline]
    fn count(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.count += 1;
        }
    }

    fn text(&mut self, text: Text<'_>) -> Result<(), TranscodeError<M::Error>> {
        let Text { bytes, has_escapes, .. } = text;
        if !has_escapes {
            let len = u32::try_from(bytes.len()).map_err(|_| TranscodeError::TooLarge)?;
            self.writer.out.place(|to| head(HeadKind::Text, len, to));
            return self.writer.copy(bytes);
        }
        let start = self.writer.begin_string(bytes.len());
        let mut rest = bytes;
        while let Some(at) = memchr(b'\\', rest) {
            let (plain, escape) = rest.split_at(at);
            self.writer.copy(plain)?;
            let (character, behind) = unescape(escape);
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            let mut block = [0; 4];
            let len = character.encode_utf8(&mut block).len();
            self.writer.out.put(&block, len);
            rest = behind;
        }
        self.writer.copy(rest)?;
        self.writer.end_string(start)
    }
}

impl<M: Memory, P: FnMut() -> Result<(), M::Error>> JsonVisitor for TextPacker<'_, '_, M, P> {
    type Error = TranscodeError<M::Error>;

    fn open(&mut self, is_object: bool, _: usize) -> Result<(), Self::Error> {
        self.count();
        let kind = if is_object { HeadKind::Map } else { HeadKind::Array };
        push(&mut self.open, OpenHead { at: self.writer.out.len(), kind, count: 0 })?;
        self.writer.out.byte(NIL);
        self.writer.pause_if_due()
    }

    fn close(&mut self, _: usize) -> Result<(), Self::Error> {
        let OpenHead { at, kind, count } = self.open.pop().ok_or(Malformed)?;
        let count = u32::try_from(count).map_err(|_| TranscodeError::TooLarge)?;
        let mut bytes = [0; HEAD];
        let len = head(kind, count, &mut bytes);
        if 1 < len {
            return push(&mut self.wide, WideBlock { at, bytes, len });
        }
        let [byte, ..] = bytes;
        self.writer.out.set(at, byte);
        Ok(())
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), Self::Error> {
        self.text(text)
    }

    fn string(&mut self, text: Text<'_>) -> Result<(), Self::Error> {
        self.count();
        self.text(text)
    }

    fn number(&mut self, text: &[u8], _: usize) -> Result<(), Self::Error> {
        self.count();
        let floats = self.floats;
        // Integers of 64 bits are exact: a double would round them.
        self.writer.out.place(|to: &mut [u8; NUMBER]| match whole(text) {
            Some(WholeNumber::Natural(value)) => natural(value, to),
            Some(WholeNumber::Negative(value)) => integer(value, to),
            None => number(double(text), floats, to),
        });
        self.writer.pause_if_due()
    }

    fn literal(&mut self, value: Option<bool>, _: usize) -> Result<(), Self::Error> {
        self.count();
        self.writer.out.byte(match value {
            None => NIL,
            Some(false) => FALSE,
            Some(true) => TRUE,
        });
        Ok(())
    }
}

/// An integer of 64 bits.
enum WholeNumber {
    Natural(u64),
    Negative(i64),
}

/// Returns the value of a number that is digits with or without a sign. Returns `None` for any other number.
#[inline]
fn whole(text: &[u8]) -> Option<WholeNumber> {
    match text {
        [b'-', digits @ ..] => {
            let value = 0_i64.checked_sub_unsigned(magnitude(digits)?)?;
            Some(WholeNumber::Negative(value))
        }
        digits => magnitude(digits).map(WholeNumber::Natural),
    }
}

#[inline]
fn magnitude(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        let shifted = value.checked_mul(10).filter(|_| digit < 10)?;
        shifted.checked_add(digit.into())
    })
}

fn double(text: &[u8]) -> f64 {
    str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}
