//! Shared code of the two kinds of rule tables. Both consist of parts. A part is an
//! engine and the labels of its rules: actions and cookies.
//!
//! Matches and priorities come from the engine. Engine and labels are changed together, so
//! they always agree.

use crate::contract::classifier::{Classifier, DynamicClassifier, Progress};
use crate::contract::spec::EngineSpec;
use crate::engine;
use crate::model::error::BuildError;
use crate::model::rule::{ActionId, Rule, RuleId};
use crate::policy::PartId;
use crate::table::labels::Labels;

const STATIC: &str = "the table was built over engines that take updates";

/// Access to the parts of a replica. This trait is private to the library, so
/// [`RuleReplica`](super::RuleReplica) cannot be implemented elsewhere.
#[doc(hidden)]
pub trait Parts {
    /// The number of parts.
    fn part_count(&self) -> usize;

    /// The engine of a part.
    fn engine(&self, part: PartId) -> &dyn DynamicClassifier;

    /// Returns the engine of a part, for changes.
    fn engine_mut(&mut self, part: PartId) -> &mut dyn DynamicClassifier;

    /// The actions and cookies of a part's rules.
    fn labels(&self, part: PartId) -> &Labels;

    /// The parts' ids, in order.
    fn part_ids(&self) -> impl Iterator<Item = PartId> + use<Self> {
        (0..self.part_count()).map(PartId::from_index)
    }

    /// Bytes of a part: its engine and its rules' actions and cookies.
    fn part_bytes(&self, part: PartId) -> usize {
        self.engine(part).stats().bytes() + self.labels(part).bytes()
    }

    /// Bytes of all parts.
    fn all_bytes(&self) -> usize {
        self.part_ids().map(|part| self.part_bytes(part)).sum()
    }

    /// Reorganises every part for faster lookups.
    fn reorganise(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let mut parts = self.part_ids();
        parts.try_for_each(|part| self.engine_mut(part).rebuild(progress))
    }

    /// Returns the action of a rule of a part, or `None` if the part does not have the
    /// rule.
    #[inline]
    fn action_of(&self, part: PartId, id: RuleId) -> Option<ActionId> {
        let action = self.labels(part).action(id);
        action.or_else(|| self.engine(part).action(id))
    }

    /// Returns the cookie of a rule of a part, or `None` if the part does not have the
    /// rule.
    fn cookie_of(&self, part: PartId, id: RuleId) -> Option<u64> {
        let exists = self.engine(part).contains(id);
        exists.then(|| self.labels(part).cookie(id))
    }

    /// Returns the rule with this id in a part, or `None` if there is none.
    fn rule_of(&self, part: PartId, id: RuleId) -> Option<Rule> {
        let engine = self.engine(part);
        let schema = engine.schema();
        let mut words = Vec::with_capacity(schema.rule_words());
        let priority = engine.copy_rule(id, &mut words)?;
        let action = self.action_of(part, id)?;
        let cookie = self.labels(part).cookie(id);
        Some(Rule::from_words(
            schema, id, priority, action, cookie, words,
        ))
    }

    /// Returns all rules of a part, best first.
    fn rules_of(&self, part: PartId) -> impl ExactSizeIterator<Item = Rule> {
        let mut order = self.engine(part).winners();
        order.sort_unstable_by_key(|winner| winner.rank());
        order.into_iter().map(move |winner| {
            let rule = winner.rule().and_then(|id| self.rule_of(part, id));
            rule.expect("rules stay while they are pinned")
        })
    }
}

/// Returns a classifier as a [`DynamicClassifier`], for reading. The classifier must take
/// updates.
pub(super) fn dynamic(classifier: &dyn Classifier) -> &dyn DynamicClassifier {
    classifier.dynamic().expect(STATIC)
}

/// Returns a classifier as a [`DynamicClassifier`], for changes. The classifier must take
/// updates.
pub(super) fn dynamic_mut(classifier: &mut dyn Classifier) -> &mut dyn DynamicClassifier {
    classifier.as_dynamic().expect(STATIC)
}

/// Checks that an engine takes updates.
pub(super) fn refuse_static(spec: &EngineSpec) -> Result<(), BuildError> {
    if spec.is_dynamic() {
        return Ok(());
    }
    Err(engine::takes_no_updates(&spec.to_string()))
}
