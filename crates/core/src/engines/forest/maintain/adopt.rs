//! Adopting a plan in place, a few steps with each update.
//!
//! # Idea
//! A plan is a list of masks for the root. Its tables are made alongside the present
//! tables and linked into the same chain. So lookups need no additional code: they
//! visit old and new tables alike, best first. The old tables are *draining*: they
//! accept no rule, and their rules are moved out, in the order of their entries in
//! `places`, each by a removal and an insertion. An old table is removed with its
//! last rule. Updates also change the entries of other rules, so a walk over the
//! entries may miss some rules. The walk is repeated while old tables have rules.
//!
//! ```text
//! MakeSlots      slots of the new tables, 256 KB at a time; not yet in the chain
//! MoveRules      root ─▶ new ─▶ old ─▶ new ─▶ old        by best rule
//!                         ▲       │ a few rules with each update
//!                         └───────┘
//! MarkConflicts  slot by slot
//! CountCost      the present lookup cost: the baseline of the next drift
//! ```
//!
//! A plan that arrives during this waits. So the chain never has more than two lists
//! of masks, and a lookup costs at most the sum of a lookup in each.
//!
//! # Cost
//! [`STEPS_PER_UPDATE`] steps with each update; one step moves about one rule. If an
//! update or a move costs more than that, it counts as more steps: splitting a run
//! learns masks, and a long run is copied. So one update never splits twice. No step
//! depends on the number of rules. Everything is a function of the operations so
//! far: two classifiers after the same operations are the same.

use std::sync::Arc;

use super::drift::{Baseline, SAMPLED_RULES, Tally};
use super::plan::RootPlan;
use crate::engines::forest::conflicts::Marking;
use crate::engines::forest::grow::Growth;
use crate::engines::forest::slot::Place;
use crate::engines::forest::structure::{Role, Structure, Table};
use crate::engines::forest::update;
use crate::model::rule::RuleId;

/// Steps with each update. Moving a rule is a removal and an insertion. With eight
/// steps, an update takes 3 to 5 microseconds in the mean at 64k rules (Zen 4,
/// November 2026, `bench --reoptimise`; `docs/forest.md`, Re-optimisation, has the
/// mean and the longest update of nine sets). The number of updates until all rules
/// have moved is an eighth of the number of rules; marking takes once or twice that
/// number.
pub(crate) const STEPS_PER_UPDATE: usize = 8;

/// Rules of a copied run that count as one step. Bounds the copies of an update.
const COPIED_RULES_PER_STEP: usize = 32;

/// Made slots that count as one step: the first access to a page of memory costs
/// more than writing to it. Bounds the memory that an update touches first.
const SLOTS_PER_STEP: usize = 1 << 12;

/// Slots made in one piece: 256 KB. Bounds the work of one update.
const SLOTS_PER_PIECE: usize = 1 << 15;

/// Rules checked for conflicts in one step. Bounds the checks of an update.
const MARKED_RULES_PER_STEP: usize = 4;

/// Entries searched for a rule to move in one step. Bounds the search of an update.
const ENTRIES_PER_STEP: usize = 64;

/// The plan that is being adopted, if any, and the next plan.
#[derive(Debug)]
pub(crate) struct Adoption<const W: usize> {
    task: Option<Task<W>>,
    waiting: Option<Arc<RootPlan<W>>>,
}

/// The adoption of a plan.
#[derive(Debug)]
struct Task<const W: usize> {
    plan: Arc<RootPlan<W>>,
    stage: Stage<W>,
}

#[derive(Debug)]
enum Stage<const W: usize> {
    /// The new tables; `at` is the table that slots are made for.
    MakeSlots {
        tables: Vec<Table<W>>,
        at: usize,
    },
    /// Entries below `entry` have been searched in this walk.
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
    /// True if conflicts are marked.
    pub(crate) marks: bool,
}

impl<const W: usize> Adoption<W> {
    /// Returns an adoption without a plan.
    pub(crate) fn none() -> Adoption<W> {
        Adoption {
            task: None,
            waiting: None,
        }
    }

    /// Starts to adopt a plan, with `rules` rules at present, or keeps it for later.
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

    /// True if a plan is being adopted.
    pub(crate) fn is_under_way(&self) -> bool {
        self.task.is_some()
    }

    /// The name of the current stage.
    pub(crate) fn describe(&self) -> &'static str {
        match self.task.as_ref().map(|task| &task.stage) {
            None => "installed",
            Some(Stage::MakeSlots { .. }) => "making slots",
            Some(Stage::MoveRules { .. }) => "moving rules",
            Some(Stage::MarkConflicts { .. }) => "marking conflicts",
            Some(Stage::CountCost { .. }) => "counting cost",
        }
    }

    /// Bytes held outside of the structure.
    pub(crate) fn bytes(&self) -> usize {
        match self.task.as_ref().map(|task| &task.stage) {
            Some(Stage::MakeSlots { tables, .. }) => tables.iter().map(Table::bytes).sum(),
            Some(Stage::MarkConflicts { marking }) => marking.bytes(),
            Some(Stage::MoveRules { .. } | Stage::CountCost { .. }) | None => 0,
        }
    }

    /// Does `steps` steps, or all remaining steps if there are fewer.
    pub(crate) fn run(&mut self, parts: &mut Parts<'_, W>, steps: usize) {
        let mut steps_left = steps;
        while steps_left > 0
            && let Some(mut task) = self.task.take()
        {
            if let Some(spent) = task.step(parts) {
                self.task = Some(task);
                steps_left = steps_left.saturating_sub(spent + parts.growth.take_extra_steps());
            } else if let Some(plan) = self.waiting.take() {
                self.begin(plan, parts.structure.len());
            }
        }
    }
}

impl<const W: usize> Task<W> {
    /// Does one piece of the work. Returns the number of steps that it counts as, or
    /// `None` when the adoption is complete.
    fn step(&mut self, parts: &mut Parts<'_, W>) -> Option<usize> {
        match &mut self.stage {
            Stage::MakeSlots { tables, at } => {
                let Some(table) = tables.get_mut(*at) else {
                    add_tables(parts.structure, std::mem::take(tables));
                    self.stage = Stage::MoveRules { entry: 0 };
                    return Some(1);
                };
                let before = table.slot_count();
                let is_unfinished = table.add_slots(SLOTS_PER_PIECE);
                let slots_made = table.slot_count() - before;
                *at += usize::from(!is_unfinished);
                Some(1 + slots_made / SLOTS_PER_STEP)
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
                Some(1 + rules / MARKED_RULES_PER_STEP)
            }
            Stage::CountCost { tally, sample } => {
                if *sample < SAMPLED_RULES {
                    tally.add(parts.structure, *sample);
                    *sample += 1;
                    return Some(1);
                }
                // If the masks were learned from other rules than the present rules,
                // their cost must not become the best cost that learning can reach.
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

/// Adds the tables of a plan to the root. The present tables are drained.
fn add_tables<const W: usize>(structure: &mut Structure<W>, tables: Vec<Table<W>>) {
    structure.drain_root();
    for (order, table) in (0..).zip(tables) {
        structure.add(table.of_chain(Place::ROOT, order).in_role(Role::Incoming));
    }
}

/// Searches the entries from `entry` on for a rule of a draining table, and moves
/// the first such rule. After the last entry, `entry` is 0 again; the walk has
/// missed rules that moved to an entry below it. Returns true if a rule was moved.
fn move_next<const W: usize>(parts: &mut Parts<'_, W>, entry: &mut usize) -> bool {
    let entry_count = parts.structure.entries();
    let stop = entry_count.min(*entry + ENTRIES_PER_STEP);
    while *entry < stop {
        let id_and_place = parts.structure.entry(*entry);
        *entry += 1;
        if let Some((id, place)) = id_and_place
            && parts.structure.role_in_root(place.table) == Role::Draining
        {
            move_rule(parts, id, place);
            return true;
        }
    }
    if *entry >= entry_count {
        *entry = 0;
    }
    false
}

/// Moves a rule to a table that accepts it.
fn move_rule<const W: usize>(parts: &mut Parts<'_, W>, id: RuleId, place: Place) {
    let structure = &mut *parts.structure;
    let rule = structure.find_at(id, place);
    let (run, position) = rule.in_run();
    let mut row = Vec::with_capacity(structure.shape().columns());
    structure.push_row(run, position, &mut row);
    update::take_out(structure, rule);
    update::insert(structure, parts.growth, &row, None, None);
    parts
        .growth
        .add_extra_steps(usize::from(run.len) / COPIED_RULES_PER_STEP);
}

/// The position of the walk over the entries, if rules are being moved.
#[cfg(test)]
impl<const W: usize> Adoption<W> {
    pub(crate) fn walk(&self) -> Option<usize> {
        match self.task.as_ref()?.stage {
            Stage::MoveRules { entry } => Some(entry),
            _ => None,
        }
    }
}
