//! Hash tables with two places for each value ([DEC14] §III.A, M = 2).
//!
//! # Data layout
//! ```text
//! entries: [ tag 32 | number 32 ] …       a power of two
//! ```
//! A value's hash gives a tag and a first place. The second place is the first place
//! XOR a hash of the tag, so each place leads to the other. The tag of a value that
//! no rule names is not found, and the value has the number 0. Once in 2^32
//! comparisons, it finds the tag of another value, and gets that value's number. So
//! callers compare rules in full.
//!
//! # Build
//! A value is put in its first place. An entry that is already there moves to its
//! other place, and so on, at most [`MAX_MOVES`] times. Beyond this limit, the whole
//! table is rebuilt with another seed, a few times, and then with twice the entries.
//! After all values are placed, each value is searched: if two values have the same
//! tag and places, another seed separates them. If no seed separates all values,
//! `build` returns `None`, and callers search a range tree.
//!
//! [DEC14]: crate::papers#dec14

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::schema::Placement;
use crate::model::seed::{fibonacci_hash, splitmix};
use crate::parts::range_tree::GROUP;

/// The largest number of entries that are moved to add a value. It bounds the work of a
/// build.
const MAX_MOVES: usize = 128;

/// The number of seeds that are tried for each size of the table. It bounds the work of a
/// build.
const SEEDS_PER_SIZE: usize = 4;

/// The number of sizes that are tried. Each is twice the size before. It bounds the
/// memory of a table.
const TABLE_SIZES: usize = 2;

/// The numbers of the values that rules name.
pub(super) struct Cuckoo {
    entries: Vec<u64>,
    seeds: [u64; 3],
    /// A mask over hashes: all bits, except in tests.
    hash_bits: u64,
}

impl Cuckoo {
    /// Returns the smallest number of entries for a number of values.
    fn entries_for(values: usize) -> usize {
        values.saturating_mul(2).next_power_of_two().max(2)
    }

    /// Bytes held by a table of the first size.
    pub(super) fn bytes_of(values: usize) -> usize {
        bytes_of::<u64>(Self::entries_for(values))
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of::<u64>(self.entries.capacity())
    }

    /// Builds a table of different values, whose numbers are above 0. Returns `None`
    /// if no seed gives each value a place. Counts the memory as kept.
    ///
    /// # Errors
    /// [`BuildError::Stopped`], and the errors of
    /// [`Memory::keep`](crate::budget::memory::Memory::keep).
    pub(super) fn build(
        values: &[(u128, u32)],
        seed: u64,
        hash_bits: u64,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<Cuckoo>, BuildError> {
        let mut state = seed;
        for size in 0..TABLE_SIZES {
            let size = Self::entries_for(values.len()) << size;
            monitor.memory().keep(bytes_of::<u64>(size))?;
            let mut table = Cuckoo {
                entries: vec![0; size],
                seeds: [0; 3],
                hash_bits,
            };
            for _ in 0..SEEDS_PER_SIZE {
                table.seeds = std::array::from_fn(|_| splitmix(&mut state));
                if table.fill(values, monitor)? {
                    return Ok(Some(table));
                }
            }
            drop(table);
            monitor.memory().drop_kept(bytes_of::<u64>(size));
        }
        Ok(None)
    }

    /// Places all values. Returns true if each value is found.
    fn fill(
        &mut self,
        values: &[(u128, u32)],
        monitor: &mut Monitor<'_>,
    ) -> Result<bool, BuildError> {
        self.entries.fill(0);
        for &(value, number) in values {
            monitor.work(1)?;
            let (tag, mut place) = self.places(value);
            let mut entry = tag << 32 | u64::from(number);
            let mut moves = 0;
            loop {
                if self.entries[self.other(place, entry >> 32)] == 0 {
                    place = self.other(place, entry >> 32);
                }
                entry = std::mem::replace(&mut self.entries[place], entry);
                if entry == 0 {
                    break;
                }
                place = self.other(place, entry >> 32);
                moves += 1;
                if moves > MAX_MOVES {
                    return Ok(false);
                }
            }
        }
        for &(value, number) in values {
            monitor.work(1)?;
            if self.find(value) != number {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the tag of a value, and its first place.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the lower half is meant
    fn places(&self, value: u128) -> (u64, usize) {
        let (low, high) = (value as u64, (value >> 64) as u64);
        let mut hash = low ^ self.seeds[0];
        if high != 0 {
            hash ^= fold(high ^ self.seeds[1], self.seeds[2]);
        }
        let hash = fold(hash, self.seeds[1] | 1) & self.hash_bits;
        (hash >> 32, hash as usize & (self.entries.len() - 1))
    }

    /// Returns the other place of an entry.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // more bits than entries
    fn other(&self, place: usize, tag: u64) -> usize {
        let step = fibonacci_hash(tag | 1) >> 32;
        place ^ (step as usize & (self.entries.len() - 1))
    }

    /// Returns the number of a value; 0 if no rule names it.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the lower half is meant
    pub(super) fn find(&self, value: u128) -> u32 {
        let (tag, place) = self.places(value);
        let first = self.entries[place];
        let second = self.entries[self.other(place, tag)];
        let number = if second >> 32 == tag {
            second as u32
        } else {
            0
        };
        if first >> 32 == tag && first != 0 {
            first as u32
        } else {
            number
        }
    }

    /// Writes the number of each key's field to `numbers`.
    #[inline]
    pub(super) fn find_each<const W: usize>(
        &self,
        place: &Placement,
        keys: &[[u64; W]; GROUP],
        numbers: &mut [u32; GROUP],
    ) {
        if place.high.is_none() {
            for (number, key) in numbers.iter_mut().zip(keys) {
                *number = self.find(place.low.get(key).into());
            }
        } else {
            for (number, key) in numbers.iter_mut().zip(keys) {
                *number = self.find(place.get(key));
            }
        }
    }
}

/// Returns the XOR of both halves of the product.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // the halves are meant
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::monitor::unwatched;

    fn table(values: &[(u128, u32)], hash_bits: u64) -> Option<Cuckoo> {
        unwatched(|monitor| Cuckoo::build(values, 7, hash_bits, monitor))
    }

    #[test]
    fn values_are_found_and_others_are_not() {
        for count in [0, 1, 2, 3, 100, 511, 512, 513, 20_000] {
            let value = |number: u32| (u128::from(number) * 3) << (number % 3 * 40);
            let values: Vec<(u128, u32)> = (1..=count).map(|n| (value(n), n)).collect();
            let mut values = values;
            values.sort_unstable();
            values.dedup_by_key(|value| value.0);
            let table = table(&values, u64::MAX).expect("a seed is found");
            assert!(table.bytes() <= Cuckoo::bytes_of(values.len()) << (TABLE_SIZES - 1));
            for &(value, number) in &values {
                assert_eq!(table.find(value), number);
                let unnamed = value | 1 << 120;
                assert_eq!(table.find(unnamed), 0, "one in 2^32 would be found");
            }
        }
    }

    /// With hashes of few bits, no seed separates the values.
    #[test]
    fn there_is_no_table_where_no_seed_helps() {
        let values: Vec<(u128, u32)> = (1..100).map(|n| (n.into(), n)).collect();
        assert!(table(&values, 0xf).is_none());
        assert!(table(&values, 0).is_none());
        assert!(table(&values[..2], 0).is_none());
        assert!(table(&values[..1], 0).is_some());
    }
}
