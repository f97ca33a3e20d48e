//! Keys with their present winners, as comparing needs them.

use crate::engines::forest::slot::ConflictMask;
use crate::model::rule::Winner;

/// Keys with their present winners, by position.
#[derive(Debug)]
pub(crate) struct Keys<'a, const W: usize> {
    /// The other slices are at least as long.
    rows: &'a [[u64; W]],
    winners: &'a mut [Winner],
    /// The conflicts of each winner.
    conflicts: &'a mut [ConflictMask],
    /// The [fingerprints](super::fingerprint) of the keys, if they were taken.
    prints: &'a [u64],
}

impl<'a, const W: usize> Keys<'a, W> {
    /// # Panics
    /// If another slice is shorter than `rows`.
    #[inline(always)]
    pub(super) fn new(
        rows: &'a [[u64; W]],
        winners: &'a mut [Winner],
        conflicts: &'a mut [ConflictMask],
        prints: &'a [u64],
    ) -> Keys<'a, W> {
        assert!(
            rows.len() <= winners.len() && rows.len() <= conflicts.len(),
            "a winner with conflicts for each key"
        );
        Keys {
            rows,
            winners,
            conflicts,
            prints,
        }
    }

    /// The number of keys.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns a key, its winner, and the winner's conflicts.
    ///
    /// # Panics
    /// If the position does not exist.
    #[inline(always)]
    pub(crate) fn at(&mut self, position: u8) -> (&[u64; W], &mut Winner, &mut ConflictMask) {
        let position = usize::from(position);
        let conflicts = &mut self.conflicts[position];
        (&self.rows[position], &mut self.winners[position], conflicts)
    }

    /// Like [`at`](Self::at), without bounds checks.
    ///
    /// # Safety
    /// The position must be less than [`len`](Self::len).
    #[inline(always)]
    pub(super) unsafe fn at_unchecked(
        &mut self,
        position: u8,
    ) -> (&[u64; W], &mut Winner, &mut ConflictMask) {
        let position = usize::from(position);
        // SAFETY: the position is in bounds, as the caller promises; there are as many
        // winners and conflicts as rows (asserted by `new`).
        unsafe {
            let row = self.rows.get_unchecked(position);
            let winner = self.winners.get_unchecked_mut(position);
            (row, winner, self.conflicts.get_unchecked_mut(position))
        }
    }

    /// The fingerprint of a key.
    ///
    /// # Panics
    /// If the position does not exist, or no fingerprints were taken.
    #[inline(always)]
    pub(super) fn print(&self, position: u8) -> u64 {
        self.prints[usize::from(position)]
    }

    /// The winner of a key.
    ///
    /// # Panics
    /// If the position does not exist.
    #[inline(always)]
    pub(super) fn winner(&self, position: u8) -> Winner {
        self.winners[usize::from(position)]
    }
}

/// The best rule that a single key has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best {
    pub(crate) winner: Winner,
    /// The conflicts of the winner.
    pub(crate) conflicts: ConflictMask,
}

impl Best {
    /// A winner whose conflicts are not known.
    #[inline(always)]
    pub(crate) fn new(winner: Winner) -> Best {
        Best {
            winner,
            conflicts: ConflictMask::ALL,
        }
    }

    /// This, in the form for a batch of one key. `print` is the key's fingerprint, or 0.
    #[inline(always)]
    pub(crate) fn of_key<'a, const W: usize>(
        &'a mut self,
        key: &'a [u64; W],
        print: &'a u64,
    ) -> Keys<'a, W> {
        Keys::new(
            std::slice::from_ref(key),
            std::slice::from_mut(&mut self.winner),
            std::slice::from_mut(&mut self.conflicts),
            std::slice::from_ref(print),
        )
    }
}
