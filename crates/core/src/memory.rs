//! Counting the memory that a build takes.
//!
//! # Idea
//! An engine says how many bytes it is about to allocate ([`take`](Memory::take),
//! [`keep`](Memory::keep)) and how many it has given back. A [`Memory`] adds them
//! up, remembers the most there were, and refuses what would exceed the
//! caller's [`Limits`] *before* it is allocated:
//! ```text
//! memory.keep(bytes)?;                 what the finished engine holds
//! let array = Vec::with_capacity(n);
//! memory.take(bytes)?;                 what is needed meanwhile
//! let scratch = Vec::with_capacity(m);
//! …
//! drop(scratch);
//! memory.give_back(bytes);
//! ```
//! What is refused ends the build, so nothing need be given back then.
//!
//! Large pieces are counted one by one. Structures of many small pieces are
//! counted every few hundred rules ([`recount`](Memory::recount)), which is
//! where the 64 KiB come from by which a build may exceed what is counted.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashMap;

use crate::error::BuildError;
use crate::limits::Limits;

/// What a build has taken so far, and what it may take.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The most bytes of the finished engine, and of everything at once.
    bytes: usize,
    peak_bytes: usize,
    stage: &'static str,
    now: usize,
    kept: usize,
    peak: usize,
}

impl Memory {
    /// Nothing is taken yet. A build gets its own: one counter for all that it
    /// takes.
    #[must_use]
    pub fn new(limits: &Limits) -> Memory {
        Memory {
            bytes: limits.bytes,
            peak_bytes: limits.peak_bytes,
            stage: "building",
            now: 0,
            kept: 0,
            peak: 0,
        }
    }

    /// Counts, and refuses nothing.
    #[must_use]
    pub fn unlimited() -> Memory {
        Memory::new(&Limits::default())
    }

    /// Whether there is a limit on what the finished engine holds.
    pub(crate) fn limits_kept(&self) -> bool {
        self.bytes < usize::MAX
    }

    /// Names what is going on, for errors: "sorting rules".
    pub fn set_stage(&mut self, stage: &'static str) {
        self.stage = stage;
    }

    /// `bytes` bytes of working memory are about to be allocated.
    ///
    /// # Errors
    /// [`BuildError::TooManyPeakBytes`]
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<(), BuildError> {
        let needed = self.now.saturating_add(bytes);
        if needed > self.peak_bytes {
            return Err(BuildError::TooManyPeakBytes {
                stage: self.stage,
                needed,
                limit: self.peak_bytes,
            });
        }
        self.now = needed;
        self.peak = self.peak.max(needed);
        Ok(())
    }

    /// `bytes` bytes that were [taken](Self::take) are free again. An update may
    /// give back what an earlier build took.
    #[inline]
    pub fn give_back(&mut self, bytes: usize) {
        self.now = self.now.saturating_sub(bytes);
    }

    /// `bytes` bytes of the structure that is being built are about to be
    /// allocated.
    ///
    /// What is built may be up to twice the limit on the finished engine, since
    /// some structures shrink again before they are finished. The finished
    /// engine is checked when it is there; an engine that knows the bytes that
    /// it will hold at least calls [`Limits::check_bytes`] first.
    ///
    /// # Errors
    /// [`BuildError::TooManyPeakBytes`], [`BuildError::TooManyBytes`]
    pub fn keep(&mut self, bytes: usize) -> Result<(), BuildError> {
        self.replace(0, bytes)
    }

    /// A piece of the structure of `old` bytes makes way for one of `new` bytes,
    /// which is filled before the old one is freed.
    ///
    /// # Errors
    /// Those of [`keep`](Self::keep).
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

    /// A piece of the structure is gone.
    pub fn drop_kept(&mut self, bytes: usize) {
        self.give_back(bytes);
        self.kept = self.kept.saturating_sub(bytes);
    }

    /// A part of the structure that is made of many small pieces has `now`
    /// bytes, and had `counted` when it was counted last.
    ///
    /// # Errors
    /// Those of [`keep`](Self::keep).
    pub fn recount(&mut self, counted: &mut usize, now: usize) -> Result<(), BuildError> {
        let before = std::mem::replace(counted, now);
        self.drop_kept(before);
        self.keep(now)
    }

    /// Makes room for one more item of a vector of working memory that is
    /// counted by its capacity.
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

    /// The same for a vector that is part of the structure.
    ///
    /// # Errors
    /// Those of [`keep`](Self::keep).
    #[inline]
    pub fn room_to_keep<T>(&mut self, items: &mut Vec<T>) -> Result<(), BuildError> {
        if items.len() == items.capacity() {
            let (old, more) = (items.capacity(), items.capacity().max(4));
            self.replace(old * size_of::<T>(), (old + more) * size_of::<T>())?;
            items.reserve_exact(more);
        }
        Ok(())
    }

    /// Makes room for one more entry of a map of working memory from which
    /// nothing is removed, and that is counted by its allocation.
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

    /// A counter for memory of which nothing is kept, under the same limit on what
    /// there is at once.
    pub(crate) fn aside(&self) -> Memory {
        Memory {
            bytes: usize::MAX,
            kept: 0,
            ..self.clone()
        }
    }

    /// Takes note of the most that such a counter had.
    pub(crate) fn add_aside(&mut self, aside: &Memory) {
        self.peak = self.peak.max(aside.peak);
    }

    /// Bytes taken and not given back.
    #[must_use]
    pub fn now(&self) -> usize {
        self.now
    }

    /// The most bytes there were at once.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.peak
    }
}

/// Bytes of an array of `items` items, or `usize::MAX` if that is more.
#[must_use]
pub fn bytes_of<T>(items: usize) -> usize {
    items.saturating_mul(size_of::<T>())
}

/// The capacity of a vector that grew to `items` small items one by one.
#[must_use]
pub fn grown(items: usize) -> usize {
    match items {
        0 => 0,
        items => items.next_power_of_two().max(4),
    }
}

/// Bytes that a new map for `entries` entries allocates: `hashbrown`, and so the
/// standard library, takes 8 buckets for 7 entries, a power of two of them, and
/// a byte beside each.
#[must_use]
pub fn map_bytes<K, V>(entries: usize) -> usize {
    const GROUP: usize = 16;
    let buckets = match entries {
        0 => return 0,
        1..4 => 4,
        4..8 => 8,
        8..15 => 16,
        _ => (entries.saturating_mul(8) / 7)
            .checked_next_power_of_two()
            .unwrap_or(usize::MAX),
    };
    let entries = bytes_of::<(K, V)>(buckets).saturating_add(GROUP - 1) & !(GROUP - 1);
    entries.saturating_add(buckets).saturating_add(GROUP)
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
        assert_eq!((memory.now(), memory.peak()), (50, 60));
        let error = memory.take(51).unwrap_err();
        let expected = BuildError::TooManyPeakBytes {
            stage: "sorting rules",
            needed: 101,
            limit: 100,
        };
        assert_eq!(error, expected);
        assert_eq!(memory.now(), 50, "what is refused does not count");
        memory.take(50).unwrap();
        memory.give_back(50);
        // The old and the new one are there at once.
        assert!(memory.replace(40, 51).is_err());
        memory.replace(40, 45).unwrap();
        assert_eq!((memory.now(), memory.peak()), (55, 100));
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
        for now in [30, 90, 20, 100] {
            memory.recount(&mut counted, now).unwrap();
            assert_eq!((memory.now(), counted), (now, now));
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
            assert_eq!(memory.now(), vectors + map.allocation_size());
        }
        assert!(memory.peak() > memory.now());
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
