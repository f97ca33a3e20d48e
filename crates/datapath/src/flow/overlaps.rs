//! Finds overlapping entries of the same table and priority.
//!
//! # Idea
//! Two entries overlap unless some bit must be 0 in one and 1 in the other. The entries of a
//! priority are the leaves of a tree. An inner node tests one bit and has three children:
//! entries that require 0, entries that require 1, and entries that accept both. A search
//! skips the child that requires the other value.
//!
//! ```text
//! priority ─▶ bit 3 of tp_dst ─┬─ 0: bit 7 of nw_src ─┬─ 0: entries
//!                              │                      ├─ 1: entries
//!                              │                      └─ either: entries
//!                              ├─ 1: entries
//!                              └─ either: entries
//! ```
//!
//! # Cost
//! An entry is in one leaf, so memory is linear. A path tests each bit at most once. A search
//! visits each node of the priority at most once, and few nodes if entries differ in bits
//! that the new entry requires. A table has an index only after a message with
//! `check_overlap`.

use std::collections::BTreeMap;
use std::sync::Arc;

use classyard::RuleId;

use super::entry::FlowEntry;
use crate::field::Field;
use crate::flow_match::FlowMatch;

/// Maximum number of members of a leaf, unless all its members overlap each other.
const LEAF_MEMBERS: usize = 16;

/// An inner node becomes a leaf when it has at most this number of members. The number is
/// less than [`LEAF_MEMBERS`], so that a few additions and removals do not divide and
/// merge a node repeatedly.
const MERGED_MEMBERS: usize = 8;

/// The index of one table's entries.
#[derive(Clone, Debug, Default)]
pub(super) struct OverlapIndex {
    priorities: BTreeMap<u16, Node>,
}

/// An entry and its match.
#[derive(Clone, Debug)]
struct Member {
    id: RuleId,
    flow: Arc<FlowMatch>,
}

#[derive(Clone, Debug)]
enum Node {
    Leaf(Leaf),
    Inner(Box<Inner>),
}

#[derive(Clone, Debug)]
struct Leaf {
    members: Vec<Member>,
    /// The leaf is divided when it has more members than this.
    max_members: usize,
}

#[derive(Clone, Debug)]
struct Inner {
    bit: Bit,
    /// The members of all leaves below.
    members: usize,
    /// The members that require 0, that require 1, and that accept both.
    children: [Node; 3],
}

/// The child of members that accept both values of the bit.
const EITHER: usize = 2;

/// A bit of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bit {
    field: Field,
    number: u32,
}

impl Bit {
    /// Returns the child for a match: the value that it requires, or [`EITHER`].
    fn child(self, flow: &FlowMatch) -> usize {
        let is_set = |word: u128| word >> self.number & 1 == 1;
        match flow.get(self.field) {
            Some(value) if is_set(value.mask) => usize::from(is_set(value.value)),
            _ => EITHER,
        }
    }
}

impl Leaf {
    fn of(members: Vec<Member>) -> Leaf {
        Leaf {
            members,
            max_members: LEAF_MEMBERS,
        }
    }

    /// Returns the bit that distinguishes the most pairs of members: one member requires 0
    /// and the other 1. Returns `None` if no bit distinguishes two members.
    fn best_bit(&self) -> Option<Bit> {
        const FIELD_BITS: usize = u128::BITS as usize;
        // For each bit, the members that require 0 and 1.
        let mut counts = vec![[0_u64; 2]; Field::COUNT * FIELD_BITS];
        for value in self.members.iter().flat_map(|member| member.flow.values()) {
            let mut mask = value.mask;
            while mask != 0 {
                let number = mask.trailing_zeros();
                let bit = usize::from(value.value >> number & 1 == 1);
                counts[value.field.index() * FIELD_BITS + number as usize][bit] += 1;
                mask &= mask - 1;
            }
        }
        let fields = Field::all().zip(counts.chunks(FIELD_BITS));
        let bits = fields.flat_map(|(field, counts)| {
            (0..).zip(counts).map(move |(number, [zeros, ones])| {
                let bit = Bit { field, number };
                (zeros * ones, bit)
            })
        });
        let (pairs, bit) = bits.max_by_key(|&(pairs, _)| pairs)?;
        (pairs > 0).then_some(bit)
    }
}

impl Node {
    fn leaf(members: Vec<Member>) -> Node {
        Node::Leaf(Leaf::of(members))
    }

    fn add(&mut self, member: Member) {
        let mut node = self;
        let leaf = loop {
            match node {
                Node::Inner(inner) => {
                    inner.members += 1;
                    node = &mut inner.children[inner.bit.child(&member.flow)];
                }
                Node::Leaf(leaf) => break leaf,
            }
        };
        leaf.members.push(member);
        if leaf.members.len() <= leaf.max_members {
            return;
        }
        match leaf.best_bit() {
            Some(bit) => {
                let members = std::mem::take(&mut leaf.members);
                *node = Node::divided(members, bit);
            }
            // All members overlap. Tried again when there are twice as many.
            None => leaf.max_members *= 2,
        }
    }

    /// Returns an inner node for the members of a leaf.
    fn divided(members: Vec<Member>, bit: Bit) -> Node {
        let count = members.len();
        let mut children: [Vec<Member>; 3] = Default::default();
        for member in members {
            children[bit.child(&member.flow)].push(member);
        }
        Node::Inner(Box::new(Inner {
            bit,
            members: count,
            children: children.map(Node::leaf),
        }))
    }

    fn remove(&mut self, id: RuleId, flow: &FlowMatch) {
        let mut node = self;
        loop {
            if let Node::Inner(inner) = node
                && inner.members <= MERGED_MEMBERS + 1
            {
                *node = Node::leaf(node.members().cloned().collect());
            }
            match node {
                Node::Inner(inner) => {
                    inner.members -= 1;
                    node = &mut inner.children[inner.bit.child(flow)];
                }
                Node::Leaf(leaf) => {
                    leaf.members.retain(|member| member.id != id);
                    return;
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Node::Leaf(leaf) if leaf.members.is_empty())
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        self.members_where(|_| None)
    }

    /// Iterates over members that a match may overlap.
    fn candidates(&self, new: &FlowMatch) -> impl Iterator<Item = &Member> {
        self.members_where(|bit| match bit.child(new) {
            EITHER => None,
            value => Some(1 - value),
        })
    }

    /// Iterates over members. At each inner node, skips the child that `skipped` returns for
    /// the node's bit.
    fn members_where(
        &self,
        skipped: impl Fn(Bit) -> Option<usize>,
    ) -> impl Iterator<Item = &Member> {
        let mut pending = vec![self];
        let leaves = std::iter::from_fn(move || {
            loop {
                match pending.pop()? {
                    Node::Leaf(leaf) => return Some(leaf),
                    Node::Inner(inner) => {
                        let skipped = skipped(inner.bit);
                        let children = inner.children.iter().enumerate();
                        let children = children.filter(|(child, _)| Some(*child) != skipped);
                        pending.extend(children.map(|(_, node)| node));
                    }
                }
            }
        });
        leaves.flat_map(|leaf| &leaf.members)
    }
}

impl OverlapIndex {
    /// Builds the index of a table's entries.
    pub(super) fn new<'e>(entries: impl Iterator<Item = &'e FlowEntry>) -> OverlapIndex {
        let mut index = OverlapIndex::default();
        entries.for_each(|entry| index.add(entry));
        index
    }

    pub(super) fn add(&mut self, entry: &FlowEntry) {
        let root = self.priorities.entry(entry.priority);
        root.or_insert_with(|| Node::leaf(Vec::new())).add(Member {
            id: entry.id,
            flow: Arc::clone(&entry.flow),
        });
    }

    pub(super) fn remove(&mut self, entry: &FlowEntry) {
        let Some(root) = self.priorities.get_mut(&entry.priority) else {
            return;
        };
        root.remove(entry.id, &entry.flow);
        if root.is_empty() {
            self.priorities.remove(&entry.priority);
        }
    }

    /// Returns an entry of the priority that overlaps a match.
    pub(super) fn overlapping(&self, priority: u16, new: &FlowMatch) -> Option<RuleId> {
        let root = self.priorities.get(&priority)?;
        let mut candidates = root.candidates(new);
        let member = candidates.find(|member| member.flow.overlaps(new))?;
        Some(member.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_match::MatchField;

    /// Returns a pseudo-random address.
    fn address(state: &mut u64) -> u128 {
        u128::from(classyard::author::splitmix(state) & 0xffff_ffff)
    }

    /// Returns the mask of a prefix of random length.
    fn prefix(state: &mut u64) -> u128 {
        let length = classyard::author::splitmix(state) % 32;
        0xffff_ffff & !(0xffff_ffff >> length)
    }

    fn member(number: u32, values: [(Field, u128, u128); 2]) -> Member {
        let values = values.map(|(field, value, mask)| MatchField {
            field,
            value: value & mask,
            mask,
        });
        let ipv4 = MatchField::exact(Field::EthType, 0x800);
        Member {
            id: RuleId::new(number).unwrap(),
            flow: Arc::new(FlowMatch::new(values.into_iter().chain([ipv4])).unwrap()),
        }
    }

    /// Adds members that do not overlap, as `check_overlap` does. Returns them, and the
    /// members compared for each of the others.
    fn checked(all: impl Iterator<Item = Member>) -> (Node, Vec<Member>, usize) {
        let mut root = Node::leaf(Vec::new());
        let (mut added, mut compared, mut searches) = (Vec::new(), 0, 0);
        for member in all {
            let candidates = root.candidates(&member.flow);
            let mut candidates = candidates.inspect(|_| compared += 1);
            searches += 1;
            if !candidates.any(|old| old.flow.overlaps(&member.flow)) {
                drop(candidates);
                root.add(member.clone());
                added.push(member);
            }
        }
        (root, added, compared / searches)
    }

    #[test]
    fn few_members_are_compared_whatever_their_masks() {
        let mut state = 5;
        let random_masks = (0..20_000).map(|number| {
            let (value, mask) = (address(&mut state), address(&mut state));
            let own = (Field::Metadata, u128::from(number), 0xffff);
            member(number, [(Field::Ipv4Src, value, mask), own])
        });
        let random_masks: Vec<Member> = random_masks.collect();
        let prefixes = (0..20_000).map(|number| {
            let fields = [Field::Ipv4Src, Field::Ipv4Dst];
            let values = fields.map(|field| (field, address(&mut state), prefix(&mut state)));
            member(number, values)
        });
        let prefixes: Vec<Member> = prefixes.collect();
        for (name, all) in [("random masks", random_masks), ("prefixes", prefixes)] {
            let (_, added, compared) = checked(all.into_iter());
            assert!(added.len() > 1_000, "{name}: {}", added.len());
            assert!(compared < 200, "{name}: {compared} of {}", added.len());
        }
    }

    #[test]
    fn members_that_all_overlap_stay_in_a_leaf() {
        let mut root = Node::leaf(Vec::new());
        let all: Vec<Member> = (0..1_000)
            .map(|number| {
                let bit = 1 << (number % 32);
                member(number, [(Field::Ipv4Src, bit, bit), (Field::Ipv4Dst, 0, 1)])
            })
            .collect();
        all.iter().cloned().for_each(|member| root.add(member));
        assert!(matches!(&root, Node::Leaf(leaf) if leaf.members.len() == all.len()));
    }

    #[test]
    fn removed_members_leave_no_nodes() {
        let all: Vec<Member> = (0..5_000)
            .map(|number| {
                let value = u128::from(number);
                let wide = [(Field::Ipv4Src, value, 0xffff_ffff), (Field::Ipv4Dst, 0, 1)];
                member(number, wide)
            })
            .collect();
        let mut root = Node::leaf(Vec::new());
        all.iter().cloned().for_each(|member| root.add(member));
        assert!(matches!(root, Node::Inner(_)));
        for (index, member) in all.iter().enumerate() {
            assert_eq!(root.members().count(), all.len() - index);
            root.remove(member.id, &member.flow);
        }
        assert!(root.is_empty());
    }
}
