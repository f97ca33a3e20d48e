//! A tuple space that sorts its tuples by use.
//!
//! # Idea
//! A tuple has all flow entries with one mask, in a hash table. A lookup searches tuple
//! by tuple until it finds an entry for the packet; entries do not overlap, so there is
//! no other. The most referenced tuples come first, so most lookups end early.
//!
//! # Data layout
//! ```text
//! order:   tuple 3 ▸ tuple 0 ▸ tuple 7 ▸ …       by metric, the largest first
//! tuple:   mask [u64; W] │ buckets 2^9 (configured) × u32: first entry
//! entry:   masked key [u64; W] │ value u32 │ next u32     in one array for all tuples
//! ```
//!
//! # Lookup
//! ```text
//! for tuple in order:
//!     for entry in tuple.buckets[hash(key & mask)]:       each is one step of the search
//!         entry.key = key & mask: found
//! ```
//! The *search length* is the number of entries that were compared, in all tuples.
//!
//! # Sorting
//! Each reference may move its tuple ahead, by eq. 3: see `tuple_order`. A switch orders the
//! hash tables of its megaflows by the same code (`store::tuples`).
//!
//! # Cost
//! A failed tuple lookup compares α entries on average, the successful one α/2 + 1
//! (§5.2). Insertions and removals cost the same as in a hash table. An entry of two
//! words takes 24 bytes, a tuple 2 KiB.
//!
//! # Where we differ from the paper, and why
//! The paper normalises metrics regularly, but does not say how often; see
//! [`TupleSettings`]. A lookup changes nothing; [`reference`](SortedTuples::reference)
//! updates the metrics and sorts. For a packet whose flow enters the cache, the caller calls
//! [`count`](SortedTuples::count) instead, as Alg. 1 does (lines 22 to 31).
//!
//! # References
//! [FTS25] §4.3, eq. 3, Fig. 8, Alg. 1.
//!
//! [FTS25]: classyard::papers#fts25

use super::tuple_order::TupleOrder;
pub use super::tuple_order::TupleSettings;
use crate::hash::Secret;

/// Settings of a tuple space.
#[derive(Clone, Copy, Debug)]
pub struct TupleConfig {
    /// Each tuple has 2^`bucket_bits` buckets; at most 24.
    pub bucket_bits: u32,
    /// The settings of eq. 3.
    pub order: TupleSettings,
    /// True if tuples are sorted; otherwise they stay in the order of their creation.
    pub is_sorted: bool,
}

impl Default for TupleConfig {
    /// Returns the paper's settings: 2^9 buckets, λ = 4. Normalises every 65,536
    /// references.
    fn default() -> TupleConfig {
        TupleConfig {
            bucket_bits: 9,
            order: TupleSettings::default(),
            is_sorted: true,
        }
    }
}

/// The result of a lookup, and its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// The entry's value; `None` if no tuple has an entry.
    pub value: Option<u32>,
    /// The number of tuples searched without a match. This is the position of the
    /// matching tuple in the order.
    pub failed: usize,
    /// The number of compared entries.
    pub length: usize,
}

/// Marks the end of a list of entries.
const NO_ENTRY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry<const W: usize> {
    key: [u64; W],
    value: u32,
    next: u32,
}

#[derive(Clone, Debug)]
struct Tuple<const W: usize> {
    mask: [u64; W],
    buckets: Box<[u32]>,
    entries: usize,
    references: u64,
}

/// The state of a tuple, for inspection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TupleState<const W: usize> {
    /// The mask.
    pub mask: [u64; W],
    /// The number of flow entries.
    pub entries: usize,
    /// Entries divided by buckets.
    pub load_factor: f64,
    /// The sorting metric.
    pub metric: f64,
    /// The number of references so far.
    pub references: u64,
}

/// A tuple space; keys have `W` words.
#[derive(Clone, Debug)]
pub struct SortedTuples<const W: usize> {
    config: TupleConfig,
    secret: Secret,
    /// In the order of their creation.
    tuples: Vec<Tuple<W>>,
    /// The search order.
    order: TupleOrder,
    entries: Vec<Entry<W>>,
    /// The first unused entry.
    free: u32,
}

impl<const W: usize> SortedTuples<W> {
    /// Returns a tuple space without tuples.
    #[must_use]
    pub fn new(config: TupleConfig) -> SortedTuples<W> {
        let config = TupleConfig {
            bucket_bits: config.bucket_bits.min(24),
            ..config
        };
        SortedTuples {
            config,
            // A fixed secret is enough: only reproductions use this structure.
            secret: Secret::new(0),
            tuples: Vec::new(),
            order: TupleOrder::new(config.order),
            entries: Vec::new(),
            free: NO_ENTRY,
        }
    }

    /// Searches for the entry that matches a key.
    #[must_use]
    pub fn look_up(&self, key: &[u64; W]) -> Search {
        let mut length = 0;
        for (failed, &number) in self.order.tuples().iter().enumerate() {
            let tuple = &self.tuples[number];
            let key = masked(key, &tuple.mask);
            let mut next = tuple.buckets[bucket(&key, tuple.buckets.len(), self.secret)];
            while next != NO_ENTRY {
                let entry = &self.entries[next as usize];
                length += 1;
                if entry.key == key {
                    return Search {
                        value: Some(entry.value),
                        failed,
                        length,
                    };
                }
                next = entry.next;
            }
        }
        Search {
            value: None,
            failed: self.tuples.len(),
            length,
        }
    }

    /// Records that a packet matched an entry of the tuple at position `place`: its
    /// metric grows, and the tuple moves forward past tuples with smaller metrics.
    pub fn reference(&mut self, place: usize) {
        self.count(place);
        if self.config.is_sorted {
            let entries = self.tuples[self.order.tuples()[place]].entries;
            self.order.reference(place, entries as f64 / self.buckets());
        }
    }

    /// Counts a match of the tuple at position `place` and leaves the metrics unchanged, for
    /// a packet whose flow enters the cache.
    pub fn count(&mut self, place: usize) {
        self.tuples[self.order.tuples()[place]].references += 1;
    }

    /// Adds an entry, or changes the value of the entry with this mask and masked key.
    /// Returns the previous value.
    ///
    /// # Panics
    /// If there are more than 2^32 − 2 entries.
    pub fn insert(&mut self, mask: &[u64; W], key: &[u64; W], value: u32) -> Option<u32> {
        let position = self.place(mask).unwrap_or_else(|| {
            self.tuples.push(Tuple {
                mask: *mask,
                buckets: vec![NO_ENTRY; 1 << self.config.bucket_bits].into_boxed_slice(),
                entries: 0,
                references: 0,
            });
            self.order.push();
            self.tuples.len() - 1
        });
        let key = masked(key, mask);
        let tuple = &mut self.tuples[position];
        let first = &mut tuple.buckets[bucket(&key, 1 << self.config.bucket_bits, self.secret)];
        let mut next = *first;
        while next != NO_ENTRY {
            let entry = &mut self.entries[next as usize];
            if entry.key == key {
                return Some(std::mem::replace(&mut entry.value, value));
            }
            next = entry.next;
        }
        let entry = Entry {
            key,
            value,
            next: *first,
        };
        if self.free == NO_ENTRY {
            *first = u32::try_from(self.entries.len()).expect("fewer than 2^32 entries");
            assert!(*first != NO_ENTRY, "fewer than 2^32 - 1 entries");
            self.entries.push(entry);
        } else {
            *first = self.free;
            let reused = &mut self.entries[self.free as usize];
            self.free = reused.next;
            *reused = entry;
        }
        tuple.entries += 1;
        None
    }

    /// Removes the entry with this mask and masked key. Returns its value. A tuple
    /// without entries stays.
    pub fn remove(&mut self, mask: &[u64; W], key: &[u64; W]) -> Option<u32> {
        let position = self.place(mask)?;
        let key = masked(key, mask);
        let tuple = &mut self.tuples[position];
        let chain = bucket(&key, tuple.buckets.len(), self.secret);
        let (mut before, mut next) = (NO_ENTRY, tuple.buckets[chain]);
        while next != NO_ENTRY {
            let entry = self.entries[next as usize];
            if entry.key != key {
                (before, next) = (next, entry.next);
                continue;
            }
            match before {
                NO_ENTRY => tuple.buckets[chain] = entry.next,
                before => self.entries[before as usize].next = entry.next,
            }
            tuple.entries -= 1;
            self.entries[next as usize].next = self.free;
            self.free = next;
            return Some(entry.value);
        }
        None
    }

    fn place(&self, mask: &[u64; W]) -> Option<usize> {
        self.tuples.iter().position(|tuple| tuple.mask == *mask)
    }

    /// Returns the number of buckets of a tuple.
    fn buckets(&self) -> f64 {
        f64::from(1_u32 << self.config.bucket_bits)
    }

    /// Iterates over the tuples, in search order.
    pub fn tuples(&self) -> impl Iterator<Item = TupleState<W>> {
        let buckets = self.buckets();
        self.order.tuples().iter().map(move |&number| {
            let tuple = &self.tuples[number];
            TupleState {
                mask: tuple.mask,
                entries: tuple.entries,
                load_factor: tuple.entries as f64 / buckets,
                metric: self.order.metric(number),
                references: tuple.references,
            }
        })
    }

    /// Returns the number of flow entries in all tuples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tuples.iter().map(|tuple| tuple.entries).sum()
    }

    /// True if no tuple has flow entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[inline]
fn masked<const W: usize>(key: &[u64; W], mask: &[u64; W]) -> [u64; W] {
    std::array::from_fn(|word| key[word] & mask[word])
}

/// Returns the bucket of a masked key. The number of buckets is a power of two.
#[inline]
fn bucket<const W: usize>(key: &[u64; W], buckets: usize, secret: Secret) -> usize {
    let hash = secret.hash(key.iter().copied());
    #[allow(clippy::cast_possible_truncation)] // at most 24 bits are used
    let hash = hash as u32;
    hash as usize & (buckets - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    const MASKS: [[u64; 2]; 4] = [[0xff00, 0], [0, 0xf], [!0, !0], [0xf, 0xf0]];

    fn space(is_sorted: bool) -> SortedTuples<2> {
        SortedTuples::new(TupleConfig {
            bucket_bits: 3,
            is_sorted,
            order: TupleSettings::default().with_normalise_every(50),
        })
    }

    proptest! {
        /// Compares with a map: a search finds an entry if and only if the map has one.
        #[test]
        fn finds_what_a_map_finds(
            steps in prop::collection::vec((0..4_usize, 0..40_u64, 0..6_u8), 1..400),
            is_sorted: bool,
        ) {
            let mut space = space(is_sorted);
            let mut map: HashMap<([u64; 2], [u64; 2]), u32> = HashMap::new();
            for (step, &(mask, key, what)) in steps.iter().enumerate() {
                let (mask, key) = (MASKS[mask], [key << 8 | key, key]);
                let map_key = (mask, masked(&key, &mask));
                let value = u32::try_from(step).unwrap();
                match what {
                    0..2 => {
                        prop_assert_eq!(space.insert(&mask, &key, value), map.insert(map_key, value));
                    }
                    2 => prop_assert_eq!(space.remove(&mask, &key), map.remove(&map_key)),
                    _ => {
                        let search = space.look_up(&key);
                        let values = MASKS.iter().filter_map(|mask| {
                            map.get(&(*mask, masked(&key, mask))).copied()
                        });
                        let values: Vec<u32> = values.collect();
                        match search.value {
                            Some(value) => {
                                prop_assert!(values.contains(&value));
                                space.reference(search.failed);
                            }
                            None => prop_assert!(values.is_empty()),
                        }
                    }
                }
                prop_assert_eq!(space.len(), map.len());
                prop_assert_eq!(space.is_empty(), map.is_empty());
                if is_sorted {
                    let metrics: Vec<f64> = space.tuples().map(|tuple| tuple.metric).collect();
                    prop_assert!(metrics.is_sorted_by(|a, b| a >= b), "{:?}", metrics);
                }
            }
        }
    }

    /// The metric grows by 1/α, clamped to 1/λ … λ.
    #[test]
    fn metrics_are_those_of_equation_3() {
        for (entries, growth) in [(1, 4.0), (4, 2.0), (16, 0.5), (64, 0.25)] {
            let mut space = space(true);
            for key in 0..entries {
                space.insert(&MASKS[2], &[key, 0], 1);
            }
            space.reference(0);
            let metric = space.tuples().next().unwrap().metric;
            assert!((metric - growth).abs() < 1e-9, "{entries}: {metric}");
        }
    }

    /// The most referenced tuple comes first, and the search becomes short.
    #[test]
    fn tuples_in_use_come_first() {
        let mut space = space(true);
        for (value, mask) in (0..).zip(&MASKS) {
            space.insert(mask, &[0x0101_0101 << value, 0x11 << value], value);
        }
        let key = [0x0101_0101 << 3, 0x11 << 3];
        assert_eq!(space.look_up(&key).failed, 3);
        for _ in 0..200 {
            let position = space.look_up(&key).failed;
            space.reference(position);
        }
        let search = space.look_up(&key);
        assert_eq!((search.failed, search.length), (0, 1));
        assert!(space.tuples().all(|tuple| tuple.metric <= 200.0));
    }

    #[test]
    fn entries_are_reused() {
        let mut space = space(false);
        for round in 0..100_u64 {
            space.insert(&MASKS[2], &[round, 1], 7);
            assert_eq!(space.remove(&MASKS[2], &[round, 1]), Some(7));
        }
        assert_eq!(space.entries.len(), 1);
    }
}
