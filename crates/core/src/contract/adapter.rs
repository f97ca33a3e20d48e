//! The adapter turns an algorithm into a classifier. It has the code that all engines
//! share.
//!
//! The author of an engine implements [`Algorithm`] for keys of `W` words: build, look
//! up, explain, count. If rules may change, the author also implements [`Updates`]:
//! insert, remove. The adapter turns the algorithm into a [`Classifier`]. It chooses `W`
//! for a schema, checks lengths, and lends working memory. It also makes transactions: it
//! checks all changes against the rules and limits, then applies each change.
//!
//! ```text
//!   EngineSpec::build ─▶ build_static::<F>, build_dynamic::<F>    chooses W
//!                              │
//!                              ▼
//!   Classifier ◀── Adapter<W, F::At<W>> ──▶ Algorithm<W>, Updates<W>
//! ```
//!
//! A registry entry names one of the two build functions, and a function that
//! [estimates](crate::cost::estimate) the memory and work of a build:
//!
//! ```
//! use classyard::engine::adapter::{Algorithm, EveryWidth, build_static};
//! use classyard::prelude::*;
//! use classyard::{BuildError, Limits, LookupTrace};
//! use classyard::engine::{BuildRequest, Engine};
//! use classyard::estimate::Costs;
//! use classyard::NoProgress;
//! use classyard::engine::Wraps;
//! use classyard::estimate::Shape;
//! use classyard::machine::Work;
//!
//! /// Rules in order, best first: value and mask of each. It serves no ranges.
//! struct Masks<const W: usize>(Vec<(Winner, [u64; W], [u64; W])>);
//!
//! impl<const W: usize> Algorithm<W> for Masks<W> {
//!     type Buffers = ();
//!
//!     fn build(request: &mut BuildRequest<'_>) -> Result<Self, BuildError> {
//!         let words = |words: &[u64]| -> [u64; W] { words.try_into().expect("W words") };
//!         let rules = request.rules.by_rank().into_iter().map(|index| {
//!             let rule = request.rules.rule(index as usize);
//!             let packed = rule.words();
//!             (rule.winner(), words(&packed[..W]), words(&packed[W..2 * W]))
//!         });
//!         Ok(Masks(rules.collect()))
//!     }
//!
//!     fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
//!         let better = self.0.iter().take_while(|rule| rule.0.beats(best));
//!         let matches = |(_, value, mask): &&(Winner, [u64; W], [u64; W])| {
//!             (0..W).all(|word| key[word] & mask[word] == value[word])
//!         };
//!         better.clone().find(matches).map_or(best, |rule| rule.0)
//!     }
//!
//!     fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
//!         mask.fill(u64::MAX); // As good as any answer, and a bad one.
//!         self.improve(key, best)
//!     }
//!
//!     fn trace(&self, key: &[u64; W]) -> LookupTrace {
//!         LookupTrace { probes: Vec::new(), tables: 1, winner: self.improve(key, Winner::MISS) }
//!     }
//!
//!     fn rules(&self) -> usize {
//!         self.0.len()
//!     }
//!
//!     fn tables(&self) -> usize {
//!         1
//!     }
//!
//!     fn bytes(&self) -> usize {
//!         self.0.capacity() * size_of::<(Winner, [u64; W], [u64; W])>()
//!     }
//! }
//!
//! struct AnyWidth;
//!
//! impl EveryWidth for AnyWidth {
//!     type At<const W: usize> = Masks<W>;
//! }
//!
//! static ENGINES: &[Engine] = &[Engine {
//!     name: "masks",
//!     summary: "values and masks in a list",
//!     paper: "none",
//!     wraps: Wraps::Nothing,
//!     options: &[],
//!     dynamic: Engine::takes_no_updates,
//!     accepts: Engine::accepts_all,
//!     build: build_static::<AnyWidth>,
//!     estimate: |_, shape| {
//!         let (rules, words) = (shape.rules(), shape.schema().key_words());
//!         let bytes = rules * (size_of::<Winner>() + 2 * words * size_of::<u64>());
//!         let lookup = Work::of(60.0 + 3.0 * rules as f64).reading_ahead(1.0, bytes);
//!         Ok(Costs {
//!             bytes,
//!             build: Work::of(600.0 * rules as f64),
//!             batch: lookup.clone(),
//!             single: lookup,
//!             update: None,
//!         })
//!     },
//! }];
//!
//! let rules = RuleSet::new(&Schema::ipv6_5tuple());
//! let spec = EngineSpec::parse_in(ENGINES, "masks")?;
//! let built = spec.build(&rules, &Limits::default(), &mut NoProgress)?;
//! let estimate = spec.estimate(&Shape::of(&rules), &Limits::default())?;
//! assert_eq!(estimate.bytes, built.stats().bytes());
//! assert_eq!(built.classify_one(&[0; 5]), Winner::MISS);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::marker::PhantomData;
use std::sync::Arc;

use crate::contract::classifier::{
    Classifier, DynamicClassifier, Limits, LookupTrace, Metric, Progress, Scratch, Stats,
};
use crate::contract::reoptimise::Reoptimise;
use crate::contract::spec::BuildRequest;
use crate::model::error::{BuildError, UpdateError};
use crate::model::key::KeySlice;
use crate::model::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::model::schema::Schema;
use crate::model::transaction::{Change, Transaction};

/// A classification algorithm, built over rules, for keys of `W` words.
///
/// The methods have the semantics of [`Classifier`]. The caller checks lengths.
pub trait Algorithm<const W: usize>: Sized + Send + Sync + 'static {
    /// Working memory of batch lookups, kept in a [`Scratch`].
    type Buffers: Default + Send + 'static;

    /// Builds over a copy of the rules.
    ///
    /// # Errors
    /// [`BuildError`] if a limit is exceeded or the progress callback cancels.
    fn build(request: &mut BuildRequest<'_>) -> Result<Self, BuildError>;

    /// Returns the better of `best` and the best rule that matches a key.
    fn improve(&self, key: &[u64; W], best: Winner) -> Winner;

    /// Replaces `winners[i]` by the best rule that matches `keys[i]`, if that rule is
    /// better. The batch has any length, and `winners` has one entry for each key.
    fn improve_batch(
        &self,
        keys: &[[u64; W]],
        winners: &mut [Winner],
        buffers: &mut Self::Buffers,
    ) {
        let _ = buffers;
        for (key, winner) in keys.iter().zip(winners) {
            *winner = self.improve(key, *winner);
        }
    }

    /// Returns the better of `best` and the best rule that matches a key. Sets in `mask`
    /// every bit of the key on which the outcome depends.
    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner;

    /// Looks up a key and records each step.
    fn trace(&self, key: &[u64; W]) -> LookupTrace;

    /// The number of rules, excluding hidden rules.
    fn rules(&self) -> usize;

    /// The number of tables, tuples, partitions or trees.
    fn tables(&self) -> usize;

    /// Bytes held, including spare capacity and the rules themselves.
    fn bytes(&self) -> usize;

    /// Further properties of the engine.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }

    /// See [`Classifier::hide`].
    fn hide(&mut self, id: RuleId) -> Option<bool> {
        let _ = id;
        None
    }

    /// See [`Classifier::duplicate`].
    fn duplicate(&self) -> Option<Self> {
        None
    }
}

/// An algorithm whose rules may change.
pub trait Updates<const W: usize>: Algorithm<W> {
    /// The largest number of rules that it can hold.
    fn capacity(&self) -> usize {
        usize::MAX
    }

    /// True if a rule has the id.
    fn contains(&self, id: RuleId) -> bool;

    /// See [`DynamicClassifier::copy_rule`].
    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority>;

    /// See [`DynamicClassifier::action`].
    fn action(&self, id: RuleId) -> Option<ActionId>;

    /// See [`DynamicClassifier::winners`].
    fn winners(&self) -> Vec<Winner>;

    /// Adds a rule. Does nothing and returns `false` if a rule has its id already.
    fn insert(&mut self, rule: &RuleRef<'_>) -> bool;

    /// Removes the rule with the id. Returns `false` if there is none.
    fn remove(&mut self, id: RuleId) -> bool;

    /// Replaces the rule that has the same id. Returns `false` if there is none.
    fn replace(&mut self, rule: &RuleRef<'_>) -> bool {
        self.remove(rule.id()) && self.insert(rule)
    }

    /// Prefetches what [`contains`](Self::contains) reads for these changes.
    fn prefetch(&self, changes: &[Change<'_>]) {
        let _ = changes;
    }

    /// Makes changes that were checked before, in order. An algorithm may prefetch the
    /// memory that the next changes need.
    ///
    /// # Panics
    /// If a change cannot be made.
    fn make(&mut self, changes: &[Change<'_>]) {
        for change in changes {
            let made = match change {
                Change::Insert(rule) => self.insert(rule),
                Change::Remove(id) => self.remove(*id),
                Change::Modify(rule) => self.replace(rule),
            };
            assert!(made, "changes are checked before they are made");
        }
    }

    /// Called after each transaction, with its number of changes, for work that is done
    /// once for a transaction instead of once for each change.
    fn settle(&mut self, changes: usize) {
        let _ = changes;
    }

    /// See [`DynamicClassifier::rebuild`].
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if the progress callback cancels.
    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let _ = progress;
        Ok(())
    }

    /// See [`DynamicClassifier::reoptimise`].
    fn reoptimise(&self) -> Option<&dyn Reoptimise> {
        None
    }

    /// See [`DynamicClassifier::reoptimise_mut`].
    fn reoptimise_mut(&mut self) -> Option<&mut dyn Reoptimise> {
        None
    }
}

/// An algorithm at every key width.
pub trait EveryWidth: 'static {
    /// The algorithm for keys of `W` words.
    type At<const W: usize>: Algorithm<W>;
}

/// An algorithm that takes updates, at every key width.
pub trait DynamicEveryWidth: 'static {
    /// The algorithm for keys of `W` words.
    type At<const W: usize>: Updates<W>;
}

/// Calls a function that is generic over the key width, at the key width of a schema.
macro_rules! at_width {
    ($schema:expr, $build:ident $(::<$family:ident>)? ($($argument:expr),*)) => {
        match $schema.key_words() {
            2 => $build::<$($family,)? 2>($($argument),*),
            5 => $build::<$($family,)? 5>($($argument),*),
            6 => $build::<$($family,)? 6>($($argument),*),
            16 => $build::<$($family,)? 16>($($argument),*),
            32 => $build::<$($family,)? 32>($($argument),*),
            width => unreachable!("{width} is not one of KEY_WIDTHS"),
        }
    };
}

pub(crate) use at_width;

/// Builds a classifier that takes no updates. For
/// [`Engine::build`](crate::contract::spec::Engine::build).
///
/// # Errors
/// The errors of [`Algorithm::build`], and [`BuildError::TooManyBytes`].
pub fn build_static<F: EveryWidth>(
    request: &mut BuildRequest<'_>,
) -> Result<Box<dyn Classifier>, BuildError> {
    fn at<F: EveryWidth, const W: usize>(
        request: &mut BuildRequest<'_>,
    ) -> Result<Box<dyn Classifier>, BuildError> {
        Ok(Box::new(Adapter::<W, F::At<W>, Static>::build(request)?))
    }
    at_width!(request.schema(), at::<F>(request))
}

/// Builds a classifier that takes updates. For
/// [`Engine::build`](crate::contract::spec::Engine::build).
///
/// # Errors
/// The errors of [`Algorithm::build`], and [`BuildError::TooManyBytes`].
pub fn build_dynamic<F: DynamicEveryWidth>(
    request: &mut BuildRequest<'_>,
) -> Result<Box<dyn Classifier>, BuildError> {
    fn at<F: DynamicEveryWidth, const W: usize>(
        request: &mut BuildRequest<'_>,
    ) -> Result<Box<dyn Classifier>, BuildError> {
        Ok(Box::new(Adapter::<W, F::At<W>, Dynamic>::build(request)?))
    }
    at_width!(request.schema(), at::<F>(request))
}

/// Kind of an adapter that takes no updates.
enum Static {}

/// Kind of an adapter that takes updates.
pub(crate) enum Dynamic {}

/// The kind of an adapter: with or without updates.
trait Kind<const W: usize, A>: Sized + Send + Sync + 'static {
    fn dynamic(adapter: &Adapter<W, A, Self>) -> Option<&dyn DynamicClassifier>;
    fn as_dynamic(adapter: &mut Adapter<W, A, Self>) -> Option<&mut dyn DynamicClassifier>;
}

impl<const W: usize, A: Algorithm<W>> Kind<W, A> for Static {
    fn dynamic(_: &Adapter<W, A, Self>) -> Option<&dyn DynamicClassifier> {
        None
    }

    fn as_dynamic(_: &mut Adapter<W, A, Self>) -> Option<&mut dyn DynamicClassifier> {
        None
    }
}

impl<const W: usize, A: Updates<W>> Kind<W, A> for Dynamic {
    fn dynamic(adapter: &Adapter<W, A, Self>) -> Option<&dyn DynamicClassifier> {
        Some(adapter)
    }

    fn as_dynamic(adapter: &mut Adapter<W, A, Self>) -> Option<&mut dyn DynamicClassifier> {
        Some(adapter)
    }
}

/// An algorithm with the data that a [`Classifier`] needs in addition.
pub(crate) struct Adapter<const W: usize, A, K> {
    algorithm: A,
    engine: &'static str,
    schema: Arc<Schema>,
    limits: Limits,
    /// The peak bytes of the build; `None` if a test built the algorithm.
    peak: Option<usize>,
    kind: PhantomData<fn() -> K>,
}

impl<const W: usize, A: Algorithm<W>, K> Adapter<W, A, K> {
    fn build(request: &mut BuildRequest<'_>) -> Result<Self, BuildError> {
        let algorithm = A::build(request)?;
        request.limits.check_bytes(algorithm.bytes())?;
        let engine = request.spec.engine().name;
        let mut built = Adapter::around(algorithm, engine, request.schema(), request.limits);
        built.peak = Some(request.memory.peak());
        Ok(built)
    }

    fn around(algorithm: A, engine: &'static str, schema: &Arc<Schema>, limits: &Limits) -> Self {
        Adapter {
            algorithm,
            engine,
            schema: Arc::clone(schema),
            limits: *limits,
            peak: None,
            kind: PhantomData,
        }
    }
}

/// Returns a key as an array.
#[inline]
fn row<const W: usize>(key: &[u64]) -> &[u64; W] {
    key.try_into().expect("a key of another schema")
}

impl<const W: usize, A: Algorithm<W>, K: Kind<W, A>> Classifier for Adapter<W, A, K> {
    fn engine(&self) -> &'static str {
        self.engine
    }

    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn improve_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], scratch: &mut Scratch) {
        assert_eq!(keys.len(), winners.len(), "one winner for each key");
        let mut buffers: Box<A::Buffers> = scratch.take();
        self.algorithm
            .improve_batch(keys.rows(), winners, &mut buffers);
        scratch.put(buffers);
    }

    fn improve_one(&self, key: &[u64], best: Winner) -> Winner {
        self.algorithm.improve(row(key), best)
    }

    fn improve_masked(&self, key: &[u64], best: Winner, mask: &mut [u64]) -> Winner {
        let mask = mask.try_into().expect("a mask as wide as the key");
        self.algorithm.improve_masked(row(key), best, mask)
    }

    fn trace(&self, key: &[u64]) -> LookupTrace {
        self.algorithm.trace(row(key))
    }

    fn stats(&self) -> Stats {
        let rules = self.algorithm.rules();
        let row = self.schema.rule_words() * size_of::<u64>() + size_of::<Winner>();
        let rule_bytes = rules * row;
        let mut metrics = self.algorithm.metrics();
        metrics.extend((self.peak).map(|peak| Metric::bytes(Stats::PEAK_BYTES, peak)));
        Stats {
            rules,
            tables: self.algorithm.tables(),
            rule_bytes,
            index_bytes: self.algorithm.bytes().saturating_sub(rule_bytes),
            metrics,
        }
    }

    fn hide(&mut self, id: RuleId) -> Option<bool> {
        self.algorithm.hide(id)
    }

    fn duplicate(&self) -> Option<Box<dyn Classifier>> {
        Some(Box::new(Adapter::<W, A, K> {
            algorithm: self.algorithm.duplicate()?,
            engine: self.engine,
            schema: Arc::clone(&self.schema),
            limits: self.limits,
            peak: self.peak,
            kind: PhantomData,
        }))
    }

    fn dynamic(&self) -> Option<&dyn DynamicClassifier> {
        K::dynamic(self)
    }

    fn as_dynamic(&mut self) -> Option<&mut dyn DynamicClassifier> {
        K::as_dynamic(self)
    }
}

impl<const W: usize, A: Updates<W>> Adapter<W, A, Dynamic> {
    /// Tries to make the only change of a transaction without checking it first: the
    /// algorithm looks the id up in any case, so a check would search twice. Returns true
    /// if the change was made. Otherwise, the caller uses
    /// [`check`](DynamicClassifier::check), which returns the error, or `replay`, which
    /// makes the change.
    fn make_at_once(&mut self, change: &Change<'_>) -> bool {
        match change {
            Change::Insert(rule) => {
                let max_rules = self.limits.rules.min(self.algorithm.capacity());
                Arc::ptr_eq(rule.schema(), &self.schema)
                    && self.limits.bytes == usize::MAX
                    && self.algorithm.rules() < max_rules
                    && self.algorithm.insert(rule)
            }
            Change::Remove(id) => self.algorithm.remove(*id),
            Change::Modify(rule) => {
                Arc::ptr_eq(rule.schema(), &self.schema) && self.algorithm.replace(rule)
            }
        }
    }
}

impl<const W: usize, A: Updates<W>> DynamicClassifier for Adapter<W, A, Dynamic> {
    fn contains(&self, id: RuleId) -> bool {
        self.algorithm.contains(id)
    }

    fn capacity(&self) -> usize {
        self.algorithm.capacity()
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        self.algorithm.copy_rule(id, words)
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        self.algorithm.action(id)
    }

    fn winners(&self) -> Vec<Winner> {
        self.algorithm.winners()
    }

    fn rules(&self) -> usize {
        self.algorithm.rules()
    }

    fn check(&self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        if transaction.changes().len() > 1 {
            self.algorithm.prefetch(transaction.changes());
        }
        let checked = transaction.validate(
            &self.schema,
            &self.limits.within(self.algorithm.capacity()),
            self.algorithm.rules(),
            &|| self.algorithm.bytes(),
            &|id| self.algorithm.contains(id),
        );
        checked.map_err(|error| self.limits.blame(error, self.engine))
    }

    fn apply(&mut self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        if let [change] = transaction.changes()
            && self.make_at_once(change)
        {
            self.algorithm.settle(1);
            return Ok(());
        }
        self.check(transaction)?;
        self.replay(transaction);
        Ok(())
    }

    fn replay(&mut self, transaction: &Transaction<'_>) {
        self.algorithm.make(transaction.changes());
        self.algorithm.settle(transaction.changes().len());
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.algorithm.rebuild(progress)
    }

    fn reoptimise(&self) -> Option<&dyn Reoptimise> {
        self.algorithm.reoptimise()
    }

    fn reoptimise_mut(&mut self) -> Option<&mut dyn Reoptimise> {
        self.algorithm.reoptimise_mut()
    }
}

/// For tests of algorithms: turns an algorithm that a test built into a classifier, and
/// gives access to the algorithm.
#[cfg(test)]
pub(crate) mod opened {
    use super::*;

    pub(crate) type DynamicAdapter<const W: usize, A> = Adapter<W, A, Dynamic>;

    impl<const W: usize, A: Updates<W>> DynamicAdapter<W, A> {
        pub(crate) fn new(
            algorithm: A,
            engine: &'static str,
            schema: &Arc<Schema>,
            limits: &Limits,
        ) -> Self {
            Adapter::around(algorithm, engine, schema, limits)
        }

        pub(crate) fn algorithm(&mut self) -> &mut A {
            &mut self.algorithm
        }

        pub(crate) fn set_limits(&mut self, limits: &Limits) {
            self.limits = *limits;
        }
    }
}
