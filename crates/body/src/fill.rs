//! Fills the memory of a plan: decodes the lifted values and writes the rest of the body. Runs in the second task.

use std::ops::Range;

use offloop_base64::{Alphabet, DecodeError, Mode, PieceDecoder};
use offloop_grammar::unescaped;
use offloop_memory::{clear_pieces, copy_pieces};

use crate::error::{BodyError, LiftCause, ValueError};
use crate::experts;
use crate::nested::NumberLayout;
use crate::numbers::{ElementType, NumberError, fill_numbers};
use crate::path::escaped_offset;
use crate::plan::{
    ALIGNMENT, BodyPlan, Cut, LiftedContent, NULL, PlannedValue, Room, list_numbers,
};
use crate::scan::{MatchedType, inside};
use crate::text::PIECE;

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
    /// Writes the rest of `text` and each value to the memory of `target`.
    ///
    /// The value that is decoded in place overwrites the start of `text`. Bytes of the memories that no value needs
    /// become zero. `poll` is called every 0.1 ms of work.
    ///
    /// # Errors
    /// The first value that cannot be decoded, and those of `poll`.
    pub fn fill<E>(
        &self,
        text: &mut [u8],
        target: FillTarget<'_, '_>,
        poll: impl FnMut() -> Result<(), E>,
    ) -> Result<FilledBody, BodyError<E>> {
        self.fill_all(text, target, poll).map_err(|error| error.moved(self.offset))
    }

    fn fill_all<E>(
        &self,
        text: &mut [u8],
        target: FillTarget<'_, '_>,
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<FilledBody, BodyError<E>> {
        let FillTarget { rest, memories, replacements } = target;
        let rest = RestWriter { out: rest, len: 0, is_ascii: true };
        let is_ascii = rest
            .write_all(text, self.cuts(), replacements, &mut poll)
            .map_err(BodyError::Stopped)?;
        let mut lengths = Vec::with_capacity(self.values.len());
        for (index, value) in self.values.iter().enumerate() {
            if self.in_place == Some(index) {
                lengths.push(0);
                continue;
            }
            let room = room_of(memories, &value.room);
            let filled = value.fill(text, room, &mut poll);
            let len = filled.map_err(|error| error.at(|| self.pointer_of(text, value)))?;
            lengths.push(if self.has_gaps { without_gaps(room, len, &value.content) } else { len });
            if let Some(room) = &value.counts {
                value.fill_counts(room_of(memories, room));
            }
        }
        if let Some(shared) = memories.first_mut() {
            self.clear_gaps(shared);
        }
        // Last, as it overwrites the text.
        let in_place = self.in_place.and_then(|index| Some((index, self.values.get(index)?)));
        if let Some((index, value)) = in_place {
            // Decoding overwrites the keys that lead to the value.
            let pointer = self.pointer_of(text, value);
            let decoded = value.decode_in_place(text, &mut poll);
            let len = decoded.map_err(|error| error.at(|| pointer))?;
            lengths.splice(index..=index, [len]);
        }
        Ok(FilledBody { is_ascii, lengths })
    }

    /// Clears the bytes between small values.
    fn clear_gaps(&self, shared: &mut [u8]) {
        let rooms =
            self.values.iter().flat_map(|value| [&value.room].into_iter().chain(&value.counts));
        for Room { bytes, .. } in rooms.filter(|room| room.memory == 0) {
            let end = bytes.end.next_multiple_of(ALIGNMENT).min(shared.len());
            shared.get_mut(bytes.end..end).unwrap_or_default().fill(0);
        }
    }
}

/// The memory that a fill writes to.
#[derive(Debug)]
pub struct FillTarget<'a, 'b> {
    /// Memory of the rest. It has the size of the plan, or what replacements make of it.
    pub rest: &'a mut [u8],
    /// The memories of values, with the sizes of the plan.
    pub memories: &'a mut [&'b mut [u8]],
    /// The JSON that replaces each value of the plan. `None`: `null`.
    pub replacements: Option<&'a [String]>,
}

/// Removes the carriage returns of a value's JSON, of `len` bytes. Returns its length.
fn without_gaps(json: &mut [u8], len: usize, content: &LiftedContent) -> usize {
    if !matches!(content, LiftedContent::Raw) {
        return len;
    }
    let mut kept = 0;
    for at in 0..len {
        if json.get(at) != Some(&b'\r') {
            json.swap(kept, at);
            kept += 1;
        }
    }
    json.get_mut(kept..).unwrap_or_default().fill(0);
    kept
}

fn room_of<'a>(memories: &'a mut [&mut [u8]], room: &Room) -> &'a mut [u8] {
    let memory = memories.get_mut(room.memory).map(|memory| &mut **memory);
    memory.and_then(|memory| memory.get_mut(room.bytes.clone())).unwrap_or_default()
}

impl PlannedValue {
    /// Writes the value to `room` and zeros behind it. Returns how many bytes the value has.
    fn fill<E>(
        &self,
        text: &[u8],
        room: &mut [u8],
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<usize, ValueError<E>> {
        let bytes = text.get(self.matched.range.clone()).unwrap_or_default();
        match &self.content {
            LiftedContent::Base64 { has_escapes, element } => {
                let len = self.decode(text, *has_escapes, room, poll)?;
                clear_pieces(room, len, &mut *poll).map_err(ValueError::Stopped)?;
                self.to_elements(room.get_mut(..len).unwrap_or_default(), *element)
            }
            LiftedContent::Numbers { element } => {
                let filled = fill_numbers(bytes, *element, room, poll);
                filled.map_err(|error| self.number_error(error))?;
                Ok(room.len())
            }
            LiftedContent::Raw => {
                copy_pieces(bytes, room, poll).map_err(ValueError::Stopped)?;
                Ok(bytes.len())
            }
            LiftedContent::Dropped => Ok(0),
            LiftedContent::Experts(payload) => {
                experts::decode(text, &self.matched, payload, room, poll)?;
                Ok(room.len())
            }
        }
    }

    /// Writes the counts of a list of lists.
    fn fill_counts(&self, room: &mut [u8]) {
        if let MatchedType::Numbers(NumberLayout::Ragged { counts }) = &self.matched.value_type {
            for (bytes, count) in room.as_chunks_mut().0.iter_mut().zip(counts) {
                *bytes = count.to_ne_bytes();
            }
        }
    }

    fn decode<E>(
        &self,
        text: &[u8],
        has_escapes: bool,
        out: &mut [u8],
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<usize, ValueError<E>> {
        let range = inside(&self.matched.range);
        let characters = text.get(range.clone()).unwrap_or_default();
        if !has_escapes {
            let decoded = decode_base64(characters, out, poll);
            return decoded.map_err(|failure| failure.at(|offset| range.start + offset));
        }
        decode_base64(&unescaped(characters), out, poll).map_err(|failure| {
            failure.at(|offset| range.start + escaped_offset(characters, offset))
        })
    }

    /// Decodes the string to the start of `text`. Returns how many bytes it has.
    fn decode_in_place<E>(
        &self,
        text: &mut [u8],
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<usize, ValueError<E>> {
        let range = inside(&self.matched.range);
        let start = range.start;
        let len = decode_base64_in_place(text, range, poll)
            .map_err(|failure| failure.at(|offset| start + offset))?;
        let LiftedContent::Base64 { element, .. } = self.content else { return Ok(len) };
        self.to_elements(text.get_mut(..len).unwrap_or_default(), element)
    }

    /// Turns decoded bytes into elements. Returns how many bytes they have.
    fn to_elements<E>(
        &self,
        bytes: &mut [u8],
        element: Option<ElementType>,
    ) -> Result<usize, ValueError<E>> {
        let (offset, cause) = (self.matched.range.start, LiftCause::Length(bytes.len()));
        to_elements(bytes, element).ok_or(ValueError::Lift { offset, cause })?;
        Ok(bytes.len())
    }

    fn number_error<E>(&self, error: NumberError<E>) -> ValueError<E> {
        match error {
            NumberError::Unfit { offset } => {
                let offset = self.matched.range.start + offset;
                ValueError::Lift { offset, cause: LiftCause::Number }
            }
            NumberError::Stopped(error) => ValueError::Stopped(error),
        }
    }
}

/// Turns little-endian numbers into those of the machine. Returns `None` if `bytes` are not a whole number of elements.
fn to_elements(bytes: &mut [u8], element: Option<ElementType>) -> Option<()> {
    let size = element.map_or(1, ElementType::size);
    if cfg!(target_endian = "big") && 1 < size {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    bytes.len().is_multiple_of(size).then_some(())
}

/// Writes the rest of a body.
struct RestWriter<'a> {
    out: &'a mut [u8],
    len: usize,
    is_ascii: bool,
}

impl RestWriter<'_> {
    /// Copies `text` with its replacement in the place of each cut. Returns whether the rest is ASCII.
    fn write_all<E>(
        mut self,
        text: &[u8],
        cuts: impl Iterator<Item = Cut>,
        replacements: Option<&[String]>,
        poll: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut from = 0;
        for Cut { range, value } in cuts {
            self.copy(text.get(from..range.start).unwrap_or_default(), poll)?;
            let replacement = value.and_then(|index| replacements?.get(index));
            self.copy(replacement.map_or(NULL, String::as_bytes), poll)?;
            from = range.end;
        }
        self.copy(text.get(from..).unwrap_or_default(), poll)?;
        Ok(self.is_ascii)
    }

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
    /// Returns the error of a value. `place` finds the offset in the body.
    fn at(self, place: impl FnOnce(usize) -> usize) -> ValueError<E> {
        match self {
            Self::Invalid(offset) => {
                ValueError::Lift { offset: place(offset), cause: LiftCause::Base64 }
            }
            Self::Memory(error) => ValueError::Memory(error),
            Self::Stopped(error) => ValueError::Stopped(error),
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
