//! Offline table selection beside updates and lookups.
//!
//! # Idea
//! Selecting tables ([`offline`]) needs the masks and values of all rules and
//! takes as long as a build. So outlines of the rules are copied, some hundred
//! with each look; tables are selected from the copy, on any thread; and the
//! result is installed rule by rule:
//!
//! ```text
//! install  mark all tables as draining; make the plan's tables, empty
//! step 1   the plan's next rule: move it to its table of the plan, if it is in
//!          a draining table, fits, and its chain has room
//! step 2   the next record: if its rule is in a draining table still, move it
//!          to where an insertion would put it
//! end      all records seen: no table is draining any more
//! ```
//! A rule that comes meanwhile is placed as always, but never in a draining
//! table. So the plan need not know what changed since the snapshot: rules are
//! moved as they are now.
//!
//! # Cost
//! A step compares a rule with each table's mask and moves it. Each change makes
//! [`STEPS`] steps. Until the end, lookups probe old and new tables.
//!
//! # References
//! [TM19] §III.C.5 for the selection; its use beside updates is ours.
//!
//! [TM19]: crate::papers#tm19

use std::any::Any;
use std::sync::Arc;

use super::TupleMerge;
use super::offline::{self, Outline};
use crate::engine::tuple_space::{
    EntryIndex, Hasher, Mark, Placement, TableNumber, TupleEngine, TupleSpace,
};
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::{Monitor, unwatched};
use crate::reoptimise::{Contents, Drift, LookupPlan, Reoptimise, Snapshot};
use crate::rule::RuleId;
use crate::sort::sort;

/// Steps made with each change while a plan is being installed.
pub(super) const STEPS: usize = 4;

/// Ids copied to a plan, as much work as a step.
const COPIED: usize = 8;

/// Records looked at with each look.
const LOOKED_AT: usize = 1 << 9;

/// Rules whose lookups are counted for [`cost`].
const SAMPLES: usize = 256;

/// Outlines of rules, copied some at a time.
struct Outlines<const W: usize> {
    hasher: Hasher<W>,
    limit: usize,
    /// The next record to look at.
    record: usize,
    rules: Vec<Outline<W>>,
}

/// The tables, each with its mask and the rules that were selected for it.
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
            monitor.work(1 + table.len() / COPIED)?;
        }
        Ok(Arc::new(Plan::<W>(tables)))
    }
}

/// How far a plan is installed.
#[derive(Debug, Default)]
pub(super) struct Installing {
    plan: Option<LookupPlan>,
    /// The plan's table, and the rule in it, that is next.
    planned: (usize, usize),
    /// The next record to look at when the plan's rules have been moved.
    record: usize,
    /// The plan that is to be installed then.
    waiting: Option<LookupPlan>,
}

impl Installing {
    /// Records have moved: the walk over them begins again. Rules that have
    /// moved already are in no draining table.
    pub(super) fn start_again(&mut self) {
        self.record = 0;
    }
}

/// The mean number of tables that a lookup of a rule probes, and rules that it
/// compares, counted for some of the rules.
pub(super) fn cost<const W: usize>(space: &TupleSpace<W>) -> f64 {
    let records = space.records();
    let (mut sum, mut count) = (0, 0_u32);
    for sample in 0..SAMPLES {
        let range = sample * records / SAMPLES..(sample + 1) * records / SAMPLES;
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
        // What a lookup of the first rule will cost: a table and a rule.
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

    /// Makes a step; `None` when all are made.
    fn install_next<const W: usize>(
        &mut self,
        space: &mut TupleSpace<W>,
        plan: &Plan<W>,
    ) -> Option<()> {
        let (table, at) = self.installing.planned;
        if let Some((_, rules)) = plan.0.get(table) {
            self.installing.planned = if at + 1 < rules.len() {
                (table, at + 1)
            } else {
                (table + 1, 0)
            };
            if let Some(entry) = rules.get(at).and_then(|&id| space.find(id)) {
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
            let from = space.table_of(entry);
            if space.mark(from) == Mark::Draining {
                unwatched(|monitor| {
                    space.unlink(entry, monitor)?;
                    self.place(space, entry, monitor)
                });
                space.drop_if_empty(from);
            }
        }
        Some(())
    }

    /// Moves a rule to its table of the plan, if it can be there.
    fn move_as_planned<const W: usize>(
        &self,
        space: &mut TupleSpace<W>,
        entry: EntryIndex,
        turn: usize,
    ) {
        let (from, limit) = (space.table_of(entry), self.settings.offline_limit);
        let to = space
            .tables()
            .find(|&(table, _)| space.mark(table) == Mark::Planned(turn))
            .filter(|(table, mask)| {
                space.mark(from) == Mark::Draining
                    && space.entry(entry).fits(mask)
                    && space.chain(*table, entry).take(limit).count() < limit
            });
        if let Some((to, _)) = to {
            unwatched(|monitor| {
                space.unlink(entry, monitor)?;
                space.link(to, entry, monitor)
            });
            space.drop_if_empty(from);
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

    /// Makes a plan's tables, into which rules move from all others.
    fn begin_installing<const W: usize>(&mut self, space: &mut TupleSpace<W>, plan: &Plan<W>) {
        let tables: Vec<TableNumber> = space.tables().map(|(table, _)| table).collect();
        for table in tables {
            space.set_mark(table, Mark::Draining);
        }
        for (turn, (mask, _)) in plan.0.iter().enumerate() {
            let table = unwatched(|monitor| space.new_table(*mask, monitor));
            space.set_mark(table, Mark::Planned(turn));
        }
        self.installing.planned = (0, 0);
        self.installing.record = 0;
    }
}

impl<const W: usize> Reoptimise for TupleEngine<W, TupleMerge> {
    fn drift(&self) -> Drift {
        Drift {
            now: cost(&self.space),
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
        let end = space.records();
        let to = end.min(outlines.record + LOOKED_AT);
        let seen = (outlines.record.min(to)..to).filter_map(|record| space.record(record));
        outlines
            .rules
            .extend(seen.map(|entry| Outline::of(space, entry)));
        outlines.record = to;
        if to < end {
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
