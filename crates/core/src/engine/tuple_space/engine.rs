//! A tuple space as a classifier; where a rule goes is the [`Placement`]'s
//! choice.

use std::sync::Arc;

use crate::classifier::{
    Classifier, DynamicClassifier, Limits, LookupTrace, Progress, Scratch, Stats, report,
};
use crate::error::{BuildError, UpdateError};
use crate::key::KeySlice;
use crate::rule::{Priority, RuleId, RuleRef, Winner};
use crate::ruleset::RuleSet;
use crate::schema::Schema;
use crate::seed::Seed;
use crate::transaction::{Change, Transaction};

use super::lookup::Buffers;
use super::{EntryIndex, Form, Renumbered, TupleSpace};

/// Chooses tables for rules: what makes one algorithm differ from another.
pub(in crate::engine) trait Placement<const W: usize>: Send + Sync {
    /// The engine's registered name.
    fn engine(&self) -> &'static str;

    /// Puts a stored rule into a table, which it may have to make.
    fn place(&mut self, space: &mut TupleSpace<W>, entry: EntryIndex);

    /// Places all rules at once, at building. They are stored already, and come
    /// in the order of the rule set.
    fn place_all(
        &mut self,
        space: &mut TupleSpace<W>,
        entries: &[EntryIndex],
        progress: &mut dyn Progress,
    ) -> Result<(), BuildError> {
        place_one_by_one(self, space, entries, progress)
    }

    /// A table with this mask became empty and is gone.
    fn table_dropped(&mut self, mask: &[u64; W]);

    /// Tables have other numbers from now on.
    fn tables_renumbered(&mut self, numbers: &Renumbered);

    /// Reorganises the tables.
    fn rebuild(
        &mut self,
        space: &mut TupleSpace<W>,
        progress: &mut dyn Progress,
    ) -> Result<(), BuildError>;

    /// Called after each transaction with its number of changes; says whether
    /// to rebuild now.
    fn rebuild_is_due(&mut self, changes: usize) -> bool;
}

/// Places rules in the order given.
pub(in crate::engine) fn place_one_by_one<const W: usize>(
    placement: &mut (impl Placement<W> + ?Sized),
    space: &mut TupleSpace<W>,
    entries: &[EntryIndex],
    progress: &mut dyn Progress,
) -> Result<(), BuildError> {
    for (done, &entry) in entries.iter().enumerate() {
        if done.is_multiple_of(1 << 14) {
            report(progress, PLACING, done, entries.len())?;
        }
        placement.place(space, entry);
    }
    Ok(())
}

/// What progress observers are told while rules find their tables.
const PLACING: &str = "placing rules in tables";

/// A tuple space with its placement.
pub(in crate::engine) struct TupleEngine<const W: usize, P> {
    space: TupleSpace<W>,
    placement: P,
    limits: Limits,
}

impl<const W: usize, P: Placement<W> + 'static> TupleEngine<W, P> {
    /// Builds over a copy of the rules.
    pub(in crate::engine) fn build(
        rules: &RuleSet,
        form: Form,
        seed: Seed,
        placement: P,
        limits: &Limits,
        progress: &mut dyn Progress,
    ) -> Result<Box<dyn Classifier>, BuildError> {
        let mut engine = TupleEngine {
            space: TupleSpace::new(rules.schema(), form, seed),
            placement,
            limits: *limits,
        };
        engine.space.reserve(rules.len());
        limits.check_bytes(engine.space.bytes())?;
        let entries: Vec<EntryIndex> = rules.iter().map(|rule| engine.space.store(&rule)).collect();
        engine
            .placement
            .place_all(&mut engine.space, &entries, progress)?;
        limits.check_bytes(engine.space.bytes())?;
        report(progress, PLACING, rules.len(), rules.len())?;
        Ok(Box::new(engine))
    }

    fn insert(&mut self, rule: &RuleRef<'_>) {
        let entry = self.space.store(rule);
        self.placement.place(&mut self.space, entry);
    }

    fn remove(&mut self, id: RuleId) {
        let table = self.space.remove(id);
        let mask = *self.space.mask(table);
        if self.space.drop_if_empty(table) {
            self.placement.table_dropped(&mask);
        }
        if let Some(numbers) = self.space.compact_if_sparse() {
            self.placement.tables_renumbered(&numbers);
        }
    }
}

impl<const W: usize, P: Placement<W> + 'static> Classifier for TupleEngine<W, P> {
    fn engine(&self) -> &'static str {
        self.placement.engine()
    }

    fn schema(&self) -> &Arc<Schema> {
        &self.space.schema
    }

    fn classify_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], scratch: &mut Scratch) {
        assert_eq!(keys.len(), winners.len(), "one winner for each key");
        let mut buffers: Box<Buffers> = scratch.take();
        self.space.improve_batch(keys.rows(), winners, &mut buffers);
        scratch.put(buffers);
    }

    fn classify_one(&self, key: &[u64], _: &mut Scratch) -> Winner {
        self.space.improve(row(key), Winner::MISS)
    }

    fn classify_masked(
        &self,
        key: &[u64],
        best: Winner,
        mask: &mut [u64],
        _: &mut Scratch,
    ) -> Winner {
        assert_eq!(mask.len(), W, "a mask as wide as the key");
        self.space.improve_masked(row(key), best, mask)
    }

    fn trace(&self, key: &[u64]) -> LookupTrace {
        self.space.trace(row(key))
    }

    fn stats(&self) -> Stats {
        let schema = &self.space.schema;
        let rule = schema.rule_words() * size_of::<u64>() + size_of::<Winner>();
        let rule_bytes = self.space.len() * rule;
        let tables = self.space.tables.iter().filter(|table| table.rules > 0);
        let largest = tables.map(|table| table.rules).max().unwrap_or(0);
        Stats {
            rules: self.space.len(),
            tables: self.space.table_count(),
            rule_bytes,
            index_bytes: self.space.bytes().saturating_sub(rule_bytes),
            details: vec![("rules in the largest table", largest.to_string())],
        }
    }

    fn dynamic(&self) -> Option<&dyn DynamicClassifier> {
        Some(self)
    }

    fn as_dynamic(&mut self) -> Option<&mut dyn DynamicClassifier> {
        Some(self)
    }
}

impl<const W: usize, P: Placement<W> + 'static> DynamicClassifier for TupleEngine<W, P> {
    fn contains(&self, id: RuleId) -> bool {
        self.space.contains(id)
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        self.space.copy_rule(id, words)
    }

    fn check(&self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        transaction.validate(
            &self.space.schema,
            &self.limits,
            self.space.len(),
            || self.space.bytes(),
            |id| self.space.contains(id),
        )
    }

    fn replay(&mut self, transaction: &Transaction<'_>) {
        for change in transaction.changes() {
            match change {
                Change::Insert(rule) => self.insert(rule),
                Change::Remove(id) => self.remove(*id),
                Change::Modify(rule) => {
                    self.remove(rule.id());
                    self.insert(rule);
                }
            }
        }
        if self.placement.rebuild_is_due(transaction.changes().len()) {
            let rebuilt = self.rebuild(&mut crate::classifier::NoProgress);
            rebuilt.expect("only an observer stops a rebuild");
        }
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.placement.rebuild(&mut self.space, progress)
    }
}

fn row<const W: usize>(key: &[u64]) -> &[u64; W] {
    key.try_into().expect("a key of another schema")
}

/// Calls a builder that is generic over the key width with a schema's width.
macro_rules! build_for_width {
    ($schema:expr, $build:ident($($argument:expr),*)) => {
        match $schema.key_words() {
            1 => $build::<1>($($argument),*),
            2 => $build::<2>($($argument),*),
            3 => $build::<3>($($argument),*),
            4 => $build::<4>($($argument),*),
            5 => $build::<5>($($argument),*),
            6 => $build::<6>($($argument),*),
            8 => $build::<8>($($argument),*),
            12 => $build::<12>($($argument),*),
            16 => $build::<16>($($argument),*),
            32 => $build::<32>($($argument),*),
            width => unreachable!("{width} is not one of KEY_WIDTHS"),
        }
    };
}
pub(in crate::engine) use build_for_width;
