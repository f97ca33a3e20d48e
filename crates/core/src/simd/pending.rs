//! The keys of a batch that later tables may still improve.
//!
//! # Idea
//! Tables come best first, so ever fewer keys of a batch want the next one, and
//! they lie scattered. Vectors of eight neighbours would do the work of eight
//! keys for the two or three among them that want it. So the others are left
//! behind before a table is probed, and those that stay close ranks:
//! ```text
//! position   0   1   2   3   4   5        winners of 1, 2, 4 beat the table
//! origin     0   1   2   3   4   5
//!            │       ╱───╯ ╱─────╯
//! position   0   1   2                    these three winners are
//! origin     0   3   5                    set apart, to be handed back
//! ```
//! Keys lie column by column, so one vector holds the same word of eight keys.

use super::{Aligned, Isa};
use crate::classifier::BATCH;
use crate::rule::Winner;

/// Keys on their way through the tables, with their winners so far.
#[derive(Clone, Debug)]
pub(crate) struct Pending<const W: usize> {
    pub(super) words: Box<Aligned<[[u64; BATCH]; W]>>,
    pub(super) winners: Box<Aligned<[Winner; BATCH]>>,
    /// For each key, its position in the batch.
    origins: Box<Aligned<[u64; BATCH]>>,
    pub(super) len: usize,
    done: Box<Done>,
}

/// Winners of keys that were left behind, with the keys' positions in the batch.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Done {
    /// With room for a vector beyond the last.
    winners: [Winner; BATCH + 8],
    origins: [u64; BATCH + 8],
    len: usize,
}

impl<const W: usize> Default for Pending<W> {
    fn default() -> Pending<W> {
        Pending {
            words: Box::new(Aligned([[0; BATCH]; W])),
            winners: Box::new(Aligned([Winner::MISS; BATCH])),
            origins: Box::new(Aligned([0; BATCH])),
            len: 0,
            done: Box::new(Done {
                winners: [Winner::MISS; BATCH + 8],
                origins: [0; BATCH + 8],
                len: 0,
            }),
        }
    }
}

impl<const W: usize> Pending<W> {
    /// Takes all keys of a batch.
    ///
    /// # Panics
    /// When there are more than [`BATCH`], or not as many winners as keys.
    pub(crate) fn fill(&mut self, keys: &[[u64; W]], winners: &[Winner]) {
        assert!(keys.len() <= BATCH, "a batch is at most {BATCH} keys");
        for (word, column) in self.words.iter_mut().enumerate() {
            for (to, key) in column.iter_mut().zip(keys) {
                *to = key[word];
            }
        }
        self.winners[..keys.len()].copy_from_slice(winners);
        for (position, origin) in (0..).zip(self.origins.iter_mut()) {
            *origin = position;
        }
        self.len = keys.len();
        self.done.len = 0;
    }

    /// Leaves keys behind that a table with that best rule cannot improve, if
    /// there are enough of them to be worth it; says whether it can improve any
    /// at all.
    pub(crate) fn narrow(&mut self, isa: Isa, best: Winner) -> bool {
        let wanted = match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(proof) => x86::count(proof, self, best),
            _ => {
                let wanted = self.winners().iter().filter(|winner| best.beats(**winner));
                wanted.count()
            }
        };
        if self.len - wanted > self.len / 8 {
            match isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512(proof) => x86::part(proof, self, best),
                _ => self.part_scalar(best),
            }
            debug_assert_eq!(self.len, wanted);
        }
        wanted > 0
    }

    /// The twin that every processor has.
    fn part_scalar(&mut self, best: Winner) {
        let mut to = 0;
        let done = &mut *self.done;
        for from in 0..self.len {
            for column in self.words.iter_mut() {
                column[to] = column[from];
            }
            let (origin, winner) = (self.origins[from], self.winners[from]);
            let wanted = best.beats(winner);
            self.origins[to] = origin;
            self.winners[to] = winner;
            to += usize::from(wanted);
            done.origins[done.len] = origin;
            done.winners[done.len] = winner;
            done.len += usize::from(!wanted);
        }
        self.len = to;
    }

    /// Writes all winners to their places in the batch.
    ///
    /// # Panics
    /// When there are fewer places than there were keys.
    pub(crate) fn hand_back(&self, winners: &mut [Winner]) {
        let Done {
            origins,
            winners: outcomes,
            len,
        } = &*self.done;
        let done = origins[..*len].iter().zip(outcomes);
        for (&origin, &winner) in self.origins.iter().zip(self.winners()).chain(done) {
            winners[usize::try_from(origin).expect("within a batch")] = winner;
        }
    }

    /// The winners of the keys.
    #[inline]
    pub(crate) fn winners(&self) -> &[Winner] {
        &self.winners[..self.len]
    }

    /// A key's position in the batch.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a batch has 256 keys
    pub(crate) fn origin(&self, position: u8) -> u8 {
        self.origins[usize::from(position)] as u8
    }
}

/// Keys with their winners so far, by position.
pub(crate) trait Keys<const W: usize> {
    fn key(&self, position: u8) -> [u64; W];
    fn winner(&self, position: u8) -> Winner;
    fn set_winner(&mut self, position: u8, winner: Winner);
}

impl<const W: usize> Keys<W> for Pending<W> {
    #[inline(always)]
    fn key(&self, position: u8) -> [u64; W] {
        std::array::from_fn(|word| self.words[word][usize::from(position)])
    }

    #[inline(always)]
    fn winner(&self, position: u8) -> Winner {
        self.winners[usize::from(position)]
    }

    #[inline(always)]
    fn set_winner(&mut self, position: u8, winner: Winner) {
        self.winners[usize::from(position)] = winner;
    }
}

/// A key alone, whatever its position.
pub(crate) struct OneKey<'a, const W: usize> {
    pub(crate) key: &'a [u64; W],
    pub(crate) winner: Winner,
}

impl<const W: usize> Keys<W> for OneKey<'_, W> {
    #[inline(always)]
    fn key(&self, _: u8) -> [u64; W] {
        *self.key
    }

    #[inline(always)]
    fn winner(&self, _: u8) -> Winner {
        self.winner
    }

    #[inline(always)]
    fn set_winner(&mut self, _: u8, winner: Winner) {
        self.winner = winner;
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512i, _mm512_loadu_si512, _mm512_mask_cmple_epu64_mask, _mm512_mask_cmplt_epu64_mask,
        _mm512_maskz_compress_epi64, _mm512_set1_epi64, _mm512_storeu_si512,
    };

    use super::Pending;
    use crate::rule::Winner;
    use crate::simd::{Avx512, first_bits};

    pub(super) fn count<const W: usize>(_: Avx512, keys: &Pending<W>, best: Winner) -> usize {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { count_avx512(keys, best) }
    }

    pub(super) fn part<const W: usize>(_: Avx512, keys: &mut Pending<W>, best: Winner) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { part_avx512(keys, best) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load<T>(from: &[T]) -> __m512i {
        assert!(size_of_val(from) == 64, "eight words");
        // SAFETY: 64 bytes are read from a slice of 64 bytes.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store<T>(to: &mut [T], words: __m512i) {
        assert!(size_of_val(to) == 64, "eight words");
        // SAFETY: 64 bytes are written to a slice of 64 bytes; words and
        // winners may have any bits.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), words) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn count_avx512<const W: usize>(keys: &Pending<W>, best: Winner) -> usize {
        let best = _mm512_set1_epi64(best.rank().cast_signed());
        let mut count = 0;
        for from in (0..keys.len).step_by(8) {
            let ranks = load(&keys.winners[from..from + 8]);
            let there = first_bits(keys.len - from);
            let wanted = _mm512_mask_cmplt_epu64_mask(there, best, ranks);
            count += wanted.count_ones();
        }
        count as usize
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn part_avx512<const W: usize>(keys: &mut Pending<W>, best: Winner) {
        let best = _mm512_set1_epi64(best.rank().cast_signed());
        let mut to = 0;
        for from in (0..keys.len).step_by(8) {
            let there = first_bits(keys.len - from);
            let ranks = load(&keys.winners[from..from + 8]);
            let origins = load(&keys.origins[from..from + 8]);
            let wanted = _mm512_mask_cmplt_epu64_mask(there, best, ranks);
            let left = _mm512_mask_cmple_epu64_mask(there, ranks, best);
            let done = &mut *keys.done;
            let end = done.len + 8;
            let outcomes = _mm512_maskz_compress_epi64(left, ranks);
            store(&mut done.winners[done.len..end], outcomes);
            let their = _mm512_maskz_compress_epi64(left, origins);
            store(&mut done.origins[done.len..end], their);
            done.len += left.count_ones() as usize;
            // What is written reaches at most to the end of these eight, whose
            // words in the same column have been read.
            let end = to + 8;
            let ranks = _mm512_maskz_compress_epi64(wanted, ranks);
            store(&mut keys.winners[to..end], ranks);
            let origins = _mm512_maskz_compress_epi64(wanted, origins);
            store(&mut keys.origins[to..end], origins);
            for column in keys.words.iter_mut() {
                let words = _mm512_maskz_compress_epi64(wanted, load(&column[from..from + 8]));
                store(&mut column[to..end], words);
            }
            to += wanted.count_ones() as usize;
        }
        keys.len = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::splitmix;

    #[test]
    fn those_that_stay_keep_their_keys_winners_and_origins() {
        let mut state = 9;
        for len in (0..=2 * 8 + 1).chain([BATCH - 1, BATCH]) {
            for isa in Isa::available() {
                let rows: Vec<[u64; 2]> = (0..len)
                    .map(|_| [splitmix(&mut state), splitmix(&mut state)])
                    .collect();
                let before: Vec<Winner> = (0..len)
                    .map(|_| Winner::from_rank(splitmix(&mut state) % 1000))
                    .collect();
                let mut batch = before.clone();
                let mut keys = Pending::default();
                keys.fill(&rows, &before);
                for best in [10, 300, 500, 900] {
                    let best = Winner::from_rank(best);
                    let any = keys.narrow(isa, best);
                    assert_eq!(any, before.iter().any(|winner| best.beats(*winner)));
                    for (position, winner) in (0..=u8::MAX).zip(keys.winners()) {
                        let origin = usize::from(keys.origin(position));
                        assert_eq!(*winner, before[origin], "{isa}, {len} keys");
                        assert_eq!(keys.key(position), rows[origin]);
                    }
                    let stayed = before.iter().filter(|winner| best.beats(**winner));
                    let (least, most) = (stayed.count(), keys.winners().len());
                    assert!(most >= least && most - least <= most / 8);
                }
                // Winners that change after others were left behind come back,
                // and those of the others as they were.
                let changed = keys.winners().len();
                keys.winners.fill(Winner::from_rank(2000));
                keys.hand_back(&mut batch);
                let kept = batch.iter().zip(&before);
                let kept = kept.filter(|(after, before)| after == before).count();
                assert_eq!(kept, len - changed);
                let new = batch.iter().filter(|winner| winner.rank() == 2000);
                assert_eq!(new.count(), changed);
            }
        }
    }
}
