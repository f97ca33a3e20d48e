//! Comparing wide keys with runs: fingerprints first, then whole rules.
//!
//! # Idea
//! Rules of wide keys have a dozen columns and more, and three of four runs that a
//! key reaches have no matching rule. So the runs of such rules begin with
//! [fingerprints](super::fingerprint), column by column, and the rest of each rule
//! is one row:
//! ```text
//! run of n rules   rank × n │ print × n │ care × n │ body │ body │ …
//! body             value × W │ mask × W │ high × lanes │ odd ranges
//! ```
//! A batch is compared in two steps:
//! ```text
//! filter   for each run, eight rules at a time:
//!              differs    = (key's print ^ print) & care
//!              candidates = the rules without a difference, up to 64
//!          keep the run if it has candidates and the first is better than the winner
//! verify   for each kept run: find the first candidate whose body matches
//! ```
//! The first step has no branch that depends on its results. Nearly all kept runs
//! have a match, which is the first candidate; its body is read with three or four
//! loads.
//!
//! Verifying is as in [`compare`](super::compare): value and mask for all bits,
//! upper ends for range lanes. For a word without lanes, no upper end is read.

use super::active::Keys;
use super::compare::Hits;
use crate::contract::classifier::BATCH;
use crate::engines::forest::slot::FoundSlot;
use crate::model::rule::Winner;
use crate::parts::simd::{Isa, prefetch_early_at};

/// The fewest words of a key with wide runs. Runs of keys of two words have five
/// columns, and all of them are read in one step. Measured in
/// `bench/records/constants.md` (Forest, wide rules).
pub(crate) const WIDE_KEY_WORDS: usize = 3;

/// The number of columns before the bodies: rank, print, care.
pub(crate) const HEAD_COLUMNS: usize = 3;

/// The most rules of a short run: it is filtered by one vector of each column.
/// Measured in `bench/records/forest-experiments.md`, "runs of up to eight rules are
/// short".
pub(crate) const MAX_SHORT_RUN: usize = 8;

/// Rules whose candidates are found together: one bit each in a word.
const BLOCK_RULES: usize = 64;

/// The layout of wide runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WideColumns {
    /// Bit `w`: word `w` of a key has range lanes, and so a word for their upper
    /// ends.
    pub(crate) lanes: u32,
    /// The number of words for each rule.
    pub(crate) count: usize,
}

impl WideColumns {
    /// The number of words in a body.
    #[inline(always)]
    fn body(self) -> usize {
        self.count - HEAD_COLUMNS
    }

    /// Returns the body of a rule.
    #[inline(always)]
    fn body_of(self, run: &[u64], len: usize, rule: usize) -> &[u64] {
        &run[HEAD_COLUMNS * len + rule * self.body()..][..self.body()]
    }
}

/// A key and a run that may have a match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    hit: FoundSlot,
    /// Bits for the candidates among the first [`BLOCK_RULES`] rules.
    rules: u64,
}

impl Candidate {
    pub(crate) const NONE: Candidate = Candidate {
        hit: FoundSlot::NONE,
        rules: 0,
    };
}

/// Memory for the candidates of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Candidates(Box<[Candidate; BATCH]>);

impl Default for Candidates {
    fn default() -> Candidates {
        Candidates(Box::new([Candidate::NONE; BATCH]))
    }
}

impl Candidates {
    #[inline(always)]
    pub(crate) fn room(&mut self) -> &mut [Candidate] {
        &mut *self.0
    }
}

/// Improves the winners of keys by the best matching rules of their runs. With
/// `ODD`, `accept` confirms or rejects a candidate (run, its length, rule, key);
/// without `ODD` it is not called.
///
/// # Panics
/// If a hit's key or run does not exist, or `room` has fewer elements than there are
/// hits.
#[inline(always)]
pub(crate) fn improve<const W: usize, const ODD: bool>(
    isa: Isa,
    words: &[u64],
    columns: WideColumns,
    keys: &mut impl Keys<W>,
    hits: Hits<'_>,
    room: &mut [Candidate],
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) {
    assert!(columns.body() >= 2 * W + columns.lanes.count_ones() as usize);
    assert!(hits.hits.len() <= room.len(), "room for all candidates");
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(proof) => {
            x86::improve_avx512::<W, ODD>(proof, words, columns, keys, hits, room, accept);
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2(proof) => {
            x86::improve_avx2::<W, ODD>(proof, words, columns, keys, hits, room, accept);
        }
        Isa::Scalar => improve_scalar::<W, ODD>(words, columns, keys, hits, room, accept),
    }
}

/// Prefetches the heads of all runs, if `hits.prefetch` is set.
#[inline(always)]
fn prefetch_heads(words: &[u64], hits: Hits<'_>) {
    if !hits.prefetch {
        return;
    }
    // Two rules' heads of a short run, ten of a long run. The number of lines is
    // constant; otherwise branches would depend on the length.
    if hits.is_short {
        prefetch_lines::<2>(words, hits);
    } else {
        prefetch_lines::<4>(words, hits);
    }
}

/// Prefetches the first `LINES` cache lines of all runs.
#[inline(always)]
fn prefetch_lines<const LINES: usize>(words: &[u64], hits: Hits<'_>) {
    for hit in hits.hits {
        for line in 0..LINES {
            prefetch_early_at(words, hit.start() + line * 8);
        }
    }
}

/// Prefetches the body of the first candidate of each run.
#[inline(always)]
fn prefetch_bodies(words: &[u64], columns: WideColumns, candidates: &[Candidate]) {
    for candidate in candidates {
        let (start, len) = (candidate.hit.start(), candidate.hit.len());
        let rule = candidate.rules.trailing_zeros() as usize;
        let body = start + HEAD_COLUMNS * len + rule * columns.body();
        for line in 0..=columns.body() / 8 {
            prefetch_early_at(words, body + line * 8);
        }
    }
}

/// Both steps. `$filter`, `$further` and `$short` find candidates; `$matches`
/// compares a body.
macro_rules! improve {
    ($words:ident, $columns:ident, $keys:ident, $hits:ident, $room:ident, $accept:ident;
     $filter:ident, $further:ident, $short:ident, $matches:ident::<$w:ident, $odd:ident>) => {{
        prefetch_heads($words, $hits);
        let mut kept_count = 0;
        if $hits.is_short {
            for (hit, run, len) in $hits.walk_unprefetched($words, $columns.count, $keys.len()) {
                let print = $keys.print(hit.key());
                let winner = $keys.winner(hit.key());
                let rules = $short(run, len, print, winner.rank());
                $room[kept_count] = Candidate { hit, rules };
                kept_count += usize::from(rules != 0);
            }
        } else {
            for (hit, run, len) in $hits.walk_unprefetched($words, $columns.count, $keys.len()) {
                let print = $keys.print(hit.key());
                let winner = $keys.winner(hit.key());
                let rules = $filter(run, len, 0, print);
                // Without a candidate, the last rule is read and nothing is kept.
                let first = (rules.trailing_zeros() as usize).min(len - 1);
                let better = Winner::from_rank(run[first]).beats(winner);
                $room[kept_count] = Candidate { hit, rules };
                kept_count += usize::from(better & (rules != 0) | (len > BLOCK_RULES));
            }
        }
        let candidates = &$room[..kept_count];
        if $hits.prefetch {
            prefetch_bodies($words, $columns, candidates);
        }
        for candidate in candidates {
            let hit = candidate.hit;
            let len = hit.len();
            let run = &$words[hit.start()..][..len * $columns.count];
            let print = $keys.print(hit.key());
            let (key, winner, conflicts) = $keys.at(hit.key());
            let (mut first, mut rules) = (0, candidate.rules);
            loop {
                if rules == 0 {
                    first += BLOCK_RULES;
                    if first >= len || !Winner::from_rank(run[first]).beats(*winner) {
                        break;
                    }
                    rules = $further(run, len, first, print);
                    continue;
                }
                let rule = first + rules.trailing_zeros() as usize;
                let body = $columns.body_of(run, len, rule);
                if $matches::<$w>(key, body, $columns.lanes)
                    && (!$odd || $accept(run, len, rule, key))
                {
                    *winner = winner.or(Winner::from_rank(run[rule]));
                    conflicts.narrow(hit.conflicts(), true);
                    break;
                }
                rules &= rules - 1;
                let next = first + rules.trailing_zeros() as usize;
                if rules != 0 && !Winner::from_rank(run[next]).beats(*winner) {
                    break;
                }
            }
        }
    }};
}

/// The scalar fallback.
fn improve_scalar<const W: usize, const ODD: bool>(
    words: &[u64],
    columns: WideColumns,
    keys: &mut impl Keys<W>,
    hits: Hits<'_>,
    room: &mut [Candidate],
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) {
    improve!(words, columns, keys, hits, room, accept;
        filter_scalar, filter_scalar, short_scalar, matches_scalar::<W, ODD>);
}

/// Returns bits for the rules from `first` on, up to [`BLOCK_RULES`], that have a
/// key's fingerprint.
fn filter_scalar(run: &[u64], len: usize, first: usize, print: u64) -> u64 {
    let block_end = len.min(first + BLOCK_RULES);
    let prints = &run[len + first..len + block_end];
    let cares = &run[2 * len + first..2 * len + block_end];
    let mut rules = 0;
    for (index, (&rule, &care)) in prints.iter().zip(cares).enumerate() {
        rules |= u64::from((print ^ rule) & care == 0) << index;
    }
    rules
}

/// Like `filter_scalar` for a short run, only for rules that are better than the
/// rank `winner`.
fn short_scalar(run: &[u64], len: usize, print: u64, winner: u64) -> u64 {
    let better = run[..len].partition_point(|&rank| rank < winner);
    filter_scalar(run, len, 0, print) & ((1 << better) - 1)
}

/// True if a rule matches according to its body, without odd ranges.
#[inline(always)]
fn matches_scalar<const W: usize>(key: &[u64; W], body: &[u64], lanes: u32) -> bool {
    let (values, masks_and_ends) = body.split_at(W);
    let (masks, mut highs) = masks_and_ends.split_at(W);
    let mut differs = 0;
    for word in 0..W {
        differs |= (key[word] ^ values[word]) & masks[word];
    }
    let mut words = lanes;
    while words != 0 {
        let word = words.trailing_zeros() as usize;
        differs |= super::compare::outside(key[word], values[word], highs[0]);
        highs = &highs[1..];
        words &= words - 1;
    }
    differs == 0
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256,
        _mm256_maskload_epi64, _mm256_movemask_pd, _mm256_set1_epi64x, _mm256_setzero_si256,
        _mm256_xor_si256, _mm512_and_si512, _mm512_mask_cmplt_epu64_mask, _mm512_mask_expand_epi64,
        _mm512_mask_testn_epi64_mask, _mm512_maskz_loadu_epi64, _mm512_or_si512, _mm512_set1_epi64,
        _mm512_subs_epu16, _mm512_test_epi64_mask, _mm512_xor_si512,
    };

    use super::super::compare::x86::LOAD_MASKS;
    use super::{
        BLOCK_RULES, Candidate, HEAD_COLUMNS, Hits, Keys, MAX_SHORT_RUN, WideColumns, Winner,
        matches_scalar, prefetch_bodies, prefetch_heads,
    };
    use crate::parts::simd::{Avx2, Avx512, first_bits, first_of_32};

    #[inline(always)]
    pub(super) fn improve_avx512<const W: usize, const ODD: bool>(
        _: Avx512,
        words: &[u64],
        columns: WideColumns,
        keys: &mut impl Keys<W>,
        hits: Hits<'_>,
        room: &mut [Candidate],
        accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { avx512::<W, ODD>(words, columns, keys, hits, room, accept) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
    fn avx512<const W: usize, const ODD: bool>(
        words: &[u64],
        columns: WideColumns,
        keys: &mut impl Keys<W>,
        hits: Hits<'_>,
        room: &mut [Candidate],
        accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) {
        improve!(words, columns, keys, hits, room, accept;
            filter_avx512, further_avx512, short_avx512, matches_avx512::<W, ODD>);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
    #[allow(clippy::cast_possible_truncation)] // eight bits at a time
    fn filter_avx512(run: &[u64], len: usize, first: usize, print: u64) -> u64 {
        assert!(
            first < len && HEAD_COLUMNS * len <= run.len(),
            "rules of the run"
        );
        let print = _mm512_set1_epi64(print.cast_signed());
        let block_end = len.min(first + BLOCK_RULES);
        let same_prints = |at: usize, in_run| {
            let load = |column: usize| {
                let pointer = run.as_ptr().wrapping_add(column * len + at).cast();
                // SAFETY: the mask selects rules up to `block_end <= len` of one of the
                // `HEAD_COLUMNS` columns, which are inside of `run` (asserted);
                // masked-out lanes are not accessed.
                unsafe { _mm512_maskz_loadu_epi64(in_run, pointer) }
            };
            _mm512_mask_testn_epi64_mask(in_run, _mm512_xor_si512(load(1), print), load(2))
        };
        // Always the same number of vectors for up to 32 rules; otherwise branches
        // would depend on the length of each run.
        let half = |at: usize| {
            let in_block = first_of_32(block_end - at);
            (0..4).fold(0, |rules, eight| {
                let in_run = (in_block >> (8 * eight)) as u8;
                rules | u64::from(same_prints(at + 8 * eight, in_run)) << (8 * eight)
            })
        };
        let mut rules = half(first);
        if block_end - first > 32 {
            rules |= half(first + 32) << 32;
        }
        rules
    }

    /// Filters the rules after the first block, which few runs have. Kept out of the
    /// loop over runs.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
    fn further_avx512(run: &[u64], len: usize, first: usize, print: u64) -> u64 {
        filter_avx512(run, len, first, print)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
    fn short_avx512(run: &[u64], len: usize, print: u64, winner: u64) -> u64 {
        debug_assert!(
            len <= MAX_SHORT_RUN && HEAD_COLUMNS * len <= run.len(),
            "a short run"
        );
        let in_run = first_bits(len);
        let load = |column: usize| {
            let pointer = run.as_ptr().wrapping_add(column * len).cast();
            // SAFETY: the mask selects the rules of one of the `HEAD_COLUMNS` columns,
            // which are inside of `run`; masked-out lanes are not accessed.
            unsafe { _mm512_maskz_loadu_epi64(in_run, pointer) }
        };
        let winner = _mm512_set1_epi64(winner.cast_signed());
        let better = _mm512_mask_cmplt_epu64_mask(in_run, load(0), winner);
        let unlike = _mm512_xor_si512(load(1), _mm512_set1_epi64(print.cast_signed()));
        _mm512_mask_testn_epi64_mask(better, unlike, load(2)).into()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
    #[allow(clippy::cast_possible_truncation)] // eight words at a time
    fn matches_avx512<const W: usize>(key: &[u64; W], body: &[u64], lanes: u32) -> bool {
        assert!(body.len() >= 2 * W + lanes.count_ones() as usize);
        let mut unlike = 0;
        let mut highs = 2 * W;
        for word in (0..W).step_by(8) {
            let in_key = first_bits(W - word);
            let load = |words: &[u64], at: usize, selected| {
                let pointer = words.as_ptr().wrapping_add(at).cast();
                // SAFETY: the mask selects words inside of the slice, which the
                // callers below guarantee; masked-out lanes are not accessed.
                unsafe { _mm512_maskz_loadu_epi64(selected, pointer) }
            };
            // From `word` on, the key, the values and the masks all have the
            // selected words.
            let value = load(body, word, in_key);
            let key = load(key, word, in_key);
            let unequal = _mm512_xor_si512(key, value);
            let mut differs = _mm512_and_si512(unequal, load(body, W + word, in_key));
            let with_lanes = (lanes >> word) as u8;
            if lanes != 0 {
                // The upper ends are adjacent; words without lanes get all ones.
                let ends = with_lanes.count_ones() as usize;
                let packed = load(body, highs, first_bits(ends));
                let high = _mm512_mask_expand_epi64(_mm512_set1_epi64(-1), with_lanes, packed);
                highs += ends;
                let below = _mm512_subs_epu16(value, key);
                let above = _mm512_subs_epu16(key, high);
                differs = _mm512_or_si512(differs, _mm512_or_si512(below, above));
            }
            unlike |= _mm512_test_epi64_mask(differs, differs);
        }
        unlike == 0
    }

    #[inline(always)]
    pub(super) fn improve_avx2<const W: usize, const ODD: bool>(
        _: Avx2,
        words: &[u64],
        columns: WideColumns,
        keys: &mut impl Keys<W>,
        hits: Hits<'_>,
        room: &mut [Candidate],
        accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) {
        // SAFETY: holding an `Avx2` means that the processor has the features.
        unsafe { avx2::<W, ODD>(words, columns, keys, hits, room, accept) }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn avx2<const W: usize, const ODD: bool>(
        words: &[u64],
        columns: WideColumns,
        keys: &mut impl Keys<W>,
        hits: Hits<'_>,
        room: &mut [Candidate],
        accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    ) {
        improve!(words, columns, keys, hits, room, accept;
            filter_avx2, filter_avx2, short_avx2, matches_scalar::<W, ODD>);
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn filter_avx2(run: &[u64], len: usize, first: usize, print: u64) -> u64 {
        assert!(
            first < len && HEAD_COLUMNS * len <= run.len(),
            "rules of the run"
        );
        let print = _mm256_set1_epi64x(print.cast_signed());
        let block_end = len.min(first + BLOCK_RULES);
        let mut rules = 0;
        for at in (first..block_end).step_by(4) {
            let lanes = (block_end - at).min(4);
            let masks = &LOAD_MASKS[4 - lanes..8 - lanes];
            // SAFETY: four words are read from a slice of four.
            let in_run: __m256i = unsafe { _mm256_loadu_si256(masks.as_ptr().cast()) };
            let load = |column: usize| {
                let pointer = run.as_ptr().wrapping_add(column * len + at).cast();
                // SAFETY: the mask selects rules up to `block_end <= len` of one of the
                // `HEAD_COLUMNS` columns, which are inside of `run` (asserted);
                // masked-out lanes are not accessed.
                unsafe { _mm256_maskload_epi64(pointer, in_run) }
            };
            let differs = _mm256_and_si256(_mm256_xor_si256(load(1), print), load(2));
            let alike = _mm256_cmpeq_epi64(differs, _mm256_setzero_si256());
            let alike = _mm256_movemask_pd(_mm256_castsi256_pd(alike)).cast_unsigned();
            rules |= u64::from(alike & ((1 << lanes) - 1)) << (at - first);
        }
        rules
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn short_avx2(run: &[u64], len: usize, print: u64, winner: u64) -> u64 {
        let better = run[..len].iter().filter(|&&rank| rank < winner).count();
        filter_avx2(run, len, 0, print) & ((1 << better) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::forest::kernels::active::{ActiveKeys, Workspace};
    use crate::engines::forest::kernels::compare::outside;
    use crate::engines::forest::slot::{ConflictMask, Slot};
    use crate::model::seed::splitmix;

    /// Returns a run of rules over `W` words, the first and the last word with range
    /// lanes, and one odd word behind. Their fingerprints match keys with the print
    /// 0xff, or differ in one bit.
    fn random_run<const W: usize>(len: usize, columns: WideColumns, state: &mut u64) -> Vec<u64> {
        let mut run = vec![0; columns.count * len];
        let few_bits = |state: &mut u64| splitmix(state) & splitmix(state) & splitmix(state);
        for rule in 0..len {
            run[rule] = 10 * (rule as u64 + 1);
            run[2 * len + rule] = splitmix(state);
            let flipped_bit =
                u64::from(splitmix(state).is_multiple_of(4)) << (splitmix(state) % 64);
            run[len + rule] = (0xff ^ flipped_bit) & run[2 * len + rule];
            let body = &mut run[HEAD_COLUMNS * len + rule * columns.body()..][..columns.body()];
            let mut highs = 2 * W;
            for word in 0..W {
                let mask = few_bits(state);
                body[W + word] = mask;
                body[word] = splitmix(state) & mask & 0x3;
                if columns.lanes >> word & 1 != 0 {
                    body[W + word] = 0;
                    body[word] = splitmix(state) & 0x13ff_13ff_13ff_13ff;
                    body[highs] = body[word] | 0x4000_7000_6000_7fff;
                    highs += 1;
                }
            }
            body[highs] = splitmix(state);
        }
        run
    }

    /// The definition of a match.
    fn matches<const W: usize>(key: &[u64; W], body: &[u64], columns: WideColumns) -> bool {
        let mut highs = 2 * W;
        (0..W).all(|word| {
            let value = body[word];
            let mut is_match = (key[word] ^ value) & body[W + word] == 0;
            if columns.lanes >> word & 1 != 0 {
                is_match &= outside(key[word], value, body[highs]) == 0;
                highs += 1;
            }
            is_match
        })
    }

    fn check<const W: usize>() {
        let columns = WideColumns {
            lanes: 1 | 1 << (W - 1),
            count: HEAD_COLUMNS + 2 * W + 3,
        };
        let mut state = 1;
        let mut match_count = 0;
        let lengths = (1..=2 * 8 + 1).chain([62, 63, 64, 65, 127, 128, 129, 200]);
        for len in lengths {
            for round in 0..60 {
                let mut words = vec![u64::MAX; 3];
                words.extend(random_run::<W>(len, columns, &mut state));
                let keys: Vec<[u64; W]> = (0..5)
                    .map(|_| {
                        std::array::from_fn(|word| match columns.lanes >> word & 1 {
                            0 => splitmix(&mut state) & 0x3,
                            _ => {
                                splitmix(&mut state) & 0x1fff_1fff_1fff_1fff | 0x1000_1000_1000_1000
                            }
                        })
                    })
                    .collect();
                let hits = Hits {
                    hits: &[0, 1, 2, 3, 4]
                        .map(|key| FoundSlot::new(Slot::from_word(3 << 32 | len as u64), key)),
                    is_short: len <= MAX_SHORT_RUN,
                    prefetch: round % 2 == 0,
                };
                // In some rounds `accept` rejects rules; in some, keys begin with a
                // winner.
                let accept = |run: &[u64], len: usize, rule: usize, _: &[u64; W]| {
                    let last = columns.body_of(run, len, rule).last();
                    round % 4 != 0 || last.is_some_and(|word| word % 2 == 0)
                };
                let start = Winner::from_rank(if round % 5 == 0 { 45 } else { u64::MAX });
                let run = &words[3..];
                let expected: Vec<Winner> = keys
                    .iter()
                    .map(|key| {
                        let rule = (0..len).find(|&rule| {
                            (0xff ^ run[len + rule]) & run[2 * len + rule] == 0
                                && matches(key, columns.body_of(run, len, rule), columns)
                                && accept(run, len, rule, key)
                        });
                        let winner = rule.map_or(Winner::MISS, |rule| Winner::from_rank(run[rule]));
                        winner.or(start)
                    })
                    .collect();
                match_count += expected.iter().filter(|&winner| *winner != start).count();
                for isa in Isa::available() {
                    for odd in [true, false] {
                        if !odd && round % 4 == 0 {
                            continue;
                        }
                        let mut winners = [start; 5];
                        let mut workspace = Workspace::default();
                        let keys = &mut ActiveKeys::new(&keys, &mut winners, &mut workspace);
                        keys.rows_and_prints().1.fill(0xff);
                        let room = &mut [Candidate::NONE; 5];
                        if odd {
                            improve::<W, true>(isa, &words, columns, keys, hits, room, accept);
                        } else {
                            let always = |_: &[u64], _, _, _: &[u64; W]| -> bool {
                                unreachable!("there is no more to check")
                            };
                            improve::<W, false>(isa, &words, columns, keys, hits, room, always);
                        }
                        for (position, winner) in (0..).zip(&expected) {
                            // A key with a match gets the slot's conflicts: none.
                            let narrowed = *keys.at(position).2 == ConflictMask::NONE;
                            assert!(narrowed || *winner == start, "{isa}, {len} rules");
                        }
                        assert_eq!(winners[..], expected, "{isa}, {len} rules");
                    }
                }
            }
        }
        assert!(match_count > 200, "only {match_count} rules matched");
    }

    #[test]
    fn every_instruction_set_agrees_at_every_length() {
        check::<3>();
        check::<6>();
        check::<8>();
        check::<12>();
    }
}
