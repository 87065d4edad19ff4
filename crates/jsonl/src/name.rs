//! Names of files that begin with the name of another file. Pure; `repair` calls it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Bytes of the longest name on the file systems of Linux; other systems allow as many or more.
const LONGEST: usize = 255;

/// Returns `path` with `ending` behind it. If that name would be too long, a hash replaces the end of the name of `path`. Equal
/// names give equal results; different long names give different ones.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    match path.file_name() {
        Some(name) if LONGEST < name.len() + ending.len() => {
            let hash = format!("~{:016x}", hash(name.as_encoded_bytes()));
            let mut short = beginning(name, LONGEST.saturating_sub(hash.len() + ending.len()));
            short.push(hash);
            short.push(ending);
            path.with_file_name(short)
        }
        _ => {
            let mut name = OsString::from(path);
            name.push(ending);
            name.into()
        }
    }
}

/// Returns at most `most` first bytes of a name. Characters are not cut, unless the name is not Unicode.
fn beginning(name: &OsStr, most: usize) -> OsString {
    let Some(text) = name.to_str() else { return beginning_of_bytes(name, most) };
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text.get(..end.unwrap_or_default()).unwrap_or_default().into()
}

#[cfg(unix)]
fn beginning_of_bytes(name: &OsStr, most: usize) -> OsString {
    use std::os::unix::ffi::OsStrExt;

    let bytes = name.as_bytes();
    OsStr::from_bytes(bytes.get(..most).unwrap_or(bytes)).to_owned()
}

#[cfg(not(unix))]
fn beginning_of_bytes(name: &OsStr, most: usize) -> OsString {
    beginning(OsStr::new(&*name.to_string_lossy()), most)
}

/// Hashes with FNV-1a of 64 bits. Names on disk contain the hash, so it never changes.
fn hash(bytes: &[u8]) -> u64 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(START, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
