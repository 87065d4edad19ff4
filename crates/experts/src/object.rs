//! Reads a payload that is the JSON text of an object with `data`, `shape`, `start`, `dtype` and `encoding`. Other keys
//! are ignored.
//!
//! Runs in a task, since it reads all of the text; `resolve.rs` calls it.

use std::borrow::Cow;

use offloop_grammar::{JsonVisitor, ReadError, Text, read};

use crate::payload::{Declared, PayloadError, dtype_named};
use crate::{EncodedPayload, Encoding, PayloadData};

/// Reads the JSON text of an object. `poll` is called every few microseconds of work.
///
/// # Errors
/// If the text is not JSON or not the object of a payload, and the errors of `poll`.
pub fn object<E: From<PayloadError>>(
    json: &[u8],
    poll: impl FnMut() -> Result<(), E>,
) -> Result<EncodedPayload, E> {
    let mut visitor = ObjectVisitor { poll, fields: ObjectFields::default() };
    read(json, &mut visitor).map_err(|stop| match stop {
        ReadError::Unexpected(offset) => PayloadError::Json { offset }.into(),
        ReadError::Visitor(error) => error,
    })?;
    Ok(visitor.fields.payload(json)?)
}

/// Value of a key. The last of duplicate keys wins.
#[derive(Debug, Default)]
enum FieldValue {
    /// The key is absent or its value is null.
    #[default]
    Absent,
    Text(PayloadData),
    Number(f64),
    Numbers(Vec<f64>),
    /// A value of no use to any field.
    Other,
}

struct ObjectVisitor<P> {
    poll: P,
    fields: ObjectFields,
}

/// The fields read so far.
#[derive(Default)]
struct ObjectFields {
    /// Open objects and arrays.
    depth: usize,
    /// The latest key of the object itself.
    name: FieldName,
    data: FieldValue,
    shape: FieldValue,
    start: FieldValue,
    dtype: FieldValue,
    encoding: FieldValue,
}

#[derive(Clone, Copy, Default)]
enum FieldName {
    #[default]
    Other,
    Data,
    Shape,
    Start,
    Dtype,
    Encoding,
}

/// Most numbers kept of a list. A shape has three; four are enough to reject it.
const MOST_NUMBERS: usize = 4;

impl ObjectFields {
    fn payload(self, json: &[u8]) -> Result<EncodedPayload, PayloadError> {
        let Self { data, shape, start, dtype, encoding, .. } = self;
        let FieldValue::Text(data) = data else { return Err(PayloadError::Data) };
        let encoding = match encoding {
            FieldValue::Absent => Encoding::Base64,
            FieldValue::Text(name) => match name.bytes(json) {
                b"base64" => Encoding::Base64,
                b"base85" => Encoding::Base85,
                _ => return Err(PayloadError::Encoding),
            },
            _ => return Err(PayloadError::Encoding),
        };
        let declared = Declared {
            shape: match shape {
                FieldValue::Absent => None,
                FieldValue::Numbers(numbers) => Some(numbers),
                _ => return Err(PayloadError::Shape),
            },
            start: match start {
                FieldValue::Absent => None,
                FieldValue::Number(number) => Some(number),
                _ => return Err(PayloadError::Start),
            },
            dtype: match dtype {
                FieldValue::Absent => None,
                FieldValue::Text(name) => Some(dtype_named(name.bytes(json))?),
                _ => return Err(PayloadError::Dtype { name: "no text".to_owned() }),
            },
        };
        Ok(EncodedPayload { data, encoding, declared, implied: Some(encoding.implied()) })
    }

    /// Returns the field of the latest key; `None` for other keys.
    fn field(&mut self) -> Option<&mut FieldValue> {
        match self.name {
            FieldName::Other => None,
            FieldName::Data => Some(&mut self.data),
            FieldName::Shape => Some(&mut self.shape),
            FieldName::Start => Some(&mut self.start),
            FieldName::Dtype => Some(&mut self.dtype),
            FieldName::Encoding => Some(&mut self.encoding),
        }
    }

    /// Sets the field of the latest key. `value` runs only for a key of the object itself: a copy may be long.
    fn set(&mut self, value: impl FnOnce() -> FieldValue) {
        match (self.depth, self.field()) {
            (1, Some(field)) => *field = value(),
            // A list of a field holds something other than numbers.
            (2, Some(field)) => *field = FieldValue::Other,
            _ => {}
        }
    }
}

impl<E, P: FnMut() -> Result<(), E>> JsonVisitor for ObjectVisitor<P> {
    type Error = E;

    fn progress(&mut self, _: usize) -> Result<(), E> {
        (self.poll)()
    }

    fn open(&mut self, is_object: bool, _: usize) -> Result<(), E> {
        self.fields
            .set(|| if is_object { FieldValue::Other } else { FieldValue::Numbers(Vec::new()) });
        self.fields.depth += 1;
        Ok(())
    }

    fn close(&mut self, _: usize) -> Result<(), E> {
        self.fields.depth -= 1;
        Ok(())
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), E> {
        if self.fields.depth != 1 {
            return Ok(());
        }
        self.fields.name = match &*text.unescaped() {
            b"data" => FieldName::Data,
            b"shape" => FieldName::Shape,
            b"start" => FieldName::Start,
            b"dtype" => FieldName::Dtype,
            b"encoding" => FieldName::Encoding,
            _ => FieldName::Other,
        };
        Ok(())
    }

    fn string(&mut self, text: Text<'_>) -> Result<(), E> {
        self.fields.set(|| {
            FieldValue::Text(match text.unescaped() {
                Cow::Borrowed(_) => PayloadData::Range(text.range()),
                Cow::Owned(bytes) => PayloadData::Unescaped(bytes),
            })
        });
        Ok(())
    }

    fn skips_integers(&self) -> bool {
        2 < self.fields.depth
    }

    fn number(&mut self, text: &[u8], _: usize) -> Result<(), E> {
        if self.fields.depth == 0 || 2 < self.fields.depth {
            return Ok(());
        }
        let number =
            str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
        match (self.fields.depth, self.fields.field()) {
            (2, Some(FieldValue::Numbers(numbers))) if numbers.len() < MOST_NUMBERS => {
                numbers.push(number);
            }
            (1, Some(field)) => *field = FieldValue::Number(number),
            _ => {}
        }
        Ok(())
    }

    fn literal(&mut self, value: Option<bool>, _: usize) -> Result<(), E> {
        self.fields.set(|| if value.is_none() { FieldValue::Absent } else { FieldValue::Other });
        Ok(())
    }
}
