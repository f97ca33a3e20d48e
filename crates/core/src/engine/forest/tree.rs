//! The structure: nodes of tables, built at once or changed rule by rule.

use std::sync::Arc;

use super::adopt::{Adoption, LEARNED, RootPlan};
use super::learn::{ALLOWANCE, Cost, Learner, Level, Outline, Plan};
use super::lookup::Means;
use super::places::{Place, Places};
use super::runs::{MAX_RUN, Runs};
use super::table::{Bucket, Slot, Table, TableNumber};
use super::tables::Tables;
use super::{ENGINE, Ingredient, RowShape};
use crate::classifier::{Metric, NoProgress, Progress, report};
use crate::error::BuildError;
use crate::rule::{RuleId, RuleRef, Winner};
use crate::schema::Schema;
use crate::seed::splitmix;

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
    pub(super) fn has(&self, ingredient: Ingredient) -> bool {
        self.without != Some(ingredient)
    }
}

/// A forest: the root node is the chain of tables that begins at `root`.
pub(super) struct Forest<const W: usize> {
    pub(super) schema: Arc<Schema>,
    pub(super) shape: RowShape,
    pub(super) tables: Tables<W>,
    pub(super) root: TableNumber,
    pub(super) runs: Runs,
    pub(super) secrets: [u64; W],
    pub(super) places: Places,
    pub(super) learner: Learner<W>,
    pub(super) settings: Settings,
    /// Rules of the root node when it was learned.
    pub(super) learned: usize,
    /// What lookups were to cost then.
    pub(super) predicted: Cost,
    /// What they did cost then, counted as [`drift`](super::drift) does.
    pub(super) cost: f64,
    /// The plan that is being adopted, and the one that is next.
    pub(super) adoption: Option<Adoption<W>>,
    pub(super) waiting: Option<Arc<RootPlan<W>>>,
    /// What the update at hand has cost beyond the usual, in steps of
    /// [`adopt`](super::adopt).
    pub(super) effort: usize,
    /// Words that the update at hand may still read to learn; `None` while
    /// building, when plans have bounds of their own alone.
    pub(super) allowance: Option<usize>,
    /// Words that updates have read to learn and found no mask. While this is
    /// not 0, runs grow instead of being split; each update lowers it.
    pub(super) debt: usize,
    /// Rules that came and went since the build: the sequence number of
    /// snapshots.
    pub(super) changes: u64,
    /// Slots of tables that are gone, to be freed a little at a time.
    pub(super) leftover: Vec<Vec<u64>>,
}

/// Rules on their way into a forest, as rows of columns.
pub(super) struct Rows<'a> {
    pub(super) words: &'a [u64],
    pub(super) columns: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn row(&self, index: u32) -> &'a [u64] {
        &self.words[index as usize * self.columns..][..self.columns]
    }

    pub(super) fn len(&self) -> usize {
        self.words.len() / self.columns
    }
}

/// As many slots as there are distinct hashes; more if that would not separate
/// any of them.
pub(super) fn slots_for(hashed: &[(u64, u32)]) -> usize {
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

/// Words of the values of rules that are looked at when a run is split.
const SPLIT_WORDS: usize = 8192;

/// What progress observers are told.
pub(super) const LEARNING: &str = "learning masks";

impl<const W: usize> Forest<W> {
    pub(super) fn new(schema: &Arc<Schema>, settings: Settings) -> Forest<W> {
        let shape = RowShape::new(schema);
        let mut state = settings.seed;
        let huge = settings.has(Ingredient::Pages);
        Forest {
            schema: Arc::clone(schema),
            runs: Runs::new(shape.columns(), huge),
            shape,
            tables: Tables::new(),
            root: TableNumber::NONE,
            secrets: std::array::from_fn(|_| splitmix(&mut state) | 1),
            places: Places::new(settings.seed),
            learner: Learner::new(
                schema,
                settings.target,
                settings.most,
                settings.has(Ingredient::Masks),
            ),
            settings,
            learned: 0,
            predicted: Cost::default(),
            cost: 0.0,
            adoption: None,
            waiting: None,
            effort: 0,
            allowance: None,
            debt: 0,
            changes: 0,
            leftover: Vec::new(),
        }
    }

    /// The number of rules.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn contains(&self, id: RuleId) -> bool {
        self.places.contains(id)
    }

    /// Bytes held, spare room included.
    pub(super) fn bytes(&self) -> usize {
        let slots: usize = self.tables.iter().map(Table::bytes).sum();
        let leftover: usize = self.leftover.iter().map(Vec::capacity).sum();
        self.runs.bytes()
            + self.places.bytes()
            + slots
            + self.adoption.as_ref().map_or(0, Adoption::bytes)
            + leftover * size_of::<u64>()
            + self.tables.bytes()
    }

    /// The number of tables, nested ones included.
    pub(super) fn tables_in_use(&self) -> usize {
        self.tables.len()
    }

    /// Counts and sizes.
    pub(super) fn metrics(&self, means: Means) -> Vec<Metric> {
        let drift = self.drift();
        let lengths = self.tables.iter().flat_map(Table::slots);
        let runs = lengths.filter_map(|slot| match slot.bucket() {
            Bucket::Run(run) => Some(usize::from(run.len)),
            Bucket::Empty | Bucket::Node(_) => None,
        });
        let (count, longest) = runs.fold((0, 0), |(count, longest), len| {
            (count + 1, longest.max(len))
        });
        vec![
            Metric::count("tables of the root", self.chain(self.root).count()),
            Metric::count("runs", count),
            Metric::count("rules in the longest run", longest),
            Metric::bytes(
                "bytes of freed runs",
                self.runs.free_words() * size_of::<u64>(),
            ),
            Metric::word("instructions", means.comparing.name()),
            Metric::nanoseconds("predicted lookup time", self.predicted.time),
            Metric::ratio("predicted probes", self.predicted.probes),
            Metric::ratio("predicted compares", self.predicted.compares),
            Metric::ratio("lookup cost now", drift.now),
            Metric::ratio("lookup cost over that when fitted", drift.ratio()),
            Metric::word("plan", self.adopting()),
        ]
    }

    /// The tables of a node, in the order in which lookups visit them.
    pub(super) fn chain(&self, first: TableNumber) -> impl Iterator<Item = TableNumber> {
        let some = |number: TableNumber| (number != TableNumber::NONE).then_some(number);
        std::iter::successors(some(first), move |number| {
            some(self.tables[number.index()].next)
        })
    }

    pub(super) fn outline(&self, row: &[u64]) -> Outline<W> {
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
        if rules.len() > self.runs.capacity() {
            return Err(BuildError::EngineFull {
                engine: ENGINE.name.to_owned(),
                rules: rules.len(),
                limit: self.runs.capacity(),
            });
        }
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
        let level = self.allowance.map_or(Level::Root, Level::SmallRoot);
        let plan = self.plan(&rows, &rest, level);
        self.predicted = plan.cost;
        let mut masks = plan.masks.into_iter();
        let mut turn = 0;
        while !rest.is_empty() {
            let (mask, served) = self.next_table(&rows, &mut rest, &mut masks);
            self.grow_table(&rows, mask, served, TableNumber::NONE, 0, turn);
            report(progress, LEARNING, total - rest.len(), total)?;
            turn += 1;
        }
        self.mark_rivals();
        self.learned = total;
        self.cost = self.cost_now();
        self.effort = 0;
        Ok(())
    }

    /// The masks of a node of these rules. What that took is off the allowance.
    fn plan(&mut self, rows: &Rows<'_>, rules: &[u32], level: Level) -> Plan<W> {
        // Within an update, wide rules are looked at as far as time allows.
        let count = match level {
            Level::Split(_) => rules.len().min(SPLIT_WORDS / W),
            Level::Root | Level::SmallRoot(_) | Level::Nested => rules.len(),
        };
        let plan = self.learner.plan(level, count, |index| {
            self.outline(rows.row(rules[index * rules.len() / count]))
        });
        if let Some(left) = &mut self.allowance {
            *left = left.saturating_sub(plan.words);
            if plan.masks.is_empty() {
                self.debt += plan.words;
            }
        }
        plan
    }

    /// Whether all bits of a mask are exact in a row.
    fn row_fits(&self, row: &[u64], mask: &[u64; W]) -> bool {
        let mut words = mask.iter().enumerate().filter(|(_, bits)| **bits != 0);
        words.all(|(word, bits)| bits & !self.shape.mask(row, word) == 0)
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
                .partition(|&&index| self.row_fits(rows.row(index), &mask));
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
    pub(super) fn grow_bucket(
        &mut self,
        rows: &Rows<'_>,
        mut members: Vec<u32>,
        table: TableNumber,
        slot: u32,
        whole: bool,
    ) -> Bucket {
        if members.len() > self.settings.most {
            self.effort += members.len() / LEARNED;
            let mut turn = 0;
            let mut rest = members;
            let masks = match self.allowance {
                _ if whole => Vec::new(),
                Some(0) => Vec::new(),
                Some(words) => self.plan(rows, &rest, Level::Split(words)).masks,
                None => self.plan(rows, &rest, Level::Nested).masks,
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

    pub(super) fn place(&mut self, rank: u64, table: TableNumber, slot: u32) {
        let id = Winner::from_rank(rank).rule().expect("a rule's rank");
        self.places.set(id, Place { table, slot });
    }

    pub(super) fn add_table(&mut self, table: Table<W>) -> TableNumber {
        if self.settings.has(Ingredient::Pages) {
            table.ask_for_huge_pages();
        }
        self.tables.add(table)
    }

    /// The first table of the node that a table belongs to.
    pub(super) fn first_of(&self, parent: TableNumber, parent_slot: u32) -> TableNumber {
        if parent == TableNumber::NONE {
            return self.root;
        }
        match self.tables[parent.index()].get(parent_slot).bucket() {
            Bucket::Node(first) => first,
            Bucket::Empty | Bucket::Run(_) => TableNumber::NONE,
        }
    }

    pub(super) fn set_first(&mut self, parent: TableNumber, parent_slot: u32, first: TableNumber) {
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
    pub(super) fn link(&mut self, number: TableNumber) {
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
    pub(super) fn unlink(&mut self, number: TableNumber) {
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
    pub(super) fn set_best(&mut self, number: TableNumber, best: u64) {
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

    /// Learns everything anew. When the observer stops it, nothing has changed.
    pub(super) fn relearn(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.learn_anew(None, progress)
    }

    /// The same within an update: a forest of few rules is learned on the spot.
    pub(super) fn relearn_few(&mut self) {
        self.learn_anew(Some(ALLOWANCE), &mut NoProgress)
            .expect("only an observer stops learning");
    }

    fn learn_anew(
        &mut self,
        allowance: Option<usize>,
        progress: &mut dyn Progress,
    ) -> Result<(), BuildError> {
        let mut words = Vec::with_capacity(self.len() * self.shape.columns());
        self.collect(self.root, &mut words);
        let mut fresh = Forest::new(&self.schema, self.settings);
        fresh.runs.limit = self.runs.limit;
        fresh.allowance = allowance;
        fresh.fill_rows(&words, progress)?;
        fresh.allowance = None;
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

#[cfg(test)]
mod tests;
