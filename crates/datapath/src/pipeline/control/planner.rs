//! Planners: plans to re-optimise the engines of tables.

use std::fmt;
use std::sync::Arc;

use classyard::reoptimise::Snapshot;
use classyard::table::Reader;
use classyard::{BuildError, Progress};

use crate::pipeline::run::side::{Improvement, Plan, Side};

/// Computes plans that re-optimise engines after many changes of their entries, and plans for
/// the masks of megaflows, without blocking workers or changes.
pub struct Planner {
    pub(super) reader: Reader<Side>,
}

impl Planner {
    /// Returns a plan for an engine whose lookups cost at least 1.5 times what they did when
    /// it was last optimised. Returns `None` if the lookups of every engine cost less than
    /// that or the engine is already installing a plan, and if the engine is removed during
    /// the call. The call pins the pipeline several times, each time briefly, to copy a few
    /// hundred entries. Then it computes for about as long as building the engine takes.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if `progress` cancels.
    pub fn plan(&mut self, progress: &mut dyn Progress) -> Result<Option<Plan>, BuildError> {
        let Some((table, family)) = self.reader.pin().drifted() else {
            return Ok(self.plan_masks());
        };
        let mut snapshot = Snapshot::new();
        loop {
            let side = self.reader.pin();
            match side
                .table(table)
                .and_then(|table| table.look(family, &mut snapshot))
            {
                Some(true) => break,
                Some(false) => {}
                None => return Ok(None),
            }
        }
        let plan = snapshot.compute(progress)?;
        Ok(plan.map(|plan| Plan {
            table,
            family,
            improvement: Improvement::Engine(plan),
        }))
    }

    /// Plans the masks of megaflows for a table whose entries differ in few bits.
    fn plan_masks(&mut self) -> Option<Plan> {
        let (table, (family, generation, rules)) = self.reader.pin().unplanned()?;
        let masks = rules.plan()?;
        Some(Plan {
            table,
            family,
            improvement: Improvement::Masks(generation, Arc::new(masks)),
        })
    }
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planner").finish_non_exhaustive()
    }
}
