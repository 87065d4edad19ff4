//! Resolves a payload: finds its format, its shape and its data, so that a task can decode it.
//!
//! Resolving first reads only the header, which the JS thread may do. Some payloads need a scan of all their text: JSON
//! objects, and base64 whose size the padding alone does not give. A task does that, with a poll between pieces.

use offloop_base64::{decoded_len, most_decoded};

use crate::payload::{Hints, Payload, PayloadError, PayloadHead, head_size, payload};
use crate::reader::PayloadReader;
use crate::{Dtype, EncodedPayload, Encoding, Run, base85_len, is_object, object, place, text};

/// Called every few microseconds of work; its error stops the work.
pub type PollFn<'a, E> = &'a mut dyn FnMut() -> Result<(), E>;

/// Bytes of a `.npy` file that give the size of its header.
const NPY_PREFIX: usize = 12;

/// A payload whose data, encoding, dtype and shape are known.
#[derive(Clone, Debug)]
pub struct ResolvedPayload {
    /// The text without its JSON escapes; `None` if the payload is decoded from the bytes it arrived in.
    unescaped: Option<Vec<u8>>,
    encoded: EncodedPayload,
    payload: Payload,
}

impl ResolvedPayload {
    /// Resolves a text, which is base64, `nrlre1:…` or the JSON of an object. `unescaped` replaces `arrived` if that has
    /// escapes. Returns `None` if only a scan can tell what the text holds and `scan` is `None`.
    ///
    /// # Errors
    /// If the payload is malformed or does not fit the hints, and the errors of `scan`.
    pub fn from_text<E: From<PayloadError>>(
        arrived: &[u8],
        unescaped: Option<Vec<u8>>,
        hints: &Hints,
        scan: Option<PollFn<'_, E>>,
    ) -> Result<Option<Self>, E> {
        let characters = unescaped.as_deref().unwrap_or(arrived);
        if !is_object(characters) {
            let encoded = text(characters)?;
            return Self::from_encoded(arrived, unescaped, encoded, (hints, scan));
        }
        let Some(poll) = scan else { return Ok(None) };
        let encoded = object(characters, &mut *poll)?;
        Self::from_encoded(arrived, unescaped, encoded, (hints, Some(poll)))
    }

    /// Resolves data whose encoding is known. `arrived` is the whole data.
    ///
    /// # Errors
    /// Fails as [`Self::from_text`] does.
    pub fn from_data<E: From<PayloadError>>(
        arrived: &[u8],
        encoded: EncodedPayload,
        hints: &Hints,
        scan: Option<PollFn<'_, E>>,
    ) -> Result<Option<Self>, E> {
        Self::from_encoded(arrived, None, encoded, (hints, scan))
    }

    fn from_encoded<E: From<PayloadError>>(
        arrived: &[u8],
        unescaped: Option<Vec<u8>>,
        encoded: EncodedPayload,
        (hints, scan): (&Hints, Option<PollFn<'_, E>>),
    ) -> Result<Option<Self>, E> {
        let data = encoded.data.bytes(unescaped.as_deref().unwrap_or(arrived));
        let bytes = match &encoded.declared.shape {
            None => read_head(data, encoded.encoding)?,
            Some(_) => Vec::new(),
        };
        let check = |size, is_exact| {
            let head = PayloadHead { bytes: &bytes, size, is_exact };
            payload(head, &encoded.declared, hints, encoded.implied)
        };
        let payload = match encoded.encoding {
            Encoding::Base85 => check(base85_len(data.len()), true)?,
            Encoding::Raw => check(data.len(), true)?,
            Encoding::Base64 => match (check(most_decoded(data), false)?, scan) {
                (None, Some(poll)) => check(decoded_len(data, poll)?, true)?,
                (payload, _) => payload,
            },
        };
        Ok(payload.map(|payload| Self { unescaped, encoded, payload }))
    }

    /// Shape, dtype and start.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Offset of the data in the bytes that the payload arrived in; `None` if escapes were removed.
    #[must_use]
    pub fn data_offset(&self) -> Option<usize> {
        if self.unescaped.is_some() { None } else { self.encoded.data.offset() }
    }

    /// Decodes all rows to `out`, which has the payload's size, in the payload's dtype.
    ///
    /// # Errors
    /// Fails as [`Self::place`] does.
    pub fn decode<E: From<PayloadError>>(
        &self,
        arrived: &[u8],
        out: &mut [u8],
        poll: PollFn<'_, E>,
    ) -> Result<(), E> {
        let all = Run { from: 0, to: 0, rows: self.payload.shape.rows };
        self.place(arrived, (&[all], self.payload.dtype), out, poll)
    }

    /// Decodes the rows of each run to its place in `out`, as `dtype`. `arrived` are the bytes that were resolved.
    ///
    /// # Errors
    /// If the data is malformed or has another size than its shape needs, and the errors of `poll`.
    pub fn place<E: From<PayloadError>>(
        &self,
        arrived: &[u8],
        (runs, dtype): (&[Run], Dtype),
        out: &mut [u8],
        poll: PollFn<'_, E>,
    ) -> Result<(), E> {
        let data = self.encoded.data.bytes(self.unescaped.as_deref().unwrap_or(arrived));
        let mut reader = PayloadReader::new(data, self.encoded.encoding);
        place(|out| Ok(reader.read(out)?), &self.payload, runs, dtype, out, poll)
    }
}

/// Reads the header of a `.npy` file; no bytes if the data is not such a file.
fn read_head(data: &[u8], encoding: Encoding) -> Result<Vec<u8>, PayloadError> {
    let read = |size: usize| -> Result<Vec<u8>, PayloadError> {
        let mut head = vec![0; size];
        let len = PayloadReader::new(data, encoding).read(&mut head)?;
        head.truncate(len);
        Ok(head)
    };
    match head_size(&read(NPY_PREFIX)?)? {
        0 => Ok(Vec::new()),
        size => read(size),
    }
}
