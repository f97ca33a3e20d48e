//! A table: a mask, and a slot for each value of a hash of the bits under it.
//!
//! ```text
//! hash (64 bits)   │ slot number │ 4 bits: signature │ … unused … │
//!                    63 - shift    bit of the rule
//! ```
//! The slot number is the hash's leading bits, so a table has a power of two of
//! slots. A slot has no key: rules whose hashes meet share a bucket.

use crate::engine::forest::kernels::active::Offer;
use crate::engine::forest::kernels::probe::Probed;
use crate::engine::forest::slot::{ConflictMask, Place, Slot, TableNumber};
use crate::rule::Winner;
use crate::simd::pages::ask_for_huge_pages;
use crate::simd::prefetch;

/// What becomes of a table of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is there as long as it has rules.
    Settled,
    /// It belongs to the plan that is being adopted, and stays even while empty.
    Incoming,
    /// Older than the plan: accepts no rule, its rules are being moved out.
    Draining,
}

/// A table. The members that lookups read come first.
#[derive(Clone, Debug)]
pub(crate) struct Table<const W: usize> {
    /// The bits that the table looks at.
    mask: [u64; W],
    /// No rule of the table has a better rank; not always exact.
    best: u64,
    /// The next table of the chain, in the order of `best`.
    next: TableNumber,
    /// No rule inserted since conflicts were marked has a better rank.
    late_best: u64,
    /// No rule inserted since the last marking began has a better rank.
    late_best_of_marking: u64,
    /// The table's conflict group; none if it has none.
    group: ConflictMask,
    /// The number of slots is 2 to the power of `63 - shift`.
    shift: u32,
    /// The words of the slots.
    slots: Vec<u64>,

    /// The slot that points to the table's chain.
    parent: Place,
    /// Rules go to the first table in this order that fits them: that in which
    /// masks were learned.
    order: u32,
    role: Role,
    /// Slots that hold nested tables.
    nested: usize,
    /// Slots that hold anything.
    filled: usize,
    /// Rules in the table, nested ones included.
    rules: usize,
    /// The best rule is gone and `best` not yet corrected.
    stale: bool,
    /// While `best` is stale: the slots looked at so far, and the best rank in
    /// them and of the rules that have come since.
    scanned: usize,
    scanned_best: u64,
}

/// The making of a table, before the structure has it.
impl<const W: usize> Table<W> {
    /// An empty table of the root.
    ///
    /// # Panics
    /// When the number of slots is no power of two up to 2^32.
    pub(crate) fn new(mask: [u64; W], slots: usize) -> Table<W> {
        Table::with_slots(mask, slots, vec![Slot::EMPTY.word(); slots])
    }

    /// A table that must not be used before [`add_slots`](Table::add_slots) has
    /// made its slots, some with each call.
    pub(crate) fn without_slots(mask: [u64; W], slots: usize) -> Table<W> {
        Table::with_slots(mask, slots, Vec::with_capacity(slots))
    }

    fn with_slots(mask: [u64; W], count: usize, slots: Vec<u64>) -> Table<W> {
        assert!(count.is_power_of_two() && count.ilog2() <= 32);
        Table {
            mask,
            best: u64::MAX,
            late_best: 0,
            late_best_of_marking: 0,
            group: ConflictMask::NONE,
            next: TableNumber::NONE,
            shift: 63 - count.ilog2(),
            slots,
            parent: Place::ROOT,
            order: 0,
            role: Role::Settled,
            nested: 0,
            filled: 0,
            rules: 0,
            stale: false,
            scanned: 0,
            scanned_best: u64::MAX,
        }
    }

    /// Makes up to that many of the slots that are missing; says whether more
    /// are.
    pub(crate) fn add_slots(&mut self, count: usize) -> bool {
        let all = 1_usize << (63 - self.shift);
        let to = all.min(self.slots.len() + count);
        self.slots.resize(to, Slot::EMPTY.word());
        to < all
    }

    /// The same table in a chain, with its place in the order in which rules try
    /// tables.
    pub(crate) fn of_chain(self, parent: Place, order: u32) -> Table<W> {
        Table {
            parent,
            order,
            ..self
        }
    }

    /// The same table in another role.
    pub(crate) fn in_role(self, role: Role) -> Table<W> {
        Table { role, ..self }
    }

    /// The same table for `rules` rules, the best of which has the rank `best`.
    /// Its buckets are filled next.
    pub(crate) fn for_rules(self, rules: usize, best: u64) -> Table<W> {
        Table {
            rules,
            best,
            ..self
        }
    }
}

/// What lookups read.
impl<const W: usize> Table<W> {
    #[inline]
    pub(crate) fn mask(&self) -> &[u64; W] {
        &self.mask
    }

    /// No rule of the table has a better rank.
    #[inline]
    pub(crate) fn best(&self) -> u64 {
        self.best
    }

    /// The next table of the chain.
    #[inline]
    pub(crate) fn next(&self) -> TableNumber {
        self.next
    }

    /// The table's conflict group, or none.
    #[inline]
    pub(crate) fn group(&self) -> ConflictMask {
        self.group
    }

    /// The hash of a key's bits under the mask; `secrets` are odd.
    ///
    /// Multiply and take the upper bits: two different keys meet in one of n
    /// buckets with a chance of at most 2 / n over the choice of secrets
    /// (Dietzfelbinger et al., "A reliable randomized algorithm for the
    /// closest-pair problem", 1997, §3).
    #[inline]
    pub(crate) fn hash(&self, key: &[u64; W], secrets: &[u64; W]) -> u64 {
        let mut hash = 0u64;
        for word in 0..W {
            hash = hash.wrapping_add((key[word] & self.mask[word]).wrapping_mul(secrets[word]));
        }
        hash
    }

    /// The slot number of a hash.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // as many bits as slots
    pub(crate) fn slot_of(&self, hash: u64) -> u32 {
        (hash >> 1 >> self.shift) as u32
    }

    /// The signature bit of a hash: the four bits below those of the slot.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // four bits
    pub(crate) fn signature_bit(&self, hash: u64) -> u32 {
        (hash << (63 - self.shift) >> 60) as u32
    }

    /// A slot by its number.
    #[inline]
    pub(crate) fn slot(&self, number: u32) -> Slot {
        Slot::from_word(self.slots[number as usize])
    }

    /// The slot of a key, if that may find something there.
    #[inline]
    pub(crate) fn find(&self, key: &[u64; W], secrets: &[u64; W]) -> Option<Slot> {
        let hash = self.hash(key, secrets);
        let slot = self.slot(self.slot_of(hash));
        slot.may_hold(self.signature_bit(hash)).then_some(slot)
    }

    /// Prefetches the slot of a hash.
    #[inline]
    pub(crate) fn prefetch_slot(&self, hash: u64) {
        prefetch(&self.slots[self.slot_of(hash) as usize]);
    }

    /// What the table may have for a key.
    #[inline]
    pub(crate) fn offer(&self) -> Offer {
        Offer {
            best: Winner::from_rank(self.best),
            late_best: Winner::from_rank(self.late_best),
            group: self.group,
        }
    }

    /// The table as the vector code sees it; runs of at most `short` rules are
    /// short.
    #[inline]
    pub(crate) fn probed<'a>(
        &'a self,
        secrets: &'a [u64; W],
        short: usize,
        prefetch: bool,
    ) -> Probed<'a, W> {
        Probed {
            mask: &self.mask,
            secrets,
            shift: self.shift,
            slots: &self.slots,
            short,
            nested: self.nested > 0,
            prefetch,
        }
    }
}

/// What else is known.
impl<const W: usize> Table<W> {
    /// All slots.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.slots.iter().copied().map(Slot::from_word)
    }

    pub(crate) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// About how many different keys its rules have under its mask: from the
    /// share of slots that hold anything (linear counting, Whang et al. 1990),
    /// and at most what rules and the mask's bits allow.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )] // an estimate, at most the number of rules
    pub(crate) fn count_keys(&self) -> usize {
        let bits: u32 = self.mask.iter().map(|word| word.count_ones()).sum();
        let most = 1_usize.checked_shl(bits).unwrap_or(usize::MAX);
        let most = self.rules.min(most);
        let slots = self.slots.len() as f64;
        let empty = 1.0 - self.filled as f64 / slots;
        let keys = (-slots * empty.ln()).ceil();
        if keys < most as f64 {
            keys as usize
        } else {
            most // All slots are filled, or almost.
        }
    }

    /// Rules in the table, nested ones included.
    pub(crate) fn rules(&self) -> usize {
        self.rules
    }

    /// The slot that points to the table's chain.
    pub(crate) fn parent(&self) -> Place {
        self.parent
    }

    /// The table's place in the order in which rules try tables.
    #[inline]
    pub(crate) fn order(&self) -> u32 {
        self.order
    }

    #[inline]
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// No rule inserted since conflicts were marked has a better rank.
    #[cfg(test)]
    pub(crate) fn late_best(&self) -> u64 {
        self.late_best
    }

    /// Bytes of the slots.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    /// Whether the slots were taken out.
    pub(super) fn is_gone(&self) -> bool {
        self.slots.is_empty()
    }
}

/// Changes, for the structure alone.
impl<const W: usize> Table<W> {
    #[inline]
    pub(super) fn set_slot(&mut self, number: u32, to: Slot) {
        let word = &mut self.slots[number as usize];
        let from = Slot::from_word(*word);
        self.nested += usize::from(to.is_nested());
        self.nested -= usize::from(from.is_nested());
        self.filled += usize::from(to != Slot::EMPTY);
        self.filled -= usize::from(from != Slot::EMPTY);
        *word = to.word();
    }

    #[inline]
    pub(super) fn set_next(&mut self, next: TableNumber) {
        self.next = next;
    }

    /// Changes the bound. The caller moves the table to its place in the chain.
    #[inline]
    pub(super) fn set_best(&mut self, best: u64) {
        self.best = best;
    }

    pub(super) fn set_role(&mut self, role: Role) {
        self.role = role;
    }

    /// A rule of that rank comes. The bound `best` is left to the caller.
    #[inline]
    pub(super) fn count_in(&mut self, rank: u64) {
        self.rules += 1;
        self.scanned_best = self.scanned_best.min(rank);
        self.late_best = self.late_best.min(rank);
        self.late_best_of_marking = self.late_best_of_marking.min(rank);
    }

    /// A rule of that rank has gone.
    #[inline]
    pub(super) fn count_out(&mut self, rank: u64) {
        self.rules -= 1;
        self.stale |= self.best == rank;
        if self.scanned_best == rank {
            self.scanned = 0;
        }
    }

    /// Whether the best rule is gone and the bound not yet corrected.
    #[inline]
    pub(super) fn is_stale(&self) -> bool {
        self.stale
    }

    /// The next slots to look at in order to correct a stale bound, at most
    /// that many.
    pub(super) fn slots_to_scan(&self, most: usize) -> impl Iterator<Item = Slot> {
        let to = self.slots.len().min(self.scanned + most);
        let words = &self.slots[self.scanned..to];
        words.iter().copied().map(Slot::from_word)
    }

    /// The next `most` slots have been looked at; `best` is the best rank in
    /// them. Returns the corrected bound when these were the last.
    pub(super) fn has_scanned(&mut self, most: usize, best: u64) -> Option<u64> {
        let to = self.slots.len().min(self.scanned + most);
        let before = if self.scanned == 0 {
            u64::MAX
        } else {
            self.scanned_best
        };
        let best = best.min(before);
        if to < self.slots.len() {
            (self.scanned, self.scanned_best) = (to, best);
            return None;
        }
        self.forget_scan();
        Some(best)
    }

    /// The bound is exact.
    pub(super) fn forget_scan(&mut self) {
        (self.stale, self.scanned, self.scanned_best) = (false, 0, u64::MAX);
    }

    /// Conflicts are marked anew, with this as the table's group. Until that
    /// ends, no mark keeps a key away from the table.
    pub(super) fn begin_marking(&mut self, group: ConflictMask) {
        self.group = group;
        self.late_best = 0;
        self.late_best_of_marking = u64::MAX;
    }

    /// All conflicts are marked, but those of rules that came meanwhile.
    pub(super) fn end_marking(&mut self) {
        if self.group != ConflictMask::NONE {
            self.late_best = self.late_best_of_marking;
        }
    }

    /// Requests huge pages for the slots that there are.
    pub(super) fn ask_for_huge_pages(&self) {
        ask_for_huge_pages(&self.slots, self.slots.len());
    }

    /// Takes the slots out, to be freed; the table is no longer used.
    pub(super) fn take_slots(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_choose_among_all_slots() {
        for slots in [1, 2, 64] {
            let table = Table::<1>::new([u64::MAX], slots);
            let secret = [0x9e37_79b9_7f4a_7c15];
            let mut seen = vec![0u32; slots];
            for key in 0..1000 {
                let hash = table.hash(&[key << 40], &secret);
                seen[table.slot_of(hash) as usize] |= 1 << table.signature_bit(hash);
            }
            assert!(seen.iter().all(|bits| *bits != 0), "{slots} slots");
        }
        let empty = Table::<1>::new([0], 1);
        let hash = empty.hash(&[12345], &[3]);
        assert_eq!((empty.slot_of(hash), empty.signature_bit(hash)), (0, 0));
    }
}
