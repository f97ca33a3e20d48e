//! Re-optimisation during lookups and updates.
//!
//! A reader samples the rules, with a pin for every few hundred; computing a plan from
//! the sample needs no pin. The plan is an operation in the log: both sides begin to
//! install it at the same position among the changes.

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

    /// Installs a plan on both sides after everything accepted.
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
    /// Returns the cost of lookups in the live side, compared with the cost right after
    /// the last optimisation; `None` for engines that cannot be re-optimised. Takes a
    /// fraction of a millisecond: call it about every thousand changes.
    #[must_use]
    pub fn drift(&self) -> Option<Drift> {
        self.drift_in(PartId::FIRST)
    }

    /// Begins to install a plan on both sides, at the same position among the changes.
    /// Changes no answer and no version, and waits for no reader. Later changes and
    /// [`maintain`](Self::maintain) do the work step by step. If another plan is being
    /// installed, the plan waits until that is done, unless a newer plan replaces it.
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
    /// Returns the cost of lookups in a part of the live side, compared with the cost
    /// right after the last optimisation; `None` for engines that cannot be
    /// re-optimised.
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
    /// Returns the cost of lookups now, compared with the cost right after the last
    /// optimisation; `None` for engines that cannot be re-optimised.
    #[must_use]
    pub fn drift(&mut self) -> Option<Drift> {
        drift(&*self.pin(), PartId::FIRST)
    }

    /// Computes a plan for the current rules, on this thread. Samples the rules, with a
    /// pin for every few hundred, then computes without a pin, for about as long as
    /// building the engine takes. Returns `None` for engines that cannot be
    /// re-optimised. The writer [installs](Writer::install) the plan.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if the observer cancels.
    pub fn plan(&mut self, progress: &mut dyn Progress) -> Result<Option<LookupPlan>, BuildError> {
        self.plan_in(PartId::FIRST, progress)
    }
}

impl Reader<PolicyReplica> {
    /// Returns the cost of lookups in a part now, compared with the cost right after the
    /// last optimisation; `None` for engines that cannot be re-optimised.
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
    /// [`BuildError::Stopped`] if the observer cancels.
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
