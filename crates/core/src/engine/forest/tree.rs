//! The structure: nodes of tables, built at once or changed rule by rule.

use std::sync::Arc;

use super::learn::{Cost, Learner, Level, Outline, Plan, serves};
use super::lookup::Means;
use super::places::{Place, Places};
use super::runs::{MAX_RUN, Run, Runs};
use super::table::{Bucket, Slot, Table, TableNumber};
use super::{Ingredient, RowShape};
use crate::classifier::{Progress, Stats, report};
use crate::engine::splitmix;
use crate::error::BuildError;
use crate::rule::{RuleId, RuleRef, Winner};
use crate::schema::Schema;

/// What decides the shape of a forest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// The mean number of rules in a bucket that the learner aims at.
    pub(super) target: usize,
    /// The most rules of a run that could be split.
    pub(super) most: usize,
    /// Where the hash functions begin.
    pub(super) seed: u64,
    /// What to go without.
    pub(super) without: Option<Ingredient>,
}

impl Settings {
    fn has(&self, ingredient: Ingredient) -> bool {
        self.without != Some(ingredient)
    }
}

/// A node with fewer rules becomes a run again.
const FOLDED: usize = 6;

/// A node of up to this many rules is learned anew when it has doubled.
const SMALL: usize = 128;

/// Slots looked at with each removal while a bound is stale.
const TIGHTENED: usize = 16;

/// A forest: the root node is the chain of tables that begins at `root`.
pub(super) struct Forest<const W: usize> {
    pub(super) schema: Arc<Schema>,
    pub(super) shape: RowShape,
    pub(super) tables: Vec<Table<W>>,
    pub(super) root: TableNumber,
    pub(super) runs: Runs,
    pub(super) secrets: [u64; W],
    free: Vec<TableNumber>,
    places: Places,
    learner: Learner<W>,
    settings: Settings,
    /// Rules of the root node when it was learned.
    learned: usize,
    /// What lookups were to cost then.
    predicted: Cost,
}

/// Rules on their way into a forest, as rows of columns.
struct Rows<'a> {
    words: &'a [u64],
    columns: usize,
}

impl<'a> Rows<'a> {
    fn row(&self, index: u32) -> &'a [u64] {
        &self.words[index as usize * self.columns..][..self.columns]
    }

    fn len(&self) -> usize {
        self.words.len() / self.columns
    }
}

/// As many slots as there are distinct hashes; more if that would not separate
/// any of them.
fn slots_for(hashed: &[(u64, u32)]) -> usize {
    let distinct = hashed.chunk_by(|a, b| a.0 == b.0).count();
    let mut slots = distinct.next_power_of_two();
    let (Some(&(least, _)), Some(&(most, _))) = (hashed.first(), hashed.last()) else {
        return slots;
    };
    while distinct > 1 && slots < MOST_FOR_FEW && (least ^ most) >> (64 - slots.ilog2()) == 0 {
        slots *= 2;
    }
    slots
}

/// Slots are not made more than this many to separate two hashes.
const MOST_FOR_FEW: usize = 1 << 12;

/// What progress observers are told.
const LEARNING: &str = "learning masks";

impl<const W: usize> Forest<W> {
    pub(super) fn new(schema: &Arc<Schema>, settings: Settings) -> Forest<W> {
        let shape = RowShape::new(schema);
        let mut state = settings.seed;
        let huge = settings.has(Ingredient::Pages);
        Forest {
            schema: Arc::clone(schema),
            runs: Runs::new(shape.columns(), huge),
            shape,
            tables: Vec::new(),
            root: TableNumber::NONE,
            secrets: std::array::from_fn(|_| splitmix(&mut state) | 1),
            free: Vec::new(),
            places: Places::default(),
            learner: Learner::new(
                schema,
                settings.target,
                settings.most,
                settings.has(Ingredient::Masks),
            ),
            settings,
            learned: 0,
            predicted: Cost::default(),
        }
    }

    /// The number of rules.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn contains(&self, id: RuleId) -> bool {
        self.places.get(id).is_some()
    }

    /// Bytes held, spare room included.
    pub(super) fn bytes(&self) -> usize {
        let slots: usize = self.tables.iter().map(Table::bytes).sum();
        self.runs.bytes()
            + self.places.bytes()
            + slots
            + self.tables.capacity() * size_of::<Table<W>>()
            + self.free.capacity() * size_of::<TableNumber>()
    }

    /// The number of tables, nested ones included.
    pub(super) fn tables_in_use(&self) -> usize {
        self.tables.len() - self.free.len()
    }

    /// Counts and sizes.
    pub(super) fn stats(&self, means: Means) -> Stats {
        let rule = self.shape.columns() * size_of::<u64>();
        let rule_bytes = self.len() * rule;
        let root: Vec<TableNumber> = self.chain(self.root).collect();
        let in_root: usize = root.len();
        let lengths = self.tables.iter().flat_map(Table::slots);
        let runs = lengths.filter_map(|slot| match slot.bucket() {
            Bucket::Run(run) => Some(usize::from(run.len)),
            Bucket::Empty | Bucket::Node(_) => None,
        });
        let (count, longest) = runs.fold((0, 0), |(count, longest), len| {
            (count + 1, longest.max(len))
        });
        Stats {
            rules: self.len(),
            tables: self.tables_in_use(),
            rule_bytes,
            index_bytes: self.bytes().saturating_sub(rule_bytes),
            details: vec![
                ("tables of the root", in_root.to_string()),
                ("runs", count.to_string()),
                ("rules in the longest run", longest.to_string()),
                ("words in freed runs", self.runs.free_words().to_string()),
                ("instructions", means.comparing.to_string()),
                ("predicted cost", format!("{:.1} ns", self.predicted.time)),
                ("predicted probes", format!("{:.2}", self.predicted.probes)),
                (
                    "predicted compares",
                    format!("{:.2}", self.predicted.compares),
                ),
            ],
        }
    }

    /// The tables of a node, in the order in which lookups visit them.
    pub(super) fn chain(&self, first: TableNumber) -> impl Iterator<Item = TableNumber> {
        let some = |number: TableNumber| (number != TableNumber::NONE).then_some(number);
        std::iter::successors(some(first), move |number| {
            some(self.tables[number.index()].next)
        })
    }

    fn outline(&self, row: &[u64]) -> Outline<W> {
        Outline {
            value: std::array::from_fn(|word| self.shape.value(row, word)),
            mask: std::array::from_fn(|word| self.shape.mask(row, word)),
            rank: row[0],
        }
    }

    /// Fills an empty forest.
    pub(super) fn fill<'a>(
        &mut self,
        rules: impl ExactSizeIterator<Item = RuleRef<'a>>,
        progress: &mut dyn Progress,
    ) -> Result<(), BuildError> {
        let mut words = Vec::with_capacity(rules.len() * self.shape.columns());
        for rule in rules {
            self.shape.push_row(&rule, &mut words);
        }
        self.fill_rows(&words, progress)
    }

    fn fill_rows(&mut self, words: &[u64], progress: &mut dyn Progress) -> Result<(), BuildError> {
        let rows = Rows {
            words,
            columns: self.shape.columns(),
        };
        let total = rows.len();
        self.runs.reserve(total);
        let mut rest: Vec<u32> = (0..u32::try_from(total).expect("ids are 32 bits")).collect();
        report(progress, LEARNING, 0, total)?;
        let plan = self.plan(&rows, &rest, Level::Root);
        self.predicted = plan.cost;
        let mut masks = plan.masks.into_iter();
        let mut turn = 0;
        while !rest.is_empty() {
            let (mask, served) = self.next_table(&rows, &mut rest, &mut masks);
            self.grow_table(&rows, mask, served, TableNumber::NONE, 0, turn);
            report(progress, LEARNING, total - rest.len(), total)?;
            turn += 1;
        }
        self.learned = total;
        Ok(())
    }

    /// The masks of a node of these rules.
    fn plan(&self, rows: &Rows<'_>, rules: &[u32], level: Level) -> Plan<W> {
        self.learner.plan(level, rules.len(), |index| {
            self.outline(rows.row(rules[index]))
        })
    }

    /// Takes the rules of a node's next table out of `rest`: those that the
    /// next mask of some use serves, all of them when there is none.
    fn next_table(
        &self,
        rows: &Rows<'_>,
        rest: &mut Vec<u32>,
        masks: &mut impl Iterator<Item = [u64; W]>,
    ) -> ([u64; W], Vec<u32>) {
        for mask in masks {
            let (served, left): (Vec<u32>, Vec<u32>) = rest
                .iter()
                .partition(|&&index| serves(&self.outline(rows.row(index)), &mask));
            if !served.is_empty() {
                *rest = left;
                return (mask, served);
            }
        }
        ([0; W], std::mem::take(rest))
    }

    /// Makes a table of rules and links it into its node.
    fn grow_table(
        &mut self,
        rows: &Rows<'_>,
        mask: [u64; W],
        served: Vec<u32>,
        parent: TableNumber,
        parent_slot: u32,
        turn: u32,
    ) -> TableNumber {
        let probe = Table::new(mask, 1);
        let mut hashed: Vec<(u64, u32)> = served
            .into_iter()
            .map(|index| {
                (
                    probe.hash(&self.outline(rows.row(index)).value, &self.secrets),
                    index,
                )
            })
            .collect();
        hashed.sort_unstable();
        let mut table = Table::new(mask, slots_for(&hashed));
        table.parent = parent;
        table.parent_slot = parent_slot;
        table.turn = turn;
        table.rules = hashed.len();
        let ranks = hashed.iter().map(|&(_, index)| rows.row(index)[0]);
        table.best = ranks.min().unwrap_or(u64::MAX);
        let number = self.add_table(table);
        let slot_of = |hash: u64, forest: &Forest<W>| forest.tables[number.index()].slot(hash);
        let mut from = 0;
        while from < hashed.len() {
            let slot = slot_of(hashed[from].0, self);
            let same = |&(hash, _): &(u64, u32)| slot_of(hash, self) == slot;
            let to = from
                + hashed[from..]
                    .iter()
                    .take_while(|entry| same(entry))
                    .count();
            let signature = hashed[from..to].iter().fold(0, |signature, &(hash, _)| {
                signature | 1 << self.tables[number.index()].sign(hash)
            });
            let members = hashed[from..to].iter().map(|&(_, index)| index).collect();
            let whole = from == 0 && to == hashed.len() && mask != [0; W];
            let bucket = self.grow_bucket(rows, members, number, slot, whole);
            self.tables[number.index()].set(slot, Slot::new(bucket, signature));
            from = to;
        }
        self.link(number);
        number
    }

    /// Makes a run of rules, or a node if they are too many. When they are the
    /// `whole` of a table that should have told them apart, learning again
    /// would choose the same table.
    fn grow_bucket(
        &mut self,
        rows: &Rows<'_>,
        mut members: Vec<u32>,
        table: TableNumber,
        slot: u32,
        whole: bool,
    ) -> Bucket {
        if members.len() > self.settings.most {
            let mut turn = 0;
            let mut rest = members;
            let masks = if whole {
                Vec::new()
            } else {
                self.plan(rows, &rest, Level::Nested).masks
            };
            let mut masks = masks.into_iter();
            let (mask, served) = self.next_table(rows, &mut rest, &mut masks);
            if mask != [0; W] || served.len() > MAX_RUN {
                let mut next = Some((mask, served));
                while let Some((mask, served)) = next {
                    // Rules that nothing tells apart fill one table after the
                    // other, the best first.
                    let served = if mask == [0; W] {
                        self.split_off_best(rows, served, &mut rest)
                    } else {
                        served
                    };
                    self.grow_table(rows, mask, served, table, slot, turn);
                    turn += 1;
                    next = (!rest.is_empty()).then(|| self.next_table(rows, &mut rest, &mut masks));
                }
                // `link` keeps the parent's slot up to date; take it from there.
                return self.tables[table.index()].get(slot).bucket();
            }
            members = served;
        }
        members.sort_unstable_by_key(|&index| rows.row(index)[0]);
        let run = self
            .runs
            .create(members.iter().map(|&index| rows.row(index)));
        for &index in &members {
            self.place(rows.row(index)[0], table, slot);
        }
        Bucket::Run(run)
    }

    /// Leaves the best rules that a run can hold and puts the others back.
    fn split_off_best(
        &self,
        rows: &Rows<'_>,
        mut served: Vec<u32>,
        rest: &mut Vec<u32>,
    ) -> Vec<u32> {
        if served.len() > MAX_RUN / 2 {
            served.sort_unstable_by_key(|&index| rows.row(index)[0]);
            rest.extend(served.drain(MAX_RUN / 2..));
        }
        served
    }

    fn place(&mut self, rank: u64, table: TableNumber, slot: u32) {
        let id = Winner::from_rank(rank).rule().expect("a rule's rank");
        self.places.set(id, Place { table, slot });
    }

    fn add_table(&mut self, table: Table<W>) -> TableNumber {
        if self.settings.has(Ingredient::Pages) {
            table.ask_for_huge_pages();
        }
        if let Some(number) = self.free.pop() {
            self.tables[number.index()] = table;
            number
        } else {
            self.tables.push(table);
            TableNumber::from_index(self.tables.len() - 1)
        }
    }

    /// The first table of the node that a table belongs to.
    fn first_of(&self, parent: TableNumber, parent_slot: u32) -> TableNumber {
        if parent == TableNumber::NONE {
            return self.root;
        }
        match self.tables[parent.index()].get(parent_slot).bucket() {
            Bucket::Node(first) => first,
            Bucket::Empty | Bucket::Run(_) => TableNumber::NONE,
        }
    }

    fn set_first(&mut self, parent: TableNumber, parent_slot: u32, first: TableNumber) {
        if parent == TableNumber::NONE {
            self.root = first;
            return;
        }
        let table = &mut self.tables[parent.index()];
        let slot = if first == TableNumber::NONE {
            Slot::EMPTY
        } else {
            Slot::new(Bucket::Node(first), table.get(parent_slot).signature())
        };
        table.set(parent_slot, slot);
    }

    /// Puts a table into its node's chain, at its place by best rule.
    fn link(&mut self, number: TableNumber) {
        let Table {
            parent,
            parent_slot,
            best,
            ..
        } = self.tables[number.index()];
        let first = self.first_of(parent, parent_slot);
        let before = self.chain(first);
        let before = before
            .take_while(|other| self.tables[other.index()].best <= best)
            .last();
        match before {
            None => {
                self.tables[number.index()].next = first;
                self.set_first(parent, parent_slot, number);
            }
            Some(before) => {
                self.tables[number.index()].next = self.tables[before.index()].next;
                self.tables[before.index()].next = number;
            }
        }
    }

    /// Takes a table out of its node's chain.
    fn unlink(&mut self, number: TableNumber) {
        let Table {
            parent,
            parent_slot,
            next,
            ..
        } = self.tables[number.index()];
        let first = self.first_of(parent, parent_slot);
        if first == number {
            self.set_first(parent, parent_slot, next);
            return;
        }
        let before = self
            .chain(first)
            .find(|other| self.tables[other.index()].next == number)
            .expect("a table is in its node's chain");
        self.tables[before.index()].next = next;
    }

    /// Gives a table another bound, and the place in the chain that goes with
    /// it.
    fn set_best(&mut self, number: TableNumber, best: u64) {
        let table = &self.tables[number.index()];
        let (parent, parent_slot) = (table.parent, table.parent_slot);
        if table.best == best {
            return;
        }
        if self.first_of(parent, parent_slot) == number && table.next == TableNumber::NONE {
            // Alone in its node: to leave it would empty the parent's slot.
            self.tables[number.index()].best = best;
            return;
        }
        self.unlink(number);
        self.tables[number.index()].best = best;
        self.link(number);
    }

    /// Adds a rule whose id is free.
    pub(super) fn insert(&mut self, rule: &RuleRef<'_>) {
        let mut row = Vec::with_capacity(self.shape.columns());
        self.shape.push_row(rule, &mut row);
        self.insert_row(&row);
        if self.len() <= SMALL && self.len() > 2 * self.learned.max(self.settings.most) {
            self.relearn(&mut crate::classifier::NoProgress)
                .expect("only an observer stops learning");
        }
        self.tidy();
    }

    /// Does some of the work that updates put off.
    fn tidy(&mut self) {
        let Forest {
            runs,
            tables,
            places,
            ..
        } = self;
        runs.tidy(|rank, run| {
            let id = Winner::from_rank(rank).rule().expect("a rule's rank");
            let Place { table, slot } = places.get(id).expect("rules in runs have places");
            let table = &mut tables[table.index()];
            let signature = table.get(slot).signature();
            table.set(slot, Slot::new(Bucket::Run(run), signature));
        });
    }

    fn insert_row(&mut self, row: &[u64]) {
        let outline = self.outline(row);
        let rank = row[0];
        let (mut parent, mut parent_slot) = (TableNumber::NONE, 0);
        loop {
            let number = self.table_for(&outline, parent, parent_slot);
            let table = &mut self.tables[number.index()];
            table.rules += 1;
            table.found = table.found.min(rank);
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
    /// failed, the next try comes when it has doubled.
    fn is_to_be_split(&self, run: Run) -> bool {
        let len = usize::from(run.len);
        let most = self.settings.most;
        len >= MAX_RUN
            || (len >= most && len.is_multiple_of(most) && (len / most).is_power_of_two())
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
            serves(outline, &table.mask) && !self.is_full(table)
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
        self.grow_bucket(&rows, members, table, slot, false)
    }

    /// Removes a rule that is there.
    pub(super) fn remove(&mut self, id: RuleId) {
        let Place { table, slot } = self.places.get(id).expect("checked before");
        self.places.remove(id);
        let held = self.tables[table.index()].get(slot);
        let Bucket::Run(run) = held.bucket() else {
            unreachable!("rules are in runs");
        };
        let ranks = self.runs.ranks(run);
        let is_it = |&rank: &u64| Winner::from_rank(rank).rule() == Some(id);
        let at = ranks
            .iter()
            .position(is_it)
            .expect("the rule is in its run");
        let rank = ranks[at];
        let left = self.runs.remove(run, at).map_or(Bucket::Empty, Bucket::Run);
        self.tables[table.index()].set(slot, Slot::new(left, held.signature()));
        self.count_down(table, rank);
        self.tidy();
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
            if table.rules == 0 {
                self.unlink(number);
                self.tables[number.index()].drop_slots();
                self.free.push(number);
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
            self.tables[number.index()].drop_slots();
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
            self.free.push(number);
        }
    }

    /// Learns everything anew. When the observer stops it, nothing has changed.
    pub(super) fn relearn(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let mut words = Vec::with_capacity(self.len() * self.shape.columns());
        self.collect(self.root, &mut words);
        let mut fresh = Forest::new(&self.schema, self.settings);
        fresh.fill_rows(&words, progress)?;
        *self = fresh;
        Ok(())
    }

    /// Appends a node's rules as rows.
    fn collect(&self, first: TableNumber, words: &mut Vec<u64>) {
        for number in self.chain(first) {
            for slot in self.tables[number.index()].slots() {
                match slot.bucket() {
                    Bucket::Empty => {}
                    Bucket::Node(first) => self.collect(first, words),
                    Bucket::Run(run) => {
                        for rule in 0..usize::from(run.len) {
                            self.runs.push_row(run, rule, words);
                        }
                    }
                }
            }
        }
    }
}
