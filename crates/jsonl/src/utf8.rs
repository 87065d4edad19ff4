//! Checks whether bytes are UTF-8, in blocks of any size. Runs in tasks; `judge`, `scan` and `tail` use it.

/// State of the check.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Utf8 {
    /// Beginning of a character that the next block continues.
    cut: [u8; 4],
    cut_len: usize,
    is_broken: bool,
}

impl Utf8 {
    pub fn feed(&mut self, mut block: &[u8]) {
        while self.cut_len != 0 && !self.is_broken {
            let Some((&byte, behind)) = block.split_first() else { return };
            block = behind;
            self.complete(byte);
        }
        let Err(error) = str::from_utf8(block) else { return };
        let rest = block.get(error.valid_up_to()..).unwrap_or_default();
        match self.cut.get_mut(..rest.len()) {
            Some(cut) if error.error_len().is_none() => {
                cut.copy_from_slice(rest);
                self.cut_len = rest.len();
            }
            _ => self.is_broken = true,
        }
    }

    /// Adds a byte to the character that was cut.
    fn complete(&mut self, byte: u8) {
        let Some(place) = self.cut.get_mut(self.cut_len) else { return self.is_broken = true };
        *place = byte;
        self.cut_len += 1;
        match str::from_utf8(self.cut.get(..self.cut_len).unwrap_or_default()) {
            Ok(_) => self.cut_len = 0,
            Err(error) => self.is_broken = error.error_len().is_some(),
        }
    }

    /// Returns whether all bytes are UTF-8.
    pub fn is_whole(&self) -> bool {
        !self.is_broken && self.cut_len == 0
    }

    /// Returns whether all bytes are UTF-8 except for a last character that is cut.
    pub fn is_cut(&self) -> bool {
        !self.is_broken && self.cut_len != 0
    }
}

#[cfg(test)]
mod tests {
    use super::Utf8;

    #[test]
    fn blocks_of_any_size_say_what_all_of_the_bytes_say() {
        let samples: [&[u8]; 8] = [
            "añ€😀z".as_bytes(),
            b"a\xc3",
            b"a\xe2\x82",
            b"\xf0\x9f\x98",
            b"\xff\xc3",
            b"\xed\xa0\x80",
            b"\xc3(\xc3",
            b"",
        ];
        for bytes in samples {
            let whole = str::from_utf8(bytes);
            for size in 1..=bytes.len().max(1) {
                let mut utf8 = Utf8::default();
                bytes.chunks(size).for_each(|block| utf8.feed(block));
                assert_eq!(utf8.is_whole(), whole.is_ok(), "{bytes:?} by {size}");
                let is_cut = whole.is_err_and(|error| error.error_len().is_none());
                assert_eq!(utf8.is_cut(), is_cut, "{bytes:?} by {size}");
            }
        }
    }
}
