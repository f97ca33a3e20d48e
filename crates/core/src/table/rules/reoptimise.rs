//! Re-optimisation during lookups and updates.
//!
//! A reader copies data of the rules into a snapshot, and pins the table once for every
//! few hundred rules. Computing a plan from the snapshot needs no pin. To install a plan
//! is an operation in the log: both sides begin it at the same position among the
//! changes.

use crate::contract::classifier::Progress;
use crate::contract::reoptimise::{Drift, LookupPlan, Snapshot};
use crate::model::error::BuildError;
use crate::policy::PartId;
use crate::table::handles::Reader;
use crate::table::writer::Writer;

use super::engine::EngineReplica;
use super::install::InstallPlan;
use super::parts::Parts;
use super::policy::{PolicyReplica, PolicyWriter};
use super::rule_replica::RuleReplica;

fn drift(replica: &impl Parts, part: PartId) -> Option<Drift> {
    Some(replica.engine(part).reoptimise()?.drift())
}

impl<R: RuleReplica> Writer<R> {
    fn drift_in(&self, part: PartId) -> Option<Drift> {
        self.with_accepted(|live, _| drift(live, part))
    }

    /// Begins to install a plan on both sides, after all accepted changes. Returns false
    /// if the plan does not fit.
    fn install_in(&mut self, part: PartId, plan: &LookupPlan) -> bool {
        let fits = self.with_accepted(|live, _| {
            let engine = live.part(part);
            plan.fits(engine.engine(), engine.schema())
        });
        if fits || self.is_poisoned() {
            let plan = plan.clone();
            self.operate(InstallPlan { part, plan });
        }
        fits
    }
}
impl Writer<EngineReplica> {
    /// Returns the cost of lookups in the live side and the cost right after the last
    /// optimisation; `None` for engines that cannot be re-optimised. Takes a fraction of
    /// a millisecond: call it about every thousand changes.
    #[must_use]
    pub fn drift(&self) -> Option<Drift> {
        self.drift_in(PartId::FIRST)
    }

    /// Begins to install a plan on both sides, at the same position among the changes.
    /// Changes no answer and no version, and waits for no reader. Later changes and
    /// [`maintain`](Self::maintain) do the work step by step. If another plan is being
    /// installed, the new plan waits until the other plan is installed, or until a newer
    /// plan replaces the new plan.
    ///
    /// Returns `false` and does nothing if the plan is for another engine or schema.
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    #[must_use]
    pub fn install(&mut self, plan: &LookupPlan) -> bool {
        self.install_in(PartId::FIRST, plan)
    }
}

impl PolicyWriter {
    /// Returns the cost of lookups in a part of the live side and the cost right after
    /// the last optimisation; `None` for engines that cannot be re-optimised.
    ///
    /// # Panics
    /// If the part does not exist.
    #[must_use]
    pub fn drift(&self, part: PartId) -> Option<Drift> {
        self.drift_in(part)
    }

    /// Begins to install a plan in a part; see [`Writer::install`].
    ///
    /// # Panics
    /// If the part does not exist, or the table is [poisoned](Self::is_poisoned).
    #[must_use]
    pub fn install(&mut self, part: PartId, plan: &LookupPlan) -> bool {
        self.install_in(part, plan)
    }
}

impl<R: RuleReplica> Reader<R> {
    fn plan_in(
        &mut self,
        part: PartId,
        progress: &mut dyn Progress,
    ) -> Result<Option<LookupPlan>, BuildError> {
        let mut snapshot = Snapshot::new();
        loop {
            let guard = self.pin();
            let Some(engine) = guard.engine(part).reoptimise() else {
                return Ok(None);
            };
            if engine.look(&mut snapshot) {
                break;
            }
        }
        snapshot.compute(progress)
    }
}

impl Reader<EngineReplica> {
    /// Returns the cost of lookups now and the cost right after the last optimisation;
    /// `None` for engines that cannot be re-optimised.
    #[must_use]
    pub fn drift(&mut self) -> Option<Drift> {
        drift(&*self.pin(), PartId::FIRST)
    }

    /// Computes a plan for the current rules, on this thread. Copies data of the rules
    /// into a snapshot, and pins the table once for every few hundred rules. Then
    /// computes the plan without a pin, which takes about as long as building the engine.
    /// Returns `None` for engines that cannot be re-optimised. The writer
    /// [installs](Writer::install) the plan.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if the progress callback cancels.
    pub fn plan(&mut self, progress: &mut dyn Progress) -> Result<Option<LookupPlan>, BuildError> {
        self.plan_in(PartId::FIRST, progress)
    }
}

impl Reader<PolicyReplica> {
    /// Returns the cost of lookups in a part now and the cost right after the last
    /// optimisation; `None` for engines that cannot be re-optimised.
    ///
    /// # Panics
    /// If the part does not exist.
    #[must_use]
    pub fn drift(&mut self, part: PartId) -> Option<Drift> {
        drift(&*self.pin(), part)
    }

    /// Computes a plan for a part's current rules, on this thread; see [`Reader::plan`].
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if the progress callback cancels.
    ///
    /// # Panics
    /// If the part does not exist.
    pub fn plan(
        &mut self,
        part: PartId,
        progress: &mut dyn Progress,
    ) -> Result<Option<LookupPlan>, BuildError> {
        self.plan_in(part, progress)
    }
}
