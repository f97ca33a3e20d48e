//! What the two kinds of rule tables have in common: parts, each an engine and
//! the cookies of its rules.
//!
//! Matches, priorities and actions come from the engine; both are changed
//! together, so they always agree.

use crate::classifier::{Classifier, DynamicClassifier, Progress};
use crate::cookies::Cookies;
use crate::engine::{self, EngineSpec};
use crate::error::{BuildError, UpdateError};
use crate::policy::PartId;
use crate::rule::{ActionId, Rule, RuleId};
use crate::table::handles::Version;
use crate::table::replica::Replica;
use crate::table::writer::Writer;

use super::accepted::AcceptedRules;
use super::log::RuleLog;
use super::reoptimise::InstallPlan;

const STATIC: &str = "the table was built over engines that take updates";

/// A replica of rules: [`EngineReplica`](super::EngineReplica) or
/// [`PolicyReplica`](super::PolicyReplica). Code for both takes the part as an
/// argument.
pub trait RuleReplica:
    Replica<Refusal = UpdateError, Log = RuleLog, Accepted = AcceptedRules, Operation = InstallPlan>
    + Parts
{
    /// The classifier of one part. An engine has one,
    /// [`PartId::FIRST`].
    ///
    /// # Panics
    /// When there is no such part.
    fn part(&self, part: PartId) -> &dyn Classifier;
}

/// Parts as the library sees them. Keeps [`RuleReplica`] to its own types.
#[doc(hidden)]
pub trait Parts {
    /// The number of parts.
    fn part_count(&self) -> usize;

    /// The engine of a part.
    fn engine(&self, part: PartId) -> &dyn DynamicClassifier;

    /// The same, to change.
    fn engine_mut(&mut self, part: PartId) -> &mut dyn DynamicClassifier;

    /// Cookies of a part's rules.
    fn cookies(&self, part: PartId) -> &Cookies;

    /// The parts' ids, in order.
    fn part_ids(&self) -> impl Iterator<Item = PartId> + use<Self> {
        (0..self.part_count()).map(PartId::from_index)
    }

    /// Bytes of a part: its engine and its rules' cookies.
    fn part_bytes(&self, part: PartId) -> usize {
        self.engine(part).stats().bytes() + self.cookies(part).bytes()
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

    /// The action of a rule of a part, if it is there.
    fn action_of(&self, part: PartId, id: RuleId) -> Option<ActionId> {
        self.engine(part).action(id)
    }

    /// The cookie of a rule of a part, if it is there.
    fn cookie_of(&self, part: PartId, id: RuleId) -> Option<u64> {
        let there = self.engine(part).contains(id);
        there.then(|| self.cookies(part).get(id))
    }

    /// The rule with that id in a part, if there is one.
    fn rule_of(&self, part: PartId, id: RuleId) -> Option<Rule> {
        let engine = self.engine(part);
        let schema = engine.schema();
        let mut words = Vec::with_capacity(schema.rule_words());
        let priority = engine.copy_rule(id, &mut words)?;
        let action = self.action_of(part, id)?;
        let cookie = self.cookies(part).get(id);
        Some(Rule::from_words(
            schema, id, priority, action, cookie, words,
        ))
    }

    /// All rules of a part, best first.
    fn rules_of(&self, part: PartId) -> impl ExactSizeIterator<Item = Rule> {
        let mut order = self.engine(part).winners();
        order.sort_unstable_by_key(|winner| winner.rank());
        order.into_iter().map(move |winner| {
            let rule = winner.rule().and_then(|id| self.rule_of(part, id));
            rule.expect("rules stay while they are pinned")
        })
    }
}

/// A classifier that takes updates, to read.
pub(super) fn dynamic(classifier: &dyn Classifier) -> &dyn DynamicClassifier {
    classifier.dynamic().expect(STATIC)
}

/// A classifier that takes updates.
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

impl<R: RuleReplica> Writer<R> {
    /// The number of rules, by everything accepted. In a policy, one that stands
    /// in several parts counts once.
    #[must_use]
    pub fn rules(&self) -> usize {
        self.with_accepted(|_, accepted| accepted.rules())
    }

    /// Whether a rule has that id, by everything accepted.
    #[must_use]
    pub fn contains(&self, id: RuleId) -> bool {
        self.with_accepted(|live, accepted| accepted.standing(live, id) != 0)
    }

    /// Publishes, then reorganises both sides for faster lookups, one after the
    /// other, without changing any answer or the version. Readers go on
    /// meanwhile, and gain as soon as the first side is done. Waits for readers
    /// of older versions.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer cancels. Stopped in the
    /// second half, one side is reorganised and the other is not, which costs
    /// speed and nothing else.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<Version, BuildError> {
        self.on_both_sides(|replica| replica.reorganise(progress))
    }
}
