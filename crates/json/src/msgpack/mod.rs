//! `MessagePack` from a tape.

mod count;
mod entry;
mod form;
mod text;

use crate::date::{DATE, iso};
use crate::error::TranscodeError;
use crate::number::widened;
use crate::output::Memory;
use crate::streams::Streams;
use crate::tape::{
    ARRAY, Extra, Form, Kind, Long, MAP, Malformed, OBJECT, Segment, Tag, Tape, payload_of, whole,
};
use crate::text::Kernel;
use crate::writer::{Outcome, Writer};
use count::{Counts, count};
use form::{Behind, HEAD, NIL, float, head, integer, natural, number};
use text::write_text;

pub(crate) use entry::PackedEntry;
pub use form::Floats;

/// Writes the `MessagePack` of `tape` to the start of `memory`; tells how long it is. `poll` is called every 0.1 ms of
/// work.
///
/// # Errors
/// Those of `memory` and `poll`, for what has more elements or bytes than it can say, for fragments that are no JSON, and
/// for a tape that no capture writes.
pub fn pack<M: Memory>(
    tape: Tape<'_>,
    floats: Floats,
    kernel: Kernel,
    memory: &mut M,
    mut poll: impl FnMut() -> Result<(), M::Error>,
) -> Result<usize, TranscodeError<M::Error>> {
    let counts = count(tape, &mut poll)?;
    let writer = Writer::new(memory, kernel, poll)?;
    let mut packer = Packer { tape, floats, writer, counts, dropped: None };
    for segment in tape.segments {
        packer.segment(segment)?;
    }
    packer.writer.pause()?;
    Ok(packer.writer.out.len())
}

struct Packer<'a, 'm, M: Memory, P> {
    tape: Tape<'a>,
    floats: Floats,
    writer: Writer<'m, M, P>,
    counts: Counts,
    /// What was written before a part that is JSON alone.
    dropped: Option<usize>,
}

impl<'a, M: Memory, P: FnMut() -> Result<(), M::Error>> Packer<'a, '_, M, P> {
    fn segment(&mut self, segment: &Segment<'a>) -> Outcome<M> {
        let mut streams = Streams::new(segment);
        while let Some(word) = streams.next_word() {
            self.word(word, &mut streams)?;
            self.writer.pause_if_due()?;
        }
        Ok(())
    }

    #[inline]
    fn word(&mut self, word: i32, streams: &mut Streams<'a>) -> Outcome<M> {
        let payload = payload_of(word);
        let (out, floats) = (&mut self.writer.out, self.floats);
        match Tag::of(word) {
            Tag::Int => out.place(|to| integer((word >> 4).into(), to)),
            Tag::Double => {
                let value = streams.double()?;
                out.place(|to| number(value, floats, to));
            }
            Tag::Latin1 => return self.writer.latin1_string(streams.bytes(payload)?),
            Tag::Utf16 => return self.writer.utf16_string(streams.wide_bytes(payload)?),
            Tag::Rope => return self.characters(streams.rope(payload)?),
            Tag::Literal => out.byte(literal(payload)?),
            Tag::Open => return self.open(payload),
            Tag::Close => {}
            Tag::Entry => return self.entry(payload),
            Tag::Name => return self.characters(streams.located(payload, self.tape.longs)?),
            Tag::Ints => {
                let ints = streams.ints(payload)?;
                return self.writer.numbers(ints, |&value, to| integer(value.into(), to));
            }
            Tag::Doubles => {
                let doubles = streams.doubles(payload)?;
                return self.writer.numbers(doubles, |&value, to| number(value, floats, to));
            }
            Tag::Long => return self.characters(self.tape.long(payload)?),
            Tag::Text => return self.text(streams.text(payload, self.tape.longs)?),
            Tag::Date => return self.date(streams.double()?),
            Tag::Extra => return self.extra(payload, streams),
        }
        Ok(())
    }

    fn open(&mut self, payload: usize) -> Outcome<M> {
        let behind = match payload {
            ARRAY => Behind::Array,
            OBJECT | MAP => Behind::Map,
            _ => return Err(TranscodeError::Malformed),
        };
        let count = self.counts.take()?;
        self.writer.out.place(|to| head(behind, count, to));
        Ok(())
    }

    #[inline]
    fn entry(&mut self, index: usize) -> Outcome<M> {
        let packed = self.tape.lexicon.get(index).ok_or(Malformed)?.packed();
        // What is packed of it is written with doubles, if with any.
        self.writer.out.bytes(&packed.bytes);
        if packed.opens { self.open(OBJECT) } else { Ok(()) }
    }

    #[inline]
    fn characters(&mut self, text: Long<'_>) -> Outcome<M> {
        if text.is_wide {
            self.writer.utf16_string(text.bytes)
        } else {
            self.writer.latin1_string(text.bytes)
        }
    }

    /// Text that is JSON already.
    fn text(&mut self, text: Long<'_>) -> Outcome<M> {
        let mut json = Scratch(Vec::new());
        let len =
            utf8(text, self.writer.kernel, &mut json).map_err(|_| TranscodeError::TooLarge)?;
        write_text(json.0.get(..len).unwrap_or_default(), &mut self.writer, self.floats)
    }

    fn date(&mut self, time: f64) -> Outcome<M> {
        let mut text = [0; DATE];
        if let Some(len) = iso(time, &mut text) {
            return self.writer.latin1_string(text.get(..len).unwrap_or_default());
        }
        self.writer.out.byte(NIL);
        Ok(())
    }

    fn extra(&mut self, payload: usize, streams: &mut Streams<'a>) -> Outcome<M> {
        match Extra::of(payload).ok_or(Malformed)? {
            Extra::Row => Err(TranscodeError::Malformed),
            extra @ (Extra::Bytes | Extra::LongBytes) => {
                let are_long = extra == Extra::LongBytes;
                let (form, bytes) = streams.elements(are_long, self.tape.longs)?;
                self.typed(form, bytes)
            }
            Extra::Raw => {
                let json = self.tape.long(streams.size()?)?.bytes;
                write_text(json, &mut self.writer, self.floats)
            }
            Extra::OnlyJson => {
                self.dropped = Some(self.writer.out.len());
                Ok(())
            }
            Extra::OnlyMsgpack | Extra::Both => {
                if let Some(len) = self.dropped.take() {
                    self.writer.out.truncate(len);
                }
                Ok(())
            }
        }
    }

    fn typed(&mut self, Form { kind, .. }: Form, bytes: &[u8]) -> Outcome<M> {
        let (twos, fours, eights) = (whole::<2>(bytes), whole::<4>(bytes), whole::<8>(bytes));
        let floats = self.floats;
        match kind {
            Kind::Uint8 => {
                self.head(Behind::Bytes, bytes.len())?;
                self.writer.copy(bytes)
            }
            Kind::Uint8Clamped => self.array(bytes, |&byte, to| natural(byte.into(), to)),
            Kind::Int8 => self.array(bytes, |&byte, to| integer(byte.cast_signed().into(), to)),
            Kind::Int16 => self.array(twos, |&two, to| integer(i16::from_ne_bytes(two).into(), to)),
            Kind::Uint16 => {
                self.array(twos, |&two, to| natural(u16::from_ne_bytes(two).into(), to))
            }
            Kind::Int32 => {
                self.array(fours, |&four, to| integer(i32::from_ne_bytes(four).into(), to))
            }
            Kind::Uint32 => {
                self.array(fours, |&four, to| natural(u32::from_ne_bytes(four).into(), to))
            }
            Kind::Float16 => {
                self.array(twos, |&two, to| float(widened(u16::from_ne_bytes(two)), floats, to))
            }
            Kind::Float32 => {
                self.array(fours, |&four, to| float(f32::from_ne_bytes(four).into(), floats, to))
            }
            Kind::Float64 => {
                self.array(eights, |&eight, to| float(f64::from_ne_bytes(eight), floats, to))
            }
            Kind::BigInt64 => {
                self.array(eights, |&eight, to| integer(i64::from_ne_bytes(eight), to))
            }
            Kind::BigUint64 => {
                self.array(eights, |&eight, to| natural(u64::from_ne_bytes(eight), to))
            }
        }
    }

    fn array<T>(
        &mut self,
        elements: &[T],
        print: impl Fn(&T, &mut [u8; form::NUMBER]) -> usize,
    ) -> Outcome<M> {
        self.head(Behind::Array, elements.len())?;
        self.writer.numbers(elements, print)
    }

    fn head(&mut self, behind: Behind, count: usize) -> Outcome<M> {
        let count = u32::try_from(count).map_err(|_| TranscodeError::TooLarge)?;
        self.writer.out.place(|to| head(behind, count, to));
        Ok(())
    }
}

fn literal(payload: usize) -> Result<u8, Malformed> {
    match payload {
        crate::tape::NULL => Ok(NIL),
        crate::tape::TRUE => Ok(form::TRUE),
        crate::tape::FALSE => Ok(form::FALSE),
        _ => Err(Malformed),
    }
}

/// Where a string begins whose length is not known yet.
pub(crate) struct Start {
    head: usize,
    text: usize,
}

impl<M: Memory, P: FnMut() -> Result<(), M::Error>> Writer<'_, M, P> {
    #[inline]
    fn latin1_string(&mut self, text: &[u8]) -> Outcome<M> {
        let start = self.begin_string(text.len());
        self.latin1(text, Kernel::transcode_latin1)?;
        self.end_string(start)
    }

    #[inline]
    fn utf16_string(&mut self, text: &[u8]) -> Outcome<M> {
        let start = self.begin_string(text.len() / 2);
        self.pieces(text, 2, Kernel::transcode_utf16)?;
        self.end_string(start)
    }

    /// Leaves room for the head of a string of about `len` bytes.
    #[inline]
    fn begin_string(&mut self, len: usize) -> Start {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let start = self.out.len();
        self.out.place(|to| head(Behind::Text, len, to));
        Start { head: start, text: self.out.len() }
    }

    #[inline]
    fn end_string(&mut self, Start { head: start, text }: Start) -> Outcome<M> {
        let len = self.out.len().saturating_sub(text);
        let len = u32::try_from(len).map_err(|_| TranscodeError::TooLarge)?;
        let mut block = [0; HEAD];
        let size = head(Behind::Text, len, &mut block);
        self.out.replace(start, text, block.get(..size).unwrap_or_default());
        Ok(())
    }
}

/// Memory of a text that is read again.
#[derive(Debug)]
pub(crate) struct Scratch(Vec<u8>);

#[derive(Debug)]
pub(crate) struct NoMemory;

impl Memory for Scratch {
    type Error = NoMemory;

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn grow(&mut self, _len: usize, size: usize) -> Result<(), NoMemory> {
        self.0.try_reserve(size.saturating_sub(self.0.len())).map_err(|_| NoMemory)?;
        self.0.resize(size, 0);
        Ok(())
    }
}

/// Tells how long it is.
fn utf8(
    text: Long<'_>,
    kernel: Kernel,
    memory: &mut Scratch,
) -> Result<usize, TranscodeError<NoMemory>> {
    let mut writer = Writer::new(memory, kernel, || Ok(()))?;
    writer.text(text)?;
    writer.pause()?;
    Ok(writer.out.len())
}
