//! A table of a policy: an engine for each part, changed as one.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::classifier::{Classifier, DynamicClassifier, Limits, Progress};
use crate::cookies::Cookies;
use crate::engine::EngineSpec;
use crate::error::{BuildError, UpdateError};
use crate::policy::{PartId, Policy, PolicyClassifier, PolicyTransaction};
use crate::rule::{ActionId, Rule, RuleId, Winner};
use crate::schema::Schema;
use crate::table::handles::Table;
use crate::table::replica::Replica;
use crate::table::writer::Writer;

use super::accepted::AcceptedRules;
use super::log::{Replay, RuleLog};
use super::parts::{Parts, RuleReplica, dynamic, dynamic_mut, refuse_static};
use super::reoptimise::{self, InstallPlan};

/// A live table of a policy's parts, such as IPv4 and IPv6: readers see a
/// transaction in all parts or in none.
pub type PolicyTable = Table<PolicyReplica>;

/// Changes a policy's rules beside readers.
pub type PolicyWriter = Writer<PolicyReplica>;

/// A policy's engines with the cookies of their rules. It stands for the
/// [`PolicyClassifier`], so lookups go to a [`Guard`](crate::table::Guard) directly.
pub struct PolicyReplica {
    classifier: PolicyClassifier,
    /// The cookies of each part's rules.
    cookies: Box<[Cookies]>,
    /// The parts' schemas, to read while the parts change.
    schemas: Box<[Arc<Schema>]>,
    /// Rules, each counted once.
    rules: usize,
    replay: Replay,
}

impl PolicyReplica {
    /// The action of the rule that won a lookup, `None` for a miss. The winner
    /// should come from the same guard; of one from another version, this is the
    /// action that the rule with its id has here, `None` if there is none.
    ///
    /// A rule usually has one action in all parts where it stands. If it has
    /// several, this is the one in the first of these parts:
    /// [`action_in`](Self::action_in) tells them apart.
    #[must_use]
    pub fn action(&self, winner: Winner) -> Option<ActionId> {
        let id = winner.rule()?;
        self.part_ids().find_map(|part| self.action_of(part, id))
    }

    /// The action of the rule that won a lookup in a part, `None` for a miss.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn action_in(&self, part: PartId, winner: Winner) -> Option<ActionId> {
        self.action_of(part, winner.rule()?)
    }

    /// The cookie of the rule that won a lookup, `None` for a miss. If a
    /// rule has several cookies, this is the one in the first part where it stands.
    #[must_use]
    pub fn cookie(&self, winner: Winner) -> Option<u64> {
        let id = winner.rule()?;
        self.part_ids().find_map(|part| self.cookie_of(part, id))
    }

    /// The cookie of the rule that won a lookup in a part, `None` for a miss.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn cookie_in(&self, part: PartId, winner: Winner) -> Option<u64> {
        self.cookie_of(part, winner.rule()?)
    }

    /// A copy of the rule with that id as it stands in a part, if it does.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn rule_in(&self, part: PartId, id: RuleId) -> Option<Rule> {
        self.rule_of(part, id)
    }

    /// Copies of all rules of a part, best first. What it costs:
    /// [`EngineReplica::rules`](super::EngineReplica::rules).
    ///
    /// # Panics
    /// When there is no such part.
    pub fn rules_in(&self, part: PartId) -> impl ExactSizeIterator<Item = Rule> {
        self.rules_of(part)
    }

    /// The number of rules; one that stands in several parts counts once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rules of a part.
    ///
    /// # Panics
    /// When there is no such part.
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
        let parts = self.cookies.iter_mut().zip(&self.schemas).enumerate();
        for (index, (cookies, schema)) in parts {
            let part = PartId::from_index(index);
            let engine = dynamic_mut(self.classifier.part_mut(part));
            self.replay
                .run(log, changes.clone(), part, schema, engine, cookies);
        }
        self.rules = self.rules.saturating_add_signed(log.growth(changes));
        self.classifier.set_rules(self.rules);
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

impl RuleReplica for PolicyReplica {
    fn part(&self, part: PartId) -> &dyn Classifier {
        self.classifier.part(part)
    }
}

impl Parts for PolicyReplica {
    fn part_count(&self) -> usize {
        self.cookies.len()
    }

    fn engine(&self, part: PartId) -> &dyn DynamicClassifier {
        dynamic(self.classifier.part(part))
    }

    fn engine_mut(&mut self, part: PartId) -> &mut dyn DynamicClassifier {
        dynamic_mut(self.classifier.part_mut(part))
    }

    fn cookies(&self, part: PartId) -> &Cookies {
        &self.cookies[part.index()]
    }
}

impl PolicyTable {
    /// Builds an engine for each part, twice, and the table around it.
    ///
    /// # Errors
    /// [`BuildError`] when the engine takes no updates, does not serve the
    /// schema, a limit is met or the observer cancels. The limit on bytes
    /// is for each part in each of the two copies, cookies included.
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
                cookies: policy.parts().iter().map(Cookies::new).collect(),
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
