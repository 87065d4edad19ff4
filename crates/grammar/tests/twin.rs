//! Compares reading in blocks with reading byte by byte.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::convert::Infallible;

use offloop_grammar::{JsonVisitor, ReadError, check, read};
use proptest::prelude::*;

/// Counts the numbers it receives one by one.
#[derive(Default)]
struct Everything(usize);

impl JsonVisitor for Everything {
    type Error = Infallible;

    fn number(&mut self, _: &[u8], _: usize) -> Result<(), Infallible> {
        self.0 += 1;
        Ok(())
    }
}

/// Counts the numbers, and lets the reader skip integers.
#[derive(Default)]
struct Counted(usize);

impl JsonVisitor for Counted {
    type Error = Infallible;

    fn skips_integers(&self) -> bool {
        true
    }

    fn integers(&mut self, count: usize) -> Result<(), Infallible> {
        self.0 += count;
        Ok(())
    }

    fn number(&mut self, _: &[u8], _: usize) -> Result<(), Infallible> {
        self.0 += 1;
        Ok(())
    }
}

fn numbers() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        6 => any::<i32>().prop_map(|number| number.to_string()),
        3 => (0_u8..10).prop_map(|number| number.to_string()),
        1 => any::<f64>().prop_filter("JSON has it", |number| number.is_finite()).prop_map(|number| number.to_string()),
        1 => prop::sample::select(vec!["0", "-0", "1e9", "[1,2]", "\"a\"", "null", "99999999999999999999", "01", "-", "1.", ""]).prop_map(str::to_owned),
    ];
    let comma = prop::sample::select(vec![",", ",", ",", ", ", ", ", ",  ", " ,", ",\n"]);
    prop::collection::vec((number, comma), 0..80).prop_map(|parts| {
        parts.into_iter().map(|(number, comma)| number + comma).collect::<String>()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn arrays_of_numbers(
        numbers in numbers(),
        last in prop::sample::select(vec!["1]", "1]", "1]", "]", " ]", "1", "", "x]", "1]]"]),
        damage in prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut text = format!("[{numbers}{last}").into_bytes();
        if let Some((at, byte)) = damage {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let (mut slow, mut fast) = (Everything::default(), Counted::default());
        let expected = read(&text, &mut slow);
        prop_assert_eq!(read(&text, &mut fast), expected);
        if expected.is_ok() {
            prop_assert_eq!(fast.0, slow.0);
        }
        let checked = check(&text).map_err(|error| ReadError::Unexpected(error.offset));
        prop_assert_eq!(checked, expected);
    }

    #[test]
    fn any_text(text in prop::collection::vec(prop::sample::select(b"[]{},:\"\\ \n0123456789-+.eEntrufalsx\x80\xc3\xa9".to_vec()), 0..40)) {
        prop_assert_eq!(read(&text, &mut Everything::default()), read(&text, &mut Counted::default()));
    }
}

#[test]
fn arrays_longer_than_what_is_told_at_once() {
    let numbers = (0..200_000).map(|number: u32| number.to_string()).collect::<Vec<_>>();
    for comma in [",", ", ", "\n,"] {
        let text = format!("[{}]", numbers.join(comma));
        let mut counted = Counted::default();
        read(text.as_bytes(), &mut counted).unwrap();
        assert_eq!(counted.0, numbers.len());
        let cut = &text[..text.len() - 1];
        assert_eq!(check(cut.as_bytes()).unwrap_err().offset, cut.len());
    }
}
