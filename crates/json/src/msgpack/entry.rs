//! `MessagePack` of the text that a lexicon holds: a key, a value with a comma, or a key with its value or the start of it.

use crate::error::TranscodeError;
use crate::msgpack::form::Floats;
use crate::msgpack::text::write_text;
use crate::msgpack::{NoMemory, Scratch};
use crate::text::Kernel;
use crate::writer::Writer;

#[derive(Debug, Default)]
pub(crate) struct PackedEntry {
    pub bytes: Box<[u8]>,
    /// It ends with the start of an object, whose head is not in `bytes`.
    pub opens: bool,
    /// It holds a whole value.
    pub is_value: bool,
}

impl PackedEntry {
    pub fn of(text: &str) -> Self {
        let (key, rest) = split_key(text);
        let value = rest.strip_suffix(',');
        let mut memory = Scratch(Vec::new());
        let Ok(len) = write([key, value], &mut memory) else { return Self::default() };
        memory.0.truncate(len);
        Self { bytes: memory.0.into_boxed_slice(), opens: rest == "{", is_value: value.is_some() }
    }
}

fn write(
    texts: [Option<&str>; 2],
    memory: &mut Scratch,
) -> Result<usize, TranscodeError<NoMemory>> {
    let mut writer = Writer::new(memory, Kernel::best(), || Ok(()))?;
    for text in texts.into_iter().flatten() {
        write_text(text.as_bytes(), &mut writer, Floats::Double)?;
    }
    writer.pause()?;
    Ok(writer.out.len())
}

/// A string with a colon behind it, if it begins so, and the rest.
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
