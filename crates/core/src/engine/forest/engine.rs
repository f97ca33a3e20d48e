//! A forest as a classifier: the contract's calls, passed on.

use std::sync::Arc;

use super::index::Forest;
use super::lookup::{Buffers, LookupConfig};
use super::settings::{NAME, Settings};
use crate::classifier::{
    Classifier, DynamicClassifier, Limits, LookupTrace, Progress, Scratch, Stats, report,
};
use crate::engine::tuple_space::build_for_width;
use crate::error::{BuildError, UpdateError};
use crate::key::KeySlice;
use crate::relearn::{Drift, LookupPlan, Study};
use crate::rule::{Priority, RuleId, Winner};
use crate::ruleset::RuleSet;
use crate::schema::Schema;
use crate::transaction::{Change, Transaction};

/// A forest, and the limits of its caller.
pub(super) struct ForestEngine<const W: usize> {
    pub(super) forest: Forest<W>,
    pub(super) limits: Limits,
}

/// Builds a forest over rules.
pub(super) fn build(
    rules: &RuleSet,
    settings: Settings,
    lookup: LookupConfig,
    limits: &Limits,
    progress: &mut dyn Progress,
) -> Result<Box<dyn Classifier>, BuildError> {
    build_for_width!(
        rules.schema(),
        build_width(rules, settings, lookup, limits, progress)
    )
}

fn build_width<const W: usize>(
    rules: &RuleSet,
    settings: Settings,
    lookup: LookupConfig,
    limits: &Limits,
    progress: &mut dyn Progress,
) -> Result<Box<dyn Classifier>, BuildError> {
    let mut forest = Forest::<W>::new(rules.schema(), settings, lookup);
    limits.check_bytes(rules.len().saturating_mul(forest.rule_bytes()))?;
    forest.fill(rules.iter(), progress)?;
    limits.check_bytes(forest.bytes())?;
    report(progress, "learning masks", rules.len(), rules.len())?;
    Ok(Box::new(ForestEngine {
        forest,
        limits: *limits,
    }))
}

/// One key as a row.
fn row<const W: usize>(key: &[u64]) -> &[u64; W] {
    key.try_into().expect("a key of another schema")
}

impl<const W: usize> Classifier for ForestEngine<W> {
    fn engine(&self) -> &'static str {
        NAME
    }

    fn schema(&self) -> &Arc<Schema> {
        self.forest.schema()
    }

    fn classify_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], scratch: &mut Scratch) {
        assert_eq!(keys.len(), winners.len(), "one winner for each key");
        let mut buffers: Box<Buffers> = scratch.take();
        self.forest
            .improve_batch(keys.rows(), winners, &mut buffers);
        scratch.put(buffers);
    }

    fn classify_one(&self, key: &[u64], _: &mut Scratch) -> Winner {
        self.forest.improve(row(key), Winner::MISS)
    }

    fn classify_masked(
        &self,
        key: &[u64],
        best: Winner,
        mask: &mut [u64],
        _: &mut Scratch,
    ) -> Winner {
        assert_eq!(mask.len(), W, "a mask as wide as the key");
        self.forest.improve_masked(row(key), best, mask)
    }

    fn trace(&self, key: &[u64]) -> LookupTrace {
        self.forest.trace(row(key))
    }

    fn stats(&self) -> Stats {
        self.forest.stats()
    }

    fn dynamic(&self) -> Option<&dyn DynamicClassifier> {
        Some(self)
    }

    fn as_dynamic(&mut self) -> Option<&mut dyn DynamicClassifier> {
        Some(self)
    }
}

impl<const W: usize> DynamicClassifier for ForestEngine<W> {
    fn contains(&self, id: RuleId) -> bool {
        self.forest.contains(id)
    }

    fn capacity(&self) -> usize {
        self.forest.capacity()
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        self.forest.copy_rule(id, words)
    }

    fn check(&self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        let checked = transaction.validate(
            self.forest.schema(),
            &self.limits.within(self.capacity()),
            self.forest.len(),
            || self.forest.bytes(),
            |id| self.forest.contains(id),
        );
        checked.map_err(|error| error.within(&self.limits, NAME))
    }

    fn replay(&mut self, transaction: &Transaction<'_>) {
        for change in transaction.changes() {
            match change {
                Change::Insert(rule) => self.forest.insert(rule),
                Change::Remove(id) => self.forest.remove(*id),
                Change::Modify(rule) => {
                    self.forest.remove(rule.id());
                    self.forest.insert(rule);
                }
            }
            self.forest.maintain(Forest::<W>::STEPS);
        }
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.forest.rebuild(progress)
    }

    fn drift(&self) -> Option<Drift> {
        Some(self.forest.drift())
    }

    fn study(&self, study: &mut Study) -> bool {
        self.forest.add_to(study.notes(|| self.forest.snapshot()))
    }

    fn adopt(&mut self, plan: &LookupPlan) -> bool {
        let fits = plan.fits(self);
        if let Some(plan) = plan.get().filter(|_| fits) {
            self.forest.adopt(plan);
        }
        fits
    }

    fn maintain(&mut self, steps: usize) -> bool {
        self.forest.maintain(steps);
        self.is_unfinished()
    }

    fn is_unfinished(&self) -> bool {
        self.forest.is_unfinished()
    }
}
