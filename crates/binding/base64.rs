use std::cell::RefCell;
use std::ops::Range;
use std::result::Result;
use std::sync::{Arc, Mutex};

use napi::bindgen_prelude::{AsyncTask, Either, Uint8Array};
use napi::{Env, JsString};
use napi_derive::napi;
use offloop_base64::{Alphabet, DecodeError, Decoder, Mode, encode_into};

use crate::failure::{Cause, Failure};
use crate::lock::lock;
use crate::memory::{Held, View};
use crate::result::{clear_rest, prepare};
use crate::source::{Segment, Source, latin1_of, recycle};
use crate::stop::{Flag, Stop};
use crate::task::{Job, Work, at_once, launch};

/// How much is decoded or encoded between two looks at the flag: about 0.1 ms. A multiple of three and of four.
const PIECE: usize = 3 << 18;

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

/// Decodes a whole text into `out`; tells how long the result is.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn decode_base64(
    source: &Source,
    out: Uint8Array,
    mode: Base64Mode,
    alphabet: Base64Alphabet,
    stop: Option<&Stop>,
) -> AsyncTask<Job<Decode>> {
    let progress = Arc::new(Mutex::new(Progress::new(mode, alphabet)));
    launch(Decode { progress, text: source.drain(), out: Held::new(out), last: true }, stop)
}

/// A text whose parts are decoded by one task after the other.
#[napi]
pub struct Base64Decoder(Arc<Mutex<Progress>>);

#[napi]
impl Base64Decoder {
    #[napi(constructor)]
    #[must_use]
    pub fn new(mode: Base64Mode, alphabet: Base64Alphabet) -> Self {
        Self(Arc::new(Mutex::new(Progress::new(mode, alphabet))))
    }
}

/// Decodes the next part of a text; tells how long the result is by then.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn decode_base64_part(
    decoder: &Base64Decoder,
    source: &Source,
    out: Uint8Array,
    last: bool,
    stop: Option<&Stop>,
) -> AsyncTask<Job<Decode>> {
    let progress = Arc::clone(&decoder.0);
    launch(Decode { progress, text: source.drain(), out: Held::new(out), last }, stop)
}

pub struct Decode {
    /// Locked by one task at a time: the parts of a text are launched one after the other.
    progress: Arc<Mutex<Progress>>,
    text: Vec<Segment>,
    out: Held,
    last: bool,
}

impl Work for Decode {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let mut progress = lock(&self.progress);
        progress.decode(&self.text, self.out.bytes_mut(), self.last, flag)
    }

    fn recycle(&mut self) {
        recycle(&mut self.text);
    }
}

/// Decodes a text that was taken from the caller in its own memory; tells how long the result is.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn decode_base64_in_place(
    text: Uint8Array,
    mode: Base64Mode,
    alphabet: Base64Alphabet,
    stop: Option<&Stop>,
) -> AsyncTask<Job<DecodeInPlace>> {
    launch(DecodeInPlace { progress: Progress::new(mode, alphabet), memory: Held::new(text) }, stop)
}

pub struct DecodeInPlace {
    progress: Progress,
    memory: Held,
}

impl Work for DecodeInPlace {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let memory = self.memory.bytes_mut();
        let all = 0..memory.len();
        Ok(self.progress.decode_in_place(memory, all, flag)? as f64)
    }

    fn recycle(&mut self) {}
}

/// A text that is decoded piece by piece.
pub struct Progress {
    decoder: Decoder,
    /// Bytes of the result so far.
    written: usize,
}

impl Progress {
    pub fn new(mode: Base64Mode, alphabet: Base64Alphabet) -> Self {
        Self { decoder: Decoder::new(mode.into(), alphabet.into()), written: 0 }
    }

    fn decode(
        &mut self,
        text: &[Segment],
        out: &mut [u8],
        last: bool,
        flag: &Flag,
    ) -> Result<f64, Failure> {
        if self.written == 0 {
            prepare(out);
        }
        for segment in text {
            self.decode_part(segment.bytes(), out, flag)?;
        }
        if last {
            self.finish(out)?;
            clear_rest(out, self.written, flag)?;
        }
        Ok(self.written as f64)
    }

    pub fn decode_part(&mut self, text: &[u8], out: &mut [u8], flag: &Flag) -> Result<(), Failure> {
        for piece in text.chunks(PIECE) {
            flag.check()?;
            let room = out.get_mut(self.written..).unwrap_or_default();
            self.written += self.decoder.decode(piece, room)?;
        }
        Ok(())
    }

    /// The text that stands at `text` in `memory`, to the start of that; tells how long the result is.
    pub fn decode_in_place(
        &mut self,
        memory: &mut [u8],
        text: Range<usize>,
        flag: &Flag,
    ) -> Result<usize, Failure> {
        for start in text.clone().step_by(PIECE) {
            flag.check()?;
            let piece = start..text.end.min(start + PIECE);
            self.written += self.decoder.decode_in_place(memory, piece, self.written)?;
        }
        self.finish(memory)
    }

    /// Tells how long the result is.
    pub fn finish(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        let room = out.get_mut(self.written..).unwrap_or_default();
        self.written += self.decoder.clone().finish(room)?;
        Ok(self.written)
    }
}

/// Decodes bytes at once; tells how long the result is.
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
    /// Where the characters of short strings go, since they can only be read by copying them.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// As `decodeBase64Sync`, for a short string of Latin-1 characters.
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
    let mut decoder = Decoder::new(mode.into(), alphabet.into());
    let mut written = decoder.decode(text, out)?;
    written += decoder.finish(out.get_mut(written..).ok_or(DecodeError::OutputTooSmall)?)?;
    clear_rest(out, written, &Flag::default())?;
    Ok(written as f64)
}

/// Encodes into `out`, which has exactly the size of the result.
#[napi(ts_return_type = "Promise<number | Failure>")]
pub fn encode_base64(
    source: &Source,
    out: Uint8Array,
    alphabet: Base64Alphabet,
    padding: bool,
    stop: Option<&Stop>,
) -> AsyncTask<Job<Encode>> {
    launch(
        Encode { bytes: source.drain(), out: Held::new(out), alphabet: alphabet.into(), padding },
        stop,
    )
}

pub struct Encode {
    bytes: Vec<Segment>,
    out: Held,
    alphabet: Alphabet,
    padding: bool,
}

impl Work for Encode {
    type Done = f64;

    fn run(&mut self, flag: &Flag) -> Result<f64, Failure> {
        let out = self.out.bytes_mut();
        prepare(out);
        let [segment] = self.bytes.as_slice() else {
            return Err(Failure::new(Cause::Internal, "bytes to be encoded stand in one piece"));
        };
        let mut written = 0;
        for piece in segment.bytes().chunks(PIECE) {
            flag.check()?;
            let room = out.get_mut(written..).unwrap_or_default();
            written += encode_into(piece, room, self.alphabet, self.padding)?;
        }
        Ok(written as f64)
    }

    fn recycle(&mut self) {
        recycle(&mut self.bytes);
    }
}

/// Encodes bytes at once into `out`, which has exactly the size of the result.
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
        Ok(encode_into(bytes, out.bytes_mut().unwrap_or_default(), alphabet.into(), padding)?
            as f64)
    })
}
