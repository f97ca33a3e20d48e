//! All tables, by number.

use std::ops::{Index, IndexMut};

use super::table::{Table, TableNumber};

/// Tables in one piece of memory. There are no more than these to spare, and
/// with thousands of nested nodes, megabytes of them, no update waits until all
/// have been copied to a larger array.
const CHUNK: usize = 256;

/// An array of tables that grows without copying them.
#[derive(Debug)]
pub(super) struct Tables<const W: usize> {
    chunks: Vec<Vec<Table<W>>>,
}

impl<const W: usize> Tables<W> {
    pub(super) fn new() -> Tables<W> {
        Tables { chunks: Vec::new() }
    }

    /// The number of tables, those that are no longer used included.
    pub(super) fn len(&self) -> usize {
        match self.chunks.split_last() {
            Some((last, full)) => full.len() * CHUNK + last.len(),
            None => 0,
        }
    }

    pub(super) fn push(&mut self, table: Table<W>) -> TableNumber {
        if self.len() == self.chunks.len() * CHUNK {
            // Most forests have a handful.
            let room = if self.chunks.is_empty() { 4 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(room));
        }
        let last = self.chunks.last_mut().expect("just made");
        last.push(table);
        TableNumber::from_index(self.len() - 1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Table<W>> {
        self.chunks.iter().flatten()
    }

    /// Bytes of the tables themselves, without their slots.
    pub(super) fn bytes(&self) -> usize {
        let room: usize = self.chunks.iter().map(Vec::capacity).sum();
        room * size_of::<Table<W>>() + self.chunks.capacity() * size_of::<Vec<Table<W>>>()
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
            let mut table = Table::new([number as u64], 1);
            table.rules = number;
            assert_eq!(tables.push(table), TableNumber::from_index(number));
            assert_eq!(tables.len(), number + 1);
        }
        tables[CHUNK].rules = 0;
        let rules = |number: usize| if number == CHUNK { 0 } else { number };
        assert!((0..count).all(|number| tables[number].rules == rules(number)));
        assert_eq!(tables.iter().count(), count);
    }
}
