//! Maintenance: keeping lookups fast while the rules change.
//!
//! Updates keep the root's masks, so lookup cost rises as the rule set changes: the
//! forest *drifts*. The root is then re-optimised from a snapshot of the rules, on a
//! thread of the caller, and the plan is adopted in place:
//! ```text
//! drift      counted lookup cost, now and right after the last optimisation
//! snapshot   outlines of up to 262,144 rules; learns a plan from them
//! plan       masks and sizes of the root's tables
//! adopt      new tables next to the old ones; rules move, a few with each update
//! ```
//! Work is counted in *steps*: a step costs about as much as moving a rule.

mod adopt;
mod drift;
mod plan;
mod snapshot;

pub(super) use adopt::{Adoption, Parts, STEPS_PER_UPDATE};
pub(super) use drift::{Baseline, count_cost};
#[cfg(test)]
pub(super) use plan::PlannedTable;
pub(super) use plan::RootPlan;
pub(super) use snapshot::Snapshot;
