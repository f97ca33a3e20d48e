//! Transactions over a policy's parts.

use crate::error::{TryApplyError, UpdateError};
use crate::policy::{PartId, Plan, PolicyChange};

use super::Version;
use super::log::dynamic;
use super::writer::PolicyWriter;

impl PolicyWriter {
    /// Accepts all changes, in order and in all parts, or refuses all: the list
    /// is one transaction. Accepted changes are visible when the version
    /// returned is; that is at once unless a reader that pinned an older
    /// version is still there or the
    /// [publish interval](Self::set_publish_interval) is not over, and with a
    /// later call otherwise.
    ///
    /// Waits only when more than [`MAX_PENDING`](super::MAX_PENDING) changes
    /// would stay invisible, for the readers that are in the way. If such a
    /// reader was leaked together with a guard
    /// ([`Reader::pin`](super::Reader::pin)), it waits for ever.
    /// [`try_apply`](Self::try_apply) never waits. A change counts once for each
    /// part where it does something.
    ///
    /// # Errors
    /// [`UpdateError`] names the change of this list that cannot be made and
    /// why; nothing is changed then. When a part has no room left in bytes,
    /// that is the first change that gives this part a rule.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn apply(&mut self, changes: &[PolicyChange<'_>]) -> Result<Version, UpdateError> {
        self.refuse_poisoned();
        let plan = self.plan(changes)?;
        Ok(self.accept_plan(&plan))
    }

    /// As [`apply`](Self::apply), but where that would wait this changes nothing
    /// and says so. Waits for nobody.
    ///
    /// # Errors
    /// [`TryApplyError::Refused`] when [`apply`](Self::apply) would refuse the
    /// changes, and [`TryApplyError::WouldWait`] when it would wait for a
    /// reader; nothing is changed then.
    ///
    /// # Panics
    /// The same as [`apply`](Self::apply).
    pub fn try_apply(&mut self, changes: &[PolicyChange<'_>]) -> Result<Version, TryApplyError> {
        self.refuse_poisoned();
        let plan = self.plan(changes)?;
        let parts = plan.parts.iter();
        self.check_room(parts.map(|part| part.transaction.changes().len()).sum())?;
        Ok(self.accept_plan(&plan))
    }

    /// Accepts changes that were checked.
    fn accept_plan(&mut self, plan: &Plan<'_>) -> Version {
        self.rules = plan.rules;
        let changes = plan.parts.iter().enumerate().flat_map(|(part, planned)| {
            let part = PartId::from_index(part);
            let changes = planned.transaction.changes().iter();
            changes.map(move |change| (part, change))
        });
        self.accept(changes)
    }

    /// Says whether [`apply`](Self::apply) would accept the changes.
    ///
    /// # Errors
    /// The same as [`apply`](Self::apply).
    pub fn check(&self, changes: &[PolicyChange<'_>]) -> Result<(), UpdateError> {
        self.plan(changes).map(drop)
    }

    /// What the changes mean for each part, checked against everything
    /// accepted.
    fn plan<'a>(&self, changes: &[PolicyChange<'a>]) -> Result<Plan<'a>, UpdateError> {
        let parts = self.schemas.len();
        let plan = self.with_live(|live| {
            // No part has more rules than all together, so where all fit into
            // the part with the least room, each part has room for its own.
            let rooms = (0..parts).map(|part| {
                let part = dynamic(live, PartId::from_index(part));
                (part.capacity(), part.engine())
            });
            let (capacity, engine) = rooms.min().expect("a policy has a part");
            let limits = self.limits.within(capacity);
            let plan = live.plan(changes, &limits, self.rules, |id| {
                let standing = self.standing(id);
                (0..parts).map(|part| standing & (1 << part) != 0).collect()
            });
            plan.map_err(|error| error.within(&self.limits, engine))
        })?;
        // The plan has checked ids, schemas and the number of rules.
        for (index, planned) in plan.parts.iter().enumerate() {
            let bytes = || self.held_bytes(PartId::from_index(index));
            let checked = planned
                .transaction
                .validate_bytes(&self.limits, planned.grows(), bytes);
            checked.map_err(|error| error.renumbered(|change| planned.origin[change]))?;
        }
        Ok(plan)
    }
}
