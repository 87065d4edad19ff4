//! The rules, word by word, on whole files in memory.

use offloop_jsonl::{RowCause, RowFlaw, Tail, TornTail};

/// What stands at the start of some bytes.
enum Found {
    /// A value, and where it ends.
    Whole(usize),
    /// The beginning of one, all of the bytes.
    Beginning,
    Nothing,
}

pub struct RowOf<'a> {
    pub start: usize,
    pub bytes: &'a [u8],
    pub is_terminated: bool,
}

pub enum Worth {
    Blank,
    Good { is_glued: bool, is_standard: bool },
    Torn { start: usize, cause: RowCause },
}

pub fn rows(file: &[u8]) -> Vec<RowOf<'_>> {
    let mut start = if file.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut rows = Vec::new();
    while let Some(len) = file[start..].iter().position(|&byte| byte == b'\n') {
        rows.push(RowOf { start, bytes: &file[start..start + len], is_terminated: true });
        start += len + 1;
    }
    rows.push(RowOf { start, bytes: &file[start..], is_terminated: false });
    rows
}

pub fn worth(row: &[u8], is_terminated: bool) -> Worth {
    if skip_blanks(row, 0) == row.len() {
        return Worth::Blank;
    }
    let (mut start, mut count) = (0, 0);
    loop {
        let at = skip_blanks(row, start);
        if at == row.len() {
            let is_standard = is_standard(row);
            return Worth::Good { is_glued: 1 < count, is_standard };
        }
        match value(&row[at..]) {
            Found::Whole(len) if matches!(row[at], b'{' | b'[') => {
                (start, count) = (at + len, count + 1);
            }
            Found::Whole(len) if count == 0 && skip_blanks(row, at + len) == row.len() => {
                if is_terminated || !is_number(&row[at..at + len]) {
                    return Worth::Good { is_glued: false, is_standard: is_standard(row) };
                }
                break;
            }
            _ => break,
        }
    }
    Worth::Torn { start, cause: cause(&row[start..], is_terminated) }
}

fn cause(torn: &[u8], is_terminated: bool) -> RowCause {
    if torn.contains(&0) {
        return RowCause::Nul;
    }
    let at = skip_blanks(torn, 0);
    let is_beginning = match value(&torn[at..]) {
        Found::Beginning => true,
        Found::Whole(len) => {
            is_number(&torn[at..at + len]) && skip_blanks(torn, at + len) == torn.len()
        }
        Found::Nothing => false,
    };
    if !is_beginning {
        return RowCause::Garbage;
    }
    let is_cut = str::from_utf8(torn).is_err_and(|error| error.error_len().is_none());
    if is_cut && !is_terminated { RowCause::Utf8 } else { RowCause::Partial }
}

/// `-Infinity` is a word, all others that begin so are numbers.
fn is_number(value: &[u8]) -> bool {
    matches!(value, [b'-' | b'0'..=b'9', ..]) && value != b"-Infinity"
}

fn is_standard(row: &[u8]) -> bool {
    let mut in_text = false;
    let mut escaped = false;
    for &byte in row {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'N' | b'I' if !in_text => return false,
            _ => {}
        }
    }
    str::from_utf8(row).is_ok()
}

fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| b" \t\r".contains(byte)) {
        at += 1;
    }
    at
}

fn value(bytes: &[u8]) -> Found {
    match bytes.first() {
        None => Found::Beginning,
        Some(b'{') => container(bytes, b'}', |bytes| {
            let key = text(bytes);
            let Found::Whole(len) = key else { return key };
            let colon = skip_blanks(bytes, len);
            match bytes.get(colon) {
                None => Found::Beginning,
                Some(b':') => shifted(value_behind_blanks(&bytes[colon + 1..]), colon + 1),
                Some(_) => Found::Nothing,
            }
        }),
        Some(b'[') => container(bytes, b']', value),
        Some(b'"') => text(bytes),
        Some(b'-' | b'0'..=b'9') if !bytes.starts_with(b"-I") => number(bytes),
        Some(_) => ["true", "false", "null", "NaN", "Infinity", "-Infinity"]
            .iter()
            .map(|word| word_of(bytes, word.as_bytes()))
            .find(|found| !matches!(found, Found::Nothing))
            .unwrap_or(Found::Nothing),
    }
}

fn value_behind_blanks(bytes: &[u8]) -> Found {
    let blanks = skip_blanks(bytes, 0);
    shifted(value(&bytes[blanks..]), blanks)
}

fn shifted(found: Found, by: usize) -> Found {
    match found {
        Found::Whole(len) => Found::Whole(by + len),
        other => other,
    }
}

fn container(bytes: &[u8], end: u8, element: impl Fn(&[u8]) -> Found) -> Found {
    let mut at = skip_blanks(bytes, 1);
    if bytes.get(at) == Some(&end) {
        return Found::Whole(at + 1);
    }
    loop {
        at = skip_blanks(bytes, at);
        if at == bytes.len() {
            return Found::Beginning;
        }
        match element(&bytes[at..]) {
            Found::Whole(len) => at = skip_blanks(bytes, at + len),
            other => return other,
        }
        match bytes.get(at) {
            None => return Found::Beginning,
            Some(b',') => at += 1,
            Some(&byte) if byte == end => return Found::Whole(at + 1),
            Some(_) => return Found::Nothing,
        }
    }
}

fn text(bytes: &[u8]) -> Found {
    match bytes.first() {
        None => return Found::Beginning,
        Some(b'"') => {}
        Some(_) => return Found::Nothing,
    }
    let mut at = 1;
    loop {
        match bytes.get(at) {
            None => return Found::Beginning,
            Some(b'"') => return Found::Whole(at + 1),
            Some(0..0x20) => return Found::Nothing,
            Some(b'\\') => match bytes.get(at + 1) {
                None => return Found::Beginning,
                Some(b'u') => {
                    let digits = &bytes[at + 2..bytes.len().min(at + 6)];
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return Found::Nothing;
                    }
                    if digits.len() < 4 {
                        return Found::Beginning;
                    }
                    at += 6;
                }
                Some(byte) if b"\"\\/bfnrt".contains(byte) => at += 2,
                Some(_) => return Found::Nothing,
            },
            Some(_) => at += 1,
        }
    }
}

/// The longest number there is.
fn number(bytes: &[u8]) -> Found {
    let mut at = usize::from(bytes[0] == b'-');
    let digits = |at: usize| bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let missing = |at: usize| if at == bytes.len() { Found::Beginning } else { Found::Nothing };
    let count = if bytes.get(at) == Some(&b'0') { 1 } else { digits(at) };
    if count == 0 {
        return missing(at);
    }
    at += count;
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        if digits(at) == 0 {
            return missing(at);
        }
        at += digits(at);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        if digits(at) == 0 {
            return missing(at);
        }
        at += digits(at);
    }
    Found::Whole(at)
}

fn word_of(bytes: &[u8], word: &[u8]) -> Found {
    if bytes.starts_with(word) {
        return Found::Whole(word.len());
    }
    if word.starts_with(bytes) { Found::Beginning } else { Found::Nothing }
}

/// Rules 5 and 6; the offset of what is no torn tail.
pub fn tail(file: &[u8]) -> Result<Tail, u64> {
    let mut tail = Tail {
        torn: None,
        is_unterminated: false,
        is_glued: false,
        ends_with_newline: file.ends_with(b"\n"),
    };
    let (mut torn_rows, mut ended, mut is_any_kept) = (0, 0, false);
    let mut is_any_garbage = false;
    for row in rows(file).iter().rev() {
        match worth(row.bytes, row.is_terminated) {
            Worth::Blank => {}
            Worth::Good { is_glued, .. } => {
                is_any_kept = true;
                tail.is_unterminated = !row.is_terminated;
                tail.is_glued = is_glued;
                break;
            }
            Worth::Torn { start, cause } => {
                torn_rows += 1;
                ended += usize::from(row.is_terminated);
                is_any_garbage |= cause == RowCause::Garbage;
                let offset = (row.start + start) as u64;
                tail.torn = Some(TornTail { offset, cause, is_behind_row: 0 < start });
                if 4096 < torn_rows {
                    return Err(offset);
                }
                if 0 < start {
                    is_any_kept = true;
                    break;
                }
            }
        }
    }
    match tail.torn {
        Some(torn) if !is_any_kept && is_any_garbage && 2 <= ended => Err(torn.offset),
        _ => Ok(tail),
    }
}

/// Rule 12, of all rows of these bytes.
pub fn bad_rows(file: &[u8]) -> Vec<RowFlaw> {
    let flaw = |row: &RowOf<'_>| match worth(row.bytes, row.is_terminated) {
        Worth::Blank | Worth::Good { is_glued: false, is_standard: true } => None,
        Worth::Good { is_glued: true, .. } => Some(RowCause::Glued),
        Worth::Good { .. } => Some(RowCause::Nonstandard),
        Worth::Torn { cause, .. } => Some(cause),
    };
    let bad = |row: &RowOf<'_>| {
        let (offset, len) = (row.start as u64, row.bytes.len() as u64);
        flaw(row).map(|cause| RowFlaw { offset, len, cause })
    };
    rows(file).iter().filter_map(bad).collect()
}
