//! The index from page numbers to blocks: an array for dense pages, and a hash table for
//! the others.
//!
//! # Idea
//! Ids usually count from 0, so most of the first pages exist. Their blocks are in an
//! array ([`direct`](super::direct)), without hashing or searching. The array doubles
//! when half of its pages exist, and halves when fewer than an eighth do. Pages beyond
//! its end are in a hash table ([`hashed`](super::hashed)).
//!
//! Doubling and halving are incremental: each update moves a few pages between the array
//! and the hash table. A page is never in both.
//!
//! ```text
//! steady       0 … array … len │ … hash table …          end = settled = len
//! doubled      0 … array … settled │ … either … len │ … hash table …
//! halved       0 … array … len │ … either … end │ … hash table …
//! ```
//!
//! # Cost
//! Finding a page in the array takes two loads. Memory: 8 to 16 bytes a page if all
//! pages exist, and at most 32. An update searches the hash table for
//! [`PAGES_PER_UPDATE`] pages, or reads [`ENTRIES_PER_UPDATE`] entries of the array and
//! moves at most [`PAGES_PER_UPDATE`] pages.

use super::blocks::BlockAt;
use super::direct::Direct;
use super::hashed::Hashed;

/// The largest number of pages that an update moves between array and hash table.
/// Doubling to `2n` entries ends after `n / 4` updates; until then at least `n / 2`
/// pages are missing for the next doubling.
const PAGES_PER_UPDATE: usize = 4;

/// The number of array entries that an update reads after the array was halved. It bounds
/// the work of an update.
const ENTRIES_PER_UPDATE: usize = 64;

/// The smallest number of array entries. Measured in `bench/records/constants.md`
/// (Lists and maps).
const MIN_ENTRIES: usize = 8;

/// The array halves if less than 1 / `MIN_USED_SHARE` of its entries are used. It bounds
/// the array's memory.
const MIN_USED_SHARE: usize = 8;

/// A map from page numbers to blocks.
pub(super) struct Index {
    direct: Direct,
    hashed: Hashed,
    /// New pages below this number go to the array: 0 or a power of two.
    len: usize,
    /// No page below this number is in the hash table.
    settled: usize,
    /// No page from this number on is in the array.
    end: usize,
}

impl Index {
    pub(super) fn new(seed: u64) -> Index {
        Index {
            direct: Direct::default(),
            hashed: Hashed::new(seed),
            len: 0,
            settled: 0,
            end: 0,
        }
    }

    /// Returns the block of a page.
    #[inline]
    pub(super) fn get(&self, page: u32) -> Option<BlockAt> {
        match self.direct.get(page) {
            None if page as usize >= self.settled => self.hashed.get(page),
            block => block,
        }
    }

    /// Changes the block of an existing page.
    #[inline]
    pub(super) fn set(&mut self, page: u32, at: BlockAt) {
        if self.direct.get(page).is_some() {
            self.direct.set(page, at);
        } else {
            self.hashed.set(page, at);
        }
    }

    /// Adds a page that does not exist.
    pub(super) fn insert(&mut self, page: u32, at: BlockAt) {
        if self.len == 0 {
            self.set_len(MIN_ENTRIES);
            self.settled = MIN_ENTRIES;
        }
        if page as usize >= self.len {
            self.hashed.insert(page, at);
            return;
        }
        self.direct.set(page, at);
        self.grow_if_due();
    }

    /// Doubles the array if half of its pages exist.
    fn grow_if_due(&mut self) {
        if self.direct.used() * 2 >= self.len && self.is_steady() {
            self.set_len(self.len * 2);
        }
    }

    /// Removes an existing page.
    pub(super) fn remove(&mut self, page: u32) {
        if self.direct.take(page).is_none() {
            self.hashed.remove(page);
        }
        let used = self.direct.used();
        if used == 0 && self.hashed.is_empty() {
            self.direct = Direct::default();
            (self.len, self.settled, self.end) = (0, 0, 0);
        } else if used * MIN_USED_SHARE < self.len && self.len > MIN_ENTRIES && self.is_steady() {
            self.len /= 2;
            self.settled = self.len;
        }
    }

    /// Enlarges the array. Pages of the new part are moved from the hash table later.
    fn set_len(&mut self, len: usize) {
        self.direct.resize(len);
        self.len = len;
        self.end = len;
    }

    /// True if no page has to move between array and hash table.
    #[inline]
    fn is_steady(&self) -> bool {
        self.settled == self.end
    }

    /// Does a part of the deferred work. Each update of the map calls this once.
    #[inline]
    pub(super) fn sweep(&mut self) {
        self.hashed.sweep();
        if self.settled < self.len {
            self.gather();
        } else if self.len < self.end {
            self.spill();
        }
    }

    /// Moves pages from the hash table to the array.
    fn gather(&mut self) {
        let stop = self.len.min(self.settled + PAGES_PER_UPDATE);
        for page in self.settled..stop {
            let page = number(page);
            if self.direct.get(page).is_none()
                && let Some(at) = self.hashed.get(page)
            {
                self.hashed.remove(page);
                self.direct.set(page, at);
            }
        }
        self.settled = stop;
        self.grow_if_due();
    }

    /// Moves pages from the end of the array to the hash table.
    fn spill(&mut self) {
        let stop = self.len.max(self.end.saturating_sub(ENTRIES_PER_UPDATE));
        let mut moved = 0;
        while self.end > stop && moved < PAGES_PER_UPDATE {
            self.end -= 1;
            let page = number(self.end);
            if let Some(at) = self.direct.take(page) {
                self.hashed.insert(page, at);
                moved += 1;
            }
        }
        if self.end == self.len {
            self.direct.resize(self.len);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.direct.bytes() + self.hashed.bytes()
    }

    /// Bytes of an index of `pages` consecutive pages.
    pub(super) fn bytes_for(pages: usize) -> usize {
        Direct::bytes_for((2 * pages + 1).next_power_of_two().max(MIN_ENTRIES))
    }

    /// True if no work is deferred.
    #[cfg(test)]
    pub(super) fn is_settled(&self) -> bool {
        self.is_steady() && self.hashed.is_settled()
    }
}

fn number(page: usize) -> u32 {
    u32::try_from(page).expect("2^32 ids have 2^28 pages")
}
