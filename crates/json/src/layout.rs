//! Bits that say how a tape is printed. JavaScript passes them; the enum `Layout` of the glue has equal ones.

use crate::msgpack::Floats;
use crate::print::{JsonLayout, PrintFormat};

/// JSON Lines: raw JSON loses its line breaks.
pub const ROWS: u32 = 1;
pub const SORTED_KEYS: u32 = 2;
/// The JSON ends with a newline.
pub const NEWLINE: u32 = 4;
/// `MessagePack` instead of JSON.
pub const MSGPACK: u32 = 8;
/// Floats of 32 bits in `MessagePack`.
pub const SINGLES: u32 = 16;
/// The SHA-256 of the JSON.
pub const DIGEST: u32 = 32;
/// The length of the JSON.
pub const SIZE: u32 = 64;

impl<'a> PrintFormat<'a> {
    /// Returns the format that `bits` ask for.
    #[must_use]
    pub fn of(bits: u32, gap: Option<&'a [u8]>, max_depth: usize) -> Self {
        let has = |bit| bits & bit != 0;
        let json = JsonLayout { sorts_keys: has(SORTED_KEYS), gap };
        if has(SIZE) {
            return Self::JsonSize { gap };
        }
        if has(DIGEST) {
            return Self::Digest(json);
        }
        if !has(MSGPACK) {
            return Self::Json(json);
        }
        let floats = if has(SINGLES) { Floats::Single } else { Floats::Double };
        Self::Msgpack { floats, max_depth }
    }
}
