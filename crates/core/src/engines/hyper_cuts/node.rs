//! The nodes of a tree, and the parts that they cut a box into.

use crate::budget::memory::bytes_of;
use crate::model::schema::{FieldId, Placement, Schema};
use crate::parts::simd::prefetch;
use crate::parts::tree::{GROUP_KEYS, List, TreeNodes};

/// The largest number of fields that a node cuts: with four, a node takes 16 bytes.
pub(super) const MAX_CUT_FIELDS: usize = 4;

/// The largest number of key bits that a node reads: it has at most 4,096 children.
/// Measured in `bench/records/constants.md` (HyperCuts).
pub(super) const MAX_CUT_BITS: u32 = 12;

/// Consecutive bits of a field that a node reads.
///
/// Layout in a node: word 5 bits | shift 6 bits | bits 4 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Piece(u16);

impl Piece {
    fn new(word: usize, shift: u32, bits: u32) -> Piece {
        debug_assert!(word < 32 && shift < 64 && bits <= MAX_CUT_BITS);
        let packed = word << 10 | (shift as usize) << 4 | bits as usize;
        Piece(u16::try_from(packed).expect("15 bits"))
    }

    #[inline(always)]
    fn bits(self) -> u32 {
        u32::from(self.0 & 15)
    }

    #[inline(always)]
    fn shift(self) -> u32 {
        u32::from(self.0 >> 4 & 63)
    }

    #[inline(always)]
    fn word(self) -> usize {
        usize::from(self.0 >> 10)
    }
}

/// An inner node, or a leaf.
///
/// An inner node takes up to four pieces of a key. Joined, with the first piece
/// highest, they are the number of the child. A leaf has no pieces.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
pub(in crate::engines) struct Node {
    pieces: [Piece; MAX_CUT_FIELDS],
    /// The first child, or the position of a leaf's list.
    first: u32,
    /// `INNER_NODE`, or the length of a leaf's list.
    len: u32,
}

const INNER_NODE: u32 = u32::MAX;

impl Node {
    /// A leaf without rules.
    pub(super) const EMPTY: Node = Node {
        pieces: [Piece(0); MAX_CUT_FIELDS],
        first: 0,
        len: 0,
    };

    #[inline]
    pub(super) fn leaf(list: List) -> Node {
        Node {
            first: list.first,
            len: list.len,
            ..Node::EMPTY
        }
    }

    /// Returns the list of a leaf.
    #[inline(always)]
    pub(super) fn list(&self) -> List {
        List {
            first: self.first,
            len: self.len,
        }
    }

    #[inline(always)]
    pub(super) fn is_leaf(&self) -> bool {
        self.len != INNER_NODE
    }

    /// Returns the next node of a key. The node must be an inner node.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // at most 4 times 15 bits, 12 in all
    pub(super) fn next<const W: usize>(&self, key: &[u64; W]) -> u32 {
        let mut child = 0;
        for piece in self.pieces {
            let mask = (1 << piece.bits()) - 1;
            let part = key[piece.word()] >> piece.shift() & mask;
            child = child << piece.bits() | part;
        }
        self.first + child as u32
    }

    /// Adds to `mask` the bits of a key that select the child.
    pub(super) fn want(&self, mask: &mut [u64]) {
        for piece in self.pieces {
            mask[piece.word()] |= ((1 << piece.bits()) - 1) << piece.shift();
        }
    }
}

/// The place of a field in a key.
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

    /// The number of upper bits, of a value's last `free` bits, that a node can read.
    /// They must be in one word of the key.
    pub(super) fn readable(free: u32) -> u32 {
        if free > 64 { free - 64 } else { free }
    }

    /// Returns the piece of a value's `bits` bits from bit `shift` upwards.
    fn piece(&self, shift: u32, bits: u32) -> Piece {
        match self.placement.high {
            Some(high) if shift >= 64 => Piece::new(high.word, high.shift + shift - 64, bits),
            _ => {
                let low = self.placement.low;
                Piece::new(low.word, low.shift + shift, bits)
            }
        }
    }
}

/// A cut of a field into `1 << bits` equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) field: usize,
    /// The position of the lowest bit that selects a part.
    pub(super) shift: u32,
    pub(super) bits: u32,
}

/// Returns an inner node that cuts fields.
pub(super) fn inner(fields: &[Field], cuts: &[Cut], first: u32) -> Node {
    let mut pieces = [Piece::default(); MAX_CUT_FIELDS];
    for (piece, cut) in pieces.iter_mut().zip(cuts) {
        *piece = fields[cut.field].piece(cut.shift, cut.bits);
    }
    Node {
        pieces,
        first,
        len: INNER_NODE,
    }
}

/// The nodes of a tree, the root first. The children of a node are contiguous.
pub(in crate::engines) struct Nodes {
    pub(super) nodes: Vec<Node>,
}

impl Nodes {
    #[inline(always)]
    pub(super) fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }
}

impl TreeNodes for Nodes {
    type Node = Node;

    /// Returns the list of a key's leaf. Calls `show` with each node on the way.
    #[inline(always)]
    fn leaf<const W: usize>(&self, key: &[u64; W], mut show: impl FnMut(&Node)) -> List {
        let mut node = &self.nodes[0];
        while !node.is_leaf() {
            show(node);
            node = self.node(node.next(key));
        }
        node.list()
    }

    #[inline(always)]
    fn leaves<const W: usize>(&self, keys: &[[u64; W]; GROUP_KEYS]) -> [List; GROUP_KEYS] {
        let mut node_of = [0_u32; GROUP_KEYS];
        // Lanes of keys that may not be at a leaf yet.
        let mut lanes: [usize; GROUP_KEYS] = std::array::from_fn(|lane| lane);
        let mut active = GROUP_KEYS;
        while active > 0 {
            let mut still_active = 0;
            for turn in 0..active {
                let lane = lanes[turn];
                let node = self.node(node_of[lane]);
                let (is_inner, next) = (!node.is_leaf(), node.next(&keys[lane]));
                // Written without a branch, because the levels of leaves follow no
                // pattern.
                node_of[lane] = if is_inner { next } else { node_of[lane] };
                prefetch(self.node(node_of[lane]));
                lanes[still_active] = lane;
                still_active += usize::from(is_inner);
            }
            active = still_active;
        }
        node_of.map(|node| self.node(node).list())
    }

    fn want(node: &Node, _: &[u64], mask: &mut [u64]) {
        node.want(mask);
    }

    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn bytes(&self) -> usize {
        bytes_of::<Node>(self.nodes.capacity())
    }

    fn bytes_of(nodes: usize) -> usize {
        bytes_of::<Node>(nodes)
    }
}
