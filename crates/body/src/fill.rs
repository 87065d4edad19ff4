//! Fills the memory of a plan: decodes the lifted values and writes the rest of the body. Runs in the second task.

use std::ops::Range;

use offloop_base64::{Alphabet, DecodeError, Mode, PieceDecoder};
use offloop_grammar::unescaped;

use crate::error::{BodyError, LiftCause, LiftError};
use crate::experts;
use crate::memory::{PIECE, clear_rest, copy_polled};
use crate::numbers::{NumberError, fill_numbers};
use crate::path::escaped_offset;
use crate::plan::{ALIGNMENT, BodyPlan, LiftedContent, NULL, PlannedValue, list_numbers};
use crate::scan::inside;

/// A body that was taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledBody {
    /// Whether all bytes of the rest are ASCII.
    pub is_ascii: bool,
    /// Bytes of each value, in the order of the plan.
    pub lengths: Vec<usize>,
}

impl FilledBody {
    /// Returns the lengths as JSON, which crosses to JavaScript faster than an array does.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut json = String::new();
        list_numbers(&mut json, &self.lengths);
        json
    }
}

impl BodyPlan {
    /// Writes the rest of `text` to `rest` and each value to its memory in `memories`, which have the sizes of the
    /// plan.
    ///
    /// The value that is decoded in place overwrites the start of `text`. Bytes of `memories` that no value needs
    /// become zero. `poll` is called every 0.1 ms of work.
    ///
    /// # Errors
    /// The first value that cannot be decoded, and those of `poll`.
    pub fn fill<E>(
        &self,
        text: &mut [u8],
        rest: &mut [u8],
        memories: &mut [&mut [u8]],
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<FilledBody, BodyError<E>> {
        let is_ascii =
            write_rest(text, &self.values, rest, &mut poll).map_err(BodyError::Stopped)?;
        let mut lengths = Vec::with_capacity(self.values.len());
        for (index, value) in self.values.iter().enumerate() {
            if self.in_place == Some(index) {
                lengths.push(0);
                continue;
            }
            let memory = memories.get_mut(value.memory).map(|memory| &mut **memory);
            let room = memory.and_then(|memory| memory.get_mut(value.room.clone()));
            lengths.push(value.fill(text, room.unwrap_or_default(), &mut poll)?);
        }
        if let Some(shared) = memories.first_mut() {
            self.clear_gaps(shared);
        }
        // Last, as it overwrites the text.
        let in_place = self.in_place.and_then(|index| Some((index, self.values.get(index)?)));
        if let Some((index, value)) = in_place {
            let len = value.decode_in_place(text, &mut poll)?;
            lengths.splice(index..=index, [len]);
        }
        Ok(FilledBody { is_ascii, lengths })
    }

    /// Clears the bytes between small values.
    fn clear_gaps(&self, shared: &mut [u8]) {
        for PlannedValue { room, .. } in self.values.iter().filter(|value| value.memory == 0) {
            let end = room.end.next_multiple_of(ALIGNMENT).min(shared.len());
            shared.get_mut(room.end..end).unwrap_or_default().fill(0);
        }
    }
}

impl PlannedValue {
    /// Writes the value to `room` and zeros behind it. Returns how many bytes the value has.
    fn fill<E>(
        &self,
        text: &[u8],
        room: &mut [u8],
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<usize, BodyError<E>> {
        let bytes = text.get(self.matched.range.clone()).unwrap_or_default();
        match &self.content {
            LiftedContent::Base64 { has_escapes } => {
                let len = self.decode(text, *has_escapes, room, poll)?;
                clear_rest(room, len, poll).map_err(BodyError::Stopped)?;
                Ok(len)
            }
            LiftedContent::Numbers { element, .. } => {
                let filled = fill_numbers(bytes, *element, room, poll);
                filled.map_err(|error| self.number_error(text, error))?;
                Ok(room.len())
            }
            LiftedContent::Raw => {
                copy_polled(bytes, room, poll).map_err(BodyError::Stopped)?;
                Ok(bytes.len())
            }
            LiftedContent::Experts(payload) => {
                experts::decode(text, &self.matched, payload, room, poll)?;
                Ok(room.len())
            }
        }
    }

    fn decode<E>(
        &self,
        text: &[u8],
        has_escapes: bool,
        out: &mut [u8],
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<usize, BodyError<E>> {
        let range = inside(&self.matched.range);
        let characters = text.get(range.clone()).unwrap_or_default();
        if !has_escapes {
            let decoded = decode_base64(characters, out, poll);
            return decoded.map_err(|failure| self.base64_error(text, failure, range.start));
        }
        decode_base64(&unescaped(characters), out, poll).map_err(|failure| {
            let failure = failure.moved(|offset| escaped_offset(characters, offset));
            self.base64_error(text, failure, range.start)
        })
    }

    /// Decodes the string to the start of `text`. Returns how many bytes it has.
    fn decode_in_place<E>(
        &self,
        text: &mut [u8],
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<usize, BodyError<E>> {
        let range = inside(&self.matched.range);
        // Decoding overwrites the keys that lead to the value.
        let error = self.lift_error(text, range.start, LiftCause::Base64);
        let decoded = decode_base64_in_place(text, range, poll);
        decoded.map_err(|failure| failure.into_error(error))
    }

    fn base64_error<E>(
        &self,
        text: &[u8],
        failure: Base64Failure<E>,
        start: usize,
    ) -> BodyError<E> {
        failure.into_error(self.lift_error(text, start, LiftCause::Base64))
    }

    fn number_error<E>(&self, text: &[u8], error: NumberError<E>) -> BodyError<E> {
        match error {
            NumberError::Unfit { offset } => {
                let offset = self.matched.range.start + offset;
                self.lift_error(text, offset, LiftCause::Number).into()
            }
            NumberError::Stopped(error) => BodyError::Stopped(error),
        }
    }
}

/// Copies `text` to `out` with `null` in the place of each value. Returns whether what it copied is ASCII.
fn write_rest<E>(
    text: &[u8],
    values: &[PlannedValue],
    out: &mut [u8],
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<bool, E> {
    let mut rest = RestWriter { out, len: 0, is_ascii: true };
    let mut from = 0;
    for PlannedValue { matched, .. } in values {
        let Range { start, end } = matched.range.clone();
        rest.copy(text.get(from..start).unwrap_or_default(), poll)?;
        rest.write(NULL);
        from = end;
    }
    rest.copy(text.get(from..).unwrap_or_default(), poll)?;
    Ok(rest.is_ascii)
}

/// Writes the rest of a body.
struct RestWriter<'a> {
    out: &'a mut [u8],
    len: usize,
    is_ascii: bool,
}

impl RestWriter<'_> {
    fn copy<E>(&mut self, bytes: &[u8], poll: &mut impl FnMut() -> Result<(), E>) -> Result<(), E> {
        for piece in bytes.chunks(PIECE) {
            poll()?;
            self.write(piece);
            self.is_ascii &= piece.is_ascii();
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(room) = self.out.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
        }
        self.len += bytes.len();
    }
}

/// Why base64 was not decoded.
enum Base64Failure<E> {
    /// The text is invalid at this offset.
    Invalid(usize),
    /// The memory is too small.
    Memory(DecodeError),
    /// The error of `poll`.
    Stopped(E),
}

impl<E> Base64Failure<E> {
    fn moved(self, place: impl FnOnce(usize) -> usize) -> Self {
        match self {
            Self::Invalid(offset) => Self::Invalid(place(offset)),
            other => other,
        }
    }

    /// Returns `error` with its offset moved to the invalid character, or the other causes as they are.
    fn into_error(self, error: LiftError) -> BodyError<E> {
        match self {
            Self::Invalid(offset) => LiftError { offset: error.offset + offset, ..error }.into(),
            Self::Memory(error) => BodyError::Memory(error),
            Self::Stopped(error) => BodyError::Stopped(error),
        }
    }
}

impl<E> From<DecodeError> for Base64Failure<E> {
    fn from(error: DecodeError) -> Self {
        error.offset().map_or(Self::Memory(error), Self::Invalid)
    }
}

fn decode_base64<E>(
    text: &[u8],
    out: &mut [u8],
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<usize, Base64Failure<E>> {
    let mut decoder = PieceDecoder::new(Mode::Forgiving, Alphabet::Standard);
    decoder.decode([text], out, || poll().map_err(Base64Failure::Stopped))?;
    Ok(decoder.finish(out)?)
}

/// Decodes the base64 at `text` in `memory` to the start of `memory`.
fn decode_base64_in_place<E>(
    memory: &mut [u8],
    text: Range<usize>,
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<usize, Base64Failure<E>> {
    let decoder = PieceDecoder::new(Mode::Forgiving, Alphabet::Standard);
    decoder.decode_in_place(memory, text, || poll().map_err(Base64Failure::Stopped))
}
