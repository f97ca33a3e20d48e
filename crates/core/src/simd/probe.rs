//! Probing one table for many keys: hash, read slots, keep those worth a look.
//!
//! # Idea
//! Of the keys that are still [pending](super::pending):
//! ```text
//! for eight keys at a time:
//!     wanted = best < winner                     keys that the table can improve
//!     hash   = Σ (key[w] & mask[w]) × secret[w]
//!     slot   = gather slots[hash >> 1 >> shift]
//!     wanted &= slot's signature has the bit of the hash
//!     append the wanted slots, each with its key's position in the place of the
//!     signature, to one of three lists: short runs, long runs, nested nodes
//! ```
//! No branch depends on one key. Tables whose slots do not fit a cache near the
//! core are gone through twice, first to ask for the slots.

use super::pending::Pending;
use super::runs::SHORT;
use super::{Aligned, Isa, prefetch};
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
    /// Slots: bits 31 to 16 are a signature, bits 15 to 0 the number of rules, or
    /// [`NODE`].
    pub(crate) slots: &'a [u64],
    /// Keys with a winner as good as this want nothing.
    pub(crate) best: Winner,
    /// Whether slots may hold nested nodes.
    pub(crate) nested: bool,
    /// Whether to ask for slots that are far before reading them.
    pub(crate) ahead: bool,
}

/// What some keys found, by what is to be done with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// Runs of at most [`SHORT`] rules.
    pub(crate) short: HitList,
    /// Longer runs.
    pub(crate) long: HitList,
    /// Nested nodes, if the table may have any.
    pub(crate) nodes: HitList,
}

/// A key with what it found: a slot with the key's position in bits 31 to 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Hit(u64);

impl Hit {
    #[inline(always)]
    pub(crate) fn new(slot: u64, position: u8) -> Hit {
        Hit(slot & !SIGNATURE | u64::from(position) << 16)
    }

    /// The slot, without its signature.
    #[inline(always)]
    pub(crate) fn slot(self) -> u64 {
        self.0 & !SIGNATURE
    }

    /// The key's position.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // eight bits
    pub(crate) fn key(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// The position of the run's first word.
    #[inline(always)]
    pub(crate) fn start(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// The number of rules in the run.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        (self.0 & LENGTH) as usize
    }
}

/// A slot's bits for the number of rules, or [`NODE`].
const LENGTH: u64 = 0xffff;

/// A slot's bits for the signature.
const SIGNATURE: u64 = 0xffff << 16;

/// Hits of one kind, one for each key at most.
#[derive(Clone, Debug)]
pub(crate) struct HitList {
    /// With room for a vector beyond the last.
    hits: Box<Aligned<[Hit; BATCH + 8]>>,
    len: usize,
}

impl Found {
    pub(crate) fn clear(&mut self) {
        for list in [&mut self.short, &mut self.long, &mut self.nodes] {
            list.len = 0;
        }
    }

    /// Appends a run; there may be [`BATCH`] in all.
    pub(crate) fn push_run(&mut self, hit: Hit) {
        let short = hit.len() <= SHORT;
        self.short.append(hit, short);
        self.long.append(hit, !short);
    }
}

impl Default for HitList {
    fn default() -> HitList {
        HitList {
            hits: Box::new(Aligned([Hit(0); BATCH + 8])),
            len: 0,
        }
    }
}

impl HitList {
    fn append(&mut self, hit: Hit, wanted: bool) {
        self.hits[self.len] = hit;
        self.len += usize::from(wanted);
    }

    pub(crate) fn hits(&self) -> &[Hit] {
        &self.hits[..self.len]
    }
}

/// The number of rules that means a node.
pub(crate) const NODE: u64 = 0xffff;

/// Slots that fit a cache near the core: half a megabyte of them.
const NEAR: usize = 1 << 16;

/// Probes a table for all keys whose winner it can improve.
///
/// # Panics
/// When there is another number of slots than the shift says.
pub(crate) fn probe<const W: usize>(
    isa: Isa,
    table: &Probed<'_, W>,
    keys: &Pending<W>,
    found: &mut Found,
) {
    assert!(
        table.shift <= 63 && table.slots.len() == 1 << (63 - table.shift),
        "as many slots as the shift says"
    );
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(proof) => {
            if table.ahead && table.slots.len() > NEAR {
                x86::ask(proof, table, keys);
            }
            x86::probe(proof, table, keys, found);
        }
        _ => probe_scalar(table, keys, found),
    }
}

fn hash<const W: usize>(table: &Probed<'_, W>, keys: &Pending<W>, key: usize) -> u64 {
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
fn probe_scalar<const W: usize>(table: &Probed<'_, W>, keys: &Pending<W>, found: &mut Found) {
    let mut hashes = [0; BATCH];
    let mut active = [0u8; BATCH];
    let mut count = 0;
    for (key, winner) in (0..=u8::MAX).zip(keys.winners()) {
        let hash = hash(table, keys, usize::from(key));
        if table.ahead {
            prefetch(&table.slots[slot_of(hash, table.shift)]);
        }
        hashes[count] = hash;
        active[count] = key;
        count += usize::from(table.best.beats(*winner));
    }
    found.clear();
    for (&key, &hash) in active[..count].iter().zip(&hashes[..count]) {
        let slot = table.slots[slot_of(hash, table.shift)];
        let sign = hash << (63 - table.shift) >> 60;
        let wanted = slot >> (16 + sign) & 1 != 0;
        let node = table.nested & (slot & LENGTH == NODE);
        let hit = Hit::new(slot, key);
        let short = hit.len() <= SHORT;
        found.short.append(hit, wanted & short);
        found.long.append(hit, wanted & !short & !node);
        found.nodes.append(hit, wanted & node);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512i, __mmask8, _mm_cvtsi32_si128, _mm512_add_epi64, _mm512_and_si512,
        _mm512_andnot_si512, _mm512_loadu_si512, _mm512_mask_cmpeq_epu64_mask,
        _mm512_mask_cmpgt_epu64_mask, _mm512_mask_cmple_epu64_mask, _mm512_mask_cmplt_epu64_mask,
        _mm512_mask_cmpneq_epu64_mask, _mm512_mask_i64gather_epi64, _mm512_mask_test_epi64_mask,
        _mm512_maskz_compress_epi64, _mm512_maskz_loadu_epi64, _mm512_mullo_epi64, _mm512_or_si512,
        _mm512_set_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_sll_epi64,
        _mm512_slli_epi64, _mm512_srl_epi64, _mm512_srli_epi64, _mm512_srlv_epi64,
        _mm512_storeu_si512,
    };

    use super::{Found, HitList, NODE, Pending, Probed, SHORT, SIGNATURE};
    use crate::rule::Winner;
    use crate::simd::{Avx512, first_bits, prefetch};

    /// Hashes of the keys `from..from + 8`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    fn hashes<const W: usize>(table: &Probed<'_, W>, keys: &Pending<W>, from: usize) -> __m512i {
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
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    fn wanted(best: Winner, winners: &[Winner], from: usize) -> __mmask8 {
        let there = first_bits(winners.len() - from);
        // SAFETY: the mask selects winners that are there, at most eight;
        // masked-out lanes are not accessed. A winner is one word.
        let ranks = unsafe { _mm512_maskz_loadu_epi64(there, winners[from..].as_ptr().cast()) };
        let best = _mm512_set1_epi64(best.rank().cast_signed());
        _mm512_mask_cmplt_epu64_mask(there, best, ranks)
    }

    pub(super) fn ask<const W: usize>(_: Avx512, table: &Probed<'_, W>, keys: &Pending<W>) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { ask_avx512(table, keys) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    fn ask_avx512<const W: usize>(table: &Probed<'_, W>, keys: &Pending<W>) {
        let winners = keys.winners();
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
        keys: &Pending<W>,
        found: &mut Found,
    ) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { probe_avx512(table, keys, found) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn probe_avx512<const W: usize>(table: &Probed<'_, W>, keys: &Pending<W>, found: &mut Found) {
        let winners = keys.winners();
        let shift = _mm_cvtsi32_si128(table.shift.cast_signed());
        let sign_shift = _mm_cvtsi32_si128((63 - table.shift).cast_signed());
        let lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        let one = _mm512_set1_epi64(1);
        let node = _mm512_set1_epi64(NODE.cast_signed());
        let short = _mm512_set1_epi64(SHORT as i64);
        let signature = _mm512_set1_epi64(SIGNATURE.cast_signed());
        found.clear();
        for from in (0..winners.len()).step_by(8) {
            let wanted = wanted(table.best, winners, from);
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
            let keys =
                _mm512_slli_epi64::<16>(_mm512_add_epi64(lanes, _mm512_set1_epi64(from as i64)));
            let hits = _mm512_or_si512(_mm512_andnot_si512(signature, slot), keys);
            let len = _mm512_and_si512(slot, node);
            let runs = _mm512_mask_cmple_epu64_mask(pass, len, short);
            append(&mut found.short, runs, hits);
            let mut runs = _mm512_mask_cmpgt_epu64_mask(pass, len, short);
            if table.nested {
                let nodes = _mm512_mask_cmpeq_epu64_mask(runs, len, node);
                append(&mut found.nodes, nodes, hits);
                runs = _mm512_mask_cmpneq_epu64_mask(runs, len, node);
            }
            append(&mut found.long, runs, hits);
        }
    }

    /// Appends the selected hits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn append(list: &mut HitList, selected: __mmask8, hits: __m512i) {
        let to = &mut list.hits[list.len..list.len + 8];
        let hits = _mm512_maskz_compress_epi64(selected, hits);
        // SAFETY: eight words are written to a slice of eight; a hit is a word,
        // of any bits.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), hits) };
        list.len += selected.count_ones() as usize;
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
            let mut slot = || {
                let slot = splitmix(&mut state) & !NODE;
                let length = usize::try_from(splitmix(&mut state) % 6).unwrap();
                slot | [0, 1, 4, 5, 1024, NODE][length]
            };
            let slots: Vec<u64> = (0..1 << bits).map(|_| slot()).collect();
            let secrets = [splitmix(&mut state) | 1, splitmix(&mut state) | 1];
            let mask = [splitmix(&mut state), if bits == 0 { 0 } else { u64::MAX }];
            let table = Probed {
                mask: if bits == 0 { &[0, 0] } else { &mask },
                secrets: &secrets,
                shift: 63 - bits,
                slots: &slots,
                best: Winner::from_rank(500),
                nested: bits != 7,
                ahead: bits != 1,
            };
            for len in (0..=2 * 8 + 1).chain([BATCH - 1, BATCH]) {
                let rows: Vec<[u64; 2]> = (0..len)
                    .map(|_| [splitmix(&mut state), splitmix(&mut state)])
                    .collect();
                let winners: Vec<Winner> = (0..len)
                    .map(|_| Winner::from_rank(splitmix(&mut state) % 1000))
                    .collect();
                let mut keys = Pending::default();
                keys.fill(&rows, &winners);
                let mut expected = Found::default();
                probe_scalar(&table, &keys, &mut expected);
                total += expected.short.len.min(expected.long.len);
                assert!(table.nested || expected.nodes.len == 0);
                for isa in Isa::available() {
                    let mut found = Found::default();
                    probe(isa, &table, &keys, &mut found);
                    for (found, expected) in [
                        (&found.short, &expected.short),
                        (&found.long, &expected.long),
                        (&found.nodes, &expected.nodes),
                    ] {
                        assert_eq!(found.hits(), expected.hits(), "{isa}, {len} keys");
                    }
                }
            }
        }
        assert!(total > 100, "only {total} slots found");
    }
}
