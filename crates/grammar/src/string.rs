//! Finds the end of a JSON string. Runs on any thread; `json` and `jsonl` call it to skip strings of JSON that is
//! valid.

use crate::clean::clean;

/// Returns the length of the rest of a string, its closing quote included.
///
/// `rest` begins behind the opening quote, or between two characters of the string. Returns the length of `rest` where
/// the string does not end in it. Control characters are skipped like any others.
#[must_use]
pub fn string_len(rest: &[u8]) -> usize {
    let mut len = 0;
    loop {
        len += clean(rest.get(len..).unwrap_or_default()).0;
        len += match rest.get(len) {
            None => return rest.len(),
            Some(b'"') => return len + 1,
            Some(b'\\') => 2,
            Some(_) => 1,
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads byte by byte.
    fn naive(rest: &[u8]) -> usize {
        let mut is_escaped = false;
        for (at, &byte) in rest.iter().enumerate() {
            if byte == b'"' && !is_escaped {
                return at + 1;
            }
            is_escaped = byte == b'\\' && !is_escaped;
        }
        rest.len()
    }

    #[test]
    fn a_string_ends_at_its_first_quote_that_is_not_escaped() {
        for (rest, len) in
            [("", 0), ("\"", 1), ("a\"b\"", 2), ("\\\"", 2), ("\\\\\"x", 3), ("a\\", 2)]
        {
            assert_eq!(string_len(rest.as_bytes()), len, "{rest}");
        }
    }

    proptest! {
        #[test]
        fn it_ends_where_the_naive_twin_ends(
            plain in 0..200_usize,
            rest in prop::collection::vec(prop::sample::select(b"aaaaaa\\\\\"\n\xc3".to_vec()), 0..40),
        ) {
            let rest = [vec![b'x'; plain], rest].concat();
            prop_assert_eq!(string_len(&rest), naive(&rest));
        }
    }
}
