//! Writes the `MessagePack` of a tape. `print` calls it in tasks, and on the JS thread for small values.
//!
//! A container begins with the count of its elements. A first pass over the tape counts them.

mod count;
mod entry;
mod form;
mod text;

use crate::date::{DATE, iso};
use crate::error::TranscodeError;
use crate::number::widened;
use crate::output::{Mark, Memory};
use crate::streams::Streams;
use crate::tape::{
    ARRAY, ElementFormat, ElementKind, Extra, JsText, MAP, Malformed, OBJECT, Segment, Tag, Tape,
    payload_of, whole,
};
use crate::text::Kernel;
use crate::writer::{WriteResult, Writer};
use count::{ElementCounts, count};
use form::{HEAD, HeadKind, NIL, float, head, integer, natural, number};
use text::write_text;

pub(crate) use entry::PackedEntry;
pub use form::Floats;

/// Options of [`pack`].
pub struct PackOptions {
    pub floats: Floats,
    /// The most levels of nesting.
    pub max_depth: usize,
    pub kernel: Kernel,
}

/// Writes the `MessagePack` of `tape` to the start of `memory`; returns the length. Calls `poll` every 0.1 ms of work.
///
/// # Errors
/// Fails as `memory` and `poll` do, for values too large or nested too deep, for invalid raw JSON, and for an invalid
/// tape.
pub fn pack<M: Memory>(
    tape: Tape<'_>,
    options: &PackOptions,
    memory: &mut M,
    mut poll: impl FnMut() -> Result<(), M::Error>,
) -> Result<usize, TranscodeError<M::Error>> {
    let counts = count(tape, options.max_depth, &mut poll)?;
    let writer = Writer::new(memory, options.kernel, poll)?;
    let mut packer = Packer { tape, floats: options.floats, writer, counts, dropped: None };
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
    counts: ElementCounts,
    /// The end of the result before a part for JSON only; `None` outside such parts.
    dropped: Option<Mark>,
}

impl<'a, M: Memory, P: FnMut() -> Result<(), M::Error>> Packer<'a, '_, M, P> {
    fn segment(&mut self, segment: &Segment<'a>) -> WriteResult<M> {
        let mut streams = Streams::new(segment);
        while let Some(word) = streams.next_word() {
            self.word(word, &mut streams)?;
            self.writer.pause_if_due()?;
        }
        Ok(())
    }

    #[inline]
    fn word(&mut self, word: i32, streams: &mut Streams<'a>) -> WriteResult<M> {
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
            Tag::Name => return self.characters(streams.located(payload, &self.tape)?),
            Tag::Ints => {
                let ints = streams.ints(payload)?;
                return self.writer.numbers(ints, |&value, to| integer(value.into(), to));
            }
            Tag::Doubles => {
                let doubles = streams.doubles(payload)?;
                return self.writer.numbers(doubles, |&value, to| number(value, floats, to));
            }
            Tag::Long => return self.characters(self.tape.long(payload)?),
            Tag::Text => return self.text(streams.text(payload, &self.tape)?),
            Tag::Date => return self.date(streams.double()?),
            Tag::Extra => return self.extra(payload, streams),
        }
        Ok(())
    }

    fn open(&mut self, payload: usize) -> WriteResult<M> {
        let behind = match payload {
            ARRAY => HeadKind::Array,
            OBJECT | MAP => HeadKind::Map,
            _ => return Err(TranscodeError::Malformed),
        };
        let count = self.counts.take()?;
        self.writer.out.place(|to| head(behind, count, to));
        Ok(())
    }

    #[inline]
    fn entry(&mut self, index: usize) -> WriteResult<M> {
        let packed = self.tape.lexicon.get(index).ok_or(Malformed)?.packed();
        // Numbers in lexicon entries are always packed as doubles, whatever `floats` is.
        self.writer.out.bytes(&packed.bytes);
        if packed.opens { self.open(OBJECT) } else { Ok(()) }
    }

    #[inline]
    fn characters(&mut self, text: JsText<'_>) -> WriteResult<M> {
        if text.is_wide {
            self.writer.utf16_string(text.bytes)
        } else {
            self.writer.latin1_string(text.bytes)
        }
    }

    /// Writes a value whose text is JSON.
    fn text(&mut self, text: JsText<'_>) -> WriteResult<M> {
        let mut json = ScratchBytes(Vec::new());
        let len =
            utf8(text, self.writer.kernel, &mut json).map_err(|_| TranscodeError::TooLarge)?;
        write_text(json.0.get(..len).unwrap_or_default(), &mut self.writer, self.floats)
    }

    fn date(&mut self, time: f64) -> WriteResult<M> {
        let mut text = [0; DATE];
        if let Some(len) = iso(time, &mut text) {
            return self.writer.latin1_string(text.get(..len).unwrap_or_default());
        }
        self.writer.out.byte(NIL);
        Ok(())
    }

    fn extra(&mut self, payload: usize, streams: &mut Streams<'a>) -> WriteResult<M> {
        match Extra::of(payload).ok_or(Malformed)? {
            Extra::Row => Err(TranscodeError::Malformed),
            extra @ (Extra::Bytes | Extra::LongBytes) => {
                let are_long = extra == Extra::LongBytes;
                let (form, bytes) = streams.elements(are_long, &self.tape)?;
                self.typed(form, bytes)
            }
            Extra::Raw => {
                let json = self.tape.long(streams.size()?)?.bytes;
                write_text(json, &mut self.writer, self.floats)
            }
            Extra::OnlyJson => {
                self.dropped = Some(self.writer.out.mark());
                Ok(())
            }
            Extra::OnlyMsgpack | Extra::Both => {
                if let Some(mark) = self.dropped.take() {
                    self.writer.out.go_back(mark);
                }
                Ok(())
            }
        }
    }

    fn typed(&mut self, ElementFormat { kind, .. }: ElementFormat, bytes: &[u8]) -> WriteResult<M> {
        let (twos, fours, eights) = (whole::<2>(bytes), whole::<4>(bytes), whole::<8>(bytes));
        let floats = self.floats;
        match kind {
            ElementKind::Uint8 => {
                self.head(HeadKind::Bytes, bytes.len())?;
                self.writer.copy(bytes)
            }
            ElementKind::Uint8Clamped => self.array(bytes, |&byte, to| natural(byte.into(), to)),
            ElementKind::Int8 => {
                self.array(bytes, |&byte, to| integer(byte.cast_signed().into(), to))
            }
            ElementKind::Int16 => {
                self.array(twos, |&two, to| integer(i16::from_ne_bytes(two).into(), to))
            }
            ElementKind::Uint16 => {
                self.array(twos, |&two, to| natural(u16::from_ne_bytes(two).into(), to))
            }
            ElementKind::Int32 => {
                self.array(fours, |&four, to| integer(i32::from_ne_bytes(four).into(), to))
            }
            ElementKind::Uint32 => {
                self.array(fours, |&four, to| natural(u32::from_ne_bytes(four).into(), to))
            }
            ElementKind::Float16 => {
                self.array(twos, |&two, to| float(widened(u16::from_ne_bytes(two)), floats, to))
            }
            ElementKind::Float32 => {
                self.array(fours, |&four, to| float(f32::from_ne_bytes(four).into(), floats, to))
            }
            ElementKind::Float64 => {
                self.array(eights, |&eight, to| float(f64::from_ne_bytes(eight), floats, to))
            }
            ElementKind::BigInt64 => {
                self.array(eights, |&eight, to| integer(i64::from_ne_bytes(eight), to))
            }
            ElementKind::BigUint64 => {
                self.array(eights, |&eight, to| natural(u64::from_ne_bytes(eight), to))
            }
        }
    }

    fn array<T>(
        &mut self,
        elements: &[T],
        print: impl Fn(&T, &mut [u8; form::NUMBER]) -> usize,
    ) -> WriteResult<M> {
        self.head(HeadKind::Array, elements.len())?;
        self.writer.numbers(elements, print)
    }

    fn head(&mut self, behind: HeadKind, count: usize) -> WriteResult<M> {
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

/// The offsets of a string whose length is not known yet.
pub(crate) struct StringStart {
    head: usize,
    text: usize,
}

impl<M: Memory, P: FnMut() -> Result<(), M::Error>> Writer<'_, M, P> {
    #[inline]
    fn latin1_string(&mut self, text: &[u8]) -> WriteResult<M> {
        let start = self.begin_string(text.len());
        self.latin1(text, Kernel::transcode_latin1)?;
        self.end_string(start)
    }

    #[inline]
    fn utf16_string(&mut self, text: &[u8]) -> WriteResult<M> {
        let start = self.begin_string(text.len() / 2);
        self.pieces(text, 2, Kernel::transcode_utf16)?;
        self.end_string(start)
    }

    /// Writes the head of a string of about `len` bytes.
    #[inline]
    fn begin_string(&mut self, len: usize) -> StringStart {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let start = self.out.len();
        self.out.place(|to| head(HeadKind::Text, len, to));
        StringStart { head: start, text: self.out.len() }
    }

    /// Corrects the head of a string, behind its characters.
    #[inline]
    fn end_string(&mut self, StringStart { head: start, text }: StringStart) -> WriteResult<M> {
        let len = self.out.len().saturating_sub(text);
        let len = u32::try_from(len).map_err(|_| TranscodeError::TooLarge)?;
        let mut block = [0; HEAD];
        let size = head(HeadKind::Text, len, &mut block);
        self.out.replace(start, text, block.get(..size).unwrap_or_default());
        Ok(())
    }
}

/// Memory for a text that is read again.
#[derive(Debug)]
pub(crate) struct ScratchBytes(Vec<u8>);

/// The error of [`ScratchBytes`].
#[derive(Debug)]
pub(crate) struct ScratchFull;

impl Memory for ScratchBytes {
    type Error = ScratchFull;

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn grow(&mut self, _len: usize, size: usize) -> Result<(), ScratchFull> {
        self.0.try_reserve(size.saturating_sub(self.0.len())).map_err(|_| ScratchFull)?;
        self.0.resize(size, 0);
        Ok(())
    }
}

/// Writes a text as UTF-8; returns the length.
fn utf8(
    text: JsText<'_>,
    kernel: Kernel,
    memory: &mut ScratchBytes,
) -> Result<usize, TranscodeError<ScratchFull>> {
    let mut writer = Writer::new(memory, kernel, || Ok(()))?;
    writer.text(text)?;
    writer.pause()?;
    Ok(writer.out.len())
}
