//! From tape to JSON. Every value writes a comma behind itself, which what closes an array or an object takes back: so
//! no stack is needed, and depth costs nothing.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use crate::date::write_date;
use crate::lexicon::Lexicon;
use crate::number::{NUMBER, double, half, int, single, unsigned, wide};
use crate::output::{Memory, Output};
use crate::tape::{
    ARRAY, Characters, Extra, FALSE, Form, Kind, Long, Malformed, NULL, OBJECT, Segment, Style,
    TRUE, Tag,
};
use crate::text::Kernel;

/// Characters that are written at once: room for the worst they can become is asked for before. Where that would make
/// the memory grow, they are fewer.
const PIECE: usize = 4096;
const LEAST_PIECE: usize = 128;
/// Bytes that a character becomes at most.
const WORST: usize = Kernel::room_for(1) - Kernel::room_for(0);

/// Bytes between two calls of `poll`: some 0.1 ms of work.
const POLL: usize = 256 << 10;

/// Numbers that are written at once, as with [`PIECE`].
const BATCH: usize = 4096;
const LEAST_BATCH: usize = 32;

/// Bytes of base64 that are written at once: a multiple of three.
const BASE64_PIECE: usize = 3 << 12;

/// A whole tape, and what it refers to.
#[derive(Clone, Copy, Debug)]
pub struct Tape<'a> {
    pub segments: &'a [Segment<'a>],
    pub longs: &'a [Long<'a>],
    pub lexicon: &'a Lexicon,
    /// It is rows, in which no line may break.
    pub has_rows: bool,
    pub base64: Base64,
}

/// Writes bytes as base64 to memory that has room for it; tells how many characters that are. All calls but the last of
/// a text get a multiple of three.
pub type Base64 = fn(bytes: &[u8], room: &mut [u8]) -> usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscodeError<E> {
    Malformed,
    /// What `Memory::grow` or `poll` failed with.
    Stopped(E),
}

impl<E: fmt::Display> fmt::Display for TranscodeError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => Malformed.fmt(f),
            Self::Stopped(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for TranscodeError<E> {}

impl<E> From<Malformed> for TranscodeError<E> {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// JSON that was written, of which some is to stay as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub len: usize,
    /// Where that stands, in order.
    pub raws: Vec<Range<usize>>,
}

/// Writes the JSON of `tape` to the start of `memory`. `poll` is called every 0.1 ms of work.
///
/// # Errors
/// Those of `memory` and `poll`, and for a tape that no capture writes.
pub fn transcode<M: Memory>(
    tape: Tape<'_>,
    kernel: Kernel,
    memory: &mut M,
    poll: impl FnMut() -> Result<(), M::Error>,
) -> Result<Written, TranscodeError<M::Error>> {
    let out = Output::new(memory).map_err(TranscodeError::Stopped)?;
    let mut transcoder = Transcoder { tape, kernel, out, raws: Vec::new(), poll, polled_at: 0 };
    for segment in tape.segments {
        transcoder.segment(segment)?;
    }
    transcoder.out.drop_comma();
    transcoder.pause()?;
    Ok(Written { len: transcoder.out.len(), raws: transcoder.raws })
}

type Outcome<M> = Result<(), TranscodeError<<M as Memory>::Error>>;

struct Transcoder<'a, 'm, M: Memory, P> {
    tape: Tape<'a>,
    kernel: Kernel,
    out: Output<'m, M>,
    raws: Vec<Range<usize>>,
    poll: P,
    /// How much was written when it was polled last.
    polled_at: usize,
}

impl<'a, M: Memory, P: FnMut() -> Result<(), M::Error>> Transcoder<'a, '_, M, P> {
    fn segment(&mut self, segment: &Segment<'a>) -> Outcome<M> {
        let mut streams = Streams::new(segment);
        while let Some(word) = streams.next_word() {
            self.word(word, &mut streams)?;
            self.pause_if_due()?;
        }
        Ok(())
    }

    #[inline]
    fn word(&mut self, word: i32, streams: &mut Streams<'a>) -> Outcome<M> {
        let payload = payload_of(word);
        match Tag::of(word) {
            Tag::Int => {
                self.out.place(|place| int(word >> 4, place));
                return Ok(());
            }
            Tag::Double => {
                let value = streams.double()?;
                self.out.place(|place| double(value, place));
                return Ok(());
            }
            Tag::Latin1 => self.latin1(streams.bytes(payload)?)?,
            Tag::Utf16 => self.utf16(streams.wide_bytes(payload)?)?,
            Tag::Rope => self.characters(streams.rope(payload)?)?,
            Tag::Literal => self.literal(payload)?,
            Tag::Open => {
                self.out.byte(bracket(payload, b'[', b'{')?);
                return Ok(());
            }
            Tag::Close => self.out.close(bracket(payload, b']', b'}')?),
            Tag::Entry => return self.entry(payload),
            Tag::Name => {
                self.name(payload, streams)?;
                return Ok(());
            }
            Tag::Ints => return self.ints(streams.ints(payload)?),
            Tag::Doubles => return self.doubles(streams.doubles(payload)?),
            Tag::Long => self.characters(self.long(payload)?)?,
            Tag::Text => self.text(payload, streams)?,
            Tag::Date => write_date(&mut self.out, streams.double()?),
            Tag::Extra => return self.extra(payload, streams),
        }
        self.out.byte(b',');
        Ok(())
    }

    fn literal(&mut self, payload: usize) -> Result<(), Malformed> {
        match payload {
            NULL => self.out.put(b"null", 4),
            TRUE => self.out.put(b"true", 4),
            FALSE => self.out.put(b"false", 5),
            _ => return Err(Malformed),
        }
        Ok(())
    }

    #[inline]
    fn entry(&mut self, index: usize) -> Outcome<M> {
        let entry = self.tape.lexicon.get(index).ok_or(Malformed)?;
        match entry.short() {
            Some((block, len)) => self.out.put(block, len),
            None => self.out.bytes(entry.text()),
        }
        Ok(())
    }

    fn name(&mut self, payload: usize, streams: &mut Streams<'a>) -> Outcome<M> {
        let characters = self.located(payload, streams)?;
        self.characters(characters)?;
        self.out.byte(b':');
        Ok(())
    }

    /// The characters that the payload of a word and the next word name.
    fn located(&self, payload: usize, streams: &mut Streams<'a>) -> Result<Long<'a>, Malformed> {
        let len = streams.size()?;
        match Characters::of(payload).ok_or(Malformed)? {
            Characters::Latin1 => Ok(Long { bytes: streams.bytes(len)?, is_wide: false }),
            Characters::Utf16 => Ok(Long { bytes: streams.wide_bytes(len)?, is_wide: true }),
            Characters::Rope => streams.rope(len),
            Characters::Long => self.long(len),
        }
    }

    fn ints(&mut self, ints: &[i32]) -> Outcome<M> {
        self.numbers(ints, |&value, place| int(value, place))
    }

    fn doubles(&mut self, doubles: &[f64]) -> Outcome<M> {
        self.numbers(doubles, |&value, place| double(value, place))
    }

    fn numbers<T, const N: usize>(
        &mut self,
        numbers: &[T],
        print: impl Fn(&T, &mut [u8; N]) -> usize,
    ) -> Outcome<M> {
        for batch in numbers.chunks(self.batch(N)) {
            let mut room = self.out.room(batch.len() * N);
            let whole = room.len();
            for number in batch {
                // Too little room is a failure to grow, which `out` keeps.
                let Some((place, _)) = room.split_first_chunk_mut::<N>() else { break };
                let len = print(number, place);
                room = room.get_mut(len..).unwrap_or_default();
            }
            let written = whole - room.len();
            self.out.advance(written);
            self.pause_if_due()?;
        }
        Ok(())
    }

    /// How many numbers of at most `size` bytes there is room for.
    fn batch(&self, size: usize) -> usize {
        (self.out.left() / size).clamp(LEAST_BATCH, BATCH)
    }

    #[inline]
    fn characters(&mut self, text: Long<'_>) -> Outcome<M> {
        if text.is_wide { self.utf16(text.bytes) } else { self.latin1(text.bytes) }
    }

    #[inline]
    fn latin1(&mut self, text: &[u8]) -> Outcome<M> {
        self.out.byte(b'"');
        if text.len() <= LEAST_PIECE {
            let room = self.out.room(Kernel::room_for(text.len()));
            let written = self.kernel.escape_latin1(text, room).unwrap_or(0);
            self.out.advance(written);
        } else {
            self.pieces(text, 1, Kernel::escape_latin1)?;
        }
        self.out.byte(b'"');
        Ok(())
    }

    #[inline]
    fn utf16(&mut self, text: &[u8]) -> Outcome<M> {
        self.out.byte(b'"');
        self.pieces(text, 2, Kernel::escape_utf16)?;
        self.out.byte(b'"');
        Ok(())
    }

    /// Text that is JSON already.
    fn text(&mut self, payload: usize, streams: &mut Streams<'a>) -> Outcome<M> {
        let whole = self.located(payload, streams)?;
        let width = if whole.is_wide { 2 } else { 1 };
        let (from, to) = (streams.size()? * width, streams.size()? * width);
        let text = whole.bytes.get(from..to).ok_or(Malformed)?;
        if whole.is_wide {
            self.pieces(text, 2, Kernel::transcode_utf16)
        } else {
            self.pieces(text, 1, Kernel::transcode_latin1)
        }
    }

    /// Characters that there is room for, whatever they become.
    fn piece(&self) -> usize {
        (self.out.left().saturating_sub(Kernel::room_for(0)) / WORST).clamp(LEAST_PIECE, PIECE)
    }

    fn pieces(
        &mut self,
        mut text: &[u8],
        width: usize,
        write: impl Fn(Kernel, &[u8], &mut [u8]) -> Option<usize>,
    ) -> Outcome<M> {
        while !text.is_empty() {
            let (piece, rest) = split_piece(text, width, self.piece());
            let room = self.out.room(Kernel::room_for(piece.len() / width));
            // None is a failure to grow, which `out` keeps.
            let written = write(self.kernel, piece, room).unwrap_or(0);
            self.out.advance(written);
            self.pause_if_due()?;
            text = rest;
        }
        Ok(())
    }

    fn extra(&mut self, payload: usize, streams: &mut Streams<'a>) -> Outcome<M> {
        match Extra::of(payload).ok_or(Malformed)? {
            Extra::Row => {
                self.out.close(b'\n');
                Ok(())
            }
            Extra::Bytes => {
                let (form, len) = (streams.size()?, streams.size()?);
                self.typed(form, streams.bytes(len)?)
            }
            Extra::LongBytes => {
                let (form, index) = (streams.size()?, streams.size()?);
                self.typed(form, self.long(index)?.bytes)
            }
            Extra::Raw => {
                let index = streams.size()?;
                self.raw(self.long(index)?.bytes)
            }
        }
    }

    fn raw(&mut self, json: &[u8]) -> Outcome<M> {
        let start = self.out.len();
        for piece in json.chunks(PIECE) {
            let Some(room) = self.out.room(piece.len()).get_mut(..piece.len()) else { continue };
            room.copy_from_slice(piece);
            if self.tape.has_rows {
                // Between values they are white space, and in strings there are none.
                for byte in room.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
                    *byte = b' ';
                }
            }
            self.out.advance(piece.len());
            self.pause_if_due()?;
        }
        self.raws.push(start..self.out.len());
        self.out.byte(b',');
        Ok(())
    }

    fn typed(&mut self, form: usize, bytes: &[u8]) -> Outcome<M> {
        let Form { kind, style } = Form::of(form).ok_or(Malformed)?;
        match style {
            Style::Base64 => return self.base64(bytes),
            Style::Buffer => self.out.bytes(br#"{"type":"Buffer","data":["#),
            Style::Numbers | Style::Strings => self.out.byte(b'['),
        }
        if style == Style::Strings {
            self.strings(kind, bytes)?;
        } else {
            self.elements(kind, bytes)?;
        }
        self.out.close(b']');
        if style == Style::Buffer {
            self.out.byte(b'}');
        }
        self.out.byte(b',');
        Ok(())
    }

    fn elements(&mut self, kind: Kind, bytes: &[u8]) -> Outcome<M> {
        let (twos, fours, eights) = (whole::<2>(bytes), whole::<4>(bytes), whole::<8>(bytes));
        match kind {
            Kind::Int8 => self.numbers(bytes, |&byte, to| int(byte.cast_signed().into(), to)),
            Kind::Uint8 => self.numbers(bytes, |&byte, to| int(byte.into(), to)),
            Kind::Int16 => self.numbers(twos, |&two, to| int(i16::from_ne_bytes(two).into(), to)),
            Kind::Uint16 => self.numbers(twos, |&two, to| int(u16::from_ne_bytes(two).into(), to)),
            Kind::Int32 => self.numbers(fours, |&four, to| int(i32::from_ne_bytes(four), to)),
            Kind::Uint32 => {
                self.numbers(fours, |&four, to| unsigned(false, u32::from_ne_bytes(four), to))
            }
            Kind::Float16 => self.numbers(twos, |&two, to| half(u16::from_ne_bytes(two), to)),
            Kind::Float32 => self.numbers(fours, |&four, to| single(f32::from_ne_bytes(four), to)),
            Kind::Float64 => {
                self.numbers(eights, |&eight, to| double(f64::from_ne_bytes(eight), to))
            }
            Kind::BigInt64 | Kind::BigUint64 => {
                self.numbers(eights, |&eight, to| bigint(kind, eight, to))
            }
        }
    }

    /// Of bigints.
    fn strings(&mut self, kind: Kind, bytes: &[u8]) -> Outcome<M> {
        self.numbers(whole::<8>(bytes), |&eight, place| {
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

    fn base64(&mut self, bytes: &[u8]) -> Outcome<M> {
        self.out.byte(b'"');
        for piece in bytes.chunks(BASE64_PIECE) {
            let room = self.out.room(piece.len().div_ceil(3) * 4);
            let written = (self.tape.base64)(piece, room);
            self.out.advance(written);
            self.pause_if_due()?;
        }
        self.out.put(b"\",", 2);
        Ok(())
    }

    fn long(&self, index: usize) -> Result<Long<'a>, Malformed> {
        self.tape.longs.get(index).copied().ok_or(Malformed)
    }

    #[inline]
    fn pause_if_due(&mut self) -> Outcome<M> {
        if self.out.len().wrapping_sub(self.polled_at) < POLL { Ok(()) } else { self.pause() }
    }

    #[cold]
    fn pause(&mut self) -> Outcome<M> {
        self.polled_at = self.out.len();
        self.out.check().map_err(TranscodeError::Stopped)?;
        (self.poll)().map_err(TranscodeError::Stopped)
    }
}

#[inline]
fn payload_of(word: i32) -> usize {
    (word.cast_unsigned() >> 4) as usize
}

fn bracket(payload: usize, array: u8, object: u8) -> Result<u8, Malformed> {
    match payload {
        ARRAY => Ok(array),
        OBJECT => Ok(object),
        _ => Err(Malformed),
    }
}

fn bigint(kind: Kind, bytes: [u8; 8], to: &mut [u8; NUMBER]) -> usize {
    if kind == Kind::BigUint64 {
        return wide(false, u64::from_ne_bytes(bytes), to);
    }
    let value = i64::from_ne_bytes(bytes);
    wide(value < 0, value.unsigned_abs(), to)
}

/// The whole elements; a view has no others.
fn whole<const SIZE: usize>(bytes: &[u8]) -> &[[u8; SIZE]] {
    bytes.as_chunks().0
}

/// At most `len` characters, no surrogate pair cut.
fn split_piece(text: &[u8], width: usize, len: usize) -> (&[u8], &[u8]) {
    let Some((piece, rest)) = text.split_at_checked(len * width) else { return (text, &[]) };
    let ends_high = width == 2 && matches!(piece, [.., 0xd8..=0xdb]);
    if !ends_high {
        return (piece, rest);
    }
    text.split_at_checked((len - 1) * width).unwrap_or((piece, rest))
}

/// What a segment's words draw from.
struct Streams<'a> {
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
    fn new(segment: &Segment<'a>) -> Self {
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
    fn next_word(&mut self) -> Option<i32> {
        let (&word, rest) = self.words.split_first()?;
        self.words = rest;
        Some(word)
    }

    /// A word that is a length or an index.
    fn size(&mut self) -> Result<usize, Malformed> {
        self.next_word().and_then(|word| usize::try_from(word).ok()).ok_or(Malformed)
    }

    #[inline]
    fn double(&mut self) -> Result<f64, Malformed> {
        let (&double, rest) = self.doubles.split_first().ok_or(Malformed)?;
        self.doubles = rest;
        Ok(double)
    }

    fn ints(&mut self, len: usize) -> Result<&'a [i32], Malformed> {
        take(&mut self.words, len)
    }

    fn doubles(&mut self, len: usize) -> Result<&'a [f64], Malformed> {
        take(&mut self.doubles, len)
    }

    #[inline]
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        take(&mut self.bytes, len)
    }

    #[inline]
    fn wide_bytes(&mut self, characters: usize) -> Result<&'a [u8], Malformed> {
        take(&mut self.bytes, characters * 2)
    }

    /// No string stands in two runs.
    #[inline]
    fn rope(&mut self, len: usize) -> Result<Long<'a>, Malformed> {
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
