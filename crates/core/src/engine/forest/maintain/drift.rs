//! What lookups cost, counted.
//!
//! # Idea
//! For rules spread evenly over all, a header each, and what it takes to find
//! the rule: tables probed, blocks of rules compared, nested tables entered, each
//! at its price. The time of a lookup depends on the machine and on what else it
//! does; counts are the same everywhere, and a few hundred are enough to see a
//! structure that no longer fits its rules.
//!
//! Headers are made as for learning. Tables are visited down to the rule's rank,
//! as if no better rule matched and no conflicts were known.
//!
//! # Cost
//! [`SAMPLES`] lookups without comparing.

use crate::engine::forest::learn::Cost;
use crate::engine::forest::outline::Ends;
use crate::engine::forest::slot::{Bucket, TableNumber};
use crate::engine::forest::structure::Structure;

/// Rules looked up.
pub(super) const SAMPLES: usize = 256;

/// Prices, in nanoseconds or so. Only what they are to each other matters here;
/// those of learning are fitted to times and change with kernels.
const PROBE: f64 = 2.1;
const NESTED_PROBE: f64 = 20.0;
const NESTED: f64 = 40.0;
const COMPARE: f64 = 6.5;
/// The second block of eight rules: a branch that was predicted otherwise.
const SECOND_BLOCK: f64 = 12.0;
/// Each after that: 0.6 ns a rule, as `docs/forest.md` says of long scans.
const BLOCK: f64 = 5.0;

/// A sum over samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    sum: f64,
    count: u32,
}

/// What lookups cost at the last optimisation of the root.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Baseline {
    /// The number of rules then.
    pub(crate) rules: usize,
    /// What lookups were to cost, by the estimate of learning.
    pub(crate) predicted: Cost,
    /// What they did cost, counted as it is here.
    pub(crate) counted: f64,
}

/// What a lookup costs now.
pub(crate) fn count_cost<const W: usize>(structure: &Structure<W>) -> f64 {
    let mut tally = Tally::default();
    for sample in 0..SAMPLES {
        tally.add(structure, sample);
    }
    tally.mean()
}

impl Tally {
    /// Adds the cost of a sample, if there is a rule in its part of the entries.
    pub(super) fn add<const W: usize>(&mut self, structure: &Structure<W>, sample: usize) {
        let entries = structure.entries();
        let (from, to) = (sample * entries / SAMPLES, (sample + 1) * entries / SAMPLES);
        let Some((_, place)) = (from..to).find_map(|entry| structure.entry(entry)) else {
            return;
        };
        // Which rule of a bucket is as good as any.
        let Bucket::Run(run) = structure.slot(place).bucket() else {
            unreachable!("rules are in runs");
        };
        let mut row = Vec::with_capacity(structure.shape().columns());
        structure.push_row(run, sample % usize::from(run.len), &mut row);
        let rule = structure.outline(&row);
        let key = rule.header(Ends::alternate(sample), &mut (sample as u64));
        self.sum += cost_of(structure, structure.root(), &key, rule.rank, PROBE);
        self.count += 1;
    }

    /// The mean cost of the samples.
    pub(super) fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }
}

/// The cost of a header in a chain, down to a rank.
fn cost_of<const W: usize>(
    structure: &Structure<W>,
    first: TableNumber,
    key: &[u64; W],
    rank: u64,
    probe: f64,
) -> f64 {
    let mut cost = 0.0;
    for number in structure.chain(first) {
        let table = structure.table(number);
        if table.best() > rank {
            break;
        }
        cost += probe;
        let Some(slot) = table.find(key, structure.secrets()) else {
            continue;
        };
        cost += match slot.bucket() {
            Bucket::Empty => 0.0,
            Bucket::Nested(first) => NESTED + cost_of(structure, first, key, rank, NESTED_PROBE),
            Bucket::Run(run) => {
                let ranks = structure.ranks(run);
                let compared = ranks.partition_point(|&other| other <= rank);
                let blocks = u32::try_from(compared.saturating_sub(1) / 8);
                let blocks = f64::from(blocks.expect("runs are short"));
                COMPARE + SECOND_BLOCK.min(blocks * SECOND_BLOCK) + BLOCK * (blocks - 1.0).max(0.0)
            }
        };
    }
    cost
}
