//! Plans where the rows of each turn go in the sample. Every position gets the row of one turn or is filled.
//!
//! Runs on the JS thread in time that grows with the number of turns, not of rows; `turns.rs` calls it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::ops::Range;

use crate::{Dtype, Payload, Shape};

/// Content of a position without a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Such a position fails the call.
    Throw,
    /// The row before it; zeros at position 0.
    Repeat,
    /// This value in every element.
    Value(i64),
}

/// Resolved options of `concatExperts`.
#[derive(Clone, Copy, Debug)]
pub struct ConcatConfig {
    /// Rows of the sample.
    pub tokens: usize,
    /// Fills positions before the last row.
    pub gaps: Fill,
    /// Fills the last row.
    pub last_row: Fill,
    /// The later of two turns that cover a position wins.
    pub later_wins: bool,
    /// Turns of different dtypes are widened instead of rejected.
    pub widens: bool,
}

/// A turn whose payload is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub payload: Payload,
    /// Position of its first row.
    pub start: usize,
    /// Tokens of the sample when the turn ended.
    pub tokens: Option<usize>,
}

/// Consecutive rows of a turn, and where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First row in the turn.
    pub from: usize,
    /// First row in the sample.
    pub to: usize,
    pub rows: usize,
}

/// Layout of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpertsPlan {
    pub dtype: Dtype,
    pub shape: Shape,
    /// Position of row 0 among the sample's tokens.
    pub start: usize,
    /// Bytes of the sample.
    pub size: usize,
    /// Runs of each turn, in the order of its rows.
    pub runs: Vec<Vec<Run>>,
    /// Positions that no turn covers, in order, and how to fill them.
    pub fills: Vec<(Range<usize>, Fill)>,
}

impl ExpertsPlan {
    /// Plans all rows of one payload, unchanged.
    #[must_use]
    pub fn whole(turn: &Turn) -> Self {
        let Turn { payload, start, .. } = turn;
        let Payload { dtype, shape, .. } = *payload;
        let runs = vec![vec![Run { from: 0, to: 0, rows: shape.rows }]];
        Self { dtype, shape, start: *start, size: payload.size(), runs, fills: Vec::new() }
    }
}

/// Why turns do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// No turn has rows, and the options do not give shape and fill.
    Empty,
    /// The turn starts behind the sample.
    Start { turn: usize, start: usize, tokens: usize },
    /// The turn has another number of layers than those before.
    Layers { turn: usize, is: usize, others: usize },
    /// The turn has another number of experts a layer than those before.
    Topk { turn: usize, is: usize, others: usize },
    /// The turn has another dtype, and turns may not be widened.
    Mixed { turn: usize, is: Dtype, others: Dtype },
    /// No turn covers the position.
    Gap { position: usize },
    /// No turn covers the last position.
    LastRow { position: usize },
    /// The value to fill with does not fit the dtype.
    Fill { value: i64, dtype: Dtype },
    /// The size of the sample overflows.
    TooLarge,
}

impl PlanError {
    /// Index of the turn that does not fit.
    #[must_use]
    pub fn turn(&self) -> Option<usize> {
        match *self {
            Self::Start { turn, .. }
            | Self::Layers { turn, .. }
            | Self::Topk { turn, .. }
            | Self::Mixed { turn, .. } => Some(turn),
            _ => None,
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "no turn has routed experts, and gaps, lastRow, layers and topk do not all tell what to fill",
            ),
            Self::Start { start, tokens, .. } => {
                write!(f, "it starts at position {start} of a sample of {tokens} tokens")
            }
            Self::Layers { is, others, .. } => {
                write!(f, "it has {is} layers, the turns before have {others}")
            }
            Self::Topk { is, others, .. } => {
                write!(f, "it has {is} experts a layer, the turns before have {others}")
            }
            Self::Mixed { is, others, .. } => write!(f, "it is {is}, the turns before are {others}"),
            Self::Gap { position } => write!(f, "no turn has a row for position {position}"),
            Self::LastRow { position } => {
                write!(f, "no turn has a row for position {position}, the last")
            }
            Self::Fill { value, dtype } => write!(f, "{value} to fill with is no {dtype}"),
            Self::TooLarge => f.write_str("the result has more bytes than can be counted"),
        }
    }
}

impl Error for PlanError {}

/// Plans where the rows of `turns` go. `empty` gives shape and dtype of a sample whose turns have no rows.
///
/// # Errors
/// If the turns do not fit together.
pub fn plan(
    turns: &[Option<Turn>],
    config: &ConcatConfig,
    empty: Option<(Shape, Dtype)>,
) -> Result<ExpertsPlan, PlanError> {
    let (shape, dtype) = joined(turns, config, empty)?;
    let ConcatConfig { tokens, gaps, last_row, later_wins, .. } = *config;
    let mut covered = CoveredPositions::default();
    let mut runs = vec![Vec::new(); turns.len()];
    let mut cover = |(index, turn): (usize, &Option<Turn>)| {
        let (Some(turn), Some(runs)) = (turn, runs.get_mut(index)) else { return };
        let most = turn.tokens.map_or(tokens, |tokens| tokens.saturating_sub(1)).min(tokens);
        let end = turn.start.saturating_add(turn.payload.shape.rows).min(most);
        covered.add(turn.start..end, |free| {
            let rows = free.end - free.start;
            runs.push(Run { from: free.start - turn.start, to: free.start, rows });
        });
    };
    let all = turns.iter().enumerate();
    if later_wins {
        all.rev().for_each(&mut cover);
    } else {
        all.for_each(&mut cover);
    }
    let mut fills = Vec::new();
    covered.add(0..tokens, |free| {
        let last = free.end == tokens;
        let end = if last { free.end - 1 } else { free.end };
        if free.start < end {
            fills.push((free.start..end, gaps));
        }
        if last {
            fills.push((end..tokens, last_row));
        }
    });
    for (range, fill) in &fills {
        check_fill(range, *fill, tokens, dtype)?;
    }
    let shape = Shape { rows: tokens, ..shape };
    let size = shape.size(dtype).ok_or(PlanError::TooLarge)?;
    Ok(ExpertsPlan { dtype, shape, start: 0, size, runs, fills })
}

fn check_fill(
    range: &Range<usize>,
    fill: Fill,
    tokens: usize,
    dtype: Dtype,
) -> Result<(), PlanError> {
    let position = range.start;
    match fill {
        Fill::Throw if range.end == tokens && range.len() == 1 => {
            Err(PlanError::LastRow { position })
        }
        Fill::Throw => Err(PlanError::Gap { position }),
        Fill::Value(value) if dtype.element(value).is_none() => {
            Err(PlanError::Fill { value, dtype })
        }
        _ => Ok(()),
    }
}

/// Returns the shape and the smallest dtype that hold the rows of all turns.
fn joined(
    turns: &[Option<Turn>],
    config: &ConcatConfig,
    empty: Option<(Shape, Dtype)>,
) -> Result<(Shape, Dtype), PlanError> {
    let mut all: Option<(Shape, Dtype)> = None;
    for (turn, Turn { payload, start, .. }) in
        turns.iter().enumerate().filter_map(|(index, turn)| Some((index, turn.as_ref()?)))
    {
        let Payload { shape, dtype, .. } = *payload;
        if shape.rows != 0 && config.tokens <= *start {
            return Err(PlanError::Start { turn, start: *start, tokens: config.tokens });
        }
        let (others, other) = *all.get_or_insert((shape, dtype));
        if shape.layers != others.layers {
            return Err(PlanError::Layers { turn, is: shape.layers, others: others.layers });
        }
        if shape.topk != others.topk {
            return Err(PlanError::Topk { turn, is: shape.topk, others: others.topk });
        }
        if dtype != other && !config.widens {
            return Err(PlanError::Mixed { turn, is: dtype, others: other });
        }
        all = Some((others, other.joined(dtype)));
    }
    let is_filled = config.gaps != Fill::Throw && config.last_row != Fill::Throw;
    all.or(empty.filter(|_| is_filled)).ok_or(PlanError::Empty)
}

/// Positions that turns cover: start → end of ranges that do not touch.
#[derive(Default)]
struct CoveredPositions(BTreeMap<usize, usize>);

impl CoveredPositions {
    /// Covers `range`, and calls `on_free` for each part that was free, in order.
    fn add(&mut self, range: Range<usize>, mut on_free: impl FnMut(Range<usize>)) {
        let Range { start, end } = range;
        if end <= start {
            return;
        }
        let (mut from, mut to) = (start, end);
        let mut free = start;
        // Ranges that touch the new one are merged into it; the first may start before it.
        let before = self.0.range(..start).next_back().filter(|&(_, &last)| start <= last);
        let first = before.map_or(start, |(&first, _)| first);
        while let Some((&next, &last)) = self.0.range(first..=end).next() {
            if free < next {
                on_free(free..next);
            }
            free = free.max(last);
            from = from.min(next);
            to = to.max(last);
            self.0.remove(&next);
        }
        if free < end {
            on_free(free..end);
        }
        self.0.insert(from, to);
    }
}
