//! Finds the ends of server-sent events in a stream, and the fields of an event, as WHATWG HTML describes them. `events`
//! calls it, on the JS thread; tasks read the fields of large events.

use std::ops::Range;

use memchr::{memchr, memchr2};

/// Byte order mark, which a stream may begin with.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Finds the blank lines that end events, however the stream is cut.
#[derive(Clone, Debug)]
pub(crate) struct EventFraming {
    is_line_start: bool,
    /// Whether the last byte was a carriage return: a line feed behind it belongs to it.
    is_behind_return: bool,
}

impl EventFraming {
    pub(crate) fn new() -> Self {
        Self { is_line_start: true, is_behind_return: false }
    }

    /// Returns the offset behind the first blank line that ends in `bytes`. The next call continues from there, else
    /// behind `bytes`.
    ///
    /// The bytes before the end may begin with a line feed that belongs to the end before.
    pub(crate) fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        #[cfg(test)]
        SEARCHED.set(SEARCHED.get() + bytes.len());
        let mut at = usize::from(self.is_behind_return && bytes.first() == Some(&b'\n'));
        self.is_behind_return &= bytes.is_empty();
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(len) = memchr2(b'\n', b'\r', rest) else {
                self.is_line_start &= rest.is_empty();
                return None;
            };
            let is_blank = self.is_line_start && len == 0;
            self.is_line_start = true;
            let behind = rest.get(len + 1);
            let is_return = rest.get(len) == Some(&b'\r');
            self.is_behind_return = is_return && behind.is_none();
            at += len + if is_return && behind == Some(&b'\n') { 2 } else { 1 };
            if is_blank {
                return Some(at);
            }
        }
    }
}

#[cfg(test)]
thread_local! {
    /// The number of bytes that were given to be searched.
    pub(crate) static SEARCHED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The fields of one event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventFields {
    /// Absent if it is empty.
    pub(crate) name: Option<String>,
    pub(crate) id: Option<String>,
    /// The lines of data, and the gaps between them.
    pub(crate) data: Option<Range<usize>>,
    pub(crate) has_gaps: bool,
}

/// Reads the fields of `raw`, which ends with a blank line. `is_first` says that the stream begins with it.
///
/// A line feed and carriage returns overwrite what stands between two lines of data. JSON takes them for white space, as it
/// takes the line feed that joins lines. No data has a carriage return of its own.
pub(crate) fn read_fields(raw: &mut [u8], is_first: bool) -> EventFields {
    let mut fields = EventFields::default();
    let mut at = if is_first && raw.starts_with(MARK) { MARK.len() } else { 0 };
    while at < raw.len() {
        let rest = raw.get(at..).unwrap_or_default();
        let len = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let line = rest.get(..len).unwrap_or_default();
        let (field, value) = field_of(line);
        match field {
            b"data" => {
                let value = at + value..at + len;
                fields.data = Some(match fields.data {
                    None => value,
                    Some(before) => {
                        let gap = raw.get_mut(before.end..value.start).unwrap_or_default();
                        gap.fill(b'\r');
                        if let Some(first) = gap.first_mut() {
                            *first = b'\n';
                        }
                        fields.has_gaps = true;
                        before.start..value.end
                    }
                });
            }
            b"event" => fields.name = Some(text_of(line, value)).filter(|name| !name.is_empty()),
            b"id" if memchr(0, line).is_none() => fields.id = Some(text_of(line, value)),
            _ => {}
        }
        at += len + 1;
    }
    fields
}

/// Returns the name of the field of a line, and where its value begins.
fn field_of(line: &[u8]) -> (&[u8], usize) {
    let Some(colon) = memchr(b':', line) else { return (line, line.len()) };
    let space = usize::from(line.get(colon + 1) == Some(&b' '));
    (line.get(..colon).unwrap_or_default(), colon + 1 + space)
}

fn text_of(line: &[u8], start: usize) -> String {
    String::from_utf8_lossy(line.get(start..).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Splits a stream into lines, character by character.
    fn lines(stream: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = vec![Vec::new()];
        let mut is_behind_return = false;
        for &byte in stream {
            match byte {
                b'\n' if is_behind_return => {}
                b'\n' | b'\r' => lines.push(Vec::new()),
                _ => lines.last_mut().unwrap().push(byte),
            }
            is_behind_return = byte == b'\r';
        }
        lines
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let part = prop::sample::select(vec![
            "\n", "\r", "\r\n", "\n\n", "data", "data:", "data: x", ":", "id: 1", "a", "event:e",
            "\u{feff}",
        ]);
        prop::collection::vec(part, 0..30).prop_map(|parts| parts.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn events_end_at_blank_lines_however_the_stream_is_cut(
            stream in stream(),
            cuts in prop::collection::vec(0..6_usize, 0..40),
        ) {
            let mut framing = EventFraming::new();
            let mut ends = Vec::new();
            let mut at = 0;
            let mut cuts = cuts.into_iter();
            while at < stream.len() {
                let end = stream.len().min(at + cuts.next().unwrap_or(usize::MAX >> 1));
                match framing.end(&stream[at..end]) {
                    Some(len) => {
                        at += len;
                        ends.push(at);
                    }
                    None => at = end,
                }
            }
            // The last line has no end.
            let lines = lines(&stream);
            let blank = lines[..lines.len() - 1].iter().filter(|line| line.is_empty()).count();
            prop_assert_eq!(ends.len(), blank);
            let mut start = 0;
            let pieces = ends.iter().map(|&end| stream[std::mem::replace(&mut start, end)..end].to_vec());
            for piece in pieces {
                let mut own = super::tests::lines(&piece);
                prop_assert_eq!(own.pop().unwrap(), b"");
                prop_assert_eq!(own.pop().unwrap(), b"", "a blank line at the end");
                // A line feed that belongs to the end before may stand at the start.
                let is_cut = piece.starts_with(b"\n");
                prop_assert!(own.iter().skip(usize::from(is_cut)).all(|line| !line.is_empty()));
            }
        }
    }

    fn fields(text: &str) -> (EventFields, String) {
        let mut raw = text.as_bytes().to_vec();
        let fields = read_fields(&mut raw, true);
        (fields, String::from_utf8(raw).unwrap())
    }

    #[test]
    fn the_last_of_each_field_counts() {
        let (read, _) = fields(
            "event: a\nid: 1\nevent:b\nid\nid: \0\nretry: 5\ndata: x\nnothing\n: data: y\n\n",
        );
        let expected = EventFields {
            name: Some("b".into()),
            id: Some(String::new()),
            data: Some(47..48),
            has_gaps: false,
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn gaps_of_data_are_white_space() {
        let (read, raw) = fields("\u{feff}data:[1\r\nid: 7\r\ndata:  2\rdata\ndata:]\n\n");
        assert_eq!((read.data, read.has_gaps, read.id), (Some(8..39), true, Some("7".into())));
        assert_eq!(&raw[8..39], format!("[1\n{} 2\n\r\r\r\r\n\r\r\r\r\r]", "\r".repeat(14)));
    }

    #[test]
    fn data_may_be_empty_or_absent() {
        assert_eq!(fields("data\n\n").0.data, Some(4..4));
        assert_eq!(fields("data:\n\n").0.data, Some(5..5));
        assert_eq!(fields("data: \n\n").0.data, Some(6..6));
        assert_eq!(fields("datas: 1\n data: 1\n\n").0.data, None);
        assert_eq!(fields("\n\n").0, EventFields::default());
    }
}
