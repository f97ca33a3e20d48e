//! The rules of one mask, and the bits that distinguish a packet from them.

use super::choice::{PendingChoices, WantedBits};
use super::tree::{Node, Tree};
use crate::bits::Words;
use crate::header_space::Term;
use crate::key::KEY_WORDS;

/// The mask bits of one half of a word of a key. Most masks have bits in few halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MaskPart {
    /// The index of the word × 2, + 1 for the upper half.
    half: u8,
    pub(super) mask: u32,
}

impl MaskPart {
    /// No mask bits.
    pub(super) const NONE: MaskPart = MaskPart { half: 0, mask: 0 };

    /// Returns the mask bits of one half of a word: 0 for the lower, 1 for the upper half.
    pub(super) fn new(word: u8, half: u8, mask: u64) -> MaskPart {
        let mut part = MaskPart {
            half: 2 * word + half,
            mask: 0,
        };
        part.mask = part.of(mask);
        part
    }

    /// Returns the index of the word in a key.
    #[inline]
    fn word(self) -> usize {
        usize::from(self.half / 2)
    }

    /// Returns the half of a word of a key.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the half
    pub(super) fn of(self, word: u64) -> u32 {
        (word >> (32 * (self.half % 2))) as u32
    }

    /// Puts bits of the half at their place in a word.
    #[inline]
    fn place(self, bits: u32) -> u64 {
        u64::from(bits) << (32 * (self.half % 2))
    }
}

/// The rules of one mask.
pub(crate) struct Group {
    mask: Box<[MaskPart]>,
    tree: Tree,
}

/// The result of comparing a packet with all rules below a node.
enum Comparison {
    /// All rules differ from the packet in a wanted bit.
    Excluded,
    /// The packet differs from all rules in some agreed bit, none of them wanted.
    Differs,
    /// The packet has the value of all agreed bits.
    Agrees,
}

impl Group {
    /// Returns a group without rules.
    pub(super) fn new(mask: Box<[MaskPart]>) -> Group {
        let tree = Tree::new(mask.iter().map(|part| part.mask).collect());
        Group { mask, tree }
    }

    pub(super) fn mask(&self) -> &[MaskPart] {
        &self.mask
    }

    pub(super) fn insert(&mut self, values: &[u32], rank: u64) {
        self.tree.insert(values, rank);
    }

    pub(super) fn remove(&mut self, values: &[u32], rank: u64) {
        self.tree.remove(values, rank);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tree.root().is_none()
    }

    /// Returns the best rank of a rule. A group without rules has the worst rank.
    #[inline]
    pub(crate) fn best_rank(&self) -> u64 {
        self.tree.best_rank()
    }

    /// Returns the mask over the words of a key.
    pub(crate) fn full_mask(&self) -> Words {
        let masks: Vec<u32> = self.mask.iter().map(|part| part.mask).collect();
        self.spread(&masks)
    }

    /// Returns the values that all rules have in common. A group without rules has none.
    pub(crate) fn agreed(&self) -> Term<KEY_WORDS> {
        let Some(root) = self.tree.root() else {
            return Term::ANY;
        };
        let values = self.spread(self.tree.values(root));
        Term::new(values, self.spread(self.tree.agreed(root)))
    }

    /// Iterates over the different values of rules, and the best rank of each.
    pub(crate) fn values(&self) -> impl Iterator<Item = (Words, u64)> {
        let leaves = self.tree.leaves();
        leaves.map(|(values, rank)| (self.spread(values), rank))
    }

    /// Puts halves in the order of the mask at their places in a key.
    fn spread(&self, halves: &[u32]) -> Words {
        let mut spread = [0; KEY_WORDS];
        for (part, &bits) in self.mask.iter().zip(halves) {
            spread[part.word()] |= part.place(bits);
        }
        spread
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Group>() + 2 * size_of_val(&*self.mask) + self.tree.bytes()
    }

    /// Returns the node where a search for better rules begins, or `None` if all mask bits of
    /// the group are wanted. Then every rule that does not match the packet is excluded.
    pub(super) fn start(&self, wanted: &WantedBits<'_>) -> Option<Node> {
        let is_wanted = |part: &MaskPart| part.mask & !part.of(wanted.word(part.word())) == 0;
        let root = self.tree.root()?;
        (!self.mask.iter().all(is_wanted)).then_some(root)
    }

    /// Makes one step of the search for rules that are better than `winner`, and that no
    /// wanted bit excludes. None of these rules may match the packet. Adds the rules below
    /// `node` to `pending`, or calls `visit` with the nodes where the search goes on.
    ///
    /// Rules below a branch are added together by the bits that exclude all of them. Up to
    /// `budget` such branches are divided, since each half has more bits that exclude it.
    pub(super) fn step(
        &self,
        (node, winner): (Node, u64),
        packet: &Words,
        (wanted, pending): (&WantedBits<'_>, &mut PendingChoices),
        budget: &mut usize,
        mut visit: impl FnMut(Node),
    ) {
        let branch = self.tree.branch(node);
        if let Some(branch) = branch {
            let part = self.mask[branch.slot()];
            let half_of = |words: &Words| part.of(words[part.word()]);
            // A wanted bit excludes all rules on the other side.
            if branch.bit_of(half_of(wanted.mask())) {
                visit(branch.child(usize::from(branch.bit_of(half_of(packet)))));
                return;
            }
        }
        if self.tree.best(node) >= winner {
            return;
        }
        match (self.compare(node, packet, wanted), branch) {
            (Comparison::Excluded, _) => {}
            (Comparison::Differs, None) => pending.add(self.differing(node, packet)),
            (Comparison::Differs, Some(_)) if *budget == 0 => {
                pending.add(self.differing(node, packet));
            }
            (Comparison::Agrees, None) => debug_assert!(false, "a better rule matches the packet"),
            (comparison, Some(branch)) => {
                *budget -= usize::from(matches!(comparison, Comparison::Differs));
                visit(branch.child(0));
                visit(branch.child(1));
            }
        }
    }

    /// Compares a packet with the agreed bits of a node.
    #[inline]
    fn compare(&self, node: Node, packet: &Words, wanted: &WantedBits<'_>) -> Comparison {
        let (mut all_bits, mut wanted_bits) = (0, 0);
        for (word, differing) in self.differing(node, packet) {
            all_bits |= differing;
            wanted_bits |= differing & wanted.word(word);
        }
        match (wanted_bits, all_bits) {
            (0, 0) => Comparison::Agrees,
            (0, _) => Comparison::Differs,
            _ => Comparison::Excluded,
        }
    }

    /// Returns for each part of the mask the index of its word in a key, and the agreed bits of a
    /// node where the packet differs.
    #[inline]
    fn differing<'g>(
        &'g self,
        node: Node,
        packet: &'g Words,
    ) -> impl Iterator<Item = (usize, u64)> + Clone + use<'g> {
        let (values, agreed) = (self.tree.values(node), self.tree.agreed(node));
        let parts = self.mask.iter().zip(values.iter().zip(agreed));
        parts.map(|(part, (value, agreed))| {
            let differing = (part.of(packet[part.word()]) ^ value) & agreed;
            (part.word(), part.place(differing))
        })
    }
}
