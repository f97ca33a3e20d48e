//! A plan for the root: what is learned in the background and adopted in place.

use crate::engine::forest::learn::Cost;
use crate::engine::forest::structure::{Structure, Table};
use crate::sort::sort_short;

/// Masks and sizes of the root's tables.
#[derive(Clone, Debug)]
pub(crate) struct RootPlan<const W: usize> {
    pub(crate) tables: Vec<PlannedTable<W>>,
    /// What lookups should cost.
    pub(crate) predicted: Cost,
    /// Rules that there were, and those of them that no mask fits.
    pub(crate) rules: usize,
    pub(crate) unserved: usize,
    /// Whether the masks were learned from those rules.
    pub(crate) learned: bool,
}

/// Tables that only change their sizes have slots for this many times the keys
/// of now: the next rules that come find room.
const SPARE: usize = 2;

/// A table of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedTable<const W: usize> {
    pub(crate) mask: [u64; W],
    /// Different keys under the mask among the rules.
    pub(crate) keys: usize,
    /// Slots for each of them, where few would not be told apart otherwise.
    pub(crate) spread: usize,
}

impl<const W: usize> PlannedTable<W> {
    /// Slots where there are `now` rules of `then`.
    pub(crate) fn slots(&self, now: usize, then: usize) -> usize {
        let keys = self.keys as u128 * now as u128 / then.max(1) as u128;
        let keys = usize::try_from(keys)
            .map_or(now, |keys| keys.min(now))
            .max(1);
        keys.next_power_of_two() * self.spread
    }
}

impl<const W: usize> RootPlan<W> {
    /// The plan that the root's tables follow, for the rules of now. Adopting it
    /// changes nothing but the sizes of tables.
    pub(crate) fn in_place(structure: &Structure<W>, predicted: Cost) -> RootPlan<W> {
        let (scanned, mut masked): (Vec<_>, Vec<_>) = structure
            .root_tables()
            .partition(|table| *table.mask() == [0; W]);
        sort_short(&mut masked, |table| table.order());
        let planned = |table: &&Table<W>| PlannedTable {
            mask: *table.mask(),
            keys: table.count_keys(),
            spread: SPARE,
        };
        RootPlan {
            tables: masked.iter().map(planned).collect(),
            predicted,
            rules: structure.len(),
            unserved: scanned.iter().map(|table| table.rules()).sum(),
            learned: false,
        }
    }

    /// Whether many more rules are scanned than when the plan was learned.
    pub(crate) fn is_out_of_date(&self, structure: &Structure<W>) -> bool {
        let scanned = structure
            .root_tables()
            .filter(|table| *table.mask() == [0; W]);
        let scanned: usize = scanned.map(Table::rules).sum();
        let share = |part: usize, all: usize| part as u128 * 1000 / all.max(1) as u128;
        share(scanned, structure.len()) > share(self.unserved, self.rules) + 125
    }
}
