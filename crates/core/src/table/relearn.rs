//! Re-optimisation beside readers and updates.
//!
//! A reader samples the rules, with a pin for every few hundred; computing a
//! plan from the sample needs no pin at all. The plan is an operation in the
//! log: both sides begin to adopt it at the same place among the changes.

use crate::classifier::Progress;
use crate::error::BuildError;
use crate::policy::{PartId, PolicyClassifier};
use crate::reoptimise::{Drift, LookupPlan, Snapshot};

use super::log::{Operation, Replica, dynamic};
use super::{PolicyWriter, Reader, Writer};

impl<C: Replica + ?Sized> Writer<C> {
    /// For times without updates: makes up to `steps` steps of adopting plans,
    /// each about the work of moving a rule, on the side that nobody reads. That
    /// side then becomes the live one, at the end of the
    /// [publish interval](Self::set_publish_interval) if there is one. Does
    /// nothing while a reader is in the way. Says whether there is more to do; a
    /// thread that holds a guard must not wait for that.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn maintain(&mut self, steps: usize) -> bool {
        self.refuse_poisoned();
        if !self.is_unfinished() {
            return false;
        }
        if self.sides.standby_is_free() {
            self.new.push_operation(Operation::Maintain(steps));
            self.proceed(steps);
        }
        self.is_unfinished()
    }

    /// Whether there is anything to do for [`maintain`](Self::maintain).
    fn is_unfinished(&self) -> bool {
        let mut parts = (0..self.schemas.len()).map(PartId::from_index);
        self.new.has_operations()
            || self.with_live(|live| {
                parts.any(|part| {
                    dynamic(live, part)
                        .reoptimise()
                        .is_some_and(crate::reoptimise::Reoptimise::is_installing)
                })
            })
    }

    fn drift_in(&self, part: PartId) -> Option<Drift> {
        self.with_live(|live| Some(dynamic(live, part).reoptimise()?.drift()))
    }

    /// Has both sides adopt a plan after everything accepted.
    fn adopt_in(&mut self, part: PartId, plan: &LookupPlan) -> bool {
        self.refuse_poisoned();
        if !self.with_live(|live| {
            let live = live.part(part);
            plan.fits(live.engine(), live.schema())
        }) {
            return false;
        }
        let operation = Operation::Adopt(part, plan.clone());
        self.new.push_operation(operation);
        self.proceed(1);
        true
    }
}

impl Writer {
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

impl<C: Replica + ?Sized> Reader<C> {
    fn learn_in(
        &mut self,
        part: PartId,
        progress: &mut dyn Progress,
    ) -> Result<Option<LookupPlan>, BuildError> {
        let mut snapshot = Snapshot::new();
        loop {
            let guard = self.pin();
            let Some(engine) = dynamic(&*guard, part).reoptimise() else {
                return Ok(None);
            };
            if engine.look(&mut snapshot) {
                break;
            }
        }
        snapshot.compute(progress)
    }
}

impl Reader {
    /// What lookups cost now, against when the engine was fitted to its rules;
    /// `None` for engines that fit nothing.
    #[must_use]
    pub fn drift(&mut self) -> Option<Drift> {
        Some(dynamic(&*self.pin(), PartId::FIRST).reoptimise()?.drift())
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

impl Reader<PolicyClassifier> {
    /// What lookups in a part cost now, against when its engine was fitted to
    /// its rules; `None` for engines that fit nothing.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn drift(&mut self, part: PartId) -> Option<Drift> {
        Some(dynamic(&*self.pin(), part).reoptimise()?.drift())
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
