//! The rules of one mask, and the bits that distinguish a packet from them.

use super::choice::{PendingChoices, WantedBits};
use super::tree::{Node, Tree};
use crate::bits::Words;
use crate::header_space::Term;
use crate::key::KEY_WORDS;

/// The mask bits of one word of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MaskWord {
    pub(super) word: u8,
    pub(super) mask: u64,
}

/// The rules of one mask.
pub(crate) struct Group {
    mask: Box<[MaskWord]>,
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
    pub(super) fn new(mask: Box<[MaskWord]>) -> Group {
        let tree = Tree::new(mask.iter().map(|word| word.mask).collect());
        Group { mask, tree }
    }

    pub(super) fn mask(&self) -> &[MaskWord] {
        &self.mask
    }

    pub(super) fn insert(&mut self, values: &[u64], rank: u64) {
        self.tree.insert(values, rank);
    }

    pub(super) fn remove(&mut self, values: &[u64], rank: u64) {
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
        let masks: Vec<u64> = self.mask.iter().map(|word| word.mask).collect();
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

    /// Puts words in the order of the mask at their places in a key.
    fn spread(&self, words: &[u64]) -> Words {
        let mut spread = [0; KEY_WORDS];
        for (part, &word) in self.mask.iter().zip(words) {
            spread[usize::from(part.word)] = word;
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
        let is_wanted = |part: &MaskWord| part.mask & !wanted.word(usize::from(part.word)) == 0;
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
            let word = usize::from(self.mask[branch.slot()].word);
            // A wanted bit excludes all rules on the other side.
            if branch.bit_of(wanted.word(word)) {
                visit(branch.child(usize::from(branch.bit_of(packet[word]))));
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

    /// Returns for each word of the mask its index in a key, and the agreed bits of a node
    /// where the packet differs.
    #[inline]
    fn differing<'g>(
        &'g self,
        node: Node,
        packet: &'g Words,
    ) -> impl Iterator<Item = (usize, u64)> + Clone + use<'g> {
        let (values, agreed) = (self.tree.values(node), self.tree.agreed(node));
        let words = self.mask.iter().zip(values.iter().zip(agreed));
        words.map(|(word, (value, agreed))| {
            let index = usize::from(word.word);
            (index, (packet[index] ^ value) & agreed)
        })
    }
}
