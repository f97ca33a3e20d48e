//! An array of words that grows and shrinks without a pause.
//!
//! Growing: before the array is full, a larger array is filled in the background of
//! updates, some words with each. Changes are written to both arrays. When the
//! larger array has all words, it replaces the first. The memory of the first array,
//! and of an array that has become too large, is released in small parts.
//! ```text
//! words   │ …………………………………………… used ……│ spare │
//! next    │ … copied so far … │                            until complete
//! ```

use crate::engines::forest::kernels::compare::WORDS_AFTER_RUNS;
use crate::parts::simd::pages::ask_for_huge_pages;

/// Arrays of at most this number of words are copied in one step when they grow: 512
/// KB take some 50 microseconds. Bounds the time of that update.
const MAX_COPIED_IN_ONE: usize = 1 << 16;

/// Words copied to the larger array with each update, in addition to eight for each
/// word that the update has appended. Bounds the copies of an update.
const COPIED_PER_UPDATE: usize = 512;

/// Words of memory released with each update while there is too much: 64 KB. Bounds
/// the time of an update.
const RELEASED_PER_UPDATE: usize = 1 << 13;

/// Arrays of fewer words are not made smaller: 4 KB. Bounds the unused memory of an
/// array of few words.
const MIN_SHRUNK_WORDS: usize = 1 << 9;

/// An array of words.
#[derive(Debug)]
pub(super) struct Array {
    /// The words, and [`WORDS_AFTER_RUNS`] zeros, unless the array never had words.
    words: Vec<u64>,
    /// The larger array that is being filled; a copy of the first words of `words`.
    next: Vec<u64>,
    /// The replaced, smaller array, which is being freed.
    old: Vec<u64>,
    /// True if huge pages are requested.
    huge: bool,
    /// Words appended since the last [`tidy`](Array::tidy).
    appended: usize,
    /// The most words that the array has ever had. Later words have never been
    /// written and take no memory yet.
    touched: usize,
    /// True if the length has changed, or the last [`tidy`](Array::tidy) has not
    /// finished.
    untidy: bool,
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
            untidy: false,
        }
    }

    /// The words, with the zeros after them.
    #[inline]
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Makes room for `words` more words, and spare room for growing without a
    /// pause.
    pub(super) fn reserve(&mut self, words: usize) {
        self.untidy = true;
        self.words
            .reserve_exact(words + Array::spare(words) + WORDS_AFTER_RUNS);
        if self.huge {
            ask_for_huge_pages(&self.words, words);
        }
    }

    /// The number of spare words when `words` words are reserved.
    pub(super) fn spare(words: usize) -> usize {
        if words > MAX_COPIED_IN_ONE {
            words / 2
        } else {
            0
        }
    }

    /// Bytes held. The end of an array that was never written is address space, not
    /// memory.
    pub(super) fn bytes(&self) -> usize {
        (self.held() + self.next.len() + self.old.capacity()) * size_of::<u64>()
    }

    /// The number of words that take memory.
    fn held(&self) -> usize {
        self.touched
            .max(self.words.capacity().min(MAX_COPIED_IN_ONE))
    }

    /// Changes at most `count` words from `start` on. `change` receives all words.
    #[inline]
    pub(super) fn edit(&mut self, start: usize, count: usize, change: impl FnOnce(&mut [u64])) {
        change(&mut self.words);
        let copied_end = (start + count).min(self.next.len());
        if start < copied_end {
            self.next[start..copied_end].copy_from_slice(&self.words[start..copied_end]);
        }
    }

    /// Writes a word.
    #[inline]
    pub(super) fn put(&mut self, index: usize, word: u64) {
        self.words[index] = word;
        if let Some(copy) = self.next.get_mut(index) {
            *copy = word;
        }
    }

    /// Appends zeros until there are `words` words.
    pub(super) fn extend_to(&mut self, words: usize) {
        self.untidy = true;
        // The zeros after the words become words.
        let words = words + WORDS_AFTER_RUNS;
        if words > self.words.capacity() {
            // Only when the spare room is used up: while the array is small, or at
            // the first updates after a build that left no spare room.
            let extra_words = words.max(self.words.len() / 4 * 5) - self.words.len();
            self.words.reserve_exact(extra_words);
            self.next = Vec::new();
        }
        self.appended += words - self.words.len();
        self.words.resize(words, 0);
        self.touched = self.touched.max(words);
    }

    /// Shortens the array to `words` words.
    pub(super) fn truncate(&mut self, words: usize) {
        self.untidy = true;
        self.next.truncate(words);
        self.words.truncate(words + WORDS_AFTER_RUNS);
        self.words[words..].fill(0);
    }

    /// Continues to replace the array by a larger one, and to release memory. To be
    /// called once at the end of each update.
    #[inline]
    pub(super) fn tidy(&mut self) {
        if self.untidy {
            let works = [self.resize_some(), self.free_some()];
            self.untidy = works.contains(&true);
        }
    }

    /// Continues to fill a larger array, or to release the end of an array that has
    /// shrunk. Returns true if there was something to do.
    fn resize_some(&mut self) -> bool {
        let appended = std::mem::take(&mut self.appended);
        let (used, room) = (self.words.len(), self.words.capacity());
        let is_growing = self.next.capacity() > 0;
        if !is_growing && room > MAX_COPIED_IN_ONE && used > room / 8 * 7 {
            self.next = Vec::with_capacity(used * 2);
        }
        if self.next.capacity() == 0 {
            return self.shrink_some();
        }
        let start = self.next.len();
        let copied_end = used.min(start + COPIED_PER_UPDATE + 8 * appended);
        self.next.extend_from_slice(&self.words[start..copied_end]);
        if copied_end == used {
            self.old = std::mem::replace(&mut self.words, std::mem::take(&mut self.next));
            self.old.clear();
            self.touched = used;
            if self.huge {
                // The system merges its pages later.
                ask_for_huge_pages(&self.words, used);
            }
        }
        true
    }

    /// Releases a part of the end, if the array has shrunk by a quarter. Returns true if
    /// it has.
    fn shrink_some(&mut self) -> bool {
        let (used, held) = (self.words.len(), self.held());
        let has_shrunk = held > MIN_SHRUNK_WORDS && used < held / 4 * 3;
        if has_shrunk {
            self.words
                .shrink_to(held - RELEASED_PER_UPDATE.min(held / 8));
            self.touched = self.touched.min(self.words.capacity());
        }
        has_shrunk
    }

    /// Releases a part of a replaced array. Returns true if there was one.
    fn free_some(&mut self) -> bool {
        let words = self.old.capacity();
        if words > 0 {
            let keep = words.saturating_sub(4 * RELEASED_PER_UPDATE);
            self.old.shrink_to(keep);
        }
        words > 0
    }

    /// True if a larger array is being filled.
    #[cfg(test)]
    pub(super) fn is_growing(&self) -> bool {
        self.next.capacity() > 0
    }

    /// Panics if the larger array differs from this array.
    #[cfg(test)]
    pub(super) fn check(&self) {
        assert_eq!(self.next, self.words[..self.next.len()]);
    }
}
