//! The structure: tables, their slots, the runs of rules, and where each rule is.
//!
//! # Data layout
//! ```text
//! root ──▶ table ──next──▶ table ──next──▶ table          a chain, best first
//!            │ mask │ best │ slots
//!            ▼
//!          [ position │ signature │ conflicts │ length ] …     8 bytes a slot
//!             │                                    │
//!             │ length 1 to 1024                   │ NESTED_LENGTH
//!             ▼                                    ▼
//! runs     rank × n │ value₀ × n │ mask₀ × n │ …   first of nested tables
//!
//! places   rule id ─▶ table, slot, action
//! masks    rule id ─▶ mask           non-contiguous masks that runs cannot hold
//! ```
//!
//! # Invariants
//! - Each rule is in exactly one run, and `places` has the slot of that run.
//! - The tables of a chain are in the order of their bounds `best`; no rule of a
//!   table has a better rank than its bound. A bound may be better than every rule:
//!   that costs probes, but never changes answers.
//! - A slot's signature and conflicts have the bits of all its rules; they may have
//!   other bits too.
//! - A rule is counted in its table and in all tables above it.
//!
//! This module maintains the invariants: no other module can write a field of a
//! table, a slot or a run. Other modules decide *which* table a rule goes to, when a
//! run is split, and which masks tables have.
//!
//! | file | contents |
//! |---|---|
//! | [`table`] | one table |
//! | [`tables`] | all tables, by number |
//! | [`runs`] | runs of rules, in blocks of one array |
//! | [`array`], [`bits`], [`free_lists`], [`columns`] | the parts of that array: words that grow without a pause, a bit for each unit, free blocks by length, inserting and removing a rule of a run |
//! | [`places`] | rule id → table, slot, action |
//! | [`masks`] | rule id → mask, for rules whose runs do not have it |
//! | [`leftover`] | slots of removed tables |
//! | [`chain`] | the order of tables; adding and removing tables |
//! | [`bounds`] | corrects bounds |
//! | [`rules`] | inserting and removing rules, dissolving chains |
//! | [`sizes`] | sizes before there is a structure |
//!
//! # Cost
//! Inserting or removing a rule: a hash, an entry of `places`, a copy of a run; and,
//! while a bound is stale, reading 16 slots with each removal. Other work (closing
//! gaps, growing arrays, freeing slots) is done in small parts by each
//! [`tidy`](Structure::tidy).

use super::outline::Outline;
use super::rows::RowShape;
use super::slot::{Bucket, Place, Run, Slot, TableNumber};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::rule::{ActionId, RuleId};
use crate::model::seed::splitmix;

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
use places::Places;
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
    /// The tables of the root, in the order of learning. A rule goes to the first table
    /// that fits it.
    root_by_order: Vec<TableNumber>,
    runs: Runs,
    places: Places,
    masks: Masks<W>,
    leftover: Leftover,
    huge_pages: bool,
}

impl<const W: usize> Structure<W> {
    /// Returns an empty structure for rules of that shape. The seed determines the
    /// hash functions.
    pub(super) fn new(shape: RowShape, seed: u64, huge_pages: bool) -> Structure<W> {
        let mut state = seed;
        Structure {
            runs: Runs::new(shape.layout(), huge_pages),
            shape,
            secrets: std::array::from_fn(|_| splitmix(&mut state) | 1),
            tables: Tables::new(),
            root: TableNumber::NONE,
            root_by_order: Vec::new(),
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

    /// Returns the exact bits and the rank of a rule, from its row.
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

    /// Limits the words of runs as in another structure.
    pub(super) fn limit_words_as(&mut self, other: &Structure<W>) {
        self.runs.set_limit(other.runs.limit());
    }

    /// Limits the words of runs to `limit`.
    #[cfg(test)]
    pub(super) fn limit_words(&mut self, limit: u32) {
        self.runs.set_limit(limit);
    }

    /// Makes room for `rules` more rules.
    pub(super) fn reserve(
        &mut self,
        rules: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        // Spare room for growing without a pause is not memory until it is used.
        let (words, spare) = self.runs.reserved(rules);
        monitor.memory().keep(bytes_of::<u64>(words))?;
        monitor.memory().take(bytes_of::<u64>(spare))?;
        self.runs.reserve(rules);
        Ok(())
    }

    /// Bytes of the parts that grow with the rules in small pieces: everything
    /// except the slots of tables and the words of runs.
    pub(super) fn index_bytes(&self) -> usize {
        self.runs.index_bytes()
            + self.places.bytes()
            + self.masks.bytes()
            + self.tables.bytes()
            + bytes_of::<TableNumber>(self.root_by_order.capacity())
    }

    /// Bytes held, including spare room.
    pub(super) fn bytes(&self) -> usize {
        let slots: usize = self.tables.iter().map(Table::bytes).sum();
        self.runs.bytes()
            + self.places.bytes()
            + self.masks.bytes()
            + slots
            + self.leftover.bytes()
            + self.tables.bytes()
            + bytes_of::<TableNumber>(self.root_by_order.capacity())
    }

    /// The first table of the root.
    #[inline]
    pub(super) fn root(&self) -> TableNumber {
        self.root
    }

    /// Returns an existing table.
    #[inline]
    pub(super) fn table(&self, number: TableNumber) -> &Table<W> {
        &self.tables[number.index()]
    }

    /// Returns the table with a number that may have been freed: `None`, a table
    /// without slots, or another table.
    pub(super) fn table_if_any(&self, number: TableNumber) -> Option<&Table<W>> {
        self.tables.get(number)
    }

    /// The number of tables, including nested tables.
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

    /// The ranks of a run's rules, best first.
    #[inline]
    pub(super) fn ranks(&self, run: Run) -> &[u64] {
        self.runs.ranks(run)
    }

    /// Appends a rule of a run as a row.
    pub(super) fn push_row(&self, run: Run, rule: usize, rows: &mut Vec<u64>) {
        self.runs.push_row(run, rule, rows);
    }

    /// The number of free words of runs.
    pub(super) fn free_words(&self) -> usize {
        self.runs.free_words()
    }

    /// The number of runs, and the length of the longest run.
    pub(super) fn count_runs(&self) -> (usize, usize) {
        self.all_runs().fold((0, 0), |(count, longest), run| {
            (count + 1, longest.max(usize::from(run.len)))
        })
    }

    /// True if a rule has that id.
    pub(super) fn contains(&self, id: RuleId) -> bool {
        self.places.contains(id)
    }

    /// Prefetches the entry of an id.
    #[inline]
    pub(super) fn prefetch_entry(&self, id: RuleId) {
        self.places.prefetch(id);
    }

    /// Prefetches the slot at a place.
    #[inline]
    pub(super) fn prefetch_slot(&self, place: Place) {
        self.table(place.table).prefetch_slot_at(place.slot);
    }

    /// The number of entries, used or not; a walk over all rules reads each entry.
    pub(super) fn entries(&self) -> usize {
        self.places.entries()
    }

    /// Returns the rule of an entry, if the entry is used. Inserting or removing a
    /// rule may change the entries of other rules.
    pub(super) fn entry(&self, entry: usize) -> Option<(RuleId, Place)> {
        let (id, known) = self.places.entry(entry)?;
        Some((id, known.place))
    }

    /// The ids and actions of all rules, in no defined order.
    pub(super) fn actions(&self) -> impl Iterator<Item = (RuleId, ActionId)> {
        self.places.iter().map(|(id, known)| (id, known.action))
    }

    /// The ranks of all rules, in no defined order.
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
