//! Reads rows and counts the values of their fields. Runs in tasks; `field_scan` calls it.
//!
//! A key may appear twice in an object. The last one counts, as for `JSON.parse`. A row with such keys is read twice: the
//! first time finds them, the second time leaves their values out.

use std::collections::BTreeMap;

use offloop_grammar::{JsonVisitor, ReadError, Text, read};

use crate::fields::{FieldIndex, FieldTree, OTHERS, ROOT, ValueType};
use crate::progress::{Interrupt, PollFn};

/// Counts the values of `json`, in which strings that begin with `mark` stand for `NaN` and infinities. Returns whether
/// it is JSON; otherwise it counts nothing.
///
/// # Errors
/// [`Interrupt`] from `poll`.
pub(crate) fn count_fields(
    json: &[u8],
    mark: &str,
    tree: &mut FieldTree,
    poll: PollFn<'_>,
) -> Result<bool, Interrupt> {
    let (mut outcome, replaced) = FieldReader::new(tree, mark, poll).read(json);
    if outcome.is_ok() && !replaced.is_empty() {
        tree.drop_row();
        let reader = FieldReader { replaced: &replaced, ..FieldReader::new(tree, mark, poll) };
        outcome = reader.read(json).0;
    }
    match outcome {
        Ok(()) => tree.keep_row(),
        Err(_) => tree.drop_row(),
    }
    match outcome {
        Err(ReadError::Visitor(interrupt)) => Err(interrupt),
        outcome => Ok(outcome.is_ok()),
    }
}

/// Visitor that adds the values of one row to a tree.
struct FieldReader<'a> {
    tree: &'a mut FieldTree,
    mark: &'a [u8],
    poll: PollFn<'a>,
    open: Vec<OpenField>,
    /// For each [`slot`]: whether a later key replaces the key there. The first reading finds them.
    replaced: &'a [bool],
    found: Vec<bool>,
    /// Marked strings so far.
    marked: usize,
    /// Open containers whose values are not counted, and the outermost of them.
    skipped: usize,
    outermost: Extent,
}

/// Start of a container.
#[derive(Clone, Copy, Default)]
struct Extent {
    /// The field to which the container belongs; `None` if a later value replaces it.
    field: Option<FieldIndex>,
    is_object: bool,
    at: usize,
    /// Marked strings before the container.
    marked: usize,
}

/// A container whose values are counted.
struct OpenField {
    extent: Extent,
    field: FieldIndex,
    /// The field of the next value; `None` before the first element, and where a later value replaces the next one.
    next: Option<FieldIndex>,
    /// The likely place of the next key.
    guess: usize,
    /// Offsets of the keys that have no field of their own.
    others: BTreeMap<Vec<u8>, u64>,
}

impl<'a> FieldReader<'a> {
    fn new(tree: &'a mut FieldTree, mark: &'a str, poll: PollFn<'a>) -> Self {
        Self {
            tree,
            mark: mark.as_bytes(),
            poll,
            open: Vec::new(),
            replaced: &[],
            found: Vec::new(),
            marked: 0,
            skipped: 0,
            outermost: Extent::default(),
        }
    }

    /// Reads a row. Returns which keys a later key replaces, too.
    fn read(mut self, json: &[u8]) -> (Result<(), ReadError<Interrupt>>, Vec<bool>) {
        let outcome = read(json, &mut self);
        (outcome, self.found)
    }

    /// Returns the field of the value that begins.
    #[inline]
    fn next(&mut self) -> Option<FieldIndex> {
        let Some(open) = self.open.last_mut() else { return Some(ROOT) };
        if !open.extent.is_object && open.next.is_none() {
            open.next = Some(self.tree.elements(open.field));
        }
        open.next
    }

    #[inline]
    fn scalar(&mut self, kind: ValueType, size: usize) {
        if self.skipped != 0 {
            return;
        }
        if let Some(field) = self.next() {
            self.tree.add(field, kind, size);
        }
    }

    /// Counts a container that ends at `end`.
    fn container(&mut self, extent: Extent, end: usize) {
        let Some(field) = extent.field else { return };
        let kind = if extent.is_object { ValueType::Object } else { ValueType::Array };
        // A marked string has a mark and quotes that the row does not have.
        let added = (self.marked - extent.marked) * (self.mark.len() + 2);
        self.tree.add(field, kind, end - extent.at - added);
    }

    /// Notes that a later key replaces the key at `at`.
    fn replace(&mut self, at: usize) {
        let slot = slot(at);
        if self.found.len() <= slot {
            self.found.resize(slot + 1, false);
        }
        if let Some(place) = self.found.get_mut(slot) {
            *place = true;
        }
    }
}

/// Returns the slot of the key at `at`. Two keys are at least five bytes apart, so no two share a slot.
fn slot(at: usize) -> usize {
    at / 4
}

impl JsonVisitor for FieldReader<'_> {
    type Error = Interrupt;

    fn progress(&mut self, _: usize) -> Result<(), Interrupt> {
        (self.poll)()
    }

    fn open(&mut self, is_object: bool, at: usize) -> Result<(), Interrupt> {
        if self.skipped != 0 {
            self.skipped += 1;
            return Ok(());
        }
        let extent = Extent { field: self.next(), is_object, at, marked: self.marked };
        let Some(field) = extent.field.filter(|&field| field != OTHERS) else {
            (self.skipped, self.outermost) = (1, extent);
            return Ok(());
        };
        self.open.push(OpenField { extent, field, next: None, guess: 0, others: BTreeMap::new() });
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<(), Interrupt> {
        if self.skipped == 0 {
            if let Some(open) = self.open.pop() {
                self.container(open.extent, end);
            }
            return Ok(());
        }
        self.skipped -= 1;
        if self.skipped == 0 {
            self.container(self.outermost, end);
        }
        Ok(())
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), Interrupt> {
        if self.skipped != 0 {
            return Ok(());
        }
        let is_replaced = self.replaced.get(slot(text.at)) == Some(&true);
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        if is_replaced {
            open.next = None;
            return Ok(());
        }
        let key = text.unescaped();
        let field = self.tree.child(open.field, &key, &mut open.guess);
        open.next = Some(field);
        let earlier = if field == OTHERS {
            open.others.insert(key.into_owned(), text.at as u64).map(|at| at as usize)
        } else {
            // The offset of an object names it within the row.
            self.tree.see(field, open.extent.at, text.at)
        };
        if let Some(earlier) = earlier {
            self.replace(earlier);
        }
        Ok(())
    }

    fn string(&mut self, text: Text<'_>) -> Result<(), Interrupt> {
        let size = text.bytes.len() + 2;
        if self.mark.is_empty() || !text.bytes.starts_with(self.mark) {
            self.scalar(ValueType::String, size);
            return Ok(());
        }
        self.marked += 1;
        self.scalar(ValueType::Float, size - self.mark.len() - 2);
        Ok(())
    }

    #[inline]
    fn number(&mut self, text: &[u8], _: usize) -> Result<(), Interrupt> {
        if self.skipped != 0 {
            return Ok(());
        }
        let is_float = text.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        self.scalar(if is_float { ValueType::Float } else { ValueType::Integer }, text.len());
        Ok(())
    }

    fn skips_integers(&self) -> bool {
        self.skipped != 0
    }

    fn literal(&mut self, value: Option<bool>, _: usize) -> Result<(), Interrupt> {
        match value {
            None => self.scalar(ValueType::Null, 4),
            Some(true) => self.scalar(ValueType::Boolean, 4),
            Some(false) => self.scalar(ValueType::Boolean, 5),
        }
        Ok(())
    }
}
