//! Comparing keys with runs of rules: one key with up to eight rules at a time.
//!
//! # Idea
//! A run keeps the rules of one bucket, best first, column by column. So the same
//! words of neighbouring rules are adjacent:
//! ```text
//! run of n rules   rank × n | value₀ × n | mask₀ × n | low₁ × n | high₁ × n | …
//! ```
//! For each rule, `differs` collects all mismatches:
//! ```text
//! for each key word w:
//!     unless the word consists only of range lanes:
//!         differs |= (key[w] ^ value[w]) & mask[w]
//!     if the word has range lanes, in lanes of 16 bits, saturating:
//!         differs |= (value[w] - key[w]) | (key[w] - high[w])
//! ```
//! A lane without a range has `high` all ones, and its value has no bits outside of
//! the mask, so a matching key is never below it. Therefore lanes need no selection.
//! (`rows.rs` fills the columns and guarantees that.) The first rule without a
//! difference is the best match.
//!
//! The tricks:
//! 1. A vector is always loaded whole. Behind a short run it has words of the next run,
//!    and their matches are left out. So a run of three rules costs as much as a run of
//!    eight, and runs need no padding.
//! 2. No branch depends on whether a key matches.
//! 3. Most runs have up to four rules. Half a vector suffices for them, with half as
//!    many loads across cache lines. They are in a list of their own, so that no
//!    branch depends on their length either.
//! 4. A branch on the result of a comparison follows only every second block.
//!
//! Ranges that do not fit lanes are checked by `accept`, only for candidates.

use super::keys::Keys;
use crate::engines::forest::slot::FoundSlot;
use crate::model::rule::Winner;
use crate::parts::simd::prefetch_early_at;
use crate::parts::simd::vector::{Lanes, Simd, Vector};

/// The most rules of a short run: half a vector holds a column. Measured in
/// `bench/records/forest-experiments.md`, "short runs apart from long ones".
pub(crate) const MAX_SHORT_RUN: usize = 4;

/// Keys and the runs to compare them with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hits<'a> {
    pub(crate) hits: &'a [FoundSlot],
    /// True if no run has more rules than the kernel's `MAX_SHORT_RUN`; see
    /// [`MAX_SHORT_RUN`] for this module's.
    pub(crate) is_short: bool,
    /// True if all runs are prefetched first.
    pub(crate) prefetch: bool,
}

/// The number of words that follow the last run. Vectors are loaded as a whole, and may
/// reach so far beyond a run.
pub(crate) const WORDS_AFTER_RUNS: usize = 7;

/// Words in a cache line.
const WORDS_PER_LINE: usize = 8;

impl Hits<'_> {
    /// The number of cache lines prefetched for each run: two rules of a short run
    /// or eight of a long run, and more, since runs seldom begin at a line. The
    /// number is equal for all runs; otherwise branches would depend on it.
    #[inline(always)]
    fn lines(self, columns: usize) -> usize {
        if self.is_short {
            2 + columns * MAX_SHORT_RUN / 2 / WORDS_PER_LINE
        } else {
            columns + 1
        }
    }

    /// Iterates over hits, each with its run and the number of rules. `keys` is the
    /// number of keys.
    ///
    /// # Panics
    /// If a run is not inside of the words, or a key does not exist.
    #[inline(always)]
    fn walk(
        self,
        words: &[u64],
        columns: usize,
        keys: usize,
    ) -> impl Iterator<Item = (FoundSlot, &[u64], usize)> {
        let walk = self.walk_unprefetched(words, columns, keys);
        if self.prefetch {
            // The processor can have fewer outstanding requests; the others wait.
            let lines = self.lines(columns);
            for hit in self.hits {
                for line in 0..lines {
                    prefetch_early_at(words, hit.start() + line * WORDS_PER_LINE);
                }
            }
        }
        walk
    }

    /// Like [`walk`](Self::walk), but never prefetches.
    #[inline(always)]
    pub(super) fn walk_unprefetched(
        self,
        words: &[u64],
        columns: usize,
        keys: usize,
    ) -> impl Iterator<Item = (FoundSlot, &[u64], usize)> {
        self.hits.iter().map(move |&hit| {
            assert!(usize::from(hit.key()) < keys, "a key");
            (hit, run_of(words, columns, hit), hit.len())
        })
    }
}

/// The words of a run.
///
/// # Panics
/// If the run, and the words that follow the last run, are not inside of `words`.
#[inline(always)]
fn run_of(words: &[u64], columns: usize, hit: FoundSlot) -> &[u64] {
    let start = hit.start();
    let end = start + hit.len() * columns;
    assert!(
        end + WORDS_AFTER_RUNS <= words.len(),
        "a run with words after it"
    );
    // SAFETY: the end was just compared, and the start is not beyond it.
    unsafe { words.get_unchecked(start..end) }
}

/// The layout of runs: the rank; then for each key word its value and, if present,
/// its mask and upper ends; then other columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunColumns {
    /// The number of key words with columns; these are the first words.
    words: u32,
    /// Bit `w`: word `w` of a key has range lanes, and so a column for their upper
    /// ends.
    lanes: u32,
    /// Bit `w`: word `w` consists only of range lanes, and has no mask.
    bounds: u32,
    /// Words for each rule: at least the number of compared columns.
    count: u32,
}

impl RunColumns {
    /// Creates the columns of the first `words` words of a key. `lanes` has a bit
    /// for each word with range lanes, `bounds` for each word without a mask. A rule
    /// has `count` columns.
    ///
    /// # Panics
    /// If `count` is less than the number of compared columns.
    pub(crate) fn new(words: usize, lanes: u32, bounds: u32, count: usize) -> RunColumns {
        let narrow = |number| u32::try_from(number).expect("columns of a schema are few");
        let columns = RunColumns {
            words: narrow(words),
            lanes,
            bounds,
            count: narrow(count),
        };
        let compared =
            |word| 1 + usize::from(columns.has_mask(word)) + usize::from(columns.has_lanes(word));
        let rank = 1;
        assert!(
            count >= rank + (0..words).map(compared).sum::<usize>(),
            "a column for everything that is compared"
        );
        columns
    }

    /// Returns the number of key words that have columns.
    #[inline(always)]
    fn words(self) -> usize {
        self.words as usize
    }

    /// Returns the number of words for each rule.
    #[inline(always)]
    fn count(self) -> usize {
        self.count as usize
    }

    /// Returns the words with range lanes, one bit each.
    pub(crate) fn lanes(self) -> u32 {
        self.lanes
    }

    #[inline(always)]
    fn has_lanes(self, word: usize) -> bool {
        self.lanes >> word & 1 != 0
    }

    #[inline(always)]
    fn has_mask(self, word: usize) -> bool {
        self.bounds >> word & 1 == 0
    }

    /// Returns the columns of five-tuples: all `W` words have columns, only the last
    /// word consists of range lanes and has no mask, and `accept` checks no column.
    #[expect(clippy::cast_possible_truncation, reason = "keys have few words")]
    const fn of_five_tuples<const W: usize>() -> RunColumns {
        RunColumns {
            words: W as u32,
            lanes: 1 << (W - 1),
            bounds: 1 << (W - 1),
            count: 2 * W as u32 + 1,
        }
    }

    fn is_five_tuple<const W: usize>(self) -> bool {
        self == RunColumns::of_five_tuples::<W>()
    }
}

/// Improves the winners of keys by the best matching rules of their runs. With
/// `ODD`, `accept` confirms or rejects a candidate (run, its length, rule, key);
/// without `ODD` it accepts everything and is not called. To be called within a
/// [kernel](crate::parts::simd::vector::Kernel).
///
/// # Panics
/// If a hit's key or run does not exist.
#[inline(always)]
pub(crate) fn improve<S: Simd, const W: usize, const ODD: bool>(
    simd: S,
    words: &[u64],
    columns: RunColumns,
    keys: Keys<'_, W>,
    hits: Hits<'_>,
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) {
    if columns.is_five_tuple::<W>() {
        let columns = RunColumns::of_five_tuples::<W>();
        improve_columns::<S, W, ODD>(simd, words, columns, keys, hits, accept);
    } else {
        improve_columns::<S, W, ODD>(simd, words, columns, keys, hits, accept);
    }
}

/// Improves a winner by the best matching rule of one run. Returns the better of both,
/// and true if a rule matched. Otherwise like [`improve`].
///
/// # Panics
/// If the run does not exist.
#[inline(always)]
pub(crate) fn improve_one<S: Simd, const W: usize, const ODD: bool>(
    simd: S,
    words: &[u64],
    columns: RunColumns,
    (key, winner): (&[u64; W], Winner),
    hit: FoundSlot,
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) -> (Winner, bool) {
    let fixed = RunColumns::of_five_tuples::<W>();
    let is_fixed = columns == fixed;
    let is_short = hit.len() <= MAX_SHORT_RUN && S::Half::LANE_COUNT >= MAX_SHORT_RUN;
    let run = run_of(words, columns.count(), hit);
    let block = |columns| Block {
        key,
        columns,
        run,
        len: hit.len(),
        first: 0,
    };
    match (is_fixed, is_short) {
        (true, true) => block(fixed).improve::<S::Half, ODD, true>(simd, winner, &accept),
        (true, false) => block(fixed).improve::<S::Full, ODD, false>(simd, winner, &accept),
        (false, true) => block(columns).improve::<S::Half, ODD, true>(simd, winner, &accept),
        (false, false) => block(columns).improve::<S::Full, ODD, false>(simd, winner, &accept),
    }
}

/// Inlined twice: for five-tuples the columns are constants, so the compiler unrolls the
/// loop over words.
#[inline(always)]
fn improve_columns<S: Simd, const W: usize, const ODD: bool>(
    simd: S,
    words: &[u64],
    columns: RunColumns,
    keys: Keys<'_, W>,
    hits: Hits<'_>,
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) {
    if hits.is_short && S::Half::LANE_COUNT >= MAX_SHORT_RUN {
        improve_runs::<S::Half, W, ODD, true>(simd, words, columns, keys, hits, accept);
    } else {
        improve_runs::<S::Full, W, ODD, false>(simd, words, columns, keys, hits, accept);
    }
}

/// The number of rules compared between two checks for a better rule behind them. A
/// branch on the result of a comparison is resolved late, and often mispredicted; the end
/// of a run is known early. So two blocks are compared between checks. One block, and as
/// many as there are, are measured in `bench/records/forest-experiments.md`, "two blocks
/// of a run compared". Without vectors, each rule is checked.
const RULES_PER_CHECK: usize = 16;

/// Compares runs by vectors of one kind. With `ONE_BLOCK`, a column of each run fits a
/// vector.
#[inline(always)]
fn improve_runs<V: Vector, const W: usize, const ODD: bool, const ONE_BLOCK: bool>(
    set: V::Set,
    words: &[u64],
    columns: RunColumns,
    mut keys: Keys<'_, W>,
    hits: Hits<'_>,
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) {
    for (hit, run, len) in hits.walk(words, columns.count(), keys.len()) {
        // SAFETY: `walk` has compared all positions with the number of keys.
        let (key, key_winner, conflicts) = unsafe { keys.at_unchecked(hit.key()) };
        let block = Block::<W> {
            key,
            columns,
            run,
            len,
            first: 0,
        };
        let (winner, matched) = block.improve::<V, ODD, ONE_BLOCK>(set, *key_winner, &accept);
        *key_winner = winner;
        conflicts.narrow(hit.conflicts(), matched);
    }
}

/// A key, and the rules of a run from `first` on that a vector has room for.
#[derive(Clone, Copy)]
struct Block<'a, const W: usize> {
    key: &'a [u64; W],
    columns: RunColumns,
    /// `len` times [`RunColumns::count`] words.
    run: &'a [u64],
    /// The number of rules of the run.
    len: usize,
    /// Below `len`.
    first: usize,
}

impl<const W: usize> Block<'_, W> {
    /// Improves a winner by the rules of the run from here on. Returns the better of
    /// both, and true if a rule matched. With `ONE_BLOCK`, a column of the run fits a
    /// vector.
    #[inline(always)]
    fn improve<V: Vector, const ODD: bool, const ONE_BLOCK: bool>(
        mut self,
        set: V::Set,
        mut winner: Winner,
        accept: &impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) -> (Winner, bool) {
        let rules_per_check = match V::LANE_COUNT {
            1 => 1,
            _ => RULES_PER_CHECK,
        };
        let mut matched = false;
        loop {
            let (rank, has_match) = if ODD {
                self.first_accepted::<V>(set, accept)
            } else {
                self.first_candidate::<V>(set)
            };
            winner = winner.or(Winner::from_rank(rank));
            matched |= has_match;
            self.first += V::LANE_COUNT;
            let is_check_due = self.first.is_multiple_of(rules_per_check);
            if ONE_BLOCK
                || self.first >= self.len
                || is_check_due && !Winner::from_rank(self.run[self.first]).beats(winner)
            {
                return (winner, matched);
            }
        }
    }

    /// A column of these rules; other words in the lanes behind the last rule.
    #[inline(always)]
    fn load<V: Vector>(&self, set: V::Set, column: usize) -> V {
        let start = self
            .run
            .as_ptr()
            .wrapping_add(column * self.len + self.first);
        // SAFETY: `first < len`, and `column < columns.count()` (asserted by
        // `RunColumns::new`), so the first lane is inside of `run`. Seven words follow
        // each run (asserted by `walk`), and a vector has at most eight lanes.
        unsafe { V::load_unchecked(set, start) }
    }

    /// The rules that match without more to check, and the ranks of all rules.
    #[inline(always)]
    fn candidates<V: Vector>(&self, set: V::Set) -> (Lanes, V) {
        let mut differs = V::splat(set, 0);
        let mut column = 1;
        for (word, &key) in self.key.iter().enumerate() {
            // Unlike `take`, this leaves a loop that the compiler unrolls.
            if word == self.columns.words() {
                break;
            }
            let key = V::splat(set, key);
            let value = self.load::<V>(set, column);
            column += 1;
            if self.columns.has_mask(word) {
                let unlike = key.xor(value).and(self.load::<V>(set, column));
                differs = differs.or(unlike);
                column += 1;
            }
            if self.columns.has_lanes(word) {
                differs = differs.or(key.outside_u16(value, self.load::<V>(set, column)));
                column += 1;
            }
        }
        let ranks = self.load::<V>(set, 0);
        let in_run = V::first_lanes(set, self.len - self.first);
        (differs.zeros_among(in_run), ranks)
    }

    /// The rank of the first candidate, or all ones; and true if there is one.
    #[inline(always)]
    fn first_candidate<V: Vector>(&self, set: V::Set) -> (u64, bool) {
        let (candidates, ranks) = self.candidates::<V>(set);
        let block = self.run.as_ptr().wrapping_add(self.first);
        // SAFETY: candidates are rules of the run, whose first column has the ranks.
        let rank = unsafe { ranks.first_selected(candidates, block) };
        (rank, candidates != 0)
    }

    /// The rank of the first candidate that is accepted, or all ones; and true if there is
    /// one.
    #[inline(always)]
    fn first_accepted<V: Vector>(
        &self,
        set: V::Set,
        accept: &impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) -> (u64, bool) {
        let (mut candidates, _) = self.candidates::<V>(set);
        while candidates != 0 {
            let rule = self.first + candidates.trailing_zeros() as usize;
            if accept(self.run, self.len, rule, self.key) {
                return (self.run[rule], true);
            }
            candidates &= candidates - 1;
        }
        (u64::MAX, false)
    }
}

/// Not 0 if some 16-bit lane of the key is below `low` or above `high`.
#[cfg(test)]
pub(super) fn outside(key: u64, low: u64, high: u64) -> u64 {
    let lane = |word: u64, lane: u32| (word >> (16 * lane)) & 0xffff;
    let beyond = |n: u32| lane(key, n) < lane(low, n) || lane(key, n) > lane(high, n);
    u64::from((0..4).any(beyond))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::forest::kernels::active::{ActiveKeys, Workspace};
    use crate::engines::forest::slot::Slot;
    use crate::model::seed::splitmix;
    use crate::parts::simd::Isa;
    use crate::parts::simd::vector::Kernel;

    /// Two words, the second with range lanes; with and without a mask for it, and
    /// with an additional column.
    fn layouts() -> [RunColumns; 3] {
        [
            RunColumns::new(2, 0b10, 0, 6),
            RunColumns::new(2, 0b10, 0b10, 5),
            RunColumns::new(2, 0b10, 0b10, 6),
        ]
    }

    /// Returns a run of rules over two words, the second with four range lanes.
    /// Random keys match many of the rules.
    fn random_run(len: usize, columns: RunColumns, state: &mut u64) -> Vec<u64> {
        let mut run = vec![0; columns.count() * len];
        let highs = if columns.has_mask(1) { 5 } else { 4 };
        for rule in 0..len {
            run[rule] = 10 * (rule as u64 + 1);
            let mask = splitmix(state) & splitmix(state) & splitmix(state);
            run[2 * len + rule] = mask;
            run[len + rule] = splitmix(state) & mask & 0x3;
            let mut low = 0;
            let mut high = 0;
            for lane in 0..4 {
                let shift = 16 * lane;
                let a = splitmix(state) & 0x7fff;
                low |= a << shift;
                high |= (a + (splitmix(state) & 0x7fff)) << shift;
            }
            run[3 * len + rule] = low;
            run[highs * len + rule] = high;
        }
        run
    }

    /// [`improve`] as a kernel.
    struct Test<'a, const W: usize, const ODD: bool, A>(
        &'a [u64],
        RunColumns,
        Keys<'a, W>,
        Hits<'a>,
        A,
    );

    impl<const W: usize, const ODD: bool, A> Kernel for Test<'_, W, ODD, A>
    where
        A: Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            improve::<S, W, ODD>(simd, self.0, self.1, self.2, self.3, self.4);
        }
    }

    /// [`improve_one`] as a kernel.
    struct TestOne<'a, const W: usize, const ODD: bool, A>(
        &'a [u64],
        RunColumns,
        (&'a [u64; W], Winner),
        FoundSlot,
        A,
    );

    impl<const W: usize, const ODD: bool, A> Kernel for TestOne<'_, W, ODD, A>
    where
        A: Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    {
        type Output = (Winner, bool);

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> (Winner, bool) {
            improve_one::<S, W, ODD>(simd, self.0, self.1, self.2, self.3, self.4)
        }
    }

    #[test]
    fn every_instruction_set_agrees_at_every_length() {
        check::<2>();
        // The other words of keys have no columns.
        check::<5>();
    }

    fn check<const W: usize>() {
        let mut state = 1;
        let mut match_count = 0;
        for len in 1..=2 * 8 + 1 {
            for round in 0..400 {
                let columns = layouts()[round % 3];
                let mut words = vec![u64::MAX; 3];
                words.extend(random_run(len, columns, &mut state));
                words.extend((0..WORDS_AFTER_RUNS).map(|_| splitmix(&mut state)));
                let keys: Vec<[u64; W]> = (0..5)
                    .map(|_| {
                        let mut key = std::array::from_fn(|_| splitmix(&mut state));
                        key[0] &= 0x3;
                        key[1] = key[1] & 0x7fff_7fff_7fff_7fff | 0x2000_2000_2000_2000;
                        key
                    })
                    .collect();
                let hits = Hits {
                    hits: &[0, 1, 2, 3, 4]
                        .map(|key| FoundSlot::new(Slot::from_word(3 << 32 | len as u64), key)),
                    is_short: len <= MAX_SHORT_RUN,
                    prefetch: round % 2 == 0,
                };
                // In some rounds `accept` rejects every other rule; in some, keys
                // begin with a winner.
                let accept = |_: &[u64], _: usize, rule: usize, _: &[u64; W]| {
                    round % 4 != 0 || rule.is_multiple_of(2)
                };
                let start = Winner::from_rank(if round % 5 == 0 { 45 } else { u64::MAX });
                let run = |isa: Isa, odd: bool| {
                    let mut winners = [start; 5];
                    let mut workspace = Workspace::default();
                    let mut keys = ActiveKeys::new(&keys, &mut winners, &mut workspace);
                    let always = |_: &[u64], _, _, _: &[u64; W]| true;
                    let keys = keys.keys();
                    if odd {
                        isa.run(Test::<W, true, _>(&words, columns, keys, hits, accept));
                    } else {
                        isa.run(Test::<W, false, _>(&words, columns, keys, hits, always));
                    }
                    winners
                };
                let expected = run(Isa::Scalar, true);
                for (&hit, &winner) in hits.hits.iter().zip(&expected) {
                    let key = &keys[usize::from(hit.key())];
                    let run = |isa: Isa| {
                        let key_and_winner = (key, start);
                        let test =
                            TestOne::<W, true, _>(&words, columns, key_and_winner, hit, accept);
                        isa.run(test)
                    };
                    for isa in Isa::available() {
                        let (found, matched) = run(isa);
                        assert_eq!(found, winner, "{isa}, {len} rules");
                        assert!(matched || winner == start, "{isa}, {len} rules");
                    }
                }
                match_count += expected.iter().filter(|&winner| *winner != start).count();
                for isa in Isa::available() {
                    assert_eq!(run(isa, true), expected, "{isa}, {len} rules");
                    if round % 4 != 0 {
                        assert_eq!(run(isa, false), expected, "{isa}, {len} rules");
                    }
                }
            }
        }
        assert!(match_count > 1000, "only {match_count} rules matched");
    }
}
