//! The `MessagePack` of a lexicon entry, made in the first task that needs it.
//!
//! | entry | example |
//! |---|---|
//! | a key | `"a":` |
//! | a value | `"b",` |
//! | a key and its value | `"a":null,` |
//! | a key and the start of an object | `"a":{` |

use crate::error::TranscodeError;
use crate::msgpack::form::Floats;
use crate::msgpack::text::write_text;
use crate::msgpack::{ScratchBytes, ScratchFull};
use crate::text::Kernel;
use crate::writer::Writer;

/// The `MessagePack` of a lexicon entry.
#[derive(Debug, Default)]
pub(crate) struct PackedEntry {
    pub bytes: Box<[u8]>,
    /// Whether the entry ends with the start of an object. The head of the object is not in `bytes`.
    pub opens: bool,
    /// Whether the entry has a whole value.
    pub is_value: bool,
}

impl PackedEntry {
    /// Packs a text; returns an empty entry for invalid JSON.
    pub fn of(text: &str) -> Self {
        let (key, rest) = split_key(text);
        let value = rest.strip_suffix(',');
        let mut memory = ScratchBytes(Vec::new());
        let Ok(len) = write([key, value], &mut memory) else { return Self::default() };
        memory.0.truncate(len);
        Self { bytes: memory.0.into_boxed_slice(), opens: rest == "{", is_value: value.is_some() }
    }
}

fn write(
    texts: [Option<&str>; 2],
    memory: &mut ScratchBytes,
) -> Result<usize, TranscodeError<ScratchFull>> {
    let mut writer = Writer::new(memory, Kernel::best(), || Ok(()))?;
    for text in texts.into_iter().flatten() {
        write_text(text.as_bytes(), &mut writer, Floats::Double)?;
    }
    writer.pause()?;
    Ok(writer.out.len())
}

/// Splits off a key and its colon; `None` where the text begins with no key. Returns the key without the colon.
fn split_key(text: &str) -> (Option<&str>, &str) {
    let mut is_escaped = true;
    let end = text.find(|letter| {
        let is_end = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    });
    let key = end.and_then(|end| text.split_at_checked(end + 1));
    match key.and_then(|(key, rest)| Some((key, rest.strip_prefix(':')?))) {
        Some((key, rest)) => (Some(key), rest),
        None => (None, text),
    }
}
