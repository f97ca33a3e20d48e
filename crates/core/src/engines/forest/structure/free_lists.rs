//! Lists of free blocks by length.
//!
//! Each length of up to 64 units has a list of its own. Longer blocks have eight
//! lists for each power of two, as in TLSF. One bit for each list is set if the list
//! has a block. So the shortest list with long enough blocks is found by reading a
//! few words of bits.

/// No unit.
pub(super) const NO_UNIT: u32 = u32::MAX;

/// Each length of up to this number of units has a list of its own. Measured in
/// `bench/records/constants.md` (Forest).
const MAX_EXACT_UNITS: usize = 64;

/// Lists for each larger power of two. Measured in `bench/records/constants.md`
/// (Forest).
const LISTS_PER_POWER: usize = 8;

/// Bits of [`MAX_EXACT_UNITS`], a power of two, below its one.
const EXACT_BITS: usize = MAX_EXACT_UNITS.ilog2() as usize;

/// Bits of a length that choose one of the [`LISTS_PER_POWER`] lists, a power of two.
const FINE_BITS: usize = LISTS_PER_POWER.ilog2() as usize;

/// The number of lists; the last power of two is 2³¹.
const LIST_COUNT: usize = MAX_EXACT_UNITS + 1 + (32 - EXACT_BITS) * LISTS_PER_POWER;

/// The first block of each list.
#[derive(Debug)]
pub(super) struct FreeLists {
    first: Box<[u32; LIST_COUNT]>,
    /// A bit for each list, set if the list has a block.
    filled: [u64; LIST_COUNT.div_ceil(64)],
}

impl FreeLists {
    pub(super) fn new() -> FreeLists {
        FreeLists {
            first: Box::new([NO_UNIT; LIST_COUNT]),
            filled: [0; LIST_COUNT.div_ceil(64)],
        }
    }

    /// Forgets all blocks.
    pub(super) fn clear(&mut self) {
        self.first.fill(NO_UNIT);
        self.filled.fill(0);
    }

    /// True if there is a block of exactly this number of units, at most
    /// [`MAX_EXACT_UNITS`].
    #[inline]
    pub(super) fn has(&self, units: usize) -> bool {
        units <= MAX_EXACT_UNITS && self.filled[units / 64] >> (units % 64) & 1 != 0
    }

    /// Returns a block of at least `units` units, if there is one.
    #[inline]
    pub(super) fn find(&self, units: usize) -> Option<u32> {
        let list = list_for(units);
        let mut word = list / 64;
        let mut bits = self.filled.get(word)? & u64::MAX << (list % 64);
        while bits == 0 {
            word += 1;
            bits = *self.filled.get(word)?;
        }
        Some(self.first[word * 64 + bits.trailing_zeros() as usize])
    }

    /// Puts a block of `units` units at the head of its list. Returns the previous
    /// head, or [`NO_UNIT`].
    #[inline]
    pub(super) fn push(&mut self, units: usize, block: u32) -> u32 {
        let list = list_of(units);
        self.filled[list / 64] |= 1 << (list % 64);
        std::mem::replace(&mut self.first[list], block)
    }

    /// Removes the head of the list for blocks of `units` units; `next` becomes the
    /// head.
    #[inline]
    pub(super) fn pop(&mut self, units: usize, next: u32) {
        let list = list_of(units);
        self.first[list] = next;
        if next == NO_UNIT {
            self.filled[list / 64] &= !(1 << (list % 64));
        }
    }

    /// The first block of each list, or [`NO_UNIT`].
    #[cfg(test)]
    pub(super) fn firsts(&self) -> impl Iterator<Item = u32> {
        self.first.iter().copied()
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.first)
    }
}

/// Returns the list of a free block.
fn list_of(units: usize) -> usize {
    if units <= MAX_EXACT_UNITS {
        return units;
    }
    let power = units.ilog2() as usize;
    let fine = (units >> (power - FINE_BITS)) & (LISTS_PER_POWER - 1);
    MAX_EXACT_UNITS + 1 + (power - EXACT_BITS) * LISTS_PER_POWER + fine
}

/// Returns the first list whose blocks all have at least `units` units.
fn list_for(units: usize) -> usize {
    if units <= MAX_EXACT_UNITS {
        return units;
    }
    let power = units.ilog2() as usize;
    list_of(units + (1 << (power - FINE_BITS)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_has_a_list_whose_blocks_fit() {
        let mut last = 0;
        for units in 1..5000 {
            let list = list_of(units);
            assert!(list == last || list == last + 1, "{units}");
            assert!(list_for(units) >= list);
            assert!(list_of(2 * units) >= list_for(units));
            last = list;
        }
        assert!(list_of(u32::MAX as usize / 2) < LIST_COUNT);
        // The shortest block of the searched list is long enough.
        for units in 1..2000 {
            let list = list_for(units);
            let shortest = (1..).find(|&length| list_of(length) == list).unwrap();
            assert!(shortest >= units, "{units}");
        }
    }
}
