//! The parts that contain a rule, for the ids that some changes touch.

use hashbrown::HashMap;

use crate::model::rule::RuleId;
use crate::model::seed::MapState;

/// For each id that some changes touch, the parts that contain its rule
/// afterwards: a bit for each part. Rules of a single engine have one part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    parts: HashMap<RuleId, u8, MapState>,
}

impl Standing {
    /// A map of at most this capacity is always cleared, never replaced by a new map. Clearing
    /// writes 2 KiB of control bytes, which takes less time than a change. Measured in
    /// `bench/records/constants.md` (Lists and maps).
    const MAX_CLEARED_CAPACITY: usize = 2048;

    /// Makes room for `ids` ids.
    pub(crate) fn reserve(&mut self, ids: usize) {
        self.parts.reserve(ids);
    }

    /// Returns the parts that contain a rule; `None` for ids that no change
    /// touched.
    pub(crate) fn get(&self, id: RuleId) -> Option<u8> {
        self.parts.get(&id).copied()
    }

    /// Sets the parts that contain a rule.
    pub(crate) fn set(&mut self, id: RuleId, parts: u8) {
        self.parts.insert(id, parts);
    }

    /// Returns the bits of a rule; 0 if no change touched it.
    pub(crate) fn bits_mut(&mut self, id: RuleId) -> &mut u8 {
        self.parts.entry(id).or_insert(0)
    }

    /// Removes all ids. Keeps the memory, unless its capacity is much larger
    /// than the number of these ids: the time of clearing grows with the
    /// capacity.
    pub(crate) fn clear(&mut self) {
        let capacity = self.parts.capacity();
        if capacity > Self::MAX_CLEARED_CAPACITY && self.parts.len() * 16 < capacity {
            self.parts = HashMap::default();
        } else {
            self.parts.clear();
        }
    }

    /// Removes `ids`, which must be all ids in the map.
    pub(crate) fn forget(&mut self, ids: impl Iterator<Item = RuleId>) {
        if self.parts.len() * 16 >= self.parts.capacity() {
            self.parts.clear();
        } else {
            for id in ids {
                self.parts.remove(&id);
            }
        }
    }

    /// Returns the bytes held, including unused capacity.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_large_transaction_is_given_back() {
        let mut standing = Standing::default();
        let fill = |standing: &mut Standing, ids: usize| {
            for id in 0..ids {
                standing.set(RuleId::from_index(id), 1);
            }
            let large = standing.bytes();
            standing.clear();
            assert_eq!(standing.get(RuleId::from_index(0)), None);
            large
        };
        let large = fill(&mut standing, 100_000);
        assert_eq!(standing.bytes(), large, "the next may be as large");
        fill(&mut standing, 10);
        assert!(standing.bytes() * 100 < large);
        let small = fill(&mut standing, 1000);
        fill(&mut standing, 1);
        assert_eq!(standing.bytes(), small, "so little is kept");
    }
}
