//! The trait of replicas that hold rules, and the methods of writers of such replicas.

use crate::contract::classifier::{Classifier, Progress};
use crate::model::error::{BuildError, UpdateError};
use crate::model::rule::RuleId;
use crate::policy::PartId;
use crate::table::handles::Version;
use crate::table::replica::Replica;
use crate::table::writer::Writer;

use super::accepted::AcceptedRules;
use super::install::InstallPlan;
use super::log::RuleLog;
use super::parts::Parts;

/// A replica of rules: [`EngineReplica`](super::EngineReplica) or
/// [`PolicyReplica`](super::PolicyReplica). Code that handles both types passes the part
/// as an argument.
pub trait RuleReplica:
    Replica<Refusal = UpdateError, Log = RuleLog, Accepted = AcceptedRules, Operation = InstallPlan>
    + Parts
{
    /// Returns the classifier of a part. An engine has one part, [`PartId::FIRST`].
    ///
    /// # Panics
    /// If the part does not exist.
    fn part(&self, part: PartId) -> &dyn Classifier;
}

impl<R: RuleReplica> Writer<R> {
    /// The number of accepted rules. In a policy, a rule in several parts counts once.
    #[must_use]
    pub fn rules(&self) -> usize {
        self.with_accepted(|_, accepted| accepted.rules())
    }

    /// True if an accepted rule has this id.
    #[must_use]
    pub fn contains(&self, id: RuleId) -> bool {
        self.with_accepted(|live, accepted| accepted.standing(live, id) != 0)
    }

    /// Publishes, then reorganises both sides for faster lookups, one after the other.
    /// Answers and version do not change. Readers continue, and lookups are faster as
    /// soon as the first side is done. Waits for readers of older versions.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if the progress callback cancels. If it cancels after the
    /// first side is done, only this side is reorganised. The other side gives the same
    /// answers, but is slower.
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    pub fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<Version, BuildError> {
        self.on_both_sides(|replica| replica.reorganise(progress))
    }
}
