//! A table: a mask, and a bucket for each hash of the bits under it.

use std::ops::Range;

use super::runs::Run;
use crate::rule::Winner;
use crate::simd::pages::ask_for_huge_pages;
use crate::simd::pending::{Offer, Rivals};
use crate::simd::prefetch;
use crate::simd::probe::{LENGTH, NODE, Probed, RIVALS};

/// A table of a forest. Numbers are reused after a table is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableNumber(u32);

impl TableNumber {
    pub(super) const NONE: TableNumber = TableNumber(u32::MAX);

    pub(super) fn from_index(index: usize) -> TableNumber {
        TableNumber(u32::try_from(index).expect("fewer tables than rules"))
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// The first table of a slot's node; means nothing for other slots.
    #[inline]
    pub(super) fn from_slot(slot: Slot) -> TableNumber {
        TableNumber(slot.position())
    }
}

/// What a bucket holds, in 8 bytes:
/// ```text
/// bits 63..32   first word of the run, or first table of the nested node
/// bits 31..16   signature
/// bits 15..11   rivals of the run's rules
/// bits 10..0    rules of the run; 0 for an empty bucket, NODE for a node
/// ```
/// The signature has a bit for every four hash bits that a rule of the bucket
/// has beyond those of the bucket's number. A key whose bit is not set has
/// nothing to find here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Slot(u64);

/// A slot taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bucket {
    Empty,
    Run(Run),
    /// A nested node, by its first table.
    Node(TableNumber),
}

impl Slot {
    pub(super) const EMPTY: Slot = Slot(0);

    /// With all rivals there may be.
    pub(super) fn new(bucket: Bucket, signature: u16) -> Slot {
        let (position, length) = match bucket {
            Bucket::Empty => return Slot::EMPTY,
            Bucket::Run(run) => (run.start, u64::from(run.len)),
            Bucket::Node(first) => (first.0, NODE),
        };
        let slot = Slot(u64::from(position) << 32 | u64::from(signature) << 16 | length);
        slot.with_rivals(Rivals::ALL)
    }

    /// With other rivals; an empty slot has none.
    pub(super) fn with_rivals(self, rivals: Rivals) -> Slot {
        let all = u64::from(Rivals::ALL.bits()) << RIVALS;
        match self.length() {
            0 => self,
            _ => Slot(self.0 & !all | u64::from(rivals.bits()) << RIVALS),
        }
    }

    #[allow(clippy::cast_possible_truncation)] // the lowest of the bits count
    pub(super) fn rivals(self) -> Rivals {
        Rivals::from_bits((self.0 >> RIVALS) as u8)
    }

    pub(super) fn bucket(self) -> Bucket {
        match self.length() {
            0 => Bucket::Empty,
            _ if self.is_node() => Bucket::Node(TableNumber(self.position())),
            len => Bucket::Run(Run {
                start: self.position(),
                len,
            }),
        }
    }

    #[allow(clippy::cast_possible_truncation)] // the second 16 bits
    pub(super) fn signature(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Whether a key with that hash beyond the bucket's number may find
    /// something here.
    #[inline]
    pub(super) fn may_hold(self, sign: u32) -> bool {
        self.0 >> (16 + sign) & 1 != 0
    }

    /// A slot as the vector code saw it.
    #[inline]
    pub(super) fn from_word(word: u64) -> Slot {
        Slot(word)
    }

    /// The slot as vector code takes it.
    #[inline]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) fn is_node(self) -> bool {
        self.0 & LENGTH == NODE
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // eleven bits
    pub(super) fn length(self) -> u16 {
        (self.0 & LENGTH) as u16
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the upper half
    pub(super) fn position(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// What becomes of a table of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It is there as long as it has rules.
    Usual,
    /// A plan's that is being adopted: it stays while it is still empty.
    Coming,
    /// Of before the plan: takes no rule and loses those that it has.
    Leaving,
}

/// A table: members that lookups read first.
#[derive(Clone, Debug)]
pub(super) struct Table<const W: usize> {
    /// The bits that the table looks at.
    pub(super) mask: [u64; W],
    /// No rule of the table has a better rank; not always exact.
    pub(super) best: u64,
    /// The next table of the node, in the order of `best`.
    pub(super) next: TableNumber,
    /// No rule that came after marking the rivals is better.
    pub(super) unmarked: u64,
    /// The same, of those that came since marking began.
    pub(super) came: u64,
    /// By what the table is known among rivals; nothing if it is not.
    pub(super) group: Rivals,
    /// The number of slots is 2 to the power of `64 - 1 - shift`.
    shift: u32,
    slots: Vec<u64>,

    /// The table that this one's node is a bucket of; `NONE` in the root.
    pub(super) parent: TableNumber,
    pub(super) parent_slot: u32,
    /// When the table was learned: rules go to the first that serves them.
    pub(super) turn: u32,
    pub(super) role: Role,
    /// Slots that hold nodes.
    pub(super) nodes: usize,
    /// Slots that hold anything.
    pub(super) filled: usize,
    /// Rules in the table, nested ones included.
    pub(super) rules: usize,
    /// The best rule is gone and `best` not yet corrected.
    pub(super) stale: bool,
    /// While `best` is stale: the slots looked at so far, and the best rank in
    /// them and of the rules that have come since.
    pub(super) scanned: usize,
    pub(super) found: u64,
}

impl<const W: usize> Table<W> {
    /// An empty table.
    pub(super) fn new(mask: [u64; W], slots: usize) -> Table<W> {
        Table::with_slots(mask, slots, vec![Slot::EMPTY.0; slots])
    }

    /// A table that is of no use before [`add_slots`](Table::add_slots) has made
    /// its slots, some with each call.
    pub(super) fn without_slots(mask: [u64; W], slots: usize) -> Table<W> {
        Table::with_slots(mask, slots, Vec::with_capacity(slots))
    }

    fn with_slots(mask: [u64; W], count: usize, slots: Vec<u64>) -> Table<W> {
        assert!(count.is_power_of_two() && count.ilog2() <= 32);
        Table {
            mask,
            best: u64::MAX,
            unmarked: 0,
            came: 0,
            group: Rivals::NONE,
            next: TableNumber::NONE,
            shift: 63 - count.ilog2(),
            slots,
            parent: TableNumber::NONE,
            parent_slot: 0,
            turn: 0,
            role: Role::Usual,
            nodes: 0,
            filled: 0,
            rules: 0,
            stale: false,
            scanned: 0,
            found: u64::MAX,
        }
    }

    /// Makes so many of the slots that are missing; says whether more are.
    pub(super) fn add_slots(&mut self, count: usize) -> bool {
        let all = 1_usize << (63 - self.shift);
        let to = all.min(self.slots.len() + count);
        self.slots.resize(to, Slot::EMPTY.0);
        to < all
    }

    /// Asks for huge pages for the slots that there are.
    pub(super) fn ask_for_huge_pages(&self) {
        ask_for_huge_pages(&self.slots, self.slots.len());
    }

    /// The hash of a key's bits under the mask; `secrets` are odd.
    ///
    /// Multiply and take the upper bits: two different keys meet in one of n
    /// buckets with a chance of at most 2 / n over the choice of secrets
    /// (Dietzfelbinger et al., "A reliable randomized algorithm for the
    /// closest-pair problem", 1997, §3).
    #[inline]
    pub(super) fn hash(&self, key: &[u64; W], secrets: &[u64; W]) -> u64 {
        let mut hash = 0u64;
        for word in 0..W {
            hash = hash.wrapping_add((key[word] & self.mask[word]).wrapping_mul(secrets[word]));
        }
        hash
    }

    /// The slot of a hash.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // as many bits as slots
    pub(super) fn slot(&self, hash: u64) -> u32 {
        (hash >> 1 >> self.shift) as u32
    }

    /// The signature bit of a hash: the four bits below those of the slot.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // four bits
    pub(super) fn sign(&self, hash: u64) -> u32 {
        (hash << (63 - self.shift) >> 60) as u32
    }

    pub(super) fn get(&self, slot: u32) -> Slot {
        Slot(self.slots[slot as usize])
    }

    /// The slot of a key, if that may find something there.
    #[inline]
    pub(super) fn find(&self, key: &[u64; W], secrets: &[u64; W]) -> Option<Slot> {
        let hash = self.hash(key, secrets);
        let slot = self.get(self.slot(hash));
        slot.may_hold(self.sign(hash)).then_some(slot)
    }

    pub(super) fn set(&mut self, slot: u32, to: Slot) {
        let slot = &mut self.slots[slot as usize];
        self.nodes += usize::from(to.is_node());
        self.nodes -= usize::from(Slot(*slot).is_node());
        self.filled += usize::from(to != Slot::EMPTY);
        self.filled -= usize::from(*slot != Slot::EMPTY.0);
        *slot = to.0;
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.slots.iter().copied().map(Slot)
    }

    /// Some of the slots.
    pub(super) fn slots_in(&self, range: Range<usize>) -> impl Iterator<Item = Slot> {
        self.slots[range].iter().copied().map(Slot)
    }

    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Whether the slots were taken out.
    pub(super) fn is_gone(&self) -> bool {
        self.slots.is_empty()
    }

    /// Takes the slots out, to be freed; the table is no longer used.
    pub(super) fn take_slots(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.slots)
    }

    /// Asks for the slot of a hash ahead of its use.
    #[inline]
    pub(super) fn ask(&self, hash: u64) {
        prefetch(&self.slots[self.slot(hash) as usize]);
    }

    /// What the table may have for a key.
    #[inline]
    pub(super) fn offer(&self) -> Offer {
        Offer {
            best: Winner::from_rank(self.best),
            unmarked: Winner::from_rank(self.unmarked),
            group: self.group,
        }
    }

    /// The table as the vector code sees it.
    pub(super) fn probed<'a>(&'a self, secrets: &'a [u64; W], ahead: bool) -> Probed<'a, W> {
        Probed {
            mask: &self.mask,
            secrets,
            shift: self.shift,
            slots: &self.slots,
            nested: self.nodes > 0,
            ahead,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_what_was_put_in() {
        let run = Run { start: 77, len: 3 };
        for bucket in [
            Bucket::Empty,
            Bucket::Run(run),
            Bucket::Node(TableNumber(5)),
        ] {
            let slot = Slot::new(bucket, 0b101);
            let marked = slot.with_rivals(Rivals::group(3));
            assert_eq!((slot.bucket(), marked.bucket()), (bucket, bucket));
            assert!(!marked.may_hold(1) && marked.rivals() != Rivals::ALL);
            assert_eq!(slot.may_hold(2), bucket != Bucket::Empty);
            assert!(!slot.may_hold(1));
        }
    }

    #[test]
    fn hashes_choose_among_all_slots() {
        for slots in [1, 2, 64] {
            let table = Table::<1>::new([u64::MAX], slots);
            let secret = [0x9e37_79b9_7f4a_7c15];
            let mut seen = vec![0u32; slots];
            for key in 0..1000 {
                let hash = table.hash(&[key << 40], &secret);
                seen[table.slot(hash) as usize] |= 1 << table.sign(hash);
            }
            assert!(seen.iter().all(|signs| *signs != 0), "{slots} slots");
        }
        let empty = Table::<1>::new([0], 1);
        let hash = empty.hash(&[12345], &[3]);
        assert_eq!((empty.slot(hash), empty.sign(hash)), (0, 0));
    }
}
