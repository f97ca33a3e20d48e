//! Nodes: up to eight intervals of one dimension, in order.

use std::fmt;

use super::dimension::Dimension;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::parts::simd::prefetch;
use crate::parts::tuple_space::EntryIndex;

/// Entries of a node, which takes two cache lines with them.
pub(super) const FANOUT: usize = 8;

/// The target of an entry: a node, the first rule of a list, or nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct To(u32);

/// Numbers from here up are nodes, smaller numbers are rules.
const FIRST_NODE: u32 = 1 << 31;

/// The largest number of rules.
pub(super) const MOST_RULES: usize = FIRST_NODE as usize - 1;

impl To {
    pub(super) const NOTHING: To = To(FIRST_NODE - 1);

    pub(super) fn node(number: u32) -> To {
        To(number | FIRST_NODE)
    }

    /// Returns the list that begins with `rule`.
    pub(super) fn list(rule: EntryIndex) -> To {
        To(rule.number())
    }

    #[inline]
    pub(super) fn is_node(self) -> bool {
        self.0 & FIRST_NODE != 0
    }

    /// Returns the number of the node. The target must be a node.
    #[inline]
    pub(super) fn as_node(self) -> u32 {
        self.0 & !FIRST_NODE
    }

    /// Returns the first rule of the list. The target must not be a node.
    #[inline]
    pub(super) fn first(self) -> EntryIndex {
        debug_assert!(!self.is_node());
        if self == To::NOTHING {
            EntryIndex::NONE
        } else {
            EntryIndex::from_number(self.0)
        }
    }
}

impl fmt::Debug for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            To::NOTHING => f.write_str("nothing"),
            to if to.is_node() => write!(f, "node {}", to.as_node()),
            To(rule) => write!(f, "rule {rule}"),
        }
    }
}

/// The subtree or list below an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Below {
    pub(super) to: To,
    /// The rank of the best rule.
    pub(super) best: u64,
    /// Any rule of the subtree.
    pub(super) rule: EntryIndex,
}

/// Intervals of one dimension in ascending order. The first cache line has the lower
/// ends, which lookups compare. The second line has the other fields.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Node {
    /// The lower end of each entry, aligned; all ones in slots without an entry.
    pub(super) lows: [u64; FANOUT],
    /// The rank of the best rule below.
    pub(super) best: u64,
    /// First the target for values below the first lower end: nothing. Then the target
    /// of each entry. Slots without an entry repeat the last entry's target, because a
    /// value of all ones reaches them.
    pub(super) next: [To; FANOUT + 1],
    /// Any rule below.
    pub(super) rule: EntryIndex,
    pub(super) word: u8,
    pub(super) up: u8,
    pub(super) dimension: u8,
    pub(super) count: u8,
}

const _: () = assert!(size_of::<Node>() == 128);

impl Node {
    /// Returns a node with the given entries, at least one and at most [`FANOUT`].
    pub(super) fn new(number: u8, dimension: &Dimension, entries: &[(u64, Below)]) -> Node {
        let mut node = Node {
            lows: [u64::MAX; FANOUT],
            best: u64::MAX,
            next: [To::NOTHING; FANOUT + 1],
            rule: entries[0].1.rule,
            word: dimension.word,
            up: dimension.up,
            dimension: number,
            count: 0,
        };
        for (place, (low, below)) in entries.iter().enumerate() {
            node.lows[place] = *low;
            node.next[place + 1] = below.to;
            node.best = node.best.min(below.best);
            node.count += 1;
        }
        node.fill();
        node
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// The lower ends of the entries.
    pub(super) fn lows(&self) -> &[u64] {
        &self.lows[..self.len()]
    }

    /// The targets of the entries.
    pub(super) fn children(&self) -> &[To] {
        &self.next[1..=self.len()]
    }

    /// Returns the number of entries whose lower ends are at most an aligned value. It
    /// is the index of the value's target in `next`.
    #[inline]
    pub(super) fn place(&self, value: u64) -> usize {
        self.lows().partition_point(|&low| low <= value)
    }

    /// Returns the target for a key.
    #[inline(always)]
    pub(super) fn step<const W: usize>(&self, key: &[u64; W]) -> To {
        let value = key[usize::from(self.word)] << self.up;
        let at_most = |place: usize| usize::from(self.lows[place] <= value);
        // Two sums of four terms that the processor computes in parallel.
        let first = at_most(0) + at_most(1) + at_most(2) + at_most(3);
        let second = at_most(4) + at_most(5) + at_most(6) + at_most(7);
        self.next[first + second]
    }

    /// Inserts an entry after the first `place` entries.
    pub(super) fn insert(&mut self, place: usize, low: u64, to: To) {
        let len = self.len();
        self.lows.copy_within(place..len, place + 1);
        self.next.copy_within(place + 1..=len, place + 2);
        self.lows[place] = low;
        self.next[place + 1] = to;
        self.count += 1;
        self.fill();
    }

    /// Removes an entry. `place` counts from 1.
    pub(super) fn remove(&mut self, place: usize) {
        let len = self.len();
        self.lows.copy_within(place..len, place - 1);
        self.next.copy_within(place + 1..=len, place);
        self.count -= 1;
        self.fill();
    }

    /// Changes the target of an entry. `place` counts from 1.
    pub(super) fn set_child(&mut self, place: usize, to: To) {
        self.next[place] = to;
        self.fill();
    }

    /// Fills the slots after the last entry.
    fn fill(&mut self) {
        let len = self.len();
        self.lows[len..].fill(u64::MAX);
        let last = self.next[len];
        self.next[len + 1..].fill(last);
    }
}

/// All nodes. Numbers of removed nodes are reused.
#[derive(Debug)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// The first free node. Each free node has the number of the next in `best`.
    free: u64,
    live: usize,
}

/// Marks the end of the list of free nodes.
const NO_NODE: u64 = u64::MAX;

impl Nodes {
    pub(super) fn new() -> Nodes {
        Nodes {
            nodes: Vec::new(),
            free: NO_NODE,
            live: 0,
        }
    }

    /// The number of nodes in use.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    #[inline(always)]
    pub(super) fn get(&self, number: u32) -> &Node {
        &self.nodes[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Node {
        &mut self.nodes[number as usize]
    }

    /// If `to` is a node, returns the target for a key; otherwise returns `to`. The
    /// choice takes no branch. There must be at least one node.
    #[inline(always)]
    pub(super) fn step<const W: usize>(&self, to: To, key: &[u64; W]) -> To {
        let is_node = to.is_node();
        let next = self.get(if is_node { to.as_node() } else { 0 }).step(key);
        if is_node { next } else { to }
    }

    /// Prefetches both cache lines of a node.
    #[inline(always)]
    pub(super) fn prefetch(&self, to: To) {
        let node = self.get(to.as_node());
        prefetch(&node.lows);
        prefetch(&node.best);
    }

    /// Adds a node; returns its number.
    pub(super) fn add(&mut self, node: Node, monitor: &mut Monitor<'_>) -> Result<u32, BuildError> {
        self.live += 1;
        if self.free != NO_NODE {
            let number = u32::try_from(self.free).expect("a number of a node");
            self.free = std::mem::replace(self.get_mut(number), node).best;
            return Ok(number);
        }
        if self.nodes.len() == self.nodes.capacity() {
            // A quarter instead of the usual doubling, as for the rules' records.
            let growth = self.nodes.len() / 4 + 4;
            let bytes = |nodes: usize| nodes * size_of::<Node>();
            let old = bytes(self.nodes.capacity());
            (monitor.memory()).replace(old, bytes(self.nodes.len() + growth))?;
            self.nodes.reserve_exact(growth);
        }
        let number = u32::try_from(self.nodes.len()).expect("fewer nodes than rules");
        self.nodes.push(node);
        Ok(number)
    }

    /// Frees a node. No entry may lead to it.
    pub(super) fn remove(&mut self, number: u32) {
        let free = std::mem::replace(&mut self.free, u64::from(number));
        let node = self.get_mut(number);
        (node.best, node.count) = (free, 0);
        self.live -= 1;
    }

    /// True if three fifths of the nodes are free and there are more than [`FANOUT`].
    pub(super) fn are_sparse(&self) -> bool {
        self.nodes.capacity() > FANOUT && self.live * 5 < self.nodes.capacity() * 2
    }

    /// Moves the nodes together and frees the unused memory. `moved` maps a rule's old
    /// record to its new one. Returns a function that maps old targets to new ones.
    pub(super) fn compact(
        &mut self,
        moved: impl Fn(EntryIndex) -> EntryIndex,
    ) -> impl Fn(To) -> To {
        let mut numbers = Vec::with_capacity(self.nodes.len());
        let mut live = 0;
        for node in &self.nodes {
            numbers.push(live);
            live += u32::from(node.count > 0);
        }
        self.nodes.retain(|node| node.count > 0);
        self.nodes.shrink_to_fit();
        self.free = NO_NODE;
        debug_assert_eq!(self.nodes.len(), self.live);
        let new_target = move |to: To| match to {
            To::NOTHING => to,
            to if to.is_node() => To::node(numbers[to.as_node() as usize]),
            to => To::list(moved(to.first())),
        };
        for node in &mut self.nodes {
            node.next = node.next.map(&new_target);
        }
        new_target
    }

    /// Updates each node's `rule` after records have moved.
    pub(super) fn move_rules(&mut self, moved: impl Fn(EntryIndex) -> EntryIndex) {
        for node in &mut self.nodes {
            node.rule = moved(node.rule);
        }
    }

    /// Bytes held, including unused capacity.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }
}
