//! The interface between engines and their users.
//!
//! # Semantics
//!
//! A classifier holds rules of one schema. For a key, the *winner* is the
//! matching rule of highest priority; among equal priorities, the rule of
//! lowest id. Every engine returns exactly this rule, for every key, after
//! every update.
//!
//! `classify_…` returns the winner. `improve_…` takes a candidate, the best
//! outcome so far, and returns the better of the candidate and the engine's own
//! winner. So classifiers can be chained without a merge step, such as an
//! update buffer and a static engine, or the parts of one flow table. A good
//! candidate lets the next engine stop early.
//!
//! A masked lookup also returns a mask of the key bits on which the outcome
//! depended: every key that agrees on these bits has the same outcome. If the
//! mask has extra bits, a cache entry with this mask covers fewer keys. If a
//! bit is missing, the cache entry is wrong. With a candidate, the mask has the
//! bits on which the improvement depended. So if all lookups of a chain add
//! bits to one mask, the result is the mask of the chain.
//!
//! # Threads and memory
//!
//! Lookups take `&self` and may run on any number of threads. The caller keeps
//! the working memory of each thread in a [`Scratch`]. After the first batches,
//! a lookup allocates nothing. Updates take `&mut self`. To share a classifier
//! with readers that never wait, use a live [`table`](crate::table). No engine
//! starts a thread, or reads a clock or an environment variable.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use crate::contract::reoptimise::Reoptimise;
use crate::model::columns::Columns;
use crate::model::error::{BuildError, UpdateError};
use crate::model::key::KeySlice;
use crate::model::rule::{ActionId, Priority, RuleId, Winner};
use crate::model::schema::Schema;
use crate::model::transaction::Transaction;

pub use crate::budget::progress::{NoProgress, Progress, report};
pub use crate::model::limits::Limits;

/// The number of keys for which batch lookups are tuned: the vector size of
/// packet processors such as VPP ([TM19] §II.C). Batches of any length work.
///
/// [TM19]: crate::papers#tm19
pub const BATCH: usize = 256;

/// A classification algorithm, built over rules.
pub trait Classifier: Send + Sync {
    /// Returns the name under which the engine is registered.
    fn engine(&self) -> &'static str;

    /// Returns the schema of the rules and keys.
    fn schema(&self) -> &Arc<Schema>;

    /// Replaces `winners[i]` by the best rule that matches `keys[i]`, if that
    /// rule is better. Meant for chains of classifiers; otherwise call
    /// [`classify_batch`](Self::classify_batch).
    ///
    /// # Panics
    /// If the numbers of winners and keys differ, or the keys do not have the
    /// schema's width.
    fn improve_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], scratch: &mut Scratch);

    /// Sets `winners[i]` to the best rule that matches `keys[i]`, or to
    /// [`Winner::MISS`] if no rule matches. Ignores the old contents of
    /// `winners`.
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
    /// If the numbers of winners and keys differ, or the keys do not have the
    /// schema's width.
    fn classify_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], scratch: &mut Scratch) {
        winners.fill(Winner::MISS);
        self.improve_batch(keys, winners, scratch);
    }

    /// Returns the better of `best` and the best rule that matches a key. The
    /// default implementation looks up a batch of one key with a new
    /// [`Scratch`]. A classifier with a faster single lookup overrides it.
    ///
    /// # Panics
    /// If the key does not have the schema's width.
    fn improve_one(&self, key: &[u64], best: Winner) -> Winner {
        let mut winners = [best];
        let keys = KeySlice::new(key, key.len());
        self.improve_batch(keys, &mut winners, &mut Scratch::new());
        winners[0]
    }

    /// Returns the best rule that matches a key. A single lookup costs several
    /// times as much as one key in a batch: prefer
    /// [`classify_batch`](Self::classify_batch).
    ///
    /// # Panics
    /// If the key does not have the schema's width.
    fn classify_one(&self, key: &[u64]) -> Winner {
        self.improve_one(key, Winner::MISS)
    }

    /// Returns the better of `best` and the best rule that matches a key. Sets
    /// in `mask` (as wide as the key) every bit on which this outcome depended;
    /// bits already set stay set.
    ///
    /// # Panics
    /// If the key or the mask does not have the schema's width.
    fn improve_masked(&self, key: &[u64], best: Winner, mask: &mut [u64]) -> Winner;

    /// Returns the best rule that matches a key, and sets in `mask` every bit
    /// on which the outcome depended; see
    /// [`improve_masked`](Self::improve_masked).
    ///
    /// # Panics
    /// If the key or the mask does not have the schema's width.
    fn classify_masked(&self, key: &[u64], mask: &mut [u64]) -> Winner {
        self.improve_masked(key, Winner::MISS, mask)
    }

    /// Does [`improve_masked`](Self::improve_masked) for a batch. `masks` has
    /// one mask for each key, one after the other.
    ///
    /// # Panics
    /// If lengths or widths differ.
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

    /// Looks up a key and returns the steps of the lookup, for explanations and
    /// tests. Slow.
    ///
    /// # Panics
    /// If the key does not have the schema's width.
    fn trace(&self, key: &[u64]) -> LookupTrace;

    /// Returns the number of rules and tables, the bytes held, and the engine's
    /// metrics.
    fn stats(&self) -> Stats;

    /// Hides a rule from all later lookups. Meant for static engines behind an
    /// update buffer, where a removal then costs one search for the id instead
    /// of a rebuild. The rule's memory is not freed before the next rebuild.
    ///
    /// Returns `Some(false)` if the rule does not exist or is hidden already.
    /// Returns `None` and changes nothing if the engine cannot hide rules.
    /// Engines with updates remove rules instead.
    fn hide(&mut self, id: RuleId) -> Option<bool> {
        let _ = id;
        None
    }

    /// Returns a classifier with the same rules and the same hidden rules. If a
    /// rule is hidden in one of the two classifiers afterwards, it stays
    /// visible in the other. They may share memory that does not change. Meant
    /// for static engines behind two update buffers, such as the two sides of a
    /// live table.
    ///
    /// Returns `None` if the engine cannot be duplicated.
    fn duplicate(&self) -> Option<Box<dyn Classifier>> {
        None
    }

    /// Returns the engine as a [`DynamicClassifier`] for reading, if it takes
    /// updates.
    fn dynamic(&self) -> Option<&dyn DynamicClassifier> {
        None
    }

    /// Returns the engine as a [`DynamicClassifier`] for changes, if it takes
    /// updates.
    fn as_dynamic(&mut self) -> Option<&mut dyn DynamicClassifier> {
        None
    }
}

// One copy for all engines.
impl dyn Classifier + '_ {
    /// Does [`classify_batch`](Classifier::classify_batch) for headers that are
    /// stored by column. Packs [`BATCH`] headers at a time into keys, and
    /// allocates nothing after the first call with a scratch. [`Columns`] has
    /// an example.
    ///
    /// # Panics
    /// If the numbers of winners and rows differ, or the columns fit another
    /// schema.
    pub fn classify_columns(
        &self,
        columns: &Columns<'_>,
        winners: &mut [Winner],
        scratch: &mut Scratch,
    ) {
        assert_eq!(columns.schema(), self.schema(), "columns of another schema");
        assert_eq!(columns.rows(), winners.len(), "one winner for each row");
        let width = self.schema().key_words();
        let mut buffer = scratch.take::<ColumnKeys>();
        for (block, winners) in winners.chunks_mut(BATCH).enumerate() {
            let start = block * BATCH;
            buffer.words.resize(winners.len() * width, 0);
            let rows = start..start + winners.len();
            columns.range(rows).pack(&mut buffer.words);
            self.classify_batch(KeySlice::new(&buffer.words, width), winners, scratch);
        }
        scratch.put(buffer);
    }
}

/// A classifier whose rules may change.
pub trait DynamicClassifier: Classifier {
    /// True if a rule has this id.
    fn contains(&self, id: RuleId) -> bool;

    /// The maximum number of rules that the engine can hold, whatever the
    /// caller's limits. A transaction that would exceed it, even temporarily,
    /// is refused with [`UpdateError::EngineFull`].
    fn capacity(&self) -> usize {
        usize::MAX
    }

    /// Appends the packed words of the rule with this id, in the layout of the
    /// schema ([`RuleRef::words`](crate::model::rule::RuleRef::words)), and
    /// returns the rule's priority. These are the words that were inserted. If
    /// the rule does not exist, appends nothing and returns `None`.
    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority>;

    /// Returns the action of the rule with this id, if there is one: the action
    /// given when the rule was inserted or last modified.
    fn action(&self, id: RuleId) -> Option<ActionId>;

    /// Returns for each rule the outcome of a lookup that it wins, in no
    /// particular order.
    fn winners(&self) -> Vec<Winner>;

    /// Returns the number of rules.
    fn rules(&self) -> usize {
        self.stats().rules
    }

    /// Checks that [`apply`](Self::apply) would accept the transaction. With
    /// this check, several classifiers can be updated together or not at all.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    fn check(&self, transaction: &Transaction<'_>) -> Result<(), UpdateError>;

    /// Makes all changes of a transaction in order, or none.
    ///
    /// # Errors
    /// [`UpdateError`] names the refused change and the reason.
    fn apply(&mut self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        self.check(transaction)?;
        self.replay(transaction);
        Ok(())
    }

    /// Makes changes that passed [`Transaction::validate`] earlier, for a
    /// classifier with the same rules. A live table validates a transaction
    /// once and replays it on both copies of its engine. The engine must make
    /// the changes if the number of rules stays within its
    /// [`capacity`](Self::capacity). It does not check the limit on bytes,
    /// since the copies may differ in size.
    ///
    /// # Panics
    /// If a change cannot be made.
    fn replay(&mut self, transaction: &Transaction<'_>);

    /// Reorganises the structure for faster lookups, without changing any
    /// answer. Engines with nothing to reorganise return immediately. The
    /// caller decides when to rebuild, since it takes about as much work as a
    /// build.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if the progress callback cancels; the classifier
    /// is then unchanged.
    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let _ = progress;
        Ok(())
    }

    /// Returns the engine's interface for re-optimisation, if it has one.
    fn reoptimise(&self) -> Option<&dyn Reoptimise> {
        None
    }

    /// Returns the interface of [`reoptimise`](Self::reoptimise) for changes:
    /// to install a plan.
    fn reoptimise_mut(&mut self) -> Option<&mut dyn Reoptimise> {
        None
    }
}

/// Working memory for lookups. Each thread keeps one scratch from batch to
/// batch, and can use it with any engine.
///
/// Engines keep their buffers here by type, so one scratch serves several
/// engines, including an engine inside another engine.
#[derive(Default)]
pub struct Scratch {
    slots: Vec<(TypeId, Box<dyn Any + Send>)>,
}

impl Scratch {
    /// Returns a scratch that has allocated nothing.
    #[must_use]
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Removes and returns the buffers of a type, or returns new buffers. Store
    /// them with [`put`](Self::put) for the next batch.
    #[must_use]
    pub fn take<T: Default + Send + 'static>(&mut self) -> Box<T> {
        let type_id = TypeId::of::<T>();
        match self.slots.iter().position(|(id, _)| *id == type_id) {
            Some(index) => {
                let (_, slot) = self.slots.swap_remove(index);
                slot.downcast().expect("slots are stored under their type")
            }
            None => Box::default(),
        }
    }

    /// Stores buffers for the next batch.
    pub fn put<T: Default + Send + 'static>(&mut self, buffers: Box<T>) {
        self.slots.push((TypeId::of::<T>(), buffers));
    }
}

/// The keys of one batch of [`Classifier::classify_columns`].
#[derive(Default)]
struct ColumnKeys {
    words: Vec<u64>,
}

/// Counts and sizes of a built engine.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Stats {
    /// Rules held, excluding hidden rules.
    pub rules: usize,
    /// Tables, tuples, partitions or trees: the structures that a lookup may
    /// have to visit.
    pub tables: usize,
    /// Bytes of the packed rules (value, mask, upper ends, rank).
    pub rule_bytes: usize,
    /// Bytes of everything else, including unused capacity.
    pub index_bytes: usize,
    /// Further numbers, specific to the engine.
    pub metrics: Vec<Metric>,
}

impl Stats {
    /// The name of the metric for the peak number of bytes allocated while the
    /// engine was built, which [`Limits::peak_bytes`] limits.
    pub const PEAK_BYTES: &'static str = "peak bytes while building";

    /// Returns the total bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rule_bytes + self.index_bytes
    }

    /// Returns the value of a metric, if the engine has it.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<MetricValue> {
        let metric = self.metrics.iter().find(|metric| metric.name == name);
        Some(metric?.value)
    }
}

/// A number that an engine reports about itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// The name of the quantity, in lower case.
    pub name: &'static str,
    /// The value.
    pub value: MetricValue,
}

/// A number and its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricValue {
    /// A count.
    Count(usize),
    /// A number of bytes.
    Bytes(usize),
    /// A time in nanoseconds.
    Nanoseconds(f64),
    /// A mean or a ratio.
    Ratio(f64),
    /// A word from a small fixed set.
    Word(&'static str),
}

impl Metric {
    /// Returns a metric whose value is a count.
    #[must_use]
    pub fn count(name: &'static str, count: usize) -> Metric {
        let value = MetricValue::Count(count);
        Metric { name, value }
    }

    /// Returns a metric whose value is a number of bytes.
    #[must_use]
    pub fn bytes(name: &'static str, bytes: usize) -> Metric {
        let value = MetricValue::Bytes(bytes);
        Metric { name, value }
    }

    /// Returns a metric whose value is a time in nanoseconds.
    #[must_use]
    pub fn nanoseconds(name: &'static str, nanoseconds: f64) -> Metric {
        let value = MetricValue::Nanoseconds(nanoseconds);
        Metric { name, value }
    }

    /// Returns a metric whose value is a mean or a ratio.
    #[must_use]
    pub fn ratio(name: &'static str, ratio: f64) -> Metric {
        let value = MetricValue::Ratio(ratio);
        Metric { name, value }
    }

    /// Returns a metric whose value is a word from a small fixed set.
    #[must_use]
    pub fn word(name: &'static str, word: &'static str) -> Metric {
        let value = MetricValue::Word(word);
        Metric { name, value }
    }
}

impl MetricValue {
    /// Returns the unit of the number: `B`, `ns`, or nothing.
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

/// The steps of one lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupTrace {
    /// The probed tables, in order.
    pub probes: Vec<Probe>,
    /// The number of tables.
    pub tables: usize,
    /// The outcome.
    pub winner: Winner,
}

/// One table that a lookup probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The table's number in the engine.
    pub table: usize,
    /// The key bits that the table uses.
    pub mask: Vec<u64>,
    /// The number of rules in the table.
    pub rules: usize,
    /// The rules that were compared with the key, in order.
    pub compared: Vec<RuleId>,
    /// The best rule of the table that matched.
    pub winner: Winner,
}
