//! Marks megaflows as stale that changes of entries may have made wrong.

use super::table::{MaskTable, Row, State};
use super::{Added, Store, parts};
use crate::cache::bits::Words;
use crate::cache::microflow::CachedDecision;

impl<P> Store<P> {
    /// Marks a megaflow as stale if a new entry may win some of its packets.
    pub(crate) fn entries_added(&mut self, added: &[Added]) {
        for added in added {
            self.demand.note(&added.match_bits);
        }
        let mut rows = std::mem::take(&mut self.affected);
        for number in 0..self.rows.tables.len() {
            // The signatures of a table are in cache for all entries after the first.
            for added in added {
                rows.clear();
                self.rows.tables[number].overlapping(&added.match_bits, &mut rows);
                for &row in &rows {
                    let row = Row::try_from(row).expect("24 bits");
                    if self.rows.tables[number].has(row) && self.takes_from(added, (number, row)) {
                        let state = self.rows.tables[number].state(row);
                        // Any era except the present one.
                        let era = !self.rows.era;
                        self.rows.tables[number].set_state(row, State { era, ..state });
                        self.counts.outdated += 1;
                    }
                }
            }
        }
        self.affected = rows;
    }

    /// True if a new entry may win packets of a megaflow that is not stale.
    fn takes_from(&self, added: &Added, (number, row): (usize, Row)) -> bool {
        let megaflows = &self.rows.tables[number];
        let state = megaflows.state(row);
        if self.rows.is_stale(state) {
            return false;
        }
        let (path, _) = self.rows.paths.get(state.path);
        let step = path.steps.iter().find(|step| step.table == added.table);
        step.is_some_and(|step| {
            added.winner.beats(step.winner) && megaflows.overlaps(row, &added.match_bits, &step.set)
        })
    }

    /// Makes all megaflows stale.
    pub(crate) fn begin_era(&mut self) {
        self.counts.eras += 1;
        match self.rows.era.checked_add(1) {
            Some(era) => self.rows.era = era,
            // The era overflows: remove all megaflows, so that none seems to be of a
            // later era.
            None => {
                (0..self.rows.tables.len()).for_each(|table| self.clear_table(table));
                self.rows.era = 0;
            }
        }
    }

    /// Removes a stale megaflow, if it still exists.
    pub(crate) fn drop_stale(&mut self, decision: CachedDecision, key: &Words) {
        let (table, row) = parts(decision);
        let stale = |mask_table: &MaskTable| {
            mask_table.covers(row, key) && self.rows.is_stale(mask_table.state(row))
        };
        if self.rows.tables.get(table).is_some_and(stale) {
            self.remove(table, row);
        }
    }
}
