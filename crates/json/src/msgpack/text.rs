//! `MessagePack` from text that is JSON.

use std::marker::PhantomData;

use offloop_grammar::{CheckError, Stop, Text, Visit, read, unescape};

use crate::error::TranscodeError;
use crate::msgpack::count::{Counter, Counts};
use crate::msgpack::form::{
    Behind, FALSE, Floats, NIL, NUMBER, TRUE, head, integer, natural, number,
};
use crate::output::Memory;
use crate::writer::Writer;

/// Writes what `json` says.
pub(super) fn write_text<M: Memory, P: FnMut() -> Result<(), M::Error>>(
    json: &[u8],
    writer: &mut Writer<'_, M, P>,
    floats: Floats,
) -> Result<(), TranscodeError<M::Error>> {
    let mut counting = Counting::<M::Error> { counter: Counter::default(), error: PhantomData };
    read(json, &mut counting).map_err(failure)?;
    let mut writing = Writing { counts: counting.counter.finish()?, writer, floats };
    read(json, &mut writing).map_err(failure)
}

fn failure<E>(stop: Stop<TranscodeError<E>>) -> TranscodeError<E> {
    match stop {
        Stop::Unexpected(offset) => CheckError { offset }.into(),
        Stop::Visitor(error) => error,
    }
}

struct Counting<E> {
    counter: Counter,
    error: PhantomData<E>,
}

impl<E> Visit for Counting<E> {
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

    fn literal(&mut self, _: Option<bool>, _: usize) -> Result<(), Self::Error> {
        self.counter.values(1);
        Ok(())
    }
}

struct Writing<'w, 'm, M: Memory, P> {
    counts: Counts,
    writer: &'w mut Writer<'m, M, P>,
    floats: Floats,
}

impl<M: Memory, P: FnMut() -> Result<(), M::Error>> Visit for Writing<'_, '_, M, P> {
    type Error = TranscodeError<M::Error>;

    fn open(&mut self, is_object: bool, _: usize) -> Result<(), Self::Error> {
        let count = self.counts.take()?;
        let behind = if is_object { Behind::Map } else { Behind::Array };
        self.writer.out.place(|to| head(behind, count, to));
        self.writer.pause_if_due()
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), Self::Error> {
        self.string(text)
    }

    fn string(&mut self, Text { bytes, .. }: Text<'_>) -> Result<(), Self::Error> {
        let start = self.writer.begin_string(bytes.len());
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
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
        let (text, floats) = (str::from_utf8(text).unwrap_or_default(), self.floats);
        self.writer.out.place(|to: &mut [u8; NUMBER]| {
            // Exactly what it says, where it says an integer of 64 bits.
            match (text.parse::<u64>(), text.parse::<i64>()) {
                (Ok(value), _) => natural(value, to),
                (_, Ok(value)) => integer(value, to),
                _ => number(text.parse().unwrap_or(f64::NAN), floats, to),
            }
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
