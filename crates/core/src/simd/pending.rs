//! The keys of a batch that later tables may still improve.
//!
//! # Idea
//! Tables come best first, so ever fewer keys of a batch want the next one, and
//! they lie scattered. Vectors of eight neighbours would do the work of eight
//! keys for the two or three among them that want it. So there is a list of the
//! positions of those that do, one byte each, which is gone through before each
//! table:
//! ```text
//! pending    0   1   2   3   4   5        winners of 1, 2, 4 beat the table
//!            │       ╱───╯ ╱─────╯
//! pending    0   3   5
//! ```
//! Neither keys nor winners move. As long as all keys are pending, and that is
//! all of the first table, vectors are loaded from them as they lie.

use super::Isa;
use crate::classifier::BATCH;
use crate::rule::Winner;

/// Working memory for the positions of pending keys.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Positions([u8; BATCH + 8]);

impl Default for Positions {
    fn default() -> Positions {
        Positions([0; BATCH + 8])
    }
}

/// The keys of a batch on their way through the tables, with their winners so
/// far, and which of them are pending.
#[derive(Debug)]
pub(crate) struct Pending<'a, const W: usize> {
    /// At most [`BATCH`].
    rows: &'a [[u64; W]],
    /// As many.
    winners: &'a mut [Winner],
    /// Those of pending keys first, then eight or more of existing keys, if
    /// there are any.
    positions: &'a mut Positions,
    /// How many keys are pending.
    len: usize,
}

/// All positions, and eight more.
const ALL: [u8; BATCH + 8] = {
    let mut all = [0; BATCH + 8];
    let mut position = 0;
    while position < BATCH {
        #[allow(clippy::cast_possible_truncation)] // below BATCH
        let byte = position as u8;
        all[position] = byte;
        position += 1;
    }
    all
};

impl<'a, const W: usize> Pending<'a, W> {
    /// A batch of which all keys are pending.
    ///
    /// # Panics
    /// When there are more than [`BATCH`], or not as many winners as keys.
    pub(crate) fn new(
        rows: &'a [[u64; W]],
        winners: &'a mut [Winner],
        positions: &'a mut Positions,
    ) -> Pending<'a, W> {
        assert!(rows.len() <= BATCH, "a batch is at most {BATCH} keys");
        assert_eq!(rows.len(), winners.len(), "one winner for each key");
        positions.0 = ALL;
        positions.0[rows.len()..rows.len() + 8].fill(0);
        Pending {
            rows,
            len: rows.len(),
            winners,
            positions,
        }
    }

    /// Leaves keys behind that a table with that best rule cannot improve; says
    /// whether it can improve any at all.
    pub(crate) fn narrow(&mut self, isa: Isa, best: Winner) -> bool {
        self.len = match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(proof) if self.all() => x86::narrow(proof, self, best),
            _ => self.narrow_scalar(best),
        };
        self.positions.0[self.len..self.len + 8].fill(0);
        self.len > 0
    }

    /// The twin that every processor has.
    fn narrow_scalar(&mut self, best: Winner) -> usize {
        let mut to = 0;
        for from in 0..self.len {
            let position = self.positions.0[from];
            self.positions.0[to] = position;
            to += usize::from(best.beats(self.winners[usize::from(position)]));
        }
        to
    }

    /// Whether all keys are pending, so that their positions are just numbers.
    #[inline(always)]
    pub(super) fn all(&self) -> bool {
        self.len == self.rows.len()
    }

    /// The batch's keys, pending or not.
    #[inline(always)]
    pub(super) fn rows(&self) -> &[[u64; W]] {
        self.rows
    }

    /// The positions of pending keys.
    #[inline(always)]
    pub(crate) fn positions(&self) -> &[u8] {
        &self.positions.0[..self.len]
    }

    /// Positions of eight pending keys, of which the first is there. Beyond the
    /// last, they are those of any keys.
    #[inline(always)]
    pub(super) fn eight(&self, from: usize) -> &[u8; 8] {
        let eight = self.positions.0[from..].first_chunk();
        eight.expect("there is room for eight behind each")
    }
}

/// Keys with their winners so far, by position.
pub(crate) trait Keys<const W: usize> {
    /// A key and its winner.
    ///
    /// # Panics
    /// When there is none.
    fn at(&mut self, position: u8) -> (&[u64; W], &mut Winner);
}

impl<const W: usize> Keys<W> for Pending<'_, W> {
    #[inline(always)]
    fn at(&mut self, position: u8) -> (&[u64; W], &mut Winner) {
        let position = usize::from(position);
        let row = &self.rows[position];
        // SAFETY: there are as many winners as rows (asserted by `new`, and
        // neither changes), and indexing has just compared their number.
        (row, unsafe { self.winners.get_unchecked_mut(position) })
    }
}

/// A key alone, whatever its position.
pub(crate) struct OneKey<'a, const W: usize> {
    pub(crate) key: &'a [u64; W],
    pub(crate) winner: Winner,
}

impl<const W: usize> Keys<W> for OneKey<'_, W> {
    #[inline(always)]
    fn at(&mut self, _: u8) -> (&[u64; W], &mut Winner) {
        (self.key, &mut self.winner)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm512_mask_cmplt_epu64_mask, _mm512_maskz_loadu_epi64, _mm512_set1_epi64, _pdep_u64,
        _pext_u64,
    };

    use super::Pending;
    use crate::rule::Winner;
    use crate::simd::{Avx512, first_bits};

    pub(super) fn narrow<const W: usize>(
        _: Avx512,
        keys: &mut Pending<'_, W>,
        best: Winner,
    ) -> usize {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { narrow_avx512(keys, best) }
    }

    /// Writes the positions of those that stay, of all keys; returns their number.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn narrow_avx512<const W: usize>(keys: &mut Pending<'_, W>, best: Winner) -> usize {
        const EACH: u64 = 0x0101_0101_0101_0101;
        let best = _mm512_set1_epi64(best.rank().cast_signed());
        let mut positions = 0x0706_0504_0302_0100;
        let mut to = 0;
        for winners in keys.winners.chunks(8) {
            let there = first_bits(winners.len());
            // SAFETY: the mask selects winners that are there, at most eight;
            // masked-out lanes are not accessed. A winner is one word.
            let ranks = unsafe { _mm512_maskz_loadu_epi64(there, winners.as_ptr().cast()) };
            let wanted = _mm512_mask_cmplt_epu64_mask(there, best, ranks);
            let bytes = _pext_u64(positions, _pdep_u64(wanted.into(), EACH) * 0xff);
            keys.positions.0[to..to + 8].copy_from_slice(&bytes.to_le_bytes());
            to += wanted.count_ones() as usize;
            positions = positions.wrapping_add(8 * EACH);
        }
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::splitmix;

    #[test]
    fn those_stay_whose_winners_a_table_beats() {
        let mut state = 9;
        for len in (0..=2 * 8 + 1).chain([BATCH - 1, BATCH]) {
            for isa in Isa::available() {
                let rows: Vec<[u64; 2]> = (0..len)
                    .map(|_| [splitmix(&mut state), splitmix(&mut state)])
                    .collect();
                let mut winners: Vec<Winner> = (0..len)
                    .map(|_| Winner::from_rank(splitmix(&mut state) % 1000))
                    .collect();
                let ranks = winners.clone();
                let mut positions = Positions([77; BATCH + 8]);
                let mut keys = Pending::new(&rows, &mut winners, &mut positions);
                assert!(keys.all());
                for best in [0, 10, 300, 500, 900] {
                    let best = Winner::from_rank(best);
                    let any = keys.narrow(isa, best);
                    let expected: Vec<u8> = (0..=u8::MAX)
                        .zip(&ranks)
                        .filter(|(_, winner)| best.beats(**winner))
                        .map(|(position, _)| position)
                        .collect();
                    assert_eq!(keys.positions(), expected, "{isa}, {len} keys");
                    assert_eq!(any, !expected.is_empty());
                    for from in 0..expected.len() {
                        let exists = |&position: &u8| usize::from(position) < len;
                        assert!(keys.eight(from).iter().all(exists));
                    }
                    for &position in &expected {
                        let at = usize::from(position);
                        assert_eq!(keys.at(position), (&rows[at], &mut ranks[at].clone()));
                    }
                }
            }
        }
    }
}
