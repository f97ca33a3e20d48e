//! The counted cost of lookups.
//!
//! # Idea
//! For evenly spread rules, makes a header each and counts the work to find the
//! rule: tables probed, blocks of rules compared, nested tables entered, each at its
//! price. The time of a lookup depends on the machine and its other work. Counts are
//! equal everywhere, and a few hundred are enough to detect a structure that no
//! longer fits its rules.
//!
//! Headers are made as for learning. Tables are visited down to the rule's rank, as
//! if no better rule matched and no conflicts were known.
//!
//! # Cost
//! [`SAMPLED_RULES`] lookups without comparing.

use crate::engines::forest::learn::Cost;
use crate::engines::forest::outline::Ends;
use crate::engines::forest::slot::{Bucket, TableNumber};
use crate::engines::forest::structure::Structure;

/// The number of rules looked up. `docs/forest.md` (Re-optimisation) has the time of
/// counting them, and compares counted costs with measured times.
pub(super) const SAMPLED_RULES: usize = 256;

/// Approximate prices in nanoseconds. Only their ratios matter here. The prices of
/// learning are separate: they are fitted to times and change with kernels. The
/// prices of a probe, a compare and a second block are learning's earlier ones
/// (`bench/records/forest-experiments.md`, "prices fitted again"). The prices of nested
/// tables are measured in `bench/records/constants.md` (Forest).
const PROBE_PRICE: f64 = 2.1;
const NESTED_PROBE_PRICE: f64 = 20.0;
const NESTED_PRICE: f64 = 40.0;
const COMPARE_PRICE: f64 = 6.5;
/// The second block of eight rules, which costs a branch misprediction.
const SECOND_BLOCK_PRICE: f64 = 12.0;
/// Each later block: 0.6 ns a rule. `docs/forest.md` (Re-optimisation) has 0.5 to
/// 0.75 ns for long scans.
const BLOCK_PRICE: f64 = 5.0;

/// A sum over samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    sum: f64,
    count: u32,
}

/// Figures from the last optimisation of the root.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Baseline {
    /// The number of rules at that time.
    pub(crate) rules: usize,
    /// The lookup cost that learning predicted.
    pub(crate) predicted: Cost,
    /// The counted lookup cost, from [`count_cost`].
    pub(crate) counted: f64,
}

/// Returns the present cost of a lookup.
pub(crate) fn count_cost<const W: usize>(structure: &Structure<W>) -> f64 {
    let mut tally = Tally::default();
    for sample in 0..SAMPLED_RULES {
        tally.add(structure, sample);
    }
    tally.mean()
}

impl Tally {
    /// Adds the cost of a sample, if there is a rule in its part of the entries.
    pub(super) fn add<const W: usize>(&mut self, structure: &Structure<W>, sample: usize) {
        let entries = structure.entries();
        let (start, end) = (
            sample * entries / SAMPLED_RULES,
            (sample + 1) * entries / SAMPLED_RULES,
        );
        let Some((_, place)) = (start..end).find_map(|entry| structure.entry(entry)) else {
            return;
        };
        // Any rule of the bucket will do.
        let Bucket::Run(run) = structure.slot(place).bucket() else {
            unreachable!("rules are in runs");
        };
        let mut row = Vec::with_capacity(structure.shape().columns());
        structure.push_row(run, sample % usize::from(run.len), &mut row);
        let rule = structure.outline(&row);
        let key = rule.header(Ends::alternate(sample), &mut (sample as u64));
        self.sum += cost_of(structure, structure.root(), &key, rule.rank, PROBE_PRICE);
        self.count += 1;
    }

    /// The mean cost of the samples.
    pub(super) fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }
}

/// Returns the cost of a header in a chain, down to a rank.
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
            Bucket::Nested(first) => {
                NESTED_PRICE + cost_of(structure, first, key, rank, NESTED_PROBE_PRICE)
            }
            Bucket::Run(run) => {
                let ranks = structure.ranks(run);
                let compared = ranks.partition_point(|&rule_rank| rule_rank <= rank);
                let blocks = u32::try_from(compared.saturating_sub(1) / 8);
                let blocks = f64::from(blocks.expect("runs are short"));
                COMPARE_PRICE
                    + SECOND_BLOCK_PRICE.min(blocks * SECOND_BLOCK_PRICE)
                    + BLOCK_PRICE * (blocks - 1.0).max(0.0)
            }
        };
    }
    cost
}
