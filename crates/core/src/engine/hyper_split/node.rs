//! The nodes of a tree.

use crate::engine::tree::List;
use crate::memory::bytes_of;
use crate::schema::{FieldId, Part, Placement, Schema};
use crate::simd::Aligned;

/// Nodes of a cache line: two pairs of siblings.
const LINE: usize = 4;

/// An inner node, or a leaf.
///
/// An inner node has a 64-bit word of a key that is shifted up until a field's
/// highest bit is the word's. What stands below the field does not matter,
/// because there `value` has zeros. The next node is `child` where the word is
/// less, else `child + 1`.
///
/// A leaf sends every key to itself: of its word all but a bit is shifted out,
/// and `value` is more than that. Below its two highest bits `value` has the
/// leaf's list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    value: u64,
    child: u32,
    word: u16,
    shift: u16,
}

const LEAF: u64 = 3 << 62;
const LEAF_SHIFT: u16 = 63;

impl Node {
    /// Is to be overwritten.
    pub(super) const EMPTY: Node = Node {
        value: LEAF,
        child: 0,
        word: 0,
        shift: LEAF_SHIFT,
    };

    /// The leaf at an index.
    #[inline]
    pub(super) fn leaf(index: u32, list: List) -> Node {
        let list = u64::from(list.len) << 32 | u64::from(list.first);
        Node {
            value: LEAF | list,
            child: index,
            ..Node::EMPTY
        }
    }

    /// The list of a leaf.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // two numbers in one
    pub(super) fn list(&self) -> List {
        List {
            first: self.value as u32,
            len: (self.value >> 32) as u32 & ((1 << 29) - 1),
        }
    }

    /// The bits of the key that say which child is the next, in the key's words.
    pub(super) fn want(&self, key: &[u64], mask: &mut [u64]) {
        let word = key[usize::from(self.word)] << self.shift;
        // Up to the first bit in which they differ, or to the last of the value
        // that is set: then all that follow are at least those of the value.
        let differ = (word ^ self.value).leading_zeros() + 1;
        let bits = differ.min(64 - self.value.trailing_zeros());
        mask[usize::from(self.word)] |= (u64::MAX << (64 - bits)) >> self.shift;
    }
}

/// How nodes compare a field.
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

    /// Whether a node can look at a part of the field only.
    pub(super) fn is_wide(&self) -> bool {
        self.placement.high.is_some()
    }

    /// The node that parts values of at least `value` from others. For a wide
    /// field, it compares the lower 64 bits if any of them is set in `value`, else
    /// the others.
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
pub(super) struct Nodes {
    lines: Vec<Aligned<[Node; LINE]>>,
}

impl Nodes {
    pub(super) fn bytes_of(nodes: usize) -> usize {
        bytes_of::<Aligned<[Node; LINE]>>(nodes.div_ceil(LINE))
    }

    pub(super) fn new(nodes: &[Node]) -> Nodes {
        let mut lines = Vec::with_capacity(nodes.len().div_ceil(LINE));
        for nodes in nodes.chunks(LINE) {
            let mut line = [Node::EMPTY; LINE];
            line[..nodes.len()].copy_from_slice(nodes);
            lines.push(Aligned(line));
        }
        Nodes { lines }
    }

    /// The number of nodes, in whole cache lines.
    pub(super) fn len(&self) -> usize {
        self.lines.len() * LINE
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of::<Aligned<[Node; LINE]>>(self.lines.capacity())
    }

    #[inline(always)]
    pub(super) fn node(&self, index: u32) -> &Node {
        let index = index as usize;
        &self.lines[index / LINE][index % LINE]
    }

    /// The next node of a key: that of a leaf is the leaf itself.
    #[inline(always)]
    pub(super) fn next<const W: usize>(&self, index: u32, key: &[u64; W]) -> u32 {
        let node = self.node(index);
        let word = key[usize::from(node.word)] << (node.shift & 63);
        node.child + u32::from(word >= node.value)
    }

    /// The leaf of a key, and all nodes on the way there are shown.
    #[inline(always)]
    pub(super) fn leaf<const W: usize>(&self, key: &[u64; W], mut show: impl FnMut(&Node)) -> List {
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
}
