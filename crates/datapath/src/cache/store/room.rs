//! Room for a megaflow: the mask table that gets it, and the megaflows and rows that make room
//! for it. The settings limit masks and megaflows; see [`super`] (Bounds).

use super::search::{ProbeOrder, Search as _};
use super::tables::{MaskTable, Row};
use super::{ChosenSearch, Store, chosen, megaflow_id};
use crate::bits::Words;

/// The maximum number of rows of all mask tables, divided by the maximum number of
/// megaflows. It bounds the memory of free rows. Compacting frees at least one row
/// for each row that it moves, since the table with the largest share of free rows is chosen.
const MAX_ROWS_PER_MEGAFLOW: usize = 2;

/// The number of rows compared to find a row that was idle for long. Measured in
/// `bench/records/constants.md` (Megaflows).
const EVICTION_TRIES: usize = 8;

impl<P> Store<P> {
    /// Returns the table for megaflows with `mask`. The table's mask has all bits of `mask`,
    /// and as few others as possible. Adds a table if there is room for another mask.
    pub(super) fn table_for(&mut self, mask: &Words) -> usize {
        let extra = |table: &MaskTable| {
            let words = table.mask().iter().zip(mask);
            let lacks = words.clone().any(|(own, wanted)| wanted & !own != 0);
            let extra = words
                .map(|(own, wanted)| (own & !wanted).count_ones())
                .sum::<u32>();
            (!lacks).then_some(extra)
        };
        let fitting = self.megaflows.tables.iter().enumerate();
        let fitting = fitting.filter_map(|(number, table)| Some((extra(table)?, number)));
        let fitting = fitting.min();
        if let Some((0, number)) = fitting {
            return number;
        }
        // The last mask is reserved for megaflows that fit no other.
        if self.megaflows.tables.len() + 1 < self.bounds.masks {
            return self.add_table(*mask);
        }
        let empty = self
            .megaflows
            .tables
            .iter()
            .position(|table| table.len() == 0);
        if let Some(number) = empty.filter(|&number| number + 1 < self.bounds.masks) {
            self.megaflows.tables[number] = MaskTable::new(*mask);
            chosen!(&mut self.search, search => search.table_replaced(number));
            return number;
        }
        self.counts.narrowed += 1;
        match fitting {
            Some((_, number)) => number,
            None => self.last_table(mask),
        }
    }

    /// Gives the last table a mask that has the bits of all masks and of `mask`. The table
    /// loses its megaflows. This happens at most [`KEY_WORDS`](crate::key::KEY_WORDS) times,
    /// since the mask gets another whole word each time. Returns its number.
    fn last_table(&mut self, mask: &Words) -> usize {
        let mut wide_mask = *mask;
        for table in &self.megaflows.tables {
            let words = wide_mask.iter_mut().zip(table.mask());
            words.for_each(|(wide_mask, own)| *wide_mask |= own);
        }
        // Whole words, so that few megaflows make the mask still wider.
        wide_mask
            .iter_mut()
            .filter(|word| **word != 0)
            .for_each(|word| *word = u64::MAX);
        let last = self.bounds.masks - 1;
        if last == self.megaflows.tables.len() {
            return self.add_table(wide_mask);
        }
        self.clear_table(last);
        self.megaflows.tables[last] = MaskTable::new(wide_mask);
        chosen!(&mut self.search, search => search.table_replaced(last));
        last
    }

    fn add_table(&mut self, mask: Words) -> usize {
        self.megaflows.tables.push(MaskTable::new(mask));
        chosen!(&mut self.search, search => search.table_added());
        self.megaflows.tables.len() - 1
    }

    pub(super) fn clear_table(&mut self, table: usize) {
        for row in 0..self.megaflows.tables[table].rows() {
            if self.megaflows.tables[table].has(row) {
                self.remove(table, row);
            }
        }
    }

    /// Compacts a mask table if `table` needs another row, and the mask tables already have
    /// the maximum number of rows.
    pub(super) fn limit_rows(&mut self, table: usize) {
        let tables = &self.megaflows.tables;
        if tables[table].free_rows() > 0 {
            return;
        }
        if self.rows() < self.bounds.megaflows * MAX_ROWS_PER_MEGAFLOW {
            return;
        }
        #[allow(clippy::cast_precision_loss)] // less than 2^53
        let free_share = |&(_, table): &(usize, &MaskTable)| {
            table.free_rows() as f64 / f64::from(table.rows().max(1))
        };
        let sparsest = tables.iter().enumerate();
        let sparsest = sparsest.max_by(|one, other| free_share(one).total_cmp(&free_share(other)));
        let Some((number, _)) = sparsest else { return };
        let secret = self.megaflows.secret;
        for (old, new) in self.megaflows.tables[number].compact(secret) {
            let megaflows = &self.megaflows;
            let old = megaflow_id(number, old);
            let moved = chosen!(&mut self.search, search => search
                .row_removed(old)
                .and_then(|()| search.row_added(megaflows, number, new)));
            if moved.is_err() {
                self.probe_tables();
            }
        }
    }

    /// Makes room for a megaflow: compares [`EVICTION_TRIES`] megaflows and removes the
    /// megaflow that was idle longest. Free rows are skipped and not counted.
    pub(super) fn give_one_up(&mut self) {
        let mut oldest = None;
        let mut looked_at = 0;
        while looked_at < EVICTION_TRIES {
            let (mut table, mut row) = self.hand;
            if table >= self.megaflows.tables.len() {
                (table, row) = (0, 0);
            }
            if row >= self.megaflows.tables[table].rows() {
                self.hand = (table + 1, 0);
                continue;
            }
            self.hand = (table, row + 1);
            if !self.megaflows.tables[table].has(row) {
                continue;
            }
            looked_at += 1;
            let state = self.megaflows.tables[table].state(row);
            let age = match self.megaflows.paths.program(state.path) {
                None => u32::MAX,
                Some(_) => u32::from(self.megaflows.tick.wrapping_sub(state.tick)),
            };
            if oldest.is_none_or(|(other, _, _)| age > other) {
                oldest = Some((age, table, row));
            }
            if self.used < EVICTION_TRIES && looked_at >= self.used {
                break;
            }
        }
        if let Some((_, table, row)) = oldest {
            self.remove(table, row);
            self.counts.evicted += 1;
        }
    }

    /// Removes a megaflow.
    pub(super) fn remove(&mut self, table: usize, row: Row) {
        let path = self.megaflows.tables[table].state(row).path;
        self.megaflows.tables[table].remove(row, self.megaflows.secret);
        let removed =
            chosen!(&mut self.search, search => search.row_removed(megaflow_id(table, row)));
        if removed.is_err() {
            self.probe_tables();
        }
        self.megaflows.paths.release(path);
        self.used -= 1;
    }

    /// Probes the tables in place of an engine that refused a change.
    pub(super) fn probe_tables(&mut self) {
        let order = ProbeOrder::of_tables(self.megaflows.tables.len());
        self.search = ChosenSearch::Tables(order);
    }
}
