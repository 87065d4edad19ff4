//! Keeps counts of the fields of rows: how many rows have a field, the types and the sizes of its values. Runs in tasks;
//! `field_reader` fills it row by row.
//!
//! A field is a JSON Pointer in which `*` stands for every element of an array. The first [`MOST_FIELDS`] fields have
//! counts of their own; all others share one. So neither keys nor rows make the memory grow without bound.

use crate::field_text::{Segment, pointer, quoted};

/// Fields that have counts of their own, the root included.
const MOST_FIELDS: usize = 1000;
/// Levels of fields that have counts of their own.
const MOST_LEVELS: usize = 32;
/// Bytes of the longest key of a field that has counts of its own.
const LONGEST_KEY: usize = 256;

/// The type of a value. A number without `.`, `e` and `E` is an integer. `NaN` and infinities are floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    Null,
    Boolean,
    Integer,
    Float,
    String,
    Array,
    Object,
}

/// Counts of values: their types and their sizes in bytes of JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ValueCounts {
    /// Number of values of each [`ValueType`], in its order.
    pub types: [u64; 7],
    /// Sizes of the smallest and the largest value; 0 where there is no value.
    pub min: u64,
    pub max: u64,
    pub sum: u64,
}

impl ValueCounts {
    #[inline]
    fn add(&mut self, kind: ValueType, size: u64) {
        self.min = if self.is_empty() { size } else { self.min.min(size) };
        self.max = self.max.max(size);
        self.sum += size;
        if let Some(count) = self.types.get_mut(kind as usize) {
            *count += 1;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.min = if self.is_empty() { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        for (count, more) in self.types.iter_mut().zip(other.types) {
            *count += more;
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        // The shortest JSON has one byte.
        self.max == 0
    }
}

/// Counts of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FieldCounts {
    /// Rows that have the field.
    pub rows: u64,
    pub values: ValueCounts,
}

impl FieldCounts {
    /// Returns `rows,[types],min,max,sum`: items of a JSON list.
    fn describe(&self) -> String {
        let ValueCounts { types, min, max, sum } = self.values;
        format!("{},{types:?},{min},{max},{sum}", self.rows)
    }
}

/// Index of a field in a [`FieldTree`].
pub(crate) type FieldIndex = usize;

/// The whole row.
pub(crate) const ROOT: FieldIndex = 0;
/// All fields without counts of their own.
pub(crate) const OTHERS: FieldIndex = 1;

/// The fields of rows, and what the current row adds to their counts.
#[derive(Clone, Debug)]
pub(crate) struct FieldTree {
    nodes: Vec<FieldNode>,
    /// Fields that the current row has.
    touched: Vec<FieldIndex>,
    /// Number of nodes before the current row.
    before: usize,
    /// Number of the current reading of a row.
    reading: u64,
}

#[derive(Clone, Debug, Default)]
struct FieldNode {
    parent: FieldIndex,
    level: usize,
    key: Box<[u8]>,
    /// Index among the children of the parent.
    place: usize,
    /// The fields of objects, in the order in which they appeared.
    children: Vec<FieldIndex>,
    /// Fields of objects in the order of their keys.
    sorted: Vec<FieldIndex>,
    /// The field of all elements of arrays.
    elements: Option<FieldIndex>,
    counts: FieldCounts,
    /// Counts of the current row.
    row: ValueCounts,
    /// Place of the last key of the field; the reading 0 does not exist.
    seen: SeenKey,
}

/// Place of a key.
#[derive(Clone, Copy, Debug, Default)]
struct SeenKey {
    reading: u64,
    /// Offset of the object.
    object: usize,
    at: usize,
}

impl Default for FieldTree {
    fn default() -> Self {
        let nodes = vec![FieldNode::default(); OTHERS + 1];
        Self { before: nodes.len(), nodes, touched: Vec::new(), reading: 1 }
    }
}

impl FieldTree {
    /// Returns the field of the elements of arrays at `parent`.
    pub fn elements(&mut self, parent: FieldIndex) -> FieldIndex {
        if let Some(field) = self.nodes.get(parent).and_then(|node| node.elements) {
            return field;
        }
        let Some((field, node)) = self.add_node(parent) else { return OTHERS };
        node.elements = Some(field);
        field
    }

    /// Returns the field `key` of objects at `parent`. `guess` is its likely place, and becomes that of the next key.
    #[inline]
    pub fn child(&mut self, parent: FieldIndex, key: &[u8], guess: &mut usize) -> FieldIndex {
        let Some(node) = self.nodes.get(parent) else { return OTHERS };
        let guessed = node.children.get(*guess).copied();
        let is_right = |&field: &usize| self.nodes.get(field).is_some_and(|node| *node.key == *key);
        if let Some(field) = guessed.filter(is_right) {
            *guess += 1;
            return field;
        }
        let field = match self.search(node, key) {
            Ok(at) => node.sorted.get(at).copied(),
            Err(at) => self.add_child(parent, key, at),
        };
        let place = field.and_then(|field| self.nodes.get(field)).map(|node| node.place);
        *guess = place.map_or(*guess, |place| place + 1);
        field.unwrap_or(OTHERS)
    }

    /// Returns where the field `key` of a node is among its sorted fields, or where it belongs.
    fn search(&self, node: &FieldNode, key: &[u8]) -> Result<usize, usize> {
        let key_of = |&field: &usize| self.nodes.get(field).map_or(&[][..], |child| &child.key);
        node.sorted.binary_search_by(|field| key_of(field).cmp(key))
    }

    /// Adds the field `key`, which belongs at `at` among the sorted fields.
    fn add_child(&mut self, parent: FieldIndex, key: &[u8], at: usize) -> Option<FieldIndex> {
        if LONGEST_KEY < key.len() {
            return None;
        }
        let (field, node) = self.add_node(parent)?;
        let place = node.children.len();
        node.children.push(field);
        node.sorted.insert(at, field);
        if let Some(child) = self.nodes.get_mut(field) {
            (child.key, child.place) = (key.into(), place);
        }
        Some(field)
    }

    /// Adds a node below `parent` and returns its index and the parent, or `None` if it must be one of the others.
    fn add_node(&mut self, parent: FieldIndex) -> Option<(FieldIndex, &mut FieldNode)> {
        let field = self.nodes.len();
        let level = self.nodes.get(parent)?.level + 1;
        // One node is that of the others.
        if MOST_FIELDS < field || MOST_LEVELS < level {
            return None;
        }
        self.nodes.push(FieldNode { parent, level, ..FieldNode::default() });
        Some((field, self.nodes.get_mut(parent)?))
    }

    /// Notes that the object at `object` has the field. Returns the offset of the earlier key if the object has it twice.
    #[inline]
    pub fn see(&mut self, field: FieldIndex, object: usize, at: usize) -> Option<usize> {
        let seen = SeenKey { reading: self.reading, object, at };
        let earlier = std::mem::replace(&mut self.nodes.get_mut(field)?.seen, seen);
        (earlier.reading == seen.reading && earlier.object == object).then_some(earlier.at)
    }

    /// Adds a value of the current row.
    #[inline]
    pub fn add(&mut self, field: FieldIndex, kind: ValueType, size: usize) {
        let Some(node) = self.nodes.get_mut(field) else { return };
        if node.row.is_empty() {
            self.touched.push(field);
        }
        node.row.add(kind, size as u64);
    }

    /// Ends a good row: its values count.
    pub fn keep_row(&mut self) {
        for field in self.touched.drain(..) {
            let Some(node) = self.nodes.get_mut(field) else { continue };
            node.counts.rows += 1;
            node.counts.values.merge(&std::mem::take(&mut node.row));
        }
        self.before = self.nodes.len();
        self.reading += 1;
    }

    /// Forgets the values of the row, and the fields that it added.
    pub fn drop_row(&mut self) {
        for field in self.touched.drain(..) {
            if let Some(node) = self.nodes.get_mut(field) {
                node.row = ValueCounts::default();
            }
        }
        while self.before < self.nodes.len() {
            let (index, last) = (self.nodes.len() - 1, self.nodes.pop().unwrap_or_default());
            let Some(parent) = self.nodes.get_mut(last.parent) else { continue };
            if parent.elements == Some(index) {
                parent.elements = None;
            } else {
                parent.children.pop();
                parent.sorted.retain(|&field| field != index);
            }
        }
        self.reading += 1;
    }

    /// Returns all counts as JSON: a list of `[pointer, rows, [types], min, max, sum]`, and the counts of the others. A
    /// field comes before the fields in it.
    ///
    /// ```json
    /// [["", 2, [0, 0, 0, 0, 0, 0, 2], 7, 9, 16], ["/a", 2, [0, 0, 2, 0, 0, 0, 0], 1, 3, 4]], [0, [0, 0, 0, 0, 0, 0, 0], 0, 0, 0]
    /// ```
    pub fn describe(&self) -> String {
        let mut json = String::from("[");
        let mut left = vec![(ROOT, Vec::new())];
        while let Some((field, path)) = left.pop() {
            let Some(node) = self.nodes.get(field).filter(|node| node.counts.rows != 0) else {
                continue;
            };
            for part in ["[", &quoted(&path), ",", &node.counts.describe(), "],"] {
                json += part;
            }
            if let Some(elements) = node.elements {
                left.push((elements, pointer(&path, Segment::Elements)));
            }
            for &child in node.children.iter().rev() {
                let key = self.nodes.get(child).map_or(&[][..], |child| &child.key);
                left.push((child, pointer(&path, Segment::Key(key))));
            }
        }
        if json.ends_with(',') {
            json.pop();
        }
        let others = self.nodes.get(OTHERS).map(|node| node.counts).unwrap_or_default();
        for part in ["],[", &others.describe(), "]"] {
            json += part;
        }
        json
    }
}
