//! Decodes and encodes base64 at the speed of a memory copy, in the three modes that JavaScript knows.
//!
//! A *kernel* moves whole quanta (four characters, three bytes) and stops at the first character outside the alphabet.
//! [`Decoder`] is one scalar state machine with every rule: white space, padding, foreign characters, the offset of an
//! error. It calls the kernel again as soon as it is at the start of a quantum. So kernels know nothing of modes, and
//! tests compare each of them with the scalar one byte for byte.
//!
//! The glue calls this crate on the JS thread for small inputs and in tasks for large ones. The caller owns all memory:
//! nothing here allocates or panics.

mod alphabet;
mod decode;
mod encode;
mod kernel;
mod pieces;
mod reader;

pub use alphabet::Alphabet;
pub use decode::{DecodeError, Decoder, Mode, max_decoded_len};
pub use encode::{EncodeError, encode_into, encode_into_with, encoded_len};
pub use kernel::Base64Kernel;
pub use pieces::{PIECE, PieceDecoder, decode_into, encode_pieces};
pub use reader::{Base64Reader, decoded_len, most_decoded};
