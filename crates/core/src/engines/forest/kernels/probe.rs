//! Probing one table for many keys: hash, read slots, test signatures.
//!
//! # Idea
//! For the keys that are still [active](super::active):
//! ```text
//! for eight keys at a time:
//!     hash   = Σ (key[w] & mask[w]) × secret[w]
//!     place  = the hash's leading bits: slot number, four bits of signature
//!     prefetch the slots, if they do not fit a cache near the core
//! for eight keys at a time:
//!     slot   = slots[place >> 4], one by one
//!     wanted = slot's signature has the bit chosen by the place
//!     append the wanted slots to one of three lists: short runs, long runs,
//!     nested tables; the key's position replaces the signature
//! ```
//! No branch depends on one key. Eight keys are transposed into vectors of one word
//! each, directly from memory. Keys of two words, such as IPv4 five-tuples, are
//! loaded four at a time while all keys are active. Keys with fingerprints are
//! transposed into columns once for all tables; the columns are used while nearly
//! all keys are active.

use super::active::ActiveKeys;
use crate::contract::classifier::BATCH;
use crate::engines::forest::slot::{FoundSlot, Slot};
use crate::parts::simd::{Aligned, Isa, prefetch_early};

/// The data of a table that probing needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probed<'a, const W: usize> {
    pub(crate) mask: &'a [u64; W],
    /// Odd multipliers.
    pub(crate) secrets: &'a [u64; W],
    /// The table has 2 to the power of `63 - shift` slots.
    pub(crate) shift: u32,
    /// The words of [`Slot`]s.
    pub(crate) slots: &'a [u64],
    /// The most rules of a short run.
    pub(crate) max_short_len: usize,
    /// True if slots may hold nested tables.
    pub(crate) nested: bool,
    /// True if slots that do not fit a near cache are prefetched.
    pub(crate) prefetch: bool,
}

/// The hits of some keys, grouped by the next step.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Short runs.
    pub(crate) short: FoundSlots,
    /// Longer runs.
    pub(crate) long: FoundSlots,
    /// Nested tables, if the table may have any.
    pub(crate) nested: FoundSlots,
    /// The place of each active key.
    places: Box<Aligned<[u64; BATCH]>>,
}

/// Hits of one kind, at most one for each key.
#[derive(Clone, Debug)]
pub(crate) struct FoundSlots {
    /// With spare room for a vector behind the last.
    hits: Box<Aligned<[FoundSlot; BATCH + 8]>>,
    len: usize,
}

impl Found {
    pub(crate) fn clear(&mut self) {
        for list in [&mut self.short, &mut self.long, &mut self.nested] {
            list.len = 0;
        }
    }

    /// Appends a run, which is short if it has at most `max_short_len` rules. There may be
    /// [`BATCH`] hits in all.
    pub(crate) fn push_run(&mut self, hit: FoundSlot, max_short_len: usize) {
        let is_short = hit.len() <= max_short_len;
        self.short.append(hit, is_short);
        self.long.append(hit, !is_short);
    }
}

impl Default for Found {
    fn default() -> Found {
        Found {
            short: FoundSlots::default(),
            long: FoundSlots::default(),
            nested: FoundSlots::default(),
            places: Box::new(Aligned([0; BATCH])),
        }
    }
}

impl Default for FoundSlots {
    fn default() -> FoundSlots {
        FoundSlots {
            hits: Box::new(Aligned([FoundSlot::NONE; BATCH + 8])),
            len: 0,
        }
    }
}

impl FoundSlots {
    fn append(&mut self, hit: FoundSlot, wanted: bool) {
        self.hits[self.len] = hit;
        self.len += usize::from(wanted);
    }

    pub(crate) fn hits(&self) -> &[FoundSlot] {
        &self.hits[..self.len]
    }
}

/// The most slots, or words of runs, that fit a cache near the core: half a
/// megabyte. Measured in `bench/records/forest-experiments.md`, "prefetching runs
/// only"; a later row has one and eight megabytes.
pub(crate) const NEAR_WORDS: usize = 1 << 16;

/// Probes a table for all active keys.
///
/// # Panics
/// If the number of slots does not agree with the shift.
pub(crate) fn probe<const W: usize>(
    isa: Isa,
    table: &Probed<'_, W>,
    keys: &ActiveKeys<'_, W>,
    found: &mut Found,
) {
    assert!(
        (31..=63).contains(&table.shift) && table.slots.len() as u64 == 1u64 << (63 - table.shift),
        "as many slots as the shift says"
    );
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(proof) => x86::probe(proof, table, keys, found),
        _ => probe_scalar(table, keys, found),
    }
}

fn hash<const W: usize>(table: &Probed<'_, W>, key: &[u64; W]) -> u64 {
    let mut hash = 0u64;
    for ((word, mask), secret) in key.iter().zip(table.mask).zip(table.secrets) {
        hash = hash.wrapping_add((word & mask).wrapping_mul(*secret));
    }
    hash
}

/// Returns the slot number of a hash with, in the lowest four bits, its signature
/// bit.
fn place_of(hash: u64, shift: u32) -> u64 {
    hash >> (shift - 3)
}

/// The slot number of a place.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // as many bits as slots
fn index_of(place: u64) -> usize {
    (place >> 4) as usize
}

/// The signature bit of a place.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // four bits
fn signature_bit(place: u64) -> u32 {
    (place & 15) as u32
}

/// The scalar fallback.
fn probe_scalar<const W: usize>(
    table: &Probed<'_, W>,
    keys: &ActiveKeys<'_, W>,
    found: &mut Found,
) {
    let rows = keys.rows();
    for (&position, place) in keys.positions().iter().zip(found.places.iter_mut()) {
        *place = place_of(hash(table, &rows[usize::from(position)]), table.shift);
        if table.prefetch {
            prefetch_early(&table.slots[index_of(*place)]);
        }
    }
    found.clear();
    for (&position, &place) in keys.positions().iter().zip(found.places.iter()) {
        let slot = Slot::from_word(table.slots[index_of(place)]);
        let is_candidate = slot.may_hold(signature_bit(place));
        let nested = table.nested & slot.is_nested();
        let hit = FoundSlot::new(slot, position);
        let is_short = hit.len() <= table.max_short_len;
        found.short.append(hit, is_candidate & is_short);
        found.long.append(hit, is_candidate & !is_short & !nested);
        found.nested.append(hit, is_candidate & nested);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m512i, __mmask8, _mm_cvtsi32_si128, _mm_loadl_epi64, _mm_loadu_si128,
        _mm256_castsi128_si256, _mm256_inserti128_si256, _mm512_add_epi64, _mm512_and_si512,
        _mm512_andnot_si512, _mm512_castsi256_si512, _mm512_cvtepu8_epi64, _mm512_inserti64x4,
        _mm512_loadu_si512, _mm512_mask_cmpeq_epu64_mask, _mm512_mask_cmpgt_epu64_mask,
        _mm512_mask_cmple_epu64_mask, _mm512_mask_cmpneq_epu64_mask, _mm512_mask_test_epi64_mask,
        _mm512_maskz_compress_epi64, _mm512_maskz_loadu_epi64, _mm512_mullo_epi64, _mm512_or_si512,
        _mm512_permutex2var_epi64, _mm512_set_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
        _mm512_slli_epi64, _mm512_srl_epi64, _mm512_srli_epi64, _mm512_srlv_epi64,
        _mm512_storeu_si512,
    };

    use super::{ActiveKeys, Found, FoundSlots, NEAR_WORDS, Probed, index_of};
    use crate::contract::classifier::BATCH;
    use crate::engines::forest::slot::{LENGTH_MASK, SIGNATURE_AT, SIGNATURE_MASK, Slot};
    use crate::parts::simd::{Avx512, first_bits, prefetch_early};

    /// Writes the places of all active keys, eight at a time; beyond the last active
    /// key, of any keys. One function with its loops, so that loop invariants stay
    /// in registers.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    fn write_places<const W: usize>(
        table: &Probed<'_, W>,
        keys: &ActiveKeys<'_, W>,
        places: &mut [u64; BATCH],
    ) {
        // At most 32 bits of slot number, and four of signature.
        let shift = _mm_cvtsi32_si128(table.shift.cast_signed() - 3);
        let times = |key, word: usize| {
            let mask = _mm512_set1_epi64(table.mask[word].cast_signed());
            let secret = _mm512_set1_epi64(table.secrets[word].cast_signed());
            _mm512_mullo_epi64(_mm512_and_si512(key, mask), secret)
        };
        let must_prefetch = table.prefetch && table.slots.len() > NEAR_WORDS;
        let mut write = |from: usize, hash| {
            let written = &mut places[from..from + 8];
            let eight_places = _mm512_srl_epi64(hash, shift);
            // SAFETY: eight words are written to a slice of eight.
            unsafe { _mm512_storeu_si512(written.as_mut_ptr().cast(), eight_places) };
            if must_prefetch {
                for &place in &*written {
                    prefetch_early(&table.slots[index_of(place)]);
                }
            }
        };
        let len = keys.positions().len();
        let rows = keys.rows();
        if keys.all() && keys.in_columns() {
            // Tables hash few words of wide keys.
            let mut hashes = [0_u64; BATCH];
            for word in (0..W).filter(|&word| table.mask[word] != 0) {
                let column = keys.column(word);
                for (hash, column) in hashes
                    .chunks_mut(8)
                    .zip(column.chunks(8))
                    .take(len.div_ceil(8))
                {
                    // SAFETY: eight words are read from a slice of eight, twice, and
                    // eight are written to one.
                    unsafe {
                        let key = _mm512_loadu_si512(column.as_ptr().cast());
                        let sum = _mm512_loadu_si512(hash.as_ptr().cast());
                        let sum = _mm512_add_epi64(sum, times(key, word));
                        _mm512_storeu_si512(hash.as_mut_ptr().cast(), sum);
                    }
                }
            }
            for (hash, from) in hashes.chunks(8).zip((0..len).step_by(8)) {
                // SAFETY: eight words are read from a slice of eight.
                write(from, unsafe { _mm512_loadu_si512(hash.as_ptr().cast()) });
            }
            return;
        }
        if W != 2 {
            for from in (0..len).step_by(8) {
                let rows = keys
                    .eight(from)
                    .map(|position| &rows[usize::from(position)]);
                let mut hash = _mm512_setzero_si512();
                for word in 0..W {
                    // Tables hash few words of wide keys.
                    if table.mask[word] != 0 {
                        let [a, b, c, d, e, f, g, h] = rows.map(|row| row[word].cast_signed());
                        let key = _mm512_set_epi64(h, g, f, e, d, c, b, a);
                        hash = _mm512_add_epi64(hash, times(key, word));
                    }
                }
                write(from, hash);
            }
            return;
        }
        // Keys of two words, four at a time, and then word by word.
        let even = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
        let odd = _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1);
        let hash = |four, next_four| {
            let first = times(_mm512_permutex2var_epi64(four, even, next_four), 0);
            let second = times(_mm512_permutex2var_epi64(four, odd, next_four), 1);
            _mm512_add_epi64(first, second)
        };
        if keys.all() {
            let words = rows.as_flattened();
            for from in (0..len).step_by(8) {
                let load = |from: usize| {
                    let existing = first_bits(words.len().saturating_sub(from));
                    let pointer = words.as_ptr().wrapping_add(from);
                    // SAFETY: the mask selects existing words, at most eight;
                    // masked-out lanes are not accessed.
                    unsafe { _mm512_maskz_loadu_epi64(existing, pointer.cast()) }
                };
                write(from, hash(load(2 * from), load(2 * from + 8)));
            }
        } else {
            let row = |position: u8| -> __m128i {
                let row = &rows[usize::from(position)];
                // SAFETY: a row is two words.
                unsafe { _mm_loadu_si128(row.as_ptr().cast()) }
            };
            let two = |a, b| _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(row(a)), row(b));
            let four =
                |a, b, c, d| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(two(a, b)), two(c, d));
            for from in (0..len).step_by(8) {
                let &[a, b, c, d, e, f, g, h] = keys.eight(from);
                write(from, hash(four(a, b, c, d), four(e, f, g, h)));
            }
        }
    }

    pub(super) fn probe<const W: usize>(
        _: Avx512,
        table: &Probed<'_, W>,
        keys: &ActiveKeys<'_, W>,
        found: &mut Found,
    ) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { probe_avx512(table, keys, found) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn probe_avx512<const W: usize>(
        table: &Probed<'_, W>,
        keys: &ActiveKeys<'_, W>,
        found: &mut Found,
    ) {
        let len = keys.positions().len();
        write_places(table, keys, &mut found.places);
        let sign_bits = _mm512_set1_epi64(15);
        let lowest_bit = _mm512_set1_epi64(1);
        let length = _mm512_set1_epi64(LENGTH_MASK.cast_signed());
        let is_nested = _mm512_set1_epi64(Slot::NESTED_LENGTH.cast_signed());
        let short = _mm512_set1_epi64((table.max_short_len as u64).cast_signed());
        let signature = _mm512_set1_epi64(SIGNATURE_MASK.cast_signed());
        found.clear();
        for from in (0..len).step_by(8) {
            let existing = first_bits(len - from);
            let eight_places: &[u64; 8] = found.places[from..].first_chunk().expect("whole eights");
            // SAFETY: eight words are read from an array of eight.
            let place_vector = unsafe { _mm512_loadu_si512(eight_places.as_ptr().cast()) };
            let [a, b, c, d, e, f, g, h] = eight_places.map(|place| {
                // SAFETY: `place` was just written, as a hash shifted down by
                // `shift - 3`, so the index, four bits less, is below
                // 2^(63 - shift), which is the number of slots (asserted by
                // `probe`).
                unsafe { table.slots.get_unchecked(index_of(place)) }.cast_signed()
            });
            let slot = _mm512_set_epi64(h, g, f, e, d, c, b, a);
            let sign = _mm512_and_si512(place_vector, sign_bits);
            let signed = _mm512_srlv_epi64(_mm512_srli_epi64::<SIGNATURE_AT>(slot), sign);
            let pass = _mm512_mask_test_epi64_mask(existing, signed, lowest_bit);
            // SAFETY: eight bytes are read from an array of eight.
            let positions = unsafe { _mm_loadl_epi64(keys.eight(from).as_ptr().cast()) };
            let positions = _mm512_slli_epi64::<SIGNATURE_AT>(_mm512_cvtepu8_epi64(positions));
            let hits = _mm512_or_si512(_mm512_andnot_si512(signature, slot), positions);
            let len = _mm512_and_si512(slot, length);
            let runs = _mm512_mask_cmple_epu64_mask(pass, len, short);
            append(&mut found.short, runs, hits);
            let mut runs = _mm512_mask_cmpgt_epu64_mask(pass, len, short);
            if table.nested {
                let nested = _mm512_mask_cmpeq_epu64_mask(runs, len, is_nested);
                append(&mut found.nested, nested, hits);
                runs = _mm512_mask_cmpneq_epu64_mask(runs, len, is_nested);
            }
            append(&mut found.long, runs, hits);
        }
    }

    /// Appends the selected hits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn append(list: &mut FoundSlots, selected: __mmask8, hits: __m512i) {
        let target = &mut list.hits[list.len..list.len + 8];
        let hits = _mm512_maskz_compress_epi64(selected, hits);
        // SAFETY: eight words are written to a slice of eight; a hit is a word of
        // any bits.
        unsafe { _mm512_storeu_si512(target.as_mut_ptr().cast(), hits) };
        list.len += selected.count_ones() as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::forest::kernels::active::{TableBounds, Workspace};
    use crate::engines::forest::slot::{ConflictMask, LENGTH_MASK};
    use crate::model::rule::Winner;
    use crate::model::seed::splitmix;

    #[test]
    fn every_instruction_set_finds_the_same_at_every_length() {
        check::<2>();
        check::<6>();
    }

    fn check<const W: usize>() {
        let mut state = 5;
        let mut total = 0;
        for bits in [0, 1, 7, 17] {
            let mut slot = || {
                let slot = splitmix(&mut state) & !LENGTH_MASK;
                let length = usize::try_from(splitmix(&mut state) % 7).unwrap();
                slot | [0, 1, 4, 5, 9, 1024, Slot::NESTED_LENGTH][length]
            };
            let slots: Vec<u64> = (0..1 << bits).map(|_| slot()).collect();
            let secrets = std::array::from_fn(|_| splitmix(&mut state) | 1);
            // Some words are not hashed.
            let mask: [u64; W] = std::array::from_fn(|word| match word % 3 {
                _ if bits == 0 => 0,
                0 => splitmix(&mut state),
                1 => u64::MAX,
                _ => 0,
            });
            let table = Probed {
                mask: &mask,
                secrets: &secrets,
                shift: 63 - bits,
                slots: &slots,
                max_short_len: if W == 2 { 4 } else { 8 },
                nested: bits != 7,
                prefetch: bits != 1,
            };
            for len in (0..=2 * 8 + 1).chain([BATCH - 1, BATCH]) {
                let rows: Vec<[u64; W]> = (0..len)
                    .map(|_| std::array::from_fn(|_| splitmix(&mut state)))
                    .collect();
                let mut winners: Vec<Winner> = (0..len)
                    .map(|_| Winner::from_rank(1 + splitmix(&mut state) % 1000))
                    .collect();
                // Half of the keys are active, nearly all, or all.
                for best in [500, 50, 0] {
                    let bounds = TableBounds {
                        best: Winner::from_rank(best),
                        late_best: Winner::MISS,
                        group: ConflictMask::group(0),
                    };
                    for isa in Isa::available() {
                        for in_columns in [false, W > 2] {
                            let mut workspace = Workspace::default();
                            let mut keys = ActiveKeys::new(&rows, &mut winners, &mut workspace);
                            if in_columns {
                                keys.make_columns(isa);
                            }
                            keys.activate(isa, &bounds);
                            assert!(best > 0 || keys.all());
                            let mut expected = Found::default();
                            probe_scalar(&table, &keys, &mut expected);
                            total += expected.short.len.min(expected.long.len);
                            assert!(table.nested || expected.nested.len == 0);
                            let mut found = Found::default();
                            probe(isa, &table, &keys, &mut found);
                            for (found, expected) in [
                                (&found.short, &expected.short),
                                (&found.long, &expected.long),
                                (&found.nested, &expected.nested),
                            ] {
                                assert_eq!(found.hits(), expected.hits(), "{isa}, {len} keys");
                            }
                        }
                    }
                }
            }
        }
        assert!(total > 100, "only {total} slots found");
    }
}
