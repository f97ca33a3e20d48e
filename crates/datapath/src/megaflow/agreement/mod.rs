//! Agreement trees: bits that exclude many rules each, found in trees that follow every
//! change.
//!
//! # Idea
//! A bit *excludes* a rule for a packet if the rule has the other value in this bit. Each rule
//! that is better than the packet's winner needs a wanted bit that excludes it. The mask bits
//! of the winner are wanted in any case, and exclude most rules.
//!
//! The other rules are collected in sets, as in multi-bit common match ([FCH14] §4). A set has
//! the bits that exclude all of its rules. A rule joins the first set that has one of its
//! bits, and the set then keeps the bits in common. At the end, each set gets its cheapest
//! bit: the bit that adds the fewest bits to the mask.
//!
//! Trees find the rules. Rules with the same mask are a *group*, which has a tree. Each node
//! holds the bits where all rules below *agree*. If one of these bits is wanted and the packet
//! differs in it, the search skips all rules below.
//!
//! # Data layout
//! ```text
//! groups, by the number of mask bits
//!   group   mask │ root
//!   branch  bit │ child for 0, for 1 │ bits where all rules below agree │ a leaf below │ best rank below
//!   leaf    value │ best rank of the rules with this value
//! ```
//! The tree of a group is a binary trie without chains (a PATRICIA tree): a branch stands
//! where the values of two rules first differ. The agreed values of a branch are those of
//! any leaf below.
//!
//! # Lookup
//! ```text
//! for each group with a better rule and an unwanted mask bit; for each node, from the root:
//!     if the node's bit is wanted: go on with the packet's child
//!     if no rule below is better than the winner: done
//!     bits = agreed bits of the node where the packet differs
//!     if bits & wanted: done
//!     if the node is a leaf, or bits and the budget is used up: add bits to the sets
//!     else: go on with both children
//! for each set: wanted |= its cheapest bit
//! ```
//! The searches of all groups advance together, one node each, since most nodes are not in
//! the processor's cache.
//!
//! # Cost
//! A packet costs O(g d + b) nodes for g groups of depth d, with a budget b of
//! [`MAX_DIVIDED_BRANCHES`]. Each addition to the sets is compared with at most
//! [`MAX_PENDING_SETS`] sets. With more than [`MAX_GROUPS`] groups, a packet gets the mask bits
//! of all groups. A change costs O(d W), and d is at most the number of mask bits. A rule
//! takes 4 + W words, where W is the number of halves of words that its mask has bits in.
//!
//! # Where we differ from the paper, and why
//! - **The rules come from a structure that changes with the table.** The paper's heuristics
//!   pass over all rules of higher priority for each packet.
//! - **Leading bits.** In addresses and ports, all bits before a wanted bit are wanted too,
//!   so there are few different masks. A cache searches one hash table for each mask.
//! - **The bound of the work.** Beyond the budget, the rules below a branch are one rule with
//!   the bits in which they agree. The mask may then have more bits.
//!
//! # References
//! [FCH14] §4, "Common match" and "Multi-bit common match".
//!
//! [FCH14]: classyard::papers#fch14

use std::collections::BTreeMap;

use classyard::schema::Part;
use foldhash::HashMap;

use crate::bits::{Known, Words};
use crate::key::KEY_WORDS;
use group::MaskPart;

mod choice;
mod group;
#[cfg(test)]
mod tests;
mod tree;

use choice::PendingChoices;
pub(crate) use choice::WantedBits;
pub(crate) use group::Group;
use tree::Node;

/// Maximum number of groups that are compared with a packet. Measured in
/// `bench/records/constants.md` (Bits of megaflows).
const MAX_GROUPS: usize = 2048;

/// Maximum number of branches that are divided for a packet although one bit would exclude all
/// rules below. `bench/records/caches.md` (Bits of megaflows) compares values.
const MAX_DIVIDED_BRANCHES: usize = 512;

/// Maximum number of sets before bits are chosen. It bounds the work for each rule.
const MAX_PENDING_SETS: usize = 64;

/// The rules of a table, as one agreement tree for each mask.
#[derive(Default)]
pub(crate) struct AgreementTrees {
    /// By the number of mask bits. The order within a number of bits has no meaning.
    groups: BTreeMap<u32, Vec<Group>>,
    /// By mask, the index of its group among the groups with as many bits.
    group_indexes: HashMap<Box<[MaskPart]>, usize>,
    /// All mask bits of rules since the trees were last empty.
    all_bits: Words,
}

impl AgreementTrees {
    /// Adds a rule, given by its required bits and its rank. A smaller rank is better.
    pub(crate) fn insert(&mut self, required: &[Known], rank: u64) {
        let parts = RuleParts::new(required);
        for Known { word, mask, .. } in required {
            self.all_bits[usize::from(*word)] |= mask;
        }
        let groups = self.groups.entry(bits(parts.mask())).or_default();
        let index = match self.group_indexes.get(parts.mask()) {
            Some(&index) => index,
            None => {
                self.group_indexes.insert(parts.mask().into(), groups.len());
                groups.push(Group::new(parts.mask().into()));
                groups.len() - 1
            }
        };
        groups[index].insert(parts.values(), rank);
    }

    /// Removes a rule that was added with the same bits and rank.
    pub(crate) fn remove(&mut self, required: &[Known], rank: u64) {
        let parts = RuleParts::new(required);
        let (mask, count) = (parts.mask(), bits(parts.mask()));
        let groups = self.groups.get_mut(&count);
        let Some((&index, groups)) = self.group_indexes.get(mask).zip(groups) else {
            debug_assert!(false, "the rule was not added");
            return;
        };
        groups[index].remove(parts.values(), rank);
        if !groups[index].is_empty() {
            return;
        }
        self.group_indexes.remove(mask);
        groups.swap_remove(index);
        match groups.get(index) {
            Some(moved) => {
                let moved_index = self.group_indexes.get_mut(moved.mask());
                *moved_index.expect("a group's mask") = index;
            }
            None if groups.is_empty() => _ = self.groups.remove(&count),
            None => {}
        }
        if self.groups.is_empty() {
            self.all_bits = [0; KEY_WORDS];
        }
    }

    /// Iterates over the groups, the fewest mask bits first.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &Group> + Clone {
        self.groups.values().flatten()
    }

    /// Adds bits to `wanted` until the packet differs in a wanted bit from each rule that is
    /// better than `winner`, the rank of the rule that wins the packet. The winner's own mask
    /// bits are not added.
    pub(crate) fn exclude_better(&self, packet: &Words, winner: u64, wanted: &mut WantedBits<'_>) {
        let better = self.groups().filter(|group| group.best_rank() < winner);
        if better.clone().nth(MAX_GROUPS).is_some() {
            for (word, &mask) in self.all_bits.iter().enumerate() {
                wanted.add(word, mask);
            }
            return;
        }
        let starts = better.filter_map(|group| Some((group, group.start(wanted)?)));
        // The searches of all groups take one step each in turn, so that their memory
        // accesses overlap.
        let mut nodes: Vec<(&Group, Node)> = starts.collect();
        let mut next_nodes = Vec::with_capacity(nodes.len());
        let mut budget = MAX_DIVIDED_BRANCHES;
        let mut pending = PendingChoices::default();
        while !nodes.is_empty() {
            for (group, node) in nodes.drain(..) {
                let bits = (&*wanted, &mut pending);
                group.step((node, winner), packet, bits, &mut budget, |node| {
                    next_nodes.push((group, node));
                });
                if pending.len() > MAX_PENDING_SETS {
                    pending.choose(wanted);
                }
            }
            std::mem::swap(&mut nodes, &mut next_nodes);
        }
        pending.choose(wanted);
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.groups().map(Group::bytes).sum()
    }
}

/// The position of each word of a key in trees: words that a rule usually has whole come
/// first, then the addresses, their upper halves first, and the ports.
const WORD_POSITIONS: [u8; KEY_WORDS] = [
    1, 2, 0, 3, 4, 5, 21, 20, 19, 18, 17, 14, 15, 16, 6, 7, 8, 9, 10, 11, 12, 13,
];

/// The mask and the values of a rule, in the order of trees.
struct RuleParts {
    mask: [MaskPart; 2 * KEY_WORDS],
    values: [u32; 2 * KEY_WORDS],
    parts: usize,
}

impl RuleParts {
    fn new(required: &[Known]) -> RuleParts {
        let mut parts = RuleParts {
            mask: [MaskPart::NONE; 2 * KEY_WORDS],
            values: [0; 2 * KEY_WORDS],
            parts: 0,
        };
        let mut sorted = [0; KEY_WORDS];
        let sorted = &mut sorted[..required.len()];
        for (index, at) in sorted.iter_mut().enumerate() {
            *at = index;
        }
        sorted.sort_unstable_by_key(|&index| WORD_POSITIONS[usize::from(required[index].word)]);
        for &index in &*sorted {
            let Known { word, mask, value } = required[index];
            let halves = [1, 0].map(|half| MaskPart::new(word, half, mask));
            for part in halves.into_iter().filter(|part| part.mask != 0) {
                parts.mask[parts.parts] = part;
                parts.values[parts.parts] = part.of(value);
                parts.parts += 1;
            }
        }
        parts
    }

    fn mask(&self) -> &[MaskPart] {
        &self.mask[..self.parts]
    }

    fn values(&self) -> &[u32] {
        &self.values[..self.parts]
    }
}

/// Returns the number of bits of a mask.
fn bits(mask: &[MaskPart]) -> u32 {
    mask.iter().map(|part| part.mask.count_ones()).sum()
}

/// Returns the places of the addresses and ports in a packet's key. In these fields, all bits
/// before a wanted bit are wanted too.
pub(crate) fn prefix_fields(is_ipv6: bool) -> &'static [Part] {
    const fn part(word: usize, shift: u32, width: u32) -> Part {
        Part { word, shift, width }
    }
    const PORTS: [Part; 2] = [part(6, 0, 16), part(6, 16, 16)];
    const IPV4: [Part; 4] = [PORTS[0], PORTS[1], part(7, 0, 32), part(9, 0, 32)];
    const IPV6: [Part; 6] = [
        PORTS[0],
        PORTS[1],
        part(7, 0, 64),
        part(8, 0, 64),
        part(9, 0, 64),
        part(10, 0, 64),
    ];
    match is_ipv6 {
        true => &IPV6,
        false => &IPV4,
    }
}
