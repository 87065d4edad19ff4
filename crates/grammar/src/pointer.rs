//! JSON Pointers, of which all that is not plain is how keys are escaped.

/// The key that a segment of a pointer stands for; none where a `~` is neither `~0` nor `~1`.
#[must_use]
pub fn key_of(segment: &[u8]) -> Option<Vec<u8>> {
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
