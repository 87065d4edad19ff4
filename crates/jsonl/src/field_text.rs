//! Writes the pointers of fields. Runs in tasks; `fields` calls it.

use std::fmt::Write;

/// The last segment of a pointer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Segment<'a> {
    /// All elements of arrays: `*`.
    Elements,
    /// A key. The key `*` is written `~2`, `~` is `~0` and `/` is `~1`.
    Key(&'a [u8]),
}

/// Returns the pointer `path` with one more segment.
pub(crate) fn pointer(path: &[u8], segment: Segment<'_>) -> Vec<u8> {
    let mut pointer = [path, b"/"].concat();
    match segment {
        Segment::Elements => pointer.push(b'*'),
        Segment::Key(b"*") => pointer.extend_from_slice(b"~2"),
        Segment::Key(key) => {
            for &byte in key {
                match byte {
                    b'~' => pointer.extend_from_slice(b"~0"),
                    b'/' => pointer.extend_from_slice(b"~1"),
                    _ => pointer.push(byte),
                }
            }
        }
    }
    pointer
}

/// Returns a string as JSON. Halves of surrogate pairs, which have three bytes each, become escapes.
pub(crate) fn quoted(text: &[u8]) -> String {
    let mut json = String::from("\"");
    let mut rest = text;
    while !rest.is_empty() {
        let valid = str::from_utf8(rest).map_or_else(|error| error.valid_up_to(), str::len);
        let (start, behind) = rest.split_at_checked(valid).unwrap_or((rest, &[]));
        push_escaped(&mut json, str::from_utf8(start).unwrap_or_default());
        rest = match behind {
            [0xed, middle, last, behind @ ..] => {
                let unit = 0xd000 | u16::from(middle & 0x3f) << 6 | u16::from(last & 0x3f);
                // Writing to a string does not fail.
                let _ = write!(json, "\\u{unit:04x}");
                behind
            }
            [_, behind @ ..] => {
                json.push(char::REPLACEMENT_CHARACTER);
                behind
            }
            [] => behind,
        };
    }
    json.push('"');
    json
}

fn push_escaped(json: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            '\0'..='\u{1f}' => drop(write!(json, "\\u{:04x}", u32::from(character))),
            _ => json.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_pointer_of_its_own() {
        let cases: [(Segment<'_>, &str); 8] = [
            (Segment::Elements, "/a/*"),
            (Segment::Key(b"*"), "/a/~2"),
            (Segment::Key(b"**"), "/a/**"),
            (Segment::Key(b"~2"), "/a/~02"),
            (Segment::Key(b""), "/a/"),
            (Segment::Key(b"x/y"), "/a/x~1y"),
            (Segment::Key(b"~"), "/a/~0"),
            (Segment::Key("é".as_bytes()), "/a/é"),
        ];
        for (segment, expected) in cases {
            assert_eq!(pointer(b"/a", segment), expected.as_bytes());
        }
    }

    #[test]
    fn strings_become_json() {
        let text = b"a\"\\\n\xed\xa0\x80\xc3\xa9\xed\xbf\xbf\xff";
        assert_eq!(quoted(text), "\"a\\\"\\\\\\u000a\\ud800é\\udfff\u{fffd}\"");
        assert_eq!(quoted(b""), "\"\"");
    }
}
