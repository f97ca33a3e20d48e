//! A hash table from page numbers to blocks that grows and shrinks a few slots at a
//! time.
//!
//! # Idea
//! Open addressing with linear probing, 8 bytes a slot. To grow or to shrink, an empty
//! table of the new size becomes the current one, and each later update sweeps
//! [`SWEPT_SLOTS`] slots of the old table: it moves their entries to the current table.
//! Each page is in either table, never in both, so a lookup probes the current table
//! first and the unswept part of the old table second.
//!
//! The hash multiplies twice by secret odd numbers. One multiplication is not enough:
//! under some multipliers, consecutive ids share few slots, and linear probing makes one
//! long cluster of them.
//!
//! # Data layout
//! ```text
//! slot      0, or | page number, 32 bits | the page's block, 32 bits   |
//!
//! current   segment │ segment │    –    │ segment      2048 slots each, made
//!                                                      zeroed at first use
//! old          –    │    –    │ segment │ segment      freed as they are swept
//!                       swept ──▶ next slot to sweep
//! ```
//! A slot number is the upper bits of the hash, so a sweep fills the segments of the
//! current table in order, and the two tables together take little more memory than the
//! larger one.
//!
//! # Cost
//! The load factor is at most 13/16 and at least 3/16 (except in tables of 8 slots), so
//! a page takes 10 to 43 bytes, and at most 20 if pages are only added. At the highest
//! load, a successful search takes 3 probes in the mean and an unsuccessful one 14. The
//! longest cluster grows with the logarithm of the number of pages and has a few hundred
//! slots. An update sweeps 16 slots and makes or frees a few segments of 16 KB. Growing
//! also makes an array with 16 bytes for each segment: 16 KB for a million pages.

use super::blocks::BlockAt;
use super::work;
use crate::model::seed::splitmix;

/// The number of slots of the old table that each update sweeps. A table of n slots is
/// swept after n / 16 updates; the next resize is due after at least 3 n / 16 updates. It
/// bounds the work of an update.
pub(super) const SWEPT_SLOTS: usize = 16;

/// The binary logarithm of the number of slots in a segment of 16 KB. Smaller segments
/// need a longer array of segments; larger segments take longer to make.
const SEGMENT_BITS: u32 = 11;
const SEGMENT_SLOTS: usize = 1 << SEGMENT_BITS;

/// The binary logarithm of the number of slots in the smallest table. Measured in
/// `bench/records/constants.md` (Lists and maps).
const MIN_BITS: u32 = 3;

/// An empty slot.
const EMPTY_SLOT: u64 = 0;

/// A slot of the old table whose page was removed. No page has this number.
const REMOVED_SLOT: u64 = u64::MAX;

fn entry(page: u32, at: BlockAt) -> u64 {
    u64::from(page) << 32 | u64::from(at.packed())
}

#[allow(clippy::cast_possible_truncation)] // the upper half
fn page_of(entry: u64) -> u32 {
    (entry >> 32) as u32
}

#[allow(clippy::cast_possible_truncation)] // the lower half
fn at_of(entry: u64) -> BlockAt {
    BlockAt::unpacked(entry as u32)
}

/// The slots of a table; their number is a power of two.
#[derive(Default)]
struct Slots {
    /// A segment without slots stands for empty slots.
    segments: Vec<Box<[u64]>>,
    bits: u32,
}

impl Slots {
    fn new(bits: u32) -> Slots {
        let mut segments = Vec::new();
        segments.resize_with(1 << bits.saturating_sub(SEGMENT_BITS), Box::default);
        Slots { segments, bits }
    }

    /// The number of slots.
    fn count(&self) -> usize {
        if self.segments.is_empty() {
            return 0;
        }
        1 << self.bits
    }

    /// Returns the first slot to probe for a hash.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // fewer than 2^32 slots
    fn home(&self, hash: u64) -> usize {
        (hash >> 1 >> (63 - self.bits)) as usize
    }

    #[inline]
    fn get(&self, slot: usize) -> u64 {
        let segment = &self.segments[slot >> SEGMENT_BITS];
        segment
            .get(slot % SEGMENT_SLOTS)
            .copied()
            .unwrap_or(EMPTY_SLOT)
    }

    fn set(&mut self, slot: usize, entry: u64) {
        let slots = self.count().min(SEGMENT_SLOTS);
        let segment = &mut self.segments[slot >> SEGMENT_BITS];
        if segment.is_empty() {
            *segment = vec![EMPTY_SLOT; slots].into_boxed_slice();
        }
        segment[slot % SEGMENT_SLOTS] = entry;
    }

    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.count() - 1)
    }

    /// Returns the entry in the first slot to probe for a hash, or an empty slot if the
    /// table has no slots.
    #[inline]
    fn first(&self, hash: u64) -> u64 {
        let home = self.home(hash);
        let segment = self.segments.get(home >> SEGMENT_BITS);
        let entry = segment.and_then(|segment| segment.get(home % SEGMENT_SLOTS));
        entry.copied().unwrap_or(EMPTY_SLOT)
    }

    /// Returns the slot of a page. Slots before `from` are swept and are skipped.
    fn find(&self, page: u32, home: usize, from: usize) -> Option<usize> {
        if self.segments.is_empty() {
            return None;
        }
        // Usually the page is in its home slot, or the home slot is empty.
        let first = home.max(from);
        if first < self.count() {
            let entry = self.get(first);
            if entry == EMPTY_SLOT {
                return None;
            }
            if page_of(entry) == page {
                return Some(first);
            }
        }
        match self.scan(page, home.max(from), self.count()) {
            Scan::Found(slot) => Some(slot),
            Scan::Empty => None,
            Scan::End => match self.scan(page, from, home) {
                Scan::Found(slot) => Some(slot),
                Scan::Empty | Scan::End => None,
            },
        }
    }

    /// Searches a range of slots for a page, up to the first empty slot.
    #[inline]
    fn scan(&self, page: u32, mut from: usize, to: usize) -> Scan {
        while from < to {
            let first = from % SEGMENT_SLOTS;
            let len = (to - from).min(SEGMENT_SLOTS - first);
            let segment = &self.segments[from >> SEGMENT_BITS];
            let Some(slots) = segment.get(first..first + len) else {
                return Scan::Empty;
            };
            for (offset, &entry) in slots.iter().enumerate() {
                work::probed();
                if page_of(entry) == page && entry != EMPTY_SLOT {
                    return Scan::Found(from + offset);
                }
                if entry == EMPTY_SLOT {
                    return Scan::Empty;
                }
            }
            from += len;
        }
        Scan::End
    }

    /// Adds the entry of a page that is not in the table.
    fn add(&mut self, home: usize, entry: u64) {
        let mut slot = home;
        while self.get(slot) != EMPTY_SLOT {
            work::probed();
            slot = self.next(slot);
        }
        work::moved(1);
        self.set(slot, entry);
    }

    fn bytes(&self) -> usize {
        let slots: usize = self.segments.iter().map(|segment| segment.len()).sum();
        slots * size_of::<u64>() + self.segments.capacity() * size_of::<Box<[u64]>>()
    }
}

enum Scan {
    Found(usize),
    Empty,
    End,
}

/// A map from page numbers to blocks.
pub(super) struct Hashed {
    current: Slots,
    old: Slots,
    /// Slots of the old table before this one have been swept.
    swept: usize,
    pages: usize,
    key: u64,
    multipliers: [u64; 2],
}

impl Hashed {
    pub(super) fn new(seed: u64) -> Hashed {
        let mut state = seed;
        Hashed {
            current: Slots::default(),
            old: Slots::default(),
            swept: 0,
            pages: 0,
            key: splitmix(&mut state),
            multipliers: std::array::from_fn(|_| splitmix(&mut state) | 1),
        }
    }

    #[inline]
    fn hash(&self, page: u32) -> u64 {
        let hash = (u64::from(page) ^ self.key).wrapping_mul(self.multipliers[0]);
        (hash ^ hash >> 32).wrapping_mul(self.multipliers[1])
    }

    /// Returns the block of a page.
    #[inline]
    pub(super) fn get(&self, page: u32) -> Option<BlockAt> {
        let hash = self.hash(page);
        // Usually the page is in its home slot.
        let first = self.current.first(hash);
        if page_of(first) == page && first != EMPTY_SLOT {
            return Some(at_of(first));
        }
        self.search(page, hash)
    }

    /// Searches beyond the home slot.
    fn search(&self, page: u32, hash: u64) -> Option<BlockAt> {
        let home = self.current.home(hash);
        if let Some(slot) = self.current.find(page, home, 0) {
            return Some(at_of(self.current.get(slot)));
        }
        let slot = self.find_old(page, hash)?;
        Some(at_of(self.old.get(slot)))
    }

    #[inline]
    fn find_old(&self, page: u32, hash: u64) -> Option<usize> {
        self.old.find(page, self.old.home(hash), self.swept)
    }

    /// Changes the block of an existing page.
    pub(super) fn set(&mut self, page: u32, at: BlockAt) {
        let hash = self.hash(page);
        let home = self.current.home(hash);
        if let Some(slot) = self.current.find(page, home, 0) {
            self.current.set(slot, entry(page, at));
        } else {
            let slot = self.find_old(page, hash).expect("the page is there");
            self.old.set(slot, entry(page, at));
        }
    }

    /// Adds a page that does not exist.
    pub(super) fn insert(&mut self, page: u32, at: BlockAt) {
        self.pages += 1;
        let slots = self.current.count();
        if self.pages * 16 > slots * 13 {
            let bits = if slots == 0 {
                MIN_BITS
            } else {
                self.current.bits + 1
            };
            self.resize(bits);
        }
        let home = self.current.home(self.hash(page));
        self.current.add(home, entry(page, at));
    }

    /// Removes an existing page.
    pub(super) fn remove(&mut self, page: u32) {
        let hash = self.hash(page);
        let home = self.current.home(hash);
        if let Some(slot) = self.current.find(page, home, 0) {
            self.close_gap(slot);
        } else {
            let slot = self.find_old(page, hash).expect("the page is there");
            self.old.set(slot, REMOVED_SLOT);
        }
        self.pages -= 1;
        if self.pages == 0 {
            self.current = Slots::default();
            self.old = Slots::default();
            return;
        }
        // Removals may be faster than the sweep of the old table.
        let is_swept = self.old.count() == 0;
        let is_sparse = self.pages * 16 <= self.current.count() * 3;
        if is_swept && is_sparse && self.current.bits > MIN_BITS {
            self.resize(self.current.bits - 1);
        }
    }

    /// Empties a slot of the current table. Later entries of the cluster move towards
    /// their home slots.
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.current.count() - 1;
        let mut slot = gap;
        loop {
            slot = self.current.next(slot);
            let entry = self.current.get(slot);
            work::probed();
            if entry == EMPTY_SLOT {
                break;
            }
            let home = self.current.home(self.hash(page_of(entry)));
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(gap) & mask {
                work::moved(1);
                self.current.set(gap, entry);
                gap = slot;
            }
        }
        self.current.set(gap, EMPTY_SLOT);
    }

    /// Makes a current table of another size; the old one is swept by later updates.
    fn resize(&mut self, bits: u32) {
        // The limits on the load factor usually end the last sweep long before this.
        while self.old.count() > 0 {
            self.sweep();
        }
        self.old = std::mem::replace(&mut self.current, Slots::new(bits));
        self.swept = 0;
    }

    /// Moves the entries of some slots from the old table to the current one. Each
    /// update of the map calls this once.
    #[inline]
    pub(super) fn sweep(&mut self) {
        if self.old.count() > 0 {
            self.sweep_some();
        }
    }

    fn sweep_some(&mut self) {
        let slots = self.old.count();
        let stop = slots.min(self.swept + SWEPT_SLOTS);
        for slot in self.swept..stop {
            work::swept();
            let entry = self.old.get(slot);
            if entry != EMPTY_SLOT && entry != REMOVED_SLOT {
                let home = self.current.home(self.hash(page_of(entry)));
                self.current.add(home, entry);
            }
        }
        self.swept = stop;
        if stop == slots {
            self.old = Slots::default();
        } else if stop.is_multiple_of(SEGMENT_SLOTS) {
            self.old.segments[stop / SEGMENT_SLOTS - 1] = Box::default();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages == 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.current.bytes() + self.old.bytes()
    }

    /// True if all pages are in the current table.
    #[cfg(test)]
    pub(super) fn is_settled(&self) -> bool {
        self.old.count() == 0
    }
}
