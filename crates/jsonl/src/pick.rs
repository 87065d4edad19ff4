//! Values taken out of rows by JSON Pointers, while the rows are checked.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use offloop_grammar::{Stop, Text, Visit, key_of, read};

/// A text that is no JSON Pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerError {
    /// It is not empty, and has no `/` at its start.
    NoSlash,
    /// A `~` that is neither `~0` nor `~1`.
    Escape,
}

impl fmt::Display for PointerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSlash => "must be empty or begin with /",
            Self::Escape => "has a ~ that is neither ~0 nor ~1",
        })
    }
}

impl Error for PointerError {}

/// Pointers, as a tree of their keys.
#[derive(Clone, Debug)]
pub struct Fields {
    nodes: Vec<Node>,
    count: usize,
}

#[derive(Clone, Debug, Default)]
struct Node {
    children: Vec<(Vec<u8>, usize)>,
    /// The pointers that end here, and those that end here or below.
    fields: Vec<usize>,
    below: Vec<usize>,
}

const ROOT: usize = 0;

impl Fields {
    /// Pointers in UTF-8.
    ///
    /// # Errors
    /// The first that is none, and why.
    pub fn new(pointers: &[Vec<u8>]) -> Result<Self, (usize, PointerError)> {
        let mut fields = Self { nodes: vec![Node::default()], count: pointers.len() };
        for (index, pointer) in pointers.iter().enumerate() {
            fields.add(pointer, index).map_err(|error| (index, error))?;
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

    fn add(&mut self, pointer: &[u8], index: usize) -> Result<(), PointerError> {
        let mut segments = pointer.split(|&byte| byte == b'/');
        if segments.next() != Some(&[]) {
            return Err(PointerError::NoSlash);
        }
        let mut node = ROOT;
        self.mark(node, index);
        for segment in segments {
            node = self.child_made(node, key_of(segment).ok_or(PointerError::Escape)?);
            self.mark(node, index);
        }
        if let Some(node) = self.nodes.get_mut(node) {
            node.fields.push(index);
        }
        Ok(())
    }

    fn mark(&mut self, node: usize, index: usize) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.below.push(index);
        }
    }

    fn child_made(&mut self, node: usize, key: Vec<u8>) -> usize {
        if let Some(child) = self.child(node, &key) {
            return child;
        }
        let child = self.nodes.len();
        if let Some(node) = self.nodes.get_mut(node) {
            node.children.push((key, child));
        }
        self.nodes.push(Node::default());
        child
    }

    fn child(&self, node: usize, key: &[u8]) -> Option<usize> {
        let children = self.nodes.get(node)?.children.iter();
        children.clone().find(|(other, _)| other == key).map(|&(_, child)| child)
    }

    fn fields_at(&self, node: usize) -> &[usize] {
        self.nodes.get(node).map(|node| &*node.fields).unwrap_or_default()
    }

    fn is_leaf(&self, node: usize) -> bool {
        self.nodes.get(node).is_none_or(|node| node.children.is_empty())
    }
}

/// Where the values of the fields stand in a row; none of those that are absent. None at all where the row is no JSON.
#[must_use]
pub fn pick(row: &[u8], fields: &Fields) -> Option<Vec<Option<Range<usize>>>> {
    let mut picker = Picker {
        fields,
        found: vec![None; fields.count],
        frames: Vec::new(),
        next: Some(ROOT),
        skipped: 0,
        begun: None,
    };
    match read(row, &mut picker) {
        Ok(()) => Some(picker.found),
        Err(Stop::Unexpected(_)) => None,
        Err(Stop::Visitor(never)) => match never {},
    }
}

/// A container with fields in it.
struct Frame {
    node: usize,
    start: usize,
    /// Of the element that comes, in an array.
    index: Option<usize>,
}

struct Picker<'a> {
    fields: &'a Fields,
    found: Vec<Option<Range<usize>>>,
    frames: Vec<Frame>,
    /// The node of the value that comes, if it or something in it is wanted.
    next: Option<usize>,
    /// Containers that are open in which nothing is wanted.
    skipped: usize,
    /// The outermost of them, where it is wanted itself.
    begun: Option<(usize, usize)>,
}

impl Picker<'_> {
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

    /// What the element behind it is.
    fn behind_value(&mut self) {
        self.next = None;
        let Some(Frame { node, index: Some(index), .. }) = self.frames.last_mut() else { return };
        *index += 1;
        self.next = self.fields.child(*node, index.to_string().as_bytes());
    }
}

impl Visit for Picker<'_> {
    type Error = std::convert::Infallible;

    fn open(&mut self, is_object: bool, at: usize) -> Result<(), Self::Error> {
        let node = self.next.filter(|_| self.skipped == 0);
        match node {
            Some(node) if !self.fields.is_leaf(node) => {
                let index = (!is_object).then_some(0);
                self.frames.push(Frame { node, start: at, index });
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
            if let Some(Frame { node, start, .. }) = self.frames.pop() {
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
        let Some(&Frame { node, .. }) = self.frames.last() else { return Ok(()) };
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
