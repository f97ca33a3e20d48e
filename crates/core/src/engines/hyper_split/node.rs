//! The nodes of a tree.

use crate::budget::memory::bytes_of;
use crate::model::schema::{FieldId, Part, Placement, Schema};
use crate::parts::simd::Aligned;
use crate::parts::tree::{GROUP_KEYS, List, TreeNodes};

/// The number of nodes in a cache line: two pairs of siblings.
const LINE_NODES: usize = 4;

/// An inner node, or a leaf.
///
/// An inner node shifts a 64-bit word of a key left until a field's highest bit is
/// the highest. Bits below the field do not matter, because they are zero in `value`.
/// The next node is `child` if the word is less, otherwise `child + 1`.
///
/// A leaf sends every key to itself: all bits of its word except one are shifted out,
/// and `value` is larger than this bit. Below its two highest bits, `value` has the
/// leaf's list.
#[derive(Clone, Copy, Debug)]
pub(in crate::engines) struct Node {
    value: u64,
    child: u32,
    word: u16,
    shift: u16,
}

const LEAF_TAG: u64 = 3 << 62;
const LEAF_SHIFT: u16 = 63;

impl Node {
    /// A leaf without rules, to be overwritten.
    pub(super) const EMPTY: Node = Node {
        value: LEAF_TAG,
        child: 0,
        word: 0,
        shift: LEAF_SHIFT,
    };

    /// Returns the leaf at an index.
    #[inline]
    pub(super) fn leaf(index: u32, list: List) -> Node {
        let list = u64::from(list.len) << 32 | u64::from(list.first);
        Node {
            value: LEAF_TAG | list,
            child: index,
            ..Node::EMPTY
        }
    }

    /// Returns the list of a leaf.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // two numbers in one
    pub(super) fn list(&self) -> List {
        List {
            first: self.value as u32,
            len: (self.value >> 32) as u32 & ((1 << 29) - 1),
        }
    }

    /// Adds to `mask` the bits of the key that determine the next child.
    pub(super) fn want(&self, key: &[u64], mask: &mut [u64]) {
        let word = key[usize::from(self.word)] << self.shift;
        // Up to the first bit that differs, or to the last bit that is set in the
        // value: then any bits that follow are at least the value's.
        let differ = (word ^ self.value).leading_zeros() + 1;
        let bits = differ.min(64 - self.value.trailing_zeros());
        mask[usize::from(self.word)] |= (u64::MAX << (64 - bits)) >> self.shift;
    }
}

/// A field, as nodes compare it.
pub(super) struct Field {
    placement: Placement,
    /// The field's largest value.
    pub(super) most: u128,
}

impl Field {
    pub(super) fn of(schema: &Schema, id: FieldId) -> Field {
        Field {
            placement: *schema.placement(id),
            most: schema.field(id).max_value(),
        }
    }

    /// True if a node can look at only a part of the field.
    pub(super) fn is_wide(&self) -> bool {
        self.placement.high.is_some()
    }

    /// Returns a node that separates values of at least `value` from smaller values.
    /// For a wide field, the node compares the lower 64 bits if any of them is set in
    /// `value`, otherwise the upper bits.
    #[allow(clippy::cast_possible_truncation)] // two halves
    pub(super) fn node(&self, value: u128, child: u32) -> Node {
        let node = |part: Part, value: u64| Node {
            value: value << (64 - part.width),
            child,
            word: u16::try_from(part.word).expect("a word of a key"),
            shift: u16::try_from(64 - part.width - part.shift).expect("less than 64 bits"),
        };
        match self.placement.high {
            Some(high) if value as u64 == 0 => node(high, (value >> 64) as u64),
            _ => node(self.placement.low, value as u64),
        }
    }
}

/// The nodes of a tree, the root first, and then pairs of siblings.
pub(in crate::engines) struct Nodes {
    lines: Vec<Aligned<[Node; LINE_NODES]>>,
}

impl Nodes {
    pub(super) fn new(nodes: &[Node]) -> Nodes {
        let mut lines = Vec::with_capacity(nodes.len().div_ceil(LINE_NODES));
        for nodes in nodes.chunks(LINE_NODES) {
            let mut line = [Node::EMPTY; LINE_NODES];
            line[..nodes.len()].copy_from_slice(nodes);
            lines.push(Aligned(line));
        }
        Nodes { lines }
    }

    #[inline(always)]
    pub(super) fn node(&self, index: u32) -> &Node {
        let index = index as usize;
        &self.lines[index / LINE_NODES][index % LINE_NODES]
    }

    /// Returns the next node of a key. The next node of a leaf is the leaf itself.
    #[inline(always)]
    pub(super) fn next<const W: usize>(&self, index: u32, key: &[u64; W]) -> u32 {
        let node = self.node(index);
        let word = key[usize::from(node.word)] << (node.shift & 63);
        node.child + u32::from(word >= node.value)
    }
}

impl TreeNodes for Nodes {
    type Node = Node;

    /// Returns the list of a key's leaf. Calls `show` with each node on the way.
    #[inline(always)]
    fn leaf<const W: usize>(&self, key: &[u64; W], mut show: impl FnMut(&Node)) -> List {
        let mut index = 0;
        loop {
            let next = self.next(index, key);
            if next == index {
                return self.node(index).list();
            }
            show(self.node(index));
            index = next;
        }
    }

    /// A leaf sends every key to itself, so no key needs a branch until none moves.
    #[inline(always)]
    fn leaves<const W: usize>(&self, keys: &[[u64; W]; GROUP_KEYS]) -> [List; GROUP_KEYS] {
        let mut node_of = [0_u32; GROUP_KEYS];
        loop {
            let mut moved = 0;
            for (node, key) in node_of.iter_mut().zip(keys) {
                let next = self.next(*node, key);
                moved |= next ^ *node;
                *node = next;
            }
            if moved == 0 {
                break;
            }
        }
        node_of.map(|node| self.node(node).list())
    }

    fn want(node: &Node, key: &[u64], mask: &mut [u64]) {
        node.want(key, mask);
    }

    /// The number of nodes, in whole cache lines.
    fn len(&self) -> usize {
        self.lines.len() * LINE_NODES
    }

    fn bytes(&self) -> usize {
        bytes_of::<Aligned<[Node; LINE_NODES]>>(self.lines.capacity())
    }

    fn bytes_of(nodes: usize) -> usize {
        bytes_of::<Aligned<[Node; LINE_NODES]>>(nodes.div_ceil(LINE_NODES))
    }
}
