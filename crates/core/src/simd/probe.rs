//! Probing one table for many keys: hash, read slots, keep those worth a look.
//!
//! # Idea
//! Keys lie column by column, so one vector holds the same word of eight keys:
//! ```text
//! for eight keys at a time:
//!     wanted = best < winner                     keys that the table can improve
//!     hash   = Σ (key[w] & mask[w]) × secret[w]
//!     slot   = gather slots[hash >> 1 >> shift]
//!     wanted &= slot's signature has the bit of the hash
//!     append the wanted slots, and the numbers of their keys
//! ```
//! No branch depends on one key. Tables whose slots do not fit a cache near the
//! core are gone through twice, first to ask for the slots.

use super::{Isa, prefetch};
use crate::classifier::BATCH;
use crate::rule::Winner;

/// A table, as far as probing is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probed<'a, const W: usize> {
    pub(crate) mask: &'a [u64; W],
    /// Odd multipliers.
    pub(crate) secrets: &'a [u64; W],
    /// The table has 2 to the power of `63 - shift` slots.
    pub(crate) shift: u32,
    /// Slots; bits 31 to 16 are a signature.
    pub(crate) slots: &'a [u64],
    /// Keys with a winner as good as this want nothing.
    pub(crate) best: Winner,
}

/// A batch of keys, column by column.
#[derive(Clone, Debug)]
pub(crate) struct KeyColumns<const W: usize> {
    words: Box<[[u64; BATCH]; W]>,
    len: usize,
}

impl<const W: usize> Default for KeyColumns<W> {
    fn default() -> KeyColumns<W> {
        KeyColumns {
            words: Box::new([[0; BATCH]; W]),
            len: 0,
        }
    }
}

impl<const W: usize> KeyColumns<W> {
    /// Takes the keys of a batch.
    ///
    /// # Panics
    /// When there are more than [`BATCH`].
    pub(crate) fn fill(&mut self, keys: &[[u64; W]]) {
        assert!(keys.len() <= BATCH, "a batch is at most {BATCH} keys");
        for (word, column) in self.words.iter_mut().enumerate() {
            for (to, key) in column.iter_mut().zip(keys) {
                *to = key[word];
            }
        }
        self.len = keys.len();
    }
}

/// The slots that some keys found, with the keys' numbers.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// With room for a vector beyond the last.
    slots: Box<[u64; BATCH + 8]>,
    keys: Box<[u16; BATCH + 8]>,
    len: usize,
}

impl Default for Found {
    fn default() -> Found {
        Found {
            slots: Box::new([0; BATCH + 8]),
            keys: Box::new([0; BATCH + 8]),
            len: 0,
        }
    }
}

impl Found {
    /// The slots, in the order of their keys.
    pub(crate) fn slots(&self) -> &[u64] {
        &self.slots[..self.len]
    }

    /// The numbers of the keys.
    pub(crate) fn keys(&self) -> &[u16] {
        &self.keys[..self.len]
    }
}

/// Slots that fit a cache near the core: half a megabyte of them.
const NEAR: usize = 1 << 16;

/// Probes a table for all keys whose winner it can improve; says whether there
/// were any.
///
/// # Panics
/// When there are not as many winners as keys, or another number of slots than
/// the shift says.
pub(crate) fn probe<const W: usize>(
    isa: Isa,
    table: &Probed<'_, W>,
    keys: &KeyColumns<W>,
    winners: &[Winner],
    found: &mut Found,
) -> bool {
    assert_eq!(keys.len, winners.len(), "one winner for each key");
    assert!(
        table.shift <= 63 && table.slots.len() == 1 << (63 - table.shift),
        "as many slots as the shift says"
    );
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(proof) => {
            if table.slots.len() > NEAR {
                x86::ask(proof, table, keys, winners);
            }
            x86::probe(proof, table, keys, winners, found)
        }
        _ => probe_scalar(table, keys, winners, found),
    }
}

fn hash<const W: usize>(table: &Probed<'_, W>, keys: &KeyColumns<W>, key: usize) -> u64 {
    let mut hash = 0u64;
    for word in 0..W {
        let part = keys.words[word][key] & table.mask[word];
        hash = hash.wrapping_add(part.wrapping_mul(table.secrets[word]));
    }
    hash
}

#[allow(clippy::cast_possible_truncation)] // as many bits as slots
fn slot_of(hash: u64, shift: u32) -> usize {
    (hash >> 1 >> shift) as usize
}

/// The twin that every processor has.
fn probe_scalar<const W: usize>(
    table: &Probed<'_, W>,
    keys: &KeyColumns<W>,
    winners: &[Winner],
    found: &mut Found,
) -> bool {
    let mut hashes = [0; BATCH];
    let mut active = [0u16; BATCH];
    let mut count = 0;
    for (key, winner) in (0u16..).zip(winners) {
        let hash = hash(table, keys, usize::from(key));
        prefetch(&table.slots[slot_of(hash, table.shift)]);
        hashes[count] = hash;
        active[count] = key;
        count += usize::from(table.best.beats(*winner));
    }
    let mut len = 0;
    for (&key, &hash) in active[..count].iter().zip(&hashes[..count]) {
        let slot = table.slots[slot_of(hash, table.shift)];
        let sign = hash << (63 - table.shift) >> 60;
        found.slots[len] = slot;
        found.keys[len] = key;
        len += usize::from(slot >> (16 + sign) & 1 != 0);
    }
    found.len = len;
    count > 0
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512i, __mmask8, _mm_cvtsi32_si128, _mm_storeu_si128, _mm512_add_epi64, _mm512_and_si512,
        _mm512_cmplt_epu64_mask, _mm512_cvtepi64_epi16, _mm512_loadu_si512,
        _mm512_mask_i64gather_epi64, _mm512_mask_test_epi64_mask, _mm512_maskz_compress_epi64,
        _mm512_maskz_loadu_epi64, _mm512_mullo_epi64, _mm512_set_epi64, _mm512_set1_epi64,
        _mm512_setzero_si512, _mm512_sll_epi64, _mm512_srl_epi64, _mm512_srli_epi64,
        _mm512_srlv_epi64, _mm512_storeu_si512,
    };

    use super::{BATCH, Found, KeyColumns, Probed};
    use crate::rule::Winner;
    use crate::simd::{Avx512, prefetch};

    /// Hashes of the keys `from..from + 8`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn hashes<const W: usize>(table: &Probed<'_, W>, keys: &KeyColumns<W>, from: usize) -> __m512i {
        let mut hash = _mm512_setzero_si512();
        for word in 0..W {
            let column = &keys.words[word][from..from + 8];
            // SAFETY: eight words are read from a slice of eight.
            let key = unsafe { _mm512_loadu_si512(column.as_ptr().cast()) };
            let mask = _mm512_set1_epi64(table.mask[word].cast_signed());
            let secret = _mm512_set1_epi64(table.secrets[word].cast_signed());
            let part = _mm512_mullo_epi64(_mm512_and_si512(key, mask), secret);
            hash = _mm512_add_epi64(hash, part);
        }
        hash
    }

    /// Which of the keys `from..from + 8` the table can improve.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn wanted(best: Winner, winners: &[Winner], from: usize) -> __mmask8 {
        let left = winners.len() - from;
        let there: __mmask8 = if left >= 8 { 0xff } else { (1 << left) - 1 };
        // SAFETY: the mask selects winners that are there, at most eight;
        // masked-out lanes are not accessed. A winner is one word.
        let ranks = unsafe { _mm512_maskz_loadu_epi64(there, winners[from..].as_ptr().cast()) };
        let best = _mm512_set1_epi64(best.rank().cast_signed());
        _mm512_cmplt_epu64_mask(best, ranks) & there
    }

    pub(super) fn ask<const W: usize>(
        _: Avx512,
        table: &Probed<'_, W>,
        keys: &KeyColumns<W>,
        winners: &[Winner],
    ) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { ask_avx512(table, keys, winners) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn ask_avx512<const W: usize>(table: &Probed<'_, W>, keys: &KeyColumns<W>, winners: &[Winner]) {
        let shift = _mm_cvtsi32_si128(table.shift.cast_signed());
        for from in (0..winners.len()).step_by(8) {
            let wanted = wanted(table.best, winners, from);
            let hash = hashes(table, keys, from);
            let index = _mm512_srl_epi64(_mm512_srli_epi64::<1>(hash), shift);
            let mut indices = [0usize; 8];
            // SAFETY: eight words are written to an array of eight.
            unsafe { _mm512_storeu_si512(indices.as_mut_ptr().cast(), index) };
            for (lane, &index) in indices.iter().enumerate() {
                // What is not wanted asks for the first slot, which is near.
                prefetch(&table.slots[index * usize::from(wanted >> lane & 1)]);
            }
        }
    }

    pub(super) fn probe<const W: usize>(
        _: Avx512,
        table: &Probed<'_, W>,
        keys: &KeyColumns<W>,
        winners: &[Winner],
        found: &mut Found,
    ) -> bool {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { probe_avx512(table, keys, winners, found) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
    fn probe_avx512<const W: usize>(
        table: &Probed<'_, W>,
        keys: &KeyColumns<W>,
        winners: &[Winner],
        found: &mut Found,
    ) -> bool {
        let shift = _mm_cvtsi32_si128(table.shift.cast_signed());
        let sign_shift = _mm_cvtsi32_si128((63 - table.shift).cast_signed());
        let lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        let one = _mm512_set1_epi64(1);
        let mut len = 0;
        let mut any = 0;
        for from in (0..winners.len()).step_by(8) {
            let wanted = wanted(table.best, winners, from);
            any |= wanted;
            if wanted == 0 {
                continue;
            }
            let hash = hashes(table, keys, from);
            let index = _mm512_srl_epi64(_mm512_srli_epi64::<1>(hash), shift);
            // SAFETY: an index is a hash shifted down by `1 + shift`, so below
            // 2^(63 - shift), which is the number of slots (asserted by
            // `probe`); unwanted lanes are not read.
            let slot = unsafe {
                _mm512_mask_i64gather_epi64::<8>(
                    _mm512_setzero_si512(),
                    wanted,
                    index,
                    table.slots.as_ptr().cast(),
                )
            };
            let sign = _mm512_srli_epi64::<60>(_mm512_sll_epi64(hash, sign_shift));
            let signed = _mm512_srlv_epi64(_mm512_srli_epi64::<16>(slot), sign);
            let pass = _mm512_mask_test_epi64_mask(wanted, signed, one);
            let numbers = _mm512_add_epi64(lanes, _mm512_set1_epi64(from as i64));
            let slots = _mm512_maskz_compress_epi64(pass, slot);
            let numbers = _mm512_cvtepi64_epi16(_mm512_maskz_compress_epi64(pass, numbers));
            let to_slots = &mut found.slots[len..len + 8];
            // SAFETY: eight words are written to a slice of eight.
            unsafe { _mm512_storeu_si512(to_slots.as_mut_ptr().cast(), slots) };
            let to_keys = &mut found.keys[len..len + 8];
            // SAFETY: eight halves of 16 bits are written to a slice of eight.
            unsafe { _mm_storeu_si128(to_keys.as_mut_ptr().cast(), numbers) };
            len += pass.count_ones() as usize;
        }
        debug_assert!(len <= BATCH);
        found.len = len;
        any != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::splitmix;

    #[test]
    fn every_instruction_set_finds_the_same_at_every_length() {
        let mut state = 5;
        let mut total = 0;
        for bits in [0, 1, 7, 17] {
            let slots: Vec<u64> = (0..1 << bits).map(|_| splitmix(&mut state)).collect();
            let secrets = [splitmix(&mut state) | 1, splitmix(&mut state) | 1];
            let mask = [splitmix(&mut state), if bits == 0 { 0 } else { u64::MAX }];
            let table = Probed {
                mask: if bits == 0 { &[0, 0] } else { &mask },
                secrets: &secrets,
                shift: 63 - bits,
                slots: &slots,
                best: Winner::from_rank(500),
            };
            for len in (0..=2 * 8 + 1).chain([BATCH - 1, BATCH]) {
                let rows: Vec<[u64; 2]> = (0..len)
                    .map(|_| [splitmix(&mut state), splitmix(&mut state)])
                    .collect();
                let winners: Vec<Winner> = (0..len)
                    .map(|_| Winner::from_rank(splitmix(&mut state) % 1000))
                    .collect();
                let mut keys = KeyColumns::default();
                keys.fill(&rows);
                let mut expected = Found::default();
                let any = probe_scalar(&table, &keys, &winners, &mut expected);
                total += expected.len;
                for isa in Isa::available() {
                    let mut found = Found::default();
                    assert_eq!(probe(isa, &table, &keys, &winners, &mut found), any);
                    assert_eq!(found.keys(), expected.keys(), "{isa}, {len} keys");
                    assert_eq!(found.slots(), expected.slots(), "{isa}, {len} keys");
                }
            }
        }
        assert!(total > 100, "only {total} slots found");
    }
}
