//! Rebuilding the inner engine while rules change.

use std::any::Any;
use std::sync::Arc;

use hashbrown::HashMap;

use super::buffered::{Buffered, Plan};
use super::master::Master;
use super::threshold::LookupCount;
use super::{Counted, ENGINE, build_cost};
use crate::budget::memory::map_bytes;
use crate::budget::monitor::Monitor;
use crate::contract::reoptimise::{Contents, Drift, LookupPlan, Reoptimise, Snapshot};
use crate::contract::spec::EngineSpec;
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::model::rule::RuleId;
use crate::model::ruleset::RuleSet;
use crate::model::seed::MapState;

/// Name of the phase for the progress callback.
const HASHING: &str = "hashing rules";

/// The number of rules copied with each look. It bounds the time that a look keeps a
/// reader pinned.
const RULES_PER_LOOK: usize = 1 << 9;

/// Rules, copied some at a time from the last to the first, and the inner engine's
/// specification.
struct Copied {
    spec: EngineSpec,
    /// The copied engine's number of lookups, if they are counted.
    lookups: Option<Arc<LookupCount>>,
    limits: Limits,
    rules: RuleSet,
    /// Places from this one on have been copied.
    below: usize,
}

impl Contents for Copied {
    fn compute(&self, monitor: &mut Monitor<'_>) -> Result<Arc<dyn Any + Send + Sync>, BuildError> {
        let (rules, count) = (&self.rules, self.rules.len());
        let (progress, memory) = monitor.parts();
        memory.take(map_bytes::<RuleId, u64>(count))?;
        let mut counted = Counted::new(progress);
        let built = self
            .spec
            .build_within(rules, &self.limits, &mut counted, memory);
        let (engine, reports) = (built?, counted.reports);
        monitor.begin(HASHING, count)?;
        let mut hashes = HashMap::with_capacity_and_hasher(count, MapState::default());
        for rule in rules.iter() {
            hashes.insert(rule.id(), Master::hash(&rule));
            monitor.advance(1)?;
        }
        Ok(Arc::new(Plan {
            hashes,
            engine: Arc::from(engine),
            build_cost: build_cost(rules.schema(), reports),
            lookups: self.lookups.clone(),
        }))
    }
}

impl Reoptimise for Buffered {
    fn drift(&self) -> Drift {
        self.threshold.drift(self.waiting())
    }

    fn look(&self, snapshot: &mut Snapshot) -> bool {
        let schema = self.master.schema();
        let copied = snapshot.contents(ENGINE.name, schema, self.sequence(), || Copied {
            spec: self.spec.clone(),
            lookups: self.threshold.lookups().cloned(),
            limits: self.limits,
            rules: RuleSet::new(schema),
            below: usize::MAX,
        });
        copied.below = self
            .master
            .copy_some(copied.below, RULES_PER_LOOK, &mut copied.rules);
        copied.below == 0 && snapshot.complete()
    }

    /// Changes nothing if the plan is for other rules, or if the log no longer has the
    /// changes since its snapshot.
    fn install(&mut self, plan: &LookupPlan) -> bool {
        let Some(new) = plan.get::<Plan>(ENGINE.name, self.master.schema()) else {
            return false;
        };
        self.take_in(&new, plan.sequence());
        true
    }

    /// Does nothing: plans are installed immediately.
    fn step(&mut self, _: usize) -> bool {
        false
    }

    fn is_installing(&self) -> bool {
        false
    }
}
