//! Offline table selection during updates and lookups.
//!
//! # Idea
//! Selecting tables ([`offline`]) needs the masks and values of all rules and takes as
//! long as a build. So the engine copies outlines of the rules, some hundred with each
//! look; any thread selects tables from the copy; and the engine installs the result
//! rule by rule:
//!
//! ```text
//! install  mark all tables as draining; make the plan's tables, empty
//! step 1   the plan's next rule: move it to its table of the plan, if it is in
//!          a draining table, fits, and its chain has room
//! step 2   the next record: if its rule is still in a draining table, move it
//!          to the table that an insertion would choose
//! end      all records visited: no table is draining any more
//! ```
//! A rule inserted during installation is placed as always, but never in a draining
//! table. So the plan does not depend on changes since the snapshot: rules are moved as
//! they are when their step comes.
//!
//! # Cost
//! A step compares a rule with each table's mask and moves it. Each change makes
//! [`STEPS_PER_CHANGE`] steps. Until the end, lookups probe old and new tables.
//!
//! # References
//! [TM19] §III.C.5 for the selection; its use during updates is ours.
//!
//! [TM19]: crate::papers#tm19

use std::any::Any;
use std::sync::Arc;

use super::TupleMerge;
use super::offline::{self, Outline};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::{Monitor, unwatched};
use crate::contract::reoptimise::{Contents, Drift, LookupPlan, Reoptimise, Snapshot};
use crate::model::error::BuildError;
use crate::model::rule::RuleId;
use crate::parts::sort::sort;
use crate::parts::tuple_space::{
    EntryIndex, Hasher, Mark, Placement, TableNumber, TupleEngine, TupleSpace,
};

/// The number of steps with each change while a plan is being installed. Measured in
/// `bench/records/constants.md` (CutSplit and TupleMerge, re-optimisation).
pub(super) const STEPS_PER_CHANGE: usize = 4;

/// The number of ids copied to a plan for one step of work. It sets how often the
/// computation of a plan reports progress.
const IDS_PER_STEP: usize = 8;

/// The number of records read with each look. It bounds the time that a look keeps a
/// reader pinned.
const RECORDS_PER_LOOK: usize = 1 << 9;

/// The number of rules whose lookups are counted for [`cost`]. Measured in
/// `bench/records/constants.md` (CutSplit and TupleMerge, re-optimisation).
const COST_SAMPLES: usize = 256;

/// Outlines of rules, copied some at a time.
struct Outlines<const W: usize> {
    hasher: Hasher<W>,
    limit: usize,
    /// The next record to read.
    record: usize,
    rules: Vec<Outline<W>>,
}

/// The selected tables, each with its mask and its rules.
struct Plan<const W: usize>(Vec<([u64; W], Box<[RuleId]>)>);

impl<const W: usize> Contents for Outlines<W> {
    fn compute(&self, monitor: &mut Monitor<'_>) -> Result<Arc<dyn Any + Send + Sync>, BuildError> {
        let count = self.rules.len();
        monitor.begin("sorting rules", count)?;
        let order_bytes = bytes_of::<(u64, u32)>(count);
        monitor.memory().take(order_bytes)?;
        let mut order: Vec<(u64, u32)> = Vec::with_capacity(count);
        for (number, rule) in (0..).zip(&self.rules) {
            order.push((rule.rank, number));
        }
        sort(&mut order, monitor)?;
        monitor.memory().take(bytes_of::<Outline<W>>(count))?;
        let mut rules = Vec::with_capacity(count);
        for (_, rule) in order {
            rules.push(self.rules[rule as usize]);
            monitor.advance(1)?;
        }
        monitor.memory().give_back(order_bytes);
        let selected = offline::select(&rules, &self.hasher, self.limit, monitor)?;
        monitor.memory().take(bytes_of::<RuleId>(count))?;
        let mut tables = Vec::new();
        for (mask, table) in selected.tables() {
            let id = |&rule: &u32| rules[rule as usize].id;
            monitor.memory().room(&mut tables)?;
            tables.push((*mask, table.iter().map(id).collect()));
            monitor.work(1 + table.len() / IDS_PER_STEP)?;
        }
        Ok(Arc::new(Plan::<W>(tables)))
    }
}

/// The progress of installing a plan.
#[derive(Debug, Default)]
pub(super) struct Installing {
    plan: Option<LookupPlan>,
    /// The next rule to move: the index of its table in the plan, and its index there.
    planned: (usize, usize),
    /// The next record to visit after the plan's rules have been moved.
    record: usize,
    /// The plan to install after this one.
    waiting: Option<LookupPlan>,
}

impl Installing {
    /// Begins the walk over the records again, because records have moved. Rules that
    /// have moved already are not in draining tables.
    pub(super) fn start_again(&mut self) {
        self.record = 0;
    }
}

/// Returns the mean number of tables that a lookup of a rule probes plus rules that it
/// compares, counted for a sample of the rules.
pub(super) fn cost<const W: usize>(space: &TupleSpace<W>) -> f64 {
    let records = space.records();
    let (mut sum, mut count) = (0, 0_u32);
    for sample in 0..COST_SAMPLES {
        let range = sample * records / COST_SAMPLES..(sample + 1) * records / COST_SAMPLES;
        let Some(entry) = { range }.find_map(|record| space.record(record)) else {
            continue;
        };
        let rank = space.entry(entry).rank;
        let chain = space.chain(space.table_of(entry), entry);
        let compared = chain.take_while(|&other| other != entry).count() + 1;
        sum += space.tables_above(rank) + compared;
        count += 1;
    }
    if count == 0 {
        // The cost of a lookup of the first rule: a table and a rule.
        return 2.0;
    }
    f64::from(u32::try_from(sum).unwrap_or(u32::MAX)) / f64::from(count)
}

impl TupleMerge {
    /// Makes steps of installing a plan, if there is one.
    pub(super) fn install_some<const W: usize>(&mut self, space: &mut TupleSpace<W>, steps: usize) {
        let Some(plan) = self.plan(space) else {
            return;
        };
        for _ in 0..steps {
            if self.install_next(space, &plan).is_none() {
                self.end_installing(space);
                return;
            }
        }
    }

    /// The plan that is being installed.
    fn plan<const W: usize>(&self, space: &TupleSpace<W>) -> Option<Arc<Plan<W>>> {
        let plan = self.installing.plan.as_ref()?;
        plan.get(self.settings.variant.engine().name, space.schema())
    }

    /// Makes a step; returns `None` if all steps are made.
    fn install_next<const W: usize>(
        &mut self,
        space: &mut TupleSpace<W>,
        plan: &Plan<W>,
    ) -> Option<()> {
        let (table, rule) = self.installing.planned;
        if let Some((_, rules)) = plan.0.get(table) {
            self.installing.planned = if rule + 1 < rules.len() {
                (table, rule + 1)
            } else {
                (table + 1, 0)
            };
            if let Some(entry) = rules.get(rule).and_then(|&id| space.find(id)) {
                self.move_as_planned(space, entry, table);
            }
            return Some(());
        }
        let record = self.installing.record;
        if record == space.records() {
            return None;
        }
        self.installing.record += 1;
        if let Some(entry) = space.record(record) {
            let old_table = space.table_of(entry);
            if space.mark(old_table) == Mark::Draining {
                unwatched(|monitor| {
                    space.unlink(entry, monitor)?;
                    self.place(space, entry, monitor)
                });
                space.drop_if_empty(old_table);
            }
        }
        Some(())
    }

    /// Moves a rule to its table of the plan, if it is in a draining table, fits, and
    /// has room.
    fn move_as_planned<const W: usize>(
        &self,
        space: &mut TupleSpace<W>,
        entry: EntryIndex,
        planned: usize,
    ) {
        let (old_table, limit) = (space.table_of(entry), self.settings.offline_limit);
        let target = space
            .tables()
            .find(|&(table, _)| space.mark(table) == Mark::Planned(planned))
            .filter(|(table, mask)| {
                space.mark(old_table) == Mark::Draining
                    && space.entry(entry).fits(mask)
                    && space.chain(*table, entry).take(limit).count() < limit
            });
        if let Some((target, _)) = target {
            unwatched(|monitor| {
                space.unlink(entry, monitor)?;
                space.link(target, entry, monitor)
            });
            space.drop_if_empty(old_table);
        }
    }

    fn end_installing<const W: usize>(&mut self, space: &mut TupleSpace<W>) {
        let tables: Vec<TableNumber> = space.tables().map(|(table, _)| table).collect();
        for table in tables {
            debug_assert!(space.mark(table) != Mark::Draining, "all rules were moved");
            space.set_mark(table, Mark::Usual);
            space.drop_if_empty(table);
        }
        self.changes = 0;
        self.fitted = cost(space);
        self.installing.plan = self.installing.waiting.take();
        if let Some(plan) = self.plan(space) {
            self.begin_installing(space, &plan);
        }
    }

    /// Makes a plan's tables, and marks all other tables as draining.
    fn begin_installing<const W: usize>(&mut self, space: &mut TupleSpace<W>, plan: &Plan<W>) {
        let tables: Vec<TableNumber> = space.tables().map(|(table, _)| table).collect();
        for table in tables {
            space.set_mark(table, Mark::Draining);
        }
        for (planned, (mask, _)) in plan.0.iter().enumerate() {
            let table = unwatched(|monitor| space.new_table(*mask, monitor));
            space.set_mark(table, Mark::Planned(planned));
        }
        self.installing.planned = (0, 0);
        self.installing.record = 0;
    }
}

impl<const W: usize> Reoptimise for TupleEngine<W, TupleMerge> {
    fn drift(&self) -> Drift {
        Drift {
            current: cost(&self.space),
            fitted: self.placement.fitted,
            installing: self.is_installing(),
        }
    }

    fn look(&self, snapshot: &mut Snapshot) -> bool {
        let space = &self.space;
        let engine = self.placement.settings.variant.engine().name;
        let outlines = snapshot.contents(engine, space.schema(), space.changes(), || Outlines {
            hasher: space.hasher(),
            limit: self.placement.settings.offline_limit,
            record: 0,
            rules: Vec::new(),
        });
        let record_count = space.records();
        let end_of_look = record_count.min(outlines.record + RECORDS_PER_LOOK);
        let seen = (outlines.record.min(end_of_look)..end_of_look)
            .filter_map(|record| space.record(record));
        outlines
            .rules
            .extend(seen.map(|entry| Outline::of(space, entry)));
        outlines.record = end_of_look;
        if end_of_look < record_count {
            return false;
        }
        snapshot.complete()
    }

    fn install(&mut self, plan: &LookupPlan) -> bool {
        let engine = self.placement.settings.variant.engine().name;
        let Some(tables) = plan.get::<Plan<W>>(engine, self.space.schema()) else {
            return false;
        };
        let installing = &mut self.placement.installing;
        if installing.plan.is_some() {
            installing.waiting = Some(plan.clone());
        } else {
            installing.plan = Some(plan.clone());
            self.placement.begin_installing(&mut self.space, &tables);
        }
        true
    }

    fn step(&mut self, steps: usize) -> bool {
        self.placement.install_some(&mut self.space, steps);
        self.is_installing()
    }

    fn is_installing(&self) -> bool {
        self.placement.installing.plan.is_some()
    }
}
