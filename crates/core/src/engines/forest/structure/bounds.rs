//! Bounds: the best rank in each table.
//!
//! When a table's best rule is removed, its bound is *stale*: better than all
//! remaining rules. Each removal then reads a few slots for the best remaining rank,
//! until all have been read. Rules inserted during that time are counted
//! immediately.

use super::Structure;
use super::table::Role;
use crate::engines::forest::slot::{Bucket, TableNumber};

/// Slots read with each removal while a bound is stale. Bounds the work of a
/// removal.
const SLOTS_PER_REMOVAL: usize = 16;

impl<const W: usize> Structure<W> {
    /// Counts a rule of that rank out of a table. Corrects the bound or a part of
    /// it, and removes the table if it is empty, unless it is incoming.
    pub(super) fn count_out(&mut self, number: TableNumber, rank: u64) {
        let table = &mut self.tables[number.index()];
        table.count_out(rank);
        if table.rules() == 0 && table.role() == Role::Incoming {
            table.forget_scan();
            self.set_best(number, u64::MAX);
        } else if table.rules() == 0 {
            self.drop_table(number);
        } else if table.is_stale() {
            self.scan_for_best(number);
        }
    }

    /// Reads some slots. After the last slot, sets the bound to the best rank seen.
    fn scan_for_best(&mut self, number: TableNumber) {
        let slots = self.table(number).slots_to_scan(SLOTS_PER_REMOVAL);
        let bests = slots.filter_map(|slot| match slot.bucket() {
            Bucket::Empty => None,
            Bucket::Run(run) => Some(self.runs.ranks(run)[0]),
            Bucket::Nested(first) => Some(self.table(first).best()),
        });
        let best = bests.min().unwrap_or(u64::MAX);
        if let Some(best) = self.tables[number.index()].has_scanned(SLOTS_PER_REMOVAL, best) {
            self.set_best(number, best);
        }
    }
}
