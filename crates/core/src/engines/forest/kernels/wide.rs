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

use super::compare::Hits;
use super::keys::Keys;
use crate::contract::classifier::BATCH;
use crate::engines::forest::slot::FoundSlot;
use crate::model::rule::Winner;
use crate::parts::simd::prefetch_early_at;
use crate::parts::simd::vector::{Lanes, Simd, Vector};

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
/// without `ODD` it is not called. To be called within a
/// [kernel](crate::parts::simd::vector::Kernel).
///
/// # Panics
/// If a hit's key or run does not exist, or `room` has fewer elements than there are
/// hits.
#[inline(always)]
pub(crate) fn improve<S: Simd, const W: usize, const ODD: bool>(
    simd: S,
    words: &[u64],
    columns: WideColumns,
    keys: Keys<'_, W>,
    hits: Hits<'_>,
    room: &mut [Candidate],
    accept: impl Fn(&[u64], usize, usize, &[u64; W]) -> bool,
) {
    assert!(columns.body() >= 2 * W + columns.lanes.count_ones() as usize);
    assert!(hits.hits.len() <= room.len(), "room for all candidates");
    let improve = Improve::<W, ODD, _> {
        words,
        columns,
        keys,
        hits,
        room,
        accept,
    };
    improve.run(simd);
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

/// The arguments of [`improve`].
struct Improve<'a, const W: usize, const ODD: bool, A> {
    words: &'a [u64],
    columns: WideColumns,
    keys: Keys<'a, W>,
    hits: Hits<'a>,
    room: &'a mut [Candidate],
    accept: A,
}

impl<const W: usize, const ODD: bool, A> Improve<'_, W, ODD, A>
where
    A: Fn(&[u64], usize, usize, &[u64; W]) -> bool,
{
    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        prefetch_heads(self.words, self.hits);
        let kept_count = self.filter(simd);
        if self.hits.prefetch {
            prefetch_bodies(self.words, self.columns, &self.room[..kept_count]);
        }
        for index in 0..kept_count {
            let candidate = self.room[index];
            self.verify(simd, candidate);
        }
    }

    /// Writes the runs that may have a match to the room. Returns their number.
    #[inline(always)]
    fn filter<S: Simd>(&mut self, simd: S) -> usize {
        let hits = self.hits;
        let runs = hits.walk_unprefetched(self.words, self.columns.count, self.keys.len());
        let mut kept_count = 0;
        for (hit, run, len) in runs {
            let head = Head::new(run, len);
            let print = self.keys.print(hit.key());
            let winner = self.keys.winner(hit.key());
            let (rules, is_kept) = if hits.is_short {
                let rules = head.better_alike::<S>(simd, print, winner);
                (rules, rules != 0)
            } else {
                let rules = head.alike::<S>(simd, 0, print);
                // Without a candidate, the last rule is read and nothing is kept.
                let first = (rules.trailing_zeros() as usize).min(len - 1);
                let better = Winner::from_rank(run[first]).beats(winner);
                (rules, better & (rules != 0) | (len > BLOCK_RULES))
            };
            self.room[kept_count] = Candidate { hit, rules };
            kept_count += usize::from(is_kept);
        }
        kept_count
    }

    /// Improves the winner of a candidate's key by the first rule that matches.
    #[inline(always)]
    fn verify<S: Simd>(&mut self, simd: S, candidate: Candidate) {
        let hit = candidate.hit;
        let len = hit.len();
        let run = &self.words[hit.start()..][..len * self.columns.count];
        let head = Head::new(run, len);
        let print = self.keys.print(hit.key());
        let (key, winner, conflicts) = self.keys.at(hit.key());
        let (mut first, mut rules) = (0, candidate.rules);
        loop {
            if rules == 0 {
                first += BLOCK_RULES;
                if first >= len || !Winner::from_rank(run[first]).beats(*winner) {
                    break;
                }
                rules = head.alike::<S>(simd, first, print);
                continue;
            }
            let rule = first + rules.trailing_zeros() as usize;
            let body = self.columns.body_of(run, len, rule);
            if matches::<S, W>(simd, key, body, self.columns.lanes)
                && (!ODD || (self.accept)(run, len, rule, key))
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
}

/// The first columns of a run: ranks and fingerprints.
#[derive(Clone, Copy)]
struct Head<'a> {
    /// [`HEAD_COLUMNS`] times `len` words.
    columns: &'a [u64],
    len: usize,
}

impl<'a> Head<'a> {
    /// # Panics
    /// If the run is shorter.
    #[inline(always)]
    fn new(run: &'a [u64], len: usize) -> Head<'a> {
        Head {
            columns: &run[..HEAD_COLUMNS * len],
            len,
        }
    }

    /// Up to eight rules of a column, from `at` on.
    #[inline(always)]
    fn load<V: Vector>(self, set: V::Set, column: usize, at: usize) -> V {
        assert!(column < HEAD_COLUMNS, "a column of the head");
        let in_run = V::first(set, self.len.saturating_sub(at));
        let start = self.columns.as_ptr().wrapping_add(column * self.len + at);
        // SAFETY: `in_run` selects rules before `len` of a column of the head.
        unsafe { V::load_first(set, start, in_run) }
    }

    /// The rules from `at` on, as many as a vector has lanes, that have a key's
    /// fingerprint.
    #[inline(always)]
    fn lanes_alike<V: Vector>(self, set: V::Set, at: usize, print: u64) -> Lanes {
        let unlike = self.load::<V>(set, 1, at).xor(V::splat(set, print));
        let differs = unlike.and(self.load::<V>(set, 2, at));
        differs.zeros_among(V::first_lanes(set, self.len.saturating_sub(at)))
    }

    /// Bits for the rules from `first` on, up to [`BLOCK_RULES`], that have a key's
    /// fingerprint.
    #[inline(always)]
    fn alike<S: Simd>(self, simd: S, first: usize, print: u64) -> u64 {
        /// Always the same number of vectors for up to 32 rules: otherwise branches would
        /// depend on the length of each run.
        const RULES_PER_STEP: usize = 32;
        let mut rules = 0;
        for from in (0..BLOCK_RULES).step_by(RULES_PER_STEP) {
            if first + from >= self.len {
                break;
            }
            let in_step = match S::Full::LANE_COUNT {
                1 => RULES_PER_STEP.min(self.len - first - from),
                _ => RULES_PER_STEP,
            };
            for at in (from..from + in_step).step_by(S::Full::LANE_COUNT) {
                let lanes = self.lanes_alike::<S::Full>(simd, first + at, print);
                rules |= u64::from(lanes) << at;
            }
        }
        rules
    }

    /// Like [`alike`](Self::alike) for a short run, only for rules that are better than
    /// the winner.
    #[inline(always)]
    fn better_alike<S: Simd>(self, simd: S, print: u64, winner: Winner) -> u64 {
        let mut rules = 0;
        let mut at = 0;
        loop {
            let ranks = self.load::<S::Full>(simd, 0, at);
            let better = ranks.less_than(S::Full::splat(simd, winner.rank()));
            let lanes = better & self.lanes_alike::<S::Full>(simd, at, print);
            rules |= u64::from(lanes) << at;
            at += S::Full::LANE_COUNT;
            if at >= MAX_SHORT_RUN || S::Full::LANE_COUNT == 1 && at >= self.len {
                return rules;
            }
        }
    }
}

/// True if a rule matches according to its body, without odd ranges.
#[inline(always)]
fn matches<S: Simd, const W: usize>(simd: S, key: &[u64; W], body: &[u64], lanes: u32) -> bool {
    assert!(
        u64::from(lanes) >> W == 0 && body.len() >= 2 * W + lanes.count_ones() as usize,
        "the body of a rule"
    );
    let mut highs = 2 * W;
    for word in (0..W).step_by(S::Full::LANE_COUNT) {
        let in_key = S::Full::first(simd, W - word);
        let at = |words: &[u64], at: usize| words.as_ptr().wrapping_add(at);
        // SAFETY: from `word` on, the key, the values and the masks all have the selected
        // words.
        let (key, value, mask) = unsafe {
            (
                S::Full::load_first(simd, at(key, word), in_key),
                S::Full::load_first(simd, at(body, word), in_key),
                S::Full::load_first(simd, at(body, W + word), in_key),
            )
        };
        let mut differs = key.xor(value).and(mask);
        if lanes != 0 {
            // The upper ends are adjacent; words without lanes get all ones.
            let with_lanes =
                (lanes >> word).to_le_bytes()[0] & S::Full::first_lanes(simd, S::Full::LANE_COUNT);
            // SAFETY: an upper end follows for each word with lanes.
            let high = unsafe { S::Full::load_expanded(simd, at(body, highs), with_lanes) };
            highs += with_lanes.count_ones() as usize;
            differs = differs.or(key.outside_u16(value, high));
        }
        if !differs.zeros() & S::Full::first_lanes(simd, W - word) != 0 {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::forest::kernels::active::{ActiveKeys, Workspace};
    use crate::engines::forest::kernels::compare::{WORDS_AFTER_RUNS, outside};
    use crate::engines::forest::slot::{ConflictMask, Slot};
    use crate::model::seed::splitmix;
    use crate::parts::simd::Isa;
    use crate::parts::simd::vector::Kernel;

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

    /// [`improve`] as a kernel.
    struct Test<'a, const W: usize, const ODD: bool, A>(
        &'a [u64],
        WideColumns,
        Keys<'a, W>,
        (Hits<'a>, &'a mut [Candidate]),
        A,
    );

    impl<const W: usize, const ODD: bool, A> Kernel for Test<'_, W, ODD, A>
    where
        A: Fn(&[u64], usize, usize, &[u64; W]) -> bool,
    {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let (hits, room) = self.3;
            improve::<S, W, ODD>(simd, self.0, self.1, self.2, hits, room, self.4);
        }
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
                words.extend((0..WORDS_AFTER_RUNS).map(|_| splitmix(&mut state)));
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
                        let mut keys = ActiveKeys::new(&keys, &mut winners, &mut workspace);
                        keys.rows_and_prints().1.fill(0xff);
                        let room = &mut [Candidate::NONE; 5];
                        let candidates = (hits, &mut room[..]);
                        let (words, keys) = (&words, &mut keys);
                        if odd {
                            let found_by = keys.keys();
                            isa.run(Test::<W, true, _>(
                                words, columns, found_by, candidates, accept,
                            ));
                        } else {
                            let always = |_: &[u64], _, _, _: &[u64; W]| -> bool {
                                unreachable!("there is no more to check")
                            };
                            let found_by = keys.keys();
                            isa.run(Test::<W, false, _>(
                                words, columns, found_by, candidates, always,
                            ));
                        }
                        for (position, winner) in (0..).zip(&expected) {
                            // A key with a match gets the slot's conflicts: none.
                            let narrowed = *keys.keys().at(position).2 == ConflictMask::NONE;
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
        // The most words that a key has.
        check::<32>();
    }
}
