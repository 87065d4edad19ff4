//! Widens elements to a larger dtype. Runs in a task; `place.rs` calls it.

use crate::Dtype;

/// Writes the elements of `from` to `to`, which has room for them. Writes nothing if `to_dtype` does not hold `from_dtype`.
pub fn widen(from: &[u8], from_dtype: Dtype, to: &mut [u8], to_dtype: Dtype) {
    use Dtype::{Int8, Int16, Int32, Uint8, Uint16};
    match (from_dtype, to_dtype) {
        (Uint8, Uint16) => {
            each(from, to, |bytes| u16::from(u8::from_le_bytes(bytes)).to_le_bytes());
        }
        (Uint8, Int16) => each(from, to, |bytes| i16::from(u8::from_le_bytes(bytes)).to_le_bytes()),
        (Uint8, Int32) => each(from, to, |bytes| i32::from(u8::from_le_bytes(bytes)).to_le_bytes()),
        (Int8, Int16) => each(from, to, |bytes| i16::from(i8::from_le_bytes(bytes)).to_le_bytes()),
        (Int8, Int32) => each(from, to, |bytes| i32::from(i8::from_le_bytes(bytes)).to_le_bytes()),
        (Uint16, Int32) => {
            each(from, to, |bytes| i32::from(u16::from_le_bytes(bytes)).to_le_bytes());
        }
        (Int16, Int32) => {
            each(from, to, |bytes| i32::from(i16::from_le_bytes(bytes)).to_le_bytes());
        }
        (same, other) if same == other => to.copy_from_slice(from),
        _ => {}
    }
}

#[inline]
fn each<const N: usize, const M: usize>(
    from: &[u8],
    to: &mut [u8],
    wider: impl Fn([u8; N]) -> [u8; M],
) {
    for (to, from) in to.as_chunks_mut().0.iter_mut().zip(from.as_chunks().0) {
        *to = wider(*from);
    }
}
