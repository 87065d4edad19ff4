//! Decodes the escapes of JSON strings. Runs on any thread; readers call it for the strings that have escapes.

/// Decodes the escape at the start of `text`. Returns its character and the text behind it.
///
/// The error is half of a surrogate pair. `text` begins with an escape of a valid JSON string; the result for any other
/// text is unspecified.
pub fn unescape(text: &[u8]) -> (Result<char, u16>, &[u8]) {
    match text {
        [_, b'u', rest @ ..] => unicode(rest),
        [_, letter, rest @ ..] => (Ok(named(*letter)), rest),
        _ => (Err(0), &[]),
    }
}

/// Returns the UTF-8 of a string without its escapes. Halves of surrogate pairs become three bytes each, as if they
/// were characters.
#[must_use]
pub fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        let (plain, escape) = rest.split_at(at);
        bytes.extend_from_slice(plain);
        let (character, behind) = unescape(escape);
        match character {
            Ok(character) => {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Err(unit) => {
                let low = |shift: u16| (unit >> shift & 0x3f) as u8 | 0x80;
                bytes.extend_from_slice(&[(unit >> 12) as u8 | 0xe0, low(6), low(0)]);
            }
        }
        rest = behind;
    }
    bytes.extend_from_slice(rest);
    bytes
}

fn named(letter: u8) -> char {
    match letter {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        other => other.into(),
    }
}

/// Decodes four digits. Decodes the escape behind them as well where both are a surrogate pair.
fn unicode(text: &[u8]) -> (Result<char, u16>, &[u8]) {
    let (unit, rest) = unit(text);
    if let (0xd800..0xdc00, [b'\\', b'u', other @ ..]) = (unit, rest) {
        let (low, behind) = self::unit(other);
        if (0xdc00..0xe000).contains(&low) {
            let pair = char::decode_utf16([unit, low]).next().and_then(Result::ok);
            return (pair.ok_or(unit), behind);
        }
    }
    (char::from_u32(unit.into()).ok_or(unit), rest)
}

fn unit(text: &[u8]) -> (u16, &[u8]) {
    let (digits, rest) = text.split_at_checked(4).unwrap_or((text, &[]));
    let digits = str::from_utf8(digits).unwrap_or_default();
    (u16::from_str_radix(digits, 16).unwrap_or_default(), rest)
}
