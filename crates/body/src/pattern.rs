//! Patterns: JSON Pointers with the wildcards `*` and `**`, as a tree of their keys. The JS thread builds it once a
//! call; the scan of a task walks it.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;

use offloop_grammar::{ChildKeys, KeyTree, PointerError, pointer_keys};

/// Not a valid pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// Not a valid JSON Pointer.
    Pointer(PointerError),
    /// `**` stands behind another segment.
    DeepWildcard,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pointer(error) => error.fmt(f),
            Self::DeepWildcard => f.write_str("may have ** at its start only"),
        }
    }
}

impl Error for PatternError {}

impl From<PointerError> for PatternError {
    fn from(error: PointerError) -> Self {
        Self::Pointer(error)
    }
}

/// A node of the tree: a beginning that one or several patterns have in common.
#[derive(Clone, Debug, Default)]
struct PatternNode {
    /// The nodes behind literal keys.
    keys: ChildKeys,
    /// The node behind `*`.
    any: Option<usize>,
    /// The first pattern that ends here.
    end: Option<usize>,
}

/// Compiled patterns.
///
/// A walk has several active nodes only where `*` or `**` matches what a literal key matches as well. So a key of the
/// text costs one lookup for each active node, however many patterns there are.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    /// The nodes of the tree, the root first. Empty where there are no patterns.
    nodes: Vec<PatternNode>,
    /// The node behind a leading `**`, which stays active at every depth.
    deep: Option<usize>,
}

const ROOT: usize = 0;

impl Patterns {
    /// Compiles `pointers`, which are UTF-8. Halves of surrogate pairs have three bytes each.
    ///
    /// # Errors
    /// The index of the first invalid pattern, and why it is invalid.
    pub fn new(pointers: &[Vec<u8>]) -> Result<Self, (usize, PatternError)> {
        let mut builder = PatternBuilder::default();
        for (index, pointer) in pointers.iter().enumerate() {
            builder.add(pointer, index).map_err(|error| (index, error))?;
        }
        Ok(if pointers.is_empty() { Self::default() } else { builder.finish() })
    }

    /// Returns the active nodes at the root of a value.
    pub(crate) fn start(&self) -> Vec<usize> {
        let root = (!self.nodes.is_empty()).then_some(ROOT);
        root.into_iter().chain(self.deep).collect()
    }

    /// Writes the nodes behind `key` to `to`, from the active nodes `from`.
    pub(crate) fn advance(&self, from: &[usize], key: &[u8], to: &mut Vec<usize>) {
        to.clear();
        for &index in from {
            let Some(node) = self.nodes.get(index) else { continue };
            to.extend(self.deep.filter(|&deep| deep == index));
            to.extend(node.any);
            to.extend(node.keys.find_counting(key, count_comparison));
        }
    }

    /// Returns the first pattern that ends at one of the active nodes.
    pub(crate) fn matched(&self, nodes: &[usize]) -> Option<usize> {
        nodes.iter().filter_map(|&node| self.nodes.get(node)?.end).min()
    }
}

/// The tree while patterns are added.
#[derive(Default)]
struct PatternBuilder {
    tree: KeyTree,
    /// The nodes behind `*`, by the node before it.
    any: HashMap<usize, usize>,
    /// The first pattern that ends at a node.
    ends: HashMap<usize, usize>,
    deep: Option<usize>,
}

impl PatternBuilder {
    fn add(&mut self, pattern: &[u8], index: usize) -> Result<(), PatternError> {
        let mut node = ROOT;
        for (depth, key) in pointer_keys(pattern)?.enumerate() {
            // No escape stands for `*`, so an unescaped key is as good as its segment.
            node = match &*key? {
                b"*" => *self.any.entry(node).or_insert_with(|| self.tree.add()),
                b"**" if depth == 0 => *self.deep.get_or_insert_with(|| self.tree.add()),
                b"**" => return Err(PatternError::DeepWildcard),
                key => self.tree.child(node, key.to_vec()),
            };
        }
        self.ends.entry(node).or_insert(index);
        Ok(())
    }

    fn finish(self) -> Patterns {
        let node = |(index, keys)| PatternNode {
            keys,
            any: self.any.get(&index).copied(),
            end: self.ends.get(&index).copied(),
        };
        let nodes = self.tree.finish().into_iter().enumerate().map(node).collect();
        Patterns { nodes, deep: self.deep }
    }
}

#[cfg(test)]
thread_local! {
    /// The number of comparisons of a pattern's key with a key of a text.
    static COMPARISONS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[inline]
fn count_comparison() {
    #[cfg(test)]
    COMPARISONS.set(COMPARISONS.get() + 1);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scan::{AcceptedType, Search, scan};

    /// Scans `text` for `pointers`. Returns the comparisons, and how many values match.
    fn scanned(text: &str, pointers: &[String]) -> (usize, usize) {
        let pointers: Vec<_> =
            pointers.iter().map(|pointer| pointer.clone().into_bytes()).collect();
        let patterns = Patterns::new(&pointers).unwrap();
        COMPARISONS.set(0);
        let accepted = vec![AcceptedType::Any; pointers.len()];
        let search =
            Search { patterns: &patterns, accepted: &accepted, longest_string: usize::MAX };
        let found = scan(text.as_bytes(), search, || Ok::<(), ()>(())).unwrap();
        (COMPARISONS.get(), found.matches.len())
    }

    fn object(count: usize, value: &str) -> String {
        let members: Vec<_> = (0..count).map(|index| format!("\"k{index}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Returns `count` pointers and `count` keys for each shape of pointers. None or all of them match.
    fn shapes(count: usize) -> [(&'static str, String, String); 6] {
        let keys = object(count, "1");
        [
            ("at the top", "/".into(), keys.clone()),
            ("behind the same segment", "/a/".into(), format!("{{\"a\":{keys}}}")),
            ("behind *", "/*/".into(), format!("[{keys}]")),
            ("behind **", "/**/".into(), format!("[[{keys}]]")),
            ("of one container each", "/*/".into(), object(count, "{\"k1\":1}")),
            ("with a long beginning", format!("/{}", "p".repeat(1000)), object(count, "1")),
        ]
    }

    #[test]
    fn a_key_is_compared_with_a_logarithm_of_the_pointers() {
        let count = 2048;
        for (what, before, text) in shapes(count) {
            for name in ["k", "p"] {
                let pointers: Vec<_> =
                    (0..count).map(|index| format!("{before}{name}{index}")).collect();
                let (comparisons, finds) = scanned(&text, &pointers);
                // Two lookups a key at most: `**` looks at the keys of containers as well.
                let most = 2 * (count + 2) * (count.ilog2() as usize + 1);
                assert!(comparisons <= most, "{what}, {name}: {comparisons} comparisons");
                let expected = if name == "p" || before.len() > 1000 { 0 } else { count };
                assert_eq!(finds, expected, "{what}, {name}");
            }
        }
    }

    /// Returns whether a pointer matches a path, segment by segment.
    fn matches(segments: &[&str], path: &[&str]) -> bool {
        match (segments, path) {
            ([], []) => true,
            ([segment @ ("**" | "*"), rest @ ..], [_, below @ ..]) => {
                let is_deep = *segment == "**";
                (is_deep && (matches(segments, below) || matches(rest, path)))
                    || (!is_deep && matches(rest, below))
            }
            (["**", rest @ ..], []) => matches(rest, path),
            ([segment, rest @ ..], [key, below @ ..]) => segment == key && matches(rest, below),
            _ => false,
        }
    }

    fn pointer() -> impl Strategy<Value = Vec<&'static str>> {
        let segments = prop::collection::vec(prop::sample::select(vec!["a", "bb", "c", "*"]), 0..5);
        (any::<bool>(), segments).prop_map(|(is_deep, mut segments)| {
            if is_deep {
                segments.insert(0, "**");
            }
            segments
        })
    }

    proptest! {
        #[test]
        fn the_first_pointer_that_matches_is_found(
            pointers in prop::collection::vec(pointer(), 0..12),
            path in prop::collection::vec(prop::sample::select(vec!["a", "bb", "c", "d"]), 0..6),
        ) {
            let text = |segments: &Vec<&str>| {
                segments.iter().flat_map(|segment| format!("/{segment}").into_bytes()).collect()
            };
            let patterns = Patterns::new(&pointers.iter().map(text).collect::<Vec<_>>()).unwrap();
            let (mut states, mut next) = (patterns.start(), Vec::new());
            for key in &path {
                patterns.advance(&states, key.as_bytes(), &mut next);
                std::mem::swap(&mut states, &mut next);
            }
            let expected = pointers.iter().position(|segments| matches(segments, &path));
            prop_assert_eq!(patterns.matched(&states), expected);
        }
    }

    #[test]
    fn pointers_that_begin_alike_share_their_states() {
        for before in ["/a/b/", "/*/b/", "/**/b/", "/*/*/"] {
            let pointers: Vec<_> =
                (0..1000).map(|index| format!("{before}{index}").into_bytes()).collect();
            let patterns = Patterns::new(&pointers).unwrap();
            let (mut states, mut next) = (patterns.start(), Vec::new());
            for key in [&b"a"[..], b"b", b"7"] {
                assert!(states.len() <= 2, "{before}: {} states", states.len());
                patterns.advance(&states, key, &mut next);
                std::mem::swap(&mut states, &mut next);
            }
            assert_eq!(patterns.matched(&states), Some(7), "{before}");
        }
    }
}
