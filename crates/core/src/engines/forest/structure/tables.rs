//! All tables, by number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{Index, IndexMut};

use super::table::Table;
use crate::budget::memory::grown;
use crate::engines::forest::slot::TableNumber;

/// The number of tables in one piece of memory: the most unused ones. Growing never
/// copies tables. With thousands of nested tables, a copy of several megabytes would
/// delay an update; `docs/forest.md` (Cost) has the time of such a copy.
const CHUNK_TABLES: usize = 256;

/// The smallest capacity of the first piece, in tables: what a `Vec` begins with.
const MIN_CHUNK_TABLES: usize = 4;

/// An array of tables that grows without copying them. A new table takes the lowest
/// free number. Free numbers at the end are released, so the array also shrinks.
#[derive(Debug)]
pub(super) struct Tables<const W: usize> {
    chunks: Vec<Vec<Table<W>>>,
    /// Free numbers, the lowest first. Numbers beyond the end of the array are
    /// meaningless.
    free: BinaryHeap<Reverse<usize>>,
    used: usize,
}

impl<const W: usize> Tables<W> {
    pub(super) fn new() -> Tables<W> {
        Tables {
            chunks: Vec::new(),
            free: BinaryHeap::new(),
            used: 0,
        }
    }

    /// The number of tables.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// The length of the array in tables, used and free.
    fn room(&self) -> usize {
        match self.chunks.split_last() {
            Some((last, full)) => full.len() * CHUNK_TABLES + last.len(),
            None => 0,
        }
    }

    /// Returns the table with a number, or `None` beyond the last. A removed table
    /// has no slots.
    #[inline]
    pub(super) fn get(&self, number: TableNumber) -> Option<&Table<W>> {
        let index = number.index();
        self.chunks
            .get(index / CHUNK_TABLES)?
            .get(index % CHUNK_TABLES)
    }

    pub(super) fn add(&mut self, table: Table<W>) -> TableNumber {
        self.used += 1;
        if let Some(Reverse(index)) = self.free.pop() {
            if index < self.room() {
                self[index] = table;
                return TableNumber::from_index(index);
            }
            // If the lowest number is beyond the end, all numbers are.
            self.free = BinaryHeap::new();
        }
        if self.room() == self.chunks.len() * CHUNK_TABLES {
            // Most forests have few tables.
            let room = if self.chunks.is_empty() {
                MIN_CHUNK_TABLES
            } else {
                CHUNK_TABLES
            };
            self.chunks.push(Vec::with_capacity(room));
        }
        let last = self.chunks.last_mut().expect("just made");
        last.push(table);
        TableNumber::from_index(self.room() - 1)
    }

    /// Frees the number of a table whose slots were taken out.
    pub(super) fn remove(&mut self, number: TableNumber) {
        debug_assert!(self[number.index()].is_gone(), "its slots go first");
        self.used -= 1;
        self.free.push(Reverse(number.index()));
        while let Some(last) = self.chunks.last_mut() {
            if last.last().is_some_and(|table| !table.is_gone()) {
                break;
            }
            last.pop();
            if last.is_empty() {
                self.chunks.pop();
            } else if last.capacity() > 4 * last.len().max(MIN_CHUNK_TABLES) {
                last.shrink_to(2 * last.len());
            }
        }
        if self.used == 0 {
            self.free = BinaryHeap::new();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Table<W>> {
        self.chunks.iter().flatten()
    }

    /// Bytes of the tables, without their slots.
    pub(super) fn bytes(&self) -> usize {
        let room: usize = self.chunks.iter().map(Vec::capacity).sum();
        room * size_of::<Table<W>>()
            + self.chunks.capacity() * size_of::<Vec<Table<W>>>()
            + self.free.capacity() * size_of::<usize>()
    }
}

impl<const W: usize> Tables<W> {
    /// Bytes of an array that has grown to `tables` tables.
    pub(super) fn bytes_for(tables: usize) -> usize {
        let room = match tables {
            0 => 0,
            1..=CHUNK_TABLES => tables.next_power_of_two().max(MIN_CHUNK_TABLES),
            _ => tables.next_multiple_of(CHUNK_TABLES),
        };
        room * size_of::<Table<W>>()
            + grown(tables.div_ceil(CHUNK_TABLES)) * size_of::<Vec<Table<W>>>()
    }
}

impl<const W: usize> Index<usize> for Tables<W> {
    type Output = Table<W>;

    #[inline]
    fn index(&self, number: usize) -> &Table<W> {
        &self.chunks[number / CHUNK_TABLES][number % CHUNK_TABLES]
    }
}

impl<const W: usize> IndexMut<usize> for Tables<W> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut Table<W> {
        &mut self.chunks[number / CHUNK_TABLES][number % CHUNK_TABLES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_their_numbers() {
        let mut tables = Tables::<1>::new();
        let count = 3 * CHUNK_TABLES + 5;
        for number in 0..count {
            let table = Table::new([number as u64], 1).for_rules(number, 0);
            assert_eq!(tables.add(table), TableNumber::from_index(number));
            assert_eq!(tables.len(), number + 1);
        }
        tables[CHUNK_TABLES] = Table::new([0], 1);
        let rules = |number: usize| if number == CHUNK_TABLES { 0 } else { number };
        assert!((0..count).all(|number| tables[number].rules() == rules(number)));
        assert_eq!(tables.iter().count(), count);
    }

    #[test]
    fn free_numbers_are_used_again_and_the_end_is_given_up() {
        let mut tables = Tables::<1>::new();
        let add = |tables: &mut Tables<1>| tables.add(Table::new([1], 2)).index();
        let remove = |tables: &mut Tables<1>, index: usize| {
            tables[index].take_slots();
            tables.remove(TableNumber::from_index(index));
        };
        let full: Vec<usize> = (0..4 * CHUNK_TABLES).map(|_| add(&mut tables)).collect();
        let bytes = tables.bytes();
        // In random order; some stay.
        let stays = |index: usize| index == 3 || index == 700;
        for &index in &full {
            let index = index * 611 % full.len();
            if !stays(index) {
                remove(&mut tables, index);
            }
        }
        assert_eq!(tables.len(), 2);
        assert_eq!(tables.room(), 701, "the end is given up");
        assert_eq!(add(&mut tables), 0, "the lowest comes first");
        remove(&mut tables, 700);
        assert_eq!(tables.room(), 4);
        assert!(tables.get(TableNumber::from_index(700)).is_none());
        let numbers: Vec<usize> = (0..3).map(|_| add(&mut tables)).collect();
        assert_eq!(numbers, [1, 2, 4]);
        assert_eq!(tables.len(), 5);
        assert!(tables.bytes() * 10 < bytes, "{} of {bytes}", tables.bytes());
        for index in 0..5 {
            remove(&mut tables, index);
        }
        assert!(tables.bytes() < 200, "{} bytes for none", tables.bytes());
    }
}
