//! A payload that is a JSON object, read from its text: `data`, `shape`, `start`, `dtype`, `encoding`, and whatever else.

use std::borrow::Cow;

use offloop_grammar::{Stop, Text, Visit, read};

use crate::payload::{PayloadError, Told, dtype_named};
use crate::{Data, Encoding, Wire};

/// A text that is the JSON of an object. `poll` is called every few microseconds of work.
///
/// # Errors
/// Where it is no JSON, or no object of a payload; and those of `poll`.
pub fn object<E: From<PayloadError>>(
    json: &[u8],
    poll: impl FnMut() -> Result<(), E>,
) -> Result<Wire, E> {
    let mut reader = Reader { poll, seen: Everything::default() };
    read(json, &mut reader).map_err(|stop| match stop {
        Stop::Unexpected(offset) => PayloadError::Json { offset }.into(),
        Stop::Visitor(error) => error,
    })?;
    Ok(reader.seen.wire(json)?)
}

/// The value of a key; the last of several counts.
#[derive(Debug, Default)]
enum Seen {
    /// The key is absent, or its value null.
    #[default]
    Nothing,
    Text(Data),
    Number(f64),
    Numbers(Vec<f64>),
    Other,
}

struct Reader<P> {
    poll: P,
    seen: Everything,
}

/// What is known of an object, up to where it was read.
#[derive(Default)]
struct Everything {
    depth: usize,
    key: Key,
    data: Seen,
    shape: Seen,
    start: Seen,
    dtype: Seen,
    encoding: Seen,
}

#[derive(Clone, Copy, Default)]
enum Key {
    #[default]
    Other,
    Data,
    Shape,
    Start,
    Dtype,
    Encoding,
}

/// More numbers are no shape, however many there are.
const MOST_NUMBERS: usize = 4;

impl Everything {
    fn wire(self, json: &[u8]) -> Result<Wire, PayloadError> {
        let Self { data, shape, start, dtype, encoding, .. } = self;
        let Seen::Text(data) = data else { return Err(PayloadError::Data) };
        let encoding = match encoding {
            Seen::Nothing => Encoding::Base64,
            Seen::Text(name) => match name.of(json) {
                b"base64" => Encoding::Base64,
                b"base85" => Encoding::Base85,
                _ => return Err(PayloadError::Encoding),
            },
            _ => return Err(PayloadError::Encoding),
        };
        let told = Told {
            shape: match shape {
                Seen::Nothing => None,
                Seen::Numbers(numbers) => Some(numbers),
                _ => return Err(PayloadError::Shape),
            },
            start: match start {
                Seen::Nothing => None,
                Seen::Number(number) => Some(number),
                _ => return Err(PayloadError::Start),
            },
            dtype: match dtype {
                Seen::Nothing => None,
                Seen::Text(name) => Some(dtype_named(name.of(json))?),
                _ => return Err(PayloadError::Dtype { name: "no text".to_owned() }),
            },
        };
        Ok(Wire { data, encoding, told, implied: Some(encoding.implied()) })
    }

    fn place(&mut self) -> Option<&mut Seen> {
        match self.key {
            Key::Other => None,
            Key::Data => Some(&mut self.data),
            Key::Shape => Some(&mut self.shape),
            Key::Start => Some(&mut self.start),
            Key::Dtype => Some(&mut self.dtype),
            Key::Encoding => Some(&mut self.encoding),
        }
    }

    /// `seen` may be long, and is made only where somebody asks for it.
    fn see(&mut self, seen: impl FnOnce() -> Seen) {
        match (self.depth, self.place()) {
            (1, Some(place)) => *place = seen(),
            // Something other than numbers among them.
            (2, Some(place)) => *place = Seen::Other,
            _ => {}
        }
    }
}

impl<E, P: FnMut() -> Result<(), E>> Visit for Reader<P> {
    type Error = E;

    fn progress(&mut self, _: usize) -> Result<(), E> {
        (self.poll)()
    }

    fn open(&mut self, is_object: bool, _: usize) -> Result<(), E> {
        self.seen.see(|| if is_object { Seen::Other } else { Seen::Numbers(Vec::new()) });
        self.seen.depth += 1;
        Ok(())
    }

    fn close(&mut self, _: usize) -> Result<(), E> {
        self.seen.depth -= 1;
        Ok(())
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), E> {
        if self.seen.depth != 1 {
            return Ok(());
        }
        self.seen.key = match &*text.unescaped() {
            b"data" => Key::Data,
            b"shape" => Key::Shape,
            b"start" => Key::Start,
            b"dtype" => Key::Dtype,
            b"encoding" => Key::Encoding,
            _ => Key::Other,
        };
        Ok(())
    }

    fn string(&mut self, text: Text<'_>) -> Result<(), E> {
        self.seen.see(|| {
            Seen::Text(match text.unescaped() {
                Cow::Borrowed(_) => Data::At(text.range()),
                Cow::Owned(bytes) => Data::Own(bytes),
            })
        });
        Ok(())
    }

    fn skips_integers(&self) -> bool {
        2 < self.seen.depth
    }

    fn number(&mut self, text: &[u8], _: usize) -> Result<(), E> {
        if self.seen.depth == 0 || 2 < self.seen.depth {
            return Ok(());
        }
        let number =
            str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
        match (self.seen.depth, self.seen.place()) {
            (2, Some(Seen::Numbers(numbers))) if numbers.len() < MOST_NUMBERS => {
                numbers.push(number);
            }
            (1, Some(place)) => *place = Seen::Number(number),
            _ => {}
        }
        Ok(())
    }

    fn literal(&mut self, value: Option<bool>, _: usize) -> Result<(), E> {
        self.seen.see(|| if value.is_none() { Seen::Nothing } else { Seen::Other });
        Ok(())
    }
}
