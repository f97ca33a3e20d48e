//! Re-optimisation of engines while rules change.
//!
//! Some engines optimise their structure for the rules that they are built
//! over. Updates keep that structure, so lookup cost rises as the rule set
//! changes: the engine *drifts*. An engine that implements [`Reoptimise`] can
//! be re-optimised without a pause:
//!
//! ```text
//! drift    Reoptimise::drift      lookup cost now, and right after the last optimisation
//! look     Reoptimise::look       copies some rules into a snapshot; repeated
//! compute  Snapshot::compute      a plan, without the engine, on any thread
//! install  Reoptimise::install    begins to rearrange the rules as planned
//! step     Reoptimise::step       moves some rules, as every update does
//! ```
//!
//! No answer changes at any time. Updates continue during re-optimisation, so a
//! snapshot may hold rules that were removed since, and lack newer rules. It
//! records the engine's [sequence number](Snapshot::sequence) at the first
//! look. With this number, an engine whose plan must be exact can replay the
//! changes since the first look.
//!
//! ```
//! use classyard::prelude::*;
//! use classyard::{NoProgress, Transaction};
//!
//! let schema = Schema::ipv4_5tuple();
//! let mut classifier = EngineSpec::parse("forest")?.builder().build(&RuleSet::new(&schema))?;
//! let forest = classifier.as_dynamic().expect("it takes updates");
//! for number in 0..2000 {
//!     let rule = Rule::builder(&schema).id(number).field("dst", number << 8).build()?;
//!     forest.apply(Transaction::new().insert(rule.view()))?;
//! }
//!
//! let forest = forest.reoptimise_mut().expect("it can be fitted again");
//! if forest.drift().is_due() {
//!     let plan = forest.snapshot().compute(&mut NoProgress)?.expect("the snapshot is complete");
//!     assert!(forest.install(&plan));
//!     while forest.step(64) {}
//! }
//! assert!(!forest.drift().is_due());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The [`table`](crate::table) module has an example of re-optimisation in a
//! live table.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::budget::memory::Memory;
use crate::budget::monitor::Monitor;
use crate::budget::progress::Progress;
use crate::model::error::BuildError;
use crate::model::schema::Schema;

/// An engine that can be re-optimised while its rules change.
pub trait Reoptimise {
    /// Returns the cost of lookups now and right after the last optimisation.
    /// Takes a fraction of a millisecond: call it about every thousand updates.
    fn drift(&self) -> Drift;

    /// Copies the data that a plan needs from a few hundred rules into a
    /// snapshot. Returns true when the snapshot is complete. The work of a call
    /// is bounded. So a reader that pins a live table for a call delays the
    /// writer only for a bounded time.
    fn look(&self, snapshot: &mut Snapshot) -> bool;

    /// Begins to arrange the rules according to a plan. Later updates and calls
    /// of [`step`](Self::step) do the work in small parts. If another plan is
    /// already being installed, the new plan waits until the other plan is
    /// installed, or until a newer plan replaces the new plan.
    ///
    /// Some engines, such as `sfl`, have plans that are valid only for certain
    /// rules. They keep their structure if the plan is for other rules, or if
    /// it is too old to replay the changes since its snapshot.
    ///
    /// Returns `false`, and does nothing, if the plan is for another engine or
    /// schema.
    #[must_use]
    fn install(&mut self, plan: &LookupPlan) -> bool;

    /// Does at most `steps` steps of installing a plan. Otherwise, updates do
    /// this work. A step is about the work of moving one rule. Returns true if
    /// there is more to do. Call it at times without updates.
    fn step(&mut self, steps: usize) -> bool;

    /// True if [`step`](Self::step) has work to do.
    fn is_installing(&self) -> bool;

    /// Returns a complete snapshot, in one call. For a thread that owns the
    /// engine.
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new();
        while !self.look(&mut snapshot) {}
        snapshot
    }
}

/// The cost of a lookup now and right after the last optimisation. The two
/// costs are counted over a few hundred of the rules, not timed. Their unit
/// depends on the engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The cost with the current rules and structure.
    pub current: f64,
    /// The cost right after the last build, rebuild or installed plan.
    pub fitted: f64,
    /// True while a plan is being installed: its effect is not complete.
    pub installing: bool,
}

impl Drift {
    /// A new plan is worth computing when the ratio of the two costs reaches
    /// this value. Measured in `bench/records/constants.md` (CutSplit and
    /// TupleMerge, re-optimisation).
    pub const DUE_RATIO: f64 = 1.5;

    /// Returns the current cost divided by the cost after the last
    /// optimisation; 1 if that is unknown.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.fitted > 0.0 {
            self.current / self.fitted
        } else {
            1.0
        }
    }

    /// True if it is time for a new plan: the [ratio](Self::ratio) is at least
    /// [`DUE_RATIO`](Self::DUE_RATIO), and no plan is being installed.
    #[must_use]
    pub fn is_due(&self) -> bool {
        !self.installing && self.ratio() >= Self::DUE_RATIO
    }
}

/// The data that an engine copies from its rules into a snapshot, and computes
/// a plan from.
pub trait Contents: Any + Send {
    /// Computes a plan. May take as long as a build.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if the progress callback cancels, and
    /// [`BuildError::TooManyPeakBytes`] if memory is limited.
    fn compute(&self, monitor: &mut Monitor<'_>) -> Result<Arc<dyn Any + Send + Sync>, BuildError>;
}

/// The input for computing an engine's plan. The engine copies it from its
/// rules in several [looks](Reoptimise::look). Rules may change between two
/// looks.
#[derive(Default)]
pub struct Snapshot {
    held: Option<Held>,
}

struct Held {
    engine: &'static str,
    schema: Arc<Schema>,
    sequence: u64,
    contents: Box<dyn Contents>,
    complete: bool,
}

impl Snapshot {
    /// Returns an empty snapshot.
    #[must_use]
    pub fn new() -> Snapshot {
        Snapshot::default()
    }

    /// For engines: returns the contents that earlier looks copied. If there
    /// are none, or if they belong to another engine or schema, replaces them
    /// by the result of `fresh`. `sequence` is the number of changes that the
    /// engine has made so far.
    pub fn contents<T: Contents>(
        &mut self,
        engine: &'static str,
        schema: &Arc<Schema>,
        sequence: u64,
        fresh: impl FnOnce() -> T,
    ) -> &mut T {
        let known = self.held.as_ref().is_some_and(|held| {
            let contents: &dyn Any = &*held.contents;
            held.engine == engine && &held.schema == schema && contents.is::<T>()
        });
        if !known {
            self.held = Some(Held {
                engine,
                schema: Arc::clone(schema),
                sequence,
                contents: Box::new(fresh()),
                complete: false,
            });
        }
        let held = self.held.as_mut().expect("just made");
        let contents: &mut dyn Any = &mut *held.contents;
        contents.downcast_mut().expect("just checked")
    }

    /// For engines: marks the snapshot as complete. Returns `true`, for
    /// [`look`](Reoptimise::look) to return.
    pub fn complete(&mut self) -> bool {
        if let Some(held) = &mut self.held {
            held.complete = true;
        }
        true
    }

    /// Returns the number of changes that the engine had made at the first
    /// look; `None` before the first look.
    #[must_use]
    pub fn sequence(&self) -> Option<u64> {
        Some(self.held.as_ref()?.sequence)
    }

    /// Computes a plan. Returns `None` if the snapshot is not complete.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if the progress callback cancels.
    pub fn compute(&self, progress: &mut dyn Progress) -> Result<Option<LookupPlan>, BuildError> {
        self.compute_within(&mut Memory::unlimited(), progress)
    }

    /// Like [`compute`](Self::compute), with limited memory:
    /// [`Limits::peak_bytes`](crate::Limits) covers the memory for computing,
    /// including the plan but not the snapshot. A plan has a few masks for
    /// `forest`, and four bytes for each rule for `tuplemerge`.
    ///
    /// # Errors
    /// [`BuildError::TooManyPeakBytes`]; [`BuildError::Stopped`] if the
    /// progress callback cancels.
    pub fn compute_within(
        &self,
        memory: &mut Memory,
        progress: &mut dyn Progress,
    ) -> Result<Option<LookupPlan>, BuildError> {
        let Some(held) = self.held.as_ref().filter(|held| held.complete) else {
            return Ok(None);
        };
        Ok(Some(LookupPlan {
            engine: held.engine,
            schema: Arc::clone(&held.schema),
            sequence: held.sequence,
            plan: held.contents.compute(&mut Monitor::new(progress, memory))?,
        }))
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut snapshot = f.debug_struct("Snapshot");
        snapshot.field("sequence", &self.sequence());
        snapshot.finish_non_exhaustive()
    }
}

/// An arrangement of an engine's rules, computed from a [`Snapshot`]. Any
/// classifier of the same engine and schema can install it; clones share its
/// memory.
#[derive(Clone)]
pub struct LookupPlan {
    engine: &'static str,
    schema: Arc<Schema>,
    sequence: u64,
    plan: Arc<dyn Any + Send + Sync>,
}

impl LookupPlan {
    /// Returns the name of the engine that the plan is for.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.engine
    }

    /// Returns the number of changes that the engine had made when its snapshot
    /// began.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// True if a classifier of this engine and schema can install the plan.
    #[must_use]
    pub fn fits(&self, engine: &str, schema: &Schema) -> bool {
        let is_same_schema = || std::ptr::eq(&*self.schema, schema) || *self.schema == *schema;
        self.engine == engine && is_same_schema()
    }

    /// For engines: returns the plan if it is for this engine and schema.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self, engine: &str, schema: &Schema) -> Option<Arc<T>> {
        let plan = self.fits(engine, schema).then(|| Arc::clone(&self.plan));
        plan?.downcast().ok()
    }
}

impl fmt::Debug for LookupPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LookupPlan")
            .field("engine", &self.engine)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_due_where_lookups_cost_more() {
        let drift = |current, fitted, installing| Drift {
            current,
            fitted,
            installing,
        };
        assert!(drift(15.0, 10.0, false).is_due());
        assert!(!drift(14.9, 10.0, false).is_due());
        assert!(!drift(90.0, 10.0, true).is_due(), "it is being done");
        assert!(!drift(0.0, 0.0, false).is_due(), "no rules");
        assert!((drift(30.0, 10.0, false).ratio() - 3.0).abs() < 1e-9);
    }

    struct Counted(usize);

    impl Contents for Counted {
        fn compute(&self, _: &mut Monitor<'_>) -> Result<Arc<dyn Any + Send + Sync>, BuildError> {
            Ok(Arc::new(self.0))
        }
    }

    #[test]
    fn a_snapshot_is_of_one_engine_and_of_its_first_look() {
        let (v4, v6) = (Schema::ipv4_5tuple(), Schema::ipv6_5tuple());
        let mut snapshot = Snapshot::new();
        let plan = |snapshot: &Snapshot| {
            snapshot
                .compute(&mut crate::budget::progress::NoProgress)
                .unwrap()
        };
        assert!(plan(&snapshot).is_none() && snapshot.sequence().is_none());
        snapshot.contents("one", &v4, 7, || Counted(1)).0 += 1;
        snapshot.contents("one", &v4, 9, || Counted(100)).0 += 1;
        assert!(plan(&snapshot).is_none(), "not complete");
        assert!(snapshot.complete());
        let lookup_plan = plan(&snapshot).unwrap();
        assert_eq!((lookup_plan.engine(), lookup_plan.sequence()), ("one", 7));
        assert_eq!(lookup_plan.get::<usize>("one", &v4).as_deref(), Some(&3));
        assert!(lookup_plan.get::<usize>("two", &v4).is_none());
        assert!(lookup_plan.get::<usize>("one", &v6).is_none());
        assert!(lookup_plan.get::<u8>("one", &v4).is_none());
        snapshot.contents("one", &v6, 20, || Counted(0)).0 += 5;
        assert!(plan(&snapshot).is_none(), "it has begun again");
        assert_eq!(snapshot.sequence(), Some(20));
    }
}
