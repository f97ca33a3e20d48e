//! A policy built for lookups: an engine for each part, changed as one.

use crate::classifier::{BATCH, Classifier, DynamicClassifier, Limits, Progress, Scratch};
use crate::engine::EngineSpec;
use crate::error::{BuildError, UpdateError};
use crate::reoptimise::LookupPlan;
use crate::rule::{RuleId, Winner};
use crate::transaction::Transaction;

use super::{PartId, Plan, Policy, PolicyTrace, PolicyTransaction};

/// An engine for each part of a policy.
pub struct PolicyClassifier {
    parts: Vec<Box<dyn Classifier>>,
    limits: Limits,
    /// Rules of the policy, each counted once. With a single part that part
    /// knows better, since it may be changed directly.
    rules: usize,
}

impl Policy {
    /// Builds an engine for each part. The limit on rules is one for the
    /// policy, where a rule that stands in several parts counts once; the limit
    /// on bytes is one for each part.
    ///
    /// # Errors
    /// The first part's [`BuildError`].
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
    /// The classifier of one part.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn part(&self, part: PartId) -> &dyn Classifier {
        self.parts[part.index()].as_ref()
    }

    /// All parts' classifiers.
    #[must_use]
    pub fn parts(&self) -> &[Box<dyn Classifier>] {
        &self.parts
    }

    /// The classifier of a policy with one part, to change directly: the way
    /// without a list of parts for each change. `None` when there are several
    /// parts, which must change together.
    pub fn single_mut(&mut self) -> Option<&mut dyn Classifier> {
        match self.parts.as_mut_slice() {
            [only] => Some(only.as_mut()),
            _ => None,
        }
    }

    /// Looks a trace up, in batches of [`BATCH`]. Whatever `winners` holds is
    /// overwritten. After the first calls with a scratch nothing is allocated.
    ///
    /// # Panics
    /// When the trace has other parts than the policy, or `winners` another
    /// length.
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
            let mut of_part = headers.filter(|(_, other)| **other == part);
            for keys in keys.batches(BATCH) {
                let mut found = [Winner::MISS; BATCH];
                let found = &mut found[..keys.len()];
                classifier.classify_batch(keys, found, scratch);
                for (found, (winner, _)) in found.iter().zip(&mut of_part) {
                    *winner = *found;
                }
            }
        }
    }

    fn part_ids(&self) -> impl Iterator<Item = PartId> + use<> {
        (0..self.parts.len()).map(PartId::from_index)
    }

    /// Makes all of a transaction's changes, in order and in all parts, or none.
    ///
    /// # Errors
    /// [`UpdateError`] names the change that cannot be made and why; nothing is
    /// changed then. When a part has no room left in bytes, that is the first
    /// change that gives this part a rule.
    ///
    /// # Panics
    /// When the engine takes no updates.
    pub fn apply(&mut self, transaction: &PolicyTransaction<'_>) -> Result<(), UpdateError> {
        let mut plan = Plan::default();
        let schemas = self.parts.iter().map(|part| part.schema());
        plan.make(transaction, &schemas, &self.limits, self.rules(), |id| {
            self.standing(id)
        })?;
        // For each part its changes, and the transaction's change behind each.
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

    /// The parts where a rule stands: a bit for each.
    fn standing(&self, id: RuleId) -> u8 {
        let parts = self.dynamic().enumerate();
        parts.fold(0, |bits, (part, engine)| {
            bits | u8::from(engine.contains(id)) << part
        })
    }

    /// Reorganises every part for faster lookups, without changing any answer.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer cancels: some parts are
    /// reorganised then, and the others as they were.
    ///
    /// # Panics
    /// When the engine takes no updates.
    pub fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        for part in &mut self.parts {
            let part = part.as_dynamic().expect(STATIC_ENGINE);
            part.rebuild(progress)?;
        }
        Ok(())
    }

    /// Begins to arrange a part's rules as a plan says; returns `false`, and does
    /// nothing, with a plan that does not fit
    /// ([`install`](crate::reoptimise::Reoptimise::install)).
    ///
    /// # Panics
    /// When there is no such part, or the engine takes no updates.
    #[must_use]
    pub fn install(&mut self, part: PartId, plan: &LookupPlan) -> bool {
        let part = self.part_mut(part).as_dynamic();
        let part = part.expect(STATIC_ENGINE).reoptimise_mut();
        part.is_some_and(|part| part.install(plan))
    }

    /// Does in each part at most `steps` steps of the work that is otherwise
    /// left to updates; says whether there is more to do.
    ///
    /// # Panics
    /// When the engine takes no updates.
    pub fn maintain(&mut self, steps: usize) -> bool {
        let mut more = false;
        for part in &mut self.parts {
            let part = part.as_dynamic().expect(STATIC_ENGINE);
            more |= part.reoptimise_mut().is_some_and(|part| part.step(steps));
        }
        more
    }

    /// Rules of the policy, each counted once.
    pub(crate) fn rules(&self) -> usize {
        match self.parts.as_slice() {
            [only] => only.stats().rules,
            _ => self.rules,
        }
    }

    /// Says how many rules there are, for a layer that changed the parts.
    pub(crate) fn set_rules(&mut self, rules: usize) {
        self.rules = rules;
    }

    /// One part's classifier, to change; then comes `set_rules`.
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
