//! Sorts the keys of JSON by their UTF-16 code units, as RFC 8785 does. `print` calls it in tasks.
//!
//! A first pass finds objects with unsorted keys; a second copies the text and moves the members of those objects.

use std::cmp::Ordering;
use std::iter;
use std::ops::Range;
use std::slice::Iter;

use offloop_grammar::string_len;

use crate::compact::RawRanges;
use crate::error::TranscodeError;
use crate::output::{Memory, Output};
use crate::transcode::JsonExtent;

/// Bytes between two calls of `poll`.
const POLL: usize = 64 << 10;

/// Writes compact JSON, or rows of it, with the keys of every object sorted.
///
/// The ranges of `raws` are copied as they are; the result has their new places.
///
/// # Errors
/// Fails as `memory` and `poll` do.
pub fn sort<M: Memory>(
    json: &[u8],
    raws: &[Range<usize>],
    memory: &mut M,
    mut poll: impl FnMut() -> Result<(), M::Error>,
) -> Result<JsonExtent, TranscodeError<M::Error>> {
    let objects = objects_of(json, raws, &mut poll).map_err(TranscodeError::Stopped)?;
    let mut out = Output::new(memory).map_err(TranscodeError::Stopped)?;
    let mut polled_at = 0;
    let mut moved = Vec::with_capacity(raws.len());
    // Each span is inside of the one before. Recursion would bound the depth of objects.
    let mut spans = vec![Span::Text { at: 0, end: json.len(), object: 0 }];
    while let Some(span) = spans.last_mut() {
        let inner =
            match span {
                Span::Text { at, end, object } => {
                    let next = next_unsorted(&objects, *object, *end);
                    let stop = next.map_or(*end, |next| next.range.start);
                    let first = raws.partition_point(|raw| raw.start < *at);
                    let raws_here = raws.iter().skip(first).take_while(|raw| raw.end <= stop);
                    moved.extend(raws_here.map(|raw| {
                        let start = out.len() + (raw.start - *at);
                        start..start + raw.len()
                    }));
                    out.bytes(json.get(*at..stop).unwrap_or_default());
                    count(SortCost::Copied, stop.saturating_sub(*at));
                    next.map(|next| {
                        (*at, *object) = (next.range.end, next.behind);
                        out.byte(b'{');
                        Span::Members(next.members.iter())
                    })
                }
                Span::Members(members) => members.next().map(|Member { range, object }| {
                    Span::Text { at: range.start, end: range.end, object: *object }
                }),
            };
        if let Some(inner) = inner {
            spans.push(inner);
            continue;
        }
        match spans.pop() {
            Some(Span::Members(_)) => out.close(b'}'),
            // The end of the whole text, or of a member.
            _ if spans.is_empty() => {}
            _ => out.byte(b','),
        }
        if POLL <= out.len().wrapping_sub(polled_at) {
            polled_at = out.len();
            out.check().and_then(|()| poll()).map_err(TranscodeError::Stopped)?;
        }
    }
    out.check().map_err(TranscodeError::Stopped)?;
    Ok(JsonExtent { len: out.len(), raws: moved })
}

/// A part of the text that is being copied.
enum Span<'a> {
    /// Text that is copied, but for unsorted objects in it. `object` is the number of its first object.
    Text { at: usize, end: usize, object: usize },
    /// The members of an unsorted object that are not copied yet.
    Members(Iter<'a, Member>),
}

/// An object. Objects are numbered in the order in which they begin.
struct Object {
    range: Range<usize>,
    /// The members in order; none if the text has them in order.
    members: Vec<Member>,
    /// The number of the first object behind it.
    behind: usize,
}

/// A key and its value.
struct Member {
    range: Range<usize>,
    /// The number of the first object in the member or behind it.
    object: usize,
}

/// Returns the first unsorted object from number `from` on that begins before `end`.
fn next_unsorted(objects: &[Object], from: usize, end: usize) -> Option<&Object> {
    let within = objects.get(from..)?.iter().inspect(|_| count(SortCost::LookedAt, 1));
    let mut within = within.take_while(|object| object.range.start < end);
    within.find(|object| !object.members.is_empty())
}

/// An object that has not ended.
struct OpenObject {
    number: usize,
    /// The index of its first member on the stack of members.
    members: usize,
    is_sorted: bool,
}

/// A member whose key has been read.
struct KeyedMember {
    key: Range<usize>,
    member: Member,
}

/// Returns all objects of the text.
fn objects_of<E>(
    json: &[u8],
    raws: &[Range<usize>],
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<Vec<Object>, E> {
    let mut objects = Vec::new();
    let mut open: Vec<Option<OpenObject>> = Vec::new();
    let mut begun: Vec<KeyedMember> = Vec::new();
    let (mut at, mut polled_at) = (0, 0);
    // Whether the next string is a key.
    let mut awaits_key = false;
    let mut raws = RawRanges::new(raws);
    while let Some(&byte) = json.get(at) {
        if let Some(end) = raws.end_of(at) {
            at = end;
            continue;
        }
        let start = at;
        at += 1;
        match byte {
            b'"' => {
                at += string_len(json.get(at..).unwrap_or_default());
                if !awaits_key {
                    continue;
                }
                awaits_key = false;
                let key = start + 1..at - 1;
                if let Some(Some(open)) = open.last_mut() {
                    let previous = begun.get(open.members..).and_then(<[KeyedMember]>::last);
                    open.is_sorted &= previous.is_none_or(|previous| {
                        compare(text(json, &previous.key), text(json, &key)).is_lt()
                    });
                }
                let member = Member { range: start..start, object: objects.len() };
                begun.push(KeyedMember { key, member });
            }
            b'{' => {
                open.push(Some(OpenObject {
                    number: objects.len(),
                    members: begun.len(),
                    is_sorted: true,
                }));
                objects.push(Object { range: start..start, members: Vec::new(), behind: 0 });
                awaits_key = true;
            }
            b'[' => {
                open.push(None);
                awaits_key = false;
            }
            b',' => {
                awaits_key = matches!(open.last(), Some(Some(_)));
                if awaits_key {
                    end_member(&mut begun, start);
                }
            }
            b'}' => {
                awaits_key = false;
                let Some(Some(closed)) = open.pop() else { continue };
                if closed.members < begun.len() {
                    end_member(&mut begun, start);
                }
                let members = begun.split_off(closed.members.min(begun.len()));
                let behind = objects.len();
                if let Some(object) = objects.get_mut(closed.number) {
                    object.range.end = at;
                    object.behind = behind;
                    if !closed.is_sorted {
                        object.members = in_order(json, members);
                    }
                }
            }
            b']' => {
                awaits_key = false;
                open.pop();
            }
            _ => {}
        }
        if POLL <= at - polled_at {
            polled_at = at;
            poll()?;
        }
    }
    Ok(objects)
}

fn end_member(begun: &mut [KeyedMember], end: usize) {
    if let Some(KeyedMember { member, .. }) = begun.last_mut() {
        member.range.end = end;
    }
}

fn in_order(json: &[u8], mut members: Vec<KeyedMember>) -> Vec<Member> {
    members.sort_by(|a, b| compare(text(json, &a.key), text(json, &b.key)));
    members.into_iter().map(|begun| begun.member).collect()
}

fn text<'a>(json: &'a [u8], range: &Range<usize>) -> &'a [u8] {
    json.get(range.clone()).unwrap_or_default()
}

/// Compares the insides of two JSON strings by their UTF-16 code units, escapes decoded.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let same = common_len(a, b);
    let (Some(&in_a), Some(&in_b)) = (a.get(same), b.get(same)) else {
        // One begins with the other.
        return a.len().cmp(&b.len());
    };
    let before = a.get(same.saturating_sub(LONGEST_ESCAPE - 1)..same).unwrap_or_default();
    let is_escaped = in_a == b'\\' || in_b == b'\\' || before.contains(&b'\\');
    // UTF-8 bytes have the order of UTF-16 units, except between U+E000 to U+FFFF and surrogate pairs.
    let is_swapped =
        (AFTER_SURROGATES..SURROGATES).contains(&in_a.min(in_b)) && SURROGATES <= in_a.max(in_b);
    if is_escaped || is_swapped { units(a).cmp(units(b)) } else { in_a.cmp(&in_b) }
}

/// The length of `\u0000`.
const LONGEST_ESCAPE: usize = 6;
/// The first byte of U+E000 in UTF-8.
const AFTER_SURROGATES: u8 = 0xee;
/// The first byte of U+10000 in UTF-8, which is a surrogate pair in UTF-16.
const SURROGATES: u8 = 0xf0;

/// Returns the length of the longest common beginning of two texts.
fn common_len(a: &[u8], b: &[u8]) -> usize {
    let (blocks_a, blocks_b) = (a.as_chunks::<32>().0, b.as_chunks::<32>().0);
    let same = blocks_a.iter().zip(blocks_b).take_while(|(a, b)| a == b).count() * 32;
    let rest_a = a.get(same..).unwrap_or_default();
    let rest_b = b.get(same..).unwrap_or_default();
    same + rest_a.iter().zip(rest_b).take_while(|(a, b)| a == b).count()
}

/// Work that tests count, instead of measuring time.
#[derive(Clone, Copy, Debug)]
enum SortCost {
    /// An object whose order was looked at.
    LookedAt,
    /// A byte that was copied.
    Copied,
    /// A code unit of a key that was decoded.
    Decoded,
}

#[inline]
fn count(step: SortCost, times: usize) {
    #[cfg(test)]
    tests::STEPS.with_borrow_mut(|steps| steps[step as usize] += times);
    #[cfg(not(test))]
    let _ = (step, times);
}

/// Returns the UTF-16 code units of the inside of a JSON string.
fn units(text: &[u8]) -> impl Iterator<Item = u16> {
    let mut chars = str::from_utf8(text).unwrap_or_default().chars();
    let mut low = None;
    iter::from_fn(move || {
        count(SortCost::Decoded, 1);
        if let Some(unit) = low.take() {
            return Some(unit);
        }
        let char = match chars.next()? {
            '\\' => match chars.next()? {
                'u' => {
                    let digits = iter::from_fn(|| chars.next()?.to_digit(16)).take(4);
                    return Some(digits.fold(0, |unit, digit| unit << 4 | digit as u16));
                }
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                char => char,
            },
            char => char,
        };
        let mut pair = [0; 2];
        char.encode_utf16(&mut pair);
        low = (1 < char.len_utf16()).then_some(pair[1]);
        Some(pair[0])
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    thread_local! {
        pub(super) static STEPS: RefCell<[usize; 3]> = const { RefCell::new([0; 3]) };
    }

    struct Growing(Vec<u8>);

    impl Memory for Growing {
        type Error = Infallible;

        fn bytes(&mut self) -> &mut [u8] {
            &mut self.0
        }

        fn grow(&mut self, _len: usize, size: usize) -> Result<(), Infallible> {
            self.0.resize(size, 0);
            Ok(())
        }
    }

    fn sorted(json: &str) -> String {
        let mut memory = Growing(Vec::new());
        let written = sort(json.as_bytes(), &[], &mut memory, || Ok(())).unwrap();
        memory.0.truncate(written.len);
        String::from_utf8(memory.0).unwrap()
    }

    /// Returns the objects looked at, bytes copied and units decoded to sort `json`.
    fn steps_of(json: &str) -> [usize; 3] {
        STEPS.set([0; 3]);
        assert_eq!(sorted(json).len(), json.len());
        STEPS.take()
    }

    fn nested(depth: usize, before: &str, behind: &str) -> String {
        format!("{}{{}}{}", before.repeat(depth), behind.repeat(depth))
    }

    /// Returns an object with these keys.
    fn object_of(keys: impl Iterator<Item = String>) -> String {
        let members: Vec<_> = keys.map(|key| format!("\"{key}\":1")).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Returns an object with keys in an order that merging of runs does not profit from.
    fn scattered(count: usize, before: &str) -> String {
        object_of((0..count).map(|index| format!("{before}{:04}", index * 1009 % count)))
    }

    #[test]
    fn nested_objects_are_looked_at_and_copied_a_bounded_number_of_times() {
        for (before, behind) in [
            ("{\"b\":1,\"a\":", "}"),
            ("{\"b\":", ",\"a\":1}"),
            ("{\"a\":", ",\"b\":1}"),
            ("{\"c\":[{},{\"b\":1,\"a\":1}],\"b\":[{},", "],\"a\":{}}"),
        ] {
            let json = nested(10_000, before, behind);
            let objects = json.matches('{').count();
            let [looked_at, copied, _] = steps_of(&json);
            // An object is looked at where a member begins at it, and where a member ends before it.
            assert!(looked_at <= 3 * objects, "{before}: {looked_at} for {objects} objects");
            assert!(copied <= json.len(), "{before}: {copied} of {} bytes", json.len());
        }
    }

    #[test]
    fn keys_that_begin_alike_are_decoded_near_the_difference_alone() {
        for before in ["p".repeat(1000), format!("\\u001f{}\u{ffee}\u{1f600}", "p".repeat(1000))] {
            let [_, _, decoded] = steps_of(&scattered(1000, &before));
            assert_eq!(decoded, 0, "{before}");
        }
    }

    #[test]
    fn keys_on_both_sides_of_the_surrogates() {
        let keys = ["\u{1f601}", "\u{e000}", "\u{d7ff}", "\u{1f600}", "\u{ffff}", "\\ud83d"];
        let same = "p".repeat(40);
        let json = object_of(keys.iter().map(|key| format!("{same}{key}")));
        let in_order = ["\u{d7ff}", "\\ud83d", "\u{1f600}", "\u{1f601}", "\u{e000}", "\u{ffff}"];
        assert_eq!(sorted(&json), object_of(in_order.iter().map(|key| format!("{same}{key}"))));
    }

    fn key() -> impl Strategy<Value = String> {
        let parts = [
            "a",
            "b",
            "\\n",
            "\\\\",
            "\\\"",
            "\\u001f",
            "\\ud83d",
            "\u{e9}",
            "\u{d7ff}",
            "\u{e000}",
            "\u{ffff}",
            "\u{1f600}",
            "\u{1f601}",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ];
        prop::collection::vec(prop::sample::select(parts.to_vec()), 0..6)
            .prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn keys_are_compared_as_their_units_are(same in key(), a in key(), b in key()) {
            let (a, b) = (format!("{same}{a}"), format!("{same}{b}"));
            let expected = units(a.as_bytes()).cmp(units(b.as_bytes()));
            prop_assert_eq!(compare(a.as_bytes(), b.as_bytes()), expected);
        }
    }
}
