//! Picks values out of rows by JSON Pointers, while it validates the rows. Runs in a task; the reader of a file calls
//! it.

use std::convert::Infallible;
use std::ops::Range;

use offloop_grammar::{
    ChildKeys, JsonVisitor, KeyTree, PointerError, ReadError, Text, pointer_keys, read,
};

/// Compiled pointers: a tree of their keys.
#[derive(Clone, Debug)]
pub struct Fields {
    nodes: Vec<FieldNode>,
    count: usize,
}

#[derive(Clone, Debug, Default)]
struct FieldNode {
    children: ChildKeys,
    /// The pointers that end at this node.
    fields: Vec<usize>,
    /// The pointers that end at this node or below it.
    below: Vec<usize>,
}

const ROOT: usize = 0;

impl Fields {
    /// Compiles `pointers`, which are UTF-8.
    ///
    /// # Errors
    /// The index of the first invalid pointer, and why it is invalid.
    pub fn new(pointers: &[Vec<u8>]) -> Result<Self, (usize, PointerError)> {
        let mut fields = Self { nodes: Vec::new(), count: pointers.len() };
        let mut tree = KeyTree::default();
        for (index, pointer) in pointers.iter().enumerate() {
            fields.add(pointer, index, &mut tree).map_err(|error| (index, error))?;
        }
        for (node, children) in fields.nodes.iter_mut().zip(tree.finish()) {
            node.children = children;
        }
        Ok(fields)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn add(
        &mut self,
        pointer: &[u8],
        index: usize,
        tree: &mut KeyTree,
    ) -> Result<(), PointerError> {
        let keys = pointer_keys(pointer)?;
        let mut node = ROOT;
        self.mark(node, index);
        for key in keys {
            node = tree.child(node, key?);
            self.mark(node, index);
        }
        if let Some(node) = self.nodes.get_mut(node) {
            node.fields.push(index);
        }
        Ok(())
    }

    /// Adds pointer `index` to a node. Makes the node where there is none.
    fn mark(&mut self, node: usize, index: usize) {
        if self.nodes.len() <= node {
            self.nodes.resize_with(node + 1, FieldNode::default);
        }
        if let Some(node) = self.nodes.get_mut(node) {
            node.below.push(index);
        }
    }

    fn child(&self, node: usize, key: &[u8]) -> Option<usize> {
        self.nodes.get(node)?.children.find(key)
    }

    fn fields_at(&self, node: usize) -> &[usize] {
        self.nodes.get(node).map(|node| &*node.fields).unwrap_or_default()
    }

    fn is_leaf(&self, node: usize) -> bool {
        self.nodes.get(node).is_none_or(|node| node.children.is_empty())
    }
}

/// Returns the bytes of each field's value in a row, or `None` for an absent one. Returns `None` for a row that is not
/// JSON.
#[must_use]
pub fn pick(row: &[u8], fields: &Fields) -> Option<Vec<Option<Range<usize>>>> {
    let never = || Ok::<(), Infallible>(());
    match pick_polled(row, fields, never) {
        Ok(found) => found,
        Err(never) => match never {},
    }
}

/// Picks like [`pick`]. Calls `poll` at least once every [`offloop_grammar::PROGRESS`] bytes.
pub(crate) fn pick_polled<E>(
    row: &[u8],
    fields: &Fields,
    poll: impl FnMut() -> Result<(), E>,
) -> Result<Option<Vec<Option<Range<usize>>>>, E> {
    let mut picker = Picker {
        fields,
        found: vec![None; fields.count],
        frames: Vec::new(),
        next: Some(ROOT),
        skipped: 0,
        begun: None,
        poll,
    };
    match read(row, &mut picker) {
        Ok(()) => Ok(Some(picker.found)),
        Err(ReadError::Unexpected(_)) => Ok(None),
        Err(ReadError::Visitor(error)) => Err(error),
    }
}

/// An open container with fields in it.
struct FieldContainer {
    node: usize,
    start: usize,
    /// The index of the next element of an array.
    index: Option<usize>,
}

struct Picker<'a, P> {
    fields: &'a Fields,
    found: Vec<Option<Range<usize>>>,
    frames: Vec<FieldContainer>,
    /// The node of the next value, if a field is that value or in it.
    next: Option<usize>,
    /// The number of open containers in which there are no fields.
    skipped: usize,
    /// The node and the offset of the outermost skipped container, if that is a field.
    begun: Option<(usize, usize)>,
    poll: P,
}

impl<P> Picker<'_, P> {
    fn keep(&mut self, node: usize, range: &Range<usize>) {
        for &field in self.fields.fields_at(node) {
            if let Some(place) = self.found.get_mut(field) {
                *place = Some(range.clone());
            }
        }
    }

    fn scalar(&mut self, range: &Range<usize>) {
        if self.skipped == 0 {
            if let Some(node) = self.next {
                self.keep(node, range);
            }
            self.behind_value();
        }
    }

    /// Goes on to the next element of an array.
    fn behind_value(&mut self) {
        self.next = None;
        let Some(FieldContainer { node, index: Some(index), .. }) = self.frames.last_mut() else {
            return;
        };
        *index += 1;
        self.next = self.fields.child(*node, index.to_string().as_bytes());
    }
}

impl<E, P: FnMut() -> Result<(), E>> JsonVisitor for Picker<'_, P> {
    type Error = E;

    fn progress(&mut self, _: usize) -> Result<(), E> {
        (self.poll)()
    }

    fn open(&mut self, is_object: bool, at: usize) -> Result<(), Self::Error> {
        let node = self.next.filter(|_| self.skipped == 0);
        match node {
            Some(node) if !self.fields.is_leaf(node) => {
                let index = (!is_object).then_some(0);
                self.frames.push(FieldContainer { node, start: at, index });
                self.next = if is_object { None } else { self.fields.child(node, b"0") };
            }
            _ => {
                self.begun =
                    node.map(|node| (node, at)).or(self.begun.filter(|_| self.skipped != 0));
                self.skipped += 1;
            }
        }
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<(), Self::Error> {
        if self.skipped == 0 {
            if let Some(FieldContainer { node, start, .. }) = self.frames.pop() {
                self.keep(node, &(start..end));
            }
            self.behind_value();
            return Ok(());
        }
        self.skipped -= 1;
        if self.skipped == 0 {
            if let Some((node, start)) = self.begun.take() {
                self.keep(node, &(start..end));
            }
            self.behind_value();
        }
        Ok(())
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), Self::Error> {
        if self.skipped != 0 {
            return Ok(());
        }
        let Some(&FieldContainer { node, .. }) = self.frames.last() else { return Ok(()) };
        self.next = self.fields.child(node, &text.unescaped());
        let replaced = self.next.and_then(|node| self.fields.nodes.get(node));
        for &field in replaced.map(|node| &*node.below).unwrap_or_default() {
            if let Some(place) = self.found.get_mut(field) {
                *place = None;
            }
        }
        Ok(())
    }

    fn string(&mut self, text: Text<'_>) -> Result<(), Self::Error> {
        let Range { start, end } = text.range();
        self.scalar(&(start - 1..end + 1));
        Ok(())
    }

    fn skips_integers(&self) -> bool {
        self.skipped != 0
    }

    fn number(&mut self, text: &[u8], at: usize) -> Result<(), Self::Error> {
        self.scalar(&(at..at + text.len()));
        Ok(())
    }

    fn literal(&mut self, value: Option<bool>, at: usize) -> Result<(), Self::Error> {
        self.scalar(&(at..at + if value == Some(false) { 5 } else { 4 }));
        Ok(())
    }
}
