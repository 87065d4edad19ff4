//! Base64 for `src/base64`: converts arguments and calls `offloop-base64`. Functions that end in `sync` run on the JS
//! thread, the others launch a task.

use std::cell::RefCell;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{AsyncTask, Either};
use napi::{Env, JsString};
use napi_derive::napi;
use offloop_base64::{Alphabet, Mode, PieceDecoder, decode_into, encode_into, encode_pieces};
use offloop_memory::{clear_pieces, recycle};

use crate::failure::{Failure, FailureCause};
use crate::lock::lock;
use crate::memory::{PinnedBuffer, View};
use crate::source::{InputBytes, InputChunk, latin1_of};
use crate::stop::{Flag, Stop};
use crate::task::{PoolTask, Work, at_once, launch};

#[napi]
pub enum Base64Mode {
    Node,
    Forgiving,
    Strict,
}

#[napi]
pub enum Base64Alphabet {
    Standard,
    Url,
}

impl From<Base64Mode> for Mode {
    fn from(mode: Base64Mode) -> Self {
        match mode {
            Base64Mode::Node => Self::Node,
            Base64Mode::Forgiving => Self::Forgiving,
            Base64Mode::Strict => Self::Strict,
        }
    }
}

impl From<Base64Alphabet> for Alphabet {
    fn from(alphabet: Base64Alphabet) -> Self {
        match alphabet {
            Base64Alphabet::Standard => Self::Standard,
            Base64Alphabet::Url => Self::Url,
        }
    }
}

/// Decodes a whole text into `out` in a task; returns the size of the result.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn decode_base64(
    source: &InputBytes,
    #[napi(ts_arg_type = "Uint8Array")] out: PinnedBuffer,
    mode: Base64Mode,
    alphabet: Base64Alphabet,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<DecodeBase64>> {
    let decoder = Base64Decoder::new(mode, alphabet);
    decode_base64_part(&decoder, source, out, true, stop)
}

/// A text whose parts are decoded by one task after the other.
#[napi]
pub struct Base64Decoder(Arc<Mutex<PieceDecoder>>);

#[napi]
impl Base64Decoder {
    #[napi(constructor)]
    #[must_use]
    pub fn new(mode: Base64Mode, alphabet: Base64Alphabet) -> Self {
        Self(Arc::new(Mutex::new(PieceDecoder::new(mode.into(), alphabet.into()))))
    }
}

/// Decodes the next part of a text in a task; returns the size of the result so far.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn decode_base64_part(
    decoder: &Base64Decoder,
    source: &InputBytes,
    #[napi(ts_arg_type = "Uint8Array")] out: PinnedBuffer,
    last: bool,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<DecodeBase64>> {
    let decoder = Arc::clone(&decoder.0);
    launch(DecodeBase64 { decoder, text: source.drain(), out, last }, stop)
}

/// Decodes a text, or a part of one.
pub struct DecodeBase64 {
    /// Locked by one task at a time: the caller launches the parts of a text one after the other.
    decoder: Arc<Mutex<PieceDecoder>>,
    text: Vec<InputChunk>,
    out: PinnedBuffer,
    last: bool,
}

impl Work for DecodeBase64 {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let mut decoder = lock(&self.decoder);
        let out = self.out.result();
        decoder.decode(self.text.iter().map(InputChunk::bytes), out, || flag.check())?;
        if self.last {
            let size = decoder.finish(out)?;
            clear_pieces(out, size, || flag.check())?;
        }
        Ok(decoder.written() as f64)
    }

    fn recycle(&mut self) {
        recycle(&mut self.text);
    }
}

/// Decodes a text that was taken from the caller to the start of its own memory; returns the size of the result.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn decode_base64_in_place(
    #[napi(ts_arg_type = "Uint8Array")] memory: PinnedBuffer,
    mode: Base64Mode,
    alphabet: Base64Alphabet,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<DecodeBase64InPlace>> {
    let decoder = PieceDecoder::new(mode.into(), alphabet.into());
    launch(DecodeBase64InPlace { decoder, memory }, stop)
}

/// Decodes a text in its own memory.
pub struct DecodeBase64InPlace {
    decoder: PieceDecoder,
    memory: PinnedBuffer,
}

impl Work for DecodeBase64InPlace {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let memory = self.memory.result();
        let text = 0..memory.len();
        let decoder = self.decoder.clone();
        Ok(decoder.decode_in_place(memory, text, || flag.check())? as f64)
    }
}

/// Decodes bytes on the JS thread; returns the size of the result.
#[napi]
pub fn decode_base64_sync(
    #[napi(ts_arg_type = "Uint8Array")] text: View,
    #[napi(ts_arg_type = "Uint8Array")] mut out: View,
    mode: Base64Mode,
    alphabet: Base64Alphabet,
) -> Either<f64, Failure> {
    at_once(|| {
        let mut block = None;
        let text = text.bytes_or_copy(&out, &mut block)?;
        decode_at_once(text, out.bytes_mut().unwrap_or_default(), mode, alphabet)
    })
}

thread_local! {
    /// Memory for the characters of short strings: Node-API reads a string only by copying it.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Decodes a short string of Latin-1 characters on the JS thread; returns the size of the result.
#[napi]
pub fn decode_base64_text_sync(
    env: Env,
    text: JsString<'_>,
    #[napi(ts_arg_type = "Uint8Array")] mut out: View,
    mode: Base64Mode,
    alphabet: Base64Alphabet,
) -> napi::Result<Either<f64, Failure>> {
    TEXT.with_borrow_mut(|memory| {
        let latin1 = latin1_of(env, text, memory)?;
        Ok(at_once(|| decode_at_once(latin1, out.bytes_mut().unwrap_or_default(), mode, alphabet)))
    })
}

fn decode_at_once(
    text: &[u8],
    out: &mut [u8],
    mode: Base64Mode,
    alphabet: Base64Alphabet,
) -> Result<f64, Failure> {
    let size = decode_into(text, out, mode.into(), alphabet.into())?;
    clear_pieces(out, size, || Ok::<(), Failure>(()))?;
    Ok(size as f64)
}

/// Encodes bytes into `out` in a task. `out` has exactly the size of the result, which is returned.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn encode_base64(
    source: &InputBytes,
    #[napi(ts_arg_type = "Uint8Array")] out: PinnedBuffer,
    alphabet: Base64Alphabet,
    padding: bool,
    stop: Option<&Stop>,
) -> AsyncTask<PoolTask<EncodeBase64>> {
    launch(EncodeBase64 { bytes: source.drain(), out, alphabet: alphabet.into(), padding }, stop)
}

/// Encodes bytes that were gathered in one segment.
pub struct EncodeBase64 {
    bytes: Vec<InputChunk>,
    out: PinnedBuffer,
    alphabet: Alphabet,
    padding: bool,
}

impl Work for EncodeBase64 {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let out = self.out.result();
        let [segment] = self.bytes.as_slice() else {
            return Err(Failure::new(
                FailureCause::Internal,
                "bytes to be encoded stand in one piece",
            ));
        };
        let form = (self.alphabet, self.padding);
        Ok(encode_pieces(segment.bytes(), out, form, || flag.check())? as f64)
    }

    fn recycle(&mut self) {
        recycle(&mut self.bytes);
    }
}

/// Encodes bytes into `out` on the JS thread. `out` has exactly the size of the result, which is returned.
#[napi]
pub fn encode_base64_sync(
    #[napi(ts_arg_type = "Uint8Array")] bytes: View,
    #[napi(ts_arg_type = "Uint8Array")] mut out: View,
    alphabet: Base64Alphabet,
    padding: bool,
) -> Either<f64, Failure> {
    at_once(|| {
        let mut block = None;
        let bytes = bytes.bytes_or_copy(&out, &mut block)?;
        let out = out.bytes_mut().unwrap_or_default();
        Ok(encode_into(bytes, out, alphabet.into(), padding)? as f64)
    })
}
