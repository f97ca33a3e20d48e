//! All tables, by number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{Index, IndexMut};

use super::table::Table;
use crate::engine::forest::slot::TableNumber;
use crate::memory::grown;

/// Tables in one piece of memory. There are no more than these to spare, and
/// with thousands of nested tables, megabytes of them, no update waits until all
/// have been copied to a larger array.
const CHUNK: usize = 256;

/// Tables for which the first piece of memory has room at least.
const FEW: usize = 4;

/// An array of tables that grows without copying them. A new table takes the
/// lowest number that is free, and free numbers at the end are given up, so the
/// array shrinks as well.
#[derive(Debug)]
pub(super) struct Tables<const W: usize> {
    chunks: Vec<Vec<Table<W>>>,
    /// Numbers that are free, the lowest first. Those beyond the end of the
    /// array mean nothing.
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

    /// Places in the array, used and free.
    fn room(&self) -> usize {
        match self.chunks.split_last() {
            Some((last, full)) => full.len() * CHUNK + last.len(),
            None => 0,
        }
    }

    /// The table of a number; `None` beyond the last. It has no slots if it is
    /// gone.
    #[inline]
    pub(super) fn get(&self, number: TableNumber) -> Option<&Table<W>> {
        let index = number.index();
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    pub(super) fn add(&mut self, table: Table<W>) -> TableNumber {
        self.used += 1;
        if let Some(Reverse(index)) = self.free.pop() {
            if index < self.room() {
                self[index] = table;
                return TableNumber::from_index(index);
            }
            // The lowest is beyond the end, and so are all others.
            self.free = BinaryHeap::new();
        }
        if self.room() == self.chunks.len() * CHUNK {
            // Most forests have a handful.
            let room = if self.chunks.is_empty() { FEW } else { CHUNK };
            self.chunks.push(Vec::with_capacity(room));
        }
        let last = self.chunks.last_mut().expect("just made");
        last.push(table);
        TableNumber::from_index(self.room() - 1)
    }

    /// Frees the number of a table whose slots are gone.
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
            } else if last.capacity() > 4 * last.len().max(FEW) {
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

    /// Bytes of the tables themselves, without their slots.
    pub(super) fn bytes(&self) -> usize {
        let room: usize = self.chunks.iter().map(Vec::capacity).sum();
        room * size_of::<Table<W>>()
            + self.chunks.capacity() * size_of::<Vec<Table<W>>>()
            + self.free.capacity() * size_of::<usize>()
    }
}

impl<const W: usize> Tables<W> {
    /// Bytes of an array that grew to `tables` tables.
    pub(super) fn bytes_for(tables: usize) -> usize {
        let room = match tables {
            0 => 0,
            1..=CHUNK => tables.next_power_of_two().max(FEW),
            _ => tables.next_multiple_of(CHUNK),
        };
        room * size_of::<Table<W>>() + grown(tables.div_ceil(CHUNK)) * size_of::<Vec<Table<W>>>()
    }
}

impl<const W: usize> Index<usize> for Tables<W> {
    type Output = Table<W>;

    #[inline]
    fn index(&self, number: usize) -> &Table<W> {
        &self.chunks[number / CHUNK][number % CHUNK]
    }
}

impl<const W: usize> IndexMut<usize> for Tables<W> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut Table<W> {
        &mut self.chunks[number / CHUNK][number % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_their_numbers() {
        let mut tables = Tables::<1>::new();
        let count = 3 * CHUNK + 5;
        for number in 0..count {
            let table = Table::new([number as u64], 1).for_rules(number, 0);
            assert_eq!(tables.add(table), TableNumber::from_index(number));
            assert_eq!(tables.len(), number + 1);
        }
        tables[CHUNK] = Table::new([0], 1);
        let rules = |number: usize| if number == CHUNK { 0 } else { number };
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
        let full: Vec<usize> = (0..4 * CHUNK).map(|_| add(&mut tables)).collect();
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
