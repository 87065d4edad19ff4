//! The judge on rows in memory, more of it than the caches hold.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use offloop_jsonl::{Verdict, judge};

const SIZE: usize = 256 << 20;
const ROUNDS: usize = 5;

fn main() {
    let word = "the model goes on to say what it has found, and why it is right";
    let text = [word; 24].join(" ");
    let chat = text.replace(", ", ",\\n\\\"");
    let wide = text.replace('o', "ö");
    let ids =
        (0..3000).map(|id: u32| (id * 7919 % 151_936).to_string()).collect::<Vec<_>>().join(",");
    measure("20 KB, long strings", &row(&text.repeat(6), 2, "1,2,3"));
    measure("20 KB, an escape every 60 characters", &row(&chat.repeat(6), 2, "1,2,3"));
    measure("20 KB, not ASCII", &row(&wide.repeat(6), 2, "1,2,3"));
    measure("20 KB of token ids", &row("short", 2, &ids));
    measure("200 B", &row(&word[..40], 1, "1,2,3"));
}

fn row(text: &str, messages: usize, ids: &str) -> String {
    let message = format!(r#"{{"role": "assistant", "content": "{text}"}}"#);
    let messages = vec![message; messages].join(", ");
    format!(
        r#"{{"example_id": 17, "prompt": [{messages}], "reward": 0.25, "error": null, "ids": [{ids}]}}"#
    )
}

fn measure(what: &str, row: &str) {
    let rows = [row, "\n"].concat().repeat(SIZE / row.len()).into_bytes();
    let rows = rows.split(|&byte| byte == b'\n').collect::<Vec<_>>();
    let time = best(|| {
        for row in &rows {
            black_box(judge(black_box(row), true));
        }
    });
    assert!(matches!(judge(row.as_bytes(), true), Verdict::Good(_)));
    println!("{what}: {:.2} GB/s", SIZE as f64 / time.as_secs_f64() / 1e9);
}

fn best(mut work: impl FnMut()) -> Duration {
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..ROUNDS).map(|_| time(&mut work)).min().unwrap()
}
