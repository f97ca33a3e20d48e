//! Counting the rules of each masked key: a hash table that is emptied at once.

use crate::memory::bytes_of;

/// The rules of one masked key.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    /// The round in which it was last used; it is empty in any other.
    round: u32,
    /// The part of the key's hash that tells it from others.
    tag: u32,
    /// The weights of the rules.
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

    /// Forgets all keys.
    pub(super) fn clear(&mut self) {
        self.round += 1;
    }

    /// Adds a rule of some weight to a masked key; returns the weight that the
    /// key had, if it was there.
    #[inline]
    pub(super) fn add<const W: usize>(
        &mut self,
        key: &[u64; W],
        mask: &[u64; W],
        weight: f32,
    ) -> Option<f32> {
        let (at, tag) = self.find(key, mask);
        let round = self.round;
        let counter = &mut self.counters[at];
        if counter.round == round {
            let before = counter.weight;
            counter.weight += weight;
            return Some(before);
        }
        *counter = Counter { round, tag, weight };
        None
    }

    /// The weight of a masked key; 0 if it is not there.
    #[inline]
    pub(super) fn weight<const W: usize>(&self, key: &[u64; W], mask: &[u64; W]) -> f32 {
        let (at, _) = self.find(key, mask);
        let counter = &self.counters[at];
        if counter.round == self.round {
            counter.weight
        } else {
            0.0
        }
    }

    /// The counter of a masked key in this round or a free one, and its tag.
    #[inline]
    fn find<const W: usize>(&self, key: &[u64; W], mask: &[u64; W]) -> (usize, u32) {
        let mut hash = 0u64;
        for (key, mask) in key.iter().zip(mask) {
            hash = (hash ^ (key & mask)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 32;
        }
        hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let (upper, tag) = halves(hash);
        let last = self.counters.len() - 1;
        let mut at = upper as usize & last;
        loop {
            let counter = &self.counters[at];
            if counter.round != self.round || counter.tag == tag {
                return (at, tag);
            }
            at = (at + 1) & last;
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // halves of 64 bits
fn halves(hash: u64) -> (u32, u32) {
    ((hash >> 32) as u32, hash as u32)
}
