//! Encodes bytes as base64. `pieces.rs` and the glue call it, on the JS thread or in a task.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

use crate::{Alphabet, Base64Kernel};

/// Why bytes could not become text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The output is smaller than [`encoded_len`].
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

/// Returns how many characters `len` bytes become; `None` if that overflows.
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

/// Encodes `src` into the start of `dst` and returns how many characters it wrote. Parts of one input may be encoded one
/// after the other if the size of every part but the last is a multiple of three.
///
/// # Errors
/// If `dst` is smaller than [`encoded_len`].
pub fn encode_into(
    src: &[u8],
    dst: &mut [u8],
    alphabet: Alphabet,
    padding: bool,
) -> Result<usize, EncodeError> {
    encode_into_with(Base64Kernel::best(), src, dst, alphabet, padding)
}

/// Encodes as [`encode_into`] does, with a kernel of the caller's choice.
///
/// # Errors
/// If `dst` is smaller than [`encoded_len`].
pub fn encode_into_with(
    kernel: Base64Kernel,
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

/// Encodes the last one or two bytes. `tail` has two to four places; those behind the data get padding.
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
