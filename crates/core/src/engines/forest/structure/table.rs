//! A table: a mask, and a slot for each value of a hash of the bits under it.
//!
//! ```text
//! hash (64 bits)   │ slot number │ 4 bits: signature │ … unused … │
//!                    63 - shift    bit of the rule
//! ```
//! The slot number is the hash's leading bits, so the number of slots is a power of
//! two. A slot has no key: rules with equal slot numbers share a bucket.

use crate::engines::forest::kernels::active::TableBounds;
use crate::engines::forest::kernels::probe::Probed;
use crate::engines::forest::slot::{ConflictMask, Place, Slot, TableNumber};
use crate::model::rule::Winner;
use crate::parts::simd::pages::ask_for_huge_pages;
use crate::parts::simd::{in_general_register, prefetch};

/// The role of a root table while a plan is adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Removed with its last rule.
    Settled,
    /// Belongs to the plan that is being adopted, and stays even while empty.
    Incoming,
    /// Older than the plan: accepts no rule, and its rules are being moved out.
    Draining,
}

/// A table. The fields that lookups read come first.
#[derive(Clone, Debug)]
pub(crate) struct Table<const W: usize> {
    /// The bits that the table hashes.
    mask: [u64; W],
    /// No rule of the table has a better rank; may be better than all rules.
    best: u64,
    /// The next table of the chain, in the order of `best`.
    next: TableNumber,
    /// No rule inserted since conflicts were marked has a better rank.
    late_best: u64,
    /// No rule inserted since the last marking began has a better rank.
    late_best_of_marking: u64,
    /// The table's conflict group, or none.
    group: ConflictMask,
    /// The number of slots is 2 to the power of `63 - shift`. A slot's number is a hash
    /// shifted right by 1 and by `shift`: one shift by 64, for a table of one slot, would
    /// overflow.
    shift: u32,
    /// The words of the slots.
    slots: Vec<u64>,

    /// The slot that points to the table's chain.
    parent: Place,
    /// The table's position in the order in which masks were learned. Rules go to
    /// the first table in this order that fits them.
    order: u32,
    role: Role,
    /// The number of slots with nested tables.
    nested: usize,
    /// The number of slots that are not empty.
    filled: usize,
    /// The number of rules in the table, including nested tables.
    rules: usize,
    /// True if the best rule was removed and `best` is not yet corrected.
    stale: bool,
    /// While `best` is stale: the number of slots read so far, and the best rank of
    /// these slots and of later insertions.
    scanned: usize,
    scanned_best: u64,
}

/// Building a table before it is added to the structure.
impl<const W: usize> Table<W> {
    /// Returns an empty table of the root.
    ///
    /// # Panics
    /// If `slots` is not a power of two up to 2^32.
    pub(crate) fn new(mask: [u64; W], slots: usize) -> Table<W> {
        Table::with_slots(mask, slots, vec![Slot::EMPTY.word(); slots])
    }

    /// Returns a table without slots. It must not be used until
    /// [`add_slots`](Table::add_slots) has made all slots, some with each call.
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

    /// Makes up to `count` of the missing slots; returns true if some are still
    /// missing.
    pub(crate) fn add_slots(&mut self, count: usize) -> bool {
        let slot_count = 1_usize << (63 - self.shift);
        let new_count = slot_count.min(self.slots.len() + count);
        self.slots.resize(new_count, Slot::EMPTY.word());
        new_count < slot_count
    }

    /// Puts the table into a chain, with its position in the order in which rules
    /// try tables.
    pub(crate) fn of_chain(self, parent: Place, order: u32) -> Table<W> {
        Table {
            parent,
            order,
            ..self
        }
    }

    /// Sets the role.
    pub(crate) fn in_role(self, role: Role) -> Table<W> {
        Table { role, ..self }
    }

    /// Sets the number of rules and the best rank among them. The caller then fills
    /// the buckets.
    pub(crate) fn for_rules(self, rules: usize, best: u64) -> Table<W> {
        Table {
            rules,
            best,
            ..self
        }
    }
}

/// Read by lookups.
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

    /// Returns the hash of a key's bits under the mask; `secrets` are odd.
    ///
    /// Multiplies and takes the upper bits: two different keys share one of n
    /// buckets with a probability of at most 2 / n over the choice of secrets
    /// (Dietzfelbinger et al., "A reliable randomized algorithm for the closest-pair
    /// problem", 1997, §3).
    #[inline]
    pub(crate) fn hash(&self, key: &[u64; W], secrets: &[u64; W]) -> u64 {
        let mut hash = 0u64;
        for word in 0..W {
            let product = (key[word] & self.mask[word]).wrapping_mul(secrets[word]);
            hash = hash.wrapping_add(in_general_register(product));
        }
        hash
    }

    /// The slot number of a hash.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // as many bits as slots
    pub(crate) fn slot_of(&self, hash: u64) -> u32 {
        (hash >> 1 >> self.shift) as u32
    }

    /// The signature bit of a hash: the four bits below the slot number.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // four bits
    pub(crate) fn signature_bit(&self, hash: u64) -> u32 {
        (hash << (63 - self.shift) >> 60) as u32
    }

    /// Returns a slot by its number.
    #[inline]
    pub(crate) fn slot(&self, number: u32) -> Slot {
        Slot::from_word(self.slots[number as usize])
    }

    /// Returns the slot of a key, if a rule in it may match.
    #[inline]
    pub(crate) fn find(&self, key: &[u64; W], secrets: &[u64; W]) -> Option<Slot> {
        let hash = self.hash(key, secrets);
        let slot = self.slot(self.slot_of(hash));
        slot.may_hold(self.signature_bit(hash)).then_some(slot)
    }

    /// Prefetches the slot of a hash.
    #[inline]
    pub(crate) fn prefetch_slot(&self, hash: u64) {
        self.prefetch_slot_at(self.slot_of(hash));
    }

    /// Prefetches a slot.
    #[inline]
    pub(crate) fn prefetch_slot_at(&self, number: u32) {
        prefetch(&self.slots[number as usize]);
    }

    /// The data that decides which keys are active for this table.
    #[inline]
    pub(crate) fn bounds(&self) -> TableBounds {
        TableBounds {
            best: Winner::from_rank(self.best),
            late_best: Winner::from_rank(self.late_best),
            group: self.group,
        }
    }

    /// The table in the form for vector code. Runs of at most `max_short_len` rules are
    /// short.
    #[inline]
    pub(crate) fn probed<'a>(
        &'a self,
        secrets: &'a [u64; W],
        max_short_len: usize,
        prefetch: bool,
    ) -> Probed<'a, W> {
        Probed {
            mask: &self.mask,
            secrets,
            shift: self.shift,
            slots: &self.slots,
            max_short_len,
            nested: self.nested > 0,
            prefetch,
        }
    }
}

/// Counts and sizes.
impl<const W: usize> Table<W> {
    /// All slots.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.slots.iter().copied().map(Slot::from_word)
    }

    pub(crate) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Estimates the number of different keys of the table's rules under its mask,
    /// from the share of filled slots (linear counting, Whang et al. 1990). The
    /// result is at most the number of rules and of values under the mask.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )] // an estimate, at most the number of rules
    pub(crate) fn count_keys(&self) -> usize {
        let bits: u32 = self.mask.iter().map(|word| word.count_ones()).sum();
        let max_keys = 1_usize.checked_shl(bits).unwrap_or(usize::MAX);
        let max_keys = self.rules.min(max_keys);
        let slots = self.slots.len() as f64;
        let empty = 1.0 - self.filled as f64 / slots;
        let keys = (-slots * empty.ln()).ceil();
        if keys < max_keys as f64 {
            keys as usize
        } else {
            max_keys // All slots are filled, or almost.
        }
    }

    /// The number of rules in the table, including nested tables.
    pub(crate) fn rules(&self) -> usize {
        self.rules
    }

    /// The slot that points to the table's chain.
    pub(crate) fn parent(&self) -> Place {
        self.parent
    }

    /// The table's position in the order in which rules try tables.
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

    /// True if the slots were taken out.
    pub(super) fn is_gone(&self) -> bool {
        self.slots.is_empty()
    }
}

/// Changes, only for the structure.
impl<const W: usize> Table<W> {
    #[inline]
    pub(super) fn set_slot(&mut self, number: u32, new: Slot) {
        let word = &mut self.slots[number as usize];
        let old = Slot::from_word(*word);
        self.nested += usize::from(new.is_nested());
        self.nested -= usize::from(old.is_nested());
        self.filled += usize::from(new != Slot::EMPTY);
        self.filled -= usize::from(old != Slot::EMPTY);
        *word = new.word();
    }

    #[inline]
    pub(super) fn set_next(&mut self, next: TableNumber) {
        self.next = next;
    }

    /// Changes the bound. The caller moves the table to its position in the chain.
    #[inline]
    pub(super) fn set_best(&mut self, best: u64) {
        self.best = best;
    }

    pub(super) fn set_role(&mut self, role: Role) {
        self.role = role;
    }

    /// Counts an inserted rule of that rank. The caller corrects the bound `best`.
    #[inline]
    pub(super) fn count_in(&mut self, rank: u64) {
        self.rules += 1;
        self.scanned_best = self.scanned_best.min(rank);
        self.late_best = self.late_best.min(rank);
        self.late_best_of_marking = self.late_best_of_marking.min(rank);
    }

    /// Counts a removed rule of that rank.
    #[inline]
    pub(super) fn count_out(&mut self, rank: u64) {
        self.rules -= 1;
        self.stale |= self.best == rank;
        if self.scanned_best == rank {
            self.scanned = 0;
        }
    }

    /// True if the best rule was removed and the bound is not yet corrected.
    #[inline]
    pub(super) fn is_stale(&self) -> bool {
        self.stale
    }

    /// Returns the next slots, at most `max_slots`, to read for correcting a stale
    /// bound.
    pub(super) fn slots_to_scan(&self, max_slots: usize) -> impl Iterator<Item = Slot> {
        let scan_end = self.slots.len().min(self.scanned + max_slots);
        let words = &self.slots[self.scanned..scan_end];
        words.iter().copied().map(Slot::from_word)
    }

    /// Records that the next `max_slots` slots have been read; `best` is the best
    /// rank in them. Returns the corrected bound after the last slot.
    pub(super) fn has_scanned(&mut self, max_slots: usize, best: u64) -> Option<u64> {
        let scan_end = self.slots.len().min(self.scanned + max_slots);
        let before = if self.scanned == 0 {
            u64::MAX
        } else {
            self.scanned_best
        };
        let best = best.min(before);
        if scan_end < self.slots.len() {
            (self.scanned, self.scanned_best) = (scan_end, best);
            return None;
        }
        self.forget_scan();
        Some(best)
    }

    /// Records that the bound is exact.
    pub(super) fn forget_scan(&mut self) {
        (self.stale, self.scanned, self.scanned_best) = (false, 0, u64::MAX);
    }

    /// Starts to mark conflicts, with `group` as the table's group. Until marking
    /// ends, every lookup probes the table.
    pub(super) fn begin_marking(&mut self, group: ConflictMask) {
        self.group = group;
        self.late_best = 0;
        self.late_best_of_marking = u64::MAX;
    }

    /// Ends marking: all conflicts are marked, except those of rules inserted since
    /// it began.
    pub(super) fn end_marking(&mut self) {
        if self.group != ConflictMask::NONE {
            self.late_best = self.late_best_of_marking;
        }
    }

    /// Requests huge pages for the present slots.
    pub(super) fn ask_for_huge_pages(&self) {
        ask_for_huge_pages(&self.slots, self.slots.len());
    }

    /// Takes the slots out, for freeing them; the table is no longer used.
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
