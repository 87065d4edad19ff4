//! Plans of samples, compared with a reference that goes row by row.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use offloop_experts::{
    ConcatConfig, Dtype, Fill, Payload, PayloadError, PlanError, Shape, Turn, fill, place, plan,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct TurnRows {
    dtype: Dtype,
    start: usize,
    rows: Vec<i32>,
    tokens: Option<usize>,
}

fn turn(given: &TurnRows) -> Turn {
    let shape = Shape { rows: given.rows.len(), layers: 1, topk: 1 };
    let payload = Payload { dtype: given.dtype, shape, start: 0, skipped: 0 };
    Turn { payload, start: given.start, tokens: given.tokens }
}

fn bytes(values: &[i32], dtype: Dtype) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()[..dtype.size()].to_vec()).collect()
}

/// Concatenates turns by their plan.
fn concat(
    turns: &[Option<TurnRows>],
    config: &ConcatConfig,
) -> Result<(Dtype, Vec<u8>), PlanError> {
    let planned: Vec<_> = turns.iter().map(|given| given.as_ref().map(turn)).collect();
    let plan = plan(&planned, config, None)?;
    // Bytes that nothing overwrites make the comparison fail.
    let mut out = vec![0xee; plan.size];
    for (given, runs) in turns.iter().zip(&plan.runs) {
        let Some(given) = given else { continue };
        let data = bytes(&given.rows, given.dtype);
        let mut rest = &data[..];
        let read = |out: &mut [u8]| {
            let len = out.len().min(rest.len());
            let (now, later) = rest.split_at(len);
            out[..len].copy_from_slice(now);
            rest = later;
            Ok::<_, PayloadError>(len)
        };
        place(read, &turn(given).payload, runs, plan.dtype, &mut out, || Ok(())).unwrap();
    }
    fill(&plan, &mut out, || Ok::<_, PayloadError>(())).unwrap();
    Ok((plan.dtype, out))
}

/// Concatenates turns row by row; `None` for every error.
fn naive(turns: &[Option<TurnRows>], config: &ConcatConfig) -> Option<(Dtype, Vec<u8>)> {
    let given: Vec<_> = turns.iter().flatten().collect();
    let first = given.first()?;
    if !config.widens && given.iter().any(|given| given.dtype != first.dtype) {
        return None;
    }
    if given.iter().any(|given| !given.rows.is_empty() && config.tokens <= given.start) {
        return None;
    }
    let fits = |dtype: &Dtype| given.iter().all(|given| dtype.holds(given.dtype));
    let dtype = Dtype::ALL.into_iter().find(fits)?;
    let mut rows = vec![None; config.tokens];
    for given in &given {
        for (index, value) in given.rows.iter().enumerate() {
            let position = given.start + index;
            if config.tokens <= position
                || given.tokens.is_some_and(|tokens| tokens <= position + 1)
            {
                continue;
            }
            if rows[position].is_none() || config.later_wins {
                rows[position] = Some(*value);
            }
        }
    }
    let mut values: Vec<i32> = Vec::new();
    for (position, row) in rows.iter().enumerate() {
        let rule = if position + 1 == config.tokens { config.last_row } else { config.gaps };
        values.push(match (row, rule) {
            (Some(row), _) => *row,
            (None, Fill::Repeat) => values.last().copied().unwrap_or(0),
            (None, Fill::Value(value)) if dtype.range().contains(&(value as i32)) => value as i32,
            (None, Fill::Throw | Fill::Value(_)) => return None,
        });
    }
    Some((dtype, bytes(&values, dtype)))
}

fn dtypes() -> impl Strategy<Value = Dtype> {
    prop::sample::select(Dtype::ALL.to_vec())
}

fn given() -> impl Strategy<Value = TurnRows> {
    let rows = prop::collection::vec(any::<i32>(), 0..12);
    (dtypes(), 0_usize..40, rows, prop::option::weighted(0.3, 0_usize..45)).prop_map(
        |(dtype, start, rows, tokens)| {
            let most = i64::from(*dtype.range().end()) - i64::from(*dtype.range().start()) + 1;
            let within = |value: i32| {
                (i64::from(value).rem_euclid(most) + i64::from(*dtype.range().start())) as i32
            };
            TurnRows { dtype, start, rows: rows.into_iter().map(within).collect(), tokens }
        },
    )
}

fn fills() -> impl Strategy<Value = Fill> {
    prop_oneof![
        Just(Fill::Throw),
        Just(Fill::Repeat),
        Just(Fill::Value(0)),
        (-3_i64..300).prop_map(Fill::Value)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn every_row_goes_where_the_reference_puts_it(
        turns in prop::collection::vec(prop::option::weighted(0.9, given()), 0..12),
        tokens in 0_usize..45,
        gaps in fills(),
        last_row in fills(),
        later_wins in any::<bool>(),
        widens in prop::bool::weighted(0.9),
    ) {
        let config = ConcatConfig { tokens, gaps, last_row, later_wins, widens };
        prop_assert_eq!(concat(&turns, &config).ok(), naive(&turns, &config));
    }
}

#[test]
fn a_dtype_holds_what_both_hold() {
    assert_eq!(Dtype::Uint8.joined(Dtype::Int8), Dtype::Int16);
    assert_eq!(Dtype::Uint16.joined(Dtype::Int16), Dtype::Int32);
    assert_eq!(Dtype::Uint8.joined(Dtype::Uint16), Dtype::Uint16);
    assert_eq!(Dtype::Int8.joined(Dtype::Uint16), Dtype::Int32);
    assert_eq!(Dtype::Int8.joined(Dtype::Int8), Dtype::Int8);
}

fn config(tokens: usize) -> ConcatConfig {
    let (gaps, last_row) = (Fill::Throw, Fill::Value(0));
    ConcatConfig { tokens, gaps, last_row, later_wins: false, widens: true }
}

#[test]
fn what_does_not_fit_together_is_named() {
    let one = |dtype, start, rows: &[i32]| {
        Some(TurnRows { dtype, start, rows: rows.to_vec(), tokens: None })
    };
    let error =
        |turns: &[Option<TurnRows>], config: ConcatConfig| concat(turns, &config).unwrap_err();
    let first = one(Dtype::Uint8, 0, &[1, 2, 3]);
    assert_eq!(error(&[None], config(4)), PlanError::Empty);
    let late = one(Dtype::Uint8, 9, &[1]);
    let start = PlanError::Start { turn: 2, start: 9, tokens: 4 };
    assert_eq!(error(&[first.clone(), None, late], config(4)), start);
    assert_eq!(error(std::slice::from_ref(&first), config(5)), PlanError::Gap { position: 3 });
    let last_row = ConcatConfig { last_row: Fill::Throw, ..config(4) };
    assert_eq!(error(std::slice::from_ref(&first), last_row), PlanError::LastRow { position: 3 });
    let filled = ConcatConfig { gaps: Fill::Value(256), ..config(6) };
    let unfit = PlanError::Fill { value: 256, dtype: Dtype::Uint8 };
    assert_eq!(error(std::slice::from_ref(&first), filled), unfit);
    let mixed = ConcatConfig { widens: false, ..config(8) };
    let other = one(Dtype::Uint16, 3, &[1]);
    let (is, others) = (Dtype::Uint16, Dtype::Uint8);
    assert_eq!(error(&[first.clone(), other], mixed), PlanError::Mixed { turn: 1, is, others });
}

#[test]
fn shapes_must_agree_and_sizes_be_countable() {
    let with = |layers, topk| {
        let shape = Shape { rows: 0, layers, topk };
        let payload = Payload { dtype: Dtype::Int32, shape, start: 0, skipped: 0 };
        Some(Turn { payload, start: 0, tokens: None })
    };
    let error =
        |turns: &[Option<Turn>], config: &ConcatConfig| plan(turns, config, None).unwrap_err();
    let layers = PlanError::Layers { turn: 1, is: 3, others: 2 };
    assert_eq!(error(&[with(2, 2), with(3, 2)], &config(1)), layers);
    let topk = PlanError::Topk { turn: 1, is: 3, others: 2 };
    assert_eq!(error(&[with(2, 2), with(2, 3)], &config(1)), topk);
    assert_eq!(error(&[with(1 << 62, 2)], &config(1)), PlanError::TooLarge);
    let all = ConcatConfig { gaps: Fill::Repeat, ..config(usize::MAX) };
    assert_eq!(error(&[with(1, 1)], &all), PlanError::TooLarge);
    let empty = Some((Shape { rows: 0, layers: 2, topk: 2 }, Dtype::Uint8));
    let declared = ConcatConfig { gaps: Fill::Value(7), ..config(3) };
    assert_eq!(plan(&[None], &declared, empty).unwrap().size, 12);
    assert_eq!(plan(&[None], &config(3), empty), Err(PlanError::Empty));
}

#[test]
fn more_or_fewer_bytes_than_told_are_refused() {
    let payload =
        turn(&TurnRows { dtype: Dtype::Uint8, start: 0, rows: vec![1; 4], tokens: None }).payload;
    for size in [0, 3, 5, 100] {
        let mut left = size;
        let read = |out: &mut [u8]| {
            let len = out.len().min(left);
            left -= len;
            Ok(len)
        };
        let error: PayloadError =
            place(read, &payload, &[], Dtype::Uint8, &mut [], || Ok(())).unwrap_err();
        assert_eq!(error, PayloadError::Size { is: size.min(5), needed: Some(4) });
    }
}
