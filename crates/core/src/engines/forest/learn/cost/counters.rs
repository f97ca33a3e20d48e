//! Counting the rules of each masked key: a hash table that is cleared in constant
//! time.

use crate::budget::memory::bytes_of;
use crate::model::seed::fibonacci_hash;

/// The rules of one masked key.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    /// The round of the counter's last use; in any other round it is empty.
    round: u32,
    /// The part of the key's hash that distinguishes it from other keys.
    tag: u32,
    /// The sum of the rules' weights.
    weight: f32,
}

/// Weights of rules by masked key, with linear probing.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    counters: Vec<Counter>,
    round: u32,
}

impl Counters {
    /// Counters for `keys` keys.
    pub(super) fn new(keys: usize) -> Counters {
        Counters {
            counters: vec![Counter::default(); Counters::count(keys)],
            round: 0,
        }
    }

    fn count(keys: usize) -> usize {
        (2 * keys).next_power_of_two().max(16)
    }

    /// Bytes of counters for `keys` keys.
    pub(super) fn bytes(keys: usize) -> usize {
        bytes_of::<Counter>(Counters::count(keys))
    }

    /// Removes all keys.
    pub(super) fn clear(&mut self) {
        self.round += 1;
    }

    /// Adds a rule of some weight to a masked key. Returns the weight that the key
    /// had before, if the key existed.
    #[inline]
    pub(super) fn add<const W: usize>(
        &mut self,
        key: &[u64; W],
        mask: &[u64; W],
        weight: f32,
    ) -> Option<f32> {
        let (index, tag) = self.find(key, mask);
        let round = self.round;
        let counter = &mut self.counters[index];
        if counter.round == round {
            let before = counter.weight;
            counter.weight += weight;
            return Some(before);
        }
        *counter = Counter { round, tag, weight };
        None
    }

    /// Returns the weight of a masked key, or 0 if it does not exist.
    #[inline]
    pub(super) fn weight<const W: usize>(&self, key: &[u64; W], mask: &[u64; W]) -> f32 {
        let (index, _) = self.find(key, mask);
        let counter = &self.counters[index];
        if counter.round == self.round {
            counter.weight
        } else {
            0.0
        }
    }

    /// Returns the counter of a masked key in this round, or a free counter; and the
    /// key's tag.
    #[inline]
    fn find<const W: usize>(&self, key: &[u64; W], mask: &[u64; W]) -> (usize, u32) {
        let mut hash = 0u64;
        for (key, mask) in key.iter().zip(mask) {
            hash = fibonacci_hash(hash ^ (key & mask));
            hash ^= hash >> 32;
        }
        hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let (upper, tag) = halves(hash);
        let last = self.counters.len() - 1;
        let mut index = upper as usize & last;
        loop {
            let counter = &self.counters[index];
            if counter.round != self.round || counter.tag == tag {
                return (index, tag);
            }
            index = (index + 1) & last;
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // halves of 64 bits
fn halves(hash: u64) -> (u32, u32) {
    ((hash >> 32) as u32, hash as u32)
}
