//! A policy built for lookups: an engine for each part, updated together.

use crate::contract::classifier::{
    BATCH, Classifier, DynamicClassifier, Limits, Progress, Scratch,
};
use crate::contract::reoptimise::LookupPlan;
use crate::contract::spec::EngineSpec;
use crate::model::error::{BuildError, UpdateError};
use crate::model::rule::{RuleId, Winner};
use crate::model::transaction::Transaction;

use super::{PartId, Plan, Policy, PolicyTrace, PolicyTransaction};

/// An engine for each part of a policy.
pub struct PolicyClassifier {
    parts: Vec<Box<dyn Classifier>>,
    limits: Limits,
    /// The number of rules in the policy, each counted once. Not used if there
    /// is a single part: it may be changed directly, and counts its own rules.
    rules: usize,
}

impl Policy {
    /// Builds an engine for each part. The limit on rules is for the whole
    /// policy; a rule in several parts counts once. The limit on bytes is for
    /// each part.
    ///
    /// # Errors
    /// [`BuildError::TooManyRules`], or the [`BuildError`] of the first part
    /// that cannot be built.
    pub fn build(
        &self,
        spec: &EngineSpec,
        limits: &Limits,
        progress: &mut dyn Progress,
    ) -> Result<PolicyClassifier, BuildError> {
        limits.check_rules(self.len())?;
        let parts = self.parts.iter();
        let parts = parts.map(|rules| spec.build(rules, limits, progress));
        Ok(PolicyClassifier {
            parts: parts.collect::<Result<_, _>>()?,
            limits: *limits,
            rules: self.len(),
        })
    }
}

impl PolicyClassifier {
    /// Returns the classifier of one part.
    ///
    /// # Panics
    /// If the part does not exist.
    #[must_use]
    pub fn part(&self, part: PartId) -> &dyn Classifier {
        self.parts[part.index()].as_ref()
    }

    /// Returns the classifiers of all parts.
    #[must_use]
    pub fn parts(&self) -> &[Box<dyn Classifier>] {
        &self.parts
    }

    /// Returns the classifier of the only part, so that changes need no list of
    /// parts. Returns `None` if there are several parts, since they must change
    /// together.
    pub fn single_mut(&mut self) -> Option<&mut dyn Classifier> {
        match self.parts.as_mut_slice() {
            [only] => Some(only.as_mut()),
            _ => None,
        }
    }

    /// Looks up a trace in batches of [`BATCH`]. Overwrites `winners`. After
    /// the first calls with a scratch, allocates nothing.
    ///
    /// # Panics
    /// If the trace and the policy differ in their parts, or the numbers of
    /// winners and headers differ.
    pub fn classify(&self, trace: &PolicyTrace, winners: &mut [Winner], scratch: &mut Scratch) {
        assert_eq!(
            trace.parts.len(),
            self.parts.len(),
            "a trace of another policy"
        );
        assert_eq!(trace.len(), winners.len(), "one winner for each header");
        if let ([only], [keys]) = (self.parts.as_slice(), trace.parts.as_slice()) {
            winners.fill(Winner::MISS);
            for (keys, winners) in keys.batches(BATCH).zip(winners.chunks_mut(BATCH)) {
                only.classify_batch(keys, winners, scratch);
            }
            return;
        }
        let parts = self.part_ids().zip(&self.parts).zip(&trace.parts);
        for ((part, classifier), keys) in parts {
            let headers = winners.iter_mut().zip(&trace.order);
            let mut part_winners = headers.filter(|(_, header_part)| **header_part == part);
            for keys in keys.batches(BATCH) {
                let mut batch_winners = [Winner::MISS; BATCH];
                let batch_winners = &mut batch_winners[..keys.len()];
                classifier.classify_batch(keys, batch_winners, scratch);
                for (batch_winner, (winner, _)) in batch_winners.iter().zip(&mut part_winners) {
                    *winner = *batch_winner;
                }
            }
        }
    }

    fn part_ids(&self) -> impl Iterator<Item = PartId> + use<> {
        (0..self.parts.len()).map(PartId::from_index)
    }

    /// Makes all changes of a transaction in order and in all parts, or none.
    ///
    /// # Errors
    /// [`UpdateError`] names the refused change and the reason; nothing is
    /// changed then. If a part exceeds its limit on bytes, the error names the
    /// first change that adds a rule to this part.
    ///
    /// # Panics
    /// If the engine does not support updates.
    pub fn apply(&mut self, transaction: &PolicyTransaction<'_>) -> Result<(), UpdateError> {
        let mut plan = Plan::default();
        let schemas = self.parts.iter().map(|part| part.schema());
        plan.make(transaction, &schemas, &self.limits, self.rules(), |id| {
            self.standing(id)
        })?;
        // For each part, its changes and the position of each in the
        // transaction.
        let mut parts: Vec<(Transaction<'_>, Vec<usize>)> = Vec::new();
        parts.resize_with(self.parts.len(), Default::default);
        for step in plan.changes(transaction) {
            let (changes, origins) = &mut parts[step.part.index()];
            changes.push(step.change);
            origins.push(step.origin);
        }
        for (part, (changes, origins)) in self.dynamic().zip(&parts) {
            let checked = part.check(changes);
            checked.map_err(|error| error.renumbered(|change| origins[change]))?;
        }
        for (part, (changes, _)) in self.parts.iter_mut().zip(&parts) {
            let part = part.as_dynamic().expect(STATIC_ENGINE);
            part.apply(changes).expect("checked before");
        }
        self.rules = plan.rules();
        Ok(())
    }

    /// Returns the parts that have a rule: a bit for each.
    fn standing(&self, id: RuleId) -> u8 {
        let parts = self.dynamic().enumerate();
        parts.fold(0, |bits, (part, engine)| {
            bits | u8::from(engine.contains(id)) << part
        })
    }

    /// Reorganises every part for faster lookups, without changing any answer.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if the progress callback cancels. Some parts are
    /// reorganised then, and the others are unchanged.
    ///
    /// # Panics
    /// If the engine does not support updates.
    pub fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        for part in &mut self.parts {
            let part = part.as_dynamic().expect(STATIC_ENGINE);
            part.rebuild(progress)?;
        }
        Ok(())
    }

    /// Begins to arrange a part's rules according to a plan. Returns `false`,
    /// and does nothing, if the plan does not fit
    /// ([`install`](crate::contract::reoptimise::Reoptimise::install)).
    ///
    /// # Panics
    /// If the part does not exist, or the engine does not support updates.
    #[must_use]
    pub fn install(&mut self, part: PartId, plan: &LookupPlan) -> bool {
        let part = self.part_mut(part).as_dynamic();
        let part = part.expect(STATIC_ENGINE).reoptimise_mut();
        part.is_some_and(|part| part.install(plan))
    }

    /// Does at most `steps` steps of unfinished work in each part, such as
    /// installing a plan. Otherwise, updates do this work. Returns true if
    /// there is more to do.
    ///
    /// # Panics
    /// If the engine does not support updates.
    pub fn maintain(&mut self, steps: usize) -> bool {
        let mut has_more = false;
        for part in &mut self.parts {
            let part = part.as_dynamic().expect(STATIC_ENGINE);
            has_more |= part.reoptimise_mut().is_some_and(|part| part.step(steps));
        }
        has_more
    }

    /// Returns the number of rules in the policy, each counted once.
    pub(crate) fn rules(&self) -> usize {
        match self.parts.as_slice() {
            [only] => only.stats().rules,
            _ => self.rules,
        }
    }

    /// Sets the number of rules, for a layer that changed the parts directly.
    pub(crate) fn set_rules(&mut self, rules: usize) {
        self.rules = rules;
    }

    /// Returns one part's classifier for changes; call `set_rules` afterwards.
    pub(crate) fn part_mut(&mut self, part: PartId) -> &mut dyn Classifier {
        self.parts[part.index()].as_mut()
    }

    fn dynamic(&self) -> impl Iterator<Item = &dyn DynamicClassifier> {
        self.parts
            .iter()
            .map(|part| part.dynamic().expect(STATIC_ENGINE))
    }
}

const STATIC_ENGINE: &str = "the policy was built with an engine that takes no updates";

#[cfg(test)]
mod tests;
