//! A table of a policy: an engine for each part, changed together.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::contract::classifier::{Classifier, DynamicClassifier, Limits, Progress};
use crate::contract::spec::EngineSpec;
use crate::model::error::{BuildError, UpdateError};
use crate::model::rule::{ActionId, Rule, RuleId, Winner};
use crate::model::schema::Schema;
use crate::policy::{PartId, Policy, PolicyClassifier, PolicyTransaction};
use crate::table::handles::Table;
use crate::table::labels::Labels;
use crate::table::replica::{Accepted, Replica};
use crate::table::writer::Writer;

use super::accepted::AcceptedRules;
use super::install::{self, InstallPlan};
use super::log::{Replay, RuleLog};
use super::parts::{Parts, dynamic, dynamic_mut, refuse_static};
use super::rule_replica::RuleReplica;

/// A live table of a policy's parts, such as IPv4 and IPv6: readers see a transaction in
/// all parts or in none.
pub type PolicyTable = Table<PolicyReplica>;

/// Changes a policy's rules while readers use them.
pub type PolicyWriter = Writer<PolicyReplica>;

/// A policy's engines with the actions and cookies of their rules. It dereferences to the
/// [`PolicyClassifier`], so a [`Guard`](crate::table::Guard) has its lookups.
pub struct PolicyReplica {
    classifier: PolicyClassifier,
    /// The actions and cookies of each part's rules.
    labels: Box<[Labels]>,
    /// The parts' schemas, for reading while the parts change.
    schemas: Box<[Arc<Schema>]>,
    /// The number of rules. A rule in several parts counts once.
    rules: usize,
    replay: Replay,
}

impl PolicyReplica {
    /// Returns the action of the rule that won a lookup, or `None` for a miss. The winner
    /// should come from the same guard. If it comes from another version, returns the
    /// action of the rule with the winner's id in this version, or `None` if no rule has
    /// this id.
    ///
    /// A rule usually has the same action in all its parts. If it has several actions,
    /// returns the action in the first of its parts. [`action_in`](Self::action_in) has
    /// the part as an argument.
    #[must_use]
    pub fn action(&self, winner: Winner) -> Option<ActionId> {
        let id = winner.rule()?;
        self.part_ids().find_map(|part| self.action_of(part, id))
    }

    /// Returns the action of the rule that won a lookup in a part, or `None` for a miss.
    ///
    /// # Panics
    /// If the part does not exist.
    #[must_use]
    #[inline]
    pub fn action_in(&self, part: PartId, winner: Winner) -> Option<ActionId> {
        self.action_of(part, winner.rule()?)
    }

    /// Returns the cookie of the rule that won a lookup, or `None` for a miss. If a rule
    /// has several cookies, returns the cookie in its first part.
    #[must_use]
    pub fn cookie(&self, winner: Winner) -> Option<u64> {
        let id = winner.rule()?;
        self.part_ids().find_map(|part| self.cookie_of(part, id))
    }

    /// Returns the cookie of the rule that won a lookup in a part, or `None` for a miss.
    ///
    /// # Panics
    /// If the part does not exist.
    #[must_use]
    pub fn cookie_in(&self, part: PartId, winner: Winner) -> Option<u64> {
        self.cookie_of(part, winner.rule()?)
    }

    /// Returns a copy of the rule with this id in a part, if there is one.
    ///
    /// # Panics
    /// If the part does not exist.
    #[must_use]
    pub fn rule_in(&self, part: PartId, id: RuleId) -> Option<Rule> {
        self.rule_of(part, id)
    }

    /// Returns copies of all rules of a part, best first.
    /// [`EngineReplica::rules`](super::EngineReplica::rules) describes the cost.
    ///
    /// # Panics
    /// If the part does not exist.
    pub fn rules_in(&self, part: PartId) -> impl ExactSizeIterator<Item = Rule> {
        self.rules_of(part)
    }

    /// The number of rules; a rule in several parts counts once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules
    }

    /// True if the policy has no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rules of a part.
    ///
    /// # Panics
    /// If the part does not exist.
    #[must_use]
    pub fn len_in(&self, part: PartId) -> usize {
        self.engine(part).rules()
    }
}

impl Deref for PolicyReplica {
    type Target = PolicyClassifier;

    #[inline]
    fn deref(&self) -> &PolicyClassifier {
        &self.classifier
    }
}

impl Replica for PolicyReplica {
    type Transaction<'t> = &'t PolicyTransaction<'t>;
    type Refusal = UpdateError;
    type Log = RuleLog;
    type Accepted = AcceptedRules;
    type Operation = InstallPlan;

    fn replay(&mut self, log: &RuleLog, changes: Range<usize>) {
        let parts = self.labels.iter_mut().zip(&self.schemas).enumerate();
        for (index, (labels, schema)) in parts {
            let part = PartId::from_index(index);
            let engine = dynamic_mut(self.classifier.part_mut(part));
            self.replay
                .run(log, changes.clone(), part, schema, engine, labels);
        }
        self.rules = self.rules.saturating_add_signed(log.growth(changes));
        self.classifier.set_rules(self.rules);
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

impl Accepted<PolicyReplica> for AcceptedRules {
    fn check(
        &mut self,
        live: &PolicyReplica,
        transaction: &PolicyTransaction<'_>,
    ) -> Result<usize, UpdateError> {
        self.check_policy(live, transaction)
    }

    fn accept(&mut self, transaction: &PolicyTransaction<'_>, log: &mut RuleLog) {
        self.accept_policy(transaction, log);
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

impl RuleReplica for PolicyReplica {
    fn part(&self, part: PartId) -> &dyn Classifier {
        self.classifier.part(part)
    }
}

impl Parts for PolicyReplica {
    fn part_count(&self) -> usize {
        self.labels.len()
    }

    fn engine(&self, part: PartId) -> &dyn DynamicClassifier {
        dynamic(self.classifier.part(part))
    }

    fn engine_mut(&mut self, part: PartId) -> &mut dyn DynamicClassifier {
        dynamic_mut(self.classifier.part_mut(part))
    }

    fn labels(&self, part: PartId) -> &Labels {
        &self.labels[part.index()]
    }
}

impl PolicyTable {
    /// Builds two copies of an engine for each part, and returns a live table of them.
    ///
    /// # Errors
    /// [`BuildError`] if the engine takes no updates or does not support the schema, if a
    /// limit is exceeded, or if the progress callback cancels. The limit on bytes is for
    /// each part in each of the two copies, including actions and cookies.
    pub fn build_policy(
        policy: &Policy,
        spec: &EngineSpec,
        limits: &Limits,
        progress: &mut dyn Progress,
    ) -> Result<(PolicyWriter, PolicyTable), BuildError> {
        refuse_static(spec)?;
        let mut side = || -> Result<_, BuildError> {
            Ok(PolicyReplica {
                classifier: policy.build(spec, limits, progress)?,
                labels: policy.parts().iter().map(Labels::new).collect(),
                schemas: policy.schemas().map(Arc::clone).collect(),
                rules: policy.len(),
                replay: Replay::default(),
            })
        };
        let (left, right) = (side()?, side()?);
        let accepted = AcceptedRules::new([&left, &right], policy.len(), limits)?;
        Ok(Table::new(left, right, accepted))
    }
}
