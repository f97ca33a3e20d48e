//! The nodes of all trees.

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::schema::Part;
use crate::parts::simd::Aligned;

/// The number of nodes in a cache line.
const LINE_NODES: usize = 4;

/// The largest number of bits that a node cuts by. Measured in
/// `bench/records/constants.md` (CutSplit).
pub(super) const MAX_CUT_BITS: u32 = 8;

/// The field number of a leaf.
const NO_FIELD: u8 = u8::MAX;

/// An inner node, or a leaf.
///
/// An inner node shifts a 64-bit word of a key left until its own bits are the
/// highest. A *split* compares the word with `value`. Bits below the field do not
/// matter, because they are zero in `value`. The next node is `child` if the word is
/// less, otherwise `child + 1`. A *cut* takes the highest `bits` bits; this number
/// plus `child` is the next node. Its `value` counts the places in the leaves below.
///
/// A leaf sends every key to itself: all bits of its word except one are shifted out,
/// and `value` is larger than this bit. Below its two highest bits, `value` has the
/// position of the leaf's rows.
/// the leaf's rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    value: u64,
    child: u32,
    word: u8,
    shift: u8,
    bits: u8,
    field: u8,
}

const LEAF_TAG: u64 = 3 << 62;

/// The position and number of a leaf's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) first: u32,
    pub(super) len: u32,
}

impl Node {
    /// A leaf without rows, to be overwritten.
    pub(super) const EMPTY: Node = Node {
        value: LEAF_TAG,
        child: 0,
        word: 0,
        shift: 63,
        bits: 0,
        field: NO_FIELD,
    };

    /// Returns the leaf at an index.
    pub(super) fn leaf(index: u32, leaf: Leaf) -> Node {
        debug_assert!(leaf.len < 1 << 30);
        Node {
            value: LEAF_TAG | u64::from(leaf.len) << 32 | u64::from(leaf.first),
            child: index,
            ..Node::EMPTY
        }
    }

    /// Returns a node that compares a part of a field with a value, which begins at
    /// the highest bit.
    pub(super) fn split(field: usize, part: Part, value: u64) -> Node {
        Node {
            value,
            child: 0,
            word: small(part.word),
            shift: small(64 - part.width as usize - part.shift as usize),
            bits: 0,
            field: small(field),
        }
    }

    /// Returns a node that takes `bits` bits of a part of a field, after the first
    /// `skipped` bits.
    pub(super) fn cut(field: usize, part: Part, skipped: u32, bits: u32) -> Node {
        let split = Node::split(field, part, 0);
        Node {
            shift: split.shift + small(skipped as usize),
            bits: small(bits as usize),
            ..split
        }
    }

    /// Returns the node with other children.
    pub(super) fn with_children(self, child: u32) -> Node {
        Node { child, ..self }
    }

    /// Returns the cut with another number of places below.
    pub(super) fn with_places(self, places: usize) -> Node {
        debug_assert!(self.bits > 0);
        Node {
            value: places as u64,
            ..self
        }
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.field == NO_FIELD
    }

    pub(super) fn is_split(&self) -> bool {
        self.field != NO_FIELD && self.bits == 0
    }

    /// Returns the position of a leaf's rows.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // two numbers in one
    pub(super) fn rows(&self) -> Leaf {
        Leaf {
            first: self.value as u32,
            len: (self.value >> 32) as u32 & ((1 << 30) - 1),
        }
    }

    pub(super) fn field(&self) -> usize {
        usize::from(self.field)
    }

    pub(super) fn word(&self) -> usize {
        usize::from(self.word)
    }

    pub(super) fn value(&self) -> u64 {
        self.value
    }

    pub(super) fn child(&self) -> u32 {
        self.child
    }

    pub(super) fn bits(&self) -> u32 {
        u32::from(self.bits)
    }

    /// The binary logarithm of the number of children of an inner node.
    pub(super) fn fan_bits(&self) -> u32 {
        u32::from(self.bits).max(1)
    }

    /// The number of bits of a part of the field that come before the bits of a cut.
    pub(super) fn skipped(&self, part: Part) -> u32 {
        u32::from(self.shift) - (64 - part.width - part.shift)
    }

    /// Returns the number of the child for a word that is already shifted.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // at most eight bits
    pub(super) fn branch(&self, word: u64) -> u32 {
        let cut = (word >> ((64 - u32::from(self.bits)) & 63)) as u32;
        let split = u32::from(word >= self.value);
        if self.bits == 0 { split } else { cut }
    }

    /// Adds to `mask` the bits of the key that determine the next child.
    pub(super) fn want(&self, key: &[u64], mask: &mut [u64]) {
        let word = key[self.word()] << self.shift;
        let bits = match self.bits {
            // Up to the first bit that differs, or to the last bit that is
            // set in the value: then any bits that follow are at least the value's.
            0 => {
                let differ = (word ^ self.value).leading_zeros() + 1;
                differ.min(64 - self.value.trailing_zeros())
            }
            bits => u32::from(bits),
        };
        mask[self.word()] |= (u64::MAX << (64 - bits)) >> self.shift;
    }
}

fn small(number: usize) -> u8 {
    u8::try_from(number).expect("words, bits and fields are few")
}

/// The end of a list of free blocks.
const NO_BLOCK: u32 = u32::MAX;

/// The nodes of all trees, in blocks of siblings. Node 0 is a leaf without rows.
pub(super) struct Nodes {
    lines: Vec<Aligned<[Node; LINE_NODES]>>,
    /// Nodes from this index on have never been used.
    end: u32,
    /// The first free block of each size. The next free block is in its `child`.
    free: [u32; MAX_CUT_BITS as usize + 1],
    /// The number of nodes in used blocks.
    used: usize,
}

impl Nodes {
    /// Bytes of `nodes` nodes.
    pub(super) fn bytes_of(nodes: usize) -> usize {
        bytes_of::<Aligned<[Node; LINE_NODES]>>(nodes.div_ceil(LINE_NODES))
    }

    /// Makes room for `nodes` nodes in blocks of siblings.
    pub(super) fn with_room(nodes: usize) -> Nodes {
        let mut lines = Vec::with_capacity((nodes + 2).div_ceil(LINE_NODES));
        lines.push(Aligned([Node::EMPTY; LINE_NODES]));
        Nodes {
            lines,
            end: 2,
            free: [NO_BLOCK; MAX_CUT_BITS as usize + 1],
            used: 2,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of::<Aligned<[Node; LINE_NODES]>>(self.lines.capacity())
    }

    /// The number of nodes in use.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// The number of nodes in use, in free blocks or skipped.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// True if more nodes are free than in use.
    pub(super) fn is_sparse(&self) -> bool {
        let room = self.lines.capacity() * LINE_NODES;
        room > 64 && 2 * self.used < room
    }

    #[inline(always)]
    pub(super) fn node(&self, index: u32) -> &Node {
        let index = index as usize;
        &self.lines[index / LINE_NODES][index % LINE_NODES]
    }

    pub(super) fn node_mut(&mut self, index: u32) -> &mut Node {
        let index = index as usize;
        &mut self.lines[index / LINE_NODES][index % LINE_NODES]
    }

    /// Allocates a block of two to the power of `bits` siblings. `bits` is at least
    /// 1.
    pub(super) fn alloc(&mut self, bits: u32) -> u32 {
        let (class, count) = (bits as usize, 1 << bits);
        self.used += count as usize;
        let first = self.free[class];
        if first != NO_BLOCK {
            self.free[class] = self.node(first).child;
            return first;
        }
        if bits > 1 && !self.end.is_multiple_of(4) {
            // Larger blocks begin at a cache line; the pair before is left free.
            self.grow(self.end + 2);
            let pair = self.end;
            self.end += 2;
            self.put_free(pair, 1);
        }
        let first = self.end;
        self.grow(first + count);
        self.end += count;
        first
    }

    fn grow(&mut self, end: u32) {
        let lines = (end as usize).div_ceil(LINE_NODES);
        if lines > self.lines.capacity() {
            let extra = (lines - self.lines.len()).max(self.lines.len() / 4);
            self.lines.reserve_exact(extra);
        }
        if lines > self.lines.len() {
            self.lines.resize(lines, Aligned([Node::EMPTY; LINE_NODES]));
        }
    }

    fn put_free(&mut self, first: u32, bits: u32) {
        // Free nodes are leaves without rows, so walks over all nodes skip them.
        for index in first..first + (1 << bits) {
            *self.node_mut(index) = Node::EMPTY;
        }
        let next = std::mem::replace(&mut self.free[bits as usize], first);
        *self.node_mut(first) = Node::EMPTY.with_children(next);
    }

    /// Frees a block.
    pub(super) fn free(&mut self, first: u32, bits: u32) {
        self.used -= 1 << bits;
        self.put_free(first, bits);
    }

    /// Returns the next node of a key. The next node of a leaf is the leaf itself.
    #[inline(always)]
    pub(super) fn next<const W: usize>(&self, index: u32, key: &[u64; W]) -> u32 {
        let node = self.node(index);
        let word = key[usize::from(node.word)] << (node.shift & 63);
        node.child + node.branch(word)
    }

    /// Returns the leaf of a key below a node. Calls `show` with each node on the
    /// way.
    #[inline(always)]
    pub(super) fn leaf<const W: usize>(
        &self,
        root: u32,
        key: &[u64; W],
        mut show: impl FnMut(&Node),
    ) -> Leaf {
        let mut index = root;
        loop {
            let next = self.next(index, key);
            if next == index {
                return self.node(index).rows();
            }
            show(self.node(index));
            index = next;
        }
    }
}

/// The nodes of a tree that is being built: the root first, children by index. The
/// rows of each leaf are a part of `lists`, a list of places.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) nodes: Vec<Node>,
    pub(super) lists: Vec<u32>,
}

impl Draft {
    /// Appends two to the power of `bits` nodes. Returns the index of the first.
    pub(super) fn alloc(
        &mut self,
        bits: u32,
        monitor: &mut Monitor<'_>,
    ) -> Result<u32, BuildError> {
        let first = u32::try_from(self.nodes.len()).expect("nodes are bounded");
        for _ in 0..1 << bits {
            monitor.memory().room(&mut self.nodes)?;
            self.nodes.push(Node::EMPTY);
        }
        Ok(first)
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of::<Node>(self.nodes.capacity()) + bytes_of::<u32>(self.lists.capacity())
    }

    pub(super) fn root_is_leaf(&self) -> bool {
        self.nodes[0].is_leaf()
    }

    /// Returns the places of a leaf.
    pub(super) fn places(&self, node: &Node) -> &[u32] {
        let leaf = node.rows();
        &self.lists[leaf.first as usize..][..leaf.len as usize]
    }
}
