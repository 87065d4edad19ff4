//! Where the rows of each turn go: to their positions, once each.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::ops::Range;

use crate::{Dtype, Payload, Shape};

/// What stands where no turn has rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Such a position is an error.
    Throw,
    /// The row before; zeros where there is none.
    Repeat,
    Value(i64),
}

/// How turns become one sample.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Rows of the result.
    pub tokens: usize,
    /// Before the last row.
    pub gaps: Fill,
    pub last_row: Fill,
    /// Of two turns that have a position, the later counts.
    pub later_wins: bool,
    /// Turns may differ in dtype.
    pub widens: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub payload: Payload,
    /// Of its first row.
    pub start: usize,
    /// Of the sample, when the turn ended.
    pub tokens: Option<usize>,
}

/// Rows of a turn, and where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its first row in the turn.
    pub from: usize,
    /// And in the result.
    pub to: usize,
    pub rows: usize,
}

/// Where everything goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub dtype: Dtype,
    pub shape: Shape,
    /// Bytes of the result.
    pub size: usize,
    /// Of each turn, in the order of its rows.
    pub runs: Vec<Vec<Run>>,
    /// Positions that no turn has, and what stands there instead. In their order.
    pub fills: Vec<(Range<usize>, Fill)>,
}

impl Plan {
    /// All rows of one payload, as they are.
    #[must_use]
    pub fn whole(payload: &Payload) -> Self {
        let Payload { dtype, shape, .. } = *payload;
        let runs = vec![vec![Run { from: 0, to: 0, rows: shape.rows }]];
        Self { dtype, shape, size: payload.size(), runs, fills: Vec::new() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// None of the turns has rows, and what else there could be is not told.
    Empty,
    Start {
        turn: usize,
        start: usize,
        tokens: usize,
    },
    Layers {
        turn: usize,
        is: usize,
        others: usize,
    },
    Topk {
        turn: usize,
        is: usize,
        others: usize,
    },
    Mixed {
        turn: usize,
        is: Dtype,
        others: Dtype,
    },
    Gap {
        position: usize,
    },
    LastRow {
        position: usize,
    },
    Fill {
        value: i64,
        dtype: Dtype,
    },
    /// More bytes than can be counted.
    TooLarge,
}

impl PlanError {
    /// The turn that does not fit.
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

/// Where the rows of `turns` go. `shape` and `dtype` are those of the result where no turn has any.
///
/// # Errors
/// What does not fit together.
pub fn plan(
    turns: &[Option<Turn>],
    rules: &Rules,
    empty: Option<(Shape, Dtype)>,
) -> Result<Plan, PlanError> {
    let (shape, dtype) = joined(turns, rules, empty)?;
    let Rules { tokens, gaps, last_row, later_wins, .. } = *rules;
    let mut covered = Covered::default();
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
    Ok(Plan { dtype, shape, size, runs, fills })
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

/// What all turns have in common.
fn joined(
    turns: &[Option<Turn>],
    rules: &Rules,
    empty: Option<(Shape, Dtype)>,
) -> Result<(Shape, Dtype), PlanError> {
    let mut all: Option<(Shape, Dtype)> = None;
    for (turn, Turn { payload, start, .. }) in
        turns.iter().enumerate().filter_map(|(index, turn)| Some((index, turn.as_ref()?)))
    {
        let Payload { shape, dtype, .. } = *payload;
        if shape.rows != 0 && rules.tokens <= *start {
            return Err(PlanError::Start { turn, start: *start, tokens: rules.tokens });
        }
        let (others, other) = *all.get_or_insert((shape, dtype));
        if shape.layers != others.layers {
            return Err(PlanError::Layers { turn, is: shape.layers, others: others.layers });
        }
        if shape.topk != others.topk {
            return Err(PlanError::Topk { turn, is: shape.topk, others: others.topk });
        }
        if dtype != other && !rules.widens {
            return Err(PlanError::Mixed { turn, is: dtype, others: other });
        }
        all = Some((others, other.joined(dtype)));
    }
    let is_told = rules.gaps != Fill::Throw && rules.last_row != Fill::Throw;
    all.or(empty.filter(|_| is_told)).ok_or(PlanError::Empty)
}

/// Positions that are taken, as ranges that do not touch: start to end.
#[derive(Default)]
struct Covered(BTreeMap<usize, usize>);

impl Covered {
    /// Takes `range`; tells which parts of it were free, in their order.
    fn add(&mut self, range: Range<usize>, mut tell: impl FnMut(Range<usize>)) {
        let Range { start, end } = range;
        if end <= start {
            return;
        }
        let (mut from, mut to) = (start, end);
        let mut free = start;
        // Those that touch it, of which the first may begin before it, become one with it.
        let before = self.0.range(..start).next_back().filter(|&(_, &last)| start <= last);
        let first = before.map_or(start, |(&first, _)| first);
        while let Some((&next, &last)) = self.0.range(first..=end).next() {
            if free < next {
                tell(free..next);
            }
            free = free.max(last);
            from = from.min(next);
            to = to.max(last);
            self.0.remove(&next);
        }
        if free < end {
            tell(free..end);
        }
        self.0.insert(from, to);
    }
}
