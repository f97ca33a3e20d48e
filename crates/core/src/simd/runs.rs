//! Comparing keys with runs of rules: one key with up to eight rules at a time.
//!
//! # Idea
//! A run keeps the rules of one bucket, best first, column by column, so that
//! the same word of neighbouring rules lies side by side:
//! ```text
//! run of n rules   rank × n | value₀ × n | mask₀ × n | value₁ × n | mask₁ × n | high₁ × n | …
//! ```
//! For each rule, `differs` collects every reason not to match:
//! ```text
//! for each key word w:
//!     differs |= (key[w] ^ value[w]) & mask[w]
//!     if the word has range lanes, in lanes of 16 bits, saturating:
//!         differs |= (value[w] - key[w]) | (key[w] - high[w])
//! ```
//! A lane that is no range has `high` all ones, and a matching key is never
//! below its value there, so lanes need no selection. The first rule without a
//! difference is the best that matches.
//!
//! The tricks: (1) loads are masked, so a run of three costs what a run of
//! eight does, and runs need no padding; (2) no branch depends on whether the
//! key matches, only on the run's length.
//!
//! Ranges that are no lane are left to `accept`, which sees candidates only.

use super::{Isa, prefetch_at};
use crate::rule::Winner;

/// Keys with the runs that they are to be compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hits<'a> {
    /// The runs: the position of the first word in bits 63 to 32, the number of
    /// rules, at least 1, in bits 15 to 0.
    pub(crate) runs: &'a [u64],
    /// For each run, the key's position in its batch.
    pub(crate) keys: &'a [u16],
}

/// How many hits ahead the first lines of a run are asked for.
const AHEAD: usize = 12;

/// Words of a cache line.
const LINE: usize = 8;

impl Hits<'_> {
    /// Keys and runs, asking for the memory of those that come.
    #[inline(always)]
    fn walk(self, words: &[u64], columns: usize) -> impl Iterator<Item = (usize, &[u64], usize)> {
        let ask = |run: u64| {
            prefetch_at(words, start(run));
            prefetch_at(words, start(run) + LINE);
        };
        for &run in self.runs.iter().take(AHEAD) {
            ask(run);
        }
        let hits = self.runs.iter().zip(self.keys).enumerate();
        hits.map(move |(hit, (&run, &key))| {
            if let Some(&coming) = self.runs.get(hit + AHEAD) {
                ask(coming);
            }
            let len = (run & 0xffff) as usize;
            (usize::from(key), &words[start(run)..][..columns * len], len)
        })
    }
}

#[inline(always)]
fn start(run: u64) -> usize {
    (run >> 32) as usize
}

/// How runs are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunColumns {
    /// Bit `w`: word `w` of a key has range lanes.
    pub(crate) lanes: u32,
    /// Words for each rule.
    pub(crate) count: usize,
}

/// Improves the winners of keys by the best matching rules of their runs. With
/// `ODD`, `accept` has the last word on a rule (run, its length, rule, key);
/// without, it accepts everything and need not be asked.
///
/// # Panics
/// When a hit's key or run does not exist.
pub(crate) fn improve<const W: usize, const ODD: bool>(
    isa: Isa,
    words: &[u64],
    columns: RunColumns,
    keys: &[[u64; W]],
    hits: Hits<'_>,
    winners: &mut [Winner],
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) {
    assert!(columns.count > 2 * W + columns.lanes.count_ones() as usize);
    // The ports of five-tuples are lanes of the last word. Where that is known
    // when compiling, the loop over words is straight code.
    if columns.lanes == 1 << (W - 1) {
        improve_lanes::<W, true, ODD>(isa, words, columns, keys, hits, winners, accept);
    } else {
        improve_lanes::<W, false, ODD>(isa, words, columns, keys, hits, winners, accept);
    }
}

#[inline(always)]
fn improve_lanes<const W: usize, const LAST: bool, const ODD: bool>(
    isa: Isa,
    words: &[u64],
    columns: RunColumns,
    keys: &[[u64; W]],
    hits: Hits<'_>,
    winners: &mut [Winner],
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(proof) => {
            x86::improve_avx512::<W, LAST, ODD>(proof, words, columns, keys, hits, winners, accept);
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2(proof) => {
            x86::improve_avx2::<W, LAST>(proof, words, columns, keys, hits, winners, accept);
        }
        Isa::Scalar => improve_scalar(words, columns, keys, hits, winners, accept),
    }
}

/// The twin that every processor has.
fn improve_scalar<const W: usize>(
    words: &[u64],
    columns: RunColumns,
    keys: &[[u64; W]],
    hits: Hits<'_>,
    winners: &mut [Winner],
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) {
    for (key, run, len) in hits.walk(words, columns.count) {
        let winner = &mut winners[key];
        let key = &keys[key];
        for rule in 0..len {
            let rank = Winner::from_rank(run[rule]);
            if !rank.beats(*winner) {
                break;
            }
            let mut differs = 0;
            let mut column = 1;
            for (word, &key) in key.iter().enumerate() {
                let value = run[column * len + rule];
                let mask = run[(column + 1) * len + rule];
                differs |= (key ^ value) & mask;
                column += 2;
                if columns.lanes >> word & 1 != 0 {
                    differs |= outside(key, value, run[column * len + rule]);
                    column += 1;
                }
            }
            if differs == 0 && accept(run, len, rule, key) {
                *winner = rank;
                break;
            }
        }
    }
}

/// Not 0 when some 16-bit lane of the key is below `low` or above `high`.
#[inline]
fn outside(key: u64, low: u64, high: u64) -> u64 {
    let lane = |word: u64, lane: u32| (word >> (16 * lane)) & 0xffff;
    let beyond = |n: u32| lane(key, n) < lane(low, n) || lane(key, n) > lane(high, n);
    u64::from((0..4).any(beyond))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, __mmask8, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_min_epu64, _mm256_and_si256,
        _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_maskload_epi64,
        _mm256_movemask_pd, _mm256_or_si256, _mm256_set1_epi64x, _mm256_setzero_si256,
        _mm256_subs_epu16, _mm256_xor_si256, _mm512_and_si512, _mm512_castsi512_si128,
        _mm512_mask_compress_epi64, _mm512_maskz_loadu_epi64, _mm512_or_si512, _mm512_set1_epi64,
        _mm512_setzero_si512, _mm512_subs_epu16, _mm512_testn_epi64_mask, _mm512_xor_si512,
    };

    use super::{Hits, RunColumns};
    use crate::rule::Winner;
    use crate::simd::{Avx2, Avx512};

    /// Whether a key word has range lanes.
    #[inline(always)]
    fn has_lanes<const W: usize, const LAST: bool>(columns: RunColumns, word: usize) -> bool {
        if LAST {
            word == W - 1
        } else {
            columns.lanes >> word & 1 != 0
        }
    }

    /// The rank of the candidate that wins, all ones when there is none.
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
    pub(super) fn improve_avx512<const W: usize, const LAST: bool, const ODD: bool>(
        _: Avx512,
        words: &[u64],
        columns: RunColumns,
        keys: &[[u64; W]],
        hits: Hits<'_>,
        winners: &mut [Winner],
        accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { avx512::<W, LAST, ODD>(words, columns, keys, hits, winners, accept) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    fn avx512<const W: usize, const LAST: bool, const ODD: bool>(
        words: &[u64],
        columns: RunColumns,
        keys: &[[u64; W]],
        hits: Hits<'_>,
        winners: &mut [Winner],
        accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) {
        let none = _mm512_set1_epi64(-1);
        for (key, run, len) in hits.walk(words, columns.count) {
            let winner = &mut winners[key];
            let key = &keys[key];
            let mut first = 0;
            loop {
                let here: __mmask8 = if len - first >= 8 {
                    0xff
                } else {
                    (1 << (len - first)) - 1
                };
                let load = |column: usize| {
                    let at = run.as_ptr().wrapping_add(column * len + first).cast();
                    // SAFETY: the mask selects the rules `first..len`, at most
                    // eight, of a column; `column < columns.count` (asserted by
                    // `improve`), so they are inside of `run`, and masked-out
                    // lanes are not accessed.
                    unsafe { _mm512_maskz_loadu_epi64(here, at) }
                };
                let mut differs = _mm512_setzero_si512();
                let mut column = 1;
                for (word, &key) in key.iter().enumerate() {
                    let key = _mm512_set1_epi64(key.cast_signed());
                    let value = load(column);
                    let unlike = _mm512_and_si512(_mm512_xor_si512(key, value), load(column + 1));
                    differs = _mm512_or_si512(differs, unlike);
                    column += 2;
                    if has_lanes::<W, LAST>(columns, word) {
                        let below = _mm512_subs_epu16(value, key);
                        let above = _mm512_subs_epu16(key, load(column));
                        differs = _mm512_or_si512(differs, _mm512_or_si512(below, above));
                        column += 1;
                    }
                }
                let candidates = _mm512_testn_epi64_mask(differs, differs) & here;
                if ODD {
                    let rank = first_rank(run, len, first, candidates.into(), key, &accept);
                    *winner = winner.or(Winner::from_rank(rank));
                } else {
                    // The first candidate's rank, or all ones, without a
                    // branch or an address that depends on it.
                    let ranks = _mm512_mask_compress_epi64(none, candidates, load(0));
                    let best = _mm_min_epu64(
                        _mm512_castsi512_si128(ranks),
                        _mm_cvtsi64_si128(winner.rank().cast_signed()),
                    );
                    *winner = Winner::from_rank(_mm_cvtsi128_si64(best).cast_unsigned());
                }
                first += 8;
                if first >= len || !Winner::from_rank(run[first]).beats(*winner) {
                    break;
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn improve_avx2<const W: usize, const LAST: bool>(
        _: Avx2,
        words: &[u64],
        columns: RunColumns,
        keys: &[[u64; W]],
        hits: Hits<'_>,
        winners: &mut [Winner],
        accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) {
        // SAFETY: holding an `Avx2` means that the processor has the features.
        unsafe { avx2::<W, LAST>(words, columns, keys, hits, winners, accept) }
    }

    /// Masks for loading 1 to 4 lanes: four words from position `4 - lanes`.
    const LOAD: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn avx2<const W: usize, const LAST: bool>(
        words: &[u64],
        columns: RunColumns,
        keys: &[[u64; W]],
        hits: Hits<'_>,
        winners: &mut [Winner],
        accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) {
        for (key, run, len) in hits.walk(words, columns.count) {
            let winner = &mut winners[key];
            let key = &keys[key];
            let mut first = 0;
            loop {
                let lanes = (len - first).min(4);
                let masks = &LOAD[4 - lanes..8 - lanes];
                // SAFETY: four words are read from a slice of four.
                let here: __m256i = unsafe { _mm256_loadu_si256(masks.as_ptr().cast()) };
                let load = |column: usize| {
                    let at = run.as_ptr().wrapping_add(column * len + first).cast();
                    // SAFETY: the mask selects the rules `first..len`, at most
                    // four, of a column; `column < columns.count` (asserted by
                    // `improve`), so they are inside of `run`, and masked-out
                    // lanes are not accessed.
                    unsafe { _mm256_maskload_epi64(at, here) }
                };
                let mut differs = _mm256_setzero_si256();
                let mut column = 1;
                for (word, &key) in key.iter().enumerate() {
                    let key = _mm256_set1_epi64x(key.cast_signed());
                    let value = load(column);
                    let unlike = _mm256_and_si256(_mm256_xor_si256(key, value), load(column + 1));
                    differs = _mm256_or_si256(differs, unlike);
                    column += 2;
                    if has_lanes::<W, LAST>(columns, word) {
                        let below = _mm256_subs_epu16(value, key);
                        let above = _mm256_subs_epu16(key, load(column));
                        differs = _mm256_or_si256(differs, _mm256_or_si256(below, above));
                        column += 1;
                    }
                }
                let same = _mm256_cmpeq_epi64(differs, _mm256_setzero_si256());
                let candidates = _mm256_movemask_pd(_mm256_castsi256_pd(same)).cast_unsigned();
                let candidates = candidates & ((1 << lanes) - 1);
                let rank = first_rank(run, len, first, candidates, key, &accept);
                *winner = winner.or(Winner::from_rank(rank));
                first += 4;
                if first >= len || !Winner::from_rank(run[first]).beats(*winner) {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::splitmix;

    const COLUMNS: RunColumns = RunColumns {
        lanes: 0b10,
        count: 6,
    };

    /// A run of rules over two words, the second with four range lanes, and a
    /// key that matches a good part of them.
    fn random_run(len: usize, state: &mut u64) -> Vec<u64> {
        let mut run = vec![0; COLUMNS.count * len];
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
            run[5 * len + rule] = high;
        }
        run
    }

    #[test]
    fn every_instruction_set_agrees_at_every_length() {
        let mut state = 1;
        let mut found = 0;
        for len in 1..=2 * 8 + 1 {
            for round in 0..400 {
                let mut words = vec![u64::MAX; 3];
                words.extend(random_run(len, &mut state));
                let keys: Vec<[u64; 2]> = (0..5)
                    .map(|_| [splitmix(&mut state) & 0x3, splitmix(&mut state)])
                    .map(|[a, b]| [a, b & 0x7fff_7fff_7fff_7fff | 0x2000_2000_2000_2000])
                    .collect();
                let hits = Hits {
                    runs: &[3 << 32 | len as u64; 5],
                    keys: &[0, 1, 2, 3, 4],
                };
                // Some refuse every other rule, some begin with a candidate.
                let accept = |_: &[u64], _: usize, rule: usize, _: &[u64; 2]| {
                    round % 3 != 0 || rule.is_multiple_of(2)
                };
                let start = Winner::from_rank(if round % 5 == 0 { 45 } else { u64::MAX });
                let mut expected = vec![start; 5];
                improve_scalar(&words, COLUMNS, &keys, hits, &mut expected, accept);
                found += expected.iter().filter(|winner| **winner != start).count();
                for isa in Isa::available() {
                    let mut winners = vec![start; 5];
                    improve::<2, true>(isa, &words, COLUMNS, &keys, hits, &mut winners, accept);
                    assert_eq!(winners, expected, "{isa}, {len} rules");
                    if round % 3 != 0 {
                        let mut winners = vec![start; 5];
                        let always = |_: &[u64], _, _, _: &[u64; 2]| true;
                        improve::<2, false>(
                            isa,
                            &words,
                            COLUMNS,
                            &keys,
                            hits,
                            &mut winners,
                            always,
                        );
                        assert_eq!(winners, expected, "{isa}, {len} rules, no odd ranges");
                    }
                }
            }
        }
        assert!(found > 1000, "only {found} rules matched");
    }
}
