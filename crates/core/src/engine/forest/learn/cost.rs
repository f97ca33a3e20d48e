//! What a lookup will cost, simulated on a sample of the rules.
//!
//! # Idea
//! Headers are taken to hit all rules alike: the header of a rule is its value,
//! with bits where it is wild that are random for half of the headers, and all
//! zeros or all ones for the others, because what is in use crowds at the ends of
//! prefixes. Tables are visited in the order of their
//! best ranks, so a header whose winner has rank `r` probes exactly the tables
//! whose best rank is not worse than `r`:
//! ```text
//! cost(plan) = mean over headers of the sum over tables with best ≤ r of
//!                 PROBE(slots) + P(signature passes) × run(rules in the bucket)
//! run(n)     = COMPARE + what blocks beyond a few rules cost      n ≤ most
//!            = COMPARE + NEST × (1 + log2(n / most) / 3)         otherwise
//! ```
//! A table of rules with bad ranks is almost free; one rule with a good rank in
//! a table of its own costs every header a probe.
//!
//! # Kinds
//! Whether a mask serves a rule depends on the rule's mask alone. Rules of the
//! same mask are one *kind*, so that a plan is dealt out to kinds, and the
//! number of a table's rules and its best rank are exact, not sampled.
//!
//! # Sampling
//! Half of the sample is spread evenly over the rules, half over the kinds, so
//! that rare kinds are there as a whole: they are few rules, but wide ones, and
//! decide how many tables a header must look into. A rule that stands for
//! `weight` rules of its kind counts as that many; a bucket of the sampled rules
//! `s` holds about `1 + Σ weight(s)` rules, over all but the one that it is seen
//! from. A header that meets thinned-out rules in a table meets others that are
//! not in the sample: such meetings count as often as the mean bucket is missed.
//!
//! # Cost
//! For each table that was not seen before: its sampled rules and the headers
//! that probe it are hashed once. Tables that moves do not touch come from a
//! map; a plan is given up as soon as it costs more than a bound. Masks are
//! compared by the words in which they have bits, so the width of the key counts
//! where rules are drawn and hashed. What that comes to is counted in words
//! ([`Sample::words`], [`Model::words`]), to be bounded.

#![allow(clippy::cast_precision_loss)] // counts are far below 2^52

use hashbrown::HashMap;

use super::{Ends, Level, Outline};
use crate::seed::splitmix;
use crate::simd::runs::SHORT;

/// Kinds beyond those of the sample are looked at up to this many; those of the
/// best ranks come first.
const KINDS: usize = 1 << 12;

/// What a plan costs before any rule is looked at, for each of its tables, in
/// rules that are looked at: for small nodes that is most of the time.
const DEALING: usize = 64;

/// Rules of one mask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind<const W: usize> {
    pub(super) mask: [u64; W],
    pub(super) best: u64,
    pub(super) rules: usize,
    /// A random number: tables are known by the sum of their kinds' numbers.
    name: u64,
}

/// A rule of the sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn<const W: usize> {
    pub(super) rule: Outline<W>,
    pub(super) kind: u32,
    /// Rules of its kind that it stands for.
    pub(super) weight: f32,
}

/// A header that hits a rule of the sample.
#[derive(Clone, Copy, Debug)]
struct Header<const W: usize> {
    key: [u64; W],
    /// The rank and the kind of its winner.
    rank: u64,
    kind: u32,
    /// That of the winner.
    weight: f32,
}

/// Some rules of a node, and headers that hit them.
#[derive(Clone, Debug)]
pub(super) struct Sample<const W: usize> {
    /// By rank, the best first.
    pub(super) rules: Vec<Drawn<W>>,
    pub(super) kinds: Vec<Kind<W>>,
    /// By rank, the best first.
    headers: Vec<Header<W>>,
    /// About how many words were read to draw it.
    pub(super) words: usize,
}

impl<const W: usize> Sample<W> {
    pub(super) fn draw(
        total: usize,
        most: usize,
        headers: usize,
        outline: impl Fn(usize) -> Outline<W>,
    ) -> Sample<W> {
        let mut state = 0;
        let mut numbers: HashMap<[u64; W], u32, foldhash::fast::FixedState> = HashMap::default();
        let mut kinds: Vec<Kind<W>> = Vec::new();
        let mut kind_of = Vec::with_capacity(total);
        for index in 0..total {
            let rule = outline(index);
            let number = *numbers.entry(rule.mask).or_insert_with(|| {
                kinds.push(Kind {
                    mask: rule.mask,
                    best: u64::MAX,
                    rules: 0,
                    name: splitmix(&mut state),
                });
                u32::try_from(kinds.len() - 1).expect("fewer kinds than rules")
            });
            let kind = &mut kinds[number as usize];
            kind.best = kind.best.min(rule.rank);
            kind.rules += 1;
            kind_of.push(number);
        }
        let mut rates = Rate::of(&kinds, most, &mut state);
        let mut rules = Vec::with_capacity(most.min(total));
        for (index, &kind) in kind_of.iter().enumerate() {
            if let Some(weight) = rates[kind as usize].next() {
                rules.push(Drawn {
                    rule: outline(index),
                    kind,
                    weight,
                });
            }
        }
        rules.sort_unstable_by_key(|drawn| drawn.rule.rank);
        leave_out_rare(&mut kinds, &mut rules);
        let mut words = 4 * W * total;
        let step = total as f32 / headers as f32;
        let headers = headers_of(&rules, step, &mut state, &mut words);
        Sample {
            rules,
            kinds,
            headers,
            words,
        }
    }
}

/// The part of a kind's rules that is drawn.
#[derive(Clone, Copy, Debug)]
struct Rate {
    rate: f32,
    /// What the rules since the last drawn one add up to.
    due: f32,
}

impl Rate {
    /// For each kind, so that no more than about `most` rules are drawn.
    fn of<const W: usize>(kinds: &[Kind<W>], most: usize, state: &mut u64) -> Vec<Rate> {
        let total: usize = kinds.iter().map(|kind| kind.rules).sum();
        let evenly = if total <= most {
            1.0
        } else {
            0.5 * most as f32 / total as f32
        };
        let each = from_each(kinds.iter().map(|kind| kind.rules).collect(), most / 2);
        let rate = |kind: &Kind<W>| Rate {
            rate: (each as f32 / kind.rules as f32).max(evenly).min(1.0),
            // Not all kinds begin with a drawn rule, or rare ones are too many.
            due: (splitmix(state) >> 40) as f32 / (1 << 24) as f32,
        };
        kinds.iter().map(rate).collect()
    }

    /// Goes to the kind's next rule: its weight, if it is drawn.
    fn next(&mut self) -> Option<f32> {
        self.due += self.rate;
        (self.due >= 1.0).then(|| {
            self.due -= 1.0;
            self.rate.recip()
        })
    }
}

/// The largest number that, taken from each of the sizes or the whole size where
/// it is less, comes to no more than `most` in all.
fn from_each(mut sizes: Vec<usize>, most: usize) -> usize {
    sizes.sort_unstable();
    let mut left = most;
    let count = sizes.len();
    for (at, size) in sizes.into_iter().enumerate() {
        let each = left / (count - at);
        if size > each {
            return each;
        }
        left -= size;
    }
    most
}

/// Drops kinds that are too many to look at: none of the sample.
fn leave_out_rare<const W: usize>(kinds: &mut Vec<Kind<W>>, rules: &mut [Drawn<W>]) {
    if kinds.len() <= KINDS {
        return;
    }
    let mut sampled = vec![false; kinds.len()];
    for drawn in &*rules {
        sampled[drawn.kind as usize] = true;
    }
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_unstable_by_key(|&kind| (!sampled[kind], kinds[kind].best));
    let held = sampled.iter().filter(|&&sampled| sampled).count();
    order.truncate(held.max(KINDS));
    let mut numbers = vec![0; kinds.len()];
    for (number, &kind) in (0..).zip(&order) {
        numbers[kind] = number;
    }
    for drawn in rules {
        drawn.kind = numbers[drawn.kind as usize];
    }
    *kinds = order.into_iter().map(|kind| kinds[kind]).collect();
}

/// A header for every so many rules, by rank.
fn headers_of<const W: usize>(
    rules: &[Drawn<W>],
    step: f32,
    state: &mut u64,
    words: &mut usize,
) -> Vec<Header<W>> {
    let mut due = 0.0;
    let mut headers = Vec::new();
    for (at, drawn) in rules.iter().enumerate() {
        if due <= 0.0 {
            headers.push(header(rules, at, state));
            *words += W + at;
            due += step;
        }
        due -= drawn.weight;
    }
    headers.sort_by_key(|header| header.rank);
    headers
}

/// A header of a rule. Better rules of the sample may win it.
fn header<const W: usize>(rules: &[Drawn<W>], at: usize, state: &mut u64) -> Header<W> {
    let rule = &rules[at].rule;
    let key = rule.header(Ends::turn(halves(splitmix(state)).1 as usize), state);
    let matches = |rule: &Outline<W>| {
        (0..W).all(|word| (rule.value[word] ^ key[word]) & rule.mask[word] == 0)
    };
    let better = rules[..at].iter().find(|drawn| matches(&drawn.rule));
    let winner = better.unwrap_or(&rules[at]);
    Header {
        key,
        rank: winner.rule.rank,
        kind: winner.kind,
        weight: winner.weight,
    }
}

/// What the parts of a lookup cost, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices {
    /// Hashing a header and reading a slot that is in a cache near the core;
    /// see [`Prices::probe`] for others.
    probe: f64,
    /// Comparing with a run of a few rules.
    compare: f64,
    /// What a block of eight costs more than a few rules.
    wide: f64,
    /// A branch that was predicted otherwise: the run has another block.
    miss: f64,
    /// Each further block.
    block: f64,
    /// A cache line of a run.
    line: f64,
    /// Going to a nested node instead of a run: rounds of few keys, no vectors.
    nest: f64,
    /// The most rules of a run.
    most: f64,
}

/// Lines of a run that are fetched one by one; the processor sees the others
/// coming.
const LINES: f64 = 8.0;

impl Prices {
    /// Fitted to the times of lookups in 60 rule sets of 1k to 1M rules under
    /// four settings each, from probes, compares, blocks and nested visits
    /// counted (Zen 4, November 2026; measured as `docs/forest.md` says), and
    /// rounded: between groups of sets they differ by half.
    pub(super) fn of(level: Level, rules: usize, most: usize) -> Prices {
        // By where the rules are: in a cache near the core, in a far one, in
        // memory.
        let (line, nest) = match rules {
            0..=10_000 => (0.8, 90.0),
            10_001..=100_000 => (0.9, 110.0),
            _ => (1.2, 140.0),
        };
        Prices {
            // Vectors of keys in the root, one key after the other below.
            probe: if level.is_root() { 3.0 } else { 45.0 },
            compare: 3.0,
            wide: 3.5,
            miss: 3.0,
            block: 3.0,
            line,
            nest,
            most: most as f64,
        }
    }

    fn probe(&self, slots: f64) -> f64 {
        let far = if slots <= 4096.0 {
            1.0 // 32 KiB
        } else if slots <= 65_536.0 {
            1.3 // 512 KiB
        } else if slots <= 1_048_576.0 {
            2.0
        } else {
            3.0
        };
        self.probe * far
    }

    fn run(&self, rules: f64) -> f64 {
        if rules <= self.most {
            let wide = ((rules - SHORT as f64) / SHORT as f64).clamp(0.0, 1.0);
            let further = (rules - 8.0).max(0.0);
            // A match ends the comparison: half of the blocks in the mean.
            let lines = rules * 0.75;
            let lines = lines.min(LINES) + 0.5 * (lines - LINES).max(0.0);
            self.compare
                + self.wide * wide
                + self.miss * (further / 8.0).min(1.0)
                + self.block * further / 16.0
                + self.line * lines
        } else {
            self.compare + self.wide + self.nest * (1.0 + (rules / self.most).log2() / 3.0)
        }
    }
}

/// What a lookup costs in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// Tables of the node visited.
    pub(crate) probes: f64,
    /// Runs compared or nested nodes visited.
    pub(crate) compares: f64,
    /// Nanoseconds.
    pub(crate) time: f64,
    /// Bits of all masks.
    bits: u32,
}

/// What a bit of a mask counts, in nanoseconds, when plans are compared: of two
/// that cost the same, the one with shorter masks serves more of the rules that
/// are inserted later, and its tables need fewer slots.
const LENGTH: f64 = 0.005;

impl Cost {
    /// What is minimised.
    pub(super) fn total(&self) -> f64 {
        self.time + LENGTH * f64::from(self.bits)
    }

    fn add(&mut self, other: &Cost) {
        self.probes += other.probes;
        self.compares += other.compares;
        self.time += other.time;
    }
}

/// A counter for the rules of one masked key.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    round: u32,
    tag: u32,
    /// The weights of the rules.
    count: f32,
}

/// A table of the plan at hand.
#[derive(Clone, Copy, Debug)]
struct Dealt {
    rules: usize,
    best: u64,
    name: u64,
}

/// Judges plans for a sample.
#[derive(Debug)]
pub(super) struct Model<'a, const W: usize> {
    pub(super) sample: &'a Sample<W>,
    prices: Prices,
    counters: Vec<Counter>,
    round: u32,
    /// The table of each kind.
    homes: Vec<u32>,
    dealt: Vec<Dealt>,
    known: HashMap<u64, Cost, foldhash::fast::FixedState>,
    /// Rules and headers looked at.
    pub(super) work: usize,
    /// About how many words of masks and rules that took.
    pub(super) words: usize,
    /// The words of the masks at hand that have bits, one mask after the other,
    /// and where each mask ends.
    parts: Vec<(usize, u64)>,
    ends: Vec<usize>,
}

impl<'a, const W: usize> Model<'a, W> {
    pub(super) fn new(sample: &'a Sample<W>, prices: Prices) -> Model<'a, W> {
        let counters = (2 * sample.rules.len()).next_power_of_two().max(16);
        Model {
            sample,
            prices,
            counters: vec![Counter::default(); counters],
            round: 0,
            homes: Vec::with_capacity(sample.kinds.len()),
            dealt: Vec::new(),
            known: HashMap::default(),
            work: 0,
            words: sample.words,
            parts: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// What lookups cost with these masks; the rest is scanned.
    pub(super) fn cost(&mut self, masks: &[[u64; W]]) -> Cost {
        self.cost_below(masks, f64::INFINITY)
            .expect("below infinity")
    }

    /// The same, or nothing if it is not less than the bound.
    pub(super) fn cost_below(&mut self, masks: &[[u64; W]], bound: f64) -> Option<Cost> {
        self.deal(masks);
        let headers = self.sample.headers.len().max(1) as f64;
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
                None => unknown += self.probing(table) as f64 / headers * self.prices.probe,
            }
        }
        for (table, name) in names.iter().enumerate() {
            if sum.total() + unknown >= bound {
                return None;
            }
            if self.dealt[table].rules == 0 || self.known.contains_key(name) {
                continue;
            }
            unknown -= self.probing(table) as f64 / headers * self.prices.probe;
            let cost = self.table(table, &mask(table));
            self.known.insert(*name, cost);
            sum.add(&cost);
        }
        (sum.total() < bound).then_some(sum)
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
        for mask in masks {
            let parts = mask.iter().copied().enumerate();
            self.parts.extend(parts.filter(|(_, bits)| *bits != 0));
            self.ends.push(self.parts.len());
        }
        for kind in &self.sample.kinds {
            let serves = |part: &(usize, u64)| part.1 & !kind.mask[part.0] == 0;
            let mut from = 0;
            let first = self.ends.iter().position(|&end| {
                let parts = &self.parts[from..end];
                from = end;
                parts.iter().all(serves)
            });
            let home = first.unwrap_or(masks.len());
            self.words += 2 * home + 2;
            let dealt = &mut self.dealt[home];
            dealt.rules += kind.rules;
            dealt.best = dealt.best.min(kind.best);
            dealt.name = dealt.name.wrapping_add(kind.name);
            self.homes.push(u32::try_from(home).expect("a few masks"));
        }
        self.work += self.sample.kinds.len() + DEALING * (masks.len() + 1);
    }

    /// The masks of the kinds that two tables hold.
    pub(super) fn kinds_of(
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

    /// The number of headers that probe a table: all whose winners are not
    /// better than its best rule.
    fn probing(&self, table: usize) -> usize {
        let best = self.dealt[table].best;
        let headers = &self.sample.headers;
        headers.len() - headers.partition_point(|header| header.rank < best)
    }

    fn table(&mut self, table: usize, mask: &[u64; W]) -> Cost {
        let sample = self.sample;
        self.round += 1;
        let (mut rules, mut weights, mut pairs, mut distinct) = (0u32, 0f64, 0f64, 0u32);
        for drawn in &sample.rules {
            if self.homes[drawn.kind as usize] as usize == table {
                let (at, tag) = self.find(&drawn.rule.value, mask);
                let round = self.round;
                let counter = &mut self.counters[at];
                if counter.round != round {
                    *counter = Counter {
                        round,
                        tag,
                        count: 0.0,
                    };
                    distinct += 1;
                }
                pairs += 2.0 * f64::from(counter.count * drawn.weight);
                counter.count += drawn.weight;
                weights += f64::from(drawn.weight);
                rules += 1;
            }
        }
        let probing = self.probing(table);
        self.work += sample.rules.len() / 4 + rules as usize + probing;
        self.words += sample.rules.len() + W * (rules as usize + probing);
        let Dealt { rules: all, .. } = self.dealt[table];
        let all = all as f64;
        // The bucket of a rule, in the mean over rules.
        let bucket = (1.0 + pairs / weights.max(1.0)).min(all);
        let thinned = f64::from(rules) < all;
        let keys = (all / bucket).max(f64::from(distinct)).min(all);
        let slots = keys.log2().ceil().exp2();
        let load = keys / slots;
        let mean = all / keys;
        // Rules of other keys that are in the same slot.
        let others = load * mean * 0.5;
        let scanned = *mask == [0; W];
        let by_chance = if scanned {
            1.0
        } else {
            1.0 - (-load / 16.0).exp()
        };
        let price = self.prices;
        let mut compares = 0.0;
        let mut time = probing as f64 * price.probe(slots);
        // Headers of other tables: those that meet rules here, and the others.
        let (mut meeting, mut meeting_time, mut others_count) = (0.0, 0.0, 0u32);
        for header in &sample.headers[sample.headers.len() - probing..] {
            let (at, _) = self.find(&header.key, mask);
            let counter = &self.counters[at];
            let met = match counter.round == self.round {
                true => f64::from(counter.count),
                false => 0.0,
            };
            if self.homes[header.kind as usize] as usize == table {
                compares += 1.0;
                time += price.run(1.0 + (met - f64::from(header.weight)).max(0.0) + others);
                continue;
            }
            others_count += 1;
            if met > 0.0 {
                // In a thinned-out table a bucket is met as often as its rules
                // are drawn: the more seldom, the more rules each stands for.
                let (times, rules) = if thinned {
                    ((met / bucket).max(1.0), met.min(bucket))
                } else {
                    (1.0, met)
                };
                meeting += times;
                meeting_time += times * price.run(rules + others);
            }
        }
        let others_count = f64::from(others_count);
        if meeting > others_count {
            meeting_time *= others_count / meeting;
            meeting = others_count;
        }
        let by_chance = by_chance * (others_count - meeting);
        compares += meeting + by_chance;
        time += meeting_time + by_chance * price.run(mean);
        let headers = sample.headers.len().max(1) as f64;
        Cost {
            probes: probing as f64 / headers,
            compares: compares / headers,
            time: time / headers,
            bits: 0,
        }
    }

    /// The counter of a masked key in this round or a free one, and its tag.
    #[inline]
    fn find(&self, key: &[u64; W], mask: &[u64; W]) -> (usize, u32) {
        let mut hash = 0u64;
        for (key, mask) in key.iter().zip(mask) {
            hash = (hash ^ (key & mask)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 32;
        }
        hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let (upper, tag) = halves(hash);
        let last = self.counters.len() - 1;
        let mut at = upper as usize & last;
        loop {
            let counter = &self.counters[at];
            if counter.round != self.round || counter.tag == tag {
                return (at, tag);
            }
            at = (at + 1) & last;
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // halves of 64 bits
fn halves(hash: u64) -> (u32, u32) {
    ((hash >> 32) as u32, hash as u32)
}

/// The number by which a table is known: its kinds and its mask.
fn name<const W: usize>(kinds: u64, mask: &[u64; W]) -> u64 {
    mask.iter().fold(kinds, |name, &word| {
        let mut state = name ^ word;
        splitmix(&mut state)
    })
}
