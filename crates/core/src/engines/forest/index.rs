//! The forest: the structure, and the parts that grow and maintain it.

use std::sync::Arc;

use super::conflicts;
use super::grow::{self, Growth};
use super::learn::{Budget, Learner, LearnerOptions};
use super::look_ahead::{self, GROUP_CHANGES, LookAhead};
use super::lookup::{Buffers, Lookup, LookupConfig};
use super::maintain::{self, Adoption, Baseline, Parts, RootPlan, Snapshot};
use super::rows::{RowShape, Rows};
use super::settings::{Feature, NAME, Settings};
use super::slot::TableNumber;
use super::structure::Structure;
use super::update;
use crate::budget::memory::{Memory, bytes_of};
use crate::budget::monitor::{Monitor, unwatched};
use crate::contract::classifier::{LookupTrace, Metric, Progress};
use crate::contract::reoptimise::Drift;
use crate::model::error::BuildError;
use crate::model::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::model::transaction::Change;

/// A forest of at most this number of rules is rebuilt when it has doubled.
/// `docs/forest.md` (Worst cases, small forests) has the time of these updates.
const MAX_SMALL_RULES: usize = 128;

/// Doubling counts from this number of rules; fewer rules are as fast to scan.
/// Measured in `bench/records/constants.md` (Forest).
const MIN_BASE_RULES: usize = 32;

/// A forest that has shrunk to at most this number of rules is rebuilt. A larger
/// forest keeps its masks: masks learned from few rules distinguish few rules, and
/// rules often come back. Measured in `bench/records/constants.md` (Forest).
const MAX_REBUILT_RULES: usize = 16;

/// Tables are resized when the number of rules has grown or shrunk by this factor
/// since the tables were sized. `docs/forest.md` (Worst cases, shrinking and
/// growing) has the memory and the rates with and without.
const RESIZE_FACTOR: usize = 4;

/// A forest of rules with keys of `W` words.
pub(super) struct Forest<const W: usize> {
    settings: Settings,
    lookup: LookupConfig,
    structure: Structure<W>,
    growth: Growth<W>,
    baseline: Baseline,
    adoption: Adoption<W>,
    /// Insertions and removals since the build.
    changes: u64,
    /// A reusable buffer for the row of an inserted rule.
    row: Vec<u64>,
    look_ahead: LookAhead<W>,
}

/// Building.
impl<const W: usize> Forest<W> {
    /// Returns an empty forest for rules like `rules`, with or without fingerprints.
    pub(super) fn for_rules(
        rules: &RuleSet,
        settings: Settings,
        lookup: LookupConfig,
        fingerprints: bool,
    ) -> Forest<W> {
        let shape = RowShape::for_rules(rules, settings.seed, fingerprints);
        Forest::new(shape, settings, lookup)
    }

    /// Returns an empty forest for rules of that shape.
    pub(super) fn new(shape: RowShape, settings: Settings, lookup: LookupConfig) -> Forest<W> {
        let huge_pages = settings.has(Feature::HugePages);
        let options = LearnerOptions {
            target: settings.target,
            most: settings.most,
            fingerprints: shape.wide().is_some(),
            any_bits: settings.has(Feature::AnyBits),
        };
        let learner = Learner::new(shape.schema(), &options);
        Forest {
            settings,
            lookup,
            structure: Structure::new(shape, settings.seed, huge_pages),
            growth: Growth::new(learner, settings.most),
            baseline: Baseline::default(),
            adoption: Adoption::none(),
            changes: 0,
            row: Vec::new(),
            look_ahead: LookAhead::default(),
        }
    }

    /// Fills an empty forest with rules.
    ///
    /// # Errors
    /// [`BuildError::EngineFull`] if there are more rules than the
    /// [`capacity`](Self::capacity); [`BuildError::Stopped`].
    pub(super) fn fill<'a>(
        &mut self,
        rules: impl ExactSizeIterator<Item = RuleRef<'a>> + Clone,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        if rules.len() > self.capacity() {
            return Err(BuildError::EngineFull {
                engine: NAME.to_owned(),
                rules: rules.len(),
                limit: self.capacity(),
            });
        }
        monitor.begin("copying rules", rules.len())?;
        let words = rules.len() * self.structure.shape().columns();
        let bytes = bytes_of::<u64>(words);
        monitor.memory().take(bytes)?;
        let mut words = Vec::with_capacity(words);
        for (done, rule) in rules.clone().enumerate() {
            self.structure.keep_mask(&rule);
            self.structure.shape().push_row(&rule, &mut words);
            if done.is_multiple_of(grow::RECOUNT_RULES) {
                self.growth.recount(&self.structure, monitor)?;
            }
            monitor.advance(1)?;
        }
        let actions = rules.map(|rule| (rule.id(), rule.action()));
        self.grow_rows(&words, actions, monitor)?;
        monitor.memory().give_back(bytes);
        Ok(())
    }

    /// Grows the tables of an empty forest from rows, and records the cost of lookups.
    /// `actions` has the ids and actions of the rules, in any order.
    fn grow_rows(
        &mut self,
        words: &[u64],
        actions: impl Iterator<Item = (RuleId, ActionId)>,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let rows = Rows::new(words, self.structure.shape().columns());
        let (structure, growth) = (&mut self.structure, &mut self.growth);
        let predicted = grow::grow_root(structure, growth, &rows, actions, monitor)?;
        let marks = self.settings.has(Feature::ConflictMarks);
        conflicts::mark_all(structure, marks, monitor)?;
        self.baseline = Baseline {
            rules: rows.len(),
            predicted,
            counted: maintain::count_cost(&self.structure),
        };
        self.growth.take_extra_steps();
        Ok(())
    }

    /// Learns all masks again. If the progress callback cancels, the forest does not change.
    pub(super) fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let mut memory = Memory::unlimited();
        self.rebuild_within(
            Budget::unlimited(),
            &mut Monitor::new(progress, &mut memory),
        )
    }

    /// Learns all masks again within an update; for a forest of few rules.
    fn rebuild_few(&mut self) {
        unwatched(|monitor| self.rebuild_within(Budget::of_update(), monitor));
    }

    fn rebuild_within(
        &mut self,
        budget: Budget,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        monitor.begin("copying rules", self.len())?;
        let mut words = Vec::with_capacity(self.len() * self.structure.shape().columns());
        let root = self.structure.root();
        self.structure.append_rows(root, &mut words, monitor)?;
        let mut fresh = Forest::new(self.structure.shape().clone(), self.settings, self.lookup);
        fresh.structure.limit_words_as(&self.structure);
        fresh.growth.set_budget(budget);
        fresh.grow_rows(&words, self.structure.actions(), monitor)?;
        fresh.growth.budget().end();
        fresh.changes = self.changes;
        fresh.structure.take_masks_of(&mut self.structure);
        *self = fresh;
        Ok(())
    }
}

/// Lookups.
impl<const W: usize> Forest<W> {
    #[inline]
    fn lookup(&self) -> Lookup<'_, W> {
        Lookup::new(&self.structure, self.lookup)
    }

    /// Improves the winners of a batch of any length.
    pub(super) fn improve_batch(
        &self,
        keys: &[[u64; W]],
        winners: &mut [Winner],
        buffers: &mut Buffers,
    ) {
        self.lookup().improve_batch(keys, winners, buffers);
    }

    /// Improves a candidate for one key.
    #[inline]
    pub(super) fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        self.lookup().improve(key, best)
    }

    /// Improves a candidate, and sets in `mask` the bits that the result depends on.
    pub(super) fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64]) -> Winner {
        self.lookup().improve_masked(key, best, mask)
    }

    /// Traces a lookup step by step.
    pub(super) fn trace(&self, key: &[u64; W]) -> LookupTrace {
        self.lookup().trace(key)
    }
}

/// Contents and sizes.
impl<const W: usize> Forest<W> {
    pub(super) fn schema(&self) -> &Arc<Schema> {
        self.structure.shape().schema()
    }

    /// The number of rules.
    pub(super) fn len(&self) -> usize {
        self.structure.len()
    }

    /// The most rules that the forest can hold.
    pub(super) fn capacity(&self) -> usize {
        self.structure.capacity()
    }

    /// True if a rule has that id.
    pub(super) fn contains(&self, id: RuleId) -> bool {
        self.structure.contains(id)
    }

    /// Appends a rule's packed words and returns its priority, if the rule exists.
    pub(super) fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        let (run, rule) = self.structure.find(id)?.in_run();
        self.structure.push_packed(run, rule, words);
        Winner::from_rank(self.structure.ranks(run)[rule]).priority()
    }

    /// The action of a rule, if the rule exists.
    pub(super) fn action(&self, id: RuleId) -> Option<ActionId> {
        self.structure.action(id)
    }

    /// All rules, in no defined order.
    pub(super) fn winners(&self) -> Vec<Winner> {
        let mut winners = Vec::with_capacity(self.len());
        winners.extend(self.structure.all_ranks().map(Winner::from_rank));
        winners
    }

    /// Bytes held, including spare memory.
    pub(super) fn bytes(&self) -> usize {
        self.structure.bytes() + self.adoption.bytes()
    }

    /// Bytes of a rule in its run.
    pub(super) fn rule_bytes(&self) -> usize {
        self.structure.shape().columns() * size_of::<u64>()
    }

    /// The number of tables, including nested tables.
    pub(super) fn table_count(&self) -> usize {
        self.structure.table_count()
    }

    /// Insertions and removals since the build: the sequence number of snapshots.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Counts and sizes for statistics.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        let (runs, longest) = self.structure.count_runs();
        let drift = self.drift();
        let predicted = &self.baseline.predicted;
        let free = self.structure.free_words() * size_of::<u64>();
        vec![
            Metric::count("tables of the root", self.structure.root_tables().count()),
            Metric::count("runs", runs),
            Metric::count("rules in the longest run", longest),
            Metric::bytes("bytes of freed runs", free),
            Metric::word("instructions", self.lookup.comparing.name()),
            Metric::nanoseconds("predicted lookup time", predicted.time),
            Metric::ratio("predicted probes", predicted.probes),
            Metric::ratio("predicted compares", predicted.compares),
            Metric::ratio("lookup cost now", drift.current),
            Metric::ratio(
                "lookup cost relative to the last optimisation",
                drift.ratio(),
            ),
            Metric::word("plan", self.adoption.describe()),
        ]
    }
}

/// Updates.
impl<const W: usize> Forest<W> {
    /// Inserts a rule; returns true if its id was free. Otherwise nothing changes.
    pub(super) fn insert(&mut self, rule: &RuleRef<'_>) -> bool {
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        self.structure.shape().push_row(rule, &mut row);
        let inserted = self.insert_row(rule, &row, None);
        self.row = row;
        inserted
    }

    /// Inserts a rule with this row. `root` is a table of the root that fits the rule, if
    /// one is known.
    fn insert_row(&mut self, rule: &RuleRef<'_>, row: &[u64], root: Option<TableNumber>) -> bool {
        let Some(position) = self.structure.add_id(rule.id(), rule.action()) else {
            return false;
        };
        self.structure.keep_mask(rule);
        let (structure, growth) = (&mut self.structure, &mut self.growth);
        update::insert(structure, growth, row, Some(position), root);
        self.changes += 1;
        self.tidy();
        self.grow_if_due();
        true
    }

    /// Removes a rule; returns true if it existed.
    pub(super) fn remove(&mut self, id: RuleId) -> bool {
        if !update::remove(&mut self.structure, id) {
            return false;
        }
        self.changes += 1;
        self.tidy();
        self.shrink_if_due();
        true
    }

    /// Replaces a rule; returns true if it existed. If only its action or its cookie
    /// changes, the rule stays in its place.
    pub(super) fn replace(&mut self, rule: &RuleRef<'_>) -> bool {
        self.row.clear();
        self.structure.shape().push_row(rule, &mut self.row);
        if self.structure.set_action(rule, &self.row) {
            self.changes += 1;
            return true;
        }
        self.remove(rule.id()) && self.insert(rule)
    }

    /// Prefetches the entries of the changed rules, and the rules that are inserted.
    pub(super) fn prefetch(&self, changes: &[Change<'_>]) {
        look_ahead::prefetch_entries(&self.structure, changes);
    }

    /// Makes changes in order, with some maintenance after each.
    pub(super) fn make(&mut self, changes: &[Change<'_>]) {
        let mut ahead = std::mem::take(&mut self.look_ahead);
        let mut following = changes.chunks(GROUP_CHANGES);
        self.prefetch(following.next().unwrap_or_default());
        for group in changes.chunks(GROUP_CHANGES) {
            self.prefetch(following.next().unwrap_or_default());
            ahead.prefetch(&self.structure, group);
            let mut inserted = ahead.inserted();
            for change in group {
                let made = match change {
                    Change::Insert(rule) => match inserted.next() {
                        Some((row, root)) => self.insert_row(rule, row, root),
                        None => self.insert(rule),
                    },
                    Change::Remove(id) => self.remove(*id),
                    Change::Modify(rule) => self.replace(rule),
                };
                assert!(self.maintain_after(made), "changes are checked before");
            }
        }
        self.look_ahead = ahead;
    }

    /// Does some of the work that updates postpone.
    fn tidy(&mut self) {
        self.growth.budget().pay_off();
        self.structure.tidy();
    }

    /// Starts to enlarge the tables if there are many more rules than they were
    /// sized for.
    fn grow_if_due(&mut self) {
        let made_for = self.baseline.rules;
        if self.len() <= MAX_SMALL_RULES && self.len() > 2 * made_for.max(MIN_BASE_RULES) {
            self.rebuild_few();
        } else if self.len() > RESIZE_FACTOR * made_for.max(MIN_BASE_RULES) {
            self.resize_tables();
        }
    }

    /// Starts to release memory if there are far fewer rules than the tables were
    /// sized for.
    fn shrink_if_due(&mut self) {
        if self.baseline.rules < RESIZE_FACTOR * self.len().max(MAX_REBUILT_RULES) {
            return;
        }
        if self.len() <= MAX_REBUILT_RULES {
            self.rebuild_few();
        } else {
            self.resize_tables();
        }
    }

    /// Starts to move the rules to tables with the same masks and other numbers of
    /// slots, as if a plan were adopted.
    fn resize_tables(&mut self) {
        if !self.adoption.is_under_way() {
            let plan = RootPlan::in_place(&self.structure, self.baseline.predicted);
            self.adopt(Arc::new(plan));
        }
    }
}

/// Maintenance.
impl<const W: usize> Forest<W> {
    /// Steps of maintenance that each update does.
    pub(super) const STEPS_PER_UPDATE: usize = maintain::STEPS_PER_UPDATE;

    /// The lookup cost now and right after the last optimisation.
    pub(super) fn drift(&self) -> Drift {
        Drift {
            current: maintain::count_cost(&self.structure),
            fitted: self.baseline.counted,
            installing: self.adoption.is_under_way(),
        }
    }

    /// An empty snapshot.
    pub(super) fn snapshot(&self) -> Snapshot<W> {
        Snapshot::new(&self.structure, self.growth.learner())
    }

    /// Copies some rules to a snapshot; returns true when the snapshot is complete.
    pub(super) fn add_to(&self, snapshot: &mut Snapshot<W>) -> bool {
        snapshot.add_some(&self.structure)
    }

    /// Starts to adopt a plan, or keeps it for later.
    pub(super) fn adopt(&mut self, plan: Arc<RootPlan<W>>) {
        self.adoption.begin(plan, self.structure.len());
    }

    /// True if a plan is being adopted, or memory of an old plan is not yet
    /// released.
    pub(super) fn is_unfinished(&self) -> bool {
        self.adoption.is_under_way() || self.structure.has_leftover()
    }

    /// Does the maintenance of an update, if it was made; returns `made`.
    pub(super) fn maintain_after(&mut self, made: bool) -> bool {
        if made {
            self.maintain(Forest::<W>::STEPS_PER_UPDATE);
        }
        made
    }

    /// Does at most `steps` steps of maintenance, less the extra steps of the latest
    /// update.
    pub(super) fn maintain(&mut self, steps: usize) {
        let steps_left = steps.saturating_sub(self.growth.take_extra_steps());
        if !self.is_unfinished() {
            return;
        }
        let mut parts = Parts {
            structure: &mut self.structure,
            growth: &mut self.growth,
            baseline: &mut self.baseline,
            marks: self.settings.has(Feature::ConflictMarks),
        };
        self.adoption.run(&mut parts, steps_left);
        self.tidy();
    }
}

/// For tests.
#[cfg(test)]
impl<const W: usize> Forest<W> {
    pub(super) fn structure(&self) -> &Structure<W> {
        &self.structure
    }

    pub(super) fn adoption(&self) -> &Adoption<W> {
        &self.adoption
    }

    /// Lets runs take at most `limit` words.
    pub(super) fn limit_words(&mut self, limit: u32) {
        self.structure.limit_words(limit);
    }
}
