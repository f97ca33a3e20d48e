//! Prefetches what a group of changes will read.
//!
//! # Idea
//! A change reads the entry of its rule, then a slot, then a run. In a large forest,
//! each of them is a cache miss, and the address of each is in the memory before. One
//! change after the other would wait for three misses each. So, before a group of
//! changes is made, its memory is requested in passes: the entries of all changes,
//! then all slots, then all runs. The misses of a pass overlap.
//!
//! Passes only read. An earlier change of the group may move the rule of a later
//! change; then the later change waits for its memory as a single change does.
//!
//! # Cost
//! A pass over the tables of the root for each inserted rule, as inserting it takes
//! again. That is more than it saves while the forest is in the second-level cache, so
//! forests of few rules have no passes.

use super::outline::Outline;
use super::slot::{Bucket, Place, TableNumber};
use super::structure::Structure;
use super::update;
use crate::model::rule::{RuleId, RuleRef};
use crate::model::transaction::Change;
use crate::parts::simd::prefetch;

/// The number of changes in a group. With more, the memory of the first changes might
/// leave the first-level cache before it is used.
pub(super) const GROUP_CHANGES: usize = 16;

/// Forests of fewer rules have no passes. Builds with debug assertions, as for tests, have
/// them for small forests too, so that long random streams of changes run them.
const MIN_RULES: usize = if cfg!(debug_assertions) { 16 } else { 8192 };

/// Cache lines of a run that are prefetched: eight rules of five words each. Later
/// lines are read in sequence, which processors prefetch by themselves.
const RUN_LINES: usize = 5;

/// Words in a cache line.
const LINE_WORDS: usize = 8;

/// Prefetches the entries of the changed rules, and the rules that are inserted.
pub(super) fn prefetch_entries<const W: usize>(structure: &Structure<W>, changes: &[Change<'_>]) {
    if structure.len() < MIN_RULES {
        return;
    }
    for change in changes {
        structure.prefetch_entry(change.id());
        if let Change::Insert(rule) | Change::Modify(rule) = change {
            prefetch(&rule.value()[0]);
        }
    }
}

/// The changes of a group, and working memory.
#[derive(Default)]
pub(super) struct LookAhead<const W: usize> {
    /// The words of a row.
    columns: usize,
    /// The rows of the inserted rules, in order.
    rows: Vec<u64>,
    /// For each inserted rule a table of the root that fits it.
    roots: Vec<Option<TableNumber>>,
    steps: Vec<Step<W>>,
}

/// Where the search for a rule's run has come to.
#[derive(Clone, Copy)]
struct Step<const W: usize> {
    /// The slot, which is prefetched.
    place: Place,
    /// The rule, if it is inserted: then nested tables may follow.
    inserted: Option<Outline<W>>,
}

impl<const W: usize> Step<W> {
    /// Begins at the slot of an inserted rule in the tables below `parent`.
    fn below(structure: &Structure<W>, parent: Place, rule: Outline<W>) -> Option<Step<W>> {
        let table = update::first_fitting(structure, &rule, parent)?;
        Some(Step::at(
            structure,
            structure.place_in(table, &rule),
            Some(rule),
        ))
    }

    /// Begins at the slot of the run of an existing rule.
    fn at_rule(structure: &Structure<W>, id: RuleId) -> Option<Step<W>> {
        Some(Step::at(structure, structure.place_of(id)?, None))
    }

    fn at(structure: &Structure<W>, place: Place, inserted: Option<Outline<W>>) -> Step<W> {
        structure.prefetch_slot(place);
        Step { place, inserted }
    }
}

impl<const W: usize> LookAhead<W> {
    /// Prefetches the slots and runs that a group of changes will read, after
    /// [`prefetch_entries`].
    pub(super) fn prefetch(&mut self, structure: &Structure<W>, changes: &[Change<'_>]) {
        self.rows.clear();
        self.roots.clear();
        self.columns = structure.shape().columns();
        if structure.len() < MIN_RULES || changes.len() < 2 {
            return;
        }
        for change in changes {
            let step = match change {
                Change::Insert(rule) => self.begin_inserting(structure, rule),
                Change::Remove(_) | Change::Modify(_) => Step::at_rule(structure, change.id()),
            };
            self.steps.extend(step);
        }
        while !self.steps.is_empty() {
            self.next_steps(structure);
        }
    }

    /// For each rule that the group inserts, in order: its row, and a table of the root
    /// that fits it. Nothing if the group is made without prefetching.
    pub(super) fn inserted(&self) -> impl Iterator<Item = (&[u64], Option<TableNumber>)> {
        let rows = self.rows.chunks(self.columns.max(1));
        rows.zip(self.roots.iter().copied())
    }

    fn begin_inserting(&mut self, structure: &Structure<W>, rule: &RuleRef<'_>) -> Option<Step<W>> {
        let start = self.rows.len();
        structure.shape().push_row(rule, &mut self.rows);
        let rule = structure.outline(&self.rows[start..]);
        let step = Step::below(structure, Place::ROOT, rule);
        self.roots.push(step.map(|step| step.place.table));
        step
    }

    /// Prefetches the runs in the slots. Steps whose slot has nested tables go on to a
    /// slot of these; the others end.
    fn next_steps(&mut self, structure: &Structure<W>) {
        self.steps.retain_mut(|step| {
            let next = match structure.slot(step.place).bucket() {
                Bucket::Empty => None,
                Bucket::Run(run) => {
                    let lines = structure.run(run).chunks(LINE_WORDS);
                    lines.take(RUN_LINES).for_each(|line| prefetch(&line[0]));
                    None
                }
                Bucket::Nested(_) => {
                    let rule = step.inserted;
                    rule.and_then(|rule| Step::below(structure, step.place, rule))
                }
            };
            if let Some(next) = next {
                *step = next;
            }
            next.is_some()
        });
    }
}
