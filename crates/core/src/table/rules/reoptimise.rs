//! Re-optimisation beside readers and updates.
//!
//! A reader samples the rules, with a pin for every few hundred; computing a
//! plan from the sample needs no pin at all. The plan is an operation in the
//! log: both sides begin to install it at the same place among the changes.

use crate::classifier::Progress;
use crate::error::BuildError;
use crate::policy::PartId;
use crate::reoptimise::{Drift, LookupPlan, Reoptimise, Snapshot};
use crate::table::handles::Reader;
use crate::table::writer::Writer;

use super::parts::{Parts, RuleReplica};
use super::{EngineReplica, PolicyReplica, PolicyWriter};

/// The operation of a table of rules: begin to arrange a part's rules as a plan
/// says.
#[derive(Clone, Debug)]
pub struct InstallPlan {
    part: PartId,
    plan: LookupPlan,
}

impl InstallPlan {
    /// A plan takes the place of one of the same part that is still to be
    /// installed.
    pub(super) fn replaces(&self, earlier: &InstallPlan) -> bool {
        self.part == earlier.part
    }
}

/// Begins to install a plan, which fits.
pub(super) fn install(replica: &mut impl Parts, operation: &InstallPlan) {
    let engine = replica.engine_mut(operation.part).reoptimise_mut();
    let installed = engine.is_some_and(|engine| engine.install(&operation.plan));
    assert!(installed, "the writer has seen that the plan fits");
}

/// Makes steps of installing plans in all parts; says whether there are more to
/// make.
pub(super) fn maintain(replica: &mut impl Parts, steps: usize) -> bool {
    let mut more = false;
    for part in replica.part_ids() {
        let engine = replica.engine_mut(part).reoptimise_mut();
        more |= engine.is_some_and(|engine| engine.step(steps));
    }
    more
}

/// Whether there are such steps to make.
pub(super) fn is_unfinished(replica: &impl Parts) -> bool {
    let mut parts = replica.part_ids();
    parts.any(|part| {
        let engine = replica.engine(part).reoptimise();
        engine.is_some_and(Reoptimise::is_installing)
    })
}

fn drift(replica: &impl Parts, part: PartId) -> Option<Drift> {
    Some(replica.engine(part).reoptimise()?.drift())
}

impl<R: RuleReplica> Writer<R> {
    fn drift_in(&self, part: PartId) -> Option<Drift> {
        self.with_accepted(|live, _| drift(live, part))
    }

    /// Has both sides install a plan after everything accepted.
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
    /// What lookups cost in the live side, against when its engine was fitted to
    /// its rules; `None` for engines that fit nothing. A fraction of a
    /// millisecond's work: call it every thousand changes or so.
    #[must_use]
    pub fn drift(&self) -> Option<Drift> {
        self.drift_in(PartId::FIRST)
    }

    /// Begins to arrange the rules as a plan says, on both sides, at the same
    /// place among the changes. Changes no answer and no version, and waits for
    /// no reader; the work is done with later changes, some with each, and by
    /// [`maintain`](Self::maintain). A plan that comes while another is being
    /// installed waits until that is done, or until a newer one takes its place.
    ///
    /// Returns `false`, and does nothing, with a plan of another engine or
    /// schema.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    #[must_use]
    pub fn install(&mut self, plan: &LookupPlan) -> bool {
        self.install_in(PartId::FIRST, plan)
    }
}

impl PolicyWriter {
    /// What lookups cost in a part of the live side, against when its engine was
    /// fitted to its rules; `None` for engines that fit nothing.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn drift(&self, part: PartId) -> Option<Drift> {
        self.drift_in(part)
    }

    /// Begins to arrange a part's rules as a plan says; see [`Writer::install`].
    ///
    /// # Panics
    /// When there is no such part, or the table is
    /// [poisoned](Self::is_poisoned).
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
    /// What lookups cost now, against when the engine was fitted to its rules;
    /// `None` for engines that fit nothing.
    #[must_use]
    pub fn drift(&mut self) -> Option<Drift> {
        drift(&*self.pin(), PartId::FIRST)
    }

    /// Computes a plan fitted to the current rules, on this thread: samples them,
    /// with a pin for every few hundred rules, then computes without a pin, for
    /// about as long as building the engine takes. `None` for engines that
    /// cannot be re-optimised. The writer [installs](Writer::install) the plan.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer cancels.
    pub fn plan(&mut self, progress: &mut dyn Progress) -> Result<Option<LookupPlan>, BuildError> {
        self.plan_in(PartId::FIRST, progress)
    }
}

impl Reader<PolicyReplica> {
    /// What lookups in a part cost now, against when its engine was fitted to
    /// its rules; `None` for engines that fit nothing.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn drift(&mut self, part: PartId) -> Option<Drift> {
        drift(&*self.pin(), part)
    }

    /// Computes a plan fitted to a part's current rules, on this thread; see
    /// [`Reader::plan`].
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer cancels.
    ///
    /// # Panics
    /// When there is no such part.
    pub fn plan(
        &mut self,
        part: PartId,
        progress: &mut dyn Progress,
    ) -> Result<Option<LookupPlan>, BuildError> {
        self.plan_in(part, progress)
    }
}
