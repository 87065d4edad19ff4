//! Parses JSON Pointers (RFC 6901). Runs on the JS thread; `body` and `jsonl` call it once for each pointer of an
//! option.

use std::error::Error;
use std::fmt;

/// Not a valid JSON Pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerError {
    /// The pointer is not empty and does not begin with `/`.
    NoSlash,
    /// A `~` is followed by neither `0` nor `1`.
    Escape,
}

impl fmt::Display for PointerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSlash => "must be empty or begin with /",
            Self::Escape => "has a ~ that is neither ~0 nor ~1",
        })
    }
}

impl Error for PointerError {}

/// Returns the keys of `pointer`, unescaped, from the outermost to the innermost.
///
/// An item is an error where its segment has an invalid escape.
///
/// # Errors
/// [`PointerError::NoSlash`].
pub fn pointer_keys(pointer: &[u8]) -> Result<PointerKeys<'_>, PointerError> {
    match pointer.split_first() {
        None => Ok(PointerKeys { rest: None }),
        Some((b'/', rest)) => Ok(PointerKeys { rest: Some(rest) }),
        Some(_) => Err(PointerError::NoSlash),
    }
}

/// Iterator over the unescaped keys of a pointer.
#[derive(Clone, Debug)]
pub struct PointerKeys<'a> {
    /// The pointer behind the next `/`; `None` behind the last segment.
    rest: Option<&'a [u8]>,
}

impl Iterator for PointerKeys<'_> {
    type Item = Result<Vec<u8>, PointerError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let mut segments = rest.splitn(2, |&byte| byte == b'/');
        let segment = segments.next().unwrap_or_default();
        self.rest = segments.next();
        Some(key_of(segment).ok_or(PointerError::Escape))
    }
}

/// Unescapes one segment. Returns `None` where a `~` is followed by neither `0` nor `1`.
fn key_of(segment: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(segment.len());
    let mut bytes = segment.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'~' {
            key.push(byte);
            continue;
        }
        key.push(match bytes.next()? {
            b'0' => b'~',
            b'1' => b'/',
            _ => return None,
        });
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(pointer: &str) -> Result<Vec<Vec<u8>>, PointerError> {
        pointer_keys(pointer.as_bytes())?.collect()
    }

    #[test]
    fn invalid_pointers_tell_why() {
        assert_eq!(keys("a"), Err(PointerError::NoSlash));
        assert_eq!(keys("a/b"), Err(PointerError::NoSlash));
        for pointer in ["/~", "/a~", "/a~2", "/b/~~0"] {
            assert_eq!(keys(pointer), Err(PointerError::Escape), "{pointer}");
        }
    }

    #[test]
    fn the_examples_of_the_rfc() {
        assert_eq!(keys(""), Ok(vec![]));
        assert_eq!(keys("/"), Ok(vec![b"".to_vec()]));
        assert_eq!(keys("/a~1b"), Ok(vec![b"a/b".to_vec()]));
        assert_eq!(keys("/m~0n/ "), Ok(vec![b"m~n".to_vec(), b" ".to_vec()]));
        assert_eq!(keys("/~01"), Ok(vec![b"~1".to_vec()]));
    }

    proptest! {
        #[test]
        fn keys_survive_being_escaped(expected in prop::collection::vec("[a~/01*]{0,4}", 0..5)) {
            let escaped = |key: &String| format!("/{}", key.replace('~', "~0").replace('/', "~1"));
            let pointer: String = expected.iter().map(escaped).collect();
            let expected = expected.into_iter().map(String::into_bytes).collect();
            prop_assert_eq!(keys(&pointer), Ok(expected));
        }
    }
}
