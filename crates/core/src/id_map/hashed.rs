//! Any page numbers to blocks: a hash table that grows and shrinks a few slots at
//! a time.
//!
//! # Idea
//! Open addressing with linear probing, 8 bytes a slot. When the table is to
//! grow or to shrink, an empty table of the new size becomes the current one,
//! and each later update sweeps [`SWEPT`] slots of the old one: their entries go
//! to the current table. A page is in exactly one of them, so a lookup probes
//! the current table first and the unswept part of the old one second.
//!
//! The hash multiplies twice by secret odd numbers. One multiplication does not
//! do: under some multipliers, ids that follow each other share few slots, and
//! linear probing makes one long cluster of them.
//!
//! # Data layout
//! ```text
//! slot      0, or | page number, 32 bits | where its block is, 32 bits |
//!
//! current   segment │ segment │    –    │ segment      2048 slots each, made
//!                                                      zeroed at first use
//! old          –    │    –    │ segment │ segment      freed as they are swept
//!                       swept ──▶ next slot to sweep
//! ```
//! A slot number is the upper bits of the hash, so a sweep fills the segments of
//! the current table in their order, and the two tables together take little
//! more memory than the larger one.
//!
//! # Cost
//! Load: at most 13/16, at least 3/16 (tables of 8 slots excepted), so 10 to 43
//! bytes a page, and 20 at most if pages only come. At the highest load, finding
//! a page takes 3 probes in the mean, finding none 14; the longest cluster grows
//! with the logarithm of the number of pages and is a few hundred slots.
//! An update sweeps 16 slots and makes or frees a few segments of 16 KB. Growing
//! also makes an array with 16 bytes for each segment: 16 KB for a million
//! pages.

use super::blocks::BlockAt;
use super::work;
use crate::seed::splitmix;

/// Slots of the old table swept with each update. A table of n slots is swept
/// after n / 16 updates; it takes at least 3 n / 16 until the next one is due.
pub(super) const SWEPT: usize = 16;

/// The binary logarithm of the slots in a segment, 16 KB. Smaller segments need
/// a longer array of segments, larger ones take longer to be made.
const SEGMENT_BITS: u32 = 11;
const SEGMENT: usize = 1 << SEGMENT_BITS;

/// The binary logarithm of the slots of the smallest table.
const LEAST_BITS: u32 = 3;

/// An empty slot.
const EMPTY: u64 = 0;

/// A slot of the old table whose page has gone. No page has this number.
const GONE: u64 = u64::MAX;

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

/// The slots of a table of a power of two.
#[derive(Default)]
struct Slots {
    /// Segments without slots stand for empty slots only.
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

    /// The slot where probing begins.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // fewer than 2^32 slots
    fn home(&self, hash: u64) -> usize {
        (hash >> 1 >> (63 - self.bits)) as usize
    }

    #[inline]
    fn get(&self, slot: usize) -> u64 {
        let segment = &self.segments[slot >> SEGMENT_BITS];
        segment.get(slot % SEGMENT).copied().unwrap_or(EMPTY)
    }

    fn set(&mut self, slot: usize, entry: u64) {
        let slots = self.count().min(SEGMENT);
        let segment = &mut self.segments[slot >> SEGMENT_BITS];
        if segment.is_empty() {
            *segment = vec![EMPTY; slots].into_boxed_slice();
        }
        segment[slot % SEGMENT] = entry;
    }

    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.count() - 1)
    }

    /// The entry in the slot where probing for a hash begins; empty if there are
    /// no slots.
    #[inline]
    fn first(&self, hash: u64) -> u64 {
        let home = self.home(hash);
        let segment = self.segments.get(home >> SEGMENT_BITS);
        let entry = segment.and_then(|segment| segment.get(home % SEGMENT));
        entry.copied().unwrap_or(EMPTY)
    }

    /// The slot of a page. Slots before `from` hold nothing and are passed over.
    fn find(&self, page: u32, home: usize, from: usize) -> Option<usize> {
        if self.segments.is_empty() {
            return None;
        }
        // Mostly the page is in its home slot, or that is empty.
        let first = home.max(from);
        if first < self.count() {
            let entry = self.get(first);
            if entry == EMPTY {
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

    /// Looks for a page in slots of that range, up to the first empty one.
    #[inline]
    fn scan(&self, page: u32, mut from: usize, to: usize) -> Scan {
        while from < to {
            let first = from % SEGMENT;
            let len = (to - from).min(SEGMENT - first);
            let segment = &self.segments[from >> SEGMENT_BITS];
            let Some(slots) = segment.get(first..first + len) else {
                return Scan::Empty;
            };
            for (offset, &entry) in slots.iter().enumerate() {
                work::probed();
                if page_of(entry) == page && entry != EMPTY {
                    return Scan::Found(from + offset);
                }
                if entry == EMPTY {
                    return Scan::Empty;
                }
            }
            from += len;
        }
        Scan::End
    }

    /// Adds the entry of a page that the table does not have.
    fn add(&mut self, home: usize, entry: u64) {
        let mut slot = home;
        while self.get(slot) != EMPTY {
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
    /// Slots of the old table before this one hold nothing any more.
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

    /// The block of a page.
    #[inline]
    pub(super) fn get(&self, page: u32) -> Option<BlockAt> {
        let hash = self.hash(page);
        // Mostly the page is in its home slot.
        let first = self.current.first(hash);
        if page_of(first) == page && first != EMPTY {
            return Some(at_of(first));
        }
        self.search(page, hash)
    }

    /// Looks beyond the home slot.
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

    /// Gives a page that is there another block.
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

    /// Adds a page that is not there.
    pub(super) fn insert(&mut self, page: u32, at: BlockAt) {
        self.pages += 1;
        let slots = self.current.count();
        if self.pages * 16 > slots * 13 {
            let bits = if slots == 0 {
                LEAST_BITS
            } else {
                self.current.bits + 1
            };
            self.resize(bits);
        }
        let home = self.current.home(self.hash(page));
        self.current.add(home, entry(page, at));
    }

    /// Removes a page that is there.
    pub(super) fn remove(&mut self, page: u32) {
        let hash = self.hash(page);
        let home = self.current.home(hash);
        if let Some(slot) = self.current.find(page, home, 0) {
            self.close_gap(slot);
        } else {
            let slot = self.find_old(page, hash).expect("the page is there");
            self.old.set(slot, GONE);
        }
        self.pages -= 1;
        if self.pages == 0 {
            self.current = Slots::default();
            self.old = Slots::default();
            return;
        }
        // Pages may go faster than the old table is swept.
        let is_swept = self.old.count() == 0;
        let is_sparse = self.pages * 16 <= self.current.count() * 3;
        if is_swept && is_sparse && self.current.bits > LEAST_BITS {
            self.resize(self.current.bits - 1);
        }
    }

    /// Empties a slot of the current table: entries after it that have been
    /// pushed away from their homes come nearer.
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.current.count() - 1;
        let mut slot = gap;
        loop {
            slot = self.current.next(slot);
            let entry = self.current.get(slot);
            work::probed();
            if entry == EMPTY {
                break;
            }
            let home = self.current.home(self.hash(page_of(entry)));
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(gap) & mask {
                work::moved(1);
                self.current.set(gap, entry);
                gap = slot;
            }
        }
        self.current.set(gap, EMPTY);
    }

    /// Begins to fill a table of another size.
    fn resize(&mut self, bits: u32) {
        // The limits on loads make the last sweep end long before this.
        while self.old.count() > 0 {
            self.sweep();
        }
        self.old = std::mem::replace(&mut self.current, Slots::new(bits));
        self.swept = 0;
    }

    /// Moves the entries of some slots from the old table to the current one.
    /// Each update of the map calls this once.
    #[inline]
    pub(super) fn sweep(&mut self) {
        if self.old.count() > 0 {
            self.sweep_some();
        }
    }

    fn sweep_some(&mut self) {
        let slots = self.old.count();
        let to = slots.min(self.swept + SWEPT);
        for slot in self.swept..to {
            work::swept();
            let entry = self.old.get(slot);
            if entry != EMPTY && entry != GONE {
                let home = self.current.home(self.hash(page_of(entry)));
                self.current.add(home, entry);
            }
        }
        self.swept = to;
        if to == slots {
            self.old = Slots::default();
        } else if to.is_multiple_of(SEGMENT) {
            self.old.segments[to / SEGMENT - 1] = Box::default();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages == 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.current.bytes() + self.old.bytes()
    }

    /// Whether all pages are in the current table.
    #[cfg(test)]
    pub(super) fn is_settled(&self) -> bool {
        self.old.count() == 0
    }
}
