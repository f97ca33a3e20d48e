//! Adding megaflows, and making room for them.

use super::rows::Search;
use super::table::{MAX_PATHS, MaskTable, Row, State};
use super::{Kept, Store, decision};
use crate::cache::bits::{Known, Words};
use crate::cache::path::Path;

/// The number of rows compared to find a row that was idle for long.
const EVICTION_TRIES: usize = 8;

impl<P> Store<P> {
    /// Adds a megaflow: packets that agree with `key` on the bits of `mask` take `path`. The
    /// mask of its table may have more bits. If the table already has a megaflow for the
    /// key, that megaflow gets the path. Returns `None` if there are too many paths.
    pub(crate) fn insert(
        &mut self,
        key: &Words,
        mask: &Words,
        path: &Path,
        program: impl FnOnce(&Path) -> P,
    ) -> Option<Kept> {
        if self.rows.paths.len() >= MAX_PATHS / 2 {
            return None;
        }
        let table = self.table_for(mask);
        let set: Vec<Known> = path
            .steps
            .iter()
            .flat_map(|step| &step.set)
            .copied()
            .collect();
        let (path, has_new_program) = self.rows.paths.refer(path, self.rows.era, program);
        let result = |table, row| {
            Some(Kept {
                decision: decision(table, row),
                path,
                has_new_program,
            })
        };
        let state = State {
            path,
            tick: self.rows.tick,
            era: self.rows.era,
        };
        let hash = self.rows.tables[table].hash(key, self.rows.secret);
        if let Some(row) = self.rows.tables[table].find(key, hash) {
            let old = self.rows.tables[table].state(row).path;
            self.rows.tables[table].renew(row, state, &set);
            self.rows.paths.release(old);
            return result(table, row);
        }
        if self.used >= self.bounds.megaflows {
            self.give_one_up();
        }
        let (secret, demand) = (self.rows.secret, &self.demand);
        let (row, given_up) = self.rows.tables[table].insert(key, state, &set, secret, demand);
        match given_up {
            Some(path) => {
                self.rows.paths.release(path);
                self.counts.evicted += 1;
            }
            None => self.used += 1,
        }
        self.counts.added += 1;
        if self.search.row_added(&self.rows, table, row).is_err() {
            self.search.replace_engine(&self.rows);
        }
        result(table, row)
    }

    /// Returns the table for megaflows with `mask`. The table's mask has all bits of `mask`,
    /// and as few others as possible. Adds a table if there is room for another mask.
    fn table_for(&mut self, mask: &Words) -> usize {
        let extra = |table: &MaskTable| {
            let words = table.mask().iter().zip(mask);
            let lacks = words.clone().any(|(own, wanted)| wanted & !own != 0);
            let extra = words
                .map(|(own, wanted)| (own & !wanted).count_ones())
                .sum::<u32>();
            (!lacks).then_some(extra)
        };
        let fitting = self.rows.tables.iter().enumerate();
        let fitting = fitting.filter_map(|(number, table)| Some((extra(table)?, number)));
        let fitting = fitting.min();
        if let Some((0, number)) = fitting {
            return number;
        }
        // The last mask is reserved for megaflows that fit no other.
        if self.rows.tables.len() + 1 < self.bounds.masks {
            return self.add_table(*mask);
        }
        let empty = self.rows.tables.iter().position(|table| table.len() == 0);
        if let Some(number) = empty.filter(|&number| number + 1 < self.bounds.masks) {
            self.rows.tables[number] = MaskTable::new(*mask);
            self.search.table_replaced(number);
            return number;
        }
        self.counts.narrowed += 1;
        match fitting {
            Some((_, number)) => number,
            None => self.last_table(mask),
        }
    }

    /// Gives the last table a mask that has the bits of all masks and of `mask`. The table
    /// loses its megaflows. Returns its number.
    fn last_table(&mut self, mask: &Words) -> usize {
        let mut wide_mask = *mask;
        for table in &self.rows.tables {
            let words = wide_mask.iter_mut().zip(table.mask());
            words.for_each(|(wide_mask, own)| *wide_mask |= own);
        }
        // Whole words, so that few megaflows make the mask still wider.
        wide_mask
            .iter_mut()
            .filter(|word| **word != 0)
            .for_each(|word| *word = u64::MAX);
        let last = self.bounds.masks - 1;
        if last == self.rows.tables.len() {
            return self.add_table(wide_mask);
        }
        self.clear_table(last);
        self.rows.tables[last] = MaskTable::new(wide_mask);
        last
    }

    fn add_table(&mut self, mask: Words) -> usize {
        self.rows.tables.push(MaskTable::new(mask));
        self.search.table_added();
        self.rows.tables.len() - 1
    }

    pub(super) fn clear_table(&mut self, table: usize) {
        for row in 0..self.rows.tables[table].rows() {
            if self.rows.tables[table].has(row) {
                self.remove(table, row);
            }
        }
    }

    /// Makes room for a megaflow: compares a few and removes the one that was idle
    /// longest.
    fn give_one_up(&mut self) {
        let mut oldest = None;
        let mut looked_at = 0;
        while looked_at < EVICTION_TRIES {
            let (mut table, mut row) = self.hand;
            if table >= self.rows.tables.len() {
                (table, row) = (0, 0);
            }
            if row >= self.rows.tables[table].rows() {
                self.hand = (table + 1, 0);
                continue;
            }
            self.hand = (table, row + 1);
            if !self.rows.tables[table].has(row) {
                continue;
            }
            looked_at += 1;
            let state = self.rows.tables[table].state(row);
            let age = match self.rows.paths.program(state.path) {
                None => u16::MAX,
                Some(_) => u16::from(self.rows.tick.wrapping_sub(state.tick)),
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

    pub(super) fn remove(&mut self, table: usize, row: Row) {
        let path = self.rows.tables[table].state(row).path;
        self.rows.tables[table].remove(row, self.rows.secret);
        if self.search.row_removed(decision(table, row)).is_err() {
            self.search.replace_engine(&self.rows);
        }
        self.rows.paths.release(path);
        self.used -= 1;
    }
}
