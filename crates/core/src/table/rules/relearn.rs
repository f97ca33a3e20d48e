//! Re-optimisation beside readers and updates.
//!
//! A reader samples the rules, with a pin for every few hundred; computing a
//! plan from the sample needs no pin at all. The plan is an operation in the
//! log: both sides begin to adopt it at the same place among the changes.

use crate::classifier::Progress;
use crate::error::BuildError;
use crate::policy::PartId;
use crate::relearn::{Drift, LookupPlan, Study};
use crate::table::handles::Reader;
use crate::table::writer::Writer;

use super::parts::{Parts, RuleReplica};
use super::{EngineReplica, PolicyReplica, PolicyWriter};

/// The operation of a table of rules: begin to arrange a part's rules as a plan
/// says.
#[derive(Clone, Debug)]
pub struct AdoptPlan {
    part: PartId,
    plan: LookupPlan,
}

impl AdoptPlan {
    /// A plan takes the place of one of the same part that is still to be
    /// adopted.
    pub(super) fn replaces(&self, earlier: &AdoptPlan) -> bool {
        self.part == earlier.part
    }
}

/// Begins to adopt a plan, which fits.
pub(super) fn adopt(replica: &mut impl Parts, operation: &AdoptPlan) {
    let adopted = replica.engine_mut(operation.part).adopt(&operation.plan);
    assert!(adopted, "the writer has seen that the plan fits");
}

/// Makes steps of adopting plans in all parts; says whether there are more to
/// make.
pub(super) fn maintain(replica: &mut impl Parts, steps: usize) -> bool {
    let mut more = false;
    for part in replica.part_ids() {
        more |= replica.engine_mut(part).maintain(steps);
    }
    more
}

/// Whether there are such steps to make.
pub(super) fn is_unfinished(replica: &impl Parts) -> bool {
    let mut parts = replica.part_ids();
    parts.any(|part| replica.engine(part).is_unfinished())
}

fn drift(replica: &impl Parts, part: PartId) -> Option<Drift> {
    replica.engine(part).drift()
}

impl<R: RuleReplica> Writer<R> {
    fn drift_in(&self, part: PartId) -> Option<Drift> {
        self.with_accepted(|live, _| drift(live, part))
    }

    /// Has both sides adopt a plan after everything accepted.
    fn adopt_in(&mut self, part: PartId, plan: &LookupPlan) -> bool {
        let fits = self.with_accepted(|live, _| plan.fits(live.part(part)));
        if fits || self.is_poisoned() {
            let plan = plan.clone();
            self.operate(AdoptPlan { part, plan });
        }
        fits
    }
}
impl Writer<EngineReplica> {
    /// What lookups cost in the live side, against when its engine was fitted to
    /// its rules; `None` for engines that fit nothing. A fraction of a
    /// millisecond's work: ask every thousand changes or so.
    #[must_use]
    pub fn drift(&self) -> Option<Drift> {
        self.drift_in(PartId::FIRST)
    }

    /// Begins to arrange the rules as a plan says, on both sides, at the same
    /// place among the changes. Changes no answer and no version, and waits for
    /// nobody; the work is done with later changes, some with each, and by
    /// [`maintain`](Self::maintain). A plan that comes while another is being
    /// adopted waits until that is done, or until a newer one takes its place.
    ///
    /// Returns `false`, and does nothing, with a plan of another engine or
    /// schema.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    #[must_use]
    pub fn adopt(&mut self, plan: &LookupPlan) -> bool {
        self.adopt_in(PartId::FIRST, plan)
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

    /// Begins to arrange a part's rules as a plan says; see [`Writer::adopt`].
    ///
    /// # Panics
    /// When there is no such part, or the table is
    /// [poisoned](Self::is_poisoned).
    #[must_use]
    pub fn adopt(&mut self, part: PartId, plan: &LookupPlan) -> bool {
        self.adopt_in(part, plan)
    }
}

impl<R: RuleReplica> Reader<R> {
    fn learn_in(
        &mut self,
        part: PartId,
        progress: &mut dyn Progress,
    ) -> Result<Option<LookupPlan>, BuildError> {
        let mut study = Study::new();
        while !self.pin().engine(part).study(&mut study) {}
        study.learn(progress)
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
    /// about as long as building the engine takes. `None` for engines that do
    /// not learn. The writer [adopts](Writer::adopt) the plan.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer asks to stop.
    pub fn learn(&mut self, progress: &mut dyn Progress) -> Result<Option<LookupPlan>, BuildError> {
        self.learn_in(PartId::FIRST, progress)
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
    /// [`Reader::learn`].
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer asks to stop.
    ///
    /// # Panics
    /// When there is no such part.
    pub fn learn(
        &mut self,
        part: PartId,
        progress: &mut dyn Progress,
    ) -> Result<Option<LookupPlan>, BuildError> {
        self.learn_in(part, progress)
    }
}
