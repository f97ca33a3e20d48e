//! A tuple space as a classifier. A [`Placement`] chooses the table for each rule.

use crate::budget::memory::bytes_of;
use crate::budget::monitor::{Monitor, unwatched};
use crate::contract::adapter::{Algorithm, Updates};
use crate::contract::classifier::{LookupTrace, Metric, Progress};
use crate::contract::reoptimise::Reoptimise;
use crate::contract::spec::BuildRequest;
use crate::model::error::BuildError;
use crate::model::rule::{ActionId, Priority, RuleId, RuleRef, Winner};

use super::lookup::Buffers;
use super::{EntryIndex, Renumbered, TupleSpace};

/// Chooses tables for rules; algorithms differ in this choice.
pub(crate) trait Placement<const W: usize>: Sized + Send + Sync + 'static {
    /// Reads the options, and makes the space that they describe, without rules.
    fn new(request: &BuildRequest<'_>) -> (TupleSpace<W>, Self);

    /// Puts a stored rule into a table, and makes the table if necessary.
    fn place(
        &mut self,
        space: &mut TupleSpace<W>,
        entry: EntryIndex,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError>;

    /// Places all rules of a build. They are stored already, in the order of the rule
    /// set.
    fn place_all(
        &mut self,
        space: &mut TupleSpace<W>,
        entries: Vec<EntryIndex>,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        place_one_by_one(self, space, &entries, monitor)
    }

    /// Called after the table with this mask became empty and was removed.
    fn table_dropped(&mut self, mask: &[u64; W]) {
        let _ = mask;
    }

    /// Called after tables were renumbered and rules were moved.
    fn renumbered(&mut self, numbers: &Renumbered) {
        let _ = numbers;
    }

    /// Reorganises the tables.
    fn rebuild(
        &mut self,
        space: &mut TupleSpace<W>,
        progress: &mut dyn Progress,
    ) -> Result<(), BuildError> {
        let _ = (space, progress);
        Ok(()) // The tables follow from the rules alone.
    }

    /// Called after each transaction, with its number of changes.
    fn settle(&mut self, space: &mut TupleSpace<W>, changes: usize) {
        let _ = (space, changes);
    }

    /// Returns the engine's re-optimisation, if it has one.
    fn reoptimise(engine: &TupleEngine<W, Self>) -> Option<&dyn Reoptimise> {
        let _ = engine;
        None
    }

    /// Returns the engine's re-optimisation for changes, if it has one.
    fn reoptimise_mut(engine: &mut TupleEngine<W, Self>) -> Option<&mut dyn Reoptimise> {
        let _ = engine;
        None
    }
}

/// Places rules in the given order.
pub(crate) fn place_one_by_one<const W: usize>(
    placement: &mut impl Placement<W>,
    space: &mut TupleSpace<W>,
    entries: &[EntryIndex],
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    monitor.begin(PLACING, entries.len())?;
    for &entry in entries {
        placement.place(space, entry, monitor)?;
        monitor.advance(1)?;
    }
    Ok(())
}

/// Name of the phase of placing rules, for the progress callback.
const PLACING: &str = "placing rules in tables";

/// A tuple space with its placement.
pub(crate) struct TupleEngine<const W: usize, P> {
    pub(crate) space: TupleSpace<W>,
    pub(crate) placement: P,
}

/// Name of the phase of copying rules, for the progress callback.
const COPYING: &str = "copying rules";

impl<const W: usize, P: Placement<W>> TupleEngine<W, P> {
    /// Puts a stored rule into a table.
    pub(crate) fn place(
        &mut self,
        entry: EntryIndex,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        self.placement.place(&mut self.space, entry, monitor)
    }
}

impl<const W: usize, P: Placement<W>> Algorithm<W> for TupleEngine<W, P> {
    type Buffers = Buffers;

    fn build(request: &mut BuildRequest<'_>) -> Result<Self, BuildError> {
        let rules = request.rules;
        let (mut space, mut placement) = P::new(request);
        let least = space.least_bytes(rules.len());
        request.limits.check_bytes(least)?;
        let mut monitor = request.monitor();
        monitor.begin(COPYING, rules.len())?;
        space.reserve(rules.len(), &mut monitor)?;
        let bytes = bytes_of::<EntryIndex>(rules.len());
        monitor.memory().take(bytes)?;
        let mut entries = Vec::with_capacity(rules.len());
        for rule in rules.iter() {
            entries.extend(space.store(&rule));
            monitor.advance(1)?;
        }
        placement.place_all(&mut space, entries, &mut monitor)?;
        monitor.memory().give_back(bytes);
        Ok(TupleEngine { space, placement })
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        self.space.improve(key, best)
    }

    fn improve_batch(&self, keys: &[[u64; W]], winners: &mut [Winner], buffers: &mut Buffers) {
        self.space.improve_batch(keys, winners, buffers);
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        self.space.improve_masked(key, best, mask)
    }

    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        self.space.trace(key)
    }

    fn rules(&self) -> usize {
        self.space.len()
    }

    fn tables(&self) -> usize {
        self.space.table_count()
    }

    fn bytes(&self) -> usize {
        self.space.bytes()
    }

    fn metrics(&self) -> Vec<Metric> {
        let tables = self.space.tables.iter().map(|table| table.rules);
        let largest = tables.max().unwrap_or(0);
        vec![Metric::count("rules in the largest table", largest)]
    }
}

impl<const W: usize, P: Placement<W>> Updates<W> for TupleEngine<W, P> {
    fn contains(&self, id: RuleId) -> bool {
        self.space.contains(id)
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        self.space.copy_rule(id, words)
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        self.space.action(id)
    }

    fn winners(&self) -> Vec<Winner> {
        self.space.winners()
    }

    fn insert(&mut self, rule: &RuleRef<'_>) -> bool {
        let Some(entry) = self.space.store(rule) else {
            return false;
        };
        unwatched(|monitor| self.placement.place(&mut self.space, entry, monitor));
        true
    }

    fn remove(&mut self, id: RuleId) -> bool {
        let Some(table) = self.space.remove(id) else {
            return false;
        };
        let mask = *self.space.mask(table);
        if self.space.drop_if_empty(table) {
            self.placement.table_dropped(&mask);
        }
        if let Some(numbers) = self.space.compact_if_sparse() {
            self.placement.renumbered(&numbers);
        }
        true
    }

    fn settle(&mut self, changes: usize) {
        self.placement.settle(&mut self.space, changes);
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.placement.rebuild(&mut self.space, progress)
    }

    fn reoptimise(&self) -> Option<&dyn Reoptimise> {
        P::reoptimise(self)
    }

    fn reoptimise_mut(&mut self) -> Option<&mut dyn Reoptimise> {
        P::reoptimise_mut(self)
    }
}
