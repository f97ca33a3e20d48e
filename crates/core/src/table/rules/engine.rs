//! A table of one engine.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::classifier::{Classifier, DynamicClassifier, Limits, Progress, Scratch};
use crate::cookies::Cookies;
use crate::engine::{self, EngineSpec};
use crate::error::{BuildError, UpdateError};
use crate::key::KeySlice;
use crate::policy::PartId;
use crate::rule::{ActionId, Rule, RuleId, RuleRef, Winner};
use crate::ruleset::RuleSet;
use crate::schema::Schema;
use crate::table::handles::{Reader, Table, Version};
use crate::table::replica::Replica;
use crate::table::writer::Writer;
use crate::transaction::Transaction;

use super::accepted::AcceptedRules;
use super::log::{Replay, RuleLog};
use super::parts::{Parts, RuleReplica, dynamic, dynamic_mut, refuse_static};
use super::reoptimise::{self, InstallPlan};

/// An engine with the cookies of its rules. It stands for the classifier, so
/// lookups go to a [`Guard`](crate::table::Guard) directly.
pub struct EngineReplica {
    classifier: Box<dyn Classifier>,
    cookies: Cookies,
    /// The classifier's schema, to read while the classifier changes.
    schema: Arc<Schema>,
    replay: Replay,
}

impl EngineReplica {
    /// The classifier was built over these rules.
    fn new(classifier: Box<dyn Classifier>, rules: &RuleSet) -> EngineReplica {
        EngineReplica {
            schema: Arc::clone(classifier.schema()),
            classifier,
            cookies: Cookies::new(rules),
            replay: Replay::default(),
        }
    }

    /// The classifier.
    #[must_use]
    pub fn classifier(&self) -> &dyn Classifier {
        &*self.classifier
    }

    /// The action of the rule that won a lookup, `None` for a miss. The winner
    /// should come from the same guard; of one from another version, this is the
    /// action that the rule with its id has here, `None` if there is none.
    #[must_use]
    pub fn action(&self, winner: Winner) -> Option<ActionId> {
        self.action_of(PartId::FIRST, winner.rule()?)
    }

    /// The cookie of the rule that won a lookup, `None` for a miss; see
    /// [`action`](Self::action).
    #[must_use]
    pub fn cookie(&self, winner: Winner) -> Option<u64> {
        self.cookie_of(PartId::FIRST, winner.rule()?)
    }

    /// A copy of the rule with that id, if there is one.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> Option<Rule> {
        self.rule_of(PartId::FIRST, id)
    }

    /// Copies of all rules, best first: highest priority, then lowest id. At
    /// once it reads each rule's priority and sorts them (O(*n* log *n*), 8
    /// bytes a rule); then each step copies one rule. The guard stays pinned
    /// meanwhile, which for many rules may keep the writer waiting.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = Rule> {
        self.rules_of(PartId::FIRST)
    }

    /// The number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.engine(PartId::FIRST).rules()
    }

    /// Whether there is no rule.
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
        let (schema, cookies) = (&self.schema, &mut self.cookies);
        self.replay
            .run(log, changes, PartId::FIRST, schema, engine, cookies);
    }

    fn operate(&mut self, operation: &InstallPlan) {
        reoptimise::install(self, operation);
    }

    fn replaces(operation: &InstallPlan, earlier: &InstallPlan) -> bool {
        operation.replaces(earlier)
    }

    fn maintain(&mut self, steps: usize) -> bool {
        reoptimise::maintain(self, steps)
    }

    fn is_unfinished(&self) -> bool {
        reoptimise::is_unfinished(self)
    }

    fn bytes(&self) -> usize {
        self.all_bytes()
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

    fn cookies(&self, _: PartId) -> &Cookies {
        &self.cookies
    }
}

impl Table {
    /// Builds an engine over the rules twice, and the table around it.
    ///
    /// # Errors
    /// [`BuildError`] when the engine takes no updates, does not serve the
    /// schema, a limit is met or the observer cancels. The limit on bytes
    /// is for each of the two copies, cookies included.
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

    /// A table around two classifiers that were built over these rules, for
    /// engines that are not in the registry. Cookies come from `rules`. From now on the limits are the table's to keep.
    ///
    /// # Errors
    /// [`BuildError::Static`] when one of them takes no updates,
    /// [`BuildError::TooManyBytes`] when one of them and the cookies take more
    /// bytes together than the limit.
    ///
    /// # Panics
    /// When they differ from `rules` in the schema, in which ids there are, or in
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
            let same = dynamic.rules() == rules.len() && rules.iter().all(held);
            assert!(same, "two sides with the same rules");
        }
        let [left, right] = [left, right].map(|side| EngineReplica::new(side, rules));
        let accepted = AcceptedRules::new([&left, &right], rules.len(), limits)?;
        Ok(Table::new(left, right, accepted))
    }
}

impl Reader {
    /// Sets `winners[i]` to the best rule that matches `keys[i]`,
    /// [`Winner::MISS`] if no rule does. All keys are looked up at one version,
    /// which is returned.
    ///
    /// # Panics
    /// When there are not as many winners as keys, or the keys are of another
    /// width than the schema's.
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
