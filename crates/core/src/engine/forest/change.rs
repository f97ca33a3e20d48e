//! One rule comes or goes.

use std::sync::Arc;

use super::adopt::{PlannedTable, RootPlan};
use super::learn::{ALLOWANCE, Outline, serves};
use super::places::Place;
use super::runs::{MAX_RUN, Run, Runs};
use super::table::{Bucket, Role, Slot, Table, TableNumber};
use super::tree::{Forest, Rows};
use crate::rule::{Priority, RuleId, RuleRef, Winner};

/// A node with fewer rules becomes a run again.
const FOLDED: usize = 6;

/// A forest of up to this many rules is learned anew when it has doubled, or
/// shrunk to a quarter.
const SMALL: usize = 128;

/// The number of rules from which that counts: fewer are as quick to scan.
const LEAST: usize = 32;

/// The number of rules from which it is worth to shrink.
const FEWEST: usize = 8;

/// A forest of one rule in this many of those it was made for gets smaller
/// tables.
const SHRUNK: usize = 4;

/// Words of learning without a result that each update pays off: about a
/// microsecond.
const PAID_OFF: usize = 2000;

/// Slots looked at with each removal while a bound is stale.
const TIGHTENED: usize = 16;

/// Words of the slots of a table that is gone that are freed with each update:
/// 256 KB.
const FREED: usize = 1 << 15;

impl<const W: usize> Forest<W> {
    /// Adds a rule whose id is free.
    pub(super) fn insert(&mut self, rule: &RuleRef<'_>) {
        let mut row = Vec::with_capacity(self.shape.columns());
        self.shape.push_row(rule, &mut row);
        self.changes += 1;
        self.insert_row(&row);
        if self.len() <= SMALL && self.len() > 2 * self.learned.max(LEAST) {
            self.relearn_few();
        }
        self.tidy();
    }

    /// Begins to give back the memory of tables that were made for many more
    /// rules: those of now move to tables with the same masks and fewer slots,
    /// as they would if a plan were adopted.
    fn shrink_if_due(&mut self) {
        if self.learned < SHRUNK * self.len().max(FEWEST) {
            return;
        }
        if self.len() <= SMALL {
            self.relearn_few();
        } else if self.adoption.is_none() {
            let plan = self.plan_in_place();
            self.adopt(Arc::new(plan));
        }
    }

    /// The plan that the root's tables follow, for the rules of now.
    fn plan_in_place(&self) -> RootPlan<W> {
        let root = self.chain(self.root);
        let root = root.map(|number| &self.tables[number.index()]);
        let (scanned, masked): (Vec<_>, Vec<_>) = root.partition(|table| table.mask == [0; W]);
        let mut masked: Vec<&Table<W>> = masked;
        masked.sort_by_key(|table| table.turn);
        let planned = |table: &&Table<W>| PlannedTable {
            mask: table.mask,
            keys: table.filled,
            spread: 1,
        };
        RootPlan {
            tables: masked.iter().map(planned).collect(),
            predicted: self.predicted,
            rules: self.len(),
            unserved: scanned.iter().map(|table| table.rules).sum(),
        }
    }

    /// Does some of the work that updates put off.
    pub(super) fn tidy(&mut self) {
        self.debt = self.debt.saturating_sub(PAID_OFF);
        self.tidy_runs(Runs::tidy);
        self.free_slots();
    }

    /// Moves runs together, all at once, if the next change could not address
    /// the words that it may append. Every run's rules must have their places.
    fn make_room(&mut self) {
        if self.runs.is_short_of_room() {
            self.tidy_runs(Runs::compact);
        }
    }

    /// Does what moves runs, and tells slots where theirs have gone.
    fn tidy_runs(&mut self, tidy: impl FnOnce(&mut Runs, &mut dyn FnMut(u64, Run))) {
        let Forest {
            runs,
            tables,
            places,
            ..
        } = self;
        tidy(runs, &mut |rank, run| {
            let id = Winner::from_rank(rank).rule().expect("a rule's rank");
            let Place { table, slot } = places.get(id).expect("rules in runs have places");
            let table = &mut tables[table.index()];
            let held = table.get(slot);
            let moved = Slot::new(Bucket::Run(run), held.signature());
            table.set(slot, moved.with_rivals(held.rivals()));
        });
    }

    /// Frees some of the memory of tables that are gone.
    fn free_slots(&mut self) {
        if let Some(slots) = self.leftover.last_mut() {
            let keep = slots.capacity().saturating_sub(FREED);
            if keep == 0 {
                self.leftover.pop();
            } else {
                // A vector keeps room for what it holds.
                slots.truncate(keep);
                slots.shrink_to(keep);
            }
        }
    }

    pub(super) fn insert_row(&mut self, row: &[u64]) {
        self.make_room();
        let outline = self.outline(row);
        let rank = row[0];
        let (mut parent, mut parent_slot) = (TableNumber::NONE, 0);
        loop {
            let number = self.table_for(&outline, parent, parent_slot);
            let table = &mut self.tables[number.index()];
            table.rules += 1;
            table.found = table.found.min(rank);
            table.unmarked = table.unmarked.min(rank);
            table.came = table.came.min(rank);
            let hash = table.hash(&outline.value, &self.secrets);
            let index = table.slot(hash);
            let slot = table.get(index);
            let signature = slot.signature() | 1 << table.sign(hash);
            let best = table.best.min(rank);
            self.set_best(number, best);
            let bucket = match slot.bucket() {
                Bucket::Empty => {
                    self.place(rank, number, index);
                    Bucket::Run(self.runs.create([row].into_iter()))
                }
                Bucket::Run(run) if self.is_to_be_split(run) => self.split(run, row, number, index),
                Bucket::Run(run) => {
                    self.place(rank, number, index);
                    Bucket::Run(self.runs.insert(run, row))
                }
                Bucket::Node(_) => {
                    let table = &mut self.tables[number.index()];
                    table.set(index, Slot::new(table.get(index).bucket(), signature));
                    (parent, parent_slot) = (number, index);
                    continue;
                }
            };
            self.tables[number.index()].set(index, Slot::new(bucket, signature));
            return;
        }
    }

    /// Whether a run is so long that splitting it is worth a try. Where that
    /// failed, the next try comes when it has doubled, and none anywhere before
    /// the failure is paid off: a run whose length goes up and down around a
    /// power of two would be learned on with each turn.
    fn is_to_be_split(&self, run: Run) -> bool {
        let len = usize::from(run.len);
        let most = self.settings.most;
        len >= MAX_RUN
            || self.debt == 0
                && len >= most
                && len.is_multiple_of(most)
                && (len / most).is_power_of_two()
    }

    /// The table of a node that a rule goes to: the first learned of those that
    /// serve it, a new one that serves all if there is none.
    fn table_for(
        &mut self,
        outline: &Outline<W>,
        parent: TableNumber,
        parent_slot: u32,
    ) -> TableNumber {
        let chain = self.chain(self.first_of(parent, parent_slot));
        let serving = chain.filter(|number| {
            let table = &self.tables[number.index()];
            table.role != Role::Leaving && serves(outline, &table.mask) && !self.is_full(table)
        });
        if let Some(first) = serving.min_by_key(|number| self.tables[number.index()].turn) {
            return first;
        }
        let mut table = Table::new([0; W], 1);
        table.parent = parent;
        table.parent_slot = parent_slot;
        table.turn = u32::MAX;
        let number = self.add_table(table);
        self.link(number);
        number
    }

    /// Whether a table is a single run with no room and no hope of a split.
    fn is_full(&self, table: &Table<W>) -> bool {
        table.slot_count() == 1 && usize::from(table.get(0).length()) == MAX_RUN
    }

    /// Makes a node of a run with one more rule, or a longer run where no mask
    /// tells its rules apart.
    fn split(&mut self, run: Run, row: &[u64], table: TableNumber, slot: u32) -> Bucket {
        let mut words = Vec::with_capacity((usize::from(run.len) + 1) * row.len());
        for rule in 0..usize::from(run.len) {
            self.runs.push_row(run, rule, &mut words);
        }
        words.extend_from_slice(row);
        let columns = row.len();
        let rows = Rows {
            words: &words,
            columns,
        };
        self.runs.release(run);
        self.tables[table.index()].set(slot, Slot::EMPTY);
        let members = (0..u32::try_from(rows.len()).expect("a run is short")).collect();
        self.allowance = Some(if self.debt == 0 { ALLOWANCE } else { 0 });
        let bucket = self.grow_bucket(&rows, members, table, slot, false);
        self.allowance = None;
        bucket
    }

    /// Removes a rule; says whether it was there.
    pub(super) fn remove(&mut self, id: RuleId) -> bool {
        self.make_room();
        let Some(place) = self.places.remove(id) else {
            return false;
        };
        self.changes += 1;
        self.take_out(id, place, |_, _, _| {});
        self.tidy();
        self.shrink_if_due();
        true
    }

    /// Takes a rule out of its run; `look` sees it there before.
    pub(super) fn take_out(
        &mut self,
        id: RuleId,
        place: Place,
        look: impl FnOnce(&Runs, Run, usize),
    ) {
        let Place { table, slot } = place;
        let held = self.tables[table.index()].get(slot);
        let Bucket::Run(run) = held.bucket() else {
            unreachable!("rules are in runs");
        };
        let at = self.rule_in(run, id);
        let rank = self.runs.ranks(run)[at];
        look(&self.runs, run, at);
        let left = self.runs.remove(run, at).map_or(Bucket::Empty, Bucket::Run);
        let left = Slot::new(left, held.signature()).with_rivals(held.rivals());
        self.tables[table.index()].set(slot, left);
        self.count_down(table, rank);
    }

    /// Appends a rule's packed words and returns its priority, if it is there.
    pub(super) fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        let Place { table, slot } = self.places.get(id)?;
        let Bucket::Run(run) = self.tables[table.index()].get(slot).bucket() else {
            unreachable!("rules are in runs");
        };
        let mut row = Vec::with_capacity(self.shape.columns());
        self.runs.push_row(run, self.rule_in(run, id), &mut row);
        words.extend(self.shape.unpack(&self.schema, &row));
        Winner::from_rank(row[0]).priority()
    }

    /// Which of a run's rules has that id.
    pub(super) fn rule_in(&self, run: Run, id: RuleId) -> usize {
        let is_it = |&rank: &u64| Winner::from_rank(rank).rule() == Some(id);
        let at = self.runs.ranks(run).iter().position(is_it);
        at.expect("the rule is in its run")
    }

    /// A rule of that rank is gone from a table: tells the tables above, drops
    /// what became empty, folds what became small.
    fn count_down(&mut self, table: TableNumber, rank: u64) {
        let mut number = table;
        let mut to_fold = None;
        while number != TableNumber::NONE {
            let table = &mut self.tables[number.index()];
            let (parent, parent_slot) = (table.parent, table.parent_slot);
            table.rules -= 1;
            table.stale |= table.best == rank;
            if table.found == rank {
                table.scanned = 0;
            }
            if table.rules == 0 && table.role == Role::Coming {
                (table.stale, table.scanned, table.found) = (false, 0, u64::MAX);
                self.set_best(number, u64::MAX);
            } else if table.rules == 0 {
                self.drop_table(number);
            } else if table.stale {
                self.tighten(number);
            }
            if parent != TableNumber::NONE && self.is_small_node(parent, parent_slot) {
                to_fold = Some((parent, parent_slot));
            }
            number = parent;
        }
        if let Some((parent, slot)) = to_fold {
            self.fold(parent, slot);
        }
    }

    /// Takes an empty table away.
    pub(super) fn drop_table(&mut self, number: TableNumber) {
        self.unlink(number);
        let slots = self.tables[number.index()].take_slots();
        if slots.capacity() > FREED {
            self.leftover.push(slots);
        }
        self.tables.remove(number);
    }

    /// Goes on with making the bound of a table exact again: looks at some
    /// slots, and takes the best rank seen when all have been looked at. Rules
    /// that come meanwhile count at once.
    fn tighten(&mut self, number: TableNumber) {
        let table = &self.tables[number.index()];
        let slots = table.slot_count();
        let to = slots.min(table.scanned + TIGHTENED);
        let bests = table.slots_in(table.scanned..to);
        let bests = bests.filter_map(|slot| match slot.bucket() {
            Bucket::Empty => None,
            Bucket::Run(run) => Some(self.runs.ranks(run)[0]),
            Bucket::Node(first) => Some(self.tables[first.index()].best),
        });
        let seen = if table.scanned == 0 {
            u64::MAX
        } else {
            table.found
        };
        let found = bests.min().unwrap_or(u64::MAX).min(seen);
        let table = &mut self.tables[number.index()];
        if to < slots {
            (table.scanned, table.found) = (to, found);
            return;
        }
        table.stale = false;
        (table.scanned, table.found) = (0, u64::MAX);
        self.set_best(number, found);
    }

    fn is_small_node(&self, parent: TableNumber, slot: u32) -> bool {
        let first = self.first_of(parent, slot);
        let mut rules = 0;
        for number in self.chain(first) {
            rules += self.tables[number.index()].rules;
            if rules > FOLDED {
                return false;
            }
        }
        rules > 0
    }

    /// Makes a run of a small node.
    fn fold(&mut self, parent: TableNumber, slot: u32) {
        let mut words = Vec::new();
        let first = self.first_of(parent, slot);
        self.take_down(first, &mut words);
        let columns = self.shape.columns();
        let rows = Rows {
            words: &words,
            columns,
        };
        let mut order: Vec<u32> =
            (0..u32::try_from(rows.len()).expect("a node is small")).collect();
        order.sort_unstable_by_key(|&index| rows.row(index)[0]);
        let run = self.runs.create(order.iter().map(|&index| rows.row(index)));
        let mut signature = 0;
        for &index in &order {
            let row = rows.row(index);
            let table = &self.tables[parent.index()];
            signature |= 1 << table.sign(table.hash(&self.outline(row).value, &self.secrets));
            self.place(row[0], parent, slot);
        }
        self.tables[parent.index()].set(slot, Slot::new(Bucket::Run(run), signature));
    }

    /// Frees a node's tables and runs, and appends its rules as rows.
    fn take_down(&mut self, first: TableNumber, words: &mut Vec<u64>) {
        let numbers: Vec<TableNumber> = self.chain(first).collect();
        for number in numbers {
            let slots: Vec<Slot> = self.tables[number.index()].slots().collect();
            for slot in slots {
                match slot.bucket() {
                    Bucket::Empty => {}
                    Bucket::Node(first) => self.take_down(first, words),
                    Bucket::Run(run) => {
                        for rule in 0..usize::from(run.len) {
                            self.runs.push_row(run, rule, words);
                        }
                        self.runs.release(run);
                    }
                }
            }
            self.tables[number.index()].take_slots();
            self.tables.remove(number);
        }
    }
}
