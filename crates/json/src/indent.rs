//! Indents compact JSON as the `space` of `JSON.stringify` does. `print` calls it in tasks.

use std::ops::Range;

use offloop_grammar::string_len;

use crate::compact::RawRanges;
use crate::error::TranscodeError;
use crate::output::{Memory, Output};

/// Bytes of input between two calls of `poll`.
const POLL: usize = 64 << 10;

/// Writes compact JSON with `gap` for each level of nesting; returns the length. A newline may end `json`.
///
/// The ranges of `raws` are copied as they are.
///
/// # Errors
/// Fails as `memory` and `poll` do.
pub fn indent<M: Memory>(
    json: &[u8],
    raws: &[Range<usize>],
    gap: &[u8],
    memory: &mut M,
    mut poll: impl FnMut() -> Result<(), M::Error>,
) -> Result<usize, TranscodeError<M::Error>> {
    let out = Output::new(memory).map_err(TranscodeError::Stopped)?;
    let mut printer = Printer { out, gap, depth: 0 };
    let mut rest = json;
    let mut polled_at = rest.len();
    let mut raws = RawRanges::new(raws);
    while let Some((&byte, behind)) = rest.split_first() {
        let at = json.len() - rest.len();
        if let Some(len) = raws.end_of(at).and_then(|end| end.checked_sub(at)) {
            let (raw, behind) = rest.split_at(len.min(rest.len()));
            printer.out.bytes(raw);
            rest = behind;
            continue;
        }
        rest = printer.token(byte, behind);
        if POLL <= polled_at - rest.len() {
            polled_at = rest.len();
            printer.out.check().and_then(|()| poll()).map_err(TranscodeError::Stopped)?;
        }
    }
    printer.out.check().map_err(TranscodeError::Stopped)?;
    Ok(printer.out.len())
}

struct Printer<'m, 'g, M: Memory> {
    out: Output<'m, M>,
    gap: &'g [u8],
    depth: usize,
}

impl<M: Memory> Printer<'_, '_, M> {
    /// Writes the token that begins with `byte`; returns the text behind it.
    fn token<'a>(&mut self, byte: u8, behind: &'a [u8]) -> &'a [u8] {
        match byte {
            b'"' => return self.string(behind),
            b'{' | b'[' => {
                self.out.byte(byte);
                if let Some((&end @ (b'}' | b']'), rest)) = behind.split_first() {
                    self.out.byte(end);
                    return rest;
                }
                self.depth += 1;
                self.line();
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.line();
                self.out.byte(byte);
            }
            b',' => {
                self.out.byte(byte);
                self.line();
            }
            b':' => self.out.put(b": ", 2),
            _ => self.out.byte(byte),
        }
        behind
    }

    fn line(&mut self) {
        self.out.byte(b'\n');
        for _ in 0..self.depth {
            self.out.bytes(self.gap);
        }
    }

    /// Writes a string, of which `inside` begins behind the opening quote; returns the text behind it.
    fn string<'a>(&mut self, inside: &'a [u8]) -> &'a [u8] {
        let (string, rest) = inside.split_at(string_len(inside));
        self.out.byte(b'"');
        self.out.bytes(string);
        rest
    }
}
