use std::error::Error;
use std::fmt::{self, Display, Formatter};

use crate::{Alphabet, Kernel};

/// Why bytes could not become text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The caller's memory is smaller than [`encoded_len`].
    OutputTooSmall,
}

impl Display for EncodeError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutputTooSmall => f.write_str("output too small for the encoded text"),
        }
    }
}

impl Error for EncodeError {}

/// The characters that `len` bytes become, or `None` where that is more than memory can hold.
#[must_use]
pub const fn encoded_len(len: usize, padding: bool) -> Option<usize> {
    let Some(whole) = (len / 3).checked_mul(4) else { return None };
    let rest = match len % 3 {
        0 => 0,
        _ if padding => 4,
        1 => 2,
        _ => 3,
    };
    whole.checked_add(rest)
}

/// Encodes `src` into the start of `dst` and tells how many characters were written. Bytes may be encoded part by part
/// as long as every part but the last is a multiple of three.
///
/// # Errors
/// Where `dst` is smaller than [`encoded_len`].
pub fn encode_into(
    src: &[u8],
    dst: &mut [u8],
    alphabet: Alphabet,
    padding: bool,
) -> Result<usize, EncodeError> {
    encode_into_with(Kernel::best(), src, dst, alphabet, padding)
}

/// [`encode_into`] with a kernel of the caller's choice.
///
/// # Errors
/// As [`encode_into`].
pub fn encode_into_with(
    kernel: Kernel,
    src: &[u8],
    dst: &mut [u8],
    alphabet: Alphabet,
    padding: bool,
) -> Result<usize, EncodeError> {
    let len = encoded_len(src.len(), padding).ok_or(EncodeError::OutputTooSmall)?;
    let dst = dst.get_mut(..len).ok_or(EncodeError::OutputTooSmall)?;
    let (whole, rest) = src.split_at(src.len() / 3 * 3);
    // SAFETY: `whole` is readable, and `dst` holds four characters for each of its quanta of three bytes.
    unsafe { kernel.encode(whole.as_ptr(), whole.len(), dst.as_mut_ptr(), alphabet) };
    let tail = dst.get_mut(whole.len() / 3 * 4..).ok_or(EncodeError::OutputTooSmall)?;
    encode_tail(rest, tail, alphabet);
    Ok(len)
}

/// One or two bytes; `tail` has two to four places for them, the ones past the data meant for padding.
#[allow(clippy::indexing_slicing, reason = "six bits always index a table of 64")]
fn encode_tail(rest: &[u8], tail: &mut [u8], alphabet: Alphabet) {
    let mut bytes = [0; 4];
    for (byte, value) in bytes.iter_mut().skip(1).zip(rest) {
        *byte = *value;
    }
    let quantum = u32::from_be_bytes(bytes);
    let characters = alphabet.characters();
    for (index, place) in tail.iter_mut().enumerate() {
        let value = quantum >> (18 - 6 * index) & 0x3f;
        *place = if index <= rest.len() { characters[value as usize] } else { b'=' };
    }
}
