//! Snapshots: copies of rule outlines, and the plan that is learned from them.
//!
//! # Idea
//! Learning for the root looks at the masks of all rules and at the values of
//! some. Up to [`COPIED`] outlines are copied, evenly over the rules, a few
//! hundred with each look at the forest, which may change in between: a plan is
//! good or bad, never wrong. Then the forest is needed no more.
//!
//! Where there are more rules than outlines, each stands for several rules, and
//! the number of keys of a table is estimated from pairs that meet, as
//! `learn/cost/buckets.rs` does.
//!
//! # Cost
//! 40 bytes for the outline of an IPv4 rule, 10 MB at most. Learning takes as
//! long as it does for the root in a build.

#![allow(clippy::cast_precision_loss)] // counts are far below 2^52

use std::any::Any;
use std::sync::Arc;

use super::plan::{PlannedTable, RootPlan};
use crate::engine::forest::grow::{LEARNING, slots_for};
use crate::engine::forest::learn::{Learner, Level};
use crate::engine::forest::outline::Outline;
use crate::engine::forest::structure::{Structure, Table};
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::reoptimise::Contents;
use crate::sort::sort;

/// The most outlines copied.
const COPIED: usize = 1 << 18;

/// Entries looked at each time: two or three hundred microseconds with a
/// million rules, so that a reader who looks keeps the writer off no longer.
const LOOKED_AT: usize = 1 << 9;

/// Outlines of rules.
#[derive(Debug)]
pub(crate) struct Snapshot<const W: usize> {
    learner: Arc<Learner<W>>,
    secrets: [u64; W],
    outlines: Vec<Outline<W>>,
    /// One rule in `stride` is copied.
    stride: usize,
    /// Rules seen.
    rules: usize,
    /// The next entry to look at.
    entry: usize,
}

impl<const W: usize> Snapshot<W> {
    /// With no outline yet.
    pub(crate) fn new(structure: &Structure<W>, learner: &Arc<Learner<W>>) -> Snapshot<W> {
        Snapshot {
            learner: Arc::clone(learner),
            secrets: *structure.secrets(),
            outlines: Vec::new(),
            stride: structure.len().div_ceil(COPIED).max(1),
            rules: 0,
            entry: 0,
        }
    }

    /// Copies some outlines; says whether all rules have been seen.
    pub(crate) fn add_some(&mut self, structure: &Structure<W>) -> bool {
        let end = structure.entries();
        let to = end.min(self.entry + LOOKED_AT);
        let mut row = Vec::with_capacity(structure.shape().columns());
        for entry in self.entry.min(to)..to {
            let Some((id, place)) = structure.entry(entry) else {
                continue;
            };
            self.rules += 1;
            if !(self.rules - 1).is_multiple_of(self.stride) {
                continue;
            }
            let (run, at) = structure.find_at(id, place).in_run();
            row.clear();
            structure.push_row(run, at, &mut row);
            self.outlines.push(structure.outline(&row));
        }
        self.entry = to;
        to == end
    }

    fn plan(&self, monitor: &mut Monitor<'_>) -> Result<RootPlan<W>, BuildError> {
        let copied = self.outlines.len();
        monitor.begin(LEARNING, copied)?;
        // Each outline as often as there are rules for it.
        let outline = |index: usize| self.outlines[index * copied / self.rules];
        let plan = self
            .learner
            .plan(Level::Root, self.rules, outline, monitor)?;
        let scale = self.rules as f64 / copied.max(1) as f64;
        // Those that are left, and those that a mask serves.
        let bytes = 2 * bytes_of::<u32>(copied);
        monitor.memory().take(bytes)?;
        let mut rest: Vec<u32> = (0..u32::try_from(copied).expect("at most COPIED")).collect();
        let mut served = Vec::with_capacity(copied);
        let mut tables = Vec::new();
        for mask in plan.masks {
            let mut left = 0;
            for from in (0..rest.len()).step_by(Monitor::BLOCK) {
                let to = rest.len().min(from + Monitor::BLOCK);
                for at in from..to {
                    let index = rest[at];
                    if self.outlines[index as usize].fits(&mask) {
                        served.push(index);
                    } else {
                        rest[left] = index;
                        left += 1;
                    }
                }
                monitor.work(to - from)?;
            }
            rest.truncate(left);
            if !served.is_empty() {
                tables.push(self.table(mask, &served, scale, monitor)?);
                monitor.count_done(served.len());
                served.clear();
            }
        }
        let unserved = (rest.len() * self.rules).div_ceil(copied.max(1));
        drop((rest, served));
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

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a number of rules
fn whole(count: f64) -> usize {
    count.max(0.0) as usize
}

impl<const W: usize> Contents for Snapshot<W> {
    fn compute(&self, monitor: &mut Monitor<'_>) -> Result<Arc<dyn Any + Send + Sync>, BuildError> {
        Ok(Arc::new(self.plan(monitor)?))
    }
}
