//! An array of words that grows and shrinks without a pause.
//!
//! Growing: before the array is full, a larger one is filled in the background of
//! updates, some words with each; what changes is written to both, and when the
//! larger one has all words it takes the place of the first. Memory of the first,
//! and of an array that has become too large, is given back a little at a time.
//! ```text
//! words   │ …………………………………………… used ……│ room │
//! next    │ … copied so far … │                            until it has all
//! ```

use crate::simd::pages::ask_for_huge_pages;

/// Arrays of up to this many words are copied at once when they grow: 512 KB
/// take some 50 microseconds.
const SMALL: usize = 1 << 16;

/// Words copied to the larger array with each update, besides eight for each
/// word that the update has appended.
const COPIED: usize = 512;

/// Words of memory given back with each update while there is too much: 64 KB.
const GIVEN_BACK: usize = 1 << 13;

/// Arrays of fewer words than this are not made smaller: 4 KB.
const KEPT: usize = 1 << 9;

/// The words.
#[derive(Debug)]
pub(super) struct Array {
    words: Vec<u64>,
    /// The larger array to come; its words are those of the first so far.
    next: Vec<u64>,
    /// The smaller array that was, going bit by bit.
    old: Vec<u64>,
    /// Whether to request huge pages.
    huge: bool,
    /// Words appended since the last [`tidy`](Array::tidy).
    appended: usize,
    /// The most words that the array has ever had: the rest of its room has
    /// not been touched and is no memory yet.
    touched: usize,
}

impl Array {
    pub(super) fn new(huge: bool) -> Array {
        Array {
            words: Vec::new(),
            next: Vec::new(),
            old: Vec::new(),
            huge,
            appended: 0,
            touched: 0,
        }
    }

    #[inline]
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Makes room for `words` more words, and for growing without a pause.
    pub(super) fn reserve(&mut self, words: usize) {
        self.words.reserve_exact(words + Array::spare(words));
        if self.huge {
            ask_for_huge_pages(&self.words, words);
        }
    }

    /// Words of room beyond those that are reserved.
    pub(super) fn spare(words: usize) -> usize {
        if words > SMALL { words / 2 } else { 0 }
    }

    /// Bytes held. Room at the end of an array that was never written is
    /// address space, not memory.
    pub(super) fn bytes(&self) -> usize {
        (self.held() + self.next.len() + self.old.capacity()) * size_of::<u64>()
    }

    /// Words of the array that are memory.
    fn held(&self) -> usize {
        self.touched.max(self.words.capacity().min(SMALL))
    }

    /// Changes words, none but `count` from `start` on. The function gets all.
    #[inline]
    pub(super) fn edit(&mut self, start: usize, count: usize, change: impl FnOnce(&mut [u64])) {
        change(&mut self.words);
        let end = (start + count).min(self.next.len());
        if start < end {
            self.next[start..end].copy_from_slice(&self.words[start..end]);
        }
    }

    /// Writes a word.
    #[inline]
    pub(super) fn put(&mut self, at: usize, word: u64) {
        self.words[at] = word;
        if let Some(copy) = self.next.get_mut(at) {
            *copy = word;
        }
    }

    /// Appends zeros until there are `words` words.
    pub(super) fn extend_to(&mut self, words: usize) {
        if words > self.words.capacity() {
            // Not before the room ahead is used up: while it is small, or at
            // the first updates after a build that left none.
            let more = words.max(self.words.len() / 4 * 5) - self.words.len();
            self.words.reserve_exact(more);
            self.next = Vec::new();
        }
        self.appended += words - self.words.len();
        self.words.resize(words, 0);
        self.touched = self.touched.max(words);
    }

    /// Cuts the array off.
    pub(super) fn truncate(&mut self, words: usize) {
        self.words.truncate(words);
        self.next.truncate(words);
    }

    /// Goes on with replacing the array by a larger one, and with giving back
    /// memory: to be called once at the end of each update.
    pub(super) fn tidy(&mut self) {
        let (used, room) = (self.words.len(), self.words.capacity());
        let growing = self.next.capacity() > 0;
        if !growing && room > SMALL && used > room / 8 * 7 {
            self.next = Vec::with_capacity(used * 2);
        }
        if self.next.capacity() > 0 {
            let from = self.next.len();
            let to = used.min(from + COPIED + 8 * self.appended);
            self.next.extend_from_slice(&self.words[from..to]);
            if to == used {
                self.old = std::mem::replace(&mut self.words, std::mem::take(&mut self.next));
                self.old.clear();
                self.touched = used;
                if self.huge {
                    // The system joins its pages in its own time.
                    ask_for_huge_pages(&self.words, used);
                }
            }
        } else {
            let held = self.held();
            if held > KEPT && used < held / 4 * 3 {
                // The array has shrunk by a quarter: give back its end.
                self.words.shrink_to(held - GIVEN_BACK.min(held / 8));
                self.touched = self.touched.min(self.words.capacity());
            }
        }
        if self.old.capacity() > 0 {
            let keep = self.old.capacity().saturating_sub(4 * GIVEN_BACK);
            self.old.shrink_to(keep);
        }
        self.appended = 0;
    }

    /// Whether a larger array is being filled.
    #[cfg(test)]
    pub(super) fn is_growing(&self) -> bool {
        self.next.capacity() > 0
    }

    /// Panics if the array to come has other words than this one.
    #[cfg(test)]
    pub(super) fn check(&self) {
        assert_eq!(self.next, self.words[..self.next.len()]);
    }
}
