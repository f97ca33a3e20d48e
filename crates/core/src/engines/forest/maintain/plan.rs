//! A plan for the root, learned in the background and adopted in place.

use crate::engines::forest::learn::Cost;
use crate::engines::forest::structure::{Structure, Table};
use crate::parts::sort::sort_short;

/// Masks and sizes of the root's tables.
#[derive(Clone, Debug)]
pub(crate) struct RootPlan<const W: usize> {
    pub(crate) tables: Vec<PlannedTable<W>>,
    /// The predicted cost of a lookup.
    pub(crate) predicted: Cost,
    /// The number of rules at the time of learning, and how many of them no mask
    /// fits.
    pub(crate) rules: usize,
    pub(crate) unserved: usize,
    /// True if the masks were learned from those rules.
    pub(crate) learned: bool,
}

/// If only the sizes of tables change, the new tables have slots for the present
/// number of keys times this factor, as room for later rules. Measured in
/// `bench/records/constants.md` (Forest).
const SPARE_FACTOR: usize = 2;

/// A table of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedTable<const W: usize> {
    pub(crate) mask: [u64; W],
    /// The number of different keys under the mask among the rules.
    pub(crate) keys: usize,
    /// Slots for each key; more than one if few keys would otherwise share slots.
    pub(crate) spread: usize,
}

impl<const W: usize> PlannedTable<W> {
    /// Returns the number of slots for `now` rules, if `keys` was counted with
    /// `then` rules.
    pub(crate) fn slots(&self, now: usize, then: usize) -> usize {
        let keys = self.keys as u128 * now as u128 / then.max(1) as u128;
        let keys = usize::try_from(keys)
            .map_or(now, |keys| keys.min(now))
            .max(1);
        keys.next_power_of_two() * self.spread
    }
}

impl<const W: usize> RootPlan<W> {
    /// Returns a plan with the masks of the present root tables, for the present
    /// rules. Adopting it changes only the sizes of tables.
    pub(crate) fn in_place(structure: &Structure<W>, predicted: Cost) -> RootPlan<W> {
        let (scanned, mut masked): (Vec<_>, Vec<_>) = structure
            .root_tables()
            .partition(|table| *table.mask() == [0; W]);
        sort_short(&mut masked, |table| table.order());
        let planned = |table: &&Table<W>| PlannedTable {
            mask: *table.mask(),
            keys: table.count_keys(),
            spread: SPARE_FACTOR,
        };
        RootPlan {
            tables: masked.iter().map(planned).collect(),
            predicted,
            rules: structure.len(),
            unserved: scanned.iter().map(|table| table.rules()).sum(),
            learned: false,
        }
    }

    /// True if the share of scanned rules has grown by an eighth since the plan was
    /// learned.
    pub(crate) fn is_out_of_date(&self, structure: &Structure<W>) -> bool {
        let scanned = structure
            .root_tables()
            .filter(|table| *table.mask() == [0; W]);
        let scanned: usize = scanned.map(Table::rules).sum();
        let share = |part: usize, whole: usize| part as u128 * 1000 / whole.max(1) as u128;
        share(scanned, structure.len()) > share(self.unserved, self.rules) + 125
    }
}
