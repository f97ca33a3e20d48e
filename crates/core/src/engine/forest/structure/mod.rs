//! The structure: tables, their slots, the runs of rules, and where each rule is.
//!
//! # Data layout
//! ```text
//! root ──▶ table ──next──▶ table ──next──▶ table          a chain, best first
//!            │ mask │ best │ slots
//!            ▼
//!          [ position │ signature │ conflicts │ length ] …     8 bytes a slot
//!             │                                    │
//!             │ length 1 to 1024                   │ NESTED
//!             ▼                                    ▼
//! runs     rank × n │ value₀ × n │ mask₀ × n │ …   first of nested tables
//!
//! places   rule id ─▶ table, slot, action
//! masks    rule id ─▶ mask           non-contiguous masks that runs cannot hold
//! ```
//!
//! # Invariants
//! - Each rule is in exactly one run, and `places` says in which slot it is.
//! - The tables of a chain are in the order of their bounds `best`; no rule of a table has a better rank than its bound. A bound may be too good:
//!   that costs probes, never answers.
//! - A slot's signature and conflicts have the bits of all its rules; they may
//!   have others.
//! - A rule counts in its table and in all tables above it.
//!
//! What keeps them up is here: no other module can write a field of a table, a
//! slot or a run. *Which* table a rule goes to, when a run is split, and
//! what masks tables have is decided above.
//!
//! | file | what it does |
//! |---|---|
//! | [`table`] | one table |
//! | [`tables`] | all tables, by number |
//! | [`runs`] | runs of rules, in blocks of one array |
//! | [`array`], [`bits`], [`free_lists`], [`columns`] | what that is made of: words that grow without a pause, a bit for each block, free blocks by length, runs with one rule more or less |
//! | [`places`] | rule id → table, slot, action |
//! | [`masks`] | rule id → mask, of the rules whose runs do not have it |
//! | [`leftover`] | slots of tables that are gone |
//! | [`chain`] | the order of tables, tables that come and go |
//! | [`bounds`] | makes bounds exact again |
//! | [`rules`] | rules that come and go, chains that are taken apart |
//! | [`sizes`] | what a structure would hold |
//!
//! # Cost
//! Inserting or removing a rule: a hash, an entry of `places`, a copy of a run,
//! and 16 slots looked at while a bound is stale. Other work (closing gaps,
//! growing arrays, freeing slots) is done a little with each
//! [`tidy`](Structure::tidy).

use super::outline::Outline;
use super::rows::RowShape;
use super::slot::{Bucket, Place, Run, Slot, TableNumber};
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::rule::{ActionId, RuleId};
use crate::seed::splitmix;
use crate::simd::prefetch;

mod array;
mod bits;
mod bounds;
mod chain;
mod columns;
mod free_lists;
mod leftover;
mod masks;
mod places;
mod rules;
mod runs;
mod sizes;
mod table;
mod tables;

use leftover::Leftover;
use masks::Masks;
use places::{Known, Places};
pub(super) use rules::RuleAt;
use runs::Runs;
pub(super) use table::{Role, Table};
use tables::Tables;

/// The tables and rules of a forest.
pub(super) struct Structure<const W: usize> {
    shape: RowShape,
    /// Odd multipliers of the hash functions, one for each key word.
    secrets: [u64; W],
    tables: Tables<W>,
    /// The first table of the root chain.
    root: TableNumber,
    runs: Runs,
    places: Places,
    masks: Masks<W>,
    leftover: Leftover,
    huge_pages: bool,
}

impl<const W: usize> Structure<W> {
    /// Without rules, which will be of that shape. The seed decides the hash
    /// functions.
    pub(super) fn new(shape: RowShape, seed: u64, huge_pages: bool) -> Structure<W> {
        let mut state = seed;
        Structure {
            runs: Runs::new(shape.layout(), huge_pages),
            shape,
            secrets: std::array::from_fn(|_| splitmix(&mut state) | 1),
            tables: Tables::new(),
            root: TableNumber::NONE,
            places: Places::new(seed),
            masks: Masks::new(seed),
            leftover: Leftover::default(),
            huge_pages,
        }
    }

    /// The columns of the rules.
    #[inline]
    pub(super) fn shape(&self) -> &RowShape {
        &self.shape
    }

    /// Multipliers for [`Table::hash`].
    #[inline]
    pub(super) fn secrets(&self) -> &[u64; W] {
        &self.secrets
    }

    /// The exact bits and the rank of a rule, from its row.
    #[inline]
    pub(super) fn outline(&self, row: &[u64]) -> Outline<W> {
        self.shape.outline(row)
    }

    /// The number of rules.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The most rules for which there is always room.
    pub(super) fn capacity(&self) -> usize {
        self.runs.capacity()
    }

    /// Lets runs take no more words than those of another structure may.
    pub(super) fn limit_words_as(&mut self, other: &Structure<W>) {
        self.runs.set_limit(other.runs.limit());
    }

    /// Lets runs take at most `limit` words.
    #[cfg(test)]
    pub(super) fn limit_words(&mut self, limit: u32) {
        self.runs.set_limit(limit);
    }

    /// Makes room for that many more rules.
    pub(super) fn reserve(
        &mut self,
        rules: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        // Room to grow without a pause is not held before it is used.
        let (words, spare) = self.runs.reserved(rules);
        monitor.memory().keep(bytes_of::<u64>(words))?;
        monitor.memory().take(bytes_of::<u64>(spare))?;
        self.runs.reserve(rules);
        Ok(())
    }

    /// Bytes of what grows with the rules in small pieces: all but the slots of
    /// tables and the words of runs.
    pub(super) fn index_bytes(&self) -> usize {
        self.runs.index_bytes() + self.places.bytes() + self.masks.bytes() + self.tables.bytes()
    }

    /// Bytes held, spare room included.
    pub(super) fn bytes(&self) -> usize {
        let slots: usize = self.tables.iter().map(Table::bytes).sum();
        self.runs.bytes()
            + self.places.bytes()
            + self.masks.bytes()
            + slots
            + self.leftover.bytes()
            + self.tables.bytes()
    }

    /// The first table of the root.
    #[inline]
    pub(super) fn root(&self) -> TableNumber {
        self.root
    }

    /// A table that is there.
    #[inline]
    pub(super) fn table(&self, number: TableNumber) -> &Table<W> {
        &self.tables[number.index()]
    }

    /// A table by a number that may have been freed since: then it is `None`, has
    /// no slots, or is another table.
    pub(super) fn table_if_any(&self, number: TableNumber) -> Option<&Table<W>> {
        self.tables.get(number)
    }

    /// The number of tables, nested ones included.
    pub(super) fn table_count(&self) -> usize {
        self.tables.len()
    }

    /// The slot at a place.
    #[inline]
    pub(super) fn slot(&self, place: Place) -> Slot {
        self.table(place.table).slot(place.slot)
    }

    /// The words of all runs.
    #[inline]
    pub(super) fn words(&self) -> &[u64] {
        self.runs.words()
    }

    /// The words of a run, column by column.
    #[inline]
    pub(super) fn run(&self, run: Run) -> &[u64] {
        self.runs.of(run)
    }

    /// The ranks of a run's rules, the best first.
    #[inline]
    pub(super) fn ranks(&self, run: Run) -> &[u64] {
        self.runs.ranks(run)
    }

    /// Appends a rule of a run as a row.
    pub(super) fn push_row(&self, run: Run, rule: usize, rows: &mut Vec<u64>) {
        self.runs.push_row(run, rule, rows);
    }

    /// Words of runs that are free.
    pub(super) fn free_words(&self) -> usize {
        self.runs.free_words()
    }

    /// The number of runs, and the length of the longest.
    pub(super) fn count_runs(&self) -> (usize, usize) {
        self.all_runs().fold((0, 0), |(count, longest), run| {
            (count + 1, longest.max(usize::from(run.len)))
        })
    }

    /// Whether a rule has that id. An update that is checked like this comes
    /// next, so its run is prefetched.
    pub(super) fn contains(&self, id: RuleId) -> bool {
        let Some(Known { place, .. }) = self.places.get(id) else {
            return false;
        };
        // The slot comes from memory while the program goes on to the update; the
        // run is prefetched when it is there.
        if let Bucket::Run(run) = self.slot(place).bucket() {
            prefetch(&self.ranks(run)[0]);
        }
        true
    }

    /// The number of entries, used or not: a walk over all rules looks at each.
    pub(super) fn entries(&self) -> usize {
        self.places.entries()
    }

    /// The rule of an entry, if it is used. Rules that come or go may change the
    /// entries of others.
    pub(super) fn entry(&self, entry: usize) -> Option<(RuleId, Place)> {
        let (id, known) = self.places.entry(entry)?;
        Some((id, known.place))
    }

    /// The ids of all rules with their actions, in no particular order.
    pub(super) fn actions(&self) -> impl Iterator<Item = (RuleId, ActionId)> {
        self.places.iter().map(|(id, known)| (id, known.action))
    }

    /// The ranks of all rules, in no particular order.
    pub(super) fn all_ranks(&self) -> impl Iterator<Item = u64> {
        let ranks = |run| self.ranks(run).iter().copied();
        self.all_runs().flat_map(ranks)
    }

    fn all_runs(&self) -> impl Iterator<Item = Run> {
        let slots = self.tables.iter().flat_map(Table::slots);
        slots.filter_map(|slot| match slot.bucket() {
            Bucket::Run(run) => Some(run),
            Bucket::Empty | Bucket::Nested(_) => None,
        })
    }
}
