//! Converts the rest of a body to characters as V8 keeps them: one byte each where that is enough, else UTF-16. Runs in
//! the second task, so that the JS thread only copies them.

use offloop_memory::Block;

/// Bytes between two polls: about 0.1 ms of work.
pub(crate) const PIECE: usize = 1 << 20;

/// Characters of a text, for a string of V8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextWidth {
    /// Latin-1: all characters are below U+0100.
    One,
    /// UTF-16 in the byte order of the machine.
    Two,
}

/// The rest of a body as characters, in recycled memory.
pub struct RestText {
    width: TextWidth,
    block: Block,
    size: usize,
}

impl RestText {
    /// Makes the characters of `text`, the first `size` bytes of a block, which are ASCII.
    #[must_use]
    pub fn ascii(text: Block, size: usize) -> Self {
        Self { width: TextWidth::One, block: text, size }
    }

    /// Converts `text`. `acquire` gives memory of a size.
    ///
    /// # Errors
    /// Fails as `acquire` and `poll` do. Invalid UTF-8, which only a defect of the plan can cause, becomes an empty text.
    pub fn new<E>(
        text: &[u8],
        acquire: impl FnOnce(usize) -> Result<Block, E>,
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<Self, E> {
        let width = TextWidth::of(text, &mut poll)?;
        let mut block = acquire(width.max_size(text.len()))?;
        let size = width.write(str::from_utf8(text).unwrap_or_default(), &mut block, poll)?;
        Ok(Self { width, block, size })
    }

    #[must_use]
    pub fn width(&self) -> TextWidth {
        self.width
    }

    /// Returns the characters. They begin at a page.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.block.get(..self.size).unwrap_or_default()
    }
}

impl TextWidth {
    /// Returns the width that valid UTF-8 needs. Characters from U+0100 on begin with a byte from 0xC4 on.
    ///
    /// # Errors
    /// Errors of `poll`.
    pub fn of<E>(text: &[u8], mut poll: impl FnMut() -> Result<(), E>) -> Result<Self, E> {
        for piece in text.chunks(PIECE) {
            poll()?;
            if piece.iter().fold(0, |most, &byte| byte.max(most)) >= 0xC4 {
                return Ok(Self::Two);
            }
        }
        Ok(Self::One)
    }

    /// Returns the most bytes that `len` bytes of UTF-8 become.
    #[must_use]
    pub fn max_size(self, len: usize) -> usize {
        match self {
            Self::One => len,
            Self::Two => len * 2,
        }
    }

    /// Writes the characters of `text`, which needs this width, to `out`. Returns how many bytes it wrote.
    ///
    /// # Errors
    /// Errors of `poll`.
    pub fn write<E>(
        self,
        text: &str,
        out: &mut [u8],
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut rest = text;
        let mut len = 0;
        while !rest.is_empty() {
            poll()?;
            let (piece, tail) = rest.split_at(boundary(rest, PIECE));
            let room = out.get_mut(len..).unwrap_or_default();
            len += match self {
                Self::One => write_latin1(piece, room),
                Self::Two => write_utf16(piece, room),
            };
            rest = tail;
        }
        Ok(len)
    }
}

/// Returns the UTF-16 code units of valid UTF-8.
///
/// # Errors
/// Errors of `poll`.
pub(crate) fn utf16_len<E>(
    text: &[u8],
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<usize, E> {
    let mut units = 0;
    for piece in text.chunks(PIECE) {
        poll()?;
        // A character has one byte that continues none. One that takes two units begins with a byte from 0xF0 on.
        let of_byte = |byte: &u8| usize::from(byte & 0xC0 != 0x80) + usize::from(0xF0 <= *byte);
        units += piece.iter().map(of_byte).sum::<usize>();
    }
    Ok(units)
}

/// Returns the last boundary of characters up to `offset`.
fn boundary(text: &str, offset: usize) -> usize {
    let most = offset.min(text.len());
    (0..=most).rev().find(|&offset| text.is_char_boundary(offset)).unwrap_or_default()
}

fn write_latin1(text: &str, out: &mut [u8]) -> usize {
    let written = text.chars().zip(out.iter_mut()).map(|(character, byte)| {
        *byte = u32::from(character) as u8;
    });
    written.count()
}

fn write_utf16(text: &str, out: &mut [u8]) -> usize {
    let (units, _) = out.as_chunks_mut::<2>();
    let written = text.encode_utf16().zip(units).map(|(unit, bytes)| {
        *bytes = unit.to_ne_bytes();
    });
    written.count() * 2
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> (TextWidth, Vec<u8>) {
        let Ok(width) = TextWidth::of(text.as_bytes(), || Ok::<(), Infallible>(()));
        let mut out = vec![0; width.max_size(text.len())];
        let Ok(len) = width.write(text, &mut out, || Ok::<(), Infallible>(()));
        out.truncate(len);
        (width, out)
    }

    fn utf16_of(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_ne_bytes).collect()
    }

    #[test]
    fn one_byte_is_enough_below_u_0100() {
        assert_eq!(written("a\u{80}\u{ff}"), (TextWidth::One, vec![b'a', 0x80, 0xff]));
        for text in ["\u{100}", "語", "😀", "é\u{100}"] {
            assert_eq!(written(text), (TextWidth::Two, utf16_of(text)), "{text}");
        }
    }

    #[test]
    fn characters_may_lie_across_pieces() {
        for lead in 0..4 {
            let text = "x".repeat(PIECE - lead) + &"😀é".repeat(3);
            assert_eq!(written(&text).1, utf16_of(&text));
        }
    }

    #[test]
    fn an_error_of_poll_ends_it() {
        assert_eq!(TextWidth::of(b"x", || Err(())), Err(()));
        assert_eq!(TextWidth::Two.write("x", &mut [0; 2], || Err(())), Err(()));
    }

    proptest! {
        #[test]
        fn characters_are_those_of_the_text(text in "\\PC*|[a-zé\u{ff}]*") {
            let (width, bytes) = written(&text);
            prop_assert_eq!(utf16_len(text.as_bytes(), &mut || Ok::<(), ()>(())), Ok(text.encode_utf16().count()));
            let is_narrow = text.chars().all(|character| u32::from(character) < 0x100);
            prop_assert_eq!(width == TextWidth::One, is_narrow);
            match width {
                TextWidth::One => prop_assert!(bytes.iter().copied().map(char::from).eq(text.chars())),
                TextWidth::Two => prop_assert_eq!(bytes, utf16_of(&text)),
            }
        }
    }
}
