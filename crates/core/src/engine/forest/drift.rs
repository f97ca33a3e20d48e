//! What lookups cost, counted.
//!
//! # Idea
//! For rules spread evenly over all, a header each, and what it takes to find
//! the rule: tables probed, blocks of rules compared, nested nodes entered, each
//! at its price. The time of a lookup depends on the machine and on what else it
//! does; counts are the same everywhere, and a few hundred are enough to see a
//! structure that no longer fits its rules.
//!
//! Headers are made as for learning. Tables are visited down to the rule's rank, as if no better
//! rule matched.
//!
//! # Cost
//! [`SAMPLES`] lookups without comparing.

use super::learn::Ends;
use super::table::{Bucket, TableNumber};
use super::tree::Forest;
use crate::reoptimise::Drift;

/// Rules looked up.
pub(super) const SAMPLES: usize = 256;

/// Prices, in nanoseconds or so. Only what they are to each other matters here;
/// those of [`learn`](super::learn) are fitted to times and change with kernels.
const PROBE: f64 = 2.1;
const NESTED_PROBE: f64 = 20.0;
const NODE: f64 = 40.0;
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

impl Tally {
    pub(super) fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }
}

impl<const W: usize> Forest<W> {
    pub(super) fn drift(&self) -> Drift {
        Drift {
            now: self.cost_now(),
            fitted: self.cost,
            installing: self.adoption.is_some(),
        }
    }

    /// What a lookup costs.
    pub(super) fn cost_now(&self) -> f64 {
        let mut tally = Tally::default();
        for sample in 0..SAMPLES {
            self.tally(sample, &mut tally);
        }
        tally.mean()
    }

    /// Adds the cost of a sample, if there is one in its part of the entries.
    pub(super) fn tally(&self, sample: usize, tally: &mut Tally) {
        let entries = self.places.entries();
        let (from, to) = (sample * entries / SAMPLES, (sample + 1) * entries / SAMPLES);
        let Some((_, place)) = (from..to).find_map(|entry| self.places.entry(entry)) else {
            return;
        };
        // Which rule of a bucket is as good as any.
        let slot = self.tables[place.table.index()].get(place.slot);
        let Bucket::Run(run) = slot.bucket() else {
            unreachable!("rules are in runs");
        };
        let mut row = Vec::with_capacity(self.shape.columns());
        self.runs
            .push_row(run, sample % usize::from(run.len), &mut row);
        let rule = self.outline(&row);
        let ends = Ends::turn(sample);
        let key = rule.header(ends, &mut (sample as u64));
        tally.sum += self.cost_of(self.root, &key, rule.rank, PROBE);
        tally.count += 1;
    }

    /// The cost of a header in a node, down to a rank.
    fn cost_of(&self, first: TableNumber, key: &[u64; W], rank: u64, probe: f64) -> f64 {
        let mut cost = 0.0;
        for number in self.chain(first) {
            let table = &self.tables[number.index()];
            if table.best > rank {
                break;
            }
            cost += probe;
            let Some(slot) = table.find(key, &self.secrets) else {
                continue;
            };
            cost += match slot.bucket() {
                Bucket::Empty => 0.0,
                Bucket::Node(first) => NODE + self.cost_of(first, key, rank, NESTED_PROBE),
                Bucket::Run(run) => {
                    let ranks = self.runs.ranks(run);
                    let compared = ranks.partition_point(|&other| other <= rank);
                    let blocks = u32::try_from(compared.saturating_sub(1) / 8);
                    let blocks = f64::from(blocks.expect("runs are short"));
                    COMPARE
                        + SECOND_BLOCK.min(blocks * SECOND_BLOCK)
                        + BLOCK * (blocks - 1.0).max(0.0)
                }
            };
        }
        cost
    }
}
