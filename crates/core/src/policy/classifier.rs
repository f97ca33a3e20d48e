//! A policy built for lookups: an engine for each part, changed as one.

use crate::classifier::{BATCH, Classifier, DynamicClassifier, Limits, Progress, Scratch};
use crate::engine::EngineSpec;
use crate::error::{BuildError, PartError, UpdateError};
use crate::reoptimise::LookupPlan;
use crate::rule::{RuleId, RuleRef, Winner};
use crate::transaction::{Change, Transaction};

use super::{FastMap, PartId, Policy, PolicyTrace, check_parts};

/// A change to a policy's rules.
#[derive(Clone, Debug)]
pub enum PolicyChange<'a> {
    /// Adds a rule: one view for each part where it stands, with one id.
    Insert(Vec<(PartId, RuleRef<'a>)>),
    /// Removes the rule with an id from wherever it stands.
    Remove(RuleId),
    /// Replaces the rule with the same id; it may stand in other parts then.
    Modify(Vec<(PartId, RuleRef<'a>)>),
}

/// A rule's form in a part.
type View<'a> = (PartId, RuleRef<'a>);

impl<'a> PolicyChange<'a> {
    /// The id of the rule concerned, and the views of its new form, in a policy
    /// of `count` parts.
    fn rule(&self, count: usize) -> Result<(RuleId, &[View<'a>]), PartError> {
        let rules = match self {
            PolicyChange::Remove(id) => return Ok((*id, &[])),
            PolicyChange::Insert(rules) | PolicyChange::Modify(rules) => rules.as_slice(),
        };
        let id = rules.first().ok_or(PartError::Missing)?.1.id();
        check_parts(id, rules.iter().map(|(part, _)| *part), count)?;
        if let Some((part, rule)) = rules.iter().find(|(_, rule)| rule.id() != id) {
            return Err(PartError::DifferentId {
                id: id.get(),
                found: rule.id().get(),
                part: part.index(),
            });
        }
        Ok((id, rules))
    }
}

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

    /// Makes all changes, in order and in all parts, or none.
    ///
    /// # Errors
    /// [`UpdateError`] names the change of this list that cannot be made and
    /// why; nothing is changed then. When a part has no room left in bytes, that
    /// is the first change that gives this part a rule.
    ///
    /// # Panics
    /// When the engine takes no updates.
    pub fn apply(&mut self, changes: &[PolicyChange<'_>]) -> Result<(), UpdateError> {
        let rules = self.rules();
        let plan = self.plan(changes, &self.limits, rules, |id| {
            self.dynamic().map(|part| part.contains(id)).collect()
        })?;
        for (part, planned) in self.dynamic().zip(&plan.parts) {
            let checked = part.check(&planned.transaction);
            checked.map_err(|error| error.renumbered(|change| planned.origin[change]))?;
        }
        for (part, planned) in self.parts.iter_mut().zip(&plan.parts) {
            let part = part.as_dynamic().expect(STATIC_ENGINE);
            part.apply(&planned.transaction).expect("checked before");
        }
        self.rules = plan.rules;
        Ok(())
    }

    /// Reorganises every part for faster lookups, without changing any answer.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer asks to stop: some parts are
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
    pub fn adopt(&mut self, part: PartId, plan: &LookupPlan) -> bool {
        let part = self.part_mut(part).as_dynamic();
        let part = part.expect(STATIC_ENGINE).reoptimise_mut();
        part.is_some_and(|part| part.install(plan))
    }

    /// Does so many steps of work in each part that is otherwise left to
    /// updates; says whether there is more to do.
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

    /// What the changes mean for each part, checked against the limit on rules
    /// but not against the parts' own. Before them there are `rules` rules, and
    /// `standing_before` says for each part whether a rule stands in it.
    pub(crate) fn plan<'a>(
        &self,
        changes: &[PolicyChange<'a>],
        limits: &Limits,
        rules: usize,
        standing_before: impl Fn(RuleId) -> Vec<bool>,
    ) -> Result<Plan<'a>, UpdateError> {
        let mut plan = Plan {
            parts: self.parts.iter().map(|_| PartPlan::default()).collect(),
            rules,
        };
        // For each id, the parts where it stands once earlier changes are made.
        let mut standing: FastMap<RuleId, Vec<bool>> = FastMap::default();
        for (index, change) in changes.iter().enumerate() {
            let rule = change.rule(self.parts.len());
            let (id, rules) = rule.map_err(|error| UpdateError::Parts {
                change: index,
                error,
            })?;
            self.check_schemas(index, rules)?;
            let before = match standing.get(&id) {
                Some(parts) => parts.clone(),
                None => standing_before(id),
            };
            plan.count(index, change, id, before.contains(&true), limits)?;
            let mut after = vec![false; self.parts.len()];
            for (part, rule) in rules {
                after[part.index()] = true;
                let planned = &mut plan.parts[part.index()];
                planned.origin.push(index);
                if before[part.index()] {
                    planned.transaction.modify(*rule);
                } else {
                    planned.transaction.insert(*rule);
                }
            }
            for (part, planned) in plan.parts.iter_mut().enumerate() {
                if before[part] && !after[part] {
                    planned.origin.push(index);
                    planned.transaction.remove(id);
                }
            }
            standing.insert(id, after);
        }
        Ok(plan)
    }

    fn check_schemas(
        &self,
        change: usize,
        rules: &[(PartId, RuleRef<'_>)],
    ) -> Result<(), UpdateError> {
        for (part, rule) in rules {
            let expected = self.part(*part).schema();
            if rule.schema() != expected {
                return Err(UpdateError::WrongSchema {
                    change,
                    found: rule.schema().name().to_owned(),
                    expected: expected.name().to_owned(),
                });
            }
        }
        Ok(())
    }

    fn dynamic(&self) -> impl Iterator<Item = &dyn DynamicClassifier> {
        self.parts
            .iter()
            .map(|part| part.dynamic().expect(STATIC_ENGINE))
    }
}

const STATIC_ENGINE: &str = "the policy was built with an engine that takes no updates";

/// What a list of changes means for the parts.
pub(crate) struct Plan<'a> {
    pub(crate) parts: Vec<PartPlan<'a>>,
    /// Rules of the policy after the changes.
    pub(crate) rules: usize,
}

/// What a list of changes means for one part.
#[derive(Default)]
pub(crate) struct PartPlan<'a> {
    pub(crate) transaction: Transaction<'a>,
    /// For each change of the transaction, the caller's change behind it.
    pub(crate) origin: Vec<usize>,
}

impl PartPlan<'_> {
    /// Whether the part has more rules afterwards.
    pub(crate) fn grows(&self) -> bool {
        let changes = self.transaction.changes().iter();
        let grown: i64 = changes
            .map(|change| match change {
                Change::Insert(_) => 1,
                Change::Remove(_) => -1,
                Change::Modify(_) => 0,
            })
            .sum();
        grown > 0
    }
}

impl Plan<'_> {
    /// Checks a change against the ids that are there, and counts the rules.
    fn count(
        &mut self,
        index: usize,
        change: &PolicyChange<'_>,
        id: RuleId,
        present: bool,
        limits: &Limits,
    ) -> Result<(), UpdateError> {
        let missing = |operation| UpdateError::UnknownId {
            change: index,
            operation,
            id: id.get(),
        };
        match change {
            PolicyChange::Insert(_) if present => {
                return Err(UpdateError::DuplicateId {
                    change: index,
                    id: id.get(),
                });
            }
            PolicyChange::Insert(_) => self.rules += 1,
            PolicyChange::Remove(_) if !present => return Err(missing("remove")),
            PolicyChange::Remove(_) => self.rules -= 1,
            PolicyChange::Modify(_) if !present => return Err(missing("modify")),
            PolicyChange::Modify(_) => {}
        }
        if self.rules > limits.rules {
            return Err(UpdateError::TooManyRules {
                change: index,
                found: self.rules,
                limit: limits.rules,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
