//! Bounds the nesting of JSON texts, in tasks. `transcode` calls it for texts that JSON.stringify made.
//!
//! V8 14 nests millions of levels where older engines run out of stack, so the bound has to be checked here.

use crate::error::TooDeep;
use crate::tape::JsText;

/// The most levels of nesting of a text: the default of the option `maxDepth`.
pub const MOST_LEVELS: usize = 100_000;

/// Fails for a text of valid JSON that is nested more than `most` levels deep.
pub fn check_nesting(text: JsText<'_>, most: usize) -> Result<(), TooDeep> {
    let is_fine = if text.is_wide {
        let units = || text.bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
        opens(units()) <= most || levels(units()) <= most
    } else {
        let units = || text.bytes.iter().map(|byte| u16::from(*byte));
        opens(units()) <= most || levels(units()) <= most
    };
    if is_fine { Ok(()) } else { Err(TooDeep { max_depth: most }) }
}

/// Counts opening brackets, those in strings included: a bound of the levels that takes a tenth of their time.
fn opens(units: impl Iterator<Item = u16>) -> usize {
    units.map(|unit| usize::from(unit == u16::from(b'[') || unit == u16::from(b'{'))).sum()
}

/// Returns the most levels of nesting.
fn levels(units: impl Iterator<Item = u16>) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    let (mut is_string, mut is_escaped) = (false, false);
    for unit in units {
        let byte = u8::try_from(unit).unwrap_or_default();
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b'[' | b'{' => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, most: usize) -> [bool; 2] {
        let wide = text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        [(text.as_bytes(), false), (wide.as_slice(), true)]
            .map(|(bytes, is_wide)| check_nesting(JsText { bytes, is_wide }, most).is_ok())
    }

    #[test]
    fn levels_are_counted_outside_of_strings() {
        for (text, levels) in [
            ("1", 0),
            ("[]", 1),
            ("[[],[{}]]", 3),
            (r#"["[[[[",{"{":"\"["}]"#, 2),
            (r#"{"\\":[1]}"#, 2),
            ("[[],[],[],[]]", 2),
        ] {
            assert_eq!(check(text, levels), [true; 2], "{text}");
            if let Some(fewer) = levels.checked_sub(1) {
                assert_eq!(check(text, fewer), [false; 2], "{text}");
            }
        }
    }
}
