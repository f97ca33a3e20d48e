//! The contract between engines and everything that uses them.
//!
//! # Semantics
//!
//! A classifier holds rules of one schema. For a key, the *winner* is the
//! matching rule of highest priority and, among equals, of lowest id. Every
//! engine returns exactly that rule, for every key, after every update.
//!
//! `classify_…` returns the winner. `improve_…` takes a candidate, the best
//! outcome so far, and returns the better of it and the engine's own winner. So
//! several classifiers chain without a merge step (an
//! update buffer before a static engine, one flow table's parts), and a good
//! candidate lets the next engine stop early.
//!
//! A masked lookup also says which bits of the key the outcome depended on:
//! every key that agrees on these bits has the same outcome. Too many bits cost
//! a cache some reach; one bit too few would make it wrong. With a candidate,
//! "outcome" is that same improvement, so chaining masked lookups over one mask
//! gives the mask of the chain.
//!
//! # Threads and memory
//!
//! Lookups take `&self` and may run on any number of threads. Working memory
//! belongs to the caller, in a [`Scratch`] for each thread; after the first
//! batches a lookup allocates nothing. Updates take `&mut self`; sharing a
//! classifier with readers that never wait is the business of a layer above,
//! the [`table`](crate::table).
//! No engine starts a thread, reads a clock or an environment variable.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use crate::error::{BuildError, UpdateError};
use crate::key::KeySlice;
use crate::reoptimise::Reoptimise;
use crate::rule::{ActionId, Priority, RuleId, Winner};
use crate::schema::Schema;
use crate::transaction::Transaction;

pub use crate::limits::Limits;
pub use crate::progress::{NoProgress, Progress, report};

/// The number of keys for which batch lookups are tuned, the vector size of
/// packet processors such as VPP ([TM19] §II.C). Any length is correct.
///
/// [TM19]: crate::papers#tm19
pub const BATCH: usize = 256;

/// An implementation of a classification algorithm, with rules in it.
pub trait Classifier: Send + Sync {
    /// The name under which the engine is registered.
    fn engine(&self) -> &'static str;

    /// The schema of the rules and keys.
    fn schema(&self) -> &Arc<Schema>;

    /// Replaces `winners[i]` by the better of it and the best rule that matches
    /// `keys[i]`. For chains of classifiers; otherwise call
    /// [`classify_batch`](Self::classify_batch).
    ///
    /// # Panics
    /// When there are not as many winners as keys, or the keys are of another
    /// width than the schema's.
    fn improve_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], scratch: &mut Scratch);

    /// Sets `winners[i]` to the best rule that matches `keys[i]`,
    /// [`Winner::MISS`] if no rule does. The old contents of `winners` do not
    /// matter.
    ///
    /// ```
    /// use classyard::prelude::*;
    ///
    /// let schema = Schema::ipv4_5tuple();
    /// let mut rules = RuleSet::new(&schema);
    /// rules.push(Rule::builder(&schema).id(0).field("dport", 80).build()?.view())?;
    /// let classifier = EngineSpec::parse("forest")?.builder().build(&rules)?;
    /// let (mut winners, mut scratch) = ([Winner::MISS; 1], Scratch::new());
    /// for (port, expected) in [(80, Some(RuleId::new(0)?)), (81, None)] {
    ///     let mut keys = KeyVec::new(&schema);
    ///     keys.push(&[1, 2, 40_000, port, 6])?;
    ///     classifier.classify_batch(keys.as_slice(), &mut winners, &mut scratch);
    ///     assert_eq!(winners[0].rule(), expected);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// When there are not as many winners as keys, or the keys are of another
    /// width than the schema's.
    fn classify_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], scratch: &mut Scratch) {
        winners.fill(Winner::MISS);
        self.improve_batch(keys, winners, scratch);
    }

    /// Returns the better of `best` and the best rule that matches a key.
    /// Classifiers that are used for single lookups override this: by default it
    /// is a batch of one key, with a scratch of its own.
    ///
    /// # Panics
    /// When the key is of another width than the schema's.
    fn improve_one(&self, key: &[u64], best: Winner) -> Winner {
        let mut winners = [best];
        let keys = KeySlice::new(key, key.len());
        self.improve_batch(keys, &mut winners, &mut Scratch::new());
        winners[0]
    }

    /// Returns the best rule that matches a key. One key at a time costs several
    /// times a batch's share: prefer [`classify_batch`](Self::classify_batch).
    ///
    /// # Panics
    /// When the key is of another width than the schema's.
    fn classify_one(&self, key: &[u64]) -> Winner {
        self.improve_one(key, Winner::MISS)
    }

    /// Returns the better of `best` and the best rule that matches a key, and sets
    /// in `mask` (as wide as the key) every bit on which that depended. Bits that
    /// are set already stay.
    ///
    /// # Panics
    /// When key or mask are of another width than the schema's.
    fn improve_masked(&self, key: &[u64], best: Winner, mask: &mut [u64]) -> Winner;

    /// Returns the best rule that matches a key, and sets in `mask` every bit on
    /// which that depended; see [`improve_masked`](Self::improve_masked).
    ///
    /// # Panics
    /// When key or mask are of another width than the schema's.
    fn classify_masked(&self, key: &[u64], mask: &mut [u64]) -> Winner {
        self.improve_masked(key, Winner::MISS, mask)
    }

    /// [`improve_masked`](Self::improve_masked) for a batch; `masks` has as many
    /// words as the keys.
    ///
    /// # Panics
    /// When lengths or widths disagree.
    fn improve_batch_masked(
        &self,
        keys: KeySlice<'_>,
        winners: &mut [Winner],
        masks: &mut [u64],
        scratch: &mut Scratch,
    ) {
        let _ = scratch;
        assert_eq!(keys.len(), winners.len(), "one winner for each key");
        assert_eq!(
            keys.len() * keys.width(),
            masks.len(),
            "one mask for each key"
        );
        let rows = masks.chunks_exact_mut(keys.width());
        for ((key, winner), mask) in keys.iter().zip(winners).zip(rows) {
            *winner = self.improve_masked(key, *winner, mask);
        }
    }

    /// What a lookup of this key does, step by step, for people. Slow.
    ///
    /// # Panics
    /// When the key is of another width than the schema's.
    fn trace(&self, key: &[u64]) -> LookupTrace;

    /// Counts and sizes.
    fn stats(&self) -> Stats;

    /// Makes lookups pass over a rule from now on. For engines that take no
    /// updates, below an update buffer: deleting costs a look-up of the id
    /// instead of a rebuild. The rule's memory stays in use until then.
    ///
    /// `Some(false)` when there is no such rule, or it is hidden already;
    /// `None`, and nothing has changed, when the engine cannot hide rules.
    /// Engines that take updates remove rules instead.
    fn hide(&mut self, id: RuleId) -> Option<bool> {
        let _ = id;
        None
    }

    /// A classifier with the same rules, of which the same are hidden; what is
    /// hidden in one of the two from now on is not in the other. They may share
    /// the memory of all that does not change. For engines that take no
    /// updates, below two update buffers.
    ///
    /// `None` when the engine cannot do this.
    fn duplicate(&self) -> Option<Box<dyn Classifier>> {
        None
    }

    /// The same engine with updates, to read, if it has them.
    fn dynamic(&self) -> Option<&dyn DynamicClassifier> {
        None
    }

    /// The same engine with updates, if it has them.
    fn as_dynamic(&mut self) -> Option<&mut dyn DynamicClassifier> {
        None
    }
}

/// A classifier whose rules may change.
pub trait DynamicClassifier: Classifier {
    /// Whether a rule has that id.
    fn contains(&self, id: RuleId) -> bool;

    /// The most rules that the engine can hold, whatever the caller's limits.
    /// A transaction with which there would be more, if only in between, is
    /// refused with [`UpdateError::EngineFull`].
    fn capacity(&self) -> usize {
        usize::MAX
    }

    /// Appends the packed words of the rule with that id, in the layout of the
    /// schema ([`RuleRef::words`](crate::rule::RuleRef::words)), and returns its
    /// priority. Without such a rule it appends nothing and returns `None`. The
    /// words are those that the rule had when it was put in.
    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority>;

    /// The action of the rule with that id, if there is one: the action that the
    /// rule had when it was put in or modified last.
    fn action(&self, id: RuleId) -> Option<ActionId>;

    /// All rules, each as the winner that it may be, in no particular order.
    fn winners(&self) -> Vec<Winner>;

    /// The number of rules.
    fn rules(&self) -> usize {
        self.stats().rules
    }

    /// Says whether [`apply`](Self::apply) would take the transaction. With it
    /// several classifiers can be updated all or nothing.
    ///
    /// # Errors
    /// The same as [`apply`](Self::apply).
    fn check(&self, transaction: &Transaction<'_>) -> Result<(), UpdateError>;

    /// Makes all of a transaction's changes, in order, or none.
    ///
    /// # Errors
    /// [`UpdateError`] names the change that cannot be made and why.
    fn apply(&mut self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        self.check(transaction)?;
        self.replay(transaction);
        Ok(())
    }

    /// Makes changes that passed [`Transaction::validate`] earlier, against a
    /// classifier with the same rules: what a layer with several copies of a
    /// classifier has accepted. Every engine takes whatever passes there with no
    /// more rules than its [`capacity`](Self::capacity); the limit on bytes is not looked at again, since the copies need not agree
    /// about it.
    ///
    /// # Panics
    /// When a change cannot be made after all.
    fn replay(&mut self, transaction: &Transaction<'_>);

    /// Reorganises the structure for faster lookups, without changing any
    /// answer; engines with nothing to reorganise return at once. The caller
    /// decides when: the work is about that of a build.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer cancels; the classifier
    /// is as it was then.
    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let _ = progress;
        Ok(())
    }

    /// The engine's means to be fitted to its rules again, if it has any.
    fn reoptimise(&self) -> Option<&dyn Reoptimise> {
        None
    }

    /// The same, to install what was computed.
    fn reoptimise_mut(&mut self) -> Option<&mut dyn Reoptimise> {
        None
    }
}

/// Working memory for lookups: one for each thread, good for any engine, kept
/// from batch to batch.
///
/// Engines keep their buffers here by type, so one scratch serves several
/// engines in turn, and an engine inside another.
#[derive(Default)]
pub struct Scratch {
    slots: Vec<(TypeId, Box<dyn Any + Send>)>,
}

impl Scratch {
    /// Nothing allocated yet.
    #[must_use]
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Takes the buffers of a type out, or makes fresh ones. Give them back
    /// with [`put`](Self::put) for the next batch.
    #[must_use]
    pub fn take<T: Default + Send + 'static>(&mut self) -> Box<T> {
        let wanted = TypeId::of::<T>();
        match self.slots.iter().position(|(id, _)| *id == wanted) {
            Some(index) => {
                let (_, slot) = self.slots.swap_remove(index);
                slot.downcast().expect("slots are stored under their type")
            }
            None => Box::default(),
        }
    }

    /// Keeps buffers for the next batch.
    pub fn put<T: Default + Send + 'static>(&mut self, buffers: Box<T>) {
        self.slots.push((TypeId::of::<T>(), buffers));
    }
}

/// Counts and sizes of a built engine.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Stats {
    /// Rules held, without hidden ones.
    pub rules: usize,
    /// Tables, tuples, partitions or trees: what a lookup may have to visit.
    pub tables: usize,
    /// Bytes of the packed rules themselves (value, mask, upper ends, rank).
    pub rule_bytes: usize,
    /// Bytes of everything else, spare room included.
    pub index_bytes: usize,
    /// More that the engine knows about itself.
    pub metrics: Vec<Metric>,
}

impl Stats {
    /// The name of the metric that says how many bytes were taken at once, at
    /// most, when the engine was built: what
    /// [`Limits::peak_bytes`] limits.
    pub const PEAK_BYTES: &'static str = "peak bytes while building";

    /// All bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rule_bytes + self.index_bytes
    }

    /// The value of a metric, if the engine has it.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<MetricValue> {
        let metric = self.metrics.iter().find(|metric| metric.name == name);
        Some(metric?.value)
    }
}

/// A number that an engine knows about itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// What is measured, in lower case.
    pub name: &'static str,
    /// How much.
    pub value: MetricValue,
}

/// A number and its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricValue {
    /// A number of things.
    Count(usize),
    /// A number of bytes.
    Bytes(usize),
    /// A time in nanoseconds.
    Nanoseconds(f64),
    /// A mean, or what one thing is to another.
    Ratio(f64),
    /// One of a few words.
    Word(&'static str),
}

impl Metric {
    /// A number of things.
    #[must_use]
    pub fn count(name: &'static str, count: usize) -> Metric {
        let value = MetricValue::Count(count);
        Metric { name, value }
    }

    /// A number of bytes.
    #[must_use]
    pub fn bytes(name: &'static str, bytes: usize) -> Metric {
        let value = MetricValue::Bytes(bytes);
        Metric { name, value }
    }

    /// A time.
    #[must_use]
    pub fn nanoseconds(name: &'static str, nanoseconds: f64) -> Metric {
        let value = MetricValue::Nanoseconds(nanoseconds);
        Metric { name, value }
    }

    /// A mean, or what one thing is to another.
    #[must_use]
    pub fn ratio(name: &'static str, ratio: f64) -> Metric {
        let value = MetricValue::Ratio(ratio);
        Metric { name, value }
    }

    /// One of a few words.
    #[must_use]
    pub fn word(name: &'static str, word: &'static str) -> Metric {
        let value = MetricValue::Word(word);
        Metric { name, value }
    }
}

impl MetricValue {
    /// The unit of the number: `B`, `ns`, or nothing.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            MetricValue::Bytes(_) => "B",
            MetricValue::Nanoseconds(_) => "ns",
            MetricValue::Count(_) | MetricValue::Ratio(_) | MetricValue::Word(_) => "",
        }
    }
}

impl fmt::Display for MetricValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetricValue::Count(count) => count.fmt(f),
            MetricValue::Bytes(bytes) => write!(f, "{bytes} B"),
            MetricValue::Nanoseconds(nanoseconds) => write!(f, "{nanoseconds:.1} ns"),
            MetricValue::Ratio(ratio) => write!(f, "{ratio:.2}"),
            MetricValue::Word(word) => f.write_str(word),
        }
    }
}

/// What a lookup did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupTrace {
    /// The tables looked at, in order.
    pub probes: Vec<Probe>,
    /// The tables that there are.
    pub tables: usize,
    /// The outcome.
    pub winner: Winner,
}

/// One table that a lookup looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Which table, in the engine's own numbering.
    pub table: usize,
    /// The key bits that the table looks at.
    pub mask: Vec<u64>,
    /// Rules in the table.
    pub rules: usize,
    /// The rules that were compared with the key, in order.
    pub compared: Vec<RuleId>,
    /// The best of them that matched.
    pub winner: Winner,
}
