//! Accounting of the memory that a build uses.
//!
//! # Idea
//! An engine reports the bytes that it is about to allocate
//! ([`take`](Memory::take), [`keep`](Memory::keep)) and the bytes that it has
//! freed. A [`Memory`] adds up these bytes and records the peak. It refuses an
//! allocation that would exceed the caller's [`Limits`] *before* the engine
//! allocates:
//! ```text
//! memory.keep(bytes)?;                 memory of the finished engine
//! let array = Vec::with_capacity(n);
//! memory.take(bytes)?;                 working memory
//! let scratch = Vec::with_capacity(m);
//! …
//! drop(scratch);
//! memory.give_back(bytes);
//! ```
//! A refusal ends the build, so the build need not give anything back
//! afterwards.
//!
//! Large allocations are counted one by one. Structures of many small
//! allocations are counted every few hundred rules
//! ([`recount`](Memory::recount)). For this reason, a build may have allocated
//! up to 64 KiB more than the counted bytes.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashMap;

use crate::model::error::BuildError;
use crate::model::limits::Limits;

/// The bytes that a build has taken so far, and its limits.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The maximum bytes of the finished engine.
    bytes: usize,
    peak_bytes: usize,
    stage: &'static str,
    held: usize,
    kept: usize,
    peak: usize,
}

impl Memory {
    /// Returns a counter at zero, with these limits. Each build has one counter
    /// for all of its memory.
    #[must_use]
    pub fn new(limits: &Limits) -> Memory {
        Memory {
            bytes: limits.bytes,
            peak_bytes: limits.peak_bytes,
            stage: "building",
            held: 0,
            kept: 0,
            peak: 0,
        }
    }

    /// Returns a counter without limits.
    #[must_use]
    pub fn unlimited() -> Memory {
        Memory::new(&Limits::default())
    }

    /// True if there is a limit on the bytes of the finished engine.
    pub(crate) fn limits_kept(&self) -> bool {
        self.bytes < usize::MAX
    }

    /// Sets the name of the current stage for errors, such as "sorting rules".
    pub fn set_stage(&mut self, stage: &'static str) {
        self.stage = stage;
    }

    /// Counts `bytes` bytes of working memory that are about to be allocated.
    ///
    /// # Errors
    /// [`BuildError::TooManyPeakBytes`]
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<(), BuildError> {
        let needed = self.held.saturating_add(bytes);
        if needed > self.peak_bytes {
            return Err(BuildError::TooManyPeakBytes {
                stage: self.stage,
                needed,
                limit: self.peak_bytes,
            });
        }
        self.held = needed;
        self.peak = self.peak.max(needed);
        Ok(())
    }

    /// Subtracts `bytes` freed bytes, which were [taken](Self::take) before. An
    /// update may give back bytes that an earlier build took.
    #[inline]
    pub fn give_back(&mut self, bytes: usize) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// Counts `bytes` bytes of the structure that are about to be allocated.
    ///
    /// During the build, the structure may use up to twice the limit on the
    /// finished engine, since some structures shrink before they are finished.
    /// The finished engine is checked separately. An engine that knows a lower
    /// bound of its final bytes calls [`Limits::check_bytes`] first.
    ///
    /// # Errors
    /// [`BuildError::TooManyPeakBytes`], [`BuildError::TooManyBytes`]
    pub fn keep(&mut self, bytes: usize) -> Result<(), BuildError> {
        self.replace(0, bytes)
    }

    /// Counts `new` bytes of the structure that replace `old` bytes. The new
    /// piece is allocated before the old piece is freed, so the peak includes
    /// both.
    ///
    /// # Errors
    /// As for [`keep`](Self::keep).
    pub fn replace(&mut self, old: usize, new: usize) -> Result<(), BuildError> {
        self.take(new)?;
        self.give_back(old);
        self.kept = (self.kept.saturating_sub(old)).saturating_add(new);
        if self.kept / 2 > self.bytes {
            return Err(BuildError::TooManyBytes {
                needed: self.kept,
                limit: self.bytes,
            });
        }
        Ok(())
    }

    /// Counts `bytes` bytes of the structure as freed.
    pub fn drop_kept(&mut self, bytes: usize) {
        self.give_back(bytes);
        self.kept = self.kept.saturating_sub(bytes);
    }

    /// Updates the count of a part of the structure that has many small
    /// allocations. The part now holds `held` bytes. `counted` has its bytes at
    /// the last count, and is set to `held`.
    ///
    /// # Errors
    /// As for [`keep`](Self::keep).
    pub fn recount(&mut self, counted: &mut usize, held: usize) -> Result<(), BuildError> {
        let before = std::mem::replace(counted, held);
        self.drop_kept(before);
        self.keep(held)
    }

    /// Reserves room for one more item of a vector in working memory. The
    /// vector is counted by its capacity.
    ///
    /// # Errors
    /// [`BuildError::TooManyPeakBytes`]
    #[inline]
    pub fn room<T>(&mut self, items: &mut Vec<T>) -> Result<(), BuildError> {
        if items.len() == items.capacity() {
            let (old, more) = (items.capacity(), items.capacity().max(4));
            self.take((old + more) * size_of::<T>())?;
            items.reserve_exact(more);
            self.give_back(old * size_of::<T>());
        }
        Ok(())
    }

    /// Like [`room`](Self::room), for a vector that is part of the structure.
    ///
    /// # Errors
    /// As for [`keep`](Self::keep).
    #[inline]
    pub fn room_to_keep<T>(&mut self, items: &mut Vec<T>) -> Result<(), BuildError> {
        if items.len() == items.capacity() {
            let (old, more) = (items.capacity(), items.capacity().max(4));
            self.replace(old * size_of::<T>(), (old + more) * size_of::<T>())?;
            items.reserve_exact(more);
        }
        Ok(())
    }

    /// Reserves room for one more entry of a map in working memory. The map is
    /// counted by its allocation. No entry may ever be removed from the map.
    ///
    /// # Errors
    /// [`BuildError::TooManyPeakBytes`]
    #[inline]
    pub(crate) fn room_in_map<K: Eq + Hash, V, S: BuildHasher>(
        &mut self,
        map: &mut HashMap<K, V, S>,
    ) -> Result<(), BuildError> {
        if map.len() == map.capacity() {
            let old = map.allocation_size();
            self.take(map_bytes::<K, V>(map.capacity() + 1))?;
            map.reserve(1);
            self.give_back(old);
        }
        Ok(())
    }

    /// Returns a counter for temporary memory. It begins with the bytes held
    /// now, has the same limit on peak bytes, and has no limit on the bytes of
    /// the structure.
    pub(crate) fn aside(&self) -> Memory {
        Memory {
            bytes: usize::MAX,
            kept: 0,
            ..self.clone()
        }
    }

    /// Raises the peak to the peak of a counter that [`aside`](Self::aside)
    /// returned, if that peak is higher.
    pub(crate) fn add_aside(&mut self, aside: &Memory) {
        self.peak = self.peak.max(aside.peak);
    }

    /// Returns the bytes taken and not given back.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns the peak number of bytes.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.peak
    }
}

/// Returns the bytes of an array of `items` items, saturating at `usize::MAX`.
#[must_use]
pub fn bytes_of<T>(items: usize) -> usize {
    items.saturating_mul(size_of::<T>())
}

/// Returns the capacity of a vector that grew to `items` small items one by
/// one.
#[must_use]
pub fn grown(items: usize) -> usize {
    match items {
        0 => 0,
        items => items.next_power_of_two().max(4),
    }
}

/// Returns the bytes that a new map allocates for `entries` entries.
/// `hashbrown`, which the standard library uses, has 8 buckets for 7 entries, a
/// power of two of buckets, and one control byte for each bucket.
#[must_use]
pub fn map_bytes<K, V>(entries: usize) -> usize {
    const GROUP_BYTES: usize = 16;
    let buckets = match entries {
        0 => return 0,
        1..4 => 4,
        4..8 => 8,
        8..15 => 16,
        _ => (entries.saturating_mul(8) / 7)
            .checked_next_power_of_two()
            .unwrap_or(usize::MAX),
    };
    let entries = bytes_of::<(K, V)>(buckets).saturating_add(GROUP_BYTES - 1) & !(GROUP_BYTES - 1);
    entries.saturating_add(buckets).saturating_add(GROUP_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(bytes: usize, peak_bytes: usize) -> Memory {
        Memory::new(&Limits {
            bytes,
            peak_bytes,
            ..Limits::default()
        })
    }

    #[test]
    fn the_most_at_once_is_remembered_and_limited() {
        let mut memory = limited(usize::MAX, 100);
        memory.set_stage("sorting rules");
        memory.take(60).unwrap();
        memory.give_back(50);
        memory.keep(40).unwrap();
        assert_eq!((memory.held(), memory.peak()), (50, 60));
        let error = memory.take(51).unwrap_err();
        let expected = BuildError::TooManyPeakBytes {
            stage: "sorting rules",
            needed: 101,
            limit: 100,
        };
        assert_eq!(error, expected);
        assert_eq!(memory.held(), 50, "what is refused does not count");
        memory.take(50).unwrap();
        memory.give_back(50);
        // During replacement, old and new bytes count together.
        assert!(memory.replace(40, 51).is_err());
        memory.replace(40, 45).unwrap();
        assert_eq!((memory.held(), memory.peak()), (55, 100));
        assert!(memory.take(usize::MAX).is_err());
    }

    #[test]
    fn what_is_kept_may_be_twice_the_limit_before_it_is_finished() {
        let mut memory = limited(100, usize::MAX);
        memory.take(1000).unwrap();
        memory.keep(201).unwrap();
        let error = memory.keep(1).unwrap_err();
        let (needed, limit) = (202, 100);
        assert_eq!(error, BuildError::TooManyBytes { needed, limit });
    }

    #[test]
    fn what_is_recounted_counts_once() {
        let (mut memory, mut counted) = (limited(usize::MAX, 100), 0);
        for held in [30, 90, 20, 100] {
            memory.recount(&mut counted, held).unwrap();
            assert_eq!((memory.held(), counted), (held, held));
        }
        assert!(memory.recount(&mut counted, 101).is_err());
    }

    #[test]
    fn vectors_and_maps_are_counted_as_they_grow() {
        let mut memory = Memory::unlimited();
        let (mut vector, mut kept) = (Vec::new(), Vec::new());
        let mut map: HashMap<[u64; 3], u32, foldhash::fast::FixedState> = HashMap::default();
        for number in 0..5000 {
            memory.room(&mut vector).unwrap();
            vector.push(number);
            memory.room_to_keep(&mut kept).unwrap();
            kept.push([number; 2]);
            memory.room_in_map(&mut map).unwrap();
            map.insert([number; 3], 1);
            let vectors =
                bytes_of::<u64>(vector.capacity()) + bytes_of::<[u64; 2]>(kept.capacity());
            assert_eq!(memory.held(), vectors + map.allocation_size());
        }
        assert!(memory.peak() > memory.held());
    }

    #[test]
    fn vectors_are_as_large_as_computed() {
        let mut vector: Vec<u64> = Vec::new();
        for count in 0..100 {
            assert_eq!(grown(count), vector.capacity(), "{count}");
            vector.push(0);
        }
    }

    #[test]
    fn a_maps_bytes_are_known_before_it_is_made() {
        fn check<K: Eq + Hash, V>(entries: usize) {
            let map: HashMap<K, V, foldhash::fast::FixedState> =
                HashMap::with_capacity_and_hasher(entries, foldhash::fast::FixedState::default());
            assert_eq!(
                map_bytes::<K, V>(entries),
                map.allocation_size(),
                "{entries}"
            );
        }
        for entries in (0..100).chain([447, 448, 449, 1000, 7168, 7169, 100_000]) {
            check::<u32, u32>(entries);
            check::<u32, u64>(entries);
            check::<[u64; 5], u32>(entries);
        }
    }
}
