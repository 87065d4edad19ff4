//! Events of streams, compared with a naive twin that reads the whole stream at once.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use std::convert::Infallible;
use std::sync::Arc;

use offloop_body::{
    BodyError, CheckError, EventError, EventReader, EventRules, EventStep, FillTarget, LiftConfig,
    LiftKind, PlanSource, PlannedText, RestRules,
};
use offloop_experts::Hints;
use offloop_memory::{Joined, OutOfMemory, Recycler};
use proptest::prelude::*;

static RECYCLER: Recycler = Recycler::new(1 << 28);

/// An event as `[data, name, id]`, or what ends the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Event(String, String, String),
    Done,
    Json(usize),
    TooLarge,
}

fn config(lifts: &[(&str, &str)]) -> LiftConfig {
    let pointers: Vec<_> = lifts.iter().map(|(pointer, _)| pointer.as_bytes().to_vec()).collect();
    let kinds = lifts.iter().map(|(_, name)| LiftKind::named(name, Hints::default()).unwrap());
    LiftConfig::new(&pointers, kinds.collect(), RestRules::default()).unwrap()
}

fn reader(lifts: &[(&str, &str)], done: Option<&str>, max_size: usize) -> EventReader<Infallible> {
    let done = done.map(|done| Arc::from(done.as_bytes()));
    EventReader::new(Arc::new(config(lifts)), EventRules { done, max_size })
}

/// Splits JSON arrays at the commas of the outer level.
fn items(json: &str) -> Vec<String> {
    let inner = json.strip_prefix('[').and_then(|json| json.strip_suffix(']')).unwrap_or_default();
    let (mut items, mut depth, mut is_text, mut is_escaped) =
        (vec![String::new()], 0, false, false);
    for character in inner.chars() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_text => is_escaped = true,
            '"' => is_text = !is_text,
            '[' | '{' if !is_text => depth += 1,
            ']' | '}' if !is_text => depth -= 1,
            ',' if !is_text && depth == 0 => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        items.last_mut().unwrap().push(character);
    }
    items.retain(|item| !item.is_empty());
    items
}

fn text_of(json: &str) -> String {
    String::from_utf8(offloop_body::unescaped(&json.as_bytes()[1..json.len() - 1])).unwrap()
}

/// Reads `stream`, cut into `chunks`, to its end or to what ends it.
fn read(reader: &mut EventReader<Infallible>, chunks: &[&[u8]]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let (mut name, mut id) = (String::new(), String::new());
    for chunk in chunks {
        reader.push(chunk.len(), &RECYCLER, |room| room.copy_from_slice(chunk)).unwrap();
        while let Some(step) = reader.next(&RECYCLER) {
            match step {
                EventStep::Run(json) => {
                    let [data, heads, _] = &items(&json)[..] else { panic!("{json}") };
                    let heads = items(heads);
                    for (index, data) in items(data).into_iter().enumerate() {
                        for head in heads.chunks(3).filter(|head| head[0] == index.to_string()) {
                            (name, id) = (text_of(&head[1]), text_of(&head[2]));
                        }
                        seen.push(Seen::Event(data, name.clone(), id.clone()));
                    }
                }
                EventStep::Event(mut gathered, event) => {
                    let mut joined = Joined::new(gathered.drain());
                    joined.join(&RECYCLER, || Ok::<(), OutOfMemory>(())).unwrap();
                    let text = joined.bytes_mut();
                    let config = &LiftConfig::default();
                    let source = PlanSource { config, event: Some(event), is_ours: false };
                    let planned = match source.plan(text, || Ok::<(), ()>(())) {
                        Ok(planned) => planned,
                        Err(BodyError::Json(CheckError { offset })) => {
                            seen.push(Seen::Json(offset));
                            return seen;
                        }
                        Err(error) => panic!("{error:?}"),
                    };
                    match &items(&planned.description)[..] {
                        [.., name, id] => {
                            let data = String::from_utf8(text[planned.part].to_vec()).unwrap();
                            seen.push(Seen::Event(data, text_of(name), text_of(id)));
                        }
                        _ if planned.description == "0" => {}
                        _ => {
                            assert_eq!(planned.description, "1");
                            seen.push(Seen::Done);
                            return seen;
                        }
                    }
                }
                EventStep::Done => {
                    seen.push(Seen::Done);
                    return seen;
                }
                EventStep::Failed(error) => {
                    seen.push(match error {
                        EventError::Json(CheckError { offset }) => Seen::Json(offset),
                        EventError::TooLarge(_) => Seen::TooLarge,
                        EventError::Memory(error) => panic!("{error}"),
                    });
                    return seen;
                }
            }
        }
    }
    seen
}

/// Reads a stream as the standard describes it: line by line. Data is compared without its line ends, as these are white
/// space of another kind here.
fn naive(stream: &str, done: &str) -> Vec<Seen> {
    let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream);
    let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
    let (mut data, mut name, mut id) = (None::<Vec<&str>>, "", String::new());
    let mut seen = Vec::new();
    let lines: Vec<_> = stream.split('\n').collect();
    for line in &lines[..lines.len() - 1] {
        if line.is_empty() {
            if let Some(lines) = data.take() {
                if lines.join("\n") == done {
                    seen.push(Seen::Done);
                    return seen;
                }
                let json = lines.join("\n");
                if offloop_grammar::check(json.as_bytes()).is_err() {
                    seen.push(Seen::Json(0));
                    return seen;
                }
                let name = if name.is_empty() { "message" } else { name };
                seen.push(Seen::Event(json, name.to_owned(), id.clone()));
            }
            name = "";
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => data.get_or_insert_default().push(value),
            "event" => name = value,
            "id" if !value.contains('\0') => value.clone_into(&mut id),
            _ => {}
        }
    }
    seen
}

fn normal(seen: Vec<Seen>) -> Vec<Seen> {
    let normal = |event| match event {
        Seen::Event(data, name, id) => Seen::Event(data.replace(['\r', '\n'], ""), name, id),
        // The twin does not know places.
        Seen::Json(_) => Seen::Json(0),
        other => other,
    };
    seen.into_iter().map(normal).collect()
}

fn chunks<'a>(stream: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    let mut rest = stream;
    for &size in sizes.iter().cycle().take(stream.len() + sizes.len()) {
        let (chunk, behind) = rest.split_at(size.min(rest.len()));
        chunks.push(chunk);
        rest = behind;
    }
    chunks.push(rest);
    chunks
}

fn line() -> impl Strategy<Value = String> {
    let long = (30_000..90_000_usize).prop_map(|len| format!("data: \"{}\"", "x".repeat(len)));
    let known = prop::sample::select(vec![
        "data: 1",
        "data:{\"a\":[1,2]}",
        "data: {\"a\":",
        "data:  2}",
        "data: [1,",
        "data:2]",
        "data",
        "data: x",
        "event: delta",
        "event",
        "event:",
        "id: 7",
        "id:",
        "id: \0",
        "id: \u{e9}\"\\",
        "retry: 5",
        ": comment",
        "",
        "",
        "",
        "data: [DONE]",
        "data: \"\u{4e2d}\"",
        "\u{feff}data: 3",
        "other: data: 1",
        "data : 1",
    ]);
    prop_oneof![40 => known.prop_map(str::to_owned), 1 => long]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn events_are_those_of_the_standard_however_the_stream_is_cut(
        lines in prop::collection::vec((line(), prop::sample::select(vec!["\n", "\r", "\r\n"])), 0..40),
        starts_with_mark in any::<bool>(),
        sizes in prop::collection::vec(prop_oneof![0..10_usize, 0..100_000_usize], 1..8),
    ) {
        prop_assume!(sizes.iter().sum::<usize>() != 0);
        let mark = if starts_with_mark { "\u{feff}" } else { "" };
        let stream: String = lines.into_iter().flat_map(|(line, end)| [line, end.to_owned()]).collect();
        let stream = format!("{mark}{stream}");
        let expected = normal(naive(&stream, "[DONE]"));
        for lifts in [&[][..], &[("/a", "raw")]] {
            let mut reader = reader(lifts, Some("[DONE]"), usize::MAX);
            let seen = normal(read(&mut reader, &chunks(stream.as_bytes(), &sizes)));
            prop_assert_eq!(&seen, &expected);
        }
    }
}

#[test]
fn an_error_has_its_offset_in_the_stream() {
    for (stream, offset) in [
        ("data: 1\n\ndata: [1,x]\n\n", 18),
        ("\u{feff}: a\r\n\r\nid: 1\r\ndata: x\r\n\r\n", 23),
        ("data: [1,\nid: 7\ndata: y]\n\n", 22),
        ("data\n\n", 4),
        ("data: [1\n\n", 8),
    ] {
        for size in [1, 3, 1000] {
            let seen = read(&mut reader(&[], None, 1000), &chunks(stream.as_bytes(), &[size]));
            assert_eq!(seen.last(), Some(&Seen::Json(offset)), "{stream:?}");
        }
    }
}

#[test]
fn an_event_that_is_too_large_ends_the_stream_also_if_it_never_ends() {
    let event = format!("data: \"{}\"\n\n", "x".repeat(200_000));
    let endless = ": comment\n".repeat(30_000);
    for (text, is_fit) in [(&event, true), (&endless, false)] {
        for size in [7, 70_000, 1_000_000] {
            for max_size in [event.len(), event.len() - 1] {
                let stream = format!("data: 1\n\n{text}");
                let seen =
                    read(&mut reader(&[], None, max_size), &chunks(stream.as_bytes(), &[size]));
                let ends = seen.last() != Some(&Seen::TooLarge);
                assert_eq!(ends, is_fit && max_size == event.len(), "{size} {max_size}");
                assert_eq!(seen.len(), 2);
            }
        }
    }
}

#[test]
fn raw_values_have_no_gaps() {
    let stream = b"data: {\"a\":{\"b\":1,\ndata:   \"c\":2}\ndata: ,\"d\":3}\n\n";
    let mut reader = reader(&[("/a", "raw")], None, 1000);
    reader.push(stream.len(), &RECYCLER, |room| room.copy_from_slice(stream)).unwrap();
    let Some(EventStep::Event(mut gathered, event)) = reader.next(&RECYCLER) else {
        panic!("an event")
    };
    let mut joined = Joined::new(gathered.drain());
    joined.join(&RECYCLER, || Ok::<(), OutOfMemory>(())).unwrap();
    let config = &config(&[("/a", "raw")]);
    let source = PlanSource { config, event: Some(event), is_ours: false };
    let PlannedText { plan, description, part } =
        source.plan(joined.bytes_mut(), || Ok::<(), ()>(())).unwrap();
    assert!(description.ends_with(",\"message\",\"\"]"));
    joined.cut(part);
    let (mut rest, mut memory) = (vec![0; plan.rest_size()], vec![7; plan.sizes()[0]]);
    let target = FillTarget { rest: &mut rest, memories: &mut [&mut memory], replacements: None };
    let filled = plan.fill(joined.bytes_mut(), target, || Ok::<(), ()>(())).unwrap();
    let expected = b"{\"b\":1,\n  \"c\":2}";
    assert_eq!(filled.lengths, [expected.len()]);
    assert!(memory.starts_with(expected) && memory[expected.len()..].iter().all(|&byte| byte == 0));
}

#[test]
fn errors_of_values_have_their_offset_in_the_stream() {
    let stream = b"data: 1\n\ndata: {\"a\":[1,300],\ndata: \"b\":\"Q*\"}\n\n";
    for (pointer, kind, expected) in [("/a", "uint8", 23), ("/b", "base64", 41), ("/b", "int8", 39)]
    {
        let mut reader = reader(&[(pointer, kind)], None, 1000);
        reader.push(stream.len(), &RECYCLER, |room| room.copy_from_slice(stream)).unwrap();
        let Some(EventStep::Run(_)) = reader.next(&RECYCLER) else { panic!("a run") };
        let Some(EventStep::Event(mut gathered, event)) = reader.next(&RECYCLER) else {
            panic!("an event")
        };
        let mut joined = Joined::new(gathered.drain());
        joined.join(&RECYCLER, || Ok::<(), OutOfMemory>(())).unwrap();
        let config = &config(&[(pointer, kind)]);
        let source = PlanSource { config, event: Some(event), is_ours: false };
        let outcome = source.plan(joined.bytes_mut(), || Ok::<(), ()>(())).and_then(|planned| {
            let (mut rest, mut memory) =
                (vec![0; planned.plan.rest_size()], vec![7; planned.plan.sizes()[0]]);
            let target =
                FillTarget { rest: &mut rest, memories: &mut [&mut memory], replacements: None };
            joined.cut(planned.part);
            planned.plan.fill(joined.bytes_mut(), target, || Ok(()))
        });
        let Err(BodyError::Lift(error)) = outcome else { panic!("{pointer}") };
        assert_eq!((error.pointer.as_str(), error.offset), (pointer, expected), "{kind}");
    }
}
