//! Candidates of a lookup: the order of their tests, and limits on the tests.
//!
//! # Order
//! 1. Candidates of the vectors, best first. This step ends at a match, after
//!    [`FIRST_BLOCKS`] joined blocks, or after [`MAX_FAILED`] candidates that do not
//!    match. Blocks that a summary excludes are not joined.
//! 2. Candidates of the lists that are better than the winner so far.
//! 3. The remaining candidates of the vectors that are better than the winner so far.
//!    In a block with [`MIN_DENSE`] candidates or more, tags are not tested.
//!
//! Ordinary lookups end in the first step or in the second. The
//! [documentation of the engine](super) derives the bounds of a lookup from this order.

use super::Decomposition;
use super::screen::Entry;
use crate::parts::bit_vectors::{BLOCK_RULES, blocks_of, first_bits, places};
use crate::parts::simd::bits::{WORDS, first_common};

/// The largest number of blocks that are joined before the lists are searched. Measured in
/// `bench/records/constants.md` (Pauses of decomposition).
pub(super) const FIRST_BLOCKS: usize = 16;

/// The largest number of candidates that fail before the lists are searched. Measured in
/// `bench/records/constants.md` (Pauses of decomposition) and
/// `bench/records/decomposition.md`.
pub(super) const MAX_FAILED: usize = 32;

/// The smallest number of candidates of a block whose tags are not tested in the third
/// step. Measured in `bench/records/constants.md` (Pauses of decomposition) and
/// `bench/records/decomposition.md`.
pub(super) const MIN_DENSE: usize = 64;

/// The tests of candidates in one lookup.
pub(super) trait Tests {
    /// True if a rule's tag does not exclude the rule.
    fn passes(&mut self, entry: Entry) -> bool;

    /// True if the rule at a place matches and is not hidden.
    fn matches(&mut self, place: usize) -> bool;

    /// Receives a step of joining: from block `from` to the first block with
    /// candidates, or to block `end` if there is none.
    fn joined(&mut self, _from: usize, _with_candidates: Option<usize>, _end: usize) {}

    /// Receives the number of blocks, of vectors or of summaries, that were read in all rows
    /// and joined.
    fn read(&mut self, _blocks: usize) {}
}

/// Tests a key, and records nothing.
pub(super) struct Plain<'a, const W: usize> {
    pub(super) engine: &'a Decomposition,
    pub(super) key: &'a [u64; W],
}

impl<const W: usize> Tests for Plain<'_, W> {
    #[inline(always)]
    fn passes(&mut self, entry: Entry) -> bool {
        self.engine.shared.screens.passes(entry, self.key)
    }

    #[inline(always)]
    fn matches(&mut self, place: usize) -> bool {
        self.engine.rules.matches_key(place, self.key)
    }
}

/// The largest numbers of tests in a lookup.
#[derive(Clone, Copy, Debug)]
pub(super) struct MostTests {
    /// Rules that are compared.
    pub(super) compared: usize,
    /// Tags that are tested.
    pub(super) tags: usize,
    /// Rules that are compared although the winner is better.
    pub(super) worse: usize,
}

impl Decomposition {
    /// Returns limits on the tests of any lookup.
    pub(super) fn most_tests(&self) -> MostTests {
        let shared = &*self.shared;
        let length = |list: u32| {
            let list = shared.store.lists[list as usize..].iter();
            list.take_while(|&&entry| entry != Entry::END).count()
        };
        let fields = shared.fields.iter().filter(|field| field.has_lists);
        let longest = fields.map(|field| {
            let lengths = field.classes.iter().map(|class| length(class.list));
            lengths.max().unwrap_or(0)
        });
        let (listed, wide) = (longest.sum::<usize>(), shared.wide.len());
        let sparse = (MIN_DENSE - 1) * blocks_of(wide);
        MostTests {
            compared: listed + wide,
            tags: listed + wide.min(MAX_FAILED + sparse),
            worse: listed + wide.min(MAX_FAILED),
        }
    }

    /// Returns the place of the best rule in the lists and vectors that matches, if it
    /// is below `bound`; otherwise returns `bound`.
    #[inline(always)]
    pub(super) fn first_place<T: Tests>(
        &self,
        tests: &mut T,
        lists: &[u32],
        rows: &[usize],
        bound: usize,
    ) -> usize {
        let (mut place, next_bit) = self.first_joined(tests, rows, bound);
        for &list in lists {
            place = self.first_listed(tests, list, place);
        }
        match next_bit < self.shared.wide.len() {
            true => self.rest_joined(tests, rows, next_bit, place),
            false => place,
        }
    }

    /// The first step. Also returns the first bit of the vectors that was not tested,
    /// or `usize::MAX` if no further bit can improve the result.
    #[inline(always)]
    fn first_joined<T: Tests>(
        &self,
        tests: &mut T,
        rows: &[usize],
        mut bound: usize,
    ) -> (usize, usize) {
        let store = &self.shared.store;
        let first_blocks = match store.summary {
            0 => FIRST_BLOCKS,
            _ => FIRST_BLOCKS * BLOCK_RULES,
        };
        let end = first_blocks.min(store.row_blocks - store.summary);
        let (mut cursor, mut failed) = (Cursor::new(0, FIRST_BLOCKS), 0);
        while !self.is_behind(cursor.next, bound) {
            let Some((block, bits)) = self.next_joined(tests, rows, &mut cursor, end) else {
                return (bound, cursor.next * BLOCK_RULES);
            };
            for bit in places(&bits, block) {
                let entry = self.shared.wide[bit];
                let place = entry.place();
                if place >= bound {
                    break;
                }
                if tests.passes(entry) && tests.matches(place) {
                    bound = place;
                    break;
                }
                failed += 1;
                if failed == MAX_FAILED {
                    return (bound, bit + 1);
                }
            }
        }
        (bound, usize::MAX)
    }

    /// The second step, for one list.
    #[inline(always)]
    fn first_listed<T: Tests>(&self, tests: &mut T, list: u32, bound: usize) -> usize {
        for &entry in &self.shared.store.lists[list as usize..] {
            let place = entry.place();
            if place >= bound {
                break;
            }
            if tests.passes(entry) && tests.matches(place) {
                return place;
            }
        }
        bound
    }

    /// The third step, from bit `first_bit` of the vectors on.
    #[inline(never)]
    fn rest_joined<T: Tests>(
        &self,
        tests: &mut T,
        rows: &[usize],
        first_bit: usize,
        mut bound: usize,
    ) -> usize {
        let blocks = blocks_of(self.shared.wide.len());
        let first_block = first_bit / BLOCK_RULES;
        let mut cursor = Cursor::new(first_block, usize::MAX);
        while !self.is_behind(cursor.next, bound) {
            // The rule of a bit has no smaller place than the bit's number.
            let end = match self.stops {
                true => blocks.min(blocks_of(bound)),
                false => blocks,
            };
            let Some((block, mut bits)) = self.next_joined(tests, rows, &mut cursor, end) else {
                break;
            };
            if block == first_block {
                let tested = first_bits(first_bit % BLOCK_RULES);
                for (bits, tested) in bits.iter_mut().zip(tested) {
                    *bits &= !tested;
                }
            }
            let candidates: u32 = bits.iter().map(|word| word.count_ones()).sum();
            let is_dense = candidates as usize >= MIN_DENSE;
            for bit in places(&bits, block) {
                let entry = self.shared.wide[bit];
                let place = entry.place();
                if place >= bound {
                    break;
                }
                if (is_dense || tests.passes(entry)) && tests.matches(place) {
                    bound = place;
                    break;
                }
            }
        }
        bound
    }

    /// True if no rule in the vectors from a block on is below `bound`.
    #[inline(always)]
    fn is_behind(&self, block: usize, bound: usize) -> bool {
        let first = self.shared.wide.get(block * BLOCK_RULES);
        first.is_none_or(|entry| entry.place() >= bound && self.stops)
    }

    /// Returns the first block of 512 rules that has a rule in all vectors, and the bits
    /// of these rules: a block from the cursor up to `end`. Moves the cursor behind the
    /// block. Without such a block, moves it to `end`, or to the block at which the
    /// cursor's largest number of blocks ended.
    #[inline(always)]
    fn next_joined<T: Tests>(
        &self,
        tests: &mut T,
        rows: &[usize],
        cursor: &mut Cursor,
        end: usize,
    ) -> Option<(usize, [u64; WORDS])> {
        let store = &self.shared.store;
        let from = cursor.next;
        let next = match store.summary {
            0 => {
                let next = first_common(self.isa, &store.rows, rows, from, end);
                cursor.next = next.map_or(end, |(block, _)| block + 1);
                tests.read(cursor.next - from);
                next
            }
            _ => self.next_summarised(tests, rows, cursor, end),
        };
        tests.joined(from, next.map(|(block, _)| block), cursor.next);
        next
    }

    /// Does the same as [`next_joined`](Self::next_joined), by summaries. Only blocks
    /// that the summaries do not exclude count.
    fn next_summarised<T: Tests>(
        &self,
        tests: &mut T,
        rows: &[usize],
        cursor: &mut Cursor,
        end: usize,
    ) -> Option<(usize, [u64; WORDS])> {
        let store = &self.shared.store;
        let (from, last_head) = (cursor.next, blocks_of(end));
        cursor.next = end;
        let (mut head, mut skipped) = (from / BLOCK_RULES, first_bits(from % BLOCK_RULES));
        loop {
            let summaries = first_common(self.isa, &store.rows, rows, head, last_head);
            tests.read(summaries.map_or(last_head, |(block, _)| block + 1) - head);
            let (summary_block, blocks) = summaries?;
            if summary_block != head {
                skipped = [0; WORDS];
            }
            let blocks = std::array::from_fn(|word| blocks[word] & !skipped[word]);
            for block in places(&blocks, summary_block) {
                if block >= end {
                    return None;
                }
                if cursor.blocks_left == 0 {
                    cursor.next = block;
                    return None;
                }
                cursor.blocks_left -= 1;
                tests.read(1);
                let row_block = store.summary + block;
                if let Some((_, bits)) =
                    first_common(self.isa, &store.rows, rows, row_block, row_block + 1)
                {
                    cursor.next = block + 1;
                    return Some((block, bits));
                }
            }
            (head, skipped) = (summary_block + 1, [0; WORDS]);
        }
    }
}

/// The place in the vectors up to which a lookup has joined them.
struct Cursor {
    /// The number of the next block.
    next: usize,
    /// The number of further blocks that may be joined, if there are summaries.
    blocks_left: usize,
}

impl Cursor {
    fn new(next: usize, blocks_left: usize) -> Cursor {
        Cursor { next, blocks_left }
    }
}
