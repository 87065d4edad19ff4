//! Reads the bytes of a payload through its encoding, any number at a time. [`crate::place`] and the resolving of
//! payloads call it, in a task or for a header on the JS thread.

use offloop_base64::{Alphabet, Base64Reader, Mode};

use crate::{Base85Reader, Encoding, PayloadError};

/// Decodes the data of a payload, whatever its encoding.
pub enum PayloadReader<'a> {
    Base64(Base64Reader<'a>),
    Base85(Base85Reader<'a>),
    Raw(&'a [u8]),
}

impl<'a> PayloadReader<'a> {
    /// Starts at the first byte of `data`.
    #[must_use]
    pub fn new(data: &'a [u8], encoding: Encoding) -> Self {
        match encoding {
            Encoding::Base64 => {
                Self::Base64(Base64Reader::new(data, Mode::Forgiving, Alphabet::Standard))
            }
            Encoding::Base85 => Self::Base85(Base85Reader::new(data)),
            Encoding::Raw => Self::Raw(data),
        }
    }

    /// Fills `out` from its start and returns how many bytes it wrote; fewer than `out` holds only at the end.
    ///
    /// # Errors
    /// If the text is not in its encoding.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, PayloadError> {
        match self {
            Self::Base64(reader) => Ok(reader.read(out)?),
            Self::Base85(reader) => Ok(reader.read(out)?),
            Self::Raw(rest) => Ok(read_raw(rest, out)),
        }
    }
}

fn read_raw(rest: &mut &[u8], out: &mut [u8]) -> usize {
    let len = out.len().min(rest.len());
    let (now, later) = rest.split_at(len);
    out.get_mut(..len).unwrap_or_default().copy_from_slice(now);
    *rest = later;
    len
}
