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

use super::WORDS;
use super::buckets::Buckets;
use super::compares::Compares;
use super::counters::Counters;
use super::headers::Headers;
use super::prices::{Cost, Prices};
use super::sample::Sample;
use crate::engine::forest::outline::lacks;
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::seed::splitmix;

/// What a plan costs before any rule is looked at, for each of its tables, in
/// rules that are looked at: with few rules that is most of the time.
const DEALING: usize = 64;

/// Masks of up to this many words are compared whole; of wider ones only the
/// words that have bits.
const NARROW: usize = 2;

/// A table of the plan at hand.
#[derive(Clone, Copy, Debug)]
struct Dealt {
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
    /// The table of each kind.
    homes: Vec<u32>,
    dealt: Vec<Dealt>,
    known: HashMap<u64, Cost, foldhash::fast::FixedState>,
    /// Rules and headers looked at.
    pub(crate) work: usize,
    /// About how many words of masks and rules that took.
    pub(crate) words: usize,
    /// The words of the masks at hand that have bits, one mask after the other,
    /// and where each mask ends.
    parts: Vec<(usize, u64)>,
    ends: Vec<usize>,
}

impl<'a, const W: usize> Model<'a, W> {
    pub(crate) fn new(
        sample: &'a Sample<W>,
        headers: &'a Headers<W>,
        prices: Prices,
        monitor: &mut Monitor<'_>,
    ) -> Result<Model<'a, W>, BuildError> {
        let homes = bytes_of::<u32>(sample.kinds.len());
        let counters = Counters::bytes(sample.rules.len());
        monitor.memory().take(homes + counters)?;
        Ok(Model {
            sample,
            headers,
            prices,
            counters: Counters::new(sample.rules.len()),
            homes: Vec::with_capacity(sample.kinds.len()),
            dealt: Vec::new(),
            known: HashMap::default(),
            work: 0,
            words: sample.words + headers.words,
            parts: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// Bytes held, except what a few masks take.
    pub(crate) fn bytes(&self) -> usize {
        Counters::bytes(self.sample.rules.len())
            + bytes_of::<u32>(self.homes.capacity())
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

    /// Deals the kinds out to the masks.
    fn deal(&mut self, masks: &[[u64; W]]) {
        let empty = Dealt {
            rules: 0,
            best: u64::MAX,
            name: 0,
        };
        self.dealt.clear();
        self.dealt.resize(masks.len() + 1, empty);
        self.homes.clear();
        self.parts.clear();
        self.ends.clear();
        if W > NARROW {
            for mask in masks {
                let parts = mask.iter().copied().enumerate();
                self.parts.extend(parts.filter(|(_, bits)| *bits != 0));
                self.ends.push(self.parts.len());
            }
        }
        let mut passed = 0;
        for kind in &self.sample.kinds {
            let first = if W > NARROW {
                let serves = |part: &(usize, u64)| part.1 & !kind.mask[part.0] == 0;
                let mut from = 0;
                self.ends.iter().position(|&end| {
                    let parts = &self.parts[from..end];
                    from = end;
                    parts.iter().all(serves)
                })
            } else {
                masks.iter().position(|mask| lacks(&kind.mask, mask) == 0)
            };
            let home = first.unwrap_or(masks.len());
            passed += home;
            let dealt = &mut self.dealt[home];
            dealt.rules += kind.rules;
            dealt.best = dealt.best.min(kind.best);
            dealt.name = dealt.name.wrapping_add(kind.name);
            self.homes.push(u32::try_from(home).expect("a few masks"));
        }
        let kinds = self.sample.kinds.len();
        self.words += 2 * (passed + kinds);
        self.work += kinds + DEALING * (masks.len() + 1);
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
        let homes = self.homes.iter().map(|&home| home as usize);
        let kinds = self.sample.kinds.iter().zip(homes);
        kinds
            .filter(move |&(_, home)| home == first || home == second)
            .map(|(kind, _)| &kind.mask)
    }

    /// What headers that probe a table cost in the mean, over all headers.
    fn table(&mut self, table: usize, mask: &[u64; W]) -> Cost {
        let sample = self.sample;
        let homes = &self.homes;
        let is_home = |kind: u32| homes[kind as usize] as usize == table;
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
