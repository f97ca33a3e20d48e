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
//! each, directly from memory; while all keys are active, from adjacent keys. Keys with
//! fingerprints are transposed into columns once for all tables; the columns are used
//! while nearly all keys are active. Without vectors, keys are hashed one by one.

use super::active::ActiveKeys;
use crate::contract::classifier::BATCH;
use crate::engines::forest::slot::{FoundSlot, LENGTH_MASK, SIGNATURE_AT, SIGNATURE_MASK, Slot};
use crate::parts::simd::vector::{Kernel, Lanes, Simd, Vector};
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
    /// With spare room for a vector behind the last.
    places: Box<Aligned<[u64; BATCH + 8]>>,
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
            places: Box::new(Aligned([0; BATCH + 8])),
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

    /// Appends the selected lanes.
    #[inline(always)]
    fn append_lanes<V: Vector>(&mut self, hits: V, selected: Lanes) {
        let room = &mut self.hits[self.len..];
        // SAFETY: a `FoundSlot` is a word, and any word is one.
        let words =
            unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr().cast::<u64>(), room.len()) };
        hits.compress(selected, words);
        self.len += selected.count_ones() as usize;
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
    isa.run(Probe { table, keys, found });
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

/// [`probe`] as a kernel.
struct Probe<'p, 't, 'k, const W: usize> {
    table: &'p Probed<'t, W>,
    keys: &'p ActiveKeys<'k, W>,
    found: &'p mut Found,
}

impl<const W: usize> Kernel for Probe<'_, '_, '_, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Probe { table, keys, found } = self;
        let places = &mut found.places.0[..];
        if !S::MULTIPLIES {
            table.write_places_singly::<S>(keys, places);
        } else if keys.all() && keys.in_columns() {
            table.write_places_of_columns::<S>(simd, keys, places);
        } else {
            table.write_places::<S>(simd, keys, places);
        }
        if table.prefetch && table.slots.len() > NEAR_WORDS {
            for &place in &places[..keys.positions().len()] {
                prefetch_early(&table.slots[index_of(place)]);
            }
        }
        table.read_slots::<S>(simd, keys, found);
    }
}

impl<const W: usize> Probed<'_, W> {
    /// Like [`write_places`](Self::write_places), but hashes one key after the other.
    #[inline(always)]
    fn write_places_singly<S: Simd>(&self, keys: &ActiveKeys<'_, W>, places: &mut [u64]) {
        // Copies, which the compiler keeps in registers.
        let (mask, secrets, shift) = (*self.mask, *self.secrets, self.shift);
        let rows = keys.rows();
        for from in (0..keys.positions().len()).step_by(S::Full::LANE_COUNT) {
            let positions = &keys.eight(from)[..S::Full::LANE_COUNT];
            for (&position, place) in positions.iter().zip(&mut places[from..]) {
                let mut hash = 0_u64;
                for (word, &key) in rows[usize::from(position)].iter().enumerate() {
                    // Tables hash few words of wide keys.
                    if W <= 2 || mask[word] != 0 {
                        hash = hash.wrapping_add((key & mask[word]).wrapping_mul(secrets[word]));
                    }
                }
                *place = place_of(hash, shift);
            }
        }
    }

    /// Writes the places of all keys from their columns.
    #[inline(always)]
    fn write_places_of_columns<S: Simd>(
        &self,
        simd: S,
        keys: &ActiveKeys<'_, W>,
        places: &mut [u64],
    ) {
        let len = keys.positions().len();
        let mut hashes = [0_u64; BATCH];
        // Tables hash few words of wide keys.
        for word in (0..W).filter(|&word| self.mask[word] != 0) {
            let column = keys.column(word);
            for from in (0..len).step_by(S::Full::LANE_COUNT) {
                let key = S::Full::load(simd, &column[from..]);
                let sum = S::Full::load(simd, &hashes[from..]);
                sum.add(self.times::<S>(simd, key, word))
                    .store(&mut hashes[from..]);
            }
        }
        for from in (0..len).step_by(S::Full::LANE_COUNT) {
            let hash = S::Full::load(simd, &hashes[from..]);
            hash.shift_right_by(self.shift - 3)
                .store(&mut places[from..]);
        }
    }

    /// Writes the places of all active keys, up to eight at a time; beyond the last
    /// active key, of any keys.
    #[inline(always)]
    fn write_places<S: Simd>(&self, simd: S, keys: &ActiveKeys<'_, W>, places: &mut [u64]) {
        for from in (0..keys.positions().len()).step_by(S::Full::LANE_COUNT) {
            let hash = if W == 2 {
                let (first, second) = keys.two_words::<S>(simd, from);
                let first = self.times::<S>(simd, first, 0);
                first.add(self.times::<S>(simd, second, 1))
            } else {
                let mut hash = S::Full::splat(simd, 0);
                for word in 0..W {
                    // Tables hash few words of wide keys.
                    if self.mask[word] != 0 {
                        let key = keys.word::<S>(simd, from, word);
                        hash = hash.add(self.times::<S>(simd, key, word));
                    }
                }
                hash
            };
            hash.shift_right_by(self.shift - 3)
                .store(&mut places[from..]);
        }
    }

    /// One word's part of the hashes.
    #[inline(always)]
    fn times<S: Simd>(&self, simd: S, key: S::Full, word: usize) -> S::Full {
        let masked = key.and(S::Full::splat(simd, self.mask[word]));
        masked.multiply(S::Full::splat(simd, self.secrets[word]))
    }

    /// Reads the slots of all places, and lists the slots that may hold a match.
    #[inline(always)]
    fn read_slots<S: Simd>(&self, simd: S, keys: &ActiveKeys<'_, W>, found: &mut Found) {
        let len = keys.positions().len();
        let sign_bits = S::Full::splat(simd, 15);
        let lowest_bit = S::Full::splat(simd, 1);
        let length = S::Full::splat(simd, LENGTH_MASK);
        let is_nested = S::Full::splat(simd, Slot::NESTED_LENGTH);
        let short = S::Full::splat(simd, self.max_short_len as u64);
        let signature = S::Full::splat(simd, SIGNATURE_MASK);
        found.clear();
        for from in (0..len).step_by(S::Full::LANE_COUNT) {
            let places: &[u64; 8] = found.places[from..].first_chunk().expect("room for eight");
            // SAFETY: the places of whole vectors were just written, as hashes shifted down
            // by `shift - 3`, so each index, four bits less, is below 2^(63 - shift), which
            // is the number of slots (asserted by `probe`).
            let slot = unsafe { S::Full::gather(simd, self.slots, |lane| index_of(places[lane])) };
            let sign = S::Full::load(simd, places).and(sign_bits);
            let signed = slot.shift_right::<{ SIGNATURE_AT.cast_signed() }>();
            let signed = signed.shift_right_each(sign);
            let pass = !signed.and(lowest_bit).zeros() & S::Full::first_lanes(simd, len - from);
            let positions = S::Full::from_bytes(simd, u64::from_le_bytes(*keys.eight(from)));
            let positions = positions.shift_left::<{ SIGNATURE_AT.cast_signed() }>();
            let hits = slot.and_not(signature).or(positions);
            let len = slot.and(length);
            let is_long = short.less_than_i63(len);
            found.short.append_lanes(hits, pass & !is_long);
            let mut long = pass & is_long;
            if self.nested {
                let nested = len.xor(is_nested).zeros();
                found.nested.append_lanes(hits, long & nested);
                long &= !nested;
            }
            found.long.append_lanes(hits, long);
        }
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
        // From many slots to few, in the same memory: places of an earlier table are
        // beyond the slots of a later one.
        let mut found_by: Vec<(Isa, Found)> = Isa::available()
            .map(|isa| (isa, Found::default()))
            .collect();
        for bits in [17, 7, 1, 0] {
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
                    for (isa, found) in &mut found_by {
                        let isa = *isa;
                        for in_columns in [false, W > 2] {
                            let mut workspace = Workspace::default();
                            let mut keys = ActiveKeys::new(&rows, &mut winners, &mut workspace);
                            if in_columns {
                                keys.make_columns(isa);
                            }
                            keys.activate(isa, &bounds);
                            assert!(best > 0 || keys.all());
                            let mut expected = Found::default();
                            probe(Isa::Scalar, &table, &keys, &mut expected);
                            total += expected.short.len.min(expected.long.len);
                            assert!(table.nested || expected.nested.len == 0);
                            probe(isa, &table, &keys, found);
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
