//! Page numbers to blocks: an array where pages are dense, a hash table for the
//! rest.
//!
//! # Idea
//! Ids mostly count from 0, so the first pages mostly are all there. Their
//! blocks are in an array ([`direct`](super::direct)): nothing is hashed and
//! nothing is searched. The array doubles when half of its pages are there, and
//! halves when fewer than an eighth are; pages beyond its end are in a hash
//! table ([`hashed`](super::hashed)).
//!
//! Doubling and halving take their time: each update moves a few pages between
//! the two. A page is in exactly one of them.
//!
//! ```text
//! steady       0 … array … len │ … hash table …          end = settled = len
//! doubled      0 … array … settled │ … either … len │ … hash table …
//! halved       0 … array … len │ … either … end │ … hash table …
//! ```
//!
//! # Cost
//! Finding a page in the array: two loads. Memory: 8 to 16 bytes a page where all
//! pages are there, 32 at most. An update looks for [`GATHERED`] pages
//! in the hash table, or looks at [`LOOKED_AT`] entries of the array and moves
//! [`GATHERED`] pages at most.

use super::blocks::BlockAt;
use super::direct::Direct;
use super::hashed::Hashed;

/// Pages that one update moves between array and hash table, at most. Doubling
/// to `2n` entries ends after `n / 4` updates; until then at least `n / 2` pages
/// are missing for the next.
const GATHERED: usize = 4;

/// Entries of the array looked at with each update after it was halved.
const LOOKED_AT: usize = 64;

/// The fewest entries of the array.
const LEAST: usize = 8;

/// The array halves when one entry in more than this is used.
const SPARSE: usize = 8;

/// A map from page numbers to blocks.
pub(super) struct Index {
    direct: Direct,
    hashed: Hashed,
    /// New pages below this go to the array: 0 or a power of two.
    len: usize,
    /// Pages below this are not in the hash table.
    settled: usize,
    /// Pages from this on are not in the array.
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

    /// The block of a page.
    #[inline]
    pub(super) fn get(&self, page: u32) -> Option<BlockAt> {
        match self.direct.get(page) {
            None if page as usize >= self.settled => self.hashed.get(page),
            found => found,
        }
    }

    /// Gives a page that is there another block.
    #[inline]
    pub(super) fn set(&mut self, page: u32, at: BlockAt) {
        if self.direct.get(page).is_some() {
            self.direct.set(page, at);
        } else {
            self.hashed.set(page, at);
        }
    }

    /// Adds a page that is not there.
    pub(super) fn insert(&mut self, page: u32, at: BlockAt) {
        if self.len == 0 {
            self.set_len(LEAST);
            self.settled = LEAST;
        }
        if page as usize >= self.len {
            self.hashed.insert(page, at);
            return;
        }
        self.direct.set(page, at);
        self.grow_if_due();
    }

    /// Doubles the array if half of its pages are there.
    fn grow_if_due(&mut self) {
        if self.direct.used() * 2 >= self.len && self.is_steady() {
            self.set_len(self.len * 2);
        }
    }

    /// Removes a page that is there.
    pub(super) fn remove(&mut self, page: u32) {
        if self.direct.take(page).is_none() {
            self.hashed.remove(page);
        }
        let used = self.direct.used();
        if used == 0 && self.hashed.is_empty() {
            self.direct = Direct::default();
            (self.len, self.settled, self.end) = (0, 0, 0);
        } else if used * SPARSE < self.len && self.len > LEAST && self.is_steady() {
            self.len /= 2;
            self.settled = self.len;
        }
    }

    /// The array gets more entries. What the hash table has of them comes later.
    fn set_len(&mut self, len: usize) {
        self.direct.resize(len);
        self.len = len;
        self.end = len;
    }

    /// Whether no page is to be moved between array and hash table.
    #[inline]
    fn is_steady(&self) -> bool {
        self.settled == self.end
    }

    /// Does some of the work that was put off. Each update of the map calls this
    /// once.
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
        let to = self.len.min(self.settled + GATHERED);
        for page in self.settled..to {
            let page = number(page);
            if self.direct.get(page).is_none()
                && let Some(at) = self.hashed.get(page)
            {
                self.hashed.remove(page);
                self.direct.set(page, at);
            }
        }
        self.settled = to;
        self.grow_if_due();
    }

    /// Moves pages from the end of the array to the hash table.
    fn spill(&mut self) {
        let to = self.len.max(self.end.saturating_sub(LOOKED_AT));
        let mut moved = 0;
        while self.end > to && moved < GATHERED {
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

    /// Bytes of an index of `pages` pages, without gaps between them.
    pub(super) fn bytes_for(pages: usize) -> usize {
        Direct::bytes_for((2 * pages + 1).next_power_of_two().max(LEAST))
    }

    /// Whether nothing is left to sweep.
    #[cfg(test)]
    pub(super) fn is_settled(&self) -> bool {
        self.is_steady() && self.hashed.is_settled()
    }
}

fn number(page: usize) -> u32 {
    u32::try_from(page).expect("2^32 ids have 2^28 pages")
}
