//! Snapshots: copies of rule outlines, and the plan that is learned from them.
//!
//! # Idea
//! Learning for the root reads the masks of all rules and the values of some. A
//! snapshot copies up to [`MAX_OUTLINES`] outlines, evenly over the rules, a few
//! hundred with each look at the forest. The forest may change between looks: that
//! makes a plan worse, never wrong. Afterwards the forest is not needed.
//!
//! If there are more rules than outlines, each outline represents several rules. The
//! number of keys of a table is then estimated from pairs of rules with equal keys,
//! as `learn/cost/buckets.rs` does.
//!
//! # Cost
//! 40 bytes for the outline of an IPv4 rule, 10 MB at most. Learning takes the same
//! time as for the root in a build.

#![allow(clippy::cast_precision_loss)] // counts are far below 2^52

use std::any::Any;
use std::sync::Arc;

use super::plan::{PlannedTable, RootPlan};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::contract::reoptimise::Contents;
use crate::engines::forest::grow::{LEARNING, slots_for};
use crate::engines::forest::learn::{Learner, Level};
use crate::engines::forest::outline::Outline;
use crate::engines::forest::structure::{Structure, Table};
use crate::model::error::BuildError;
use crate::parts::sort::sort;

/// The most outlines of a snapshot. Bounds its memory: 10 MB of IPv4 rules.
/// `docs/forest.md` (Re-optimisation) has measurements with a sample of a million rules.
const MAX_OUTLINES: usize = 1 << 18;

/// Entries read in one look: two to three hundred microseconds with a million rules,
/// the longest time that a reader delays the writer.
const ENTRIES_PER_LOOK: usize = 1 << 9;

/// Outlines of rules.
#[derive(Debug)]
pub(crate) struct Snapshot<const W: usize> {
    learner: Arc<Learner<W>>,
    secrets: [u64; W],
    outlines: Vec<Outline<W>>,
    /// One rule out of `stride` is copied.
    stride: usize,
    /// The number of rules seen.
    rules: usize,
    /// The next entry to read.
    entry: usize,
}

impl<const W: usize> Snapshot<W> {
    /// Returns a snapshot without outlines.
    pub(crate) fn new(structure: &Structure<W>, learner: &Arc<Learner<W>>) -> Snapshot<W> {
        Snapshot {
            learner: Arc::clone(learner),
            secrets: *structure.secrets(),
            outlines: Vec::new(),
            stride: structure.len().div_ceil(MAX_OUTLINES).max(1),
            rules: 0,
            entry: 0,
        }
    }

    /// Copies some outlines; returns true when all rules have been seen.
    pub(crate) fn add_some(&mut self, structure: &Structure<W>) -> bool {
        let entry_count = structure.entries();
        let stop = entry_count.min(self.entry + ENTRIES_PER_LOOK);
        let mut row = Vec::with_capacity(structure.shape().columns());
        for entry in self.entry.min(stop)..stop {
            let Some((id, place)) = structure.entry(entry) else {
                continue;
            };
            self.rules += 1;
            if !(self.rules - 1).is_multiple_of(self.stride) {
                continue;
            }
            let (run, position) = structure.find_at(id, place).in_run();
            row.clear();
            structure.push_row(run, position, &mut row);
            self.outlines.push(structure.outline(&row));
        }
        self.entry = stop;
        stop == entry_count
    }

    fn plan(&self, monitor: &mut Monitor<'_>) -> Result<RootPlan<W>, BuildError> {
        let copied = self.outlines.len();
        monitor.begin(LEARNING, copied)?;
        // Repeats each outline for the rules that it represents.
        let outline = |index: usize| self.outlines[index * copied / self.rules];
        let plan = self
            .learner
            .plan(Level::Root, self.rules, outline, monitor)?;
        let scale = self.rules as f64 / copied.max(1) as f64;
        // Memory for the remaining outlines and the outlines that a mask serves.
        let bytes = 2 * bytes_of::<u32>(copied);
        monitor.memory().take(bytes)?;
        let mut remaining: Vec<u32> =
            (0..u32::try_from(copied).expect("at most MAX_OUTLINES")).collect();
        let mut served = Vec::with_capacity(copied);
        let mut tables = Vec::new();
        for mask in plan.masks {
            let mut kept_count = 0;
            for start in (0..remaining.len()).step_by(Monitor::BLOCK) {
                let block_end = remaining.len().min(start + Monitor::BLOCK);
                for position in start..block_end {
                    let index = remaining[position];
                    if self.outlines[index as usize].fits(&mask) {
                        served.push(index);
                    } else {
                        remaining[kept_count] = index;
                        kept_count += 1;
                    }
                }
                monitor.work(block_end - start)?;
            }
            remaining.truncate(kept_count);
            if !served.is_empty() {
                tables.push(self.table(mask, &served, scale, monitor)?);
                monitor.count_done(served.len());
                served.clear();
            }
        }
        let unserved = (remaining.len() * self.rules).div_ceil(copied.max(1));
        drop((remaining, served));
        monitor.memory().give_back(bytes);
        Ok(RootPlan {
            tables,
            predicted: plan.cost,
            rules: self.rules,
            unserved,
            learned: true,
        })
    }

    fn table(
        &self,
        mask: [u64; W],
        served: &[u32],
        scale: f64,
        monitor: &mut Monitor<'_>,
    ) -> Result<PlannedTable<W>, BuildError> {
        let probe = Table::new(mask, 1);
        let bytes = bytes_of::<(u64, u32)>(served.len());
        monitor.memory().take(bytes)?;
        let mut hashed = Vec::with_capacity(served.len());
        for &index in served {
            let value = &self.outlines[index as usize].value;
            hashed.push((probe.hash(value, &self.secrets), 0));
            monitor.work(1)?;
        }
        sort(&mut hashed, monitor)?;
        let groups = hashed.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len);
        let (distinct, pairs) = groups.fold((0, 0), |(distinct, pairs), rules| {
            (distinct + 1, pairs + rules * (rules - 1))
        });
        let keys = if scale > 1.0 {
            let rules = served.len() as f64;
            let bucket = 1.0 + (scale - 1.0) * pairs as f64 / rules;
            let keys = distinct as f64 + (scale - 1.0) * rules / bucket;
            whole(keys)
        } else {
            distinct
        };
        let spread = slots_for(&hashed) / distinct.next_power_of_two();
        drop(hashed);
        monitor.memory().give_back(bytes);
        Ok(PlannedTable { mask, keys, spread })
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count of rules
fn whole(count: f64) -> usize {
    count.max(0.0) as usize
}

impl<const W: usize> Contents for Snapshot<W> {
    fn compute(&self, monitor: &mut Monitor<'_>) -> Result<Arc<dyn Any + Send + Sync>, BuildError> {
        Ok(Arc::new(self.plan(monitor)?))
    }
}
