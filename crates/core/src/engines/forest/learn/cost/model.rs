//! The cost of a plan: rules are dealt out to tables, and each header pays for the
//! tables that it probes.
//!
//! Each kind of rules goes to the first mask that it fits, so the number and the
//! best rank of a table's rules are known exactly. Tables are visited in the order
//! of their best ranks: a header whose winner has rank `r` probes exactly the tables
//! whose best rank is not worse than `r`. The other estimators give the cost of a
//! header in each of these tables:
//! ```text
//! cost(plan) = mean over headers of the sum over tables with best ≤ r of
//!                 probe(slots) + P(signature passes) × run(rules in the bucket)
//! ```
//! A table of rules with bad ranks is almost free; a table with a single rule of a
//! good rank costs every header a probe. The model ignores conflict marks, which
//! save some of these probes.
//!
//! The sampled rules of each new table, and the headers that probe it, are hashed
//! once. Costs of tables that a change does not affect come from a map. A plan is
//! rejected as soon as it costs more than a bound.

#![allow(clippy::cast_precision_loss)] // counts are far below 2^52

use hashbrown::HashMap;

use super::super::effort::MAX_MASKS;
use super::WORDS_PER_WORK_STEP;
use super::buckets::Buckets;
use super::compares::Compares;
use super::counters::Counters;
use super::headers::Headers;
use super::prices::{Cost, Prices};
use super::sample::Sample;
use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::seed::{MapState, splitmix};

/// The work of dealing rules out to each table of a plan, in rules read. With few
/// rules, it is most of the work. Bounds the search over few rules.
const DEAL_WORK_PER_TABLE: usize = 64;

/// The most masks whose served kinds are cached. A plan with one change has at most
/// two dozen masks. Bounds the memory of the cache.
const MAX_CACHED_MASKS: usize = 64;

/// A table of the present plan.
#[derive(Clone, Copy, Debug)]
struct Dealt {
    kinds: usize,
    rules: usize,
    best: u64,
    name: u64,
}

/// Computes the costs of plans for a sample.
#[derive(Debug)]
pub(crate) struct Model<'a, const W: usize> {
    pub(crate) sample: &'a Sample<W>,
    headers: &'a Headers<W>,
    prices: Prices,
    counters: Counters,
    /// The masks of all kinds, word by word.
    columns: Vec<u64>,
    /// For each mask, the position in `serving` of its bits: one for each kind that
    /// it serves.
    served: HashMap<[u64; W], usize, MapState>,
    serving: Vec<u64>,
    /// The kinds of each table of the present plan, one bit each, one table after
    /// the other.
    members: Vec<u64>,
    dealt: Vec<Dealt>,
    known: HashMap<u64, Cost, MapState>,
    /// The number of rules and headers read.
    pub(crate) work: usize,
    /// The approximate number of words of masks and rules read for that.
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
        let bits = bytes_of::<u64>((MAX_CACHED_MASKS + MAX_MASKS + 1) * kinds.div_ceil(64));
        let served = HashMap::with_capacity_and_hasher(MAX_CACHED_MASKS, Default::default());
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

    /// Bytes held, except for a few masks.
    pub(crate) fn bytes(&self) -> usize {
        Counters::bytes(self.sample.rules.len())
            + bytes_of::<u64>(W * self.sample.kinds.len())
            + bytes_of::<u64>((MAX_CACHED_MASKS + MAX_MASKS + 1) * self.row())
            + self.served.allocation_size()
            + self.known.allocation_size()
    }

    /// Returns the cost of lookups with these masks; rules that no mask serves are
    /// scanned.
    pub(crate) fn cost(
        &mut self,
        masks: &[[u64; W]],
        monitor: &mut Monitor<'_>,
    ) -> Result<Cost, BuildError> {
        let cost = self.cost_below(masks, f64::INFINITY, monitor)?;
        Ok(cost.expect("below infinity"))
    }

    /// Returns the cost, or `None` if it is not below the bound.
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
        // The sum of the known costs and of the least costs of the others may exceed
        // the bound before anything is hashed.
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

    /// Returns the least cost of a table: its probes, if it were the smallest table.
    fn least(&self, table: usize) -> f64 {
        let headers = self.headers.len().max(1) as f64;
        let probing = self.headers.probing(self.dealt[table].best).len();
        probing as f64 / headers * self.prices.least_probe
    }

    /// The number of words with one bit for each kind.
    fn row(&self) -> usize {
        self.sample.kinds.len().div_ceil(64)
    }

    /// Deals the kinds out to the masks. A table with the same kinds as the previous
    /// table at its position is not counted again.
    fn deal(&mut self, masks: &[[u64; W]]) {
        let (kinds, row) = (self.sample.kinds.len(), self.row());
        let known = self.dealt.len();
        self.members.resize((masks.len() + 1) * row, 0);
        self.dealt.resize(masks.len() + 1, Dealt::EMPTY);
        if self.served.len() + masks.len() > MAX_CACHED_MASKS {
            self.served.clear();
            self.serving.clear();
        }
        let mut undealt = vec![u64::MAX; row];
        if let Some(last) = undealt.last_mut() {
            *last >>= (64 - kinds % 64) % 64;
        }
        let mut passed = 0;
        for table in 0..=masks.len() {
            let serving = masks.get(table).map(|mask| self.serving(mask));
            let members = &mut self.members[table * row..][..row];
            let mut is_same = table < known;
            for (index, (member, undealt)) in members.iter_mut().zip(&mut undealt).enumerate() {
                let serves = serving.map_or(u64::MAX, |start| self.serving[start + index]);
                let dealt_here = *undealt & serves;
                is_same &= dealt_here == *member;
                *member = dealt_here;
                *undealt &= !dealt_here;
            }
            if !is_same {
                self.dealt[table] = count(self.sample, members);
            }
            passed += table * self.dealt[table].kinds;
        }
        self.words += 2 * (passed + kinds);
        self.work += kinds + DEAL_WORK_PER_TABLE * (masks.len() + 1);
    }

    /// Returns the position in `serving` of the bits for the kinds that a mask
    /// serves.
    fn serving(&mut self, mask: &[u64; W]) -> usize {
        if let Some(&start) = self.served.get(mask) {
            return start;
        }
        let start = self.serving.len();
        let kinds = self.sample.kinds.len();
        for first in (0..kinds).step_by(64) {
            let kind_count = (kinds - first).min(64);
            let mut lacking = [0; 64];
            for (word, &bits) in mask.iter().enumerate() {
                if bits != 0 {
                    let column = &self.columns[word * kinds + first..][..kind_count];
                    for (lacking, kind) in lacking.iter_mut().zip(column) {
                        *lacking |= bits & !kind;
                    }
                }
            }
            let lacking = lacking[..kind_count].iter().enumerate();
            let serves = lacking.map(|(index, &lacks)| u64::from(lacks == 0) << index);
            self.serving.push(serves.fold(0, |bits, bit| bits | bit));
        }
        self.served.insert(*mask, start);
        start
    }

    /// Returns the masks of the kinds in two tables.
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

    /// Returns the cost of a table in the mean over all headers.
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

/// True if the kind's bit is set.
#[inline]
fn is_member(bits: &[u64], kind: usize) -> bool {
    bits[kind / 64] >> (kind % 64) & 1 != 0
}

/// Counts the kinds whose bits are set, as a table.
fn count<const W: usize>(sample: &Sample<W>, members: &[u64]) -> Dealt {
    let mut dealt = Dealt::EMPTY;
    for (&word, first) in members.iter().zip((0..).step_by(64)) {
        let mut kinds_left = word;
        while kinds_left != 0 {
            let kind = &sample.kinds[first + kinds_left.trailing_zeros() as usize];
            dealt.kinds += 1;
            dealt.rules += kind.rules;
            dealt.best = dealt.best.min(kind.best);
            dealt.name = dealt.name.wrapping_add(kind.name);
            kinds_left &= kinds_left - 1;
        }
    }
    dealt
}

/// Reports the words read since the last call as work.
fn report_words(
    before: &mut usize,
    words: usize,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    monitor.work(1 + (words - *before) / WORDS_PER_WORK_STEP)?;
    *before = words;
    Ok(())
}

/// Returns the number that identifies a table by its kinds and its mask.
fn name<const W: usize>(kinds: u64, mask: &[u64; W]) -> u64 {
    mask.iter().fold(kinds, |name, &word| {
        let mut state = name ^ word;
        splitmix(&mut state)
    })
}
