//! Trees of the keys of JSON Pointers. Built on the JS thread, once for the pointers of an option; tasks look keys up.
//!
//! A lookup takes at most log₂(n) + 1 comparisons for n keys behind one node.

use std::cmp::Ordering;
use std::collections::HashMap;

/// The children of one node of a tree, by key.
#[derive(Clone, Debug, Default)]
pub struct ChildKeys {
    /// Keys and their nodes, in the order of [`order`].
    sorted: Vec<(Vec<u8>, usize)>,
}

impl ChildKeys {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Returns the node that `key` leads to.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        self.find_counting(key, || {})
    }

    /// Returns the node that `key` leads to. Calls `compared` for each comparison.
    #[inline]
    pub fn find_counting(&self, key: &[u8], mut compared: impl FnMut()) -> Option<usize> {
        let compare = |(other, _): &(Vec<u8>, usize)| {
            compared();
            order(other, key)
        };
        let place = self.sorted.binary_search_by(compare).ok()?;
        self.sorted.get(place).map(|&(_, node)| node)
    }
}

/// Puts shorter keys first: most different keys differ in length.
#[inline]
fn order(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// A tree that grows key by key. Its nodes are numbers: 0 is the root, and each new node gets the next number.
#[derive(Debug)]
pub struct KeyTree {
    nodes: usize,
    children: HashMap<(usize, Vec<u8>), usize>,
}

impl Default for KeyTree {
    fn default() -> Self {
        Self { nodes: 1, children: HashMap::new() }
    }
}

impl KeyTree {
    /// Adds a node that no key leads to. Returns it.
    pub fn add(&mut self) -> usize {
        self.nodes += 1;
        self.nodes - 1
    }

    /// Returns the node behind `key`. Adds it where there is none.
    pub fn child(&mut self, node: usize, key: Vec<u8>) -> usize {
        let next = self.nodes;
        let child = *self.children.entry((node, key)).or_insert(next);
        self.nodes = self.nodes.max(child + 1);
        child
    }

    /// Returns the children of each node.
    #[must_use]
    pub fn finish(self) -> Vec<ChildKeys> {
        let mut all = vec![ChildKeys::default(); self.nodes];
        for ((node, key), child) in self.children {
            if let Some(keys) = all.get_mut(node) {
                keys.sorted.push((key, child));
            }
        }
        for keys in &mut all {
            keys.sorted.sort_unstable_by(|(a, _), (b, _)| order(a, b));
        }
        all
    }
}
