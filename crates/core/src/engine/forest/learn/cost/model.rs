//! The cost of a plan: tables share the rules out, and each header pays for the
//! tables that it probes.
//!
//! Each kind of rules goes to the first mask that it fits, so it is known exactly
//! how many rules a table has and what the best of them is. Tables are visited in
//! the order of their best ranks: a header whose winner has rank `r` probes
//! exactly the tables whose best rank is not worse than `r`. For each of these
//! tables the other estimators say what a header pays:
//! ```text
//! cost(plan) = mean over headers of the sum over tables with best ≤ r of
//!                 probe(slots) + P(signature passes) × run(rules in the bucket)
//! ```
//! A table of rules with bad ranks is almost free; one rule with a good rank in
//! a table of its own costs every header a probe. Conflict marks, which spare
//! some of these probes, are not known here.
//!
//! For each table that was not seen before, its sampled rules and the headers
//! that probe it are hashed once. The costs of tables that a change does not
//! touch come from a map; a plan is given up as soon as it costs more than a
//! bound.

#![allow(clippy::cast_precision_loss)] // counts are far below 2^52

use hashbrown::HashMap;

use super::super::greedy::MASKS;
use super::WORDS;
use super::buckets::Buckets;
use super::compares::Compares;
use super::counters::Counters;
use super::headers::Headers;
use super::prices::{Cost, Prices};
use super::sample::Sample;
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::seed::{MapState, splitmix};

/// What a plan costs before any rule is looked at, for each of its tables, in
/// rules that are looked at: with few rules that is most of the time.
const DEALING: usize = 64;

/// Masks for which it is kept which kinds they serve. A plan and one change to it
/// are two dozen at most.
const REMEMBERED: usize = 64;

/// A table of the plan at hand.
#[derive(Clone, Copy, Debug)]
struct Dealt {
    kinds: usize,
    rules: usize,
    best: u64,
    name: u64,
}

/// Judges plans for a sample.
#[derive(Debug)]
pub(crate) struct Model<'a, const W: usize> {
    pub(crate) sample: &'a Sample<W>,
    headers: &'a Headers<W>,
    prices: Prices,
    counters: Counters,
    /// The masks of all kinds, word by word.
    columns: Vec<u64>,
    /// Where in `serving` it says which kinds a mask serves, one bit each.
    served: HashMap<[u64; W], usize, MapState>,
    serving: Vec<u64>,
    /// The kinds of each table of the plan at hand, one bit each, one table after
    /// the other.
    members: Vec<u64>,
    dealt: Vec<Dealt>,
    known: HashMap<u64, Cost, MapState>,
    /// Rules and headers looked at.
    pub(crate) work: usize,
    /// About how many words of masks and rules that took.
    pub(crate) words: usize,
}

impl<'a, const W: usize> Model<'a, W> {
    pub(crate) fn new(
        sample: &'a Sample<W>,
        headers: &'a Headers<W>,
        prices: Prices,
        monitor: &mut Monitor<'_>,
    ) -> Result<Model<'a, W>, BuildError> {
        let kinds = sample.kinds.len();
        let counters = Counters::bytes(sample.rules.len());
        let columns = bytes_of::<u64>(W * kinds);
        let bits = bytes_of::<u64>((REMEMBERED + MASKS + 1) * kinds.div_ceil(64));
        let served = HashMap::with_capacity_and_hasher(REMEMBERED, Default::default());
        let map = served.allocation_size();
        monitor.memory().take(counters + columns + bits + map)?;
        let mut by_word = Vec::with_capacity(W * kinds);
        for word in 0..W {
            by_word.extend(sample.kinds.iter().map(|kind| kind.mask[word]));
        }
        Ok(Model {
            sample,
            headers,
            prices,
            counters: Counters::new(sample.rules.len()),
            columns: by_word,
            served,
            serving: Vec::new(),
            members: Vec::new(),
            dealt: Vec::new(),
            known: HashMap::default(),
            work: 0,
            words: sample.words + headers.words,
        })
    }

    /// Bytes held, except what a few masks take.
    pub(crate) fn bytes(&self) -> usize {
        Counters::bytes(self.sample.rules.len())
            + bytes_of::<u64>(W * self.sample.kinds.len())
            + bytes_of::<u64>((REMEMBERED + MASKS + 1) * self.row())
            + self.served.allocation_size()
            + self.known.allocation_size()
    }

    /// What lookups cost with these masks; the rest is scanned.
    pub(crate) fn cost(
        &mut self,
        masks: &[[u64; W]],
        monitor: &mut Monitor<'_>,
    ) -> Result<Cost, BuildError> {
        let cost = self.cost_below(masks, f64::INFINITY, monitor)?;
        Ok(cost.expect("below infinity"))
    }

    /// The same, or nothing if it is not less than the bound.
    pub(crate) fn cost_below(
        &mut self,
        masks: &[[u64; W]],
        bound: f64,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<Cost>, BuildError> {
        let mut words = self.words;
        self.deal(masks);
        report_words(&mut words, self.words, monitor)?;
        let bits = masks.iter().flatten().map(|word| word.count_ones()).sum();
        let mut sum = Cost {
            bits,
            ..Cost::default()
        };
        let mut unknown = 0.0;
        let mask = |table: usize| masks.get(table).copied().unwrap_or([0; W]);
        let names: Vec<u64> = (0..=masks.len())
            .map(|table| name(self.dealt[table].name, &mask(table)))
            .collect();
        // What is known, and the least that the others can cost: all may be
        // over before anything is hashed.
        for (table, name) in names.iter().enumerate() {
            if self.dealt[table].rules == 0 {
                continue;
            }
            match self.known.get(name) {
                Some(cost) => sum.add(cost),
                None => unknown += self.least(table),
            }
        }
        for (table, name) in names.iter().enumerate() {
            if sum.total() + unknown >= bound {
                return Ok(None);
            }
            if self.dealt[table].rules == 0 || self.known.contains_key(name) {
                continue;
            }
            unknown -= self.least(table);
            let cost = self.table(table, &mask(table));
            report_words(&mut words, self.words, monitor)?;
            monitor.memory().room_in_map(&mut self.known)?;
            self.known.insert(*name, cost);
            sum.add(&cost);
        }
        Ok((sum.total() < bound).then_some(sum))
    }

    /// The least that a table can cost: its probes, in the smallest table.
    fn least(&self, table: usize) -> f64 {
        let headers = self.headers.len().max(1) as f64;
        let probing = self.headers.probing(self.dealt[table].best).len();
        probing as f64 / headers * self.prices.least_probe
    }

    /// Words of a bit for each kind.
    fn row(&self) -> usize {
        self.sample.kinds.len().div_ceil(64)
    }

    /// Deals the kinds out to the masks. Tables that have the same kinds as the
    /// table in their place before are not counted again.
    fn deal(&mut self, masks: &[[u64; W]]) {
        let (kinds, row) = (self.sample.kinds.len(), self.row());
        let known = self.dealt.len();
        self.members.resize((masks.len() + 1) * row, 0);
        self.dealt.resize(masks.len() + 1, Dealt::EMPTY);
        if self.served.len() + masks.len() > REMEMBERED {
            self.served.clear();
            self.serving.clear();
        }
        let mut left = vec![u64::MAX; row];
        if let Some(last) = left.last_mut() {
            *last >>= (64 - kinds % 64) % 64;
        }
        let mut passed = 0;
        for table in 0..=masks.len() {
            let serving = masks.get(table).map(|mask| self.serving(mask));
            let members = &mut self.members[table * row..][..row];
            let mut same = table < known;
            for (at, (member, left)) in members.iter_mut().zip(&mut left).enumerate() {
                let serves = serving.map_or(u64::MAX, |from| self.serving[from + at]);
                let here = *left & serves;
                same &= here == *member;
                *member = here;
                *left &= !here;
            }
            if !same {
                self.dealt[table] = count(self.sample, members);
            }
            passed += table * self.dealt[table].kinds;
        }
        self.words += 2 * (passed + kinds);
        self.work += kinds + DEALING * (masks.len() + 1);
    }

    /// Where `serving` says which kinds a mask serves.
    fn serving(&mut self, mask: &[u64; W]) -> usize {
        if let Some(&from) = self.served.get(mask) {
            return from;
        }
        let from = self.serving.len();
        let kinds = self.sample.kinds.len();
        for first in (0..kinds).step_by(64) {
            let some = (kinds - first).min(64);
            let mut lacking = [0; 64];
            for (word, &bits) in mask.iter().enumerate() {
                if bits != 0 {
                    let column = &self.columns[word * kinds + first..][..some];
                    for (lacking, kind) in lacking.iter_mut().zip(column) {
                        *lacking |= bits & !kind;
                    }
                }
            }
            let lacking = lacking[..some].iter().enumerate();
            let serves = lacking.map(|(at, &lacks)| u64::from(lacks == 0) << at);
            self.serving.push(serves.fold(0, |bits, bit| bits | bit));
        }
        self.served.insert(*mask, from);
        from
    }

    /// The masks of the kinds that two tables hold.
    pub(crate) fn kinds_of(
        &mut self,
        masks: &[[u64; W]],
        first: usize,
        second: usize,
    ) -> impl Iterator<Item = &[u64; W]> {
        self.deal(masks);
        self.words += W * self.sample.kinds.len();
        let members = |table: usize| &self.members[table * self.row()..][..self.row()];
        let (first, second) = (members(first), members(second));
        let kinds = self.sample.kinds.iter().enumerate();
        kinds
            .filter(|&(kind, _)| is_member(first, kind) || is_member(second, kind))
            .map(|(_, kind)| &kind.mask)
    }

    /// What headers that probe a table cost in the mean, over all headers.
    fn table(&mut self, table: usize, mask: &[u64; W]) -> Cost {
        let sample = self.sample;
        let members = &self.members[table * self.row()..][..self.row()];
        let is_home = |kind: u32| is_member(members, kind as usize);
        let dealt = &self.dealt[table];
        let rules = sample.rules.iter().filter(|drawn| is_home(drawn.kind));
        let buckets = Buckets::estimate(&mut self.counters, mask, rules, dealt.rules as f64);
        let probing = self.headers.probing(dealt.best);
        let probes = probing.len() as f64 * self.prices.probe(buckets.slots);
        let (counters, prices) = (&self.counters, &self.prices);
        let compares =
            Compares::estimate(probing, is_home, counters, mask, &buckets, prices, probes);
        let hashed = buckets.sampled as usize + probing.len();
        self.work += sample.rules.len() / 4 + hashed;
        self.words += sample.rules.len() + W * hashed;
        let headers = self.headers.len().max(1) as f64;
        Cost {
            probes: probing.len() as f64 / headers,
            compares: compares.count / headers,
            time: compares.time / headers,
            bits: 0,
        }
    }
}

impl Dealt {
    const EMPTY: Dealt = Dealt {
        kinds: 0,
        rules: 0,
        best: u64::MAX,
        name: 0,
    };
}

/// Whether a kind is one of those that have a bit.
#[inline]
fn is_member(bits: &[u64], kind: usize) -> bool {
    bits[kind / 64] >> (kind % 64) & 1 != 0
}

/// A table of the kinds that have a bit.
fn count<const W: usize>(sample: &Sample<W>, members: &[u64]) -> Dealt {
    let mut dealt = Dealt::EMPTY;
    for (&word, first) in members.iter().zip((0..).step_by(64)) {
        let mut left = word;
        while left != 0 {
            let kind = &sample.kinds[first + left.trailing_zeros() as usize];
            dealt.kinds += 1;
            dealt.rules += kind.rules;
            dealt.best = dealt.best.min(kind.best);
            dealt.name = dealt.name.wrapping_add(kind.name);
            left &= left - 1;
        }
    }
    dealt
}

/// Counts the words read since as work.
fn report_words(
    before: &mut usize,
    now: usize,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    monitor.work(1 + (now - *before) / WORDS)?;
    *before = now;
    Ok(())
}

/// The number by which a table is known: its kinds and its mask.
fn name<const W: usize>(kinds: u64, mask: &[u64; W]) -> u64 {
    mask.iter().fold(kinds, |name, &word| {
        let mut state = name ^ word;
        splitmix(&mut state)
    })
}
