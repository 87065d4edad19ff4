//! How many elements containers have, which `MessagePack` says before them: found out in a first pass.

use crate::error::TranscodeError;
use crate::tape::{Extra, MAP, Malformed, Tag, Tape, payload_of};

/// Of each container of a tape or a text, in the order in which they are opened.
#[derive(Default)]
pub(super) struct Counter {
    counts: Vec<u32>,
    /// Those that are open.
    stack: Vec<Open>,
}

struct Open {
    /// None for a part that is no part of the result.
    index: Option<usize>,
    values: u64,
    /// Keys are values as well.
    is_map: bool,
}

impl Counter {
    pub fn values(&mut self, count: usize) {
        if let Some(open) = self.stack.last_mut() {
            open.values += count as u64;
        }
    }

    pub fn open<E>(&mut self, is_map: bool) -> Result<(), TranscodeError<E>> {
        self.values(1);
        let index = Some(self.counts.len());
        push(&mut self.counts, 0)?;
        push(&mut self.stack, Open { index, values: 0, is_map })
    }

    pub fn close<E>(&mut self) -> Result<(), TranscodeError<E>> {
        let Open { index, values, is_map } = self.stack.pop().ok_or(Malformed)?;
        let count = if is_map { values / 2 } else { values };
        let count = u32::try_from(count).map_err(|_| TranscodeError::TooLarge)?;
        match index.and_then(|index| self.counts.get_mut(index)) {
            Some(place) => *place = count,
            None => return Err(TranscodeError::Malformed),
        }
        Ok(())
    }

    /// A part whose values do not count where it stands.
    fn open_part<E>(&mut self) -> Result<(), TranscodeError<E>> {
        push(&mut self.stack, Open { index: None, values: 0, is_map: false })
    }

    fn close_part<E>(&mut self) -> Result<(), TranscodeError<E>> {
        match self.stack.pop() {
            Some(Open { index: None, .. }) => Ok(()),
            _ => Err(TranscodeError::Malformed),
        }
    }

    pub fn finish<E>(self) -> Result<Counts, TranscodeError<E>> {
        if self.stack.is_empty() {
            Ok(Counts(self.counts.into_iter()))
        } else {
            Err(TranscodeError::Malformed)
        }
    }
}

fn push<T, E>(list: &mut Vec<T>, item: T) -> Result<(), TranscodeError<E>> {
    if list.len() == list.capacity() {
        list.try_reserve(1).map_err(|_| TranscodeError::TooLarge)?;
    }
    list.push(item);
    Ok(())
}

/// The counts, in their order.
pub(super) struct Counts(std::vec::IntoIter<u32>);

impl Counts {
    pub fn take(&mut self) -> Result<u32, Malformed> {
        self.0.next().ok_or(Malformed)
    }
}

/// Those of a tape.
pub(super) fn count<E>(
    tape: Tape<'_>,
    mut poll: impl FnMut() -> Result<(), E>,
) -> Result<Counts, TranscodeError<E>> {
    let mut counter = Counter::default();
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

/// Tells how many words belong to it.
fn extra<E>(payload: usize, counter: &mut Counter) -> Result<usize, TranscodeError<E>> {
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
