//! The turns of one call of `decodeExperts` or `concatExperts`, from their arguments to the decoded sample.
//!
//! | step | thread | function |
//! |---|---|---|
//! | read the numbers of each turn | JS | [`TurnList::new`] |
//! | note where the bytes of a turn are | JS | [`TurnList::put`] |
//! | resolve what headers give | JS | [`TurnList::resolve_heads`] |
//! | scan the turns that need it | task | [`TurnList::resolve`] |
//! | place the rows, make the result's memory | JS | [`TurnList::plan`] |
//! | decode | task | [`TurnList::fill`] |

use std::ops::Range;

use crate::payload::{Declared, Hints, PayloadError, Shape, whole};
use crate::{
    ConcatConfig, Dtype, EncodedPayload, Encoding, ExpertsError, ExpertsPlan, PayloadData,
    PayloadFormat, PollFn, ResolvedPayload, Turn, fill, plan,
};

/// Numbers that describe a turn.
///
/// | index | number |
/// |---|---|
/// | 0 | index in [`PayloadFormat::ALL`]; NaN for a turn without experts |
/// | 1 | dimensions of the declared shape |
/// | 2, 3, 4 | the first three dimensions |
/// | 5 | declared dtype, an index in [`Dtype::ALL`] |
/// | 6 | declared start |
/// | 7 | start that the caller gave |
/// | 8 | tokens of the sample when the turn ended |
///
/// NaN stands for a number that is absent.
pub const TURN_NUMBERS: usize = 9;

/// Place of the bytes of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRange {
    /// Index of the segment that holds them.
    pub segment: usize,
    /// Bytes of that segment.
    pub range: Range<usize>,
}

impl SourceRange {
    /// Returns the bytes; none if the segment does not exist, since an empty turn may have no segment.
    fn bytes<'a, B: AsRef<[u8]>>(&self, segments: &'a [B]) -> &'a [u8] {
        let segment = segments.get(self.segment).map(AsRef::as_ref).unwrap_or_default();
        segment.get(self.range.clone()).unwrap_or_default()
    }
}

/// A turn as the caller gave it, and its payload once that is resolved.
#[derive(Clone, Debug)]
pub struct TurnInput {
    /// `None` while the caller still has the bytes.
    source: Option<SourceRange>,
    format: PayloadFormat,
    declared: Declared,
    start: Option<f64>,
    tokens: Option<f64>,
    resolved: Option<ResolvedPayload>,
}

impl TurnInput {
    /// Reads the numbers of [`TURN_NUMBERS`]; `None` for a turn without experts.
    #[must_use]
    pub fn from_numbers(numbers: &[f64; TURN_NUMBERS]) -> Option<Self> {
        let &[format, rank, rows, layers, topk, dtype, declared_start, start, tokens] = numbers;
        let present = |number: f64| (!number.is_nan()).then_some(number);
        // An empty list is not a valid shape, so any other rank than three is rejected later.
        let shape = if (rank as usize) == 3 { vec![rows, layers, topk] } else { Vec::new() };
        let dtype = present(dtype).and_then(|index| Dtype::ALL.get(index as usize)).copied();
        let declared =
            Declared { shape: present(rank).map(|_| shape), dtype, start: present(declared_start) };
        Some(Self {
            source: None,
            format: PayloadFormat::ALL.get(present(format)? as usize).copied()?,
            declared,
            start: present(start),
            tokens: present(tokens),
            resolved: None,
        })
    }

    fn resolve<E: From<PayloadError>>(
        &mut self,
        arrived: &[u8],
        hints: &Hints,
        scan: Option<PollFn<'_, E>>,
    ) -> Result<(), E> {
        self.resolved = match self.encoding() {
            None => {
                let utf8 = if scan.is_some() { self.utf8_of(arrived) } else { None };
                ResolvedPayload::from_text(arrived, utf8, hints, scan)?
            }
            Some(encoding) => {
                let encoded = self.encoded(arrived.len(), encoding);
                ResolvedPayload::from_data(arrived, encoded, hints, scan)?
            }
        };
        Ok(())
    }

    /// Returns the encoding of data; `None` for a text, whose start shows it.
    fn encoding(&self) -> Option<Encoding> {
        match self.format {
            PayloadFormat::Text | PayloadFormat::Latin1 => None,
            PayloadFormat::Base64 => Some(Encoding::Base64),
            PayloadFormat::Base85 => Some(Encoding::Base85),
            PayloadFormat::File | PayloadFormat::Raw => Some(Encoding::Raw),
        }
    }

    fn encoded(&self, len: usize, encoding: Encoding) -> EncodedPayload {
        EncodedPayload {
            data: PayloadData::Range(0..len),
            encoding,
            declared: self.declared.clone(),
            implied: (self.format != PayloadFormat::File).then(|| encoding.implied()),
        }
    }

    /// Converts Latin-1 beyond ASCII to UTF-8; `None` if the bytes are UTF-8 already.
    fn utf8_of(&self, arrived: &[u8]) -> Option<Vec<u8>> {
        if self.format != PayloadFormat::Latin1 || arrived.is_ascii() {
            return None;
        }
        Some(arrived.iter().copied().map(char::from).collect::<String>().into_bytes())
    }

    /// Returns the resolved turn; `None` if it is not resolved.
    fn turn(&self) -> Result<Option<Turn>, PayloadError> {
        let Some(resolved) = &self.resolved else { return Ok(None) };
        let payload = *resolved.payload();
        let start = match self.start {
            Some(start) => whole(start).ok_or(PayloadError::Start)?,
            None => payload.start,
        };
        let tokens = match self.tokens {
            Some(tokens) => Some(whole(tokens).ok_or(PayloadError::Tokens)?),
            None => None,
        };
        Ok(Some(Turn { payload, start, tokens }))
    }
}

/// The turns of one call.
#[derive(Clone, Debug, Default)]
pub struct TurnList {
    hints: Hints,
    /// False for one payload that is decoded alone.
    is_chain: bool,
    turns: Vec<Option<TurnInput>>,
    plan: Option<ExpertsPlan>,
}

impl TurnList {
    /// Reads [`TURN_NUMBERS`] numbers for each turn.
    #[must_use]
    pub fn new(numbers: &[f64], hints: Hints, is_chain: bool) -> Self {
        let turns = numbers.as_chunks().0.iter().map(TurnInput::from_numbers).collect();
        Self { hints, is_chain, turns, plan: None }
    }

    /// Notes where the bytes of a turn are.
    pub fn put(&mut self, turn: usize, source: SourceRange) {
        if let Some(Some(input)) = self.turns.get_mut(turn) {
            input.source = Some(source);
        }
    }

    /// Returns whether a turn has experts.
    #[must_use]
    pub fn has_experts(&self, turn: usize) -> bool {
        self.turns.get(turn).is_some_and(Option::is_some)
    }

    /// Removes all turns.
    pub fn clear(&mut self) {
        self.turns.clear();
    }

    /// Resolves turns whose bytes the caller still has, as far as their headers allow. `bytes` has one item for each turn.
    ///
    /// # Errors
    /// If a payload is malformed.
    pub fn resolve_heads<'a, S>(
        &mut self,
        bytes: impl Iterator<Item = Option<&'a [u8]>>,
    ) -> Result<(), ExpertsError<S>> {
        let turns = self.turns.iter_mut().zip(bytes);
        resolve_each(turns, self.is_chain, &self.hints, None)
    }

    /// Resolves all turns, scanning those that need it.
    ///
    /// # Errors
    /// If a payload is malformed, and the errors of `poll`.
    pub fn resolve<S, B: AsRef<[u8]>>(
        &mut self,
        segments: &[B],
        poll: impl FnMut() -> Result<(), S>,
    ) -> Result<(), ExpertsError<S>> {
        let mut poll = stopping(poll);
        self.resolve_gathered(segments, Some(&mut poll))
    }

    fn resolve_gathered<S, B: AsRef<[u8]>>(
        &mut self,
        segments: &[B],
        scan: Option<PollFn<'_, ExpertsError<S>>>,
    ) -> Result<(), ExpertsError<S>> {
        let turns = self.turns.iter_mut().map(|input| {
            let source = input.as_ref().and_then(|input| input.source.as_ref());
            let arrived = source.map(|source| source.bytes(segments));
            (input, arrived)
        });
        resolve_each(turns, self.is_chain, &self.hints, scan)
    }

    /// Plans where all rows go: by `config`, or as they are for a payload that is decoded alone. Returns `None` if a turn
    /// needs [`Self::resolve`] first.
    ///
    /// # Errors
    /// If a payload is malformed or the turns do not fit together.
    pub fn plan<S, B: AsRef<[u8]>>(
        &mut self,
        segments: &[B],
        config: Option<&ConcatConfig>,
    ) -> Result<Option<&ExpertsPlan>, ExpertsError<S>> {
        self.resolve_gathered(segments, None)?;
        let Some(turns) = self.turns()? else { return Ok(None) };
        let plan = match (config, turns.first()) {
            (Some(config), _) => plan(&turns, config, self.empty_sample())?,
            (None, Some(Some(turn))) => ExpertsPlan::whole(turn),
            (None, _) => return Err(ExpertsError::NoTurn),
        };
        Ok(Some(self.plan.insert(plan)))
    }

    /// Returns shape and dtype of a sample none of whose turns has experts; `None` without hints of both sizes.
    fn empty_sample(&self) -> Option<(Shape, Dtype)> {
        let (layers, topk) = self.hints.layers.zip(self.hints.topk)?;
        Some((Shape { rows: 0, layers, topk }, Dtype::Uint8))
    }

    /// Returns the resolved turns; `None` if one is not resolved.
    fn turns<S>(&self) -> Result<Option<Vec<Option<Turn>>>, ExpertsError<S>> {
        let mut turns = Vec::with_capacity(self.turns.len());
        for (index, input) in self.turns.iter().enumerate() {
            let Some(input) = input else {
                turns.push(None);
                continue;
            };
            let turn = input.turn().map_err(|error| {
                ExpertsError::from(error).in_turn(self.is_chain.then_some(index))
            })?;
            if turn.is_none() {
                return Ok(None);
            }
            turns.push(turn);
        }
        Ok(Some(turns))
    }

    /// Decodes every turn to its place in `out`, which has the size of the plan, and fills the gaps.
    ///
    /// # Errors
    /// If the data of a payload is malformed, and the errors of `poll`.
    pub fn fill<S, B: AsRef<[u8]>>(
        &self,
        segments: &[B],
        out: &mut [u8],
        poll: impl FnMut() -> Result<(), S>,
    ) -> Result<(), ExpertsError<S>> {
        let plan = self.plan.as_ref().ok_or(ExpertsError::NoPlan)?;
        let mut poll = stopping(poll);
        for (index, (input, runs)) in self.turns.iter().zip(&plan.runs).enumerate() {
            let Some(TurnInput { source, resolved: Some(resolved), .. }) = input else { continue };
            let arrived = source.as_ref().map(|source| source.bytes(segments)).unwrap_or_default();
            let placed = resolved.place(arrived, (runs, plan.dtype), out, &mut poll);
            placed.map_err(|error: ExpertsError<S>| {
                error.offset_by(resolved.data_offset()).in_turn(self.is_chain.then_some(index))
            })?;
        }
        fill(plan, out, poll)
    }
}

/// Resolves the turns whose bytes are there and that are not resolved yet.
fn resolve_each<'a, 'b, S>(
    turns: impl Iterator<Item = (&'a mut Option<TurnInput>, Option<&'b [u8]>)>,
    is_chain: bool,
    hints: &Hints,
    mut scan: Option<PollFn<'_, ExpertsError<S>>>,
) -> Result<(), ExpertsError<S>> {
    for (index, (input, arrived)) in turns.enumerate() {
        let (Some(input), Some(arrived)) = (input, arrived) else { continue };
        if input.resolved.is_some() {
            continue;
        }
        let scan = scan.as_mut().map(|poll| &mut **poll as PollFn<'_, ExpertsError<S>>);
        let resolved = input.resolve(arrived, hints, scan);
        resolved.map_err(|error| error.in_turn(is_chain.then_some(index)))?;
    }
    Ok(())
}

/// Makes the error of a poll one of the list.
fn stopping<S>(
    mut poll: impl FnMut() -> Result<(), S>,
) -> impl FnMut() -> Result<(), ExpertsError<S>> {
    move || poll().map_err(ExpertsError::Stopped)
}
