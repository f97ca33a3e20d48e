//! Bounds: what is the best rank in a table.
//!
//! Where the best rule of a table goes, its bound is *stale*: too good, until the
//! slots have been looked at for the best rank that is left, a few with each
//! removal. Rules that come meanwhile count at once.

use super::Structure;
use super::table::Role;
use crate::engine::forest::slot::{Bucket, TableNumber};

/// Slots looked at with each removal while a bound is stale.
const SCANNED: usize = 16;

impl<const W: usize> Structure<W> {
    /// A rule of that rank has gone from a table: counts it out, corrects the
    /// bound or a part of it, and drops the table if it is empty. An incoming
    /// table stays.
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

    /// Looks at some slots, and sets the best rank seen when all have been looked
    /// at.
    fn scan_for_best(&mut self, number: TableNumber) {
        let slots = self.table(number).slots_to_scan(SCANNED);
        let bests = slots.filter_map(|slot| match slot.bucket() {
            Bucket::Empty => None,
            Bucket::Run(run) => Some(self.runs.ranks(run)[0]),
            Bucket::Nested(first) => Some(self.table(first).best()),
        });
        let best = bests.min().unwrap_or(u64::MAX);
        if let Some(best) = self.tables[number.index()].has_scanned(SCANNED, best) {
            self.set_best(number, best);
        }
    }
}
