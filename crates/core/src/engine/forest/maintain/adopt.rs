//! Adopting a plan in place, some steps with each update.
//!
//! # Idea
//! A plan is a list of masks for the root. Its tables are made beside those of
//! now and linked into the same chain, so lookups need to know nothing: they visit
//! old and new tables alike, the best first. The old tables are *draining*: they
//! accept no rule, and their rules are moved out, in the order of their entries in
//! `places`, by the very steps of a removal and an insertion. The last rule of an
//! old table takes the table along. Updates change the entries of other rules,
//! too, and a walk over them may miss some: another walk follows as long as old
//! tables have rules.
//!
//! ```text
//! MakeSlots      slots of the new tables, 256 KB at a time; lookups see nothing
//! MoveRules      root ─▶ new ─▶ old ─▶ new ─▶ old        by best rule
//!                         ▲       │ a few rules with each update
//!                         └───────┘
//! MarkConflicts  slot by slot
//! CountCost      what lookups cost now: the baseline of the next drift
//! ```
//!
//! A plan that comes meanwhile waits, so there are never more than two lists of
//! masks in the chain, and a lookup costs at most what it does in both.
//!
//! # Cost
//! [`STEPS`] steps with each update: a step is a rule moved, or so. What an
//! update or a move costs beyond that (a run that is split is learned on, a
//! long run is copied) counts as more steps, so an update does not split twice.
//! No step depends on the number of rules. All is a function of the operations
//! so far: classifiers that did the same are the same.

use std::sync::Arc;

use super::drift::{Baseline, SAMPLES, Tally};
use super::plan::RootPlan;
use crate::engine::forest::conflicts::Marking;
use crate::engine::forest::grow::Growth;
use crate::engine::forest::slot::Place;
use crate::engine::forest::structure::{Role, Structure, Table};
use crate::engine::forest::update;
use crate::rule::RuleId;

/// Steps with each update. A rule that moves is removed and inserted: with eight
/// an update takes 5 microseconds in the mean at 64k rules, and 1.5 before (Zen 4,
/// November 2026, `bench --reoptimise`). All have moved after an eighth as many
/// updates as there are rules; marking takes as many again, or twice as many.
pub(crate) const STEPS: usize = 8;

/// Rules of a run, copied when one comes or goes, that count as a step.
const COPIED: usize = 32;

/// Slots made that count as a step: the first use of a page of memory costs
/// more than writing to it.
const MADE: usize = 1 << 12;

/// Slots made at a time: 256 KB.
const MAKING: usize = 1 << 15;

/// Rules whose conflicts are looked for in one step.
const MARKED: usize = 4;

/// Entries looked at for a rule to move in one step.
const LOOKED_AT: usize = 64;

/// The plan that is being adopted, if any, and the one that is next.
#[derive(Debug)]
pub(crate) struct Adoption<const W: usize> {
    task: Option<Task<W>>,
    waiting: Option<Arc<RootPlan<W>>>,
}

/// A plan on its way in.
#[derive(Debug)]
struct Task<const W: usize> {
    plan: Arc<RootPlan<W>>,
    stage: Stage<W>,
}

#[derive(Debug)]
enum Stage<const W: usize> {
    /// The new tables; slots are made for this one.
    MakeSlots {
        tables: Vec<Table<W>>,
        at: usize,
    },
    /// Entries before this one have been looked at, in this walk.
    MoveRules {
        entry: usize,
    },
    MarkConflicts {
        marking: Marking,
    },
    CountCost {
        tally: Tally,
        sample: usize,
    },
}

/// The parts of a forest that adopting changes.
pub(crate) struct Parts<'a, const W: usize> {
    pub(crate) structure: &'a mut Structure<W>,
    pub(crate) growth: &'a mut Growth<W>,
    pub(crate) baseline: &'a mut Baseline,
    /// Whether conflicts are marked.
    pub(crate) marks: bool,
}

impl<const W: usize> Adoption<W> {
    /// Nothing to adopt.
    pub(crate) fn none() -> Adoption<W> {
        Adoption {
            task: None,
            waiting: None,
        }
    }

    /// Begins to adopt a plan, with `rules` rules at present, or keeps it for
    /// later.
    pub(crate) fn begin(&mut self, plan: Arc<RootPlan<W>>, rules: usize) {
        if self.task.is_some() {
            self.waiting = Some(plan);
            return;
        }
        let tables = (plan.tables.iter())
            .map(|planned| Table::without_slots(planned.mask, planned.slots(rules, plan.rules)))
            .collect();
        let stage = Stage::MakeSlots { tables, at: 0 };
        self.task = Some(Task { plan, stage });
    }

    /// Whether a plan is being adopted.
    pub(crate) fn is_under_way(&self) -> bool {
        self.task.is_some()
    }

    /// What is being done.
    pub(crate) fn describe(&self) -> &'static str {
        match self.task.as_ref().map(|task| &task.stage) {
            None => "installed",
            Some(Stage::MakeSlots { .. }) => "making slots",
            Some(Stage::MoveRules { .. }) => "moving rules",
            Some(Stage::MarkConflicts { .. }) => "marking conflicts",
            Some(Stage::CountCost { .. }) => "counting cost",
        }
    }

    /// Bytes held beside the structure.
    pub(crate) fn bytes(&self) -> usize {
        match self.task.as_ref().map(|task| &task.stage) {
            Some(Stage::MakeSlots { tables, .. }) => tables.iter().map(Table::bytes).sum(),
            Some(Stage::MarkConflicts { marking }) => marking.bytes(),
            Some(Stage::MoveRules { .. } | Stage::CountCost { .. }) | None => 0,
        }
    }

    /// Does `steps` steps, or as many as are left.
    pub(crate) fn run(&mut self, parts: &mut Parts<'_, W>, steps: usize) {
        let mut left = steps;
        while left > 0
            && let Some(mut task) = self.task.take()
        {
            if let Some(spent) = task.step(parts) {
                self.task = Some(task);
                left = left.saturating_sub(spent + parts.growth.take_extra_steps());
            } else if let Some(plan) = self.waiting.take() {
                self.begin(plan, parts.structure.len());
            }
        }
    }
}

impl<const W: usize> Task<W> {
    /// Does a piece of the work; returns the steps that it counts as, `None`
    /// when all is done.
    fn step(&mut self, parts: &mut Parts<'_, W>) -> Option<usize> {
        match &mut self.stage {
            Stage::MakeSlots { tables, at } => {
                let Some(table) = tables.get_mut(*at) else {
                    add_tables(parts.structure, std::mem::take(tables));
                    self.stage = Stage::MoveRules { entry: 0 };
                    return Some(1);
                };
                let before = table.slot_count();
                let more = table.add_slots(MAKING);
                let made = table.slot_count() - before;
                *at += usize::from(!more);
                Some(1 + made / MADE)
            }
            Stage::MoveRules { entry } => {
                if move_next(parts, entry) || *entry > 0 {
                    return Some(1);
                }
                if !parts.structure.has_draining_rules() {
                    parts.structure.settle_root();
                    parts.baseline.rules = parts.structure.len();
                    parts.baseline.predicted = self.plan.predicted;
                    let marking = Marking::begin(parts.structure, parts.marks);
                    self.stage = Stage::MarkConflicts { marking };
                }
                Some(1)
            }
            Stage::MarkConflicts { marking } => {
                let Some(rules) = marking.step(parts.structure) else {
                    marking.end(parts.structure);
                    self.stage = Stage::CountCost {
                        tally: Tally::default(),
                        sample: 0,
                    };
                    return Some(1);
                };
                Some(1 + rules / MARKED)
            }
            Stage::CountCost { tally, sample } => {
                if *sample < SAMPLES {
                    tally.add(parts.structure, *sample);
                    *sample += 1;
                    return Some(1);
                }
                // Masks learned from other rules than those that are there now
                // must not pass for the best that could be learned.
                let counted = &mut parts.baseline.counted;
                let is_fit = self.plan.learned && !self.plan.is_out_of_date(parts.structure);
                *counted = if is_fit {
                    tally.mean()
                } else {
                    tally.mean().min(*counted)
                };
                None
            }
        }
    }
}

/// Adds the tables of a plan to the root. The others are drained.
fn add_tables<const W: usize>(structure: &mut Structure<W>, tables: Vec<Table<W>>) {
    structure.drain_root();
    for (order, table) in (0..).zip(tables) {
        structure.add(table.of_chain(Place::ROOT, order).in_role(Role::Incoming));
    }
}

/// Looks at entries from one on for a rule of a draining table, and moves the
/// first that there is. After the last entry, the walk is at 0 again: rules whose
/// entries came to be before it were missed. Says whether a rule was moved.
fn move_next<const W: usize>(parts: &mut Parts<'_, W>, entry: &mut usize) -> bool {
    let end = parts.structure.entries();
    let to = end.min(*entry + LOOKED_AT);
    while *entry < to {
        let found = parts.structure.entry(*entry);
        *entry += 1;
        if let Some((id, place)) = found
            && parts.structure.role_in_root(place.table) == Role::Draining
        {
            move_rule(parts, id, place);
            return true;
        }
    }
    if *entry >= end {
        *entry = 0;
    }
    false
}

/// Moves a rule to a table that accepts it.
fn move_rule<const W: usize>(parts: &mut Parts<'_, W>, id: RuleId, place: Place) {
    let structure = &mut *parts.structure;
    let rule = structure.find_at(id, place);
    let (run, at) = rule.in_run();
    let mut row = Vec::with_capacity(structure.shape().columns());
    structure.push_row(run, at, &mut row);
    update::take_out(structure, rule);
    update::insert(structure, parts.growth, &row, None);
    parts.growth.add_extra_steps(usize::from(run.len) / COPIED);
}

/// Where the walk over the entries is, if rules are being moved.
#[cfg(test)]
impl<const W: usize> Adoption<W> {
    pub(crate) fn walk(&self) -> Option<usize> {
        match self.task.as_ref()?.stage {
            Stage::MoveRules { entry } => Some(entry),
            _ => None,
        }
    }
}
