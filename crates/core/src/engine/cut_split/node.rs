//! The nodes of all trees.

use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::schema::Part;
use crate::simd::Aligned;

/// Nodes of a cache line.
const LINE: usize = 4;

/// The most bits that a node cuts by.
pub(super) const MOST_BITS: u32 = 8;

/// The field of a leaf.
const NO_FIELD: u8 = u8::MAX;

/// An inner node, or a leaf.
///
/// An inner node shifts a 64-bit word of a key up until the bits that it looks at
/// are the highest. A *split* compares the word with `value`; what stands below
/// the field does not matter, because there `value` has zeros. The next node is
/// `child` where the word is less, else `child + 1`. A *cut* takes the highest
/// `bits` bits, and the next node is that many after `child`; its `value` counts
/// the places of the leaves below.
///
/// A leaf sends every key to itself: of its word all but a bit is shifted out, and
/// `value` is more than that. Below its two highest bits `value` has the place of
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

const LEAF: u64 = 3 << 62;

/// Where the rows of a leaf are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) first: u32,
    pub(super) len: u32,
}

impl Node {
    /// A leaf without rows, to be overwritten.
    pub(super) const EMPTY: Node = Node {
        value: LEAF,
        child: 0,
        word: 0,
        shift: 63,
        bits: 0,
        field: NO_FIELD,
    };

    /// The leaf at an index.
    pub(super) fn leaf(index: u32, leaf: Leaf) -> Node {
        debug_assert!(leaf.len < 1 << 30);
        Node {
            value: LEAF | u64::from(leaf.len) << 32 | u64::from(leaf.first),
            child: index,
            ..Node::EMPTY
        }
    }

    /// Compares a part of a field with a value that begins at the highest bit.
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

    /// Takes `bits` bits of a part of a field, after the first `skipped`.
    pub(super) fn cut(field: usize, part: Part, skipped: u32, bits: u32) -> Node {
        let split = Node::split(field, part, 0);
        Node {
            shift: split.shift + small(skipped as usize),
            bits: small(bits as usize),
            ..split
        }
    }

    /// The same node with other children.
    pub(super) fn with_children(self, child: u32) -> Node {
        Node { child, ..self }
    }

    /// The same cut with that many places below.
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

    /// The rows of a leaf.
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

    /// Two to that power is the number of children of an inner node.
    pub(super) fn fan_bits(&self) -> u32 {
        u32::from(self.bits).max(1)
    }

    /// The bits of a part of the field before those that a cut looks at.
    pub(super) fn skipped(&self, part: Part) -> u32 {
        u32::from(self.shift) - (64 - part.width - part.shift)
    }

    /// The child for a word that is shifted already.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // at most eight bits
    pub(super) fn branch(&self, word: u64) -> u32 {
        let cut = (word >> ((64 - u32::from(self.bits)) & 63)) as u32;
        let split = u32::from(word >= self.value);
        if self.bits == 0 { split } else { cut }
    }

    /// The bits of the key that say which child is the next, in the key's words.
    pub(super) fn want(&self, key: &[u64], mask: &mut [u64]) {
        let word = key[self.word()] << self.shift;
        let bits = match self.bits {
            // Up to the first bit in which they differ, or to the last of the value
            // that is set: then all that follow are at least those of the value.
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
const NONE: u32 = u32::MAX;

/// The nodes of all trees, in blocks of siblings. Node 0 is a leaf without rows.
pub(super) struct Nodes {
    lines: Vec<Aligned<[Node; LINE]>>,
    /// Nodes from here on were never used.
    end: u32,
    /// The first free block of each size; the others follow by `child`.
    free: [u32; MOST_BITS as usize + 1],
    /// Nodes in blocks that are in use.
    used: usize,
}

impl Nodes {
    /// Bytes of that many nodes.
    pub(super) fn bytes_of(nodes: usize) -> usize {
        bytes_of::<Aligned<[Node; LINE]>>(nodes.div_ceil(LINE))
    }

    /// With room for so many nodes in blocks of siblings.
    pub(super) fn with_room(nodes: usize) -> Nodes {
        let mut lines = Vec::with_capacity((nodes + 2).div_ceil(LINE));
        lines.push(Aligned([Node::EMPTY; LINE]));
        Nodes {
            lines,
            end: 2,
            free: [NONE; MOST_BITS as usize + 1],
            used: 2,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of::<Aligned<[Node; LINE]>>(self.lines.capacity())
    }

    /// Nodes in use.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Nodes in use, in free blocks or left out.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// Whether more nodes are free than in use.
    pub(super) fn is_sparse(&self) -> bool {
        let room = self.lines.capacity() * LINE;
        room > 64 && 2 * self.used < room
    }

    #[inline(always)]
    pub(super) fn node(&self, index: u32) -> &Node {
        let index = index as usize;
        &self.lines[index / LINE][index % LINE]
    }

    pub(super) fn node_mut(&mut self, index: u32) -> &mut Node {
        let index = index as usize;
        &mut self.lines[index / LINE][index % LINE]
    }

    /// A block of two to the power of `bits` siblings, not less than two.
    pub(super) fn alloc(&mut self, bits: u32) -> u32 {
        let (class, count) = (bits as usize, 1 << bits);
        self.used += count as usize;
        let first = self.free[class];
        if first != NONE {
            self.free[class] = self.node(first).child;
            return first;
        }
        if bits > 1 && !self.end.is_multiple_of(4) {
            // Larger blocks begin with a cache line; the pair before is left free.
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
        let lines = (end as usize).div_ceil(LINE);
        if lines > self.lines.capacity() {
            let more = (lines - self.lines.len()).max(self.lines.len() / 4);
            self.lines.reserve_exact(more);
        }
        if lines > self.lines.len() {
            self.lines.resize(lines, Aligned([Node::EMPTY; LINE]));
        }
    }

    fn put_free(&mut self, first: u32, bits: u32) {
        // Free nodes are leaves without rows, so that walks over all pass over them.
        for index in first..first + (1 << bits) {
            *self.node_mut(index) = Node::EMPTY;
        }
        let next = std::mem::replace(&mut self.free[bits as usize], first);
        *self.node_mut(first) = Node::EMPTY.with_children(next);
    }

    /// Gives a block back.
    pub(super) fn free(&mut self, first: u32, bits: u32) {
        self.used -= 1 << bits;
        self.put_free(first, bits);
    }

    /// The next node of a key: that of a leaf is the leaf itself.
    #[inline(always)]
    pub(super) fn next<const W: usize>(&self, index: u32, key: &[u64; W]) -> u32 {
        let node = self.node(index);
        let word = key[usize::from(node.word)] << (node.shift & 63);
        node.child + node.branch(word)
    }

    /// The leaf of a key below a node; all nodes on the way there are shown.
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

/// The nodes of one tree while it is made: children by index, the root first;
/// rows of leaves are a part of a list of places.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) nodes: Vec<Node>,
    pub(super) lists: Vec<u32>,
}

impl Draft {
    /// Appends two to the power of `bits` nodes; the index of the first.
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

    /// The places of a leaf.
    pub(super) fn places(&self, node: &Node) -> &[u32] {
        let leaf = node.rows();
        &self.lists[leaf.first as usize..][..leaf.len as usize]
    }
}
