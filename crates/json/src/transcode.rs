//! Writes the compact JSON of a tape. `print` calls it in tasks, `small` on the JS thread.
//!
//! Every value ends with a comma. The end of an array or object replaces the comma of its last value. So no stack is
//! needed, and depth takes no memory.
//!
//! Example: `[1,2]` is written as `[`, `[1,`, `[1,2,`, `[1,2]`, `[1,2],`, and the end of the tape removes the last comma.

use std::ops::Range;

use offloop_base64::{Alphabet, encode_into};

use crate::date::{DATE, iso};
use crate::error::TranscodeError;
use crate::nesting::{MOST_LEVELS, check_nesting};
use crate::number::{NUMBER, double, half, int, single, unsigned, wide};
use crate::output::{Mark, Memory};
use crate::streams::Streams;
use crate::tape::{
    ARRAY, ElementFormat, ElementKind, ElementStyle, Extra, FALSE, JsText, MAP, Malformed, NULL,
    OBJECT, Segment, TRUE, Tag, Tape, payload_of, whole,
};
use crate::text::Kernel;
use crate::writer::{WriteResult, Writer};

/// Bytes that are encoded as base64 between two polls: a multiple of three.
const BASE64_PIECE: usize = 3 << 12;

const QUOTED_DATE: usize = DATE + 2;

/// The length of JSON that was written, and the ranges of raw JSON in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonExtent {
    pub len: usize,
    /// The ranges of raw JSON, in order.
    pub raws: Vec<Range<usize>>,
}

/// The JSON of a part of a tape: some of its segments.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartExtent {
    pub extent: JsonExtent,
    /// Whether the part begins with the end of a container or row, which replaces a comma before it.
    pub closes: bool,
}

/// Writes the JSON of `tape` to the start of `memory`. Calls `poll` every 0.1 ms of work.
///
/// # Errors
/// Fails as `memory` and `poll` do, and for an invalid tape.
pub fn transcode<M: Memory>(
    tape: Tape<'_>,
    kernel: Kernel,
    memory: &mut M,
    mut poll: impl FnMut() -> Result<(), M::Error>,
) -> Result<JsonExtent, TranscodeError<M::Error>> {
    let mut transcoder = Transcoder::new(tape, kernel, memory, &mut poll)?;
    transcoder.segments()?;
    transcoder.writer.out.drop_comma();
    transcoder.writer.pause()?;
    Ok(JsonExtent { len: transcoder.writer.out.len(), raws: transcoder.raws })
}

/// Writes the JSON of a part of a tape, as [`transcode`] does. A comma at its end stays.
pub(crate) fn transcode_part<M: Memory>(
    tape: Tape<'_>,
    kernel: Kernel,
    memory: &mut M,
    mut poll: impl FnMut() -> Result<(), M::Error>,
) -> Result<PartExtent, TranscodeError<M::Error>> {
    let mut transcoder = Transcoder::new(tape, kernel, memory, &mut poll)?;
    transcoder.segments()?;
    transcoder.writer.pause()?;
    let Transcoder { writer, raws, dropped, closes, .. } = transcoder;
    // What is for `MessagePack` only may end in another part.
    if dropped.is_some() {
        return Err(TranscodeError::Malformed);
    }
    Ok(PartExtent { extent: JsonExtent { len: writer.out.len(), raws }, closes })
}

/// Is called every 0.1 ms of work. Without a type of its own, the transcoder is compiled once for each memory.
type Poll<'m, M> = &'m mut dyn FnMut() -> Result<(), <M as Memory>::Error>;

struct Transcoder<'a, 'm, M: Memory> {
    tape: Tape<'a>,
    writer: Writer<'m, M, Poll<'m, M>>,
    raws: Vec<Range<usize>>,
    /// The end of the JSON and the length of `raws` before a part for `MessagePack` only; `None` outside such parts.
    dropped: Option<(Mark, usize)>,
    /// Whether the end of a container or row was the first that was written.
    closes: bool,
}

impl<'a, 'm, M: Memory> Transcoder<'a, 'm, M> {
    fn new(
        tape: Tape<'a>,
        kernel: Kernel,
        memory: &'m mut M,
        poll: Poll<'m, M>,
    ) -> Result<Self, TranscodeError<M::Error>> {
        let writer = Writer::new(memory, kernel, poll)?;
        Ok(Self { tape, writer, raws: Vec::new(), dropped: None, closes: false })
    }

    #[inline(never)]
    fn segments(&mut self) -> WriteResult<M> {
        for segment in self.tape.segments {
            self.segment(segment)?;
        }
        Ok(())
    }

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
        match Tag::of(word) {
            Tag::Int => {
                self.writer.out.place(|place| int(word >> 4, place));
                return Ok(());
            }
            Tag::Double => {
                let value = streams.double()?;
                self.writer.out.place(|place| double(value, place));
                return Ok(());
            }
            Tag::Latin1 => self.latin1(streams.bytes(payload)?)?,
            Tag::Utf16 => self.utf16(streams.wide_bytes(payload)?)?,
            Tag::Rope => self.characters(streams.rope(payload)?)?,
            Tag::Literal => self.literal(payload)?,
            Tag::Open => {
                self.writer.out.byte(self.bracket(payload, b'[', b'{')?);
                return Ok(());
            }
            Tag::Close => {
                let bracket = self.bracket(payload, b']', b'}')?;
                self.close(bracket);
            }
            Tag::Entry => return self.entry(payload),
            Tag::Name => return self.name(payload, streams),
            Tag::Ints => return self.ints(streams.ints(payload)?),
            Tag::Doubles => return self.doubles(streams.doubles(payload)?),
            Tag::Long => self.characters(self.tape.long(payload)?)?,
            Tag::Text => self.text(streams.text(payload, &self.tape)?)?,
            Tag::Date => self.date(streams.double()?),
            Tag::Extra => return self.extra(payload, streams),
        }
        self.writer.out.byte(b',');
        Ok(())
    }

    /// Writes the text of JSON.stringify. A short one cannot be too deep: each level takes two characters.
    fn text(&mut self, text: JsText<'a>) -> WriteResult<M> {
        if 2 * MOST_LEVELS < text.bytes.len() {
            check_nesting(text, MOST_LEVELS).map_err(TranscodeError::TooDeep)?;
        }
        self.writer.text(text)
    }

    /// Ends a container or row.
    #[inline]
    fn close(&mut self, byte: u8) {
        self.closes |= self.writer.out.len() == 0;
        self.writer.out.close(byte);
    }

    fn bracket(&self, payload: usize, array: u8, object: u8) -> Result<u8, Malformed> {
        match payload {
            ARRAY => Ok(array),
            OBJECT => Ok(object),
            MAP if self.dropped.is_some() => Ok(object),
            _ => Err(Malformed),
        }
    }

    fn date(&mut self, time: f64) {
        self.writer.out.place(|place: &mut [u8; QUOTED_DATE]| {
            *place = [b'"'; QUOTED_DATE];
            let inside = place.get_mut(1..).and_then(<[u8]>::first_chunk_mut);
            if let Some(len) = inside.and_then(|inside| iso(time, inside)) {
                return len + 2;
            }
            for (to, from) in place.iter_mut().zip(b"null") {
                *to = *from;
            }
            4
        });
    }

    fn literal(&mut self, payload: usize) -> Result<(), Malformed> {
        match payload {
            NULL => self.writer.out.put(b"null", 4),
            TRUE => self.writer.out.put(b"true", 4),
            FALSE => self.writer.out.put(b"false", 5),
            _ => return Err(Malformed),
        }
        Ok(())
    }

    #[inline]
    fn entry(&mut self, index: usize) -> WriteResult<M> {
        let entry = self.tape.lexicon.get(index).ok_or(Malformed)?;
        match entry.short() {
            Some((block, len)) => self.writer.out.put(block, len),
            None => self.writer.out.bytes(entry.text()),
        }
        Ok(())
    }

    fn name(&mut self, payload: usize, streams: &mut Streams<'a>) -> WriteResult<M> {
        let characters = streams.located(payload, &self.tape)?;
        self.characters(characters)?;
        self.writer.out.byte(b':');
        Ok(())
    }

    fn ints(&mut self, ints: &[i32]) -> WriteResult<M> {
        self.writer.numbers(ints, |&value, place| int(value, place))
    }

    fn doubles(&mut self, doubles: &[f64]) -> WriteResult<M> {
        self.writer.numbers(doubles, |&value, place| double(value, place))
    }

    #[inline]
    fn characters(&mut self, text: JsText<'_>) -> WriteResult<M> {
        if text.is_wide { self.utf16(text.bytes) } else { self.latin1(text.bytes) }
    }

    #[inline]
    fn latin1(&mut self, text: &[u8]) -> WriteResult<M> {
        self.writer.out.byte(b'"');
        self.writer.latin1(text, Kernel::escape_latin1)?;
        self.writer.out.byte(b'"');
        Ok(())
    }

    #[inline]
    fn utf16(&mut self, text: &[u8]) -> WriteResult<M> {
        self.writer.out.byte(b'"');
        self.writer.pieces(text, 2, Kernel::escape_utf16)?;
        self.writer.out.byte(b'"');
        Ok(())
    }

    fn extra(&mut self, payload: usize, streams: &mut Streams<'a>) -> WriteResult<M> {
        match Extra::of(payload).ok_or(Malformed)? {
            Extra::Row => {
                self.close(b'\n');
                Ok(())
            }
            extra @ (Extra::Bytes | Extra::LongBytes) => {
                let are_long = extra == Extra::LongBytes;
                let (form, bytes) = streams.elements(are_long, &self.tape)?;
                self.typed(form, bytes)
            }
            Extra::Raw => {
                let index = streams.size()?;
                self.raw(self.tape.long(index)?.bytes)
            }
            Extra::OnlyMsgpack => {
                self.dropped = Some((self.writer.out.mark(), self.raws.len()));
                Ok(())
            }
            Extra::OnlyJson | Extra::Both => {
                self.drop_part();
                Ok(())
            }
        }
    }

    fn drop_part(&mut self) {
        if let Some((mark, raws)) = self.dropped.take() {
            self.writer.out.go_back(mark);
            self.raws.truncate(raws);
        }
    }

    fn raw(&mut self, json: &[u8]) -> WriteResult<M> {
        let start = self.writer.out.len();
        if self.tape.has_rows {
            // Raw JSON has line breaks between values only, where they are white space. Strings have none.
            let (line, space) = (|byte: &u8| matches!(byte, b'\n' | b'\r'), b" ");
            for text in json.split_inclusive(line) {
                match text.split_last() {
                    Some((last, text)) if line(last) => {
                        self.writer.copy(text)?;
                        self.writer.copy(space)?;
                    }
                    _ => self.writer.copy(text)?,
                }
            }
        } else {
            self.writer.copy(json)?;
        }
        self.raws.push(start..self.writer.out.len());
        self.writer.out.byte(b',');
        Ok(())
    }

    fn typed(
        &mut self,
        ElementFormat { kind, style }: ElementFormat,
        bytes: &[u8],
    ) -> WriteResult<M> {
        match style {
            ElementStyle::Base64 => return self.base64(bytes),
            ElementStyle::Buffer => self.writer.out.bytes(br#"{"type":"Buffer","data":["#),
            ElementStyle::Numbers | ElementStyle::Strings => self.writer.out.byte(b'['),
        }
        if style == ElementStyle::Strings {
            self.strings(kind, bytes)?;
        } else {
            self.elements(kind, bytes)?;
        }
        self.writer.out.close(b']');
        if style == ElementStyle::Buffer {
            self.writer.out.byte(b'}');
        }
        self.writer.out.byte(b',');
        Ok(())
    }

    fn elements(&mut self, kind: ElementKind, bytes: &[u8]) -> WriteResult<M> {
        let (twos, fours, eights) = (whole::<2>(bytes), whole::<4>(bytes), whole::<8>(bytes));
        match kind {
            ElementKind::Int8 => {
                self.writer.numbers(bytes, |&byte, to| int(byte.cast_signed().into(), to))
            }
            ElementKind::Uint8 | ElementKind::Uint8Clamped => {
                self.writer.numbers(bytes, |&byte, to| int(byte.into(), to))
            }
            ElementKind::Int16 => {
                self.writer.numbers(twos, |&two, to| int(i16::from_ne_bytes(two).into(), to))
            }
            ElementKind::Uint16 => {
                self.writer.numbers(twos, |&two, to| int(u16::from_ne_bytes(two).into(), to))
            }
            ElementKind::Int32 => {
                self.writer.numbers(fours, |&four, to| int(i32::from_ne_bytes(four), to))
            }
            ElementKind::Uint32 => self
                .writer
                .numbers(fours, |&four, to| unsigned(false, u32::from_ne_bytes(four), to)),
            ElementKind::Float16 => {
                self.writer.numbers(twos, |&two, to| half(u16::from_ne_bytes(two), to))
            }
            ElementKind::Float32 => {
                self.writer.numbers(fours, |&four, to| single(f32::from_ne_bytes(four), to))
            }
            ElementKind::Float64 => {
                self.writer.numbers(eights, |&eight, to| double(f64::from_ne_bytes(eight), to))
            }
            ElementKind::BigInt64 | ElementKind::BigUint64 => {
                self.writer.numbers(eights, |&eight, to| bigint(kind, eight, to))
            }
        }
    }

    /// Writes bigints as strings.
    fn strings(&mut self, kind: ElementKind, bytes: &[u8]) -> WriteResult<M> {
        self.writer.numbers(whole::<8>(bytes), |&eight, place| {
            let mut digits = [0; NUMBER];
            let len = bigint(kind, eight, &mut digits) - 1;
            *place = [b'"'; NUMBER];
            for (to, from) in place.iter_mut().skip(1).zip(digits.iter().take(len)) {
                *to = *from;
            }
            if let Some(comma) = place.get_mut(len + 2) {
                *comma = b',';
            }
            len + 3
        })
    }

    fn base64(&mut self, bytes: &[u8]) -> WriteResult<M> {
        self.writer.out.byte(b'"');
        for piece in bytes.chunks(BASE64_PIECE) {
            let room = self.writer.out.room(piece.len().div_ceil(3) * 4);
            // Too little room is a failure to grow, which `out` keeps.
            let written = encode_into(piece, room, Alphabet::Standard, true).unwrap_or(0);
            self.writer.out.advance(written);
            self.writer.pause_if_due()?;
        }
        self.writer.out.put(b"\",", 2);
        Ok(())
    }
}

fn bigint(kind: ElementKind, bytes: [u8; 8], to: &mut [u8; NUMBER]) -> usize {
    if kind == ElementKind::BigUint64 {
        return wide(false, u64::from_ne_bytes(bytes), to);
    }
    let value = i64::from_ne_bytes(bytes);
    wide(value < 0, value.unsigned_abs(), to)
}
