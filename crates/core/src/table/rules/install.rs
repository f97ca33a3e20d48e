//! The operation that installs a plan of re-optimisation in a part, and its steps.

use crate::contract::reoptimise::{LookupPlan, Reoptimise};
use crate::policy::PartId;

use super::parts::Parts;

/// The operation of a table of rules: to begin to install a plan in a part.
#[derive(Clone, Debug)]
pub struct InstallPlan {
    pub(super) part: PartId,
    pub(super) plan: LookupPlan,
}

impl InstallPlan {
    /// True if this plan replaces the earlier plan: both are for the same part.
    pub(super) fn replaces(&self, earlier: &InstallPlan) -> bool {
        self.part == earlier.part
    }
}

/// Begins to install a plan. The plan must be for the engine and schema of the part.
pub(super) fn install(replica: &mut impl Parts, operation: &InstallPlan) {
    let engine = replica.engine_mut(operation.part).reoptimise_mut();
    let installed = engine.is_some_and(|engine| engine.install(&operation.plan));
    assert!(installed, "the writer has seen that the plan fits");
}

/// Does at most `steps` steps of installing a plan in each part. Returns true if there is
/// more to do.
pub(super) fn maintain(replica: &mut impl Parts, steps: usize) -> bool {
    let mut is_unfinished = false;
    for part in replica.part_ids() {
        let engine = replica.engine_mut(part).reoptimise_mut();
        is_unfinished |= engine.is_some_and(|engine| engine.step(steps));
    }
    is_unfinished
}

/// True if a part is installing a plan.
pub(super) fn is_unfinished(replica: &impl Parts) -> bool {
    let mut parts = replica.part_ids();
    parts.any(|part| {
        let engine = replica.engine(part).reoptimise();
        engine.is_some_and(Reoptimise::is_installing)
    })
}
