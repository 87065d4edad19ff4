//! Counts the elements of containers, which `MessagePack` writes before them. `pack` calls it, in tasks.

use crate::error::{TooDeep, TranscodeError};
use crate::tape::{Extra, MAP, Malformed, Tag, Tape, payload_of};

/// Counts the elements of each container of a tape.
pub(super) struct ElementCounter {
    /// The counts, in the order in which containers begin.
    counts: Vec<u32>,
    /// The containers that have not ended.
    stack: Vec<OpenContainer>,
    /// How many parts for JSON only are open. They do not count.
    parts: usize,
    max_depth: usize,
}

/// A container, or a part for JSON only, that has not ended.
struct OpenContainer {
    /// The index of its count; `None` for a part for JSON only.
    index: Option<usize>,
    values: u64,
    /// Whether keys count as values.
    is_map: bool,
}

impl ElementCounter {
    pub fn new(max_depth: usize) -> Self {
        Self { counts: Vec::new(), stack: Vec::new(), parts: 0, max_depth }
    }

    /// Adds values to the open container.
    pub fn values(&mut self, count: usize) {
        if let Some(open) = self.stack.last_mut() {
            open.values += count as u64;
        }
    }

    /// Begins a container.
    pub fn open<E>(&mut self, is_map: bool) -> Result<(), TranscodeError<E>> {
        self.values(1);
        if self.parts == 0 && self.max_depth <= self.stack.len() {
            return Err(TranscodeError::TooDeep(TooDeep { max_depth: self.max_depth }));
        }
        let index = Some(self.counts.len());
        push(&mut self.counts, 0)?;
        push(&mut self.stack, OpenContainer { index, values: 0, is_map })
    }

    /// Ends a container.
    pub fn close<E>(&mut self) -> Result<(), TranscodeError<E>> {
        let OpenContainer { index, values, is_map } = self.stack.pop().ok_or(Malformed)?;
        let count = if is_map { values / 2 } else { values };
        let count = u32::try_from(count).map_err(|_| TranscodeError::TooLarge)?;
        match index.and_then(|index| self.counts.get_mut(index)) {
            Some(place) => *place = count,
            None => return Err(TranscodeError::Malformed),
        }
        Ok(())
    }

    /// Begins a part for JSON only, whose values do not count.
    fn open_part<E>(&mut self) -> Result<(), TranscodeError<E>> {
        self.parts += 1;
        push(&mut self.stack, OpenContainer { index: None, values: 0, is_map: false })
    }

    fn close_part<E>(&mut self) -> Result<(), TranscodeError<E>> {
        match self.stack.pop() {
            Some(OpenContainer { index: None, .. }) => {
                self.parts = self.parts.saturating_sub(1);
                Ok(())
            }
            _ => Err(TranscodeError::Malformed),
        }
    }

    /// Returns the counts; fails if a container has not ended.
    pub fn finish<E>(self) -> Result<ElementCounts, TranscodeError<E>> {
        if self.stack.is_empty() {
            Ok(ElementCounts(self.counts.into_iter()))
        } else {
            Err(TranscodeError::Malformed)
        }
    }
}

/// Appends an item; fails where there is no memory.
pub(super) fn push<T, E>(list: &mut Vec<T>, item: T) -> Result<(), TranscodeError<E>> {
    if list.len() == list.capacity() {
        list.try_reserve(1).map_err(|_| TranscodeError::TooLarge)?;
    }
    list.push(item);
    Ok(())
}

/// The counts, in the order in which containers begin.
pub(super) struct ElementCounts(std::vec::IntoIter<u32>);

impl ElementCounts {
    /// Returns the count of the next container.
    pub fn take(&mut self) -> Result<u32, Malformed> {
        self.0.next().ok_or(Malformed)
    }
}

/// Counts the elements of each container of a tape.
pub(super) fn count<E>(
    tape: Tape<'_>,
    max_depth: usize,
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<ElementCounts, TranscodeError<E>> {
    let mut counter = ElementCounter::new(max_depth);
    for segment in tape.segments {
        let mut words = segment.words;
        while let Some((&word, rest)) = words.split_first() {
            let payload = payload_of(word);
            let operands = match Tag::of(word) {
                Tag::Int
                | Tag::Double
                | Tag::Latin1
                | Tag::Utf16
                | Tag::Rope
                | Tag::Literal
                | Tag::Long
                | Tag::Date => {
                    counter.values(1);
                    0
                }
                Tag::Open => {
                    counter.open(payload == MAP)?;
                    0
                }
                Tag::Close => {
                    counter.close()?;
                    0
                }
                Tag::Entry => {
                    let packed = tape.lexicon.get(payload).ok_or(Malformed)?.packed();
                    if packed.opens {
                        counter.open(false)?;
                    } else if packed.is_value {
                        counter.values(1);
                    }
                    0
                }
                Tag::Name => 1,
                Tag::Ints => {
                    counter.values(payload);
                    payload
                }
                Tag::Doubles => {
                    counter.values(payload);
                    0
                }
                Tag::Text => {
                    counter.values(1);
                    3
                }
                Tag::Extra => extra(payload, &mut counter)?,
            };
            words = rest.get(operands..).ok_or(Malformed)?;
        }
        poll().map_err(TranscodeError::Stopped)?;
    }
    counter.finish()
}

/// Counts a word with the tag `Extra`; returns the number of its operands.
fn extra<E>(payload: usize, counter: &mut ElementCounter) -> Result<usize, TranscodeError<E>> {
    match Extra::of(payload).ok_or(Malformed)? {
        Extra::Row => return Err(TranscodeError::Malformed),
        Extra::Bytes | Extra::LongBytes => {
            counter.values(1);
            return Ok(2);
        }
        Extra::Raw => {
            counter.values(1);
            return Ok(1);
        }
        Extra::OnlyJson => counter.open_part()?,
        Extra::OnlyMsgpack => counter.close_part()?,
        Extra::Both => {}
    }
    Ok(0)
}
