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
//! 1. Loads are masked, so a run of three rules costs as much as a run of eight, and
//!    runs need no padding.
//! 2. No branch depends on whether a key matches.
//! 3. Most runs have up to four rules. Half a vector suffices for them, with half as
//!    many loads across cache lines. They are in a list of their own, so that no
//!    branch depends on their length either.
//! 4. A branch on the result of a comparison follows only every second block.
//!
//! Ranges that do not fit lanes are checked by `accept`, only for candidates.

use super::active::Keys;
use crate::engines::forest::slot::FoundSlot;
use crate::model::rule::Winner;
use crate::parts::simd::{Isa, prefetch_early_at};

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
        // Vectors check all hits together, in place of two branches for each hit.
        let (mut end, mut key) = (0, 0);
        for hit in self.hits {
            end = end.max(hit.start() + hit.len() * columns);
            key = key.max(usize::from(hit.key()));
        }
        assert!(end <= words.len(), "runs among the words");
        assert!(self.hits.is_empty() || key < keys, "keys that exist");
        self.hits.iter().map(move |&hit| {
            let len = hit.len();
            debug_assert!(len > 0, "a run has rules");
            // SAFETY: the ends of all runs were compared above, and no start is
            // beyond its end.
            let run = unsafe { words.get_unchecked(hit.start()..hit.start() + len * columns) };
            (hit, run, len)
        })
    }
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

    /// Returns the same columns. For five-tuples they are constants, so the compiler
    /// unrolls the loop over words.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn known<const W: usize, const FIVE: bool>(self) -> RunColumns {
        if FIVE {
            RunColumns::of_five_tuples::<W>()
        } else {
            self
        }
    }
}

/// Improves the winners of keys by the best matching rules of their runs. With
/// `ODD`, `accept` confirms or rejects a candidate (run, its length, rule, key);
/// without `ODD` it accepts everything and is not called.
///
/// # Panics
/// If a hit's key or run does not exist.
pub(crate) fn improve<const W: usize, const ODD: bool>(
    isa: Isa,
    words: &[u64],
    columns: RunColumns,
    keys: &mut impl Keys<W>,
    hits: Hits<'_>,
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) {
    if columns.is_five_tuple::<W>() {
        improve_columns::<W, true, ODD>(isa, words, columns, keys, hits, accept);
    } else {
        improve_columns::<W, false, ODD>(isa, words, columns, keys, hits, accept);
    }
}

#[inline(always)]
fn improve_columns<const W: usize, const FIVE: bool, const ODD: bool>(
    isa: Isa,
    words: &[u64],
    columns: RunColumns,
    keys: &mut impl Keys<W>,
    hits: Hits<'_>,
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(proof) if hits.is_short && !ODD => {
            x86::improve_short::<W, FIVE>(proof, words, columns, keys, hits);
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(proof) => {
            x86::improve_avx512::<W, FIVE, ODD>(proof, words, columns, keys, hits, accept);
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2(proof) => {
            x86::improve_avx2::<W, FIVE>(proof, words, columns, keys, hits, accept);
        }
        Isa::Scalar => improve_scalar(words, columns, keys, hits, accept),
    }
}

/// The scalar fallback.
fn improve_scalar<const W: usize>(
    words: &[u64],
    columns: RunColumns,
    keys: &mut impl Keys<W>,
    hits: Hits<'_>,
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) {
    for (hit, run, len) in hits.walk(words, columns.count(), keys.len()) {
        let (key, winner, conflicts) = keys.at(hit.key());
        for rule in 0..len {
            let rank = Winner::from_rank(run[rule]);
            if !rank.beats(*winner) {
                break;
            }
            let mut differs = 0;
            let mut column = 1;
            let mut next = || {
                let word = run[column * len + rule];
                column += 1;
                word
            };
            for (word, &key) in key.iter().enumerate().take(columns.words()) {
                let value = next();
                if columns.has_mask(word) {
                    differs |= (key ^ value) & next();
                }
                if columns.has_lanes(word) {
                    differs |= outside(key, value, next());
                }
            }
            if differs == 0 && accept(run, len, rule, key) {
                *winner = rank;
                conflicts.narrow(hit.conflicts(), true);
                break;
            }
        }
    }
}

/// Not 0 if some 16-bit lane of the key is below `low` or above `high`.
#[inline]
pub(super) fn outside(key: u64, low: u64, high: u64) -> u64 {
    let lane = |word: u64, lane: u32| (word >> (16 * lane)) & 0xffff;
    let beyond = |n: u32| lane(key, n) < lane(low, n) || lane(key, n) > lane(high, n);
    u64::from((0..4).any(beyond))
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm_cvtsi128_si64, _mm256_and_si256, _mm256_castsi256_pd, _mm256_castsi256_si128,
        _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_mask_compress_epi64, _mm256_maskload_epi64,
        _mm256_maskz_loadu_epi64, _mm256_movemask_pd, _mm256_or_si256, _mm256_set1_epi64x,
        _mm256_setzero_si256, _mm256_subs_epu16, _mm256_testn_epi64_mask, _mm256_xor_si256,
        _mm512_and_si512, _mm512_castsi512_si128, _mm512_mask_compress_epi64,
        _mm512_maskz_loadu_epi64, _mm512_or_si512, _mm512_set1_epi64, _mm512_setzero_si512,
        _mm512_subs_epu16, _mm512_testn_epi64_mask, _mm512_xor_si512,
    };

    use super::{Hits, Keys, RunColumns};
    use crate::model::rule::Winner;
    use crate::parts::simd::{Avx2, Avx512, first_bits, first_four};

    /// The number of rules compared between two checks for a better rule behind
    /// them. A branch on the result of a comparison is resolved late, and often
    /// mispredicted; the end of a run is known early. So two blocks are compared
    /// between checks. One block, and as many as there are, are measured in
    /// `bench/records/forest-experiments.md`, "two blocks of a run compared".
    const RULES_PER_CHECK: usize = 16;

    /// Collects all mismatches of a block of rules with a key, as in the module's
    /// idea, by the operations of one vector width.
    macro_rules! differs {
        ($key:expr, $columns:expr, $load:expr;
         $set1:ident, $zero:ident, $and:ident, $or:ident, $xor:ident, $subs:ident) => {{
            let mut differs = $zero();
            let mut column = 1;
            for (word, &key) in $key.iter().enumerate() {
                // Unlike `take`, this leaves a loop that the compiler unrolls.
                if word == $columns.words() {
                    break;
                }
                let key = $set1(key.cast_signed());
                let value = $load(column);
                column += 1;
                if $columns.has_mask(word) {
                    let unlike = $and($xor(key, value), $load(column));
                    differs = $or(differs, unlike);
                    column += 1;
                }
                if $columns.has_lanes(word) {
                    let below = $subs(value, key);
                    let above = $subs(key, $load(column));
                    differs = $or(differs, $or(below, above));
                    column += 1;
                }
            }
            differs
        }};
    }

    /// Returns the rank of the first accepted candidate, or all ones if there is
    /// none.
    #[inline(always)]
    fn first_rank<const W: usize>(
        run: &[u64],
        len: usize,
        first: usize,
        candidates: u32,
        key: &[u64; W],
        accept: &impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) -> u64 {
        let mut candidates = candidates;
        while candidates != 0 {
            let rule = first + candidates.trailing_zeros() as usize;
            if accept(run, len, rule, key) {
                break;
            }
            candidates &= candidates - 1;
        }
        let none = u64::from(candidates == 0).wrapping_neg();
        let rule = first + (candidates.trailing_zeros() & 7) as usize;
        run[rule.min(len - 1)] | none
    }

    #[inline(always)]
    pub(super) fn improve_short<const W: usize, const FIVE: bool>(
        _: Avx512,
        words: &[u64],
        columns: RunColumns,
        keys: &mut impl Keys<W>,
        hits: Hits<'_>,
    ) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { short::<W, FIVE>(words, columns, keys, hits) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    fn short<const W: usize, const FIVE: bool>(
        words: &[u64],
        columns: RunColumns,
        keys: &mut impl Keys<W>,
        hits: Hits<'_>,
    ) {
        let columns = columns.known::<W, FIVE>();
        let none = _mm256_set1_epi64x(-1);
        for (hit, run, len) in hits.walk(words, columns.count(), keys.len()) {
            debug_assert!(len <= 4, "short runs");
            let in_run = first_four(len);
            let load = |column: usize| {
                let column_start = run.as_ptr().wrapping_add(column * len).cast();
                // SAFETY: the mask selects `len` rules of a column, at most
                // four; `column < columns.count` (asserted by `RunColumns::new`), so they
                // are inside of `run`, and masked-out lanes are not accessed.
                unsafe { _mm256_maskz_loadu_epi64(in_run, column_start) }
            };
            // SAFETY: `walk` has compared all positions with the number of keys.
            let (key, winner, conflicts) = unsafe { keys.at_unchecked(hit.key()) };
            let differs = differs!(key, columns, load;
                _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_and_si256, _mm256_or_si256,
                _mm256_xor_si256, _mm256_subs_epu16);
            let candidates = _mm256_testn_epi64_mask(differs, differs) & in_run;
            // The first candidate's rank, or all ones, without a branch or an
            // address that depends on it.
            let ranks = _mm256_mask_compress_epi64(none, candidates, load(0));
            let rank = _mm_cvtsi128_si64(_mm256_castsi256_si128(ranks));
            *winner = winner.or(Winner::from_rank(rank.cast_unsigned()));
            conflicts.narrow(hit.conflicts(), candidates != 0);
        }
    }

    #[inline(always)]
    pub(super) fn improve_avx512<const W: usize, const FIVE: bool, const ODD: bool>(
        _: Avx512,
        words: &[u64],
        columns: RunColumns,
        keys: &mut impl Keys<W>,
        hits: Hits<'_>,
        accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { avx512::<W, FIVE, ODD>(words, columns, keys, hits, accept) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    fn avx512<const W: usize, const FIVE: bool, const ODD: bool>(
        words: &[u64],
        columns: RunColumns,
        keys: &mut impl Keys<W>,
        hits: Hits<'_>,
        accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) {
        let columns = columns.known::<W, FIVE>();
        let none = _mm512_set1_epi64(-1);
        for (hit, run, len) in hits.walk(words, columns.count(), keys.len()) {
            // SAFETY: `walk` has compared all positions with the number of keys.
            let (key, key_winner, conflicts) = unsafe { keys.at_unchecked(hit.key()) };
            let mut winner = *key_winner;
            let mut best = Winner::MISS;
            let mut first = 0;
            loop {
                let in_run = first_bits(len - first);
                let load = |column: usize| {
                    let column_start = run.as_ptr().wrapping_add(column * len + first).cast();
                    // SAFETY: the mask selects the rules `first..len`, at most
                    // eight, of a column; `column < columns.count` (asserted by
                    // `RunColumns::new`), so they are inside of `run`, and
                    // masked-out lanes are not accessed.
                    unsafe { _mm512_maskz_loadu_epi64(in_run, column_start) }
                };
                let differs = differs!(key, columns, load;
                    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_and_si512, _mm512_or_si512,
                    _mm512_xor_si512, _mm512_subs_epu16);
                let candidates = _mm512_testn_epi64_mask(differs, differs) & in_run;
                let rank = if ODD {
                    first_rank(run, len, first, candidates.into(), key, &accept)
                } else {
                    let ranks = _mm512_mask_compress_epi64(none, candidates, load(0));
                    _mm_cvtsi128_si64(_mm512_castsi512_si128(ranks)).cast_unsigned()
                };
                best = best.or(Winner::from_rank(rank));
                winner = winner.or(best);
                first += 8;
                let is_check_due = first.is_multiple_of(RULES_PER_CHECK);
                if first >= len || is_check_due && !Winner::from_rank(run[first]).beats(winner) {
                    break;
                }
            }
            *key_winner = winner;
            conflicts.narrow(hit.conflicts(), !best.is_miss());
        }
    }

    #[inline(always)]
    pub(super) fn improve_avx2<const W: usize, const FIVE: bool>(
        _: Avx2,
        words: &[u64],
        columns: RunColumns,
        keys: &mut impl Keys<W>,
        hits: Hits<'_>,
        accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) {
        // SAFETY: holding an `Avx2` means that the processor has the features.
        unsafe { avx2::<W, FIVE>(words, columns, keys, hits, accept) }
    }

    /// Masks for loading 1 to 4 lanes: the four words from position `4 - lanes` on.
    pub(in super::super) const LOAD_MASKS: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn avx2<const W: usize, const FIVE: bool>(
        words: &[u64],
        columns: RunColumns,
        keys: &mut impl Keys<W>,
        hits: Hits<'_>,
        accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) {
        let columns = columns.known::<W, FIVE>();
        for (hit, run, len) in hits.walk(words, columns.count(), keys.len()) {
            // SAFETY: `walk` has compared all positions with the number of keys.
            let (key, key_winner, conflicts) = unsafe { keys.at_unchecked(hit.key()) };
            let mut winner = *key_winner;
            let mut best = Winner::MISS;
            let mut first = 0;
            loop {
                let lanes = (len - first).min(4);
                let masks = &LOAD_MASKS[4 - lanes..8 - lanes];
                // SAFETY: four words are read from a slice of four.
                let in_run: __m256i = unsafe { _mm256_loadu_si256(masks.as_ptr().cast()) };
                let load = |column: usize| {
                    let column_start = run.as_ptr().wrapping_add(column * len + first).cast();
                    // SAFETY: the mask selects the rules `first..len`, at most
                    // four, of a column; `column < columns.count` (asserted by
                    // `RunColumns::new`), so they are inside of `run`, and
                    // masked-out lanes are not accessed.
                    unsafe { _mm256_maskload_epi64(column_start, in_run) }
                };
                let differs = differs!(key, columns, load;
                    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_and_si256, _mm256_or_si256,
                    _mm256_xor_si256, _mm256_subs_epu16);
                let equal_lanes = _mm256_cmpeq_epi64(differs, _mm256_setzero_si256());
                let candidates =
                    _mm256_movemask_pd(_mm256_castsi256_pd(equal_lanes)).cast_unsigned();
                let candidates = candidates & ((1 << lanes) - 1);
                let rank = first_rank(run, len, first, candidates, key, &accept);
                best = best.or(Winner::from_rank(rank));
                winner = winner.or(best);
                first += 4;
                if first >= len || !Winner::from_rank(run[first]).beats(winner) {
                    break;
                }
            }
            *key_winner = winner;
            conflicts.narrow(hit.conflicts(), !best.is_miss());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::forest::kernels::active::{ActiveKeys, Workspace};
    use crate::engines::forest::slot::Slot;
    use crate::model::seed::splitmix;

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
                let run = |isa: Option<Isa>, odd: bool| {
                    let mut winners = [start; 5];
                    let mut workspace = Workspace::default();
                    let keys = &mut ActiveKeys::new(&keys, &mut winners, &mut workspace);
                    let always = |_: &[u64], _, _, _: &[u64; W]| true;
                    match (isa, odd) {
                        (None, _) => improve_scalar(&words, columns, keys, hits, accept),
                        (Some(isa), true) => {
                            improve::<W, true>(isa, &words, columns, keys, hits, accept);
                        }
                        (Some(isa), false) => {
                            improve::<W, false>(isa, &words, columns, keys, hits, always);
                        }
                    }
                    winners
                };
                let expected = run(None, true);
                match_count += expected.iter().filter(|&winner| *winner != start).count();
                for isa in Isa::available() {
                    assert_eq!(run(Some(isa), true), expected, "{isa}, {len} rules");
                    if round % 4 != 0 {
                        assert_eq!(run(Some(isa), false), expected, "{isa}, {len} rules");
                    }
                }
            }
        }
        assert!(match_count > 1000, "only {match_count} rules matched");
    }
}
