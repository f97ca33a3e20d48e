//! Lists of free blocks by length.
//!
//! Blocks of up to 64 units have a list for each length, longer ones eight lists
//! for each power of two, as in TLSF. A bit for each list says whether it has any
//! block, so the shortest list with long enough blocks is found by a few words of
//! bits.

/// No unit.
pub(super) const NONE: u32 = u32::MAX;

/// Free blocks of up to this many units have lists of their own.
const EXACT: usize = 64;

/// Lists for each power of two above.
const FINE: usize = 8;

/// All lists; the last power of two is 2³¹.
const LISTS: usize = EXACT + 1 + (31 - 5) * FINE;

/// The first block of each list.
#[derive(Debug)]
pub(super) struct FreeLists {
    first: Box<[u32; LISTS]>,
    /// Which lists have any.
    filled: [u64; LISTS.div_ceil(64)],
}

impl FreeLists {
    pub(super) fn new() -> FreeLists {
        FreeLists {
            first: Box::new([NONE; LISTS]),
            filled: [0; LISTS.div_ceil(64)],
        }
    }

    /// A block that has at least `units` units, if there is one.
    #[inline]
    pub(super) fn find(&self, units: usize) -> Option<u32> {
        let from = list_for(units);
        let mut word = from / 64;
        let mut bits = self.filled.get(word)? & u64::MAX << (from % 64);
        while bits == 0 {
            word += 1;
            bits = *self.filled.get(word)?;
        }
        Some(self.first[word * 64 + bits.trailing_zeros() as usize])
    }

    /// Makes a block of `units` units the first of its list; returns the block
    /// that was first, or [`NONE`].
    #[inline]
    pub(super) fn push(&mut self, units: usize, block: u32) -> u32 {
        let list = list_of(units);
        self.filled[list / 64] |= 1 << (list % 64);
        std::mem::replace(&mut self.first[list], block)
    }

    /// Takes the first block of `units` units out of its list; `next` is first
    /// then.
    #[inline]
    pub(super) fn pop(&mut self, units: usize, next: u32) {
        let list = list_of(units);
        self.first[list] = next;
        if next == NONE {
            self.filled[list / 64] &= !(1 << (list % 64));
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.first)
    }
}

/// The list that a free block belongs to.
fn list_of(units: usize) -> usize {
    if units <= EXACT {
        return units;
    }
    let power = units.ilog2() as usize;
    let fine = (units >> (power - 3)) & (FINE - 1);
    EXACT + 1 + (power - 6) * FINE + fine
}

/// The first list all of whose blocks have at least `units` units.
fn list_for(units: usize) -> usize {
    if units <= EXACT {
        return units;
    }
    let power = units.ilog2() as usize;
    list_of(units + (1 << (power - 3)) - 1)
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
        assert!(list_of(u32::MAX as usize / 2) < LISTS);
        // The shortest block of the list that is searched is long enough.
        for units in 1..2000 {
            let list = list_for(units);
            let least = (1..).find(|&other| list_of(other) == list).unwrap();
            assert!(least >= units, "{units}");
        }
    }
}
