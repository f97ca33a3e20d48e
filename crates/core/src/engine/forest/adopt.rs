//! Adopting a plan in place, some steps with each update.
//!
//! # Idea
//! A plan learned in the background is a list of masks for the root. Its tables
//! are made beside those of now and linked into the same chain, so lookups need
//! to know nothing: they visit old and new tables alike, the best first. From
//! then on rules come to the new tables only, and rules of the old tables move,
//! in the order of their entries in `places`, by the very steps of a removal and
//! an insertion. The last rule of an old table takes the table along. Updates
//! change the entries of other rules, too, and a walk over them may miss some:
//! another walk follows as long as old tables have rules.
//!
//! ```text
//! Making     slots of the new tables, 256 KB at a time; lookups see nothing
//! Moving     root ─▶ new ─▶ old ─▶ new ─▶ old        by best rule
//!                     ▲       │ a few rules with each update
//!                     └───────┘
//! Marking    rivals, slot by slot
//! Measuring  what lookups cost now: the base of the next drift
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
//! so far, as all else here: classifiers that did the same are the same.

use std::sync::Arc;

use super::drift::{SAMPLES, Tally};
use super::learn::Cost;
use super::rivals::Marking;
use super::table::{Role, Table, TableNumber};
use super::tree::Forest;

/// Steps with each update. A rule that moves is removed and inserted: with eight
/// an update takes 5 microseconds in the mean at 64k rules, and 1.5 before (Zen 4,
/// November 2026, `bench --relearn`). All have moved after an eighth as many
/// updates as there are rules; marking takes as many again, or twice as many.
pub(super) const STEPS: usize = 8;

/// Rules learned on, when a run is split, that count as a step.
pub(super) const LEARNED: usize = 4;

/// Rules of a run, copied when one comes or goes, that count as a step.
const COPIED: usize = 32;

/// Slots made that count as a step: the first use of a page of memory costs
/// more than writing to it.
const MADE: usize = 1 << 12;

/// Slots made at a time: 256 KB.
const MAKING: usize = 1 << 15;

/// Rules whose rivals are looked for in one step.
const MARKED: usize = 4;

/// Entries looked at for a rule to move in one step.
const LOOKED_AT: usize = 64;

/// A plan for the root: what is learned in the background.
#[derive(Clone, Debug)]
pub(super) struct RootPlan<const W: usize> {
    pub(super) tables: Vec<PlannedTable<W>>,
    /// What lookups should cost.
    pub(super) predicted: Cost,
    /// Rules there were, and those of them that no mask serves.
    pub(super) rules: usize,
    pub(super) unserved: usize,
}

/// A table of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedTable<const W: usize> {
    pub(super) mask: [u64; W],
    /// Different keys under the mask among the rules.
    pub(super) keys: usize,
    /// Slots for each of them, where few would not be told apart otherwise.
    pub(super) spread: usize,
}

impl<const W: usize> PlannedTable<W> {
    /// Slots where there are `now` rules of `then`.
    fn slots(&self, now: usize, then: usize) -> usize {
        let keys = self.keys as u128 * now as u128 / then.max(1) as u128;
        let keys = usize::try_from(keys)
            .map_or(now, |keys| keys.min(now))
            .max(1);
        keys.next_power_of_two() * self.spread
    }
}

/// A plan on its way in.
#[derive(Debug)]
pub(super) struct Adoption<const W: usize> {
    plan: Arc<RootPlan<W>>,
    stage: Stage<W>,
}

#[derive(Debug)]
enum Stage<const W: usize> {
    /// The new tables; slots are made for this one.
    Making {
        tables: Vec<Table<W>>,
        at: usize,
    },
    /// Entries before this one have been looked at, in this walk.
    Moving {
        entry: usize,
    },
    Marking {
        marking: Marking,
    },
    Measuring {
        tally: Tally,
        sample: usize,
    },
}

impl<const W: usize> Adoption<W> {
    pub(super) fn bytes(&self) -> usize {
        match &self.stage {
            Stage::Making { tables, .. } => tables.iter().map(Table::bytes).sum(),
            Stage::Marking { marking } => marking.bytes(),
            Stage::Moving { .. } | Stage::Measuring { .. } => 0,
        }
    }
}

impl<const W: usize> Forest<W> {
    /// Begins to adopt a plan, or keeps it for later.
    pub(super) fn adopt(&mut self, plan: Arc<RootPlan<W>>) {
        if self.adoption.is_some() {
            self.waiting = Some(plan);
            return;
        }
        let (now, then) = (self.len(), plan.rules);
        let tables = (plan.tables.iter())
            .map(|planned| Table::without_slots(planned.mask, planned.slots(now, then)))
            .collect();
        let stage = Stage::Making { tables, at: 0 };
        self.adoption = Some(Adoption { plan, stage });
    }

    /// Whether a plan is being adopted, for people.
    pub(super) fn adopting(&self) -> &'static str {
        match self.adoption.as_ref().map(|adoption| &adoption.stage) {
            None => "installed",
            Some(Stage::Making { .. }) => "making slots",
            Some(Stage::Moving { .. }) => "moving rules",
            Some(Stage::Marking { .. }) => "marking conflicts",
            Some(Stage::Measuring { .. }) => "measuring",
        }
    }

    /// Whether a plan is being adopted, or memory of an old one is left.
    pub(super) fn is_unfinished(&self) -> bool {
        self.adoption.is_some() || !self.leftover.is_empty()
    }

    /// Does so many steps, less what the update before has cost already.
    pub(super) fn go_on(&mut self, steps: usize) {
        let mut left = steps.saturating_sub(std::mem::take(&mut self.effort));
        if !self.is_unfinished() {
            return;
        }
        while left > 0
            && let Some(mut adoption) = self.adoption.take()
        {
            let spent = self.step(&mut adoption);
            if let Some(spent) = spent {
                self.adoption = Some(adoption);
                left = left.saturating_sub(spent + std::mem::take(&mut self.effort));
            } else if let Some(plan) = self.waiting.take() {
                self.adopt(plan);
            }
        }
        self.tidy();
    }

    /// Does a piece of the work; returns the steps that it counts as, `None`
    /// when all is done.
    fn step(&mut self, adoption: &mut Adoption<W>) -> Option<usize> {
        match &mut adoption.stage {
            Stage::Making { tables, at } => {
                let Some(table) = tables.get_mut(*at) else {
                    let tables = std::mem::take(tables);
                    self.bring_in(tables);
                    adoption.stage = Stage::Moving { entry: 0 };
                    return Some(1);
                };
                let before = table.slot_count();
                let more = table.add_slots(MAKING);
                let made = table.slot_count() - before;
                *at += usize::from(!more);
                Some(1 + made / MADE)
            }
            Stage::Moving { entry } => {
                let end = self.places.entries();
                let to = end.min(*entry + LOOKED_AT);
                while *entry < to {
                    let found = self.places.entry(*entry);
                    *entry += 1;
                    if let Some((id, place)) = found
                        && self.role(place.table) == Role::Leaving
                    {
                        self.move_rule(id);
                        return Some(1);
                    }
                }
                if *entry < end {
                    return Some(1);
                }
                // Rules whose entries came to be before this one were missed.
                *entry = 0;
                if !self.has_leaving_rules() {
                    self.come_to_rest(&adoption.plan);
                    let marking = self.begin_marking();
                    adoption.stage = Stage::Marking { marking };
                }
                Some(1)
            }
            Stage::Marking { marking } => {
                let Some(rules) = self.mark_next(marking) else {
                    self.end_marking(marking);
                    adoption.stage = Stage::Measuring {
                        tally: Tally::default(),
                        sample: 0,
                    };
                    return Some(1);
                };
                Some(1 + rules / MARKED)
            }
            Stage::Measuring { tally, sample } => {
                if *sample < SAMPLES {
                    self.tally(*sample, tally);
                    *sample += 1;
                    return Some(1);
                }
                // A plan of other rules than those that are there now must not
                // pass for the best that could be learned.
                let cost = tally.mean();
                self.cost = if self.is_out_of_date(&adoption.plan) {
                    cost.min(self.cost)
                } else {
                    cost
                };
                None
            }
        }
    }

    /// Links the tables of a plan into the root. The others are to go.
    fn bring_in(&mut self, tables: Vec<Table<W>>) {
        let old: Vec<TableNumber> = self.chain(self.root).collect();
        for number in old {
            self.tables[number.index()].role = Role::Leaving;
        }
        for (turn, mut table) in (0..).zip(tables) {
            table.role = Role::Coming;
            table.turn = turn;
            let number = self.add_table(table);
            self.link(number);
        }
    }

    /// The role of the root's table that a table is in.
    fn role(&self, number: TableNumber) -> Role {
        let parent = |number: &TableNumber| {
            let parent = self.tables[number.index()].parent;
            (parent != TableNumber::NONE).then_some(parent)
        };
        let top = std::iter::successors(Some(number), parent).last();
        self.tables[top.expect("the first at least").index()].role
    }

    /// Whether an old table of the root still has rules.
    fn has_leaving_rules(&self) -> bool {
        let mut root = self
            .chain(self.root)
            .map(|number| &self.tables[number.index()]);
        root.any(|table| table.role == Role::Leaving && table.rules > 0)
    }

    fn move_rule(&mut self, id: crate::rule::RuleId) {
        let place = self.places.get(id).expect("an entry's rule");
        let mut row = Vec::with_capacity(self.shape.columns());
        let mut length = 0;
        self.take_out(id, place, |runs, run, at| {
            runs.push_row(run, at, &mut row);
            length = usize::from(run.len);
        });
        self.insert_row(&row);
        self.effort += length / COPIED;
    }

    /// All rules have moved.
    fn come_to_rest(&mut self, plan: &RootPlan<W>) {
        let root: Vec<TableNumber> = self.chain(self.root).collect();
        for number in root {
            let table = &mut self.tables[number.index()];
            debug_assert!(table.role != Role::Leaving, "an old table has rules");
            table.role = Role::Usual;
            if table.rules == 0 {
                self.drop_table(number);
            }
        }
        self.learned = self.len();
        self.predicted = plan.predicted;
    }

    /// Whether many more rules are scanned than when the plan was learned.
    fn is_out_of_date(&self, plan: &RootPlan<W>) -> bool {
        let root = self
            .chain(self.root)
            .map(|table| &self.tables[table.index()]);
        let scanned = root.filter(|table| table.mask == [0; W]);
        let scanned: usize = scanned.map(|table| table.rules).sum();
        let share = |part: usize, all: usize| part as u128 * 1000 / all.max(1) as u128;
        share(scanned, self.len()) > share(plan.unserved, plan.rules) + 125
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Bucket;
    use super::super::tree::Settings;
    use super::*;
    use crate::classifier::NoProgress;
    use crate::rule::{ActionId, FieldMatch, Priority, RuleId, RuleRef};
    use crate::ruleset::RuleSet;
    use crate::schema::Schema;
    use crate::seed::splitmix;

    /// Rules of different sources; their ids have pages of their own.
    fn rules(count: u32) -> RuleSet {
        let schema = Schema::ipv4_5tuple();
        let mut rules = RuleSet::new(&schema);
        let mut state = 3;
        for number in 0..count {
            let mut fields = [FieldMatch::Any; 5];
            fields[0] = FieldMatch::Exact(u128::from(splitmix(&mut state) >> 32));
            let id = RuleId::new(16 * number).unwrap();
            rules
                .add(id, Priority(number % 7), ActionId(0), &fields)
                .unwrap();
        }
        rules
    }

    /// Where the walk over the entries is, if rules are being moved.
    fn walk(forest: &Forest<2>) -> Option<usize> {
        match forest.adoption.as_ref()?.stage {
            Stage::Moving { entry } => Some(entry),
            _ => None,
        }
    }

    /// A rule that is modified leaves its entry, and the last rule takes it: one
    /// that has not moved yet, and whose new entry the walk has passed.
    #[test]
    fn rules_whose_entries_change_are_moved_all_the_same() {
        let rules = rules(600);
        let settings = Settings {
            target: 2,
            most: 32,
            seed: 5,
            without: None,
        };
        let mut forest = Forest::<2>::new(rules.schema(), settings);
        forest.fill(rules.iter(), &mut NoProgress).unwrap();
        let tables = (forest.chain(forest.root))
            .map(|number| PlannedTable {
                mask: forest.tables[number.index()].mask,
                keys: 600,
                spread: 1,
            })
            .collect();
        forest.adopt(Arc::new(RootPlan {
            tables,
            predicted: Cost::default(),
            rules: 600,
            unserved: 0,
        }));
        let by_id = |id: RuleId| -> RuleRef<'_> {
            let mut found = rules.iter().filter(|rule| rule.id() == id);
            found.next().unwrap()
        };
        let (mut before, mut walks, mut steps) = (0, 0, 0);
        while forest.is_unfinished() {
            forest.go_on(1);
            steps += 1;
            assert!(steps < 20_000, "no end");
            let Some(entry) = walk(&forest) else {
                continue;
            };
            if entry < before {
                assert!(forest.has_leaving_rules(), "a walk for nothing");
                walks += 1;
            }
            before = entry;
            if entry > 0 && walks < 5 {
                let (id, _) = forest.places.entry(entry / 2).unwrap();
                forest.remove(id);
                forest.insert(&by_id(id));
            }
        }
        assert!(walks > 0, "all rules were met the first time");
        assert_eq!(forest.len(), 600);
        for number in forest.chain(forest.root) {
            assert_eq!(forest.tables[number.index()].role, Role::Usual);
        }
        for rule in rules.iter() {
            let place = forest.places.get(rule.id()).unwrap();
            let slot = forest.tables[place.table.index()].get(place.slot);
            let Bucket::Run(run) = slot.bucket() else {
                panic!("rules are in runs");
            };
            let at = forest.rule_in(run, rule.id());
            assert_eq!(forest.runs.ranks(run)[at], rule.winner().rank());
        }
    }
}
