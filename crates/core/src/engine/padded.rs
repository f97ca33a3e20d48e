//! Classifiers for schemas whose key width an engine is not compiled for.
//!
//! An engine lists the key widths that it is compiled for
//! ([`Engine::key_widths`](super::Engine::key_widths)). A schema of another
//! width gets the next wider one: rules and keys are copied with zero words at
//! the end of the key, and the zero words match in every rule.
//!
//! ```text
//!   key     k0 k1 k2           ─▶  k0 k1 k2 0 0
//!   rule    v0 v1 v2 m0 m1 m2 h ─▶  v0 v1 v2 0 0 m0 m1 m2 0 0 h
//! ```
//!
//! # Cost
//! A lookup copies the key, a batch [`BATCH`] keys at a time. An update copies
//! the rules that it carries. The classifier holds the wider rules.

use std::ops::Range;
use std::sync::Arc;

use super::EngineSpec;
use super::adapter::BuildRequest;
use crate::classifier::{
    BATCH, Classifier, DynamicClassifier, LookupTrace, Progress, Scratch, Stats,
};
use crate::error::{BuildError, UpdateError};
use crate::key::KeySlice;
use crate::limits::Limits;
use crate::memory::Memory;
use crate::packed::append_widened;
use crate::reoptimise::Reoptimise;
use crate::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::ruleset::RuleSet;
use crate::schema::{MAX_KEY_WORDS, Schema};
use crate::transaction::{Change, Transaction};

/// Key widths, in words, for engines whose lookups are not the fastest: those of
/// the built-in schemas, of 1,024 bits packed without a gap, and the widest. Each
/// width costs compile time and code.
pub const FEW_WIDTHS: [usize; 5] = [2, 5, 6, 16, 32];

/// Returns the first of `widths`, in ascending order, that holds a key of
/// `key_words` words.
///
/// # Panics
/// When no width does.
pub(super) fn padded_width(widths: &[usize], key_words: usize) -> usize {
    let wide_enough = widths.iter().copied().find(|&width| width >= key_words);
    wide_enough.expect("an engine serves the widest key")
}

/// Returns the words with zero words after them.
pub(super) fn padded<const W: usize>(words: &[u64]) -> [u64; W] {
    let mut padded = [0; W];
    padded[..words.len()].copy_from_slice(words);
    padded
}

/// Builds `spec` over `rules` whose keys are copied to `width` words.
///
/// # Errors
/// Those of [`EngineSpec::build`].
pub(super) fn build_padded(
    spec: &EngineSpec,
    width: usize,
    rules: &RuleSet,
    limits: &Limits,
    progress: &mut dyn Progress,
    memory: &mut Memory,
) -> Result<Box<dyn Classifier>, BuildError> {
    let schema = rules.schema();
    let wide_schema = schema.with_key_words(width);
    let copy_bytes = rules.bytes() / schema.rule_words() * wide_schema.rule_words();
    let widening = Widening {
        schema: Arc::clone(schema),
        wide_schema,
    };
    memory.take(copy_bytes)?;
    let wide_rules = rules.widened(&widening.wide_schema);
    let inner = (spec.engine().build)(&mut BuildRequest {
        spec,
        rules: &wide_rules,
        limits,
        progress,
        memory,
    })?;
    drop(wide_rules);
    memory.give_back(copy_bytes);
    Ok(Box::new(Padded { widening, inner }))
}

/// A classifier over keys and rules that are copied into a wider schema.
struct Padded {
    widening: Widening,
    inner: Box<dyn Classifier>,
}

/// From a schema to the same schema with wider keys.
#[derive(Clone)]
struct Widening {
    schema: Arc<Schema>,
    wide_schema: Arc<Schema>,
}

/// Why an inner engine has updates when one is called for.
const TAKES_UPDATES: &str = "only an engine that takes updates is lent as one";

/// Keys and masks of a batch, copied.
#[derive(Default)]
struct WideWords {
    keys: Vec<u64>,
    masks: Vec<u64>,
}

impl Widening {
    fn key_words(&self) -> usize {
        self.schema.key_words()
    }

    fn wide_key_words(&self) -> usize {
        self.wide_schema.key_words()
    }

    /// Overwrites `wide` with `rows`, keys or masks, each padded.
    fn widen(&self, rows: &[u64], wide: &mut Vec<u64>) {
        wide.clear();
        for row in rows.chunks_exact(self.key_words()) {
            wide.extend_from_slice(row);
            wide.resize(wide.len() + self.wide_key_words() - row.len(), 0);
        }
    }

    /// Returns a key or a mask, padded, and the number of its words.
    ///
    /// # Panics
    /// When the key is of another schema.
    fn widen_one(&self, row: &[u64]) -> ([u64; MAX_KEY_WORDS], usize) {
        assert_eq!(row.len(), self.key_words(), "a key of another schema");
        (padded(row), self.wide_key_words())
    }

    /// Writes the first words of each row of `wide` to the row of `rows`.
    fn narrow(&self, wide: &[u64], rows: &mut [u64]) {
        let wide_rows = wide.chunks_exact(self.wide_key_words());
        for (row, wide_row) in rows.chunks_exact_mut(self.key_words()).zip(wide_rows) {
            row.copy_from_slice(&wide_row[..row.len()]);
        }
    }

    /// Calls `use_transaction` with the changes, their rules padded. A rule of
    /// another schema stays as it is: the engine refuses it.
    fn with_transaction<T>(
        &self,
        transaction: &Transaction<'_>,
        use_transaction: impl FnOnce(&Transaction<'_>) -> T,
    ) -> T {
        let is_ours = |rule: &RuleRef<'_>| {
            Arc::ptr_eq(rule.schema, &self.schema) || *rule.schema == self.schema
        };
        let mut words = Vec::new();
        for change in transaction.changes() {
            if let Change::Insert(rule) | Change::Modify(rule) = change
                && is_ours(rule)
            {
                append_widened(&self.schema, &self.wide_schema, rule.words, &mut words);
            }
        }
        let mut wide_rows = words.chunks_exact(self.wide_schema.rule_words());
        let mut wide_rule = |rule: &RuleRef<'_>| RuleRef {
            schema: &self.wide_schema,
            words: wide_rows
                .next()
                .expect("one row for each rule of the schema"),
            ..*rule
        };
        let mut wide_transaction = Transaction::new();
        for change in transaction.changes() {
            wide_transaction.push(match change {
                Change::Insert(rule) if is_ours(rule) => Change::Insert(wide_rule(rule)),
                Change::Modify(rule) if is_ours(rule) => Change::Modify(wide_rule(rule)),
                other => *other,
            });
        }
        use_transaction(&wide_transaction)
    }
}

impl Padded {
    /// Calls `look_up` with the positions of at most [`BATCH`] keys and these
    /// keys, padded, until all keys were looked up.
    fn in_batches(
        &self,
        keys: KeySlice<'_>,
        scratch: &mut Scratch,
        mut look_up: impl FnMut(Range<usize>, KeySlice<'_>, &mut Vec<u64>, &mut Scratch),
    ) {
        assert_eq!(
            keys.width(),
            self.widening.key_words(),
            "keys of another schema"
        );
        let mut words: Box<WideWords> = scratch.take();
        for start in (0..keys.len()).step_by(BATCH) {
            let positions = start..keys.len().min(start + BATCH);
            self.widening
                .widen(keys.range(positions.clone()).words(), &mut words.keys);
            let wide_keys = KeySlice::new(&words.keys, self.widening.wide_key_words());
            look_up(positions, wide_keys, &mut words.masks, scratch);
        }
        scratch.put(words);
    }

    /// The inner engine with its updates. A [`Padded`] is only lent as a
    /// [`DynamicClassifier`] if there are any.
    fn dynamic_inner(&self) -> &dyn DynamicClassifier {
        self.inner.dynamic().expect(TAKES_UPDATES)
    }

    fn dynamic_inner_mut(&mut self) -> &mut dyn DynamicClassifier {
        self.inner.as_dynamic().expect(TAKES_UPDATES)
    }
}

impl Classifier for Padded {
    fn engine(&self) -> &'static str {
        self.inner.engine()
    }

    fn schema(&self) -> &Arc<Schema> {
        &self.widening.schema
    }

    fn improve_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], scratch: &mut Scratch) {
        assert_eq!(keys.len(), winners.len(), "one winner for each key");
        self.in_batches(keys, scratch, |positions, wide_keys, _, scratch| {
            let winners = &mut winners[positions];
            self.inner.improve_batch(wide_keys, winners, scratch);
        });
    }

    fn improve_one(&self, key: &[u64], best: Winner) -> Winner {
        let (words, width) = self.widening.widen_one(key);
        self.inner.improve_one(&words[..width], best)
    }

    fn improve_masked(&self, key: &[u64], best: Winner, mask: &mut [u64]) -> Winner {
        assert_eq!(mask.len(), key.len(), "a mask as wide as the key");
        let (words, width) = self.widening.widen_one(key);
        let (mut mask_words, _) = self.widening.widen_one(mask);
        let wide_mask = &mut mask_words[..width];
        let best = self.inner.improve_masked(&words[..width], best, wide_mask);
        self.widening.narrow(wide_mask, mask);
        best
    }

    fn improve_batch_masked(
        &self,
        keys: KeySlice<'_>,
        winners: &mut [Winner],
        masks: &mut [u64],
        scratch: &mut Scratch,
    ) {
        assert_eq!(keys.len(), winners.len(), "one winner for each key");
        assert_eq!(keys.words().len(), masks.len(), "one mask for each key");
        let width = self.widening.key_words();
        self.in_batches(
            keys,
            scratch,
            |positions, wide_keys, wide_masks, scratch| {
                let masks = &mut masks[positions.start * width..positions.end * width];
                let winners = &mut winners[positions];
                self.widening.widen(masks, wide_masks);
                (self.inner).improve_batch_masked(wide_keys, winners, wide_masks, scratch);
                self.widening.narrow(wide_masks, masks);
            },
        );
    }

    fn trace(&self, key: &[u64]) -> LookupTrace {
        let (words, width) = self.widening.widen_one(key);
        let mut trace = self.inner.trace(&words[..width]);
        for probe in &mut trace.probes {
            probe.mask.truncate(self.widening.key_words());
        }
        trace
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }

    fn hide(&mut self, id: RuleId) -> Option<bool> {
        self.inner.hide(id)
    }

    fn duplicate(&self) -> Option<Box<dyn Classifier>> {
        Some(Box::new(Padded {
            widening: self.widening.clone(),
            inner: self.inner.duplicate()?,
        }))
    }

    fn dynamic(&self) -> Option<&dyn DynamicClassifier> {
        self.inner.dynamic()?;
        Some(self)
    }

    fn as_dynamic(&mut self) -> Option<&mut dyn DynamicClassifier> {
        self.inner.dynamic()?;
        Some(self)
    }
}

impl DynamicClassifier for Padded {
    fn contains(&self, id: RuleId) -> bool {
        self.dynamic_inner().contains(id)
    }

    fn capacity(&self) -> usize {
        self.dynamic_inner().capacity()
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        let mut wide_words = Vec::with_capacity(self.widening.wide_schema.rule_words());
        let priority = self.dynamic_inner().copy_rule(id, &mut wide_words)?;
        let (value, rest) = wide_words.split_at(self.widening.wide_key_words());
        let (mask, high) = rest.split_at(self.widening.wide_key_words());
        let width = self.widening.key_words();
        for part in [&value[..width], &mask[..width], high] {
            words.extend_from_slice(part);
        }
        Some(priority)
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        self.dynamic_inner().action(id)
    }

    fn winners(&self) -> Vec<Winner> {
        self.dynamic_inner().winners()
    }

    fn rules(&self) -> usize {
        self.dynamic_inner().rules()
    }

    fn check(&self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        self.widening
            .with_transaction(transaction, |wide| self.dynamic_inner().check(wide))
    }

    fn apply(&mut self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        let Padded { widening, inner } = self;
        let inner = inner.as_dynamic().expect(TAKES_UPDATES);
        widening.with_transaction(transaction, |wide| inner.apply(wide))
    }

    fn replay(&mut self, transaction: &Transaction<'_>) {
        let Padded { widening, inner } = self;
        let inner = inner.as_dynamic().expect(TAKES_UPDATES);
        widening.with_transaction(transaction, |wide| inner.replay(wide));
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.dynamic_inner_mut().rebuild(progress)
    }

    fn reoptimise(&self) -> Option<&dyn Reoptimise> {
        self.dynamic_inner().reoptimise()
    }

    fn reoptimise_mut(&mut self) -> Option<&mut dyn Reoptimise> {
        self.dynamic_inner_mut().reoptimise_mut()
    }
}
