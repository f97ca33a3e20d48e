//! Re-optimisation while rules change.
//!
//! Some engines fit their structure to the rules that they are built over.
//! Updates keep that structure, so lookup cost rises as the rule set changes:
//! the engine *drifts*. An engine that implements [`Reoptimise`] can be fitted
//! again without a pause:
//!
//! ```text
//! drift    Reoptimise::drift      lookup cost now, and right after the last fit
//! look     Reoptimise::look       copies some rules into a snapshot, each time
//! compute  Snapshot::compute      a plan; without the engine, on any thread
//! install  Reoptimise::install    begins to rearrange the rules as planned
//! step     Reoptimise::step       moves some; every update does so too
//! ```
//!
//! No answer changes at any time. Updates go on meanwhile: a snapshot may hold
//! rules that are gone and lack rules that came. It knows the engine's
//! [sequence number](Snapshot::sequence) at the first look, so that an engine
//! that cannot install a plan unless it is exact can replay the changes since.
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
//! Beside readers the same is done through a live table; the
//! [`table`](crate::table) shows how.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::error::BuildError;
use crate::memory::Memory;
use crate::monitor::Monitor;
use crate::progress::Progress;
use crate::schema::Schema;

/// An engine that can be fitted to its rules again, while they change.
pub trait Reoptimise {
    /// The cost of lookups now, and right after the engine was last fitted.
    /// Takes a fraction of a millisecond: call it every thousand updates or so.
    fn drift(&self) -> Drift;

    /// Copies what the plan needs to know of some hundred rules into a
    /// snapshot; says whether that was all. The work of a call is bounded, so a
    /// reader that looks delays the writer no longer than that.
    fn look(&self, snapshot: &mut Snapshot) -> bool;

    /// Begins to arrange the rules as a plan says. The work is done with later
    /// updates, some with each, and by [`step`](Self::step). A plan that comes
    /// while another is being installed waits until that is done, or until a
    /// newer one takes its place.
    ///
    /// An engine whose plans hold for certain rules alone, such as `sfl`, keeps
    /// what it has where the plan is of other rules, or too old to know what
    /// changed since.
    ///
    /// Returns `false`, and does nothing, with a plan for another engine or
    /// schema.
    #[must_use]
    fn install(&mut self, plan: &LookupPlan) -> bool;

    /// Does at most `steps` steps of the work that is otherwise left to updates,
    /// each about the work of moving a rule; says whether there is more to do.
    /// For times without updates.
    fn step(&mut self, steps: usize) -> bool;

    /// Whether [`step`](Self::step) has anything to do.
    fn is_installing(&self) -> bool;

    /// A snapshot of all rules, at once: for a thread that owns the engine.
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new();
        while !self.look(&mut snapshot) {}
        snapshot
    }
}

/// The cost of a lookup, now and right after the engine was last fitted to its
/// rules: counted, not timed, over a few hundred of the rules, in units of the
/// engine's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// With the rules and the structure of now.
    pub now: f64,
    /// Right after the last build, rebuild or installed plan.
    pub fitted: f64,
    /// A plan is being installed: its effect is still to come.
    pub installing: bool,
}

impl Drift {
    /// At this ratio of the two costs a new plan is worth computing.
    pub const DUE: f64 = 1.5;

    /// The cost now over the cost when fitted; 1 where that is not known.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.fitted > 0.0 {
            self.now / self.fitted
        } else {
            1.0
        }
    }

    /// Whether it is time for a new plan: the [ratio](Self::ratio) is at least
    /// [`DUE`](Self::DUE), and no plan is being installed.
    #[must_use]
    pub fn is_due(&self) -> bool {
        !self.installing && self.ratio() >= Self::DUE
    }
}

/// What an engine has copied of its rules, and how it computes a plan from
/// that.
pub trait Contents: Any + Send {
    /// Computes what is to be installed. May take as long as a build.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer cancels, and
    /// [`BuildError::TooManyPeakBytes`] where memory is limited.
    fn compute(&self, monitor: &mut Monitor<'_>) -> Result<Arc<dyn Any + Send + Sync>, BuildError>;
}

/// What an engine's plan is computed from: copied from its rules, some with
/// each [look](Reoptimise::look). Rules may change between two looks.
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
    /// Nothing copied yet.
    #[must_use]
    pub fn new() -> Snapshot {
        Snapshot::default()
    }

    /// For engines: what was copied in earlier looks. Starts again with `fresh`
    /// contents if there were none, or if they are another engine's. `sequence`
    /// is the number of changes that the engine has made so far.
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

    /// For engines: nothing is missing. Returns `true`, for
    /// [`look`](Reoptimise::look) to return.
    pub fn complete(&mut self) -> bool {
        if let Some(held) = &mut self.held {
            held.complete = true;
        }
        true
    }

    /// The number of changes that the engine had made at the first look; `None`
    /// before it.
    #[must_use]
    pub fn sequence(&self) -> Option<u64> {
        Some(self.held.as_ref()?.sequence)
    }

    /// Computes a plan. `None` while the snapshot is not complete.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer cancels.
    pub fn compute(&self, progress: &mut dyn Progress) -> Result<Option<LookupPlan>, BuildError> {
        self.compute_within(&mut Memory::unlimited(), progress)
    }

    /// The same with limited memory: [`Limits::peak_bytes`](crate::Limits) counts
    /// what computing takes, the plan included, not the snapshot. The plan itself
    /// is a few masks for `forest`, and four bytes a rule for `tuplemerge`.
    ///
    /// # Errors
    /// [`BuildError::TooManyPeakBytes`]; [`BuildError::Stopped`] when the observer
    /// cancels.
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

/// How an engine is to arrange its rules, computed from a [`Snapshot`]. Any
/// classifier of the same engine and schema can install it; copies share it.
#[derive(Clone)]
pub struct LookupPlan {
    engine: &'static str,
    schema: Arc<Schema>,
    sequence: u64,
    plan: Arc<dyn Any + Send + Sync>,
}

impl LookupPlan {
    /// The engine that it is for.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.engine
    }

    /// The number of changes that the engine had made when its snapshot began.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether a classifier of that engine and schema can install it.
    #[must_use]
    pub fn fits(&self, engine: &str, schema: &Schema) -> bool {
        let same = || std::ptr::eq(&*self.schema, schema) || *self.schema == *schema;
        self.engine == engine && same()
    }

    /// For engines: the plan, if it is for this engine and schema.
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
        let drift = |now, fitted, installing| Drift {
            now,
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
        let plan =
            |snapshot: &Snapshot| snapshot.compute(&mut crate::progress::NoProgress).unwrap();
        assert!(plan(&snapshot).is_none() && snapshot.sequence().is_none());
        snapshot.contents("one", &v4, 7, || Counted(1)).0 += 1;
        snapshot.contents("one", &v4, 9, || Counted(100)).0 += 1;
        assert!(plan(&snapshot).is_none(), "not complete");
        assert!(snapshot.complete());
        let found = plan(&snapshot).unwrap();
        assert_eq!((found.engine(), found.sequence()), ("one", 7));
        assert_eq!(found.get::<usize>("one", &v4).as_deref(), Some(&3));
        assert!(found.get::<usize>("two", &v4).is_none());
        assert!(found.get::<usize>("one", &v6).is_none());
        assert!(found.get::<u8>("one", &v4).is_none());
        snapshot.contents("one", &v6, 20, || Counted(0)).0 += 5;
        assert!(plan(&snapshot).is_none(), "it has begun again");
        assert_eq!(snapshot.sequence(), Some(20));
    }
}
