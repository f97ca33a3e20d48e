//! Longest prefix match: a prefix that no rule of higher priority shares.
//!
//! # Idea
//! All rules are in a binary tree with a level for each bit of their masks, the most
//! significant bit first. A packet descends from the root and un-wildcards each bit on
//! its way, until no rule is below. So there are few masks, one for each length, but
//! flows may have many unnecessary bits.
//!
//! # Data layout
//! ```text
//! node  child for bit 0 │ for bit 1 │ for rules without this mask bit │ first rule below
//! ```
//! Children are numbers of nodes, 0 for none. The first rule below a node is its rule of
//! highest priority; rules after the packet's winner do not count.
//!
//! # Lookup
//! ```text
//! here = { root }
//! for each bit, the most significant first, while here is not empty:
//!     if some node of here has a child with 0 or 1: wanted |= bit
//!     here = children of here with the packet's bit or without one, with a rule above
//! ```
//!
//! # Cost
//! O(b) for a packet if the masks are the leading b bits. If many rules have gaps in
//! their masks, at most as many nodes per level as rules. O(n b) nodes of 16 bytes for n
//! rules.
//!
//! # Where we differ from the paper, and why
//! - **A third child** holds rules without the mask bit of the level, so the tree can
//!   have rules with any masks. Exact ports and prefixes have no such child before their
//!   last bit.
//!
//! # References
//! [FCH14] §4, "Longest prefix match"; the "decision tree" of its Tables 4 to 6.
//!
//! [FCH14]: classyard::papers#fch14

use super::{Heuristic, TooMuchWork, looked_at};
use crate::header_space::Term;

/// A prefix that no rule of higher priority shares.
#[derive(Clone, Debug)]
pub struct PrefixTree<const W: usize> {
    /// The bits of the levels: word and bit in the word.
    levels: Vec<(usize, u64)>,
    /// The root is the first node.
    nodes: Vec<Node>,
    /// Buffers: the reached nodes of this level and of the next.
    here: Vec<u32>,
    next: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// For bit 0, for bit 1, for rules without the mask bit.
    children: [u32; 3],
    /// The first rule below.
    first: u32,
}

/// The index of the child for rules without the mask bit.
const OPEN_CHILD: usize = 2;

impl<const W: usize> PrefixTree<W> {
    /// Returns the heuristic for the rules of a table, the highest priority first.
    ///
    /// # Panics
    /// If there are 2^32 nodes or more, as for 2 million rules over all bits of a
    /// packet's key.
    #[must_use]
    pub fn new(rules: &[Term<W>]) -> PrefixTree<W> {
        let mask = looked_at(rules);
        let levels = (0..W).flat_map(|word| {
            let bits = (0..u64::BITS).rev().map(move |bit| (word, 1 << bit));
            bits.filter(move |(_, bit)| mask[word] & bit != 0)
        });
        let mut tree = PrefixTree {
            levels: levels.collect(),
            nodes: Vec::new(),
            here: Vec::new(),
            next: Vec::new(),
        };
        for (number, rule) in rules.iter().enumerate() {
            tree.insert(rule, u32::try_from(number).expect("fewer rules than nodes"));
        }
        tree
    }

    fn insert(&mut self, rule: &Term<W>, number: u32) {
        if self.nodes.is_empty() {
            self.nodes.push(Node::new(number));
        }
        // A rule has no levels after its last mask bit.
        let is_seen = |&(word, bit): &(usize, u64)| rule.mask()[word] & bit != 0;
        let depth = self.levels.iter().rposition(is_seen);
        let depth = depth.map_or(0, |last| last + 1);
        let mut node = 0;
        for &(word, bit) in &self.levels[..depth] {
            let child = match rule.mask()[word] & bit {
                0 => OPEN_CHILD,
                _ => usize::from(rule.value()[word] & bit != 0),
            };
            if self.nodes[node].children[child] == 0 {
                let new = u32::try_from(self.nodes.len()).expect("fewer than 2^32 nodes");
                self.nodes.push(Node::new(number));
                self.nodes[node].children[child] = new;
            }
            // Rules are added in the order of their priorities, so the first rule stays.
            node = self.nodes[node].children[child] as usize;
        }
    }
}

impl Node {
    fn new(first: u32) -> Node {
        Node {
            children: [0; 3],
            first,
        }
    }
}

impl<const W: usize> Heuristic<W> for PrefixTree<W> {
    fn name(&self) -> &'static str {
        "decision tree"
    }

    fn tell_apart(
        &mut self,
        packet: &[u64; W],
        above: usize,
        wanted: &mut [u64; W],
    ) -> Result<(), TooMuchWork> {
        let PrefixTree {
            levels,
            nodes,
            here,
            next,
        } = self;
        let counts = |node: u32| node != 0 && (nodes[node as usize].first as usize) < above;
        here.clear();
        here.extend(nodes.first().filter(|_| above > 0).map(|_| 0));
        for &(word, bit) in levels.iter() {
            if here.is_empty() {
                break;
            }
            next.clear();
            let mut is_needed = false;
            let taken = usize::from(packet[word] & bit != 0);
            for &node in here.iter() {
                let children = nodes[node as usize].children;
                is_needed |= counts(children[0]) || counts(children[1]);
                let candidates = [children[taken], children[OPEN_CHILD]];
                next.extend(candidates.into_iter().filter(|&child| counts(child)));
            }
            if is_needed {
                wanted[word] |= bit;
            }
            std::mem::swap(here, next);
        }
        Ok(())
    }
}
