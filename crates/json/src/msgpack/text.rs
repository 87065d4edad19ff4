//! Writes `MessagePack` from JSON text, in tasks. A first pass counts elements.

use std::marker::PhantomData;

use memchr::memchr;
use offloop_grammar::{CheckError, JsonVisitor, ReadError, Text, read, unescape};

use crate::error::TranscodeError;
use crate::msgpack::count::{ElementCounter, ElementCounts};
use crate::msgpack::form::{
    FALSE, Floats, HeadKind, NIL, NUMBER, TRUE, head, integer, natural, number,
};
use crate::output::Memory;
use crate::writer::Writer;

/// Writes the value of `json`.
pub(super) fn write_text<M: Memory, P: FnMut() -> Result<(), M::Error>>(
    json: &[u8],
    writer: &mut Writer<'_, M, P>,
    floats: Floats,
) -> Result<(), TranscodeError<M::Error>> {
    let mut counting =
        TextCounter::<M::Error> { counter: ElementCounter::new(usize::MAX), error: PhantomData };
    read(json, &mut counting).map_err(failure)?;
    let mut writing = TextPacker { counts: counting.counter.finish()?, writer, floats };
    read(json, &mut writing).map_err(failure)
}

fn failure<E>(stop: ReadError<TranscodeError<E>>) -> TranscodeError<E> {
    match stop {
        ReadError::Unexpected(offset) => CheckError { offset }.into(),
        ReadError::Visitor(error) => error,
    }
}

/// Counts the elements of each container of a text.
struct TextCounter<E> {
    counter: ElementCounter,
    error: PhantomData<E>,
}

impl<E> JsonVisitor for TextCounter<E> {
    type Error = TranscodeError<E>;

    fn open(&mut self, _: bool, _: usize) -> Result<(), Self::Error> {
        self.counter.open(false)
    }

    fn close(&mut self, _: usize) -> Result<(), Self::Error> {
        self.counter.close()
    }

    fn string(&mut self, _: Text<'_>) -> Result<(), Self::Error> {
        self.counter.values(1);
        Ok(())
    }

    fn number(&mut self, _: &[u8], _: usize) -> Result<(), Self::Error> {
        self.counter.values(1);
        Ok(())
    }

    fn skips_integers(&self) -> bool {
        true
    }

    fn integers(&mut self, count: usize) -> Result<(), Self::Error> {
        self.counter.values(count);
        Ok(())
    }

    fn literal(&mut self, _: Option<bool>, _: usize) -> Result<(), Self::Error> {
        self.counter.values(1);
        Ok(())
    }
}

/// Writes each value of a text.
struct TextPacker<'w, 'm, M: Memory, P> {
    counts: ElementCounts,
    writer: &'w mut Writer<'m, M, P>,
    floats: Floats,
}

impl<M: Memory, P: FnMut() -> Result<(), M::Error>> JsonVisitor for TextPacker<'_, '_, M, P> {
    type Error = TranscodeError<M::Error>;

    fn open(&mut self, is_object: bool, _: usize) -> Result<(), Self::Error> {
        let count = self.counts.take()?;
        let behind = if is_object { HeadKind::Map } else { HeadKind::Array };
        self.writer.out.place(|to| head(behind, count, to));
        self.writer.pause_if_due()
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), Self::Error> {
        self.string(text)
    }

    fn string(&mut self, Text { bytes, has_escapes, .. }: Text<'_>) -> Result<(), Self::Error> {
        let start = self.writer.begin_string(bytes.len());
        let mut rest = bytes;
        while let Some(at) = memchr(b'\\', rest).filter(|_| has_escapes) {
            let (plain, escape) = rest.split_at(at);
            self.writer.copy(plain)?;
            let (character, behind) = unescape(escape);
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.writer.out.bytes(character.encode_utf8(&mut [0; 4]).as_bytes());
            rest = behind;
        }
        self.writer.copy(rest)?;
        self.writer.end_string(start)
    }

    fn number(&mut self, text: &[u8], _: usize) -> Result<(), Self::Error> {
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
