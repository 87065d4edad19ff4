//! Keys in their order, that of their UTF-16 code units (RFC 8785), from JSON with keys in any.

use std::cmp::Ordering;
use std::iter;
use std::ops::Range;
use std::slice::Iter;

use crate::compact::{Raws, string_len};
use crate::error::TranscodeError;
use crate::output::{Memory, Output};
use crate::transcode::Written;

/// Bytes between two calls of `poll`.
const POLL: usize = 64 << 10;

/// Writes `json`, which is compact JSON, or rows of it, with the keys of every object in order; `raws` as they are.
///
/// # Errors
/// Those of `memory` and `poll`.
pub fn sort<M: Memory>(
    json: &[u8],
    raws: &[Range<usize>],
    memory: &mut M,
    mut poll: impl FnMut() -> Result<(), M::Error>,
) -> Result<Written, TranscodeError<M::Error>> {
    let objects = objects_of(json, raws, &mut poll).map_err(TranscodeError::Stopped)?;
    let mut out = Output::new(memory).map_err(TranscodeError::Stopped)?;
    let mut polled_at = 0;
    let mut moved = Vec::with_capacity(raws.len());
    // Each inside of the one before. A stack of its own: objects may be as deep as memory allows.
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
            // A member, or everything.
            _ if spans.is_empty() => {}
            _ => out.byte(b','),
        }
        if POLL <= out.len().wrapping_sub(polled_at) {
            polled_at = out.len();
            out.check().and_then(|()| poll()).map_err(TranscodeError::Stopped)?;
        }
    }
    out.check().map_err(TranscodeError::Stopped)?;
    Ok(Written { len: out.len(), raws: moved })
}

/// What is being written.
enum Span<'a> {
    /// Text as it is, but for the objects in it, of which the first has this number.
    Text { at: usize, end: usize, object: usize },
    /// The members of an object that are still to come.
    Members(Iter<'a, Member>),
}

/// An object, numbered by where it begins.
struct Object {
    range: Range<usize>,
    /// In order; none if it is in order as it stands.
    members: Vec<Member>,
    /// The number of the first object behind it.
    behind: usize,
}

struct Member {
    /// Key and value.
    range: Range<usize>,
    /// The number of the first object in it, or behind.
    object: usize,
}

/// The first that is not in order, from that number on, and that begins before `end`.
fn next_unsorted(objects: &[Object], from: usize, end: usize) -> Option<&Object> {
    let within = objects.get(from..)?.iter().take_while(|object| object.range.start < end);
    within.into_iter().find(|object| !object.members.is_empty())
}

/// An object that has not ended.
struct Open {
    number: usize,
    /// Where its members begin on the stack of members.
    members: usize,
    is_sorted: bool,
}

/// A member whose key has been read.
struct Begun {
    key: Range<usize>,
    member: Member,
}

fn objects_of<E>(
    json: &[u8],
    raws: &[Range<usize>],
    poll: &mut impl FnMut() -> Result<(), E>,
) -> Result<Vec<Object>, E> {
    let mut objects = Vec::new();
    let mut open: Vec<Option<Open>> = Vec::new();
    let mut begun: Vec<Begun> = Vec::new();
    let (mut at, mut polled_at) = (0, 0);
    // The next string is a key.
    let mut awaits_key = false;
    let mut raws = Raws::new(raws);
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
                    let previous = begun.get(open.members..).and_then(<[Begun]>::last);
                    open.is_sorted &= previous.is_none_or(|previous| {
                        compare(text(json, &previous.key), text(json, &key)).is_lt()
                    });
                }
                let member = Member { range: start..start, object: objects.len() };
                begun.push(Begun { key, member });
            }
            b'{' => {
                open.push(Some(Open {
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

fn end_member(begun: &mut [Begun], end: usize) {
    if let Some(Begun { member, .. }) = begun.last_mut() {
        member.range.end = end;
    }
}

fn in_order(json: &[u8], mut members: Vec<Begun>) -> Vec<Member> {
    members.sort_by(|a, b| compare(text(json, &a.key), text(json, &b.key)));
    members.into_iter().map(|begun| begun.member).collect()
}

fn text<'a>(json: &'a [u8], range: &Range<usize>) -> &'a [u8] {
    json.get(range.clone()).unwrap_or_default()
}

/// Of the insides of two JSON strings, by the units of what they stand for.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    // Below the surrogates the order of bytes is that of units.
    let is_plain = |&byte: &u8| byte != b'\\' && byte < 0xee;
    if a.iter().all(is_plain) && b.iter().all(is_plain) { a.cmp(b) } else { units(a).cmp(units(b)) }
}

/// The UTF-16 code units that the inside of a JSON string stands for.
fn units(text: &[u8]) -> impl Iterator<Item = u16> {
    let mut chars = str::from_utf8(text).unwrap_or_default().chars();
    let mut low = None;
    iter::from_fn(move || {
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
