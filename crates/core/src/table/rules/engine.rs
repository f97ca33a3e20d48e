//! A table of one engine.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::contract::classifier::{Classifier, DynamicClassifier, Limits, Progress, Scratch};
use crate::contract::spec::EngineSpec;
use crate::engine;
use crate::model::error::{BuildError, UpdateError};
use crate::model::key::KeySlice;
use crate::model::rule::{ActionId, Rule, RuleId, RuleRef, Winner};
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::model::transaction::Transaction;
use crate::policy::PartId;
use crate::table::handles::{Reader, Table, Version};
use crate::table::labels::Labels;
use crate::table::replica::{Accepted, Replica};
use crate::table::writer::Writer;

use super::accepted::AcceptedRules;
use super::install::{self, InstallPlan};
use super::log::{Replay, RuleLog};
use super::parts::{Parts, dynamic, dynamic_mut, refuse_static};
use super::rule_replica::RuleReplica;

/// An engine with the actions and cookies of its rules. It dereferences to the classifier, so a
/// [`Guard`](crate::table::Guard) has the classifier's lookups.
pub struct EngineReplica {
    classifier: Box<dyn Classifier>,
    labels: Labels,
    /// The classifier's schema, for reading while the classifier changes.
    schema: Arc<Schema>,
    replay: Replay,
}

impl EngineReplica {
    /// Makes a replica of a classifier that was built over these rules.
    fn new(classifier: Box<dyn Classifier>, rules: &RuleSet) -> EngineReplica {
        EngineReplica {
            schema: Arc::clone(classifier.schema()),
            classifier,
            labels: Labels::new(rules),
            replay: Replay::default(),
        }
    }

    /// The classifier.
    #[must_use]
    pub fn classifier(&self) -> &dyn Classifier {
        &*self.classifier
    }

    /// Returns the action of the rule that won a lookup, or `None` for a miss. The winner
    /// should come from the same guard. If it comes from another version, returns the
    /// action of the rule with the winner's id in this version, or `None` if no rule has
    /// this id.
    #[must_use]
    #[inline]
    pub fn action(&self, winner: Winner) -> Option<ActionId> {
        self.action_of(PartId::FIRST, winner.rule()?)
    }

    /// Returns the cookie of the rule that won a lookup, or `None` for a miss; see
    /// [`action`](Self::action).
    #[must_use]
    pub fn cookie(&self, winner: Winner) -> Option<u64> {
        self.cookie_of(PartId::FIRST, winner.rule()?)
    }

    /// Returns a copy of the rule with this id, if there is one.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> Option<Rule> {
        self.rule_of(PartId::FIRST, id)
    }

    /// Returns copies of all rules, best first: highest priority, then lowest id. The
    /// call sorts the rules by priority (O(*n* log *n*) time, 8 bytes a rule). Each step
    /// of the iterator then copies one rule. The guard stays pinned during the iteration,
    /// so with many rules, the writer may have to wait.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = Rule> {
        self.rules_of(PartId::FIRST)
    }

    /// The number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.engine(PartId::FIRST).rules()
    }

    /// True if the engine has no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Deref for EngineReplica {
    type Target = dyn Classifier;

    #[inline]
    fn deref(&self) -> &(dyn Classifier + 'static) {
        &*self.classifier
    }
}

impl Replica for EngineReplica {
    type Transaction<'t> = &'t Transaction<'t>;
    type Refusal = UpdateError;
    type Log = RuleLog;
    type Accepted = AcceptedRules;
    type Operation = InstallPlan;

    fn replay(&mut self, log: &RuleLog, changes: Range<usize>) {
        let engine = dynamic_mut(&mut *self.classifier);
        let (schema, labels) = (&self.schema, &mut self.labels);
        self.replay
            .run(log, changes, PartId::FIRST, schema, engine, labels);
    }

    fn operate(&mut self, operation: &InstallPlan) {
        install::install(self, operation);
    }

    fn replaces(operation: &InstallPlan, earlier: &InstallPlan) -> bool {
        operation.replaces(earlier)
    }

    fn maintain(&mut self, steps: usize) -> bool {
        install::maintain(self, steps)
    }

    fn is_unfinished(&self) -> bool {
        install::is_unfinished(self)
    }

    fn bytes(&self) -> usize {
        self.all_bytes()
    }
}

impl Accepted<EngineReplica> for AcceptedRules {
    fn check(
        &mut self,
        live: &EngineReplica,
        transaction: &Transaction<'_>,
    ) -> Result<usize, UpdateError> {
        self.check_engine(live, transaction)
    }

    fn accept(&mut self, transaction: &Transaction<'_>, log: &mut RuleLog) {
        self.accept_engine(transaction, log);
    }

    fn deferred(&mut self, log: &RuleLog, from: usize) {
        self.record(log, from);
    }

    fn published(&mut self, log: &RuleLog) {
        self.forget(log);
    }

    fn bytes(&self) -> usize {
        AcceptedRules::bytes(self)
    }
}

impl RuleReplica for EngineReplica {
    fn part(&self, part: PartId) -> &dyn Classifier {
        assert_eq!(part, PartId::FIRST, "an engine is one part");
        self.classifier()
    }
}

impl Parts for EngineReplica {
    fn part_count(&self) -> usize {
        1
    }

    fn engine(&self, _: PartId) -> &dyn DynamicClassifier {
        dynamic(&*self.classifier)
    }

    fn engine_mut(&mut self, _: PartId) -> &mut dyn DynamicClassifier {
        dynamic_mut(&mut *self.classifier)
    }

    fn labels(&self, _: PartId) -> &Labels {
        &self.labels
    }
}

impl Table {
    /// Builds two copies of an engine over the rules, and returns a live table of them.
    ///
    /// # Errors
    /// [`BuildError`] if the engine takes no updates or does not support the schema, if a
    /// limit is exceeded, or if the progress callback cancels. The limit on bytes is for
    /// each of the two copies, including actions and cookies.
    pub fn build(
        rules: &RuleSet,
        spec: &EngineSpec,
        limits: &Limits,
        progress: &mut dyn Progress,
    ) -> Result<(Writer, Table), BuildError> {
        refuse_static(spec)?;
        let left = EngineReplica::new(spec.build(rules, limits, progress)?, rules);
        let right = EngineReplica::new(spec.build(rules, limits, progress)?, rules);
        let accepted = AcceptedRules::new([&left, &right], rules.len(), limits)?;
        Ok(Table::new(left, right, accepted))
    }

    /// Returns a live table of two classifiers that were built over these rules, for
    /// engines that are not in the registry. Cookies come from `rules`. The writer
    /// enforces the limits.
    ///
    /// # Errors
    /// [`BuildError::Static`] if a classifier takes no updates,
    /// [`BuildError::TooManyBytes`] if a classifier with its rules' actions and cookies takes
    /// more bytes than the limit.
    ///
    /// # Panics
    /// If a classifier differs from `rules` in the schema, in the ids of its rules, or in
    /// an action.
    pub fn from_pair(
        left: Box<dyn Classifier>,
        right: Box<dyn Classifier>,
        rules: &RuleSet,
        limits: &Limits,
    ) -> Result<(Writer, Table), BuildError> {
        for side in [&left, &right] {
            let Some(dynamic) = side.dynamic() else {
                return Err(engine::takes_no_updates(side.engine()));
            };
            assert_eq!(side.schema(), rules.schema(), "two sides, one schema");
            let held = |rule: RuleRef<'_>| dynamic.action(rule.id()) == Some(rule.action());
            let equal_rules = dynamic.rules() == rules.len() && rules.iter().all(held);
            assert!(equal_rules, "two sides with the same rules");
        }
        let [left, right] = [left, right].map(|side| EngineReplica::new(side, rules));
        let accepted = AcceptedRules::new([&left, &right], rules.len(), limits)?;
        Ok(Table::new(left, right, accepted))
    }
}

impl Reader {
    /// Sets `winners[i]` to the best rule that matches `keys[i]`, or to [`Winner::MISS`]
    /// if no rule does. Looks up all keys at one version, and returns the version.
    ///
    /// # Panics
    /// If the numbers of winners and keys differ, or the keys have another width than
    /// the schema's.
    pub fn classify_batch(
        &mut self,
        keys: KeySlice<'_>,
        winners: &mut [Winner],
        scratch: &mut Scratch,
    ) -> Version {
        let guard = self.pin();
        guard.classify_batch(keys, winners, scratch);
        guard.version()
    }
}
