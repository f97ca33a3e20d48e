//! AVX2: vectors of four words, and pairs of them.

use std::arch::x86_64::*;

use super::execute::{binary, execute};
use super::pair::Pair;
use super::vector::{Kernel, Lanes, Simd, Vector};

/// Proof that the processor has AVX2, BMI1, BMI2, LZCNT and POPCNT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(super) fn find() -> Option<Avx2> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Avx2(()))
    }
}

impl Simd for Avx2 {
    type Half = Four;
    type Full = Pair<Four>;
    const MULTIPLIES: bool = true;
}

/// Runs a kernel with the instructions that an [`Avx2`] proves.
#[inline(always)]
pub(super) fn run<K: Kernel>(proof: Avx2, kernel: K) -> K::Output {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn with_instructions<K: Kernel>(proof: Avx2, kernel: K) -> K::Output {
        kernel.run(proof)
    }
    // SAFETY: holding an `Avx2` means that the processor has the features.
    unsafe { with_instructions(proof, kernel) }
}

/// Four words.
#[derive(Clone, Copy)]
pub(crate) struct Four(__m256i);

/// Eight 32-bit words that select parts of a vector, or masks for them.
#[repr(align(32))]
struct Parts([[u32; 8]; 16]);

/// For each set of lanes: the order of 32-bit parts that brings its lanes to the front.
static COMPRESSED: Parts = Parts(part_orders(true));

/// For each set of lanes: the order of 32-bit parts that brings packed words to its
/// lanes.
static EXPANDED: Parts = Parts(part_orders(false));

/// For each set of lanes: the order of 32-bit parts that moves them to the front, or
/// back from there.
#[allow(clippy::cast_possible_truncation)] // below four
const fn part_orders(to_front: bool) -> [[u32; 8]; 16] {
    let mut orders = [[0; 8]; 16];
    let mut selected = 0;
    while selected < 16 {
        let (mut lane, mut packed) = (0, 0);
        while lane < 4 {
            if selected >> lane & 1 != 0 {
                let (to, from) = if to_front {
                    (packed, lane)
                } else {
                    (lane, packed)
                };
                orders[selected][2 * to] = 2 * from as u32;
                orders[selected][2 * to + 1] = 2 * from as u32 + 1;
                packed += 1;
            }
            lane += 1;
        }
        selected += 1;
    }
    orders
}

/// For each set of lanes: all ones in the other lanes.
static UNSELECTED: Parts = {
    let mut masks = [[0; 8]; 16];
    let mut selected = 0;
    while selected < 16 {
        let mut part = 0;
        while part < 8 {
            if selected >> (part / 2) & 1 == 0 {
                masks[selected][part] = u32::MAX;
            }
            part += 1;
        }
        selected += 1;
    }
    Parts(masks)
};

impl Parts {
    /// The parts of a set of lanes.
    #[inline(always)]
    fn of(&self, selected: Lanes) -> Four {
        let parts = &self.0[usize::from(selected & 15)];
        // SAFETY: eight 32-bit words are read from an array of eight.
        Four(unsafe { _mm256_loadu_si256(parts.as_ptr().cast()) })
    }
}

/// Masks for loading 0 to 4 lanes: the four words from position `4 - lanes` on.
static FIRST_MASKS: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

impl Four {
    /// A bit for each lane whose highest bit is set.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // four bits
    fn high_bits(self) -> Lanes {
        execute!(_mm256_movemask_pd(_mm256_castsi256_pd(self.0))) as Lanes
    }
}

impl Vector for Four {
    type Set = Avx2;
    const LANE_COUNT: usize = 4;
    type First = Four;

    binary! {
        and: _mm256_and_si256,
        or: _mm256_or_si256,
        xor: _mm256_xor_si256,
        add: _mm256_add_epi64,
        shift_right_each: _mm256_srlv_epi64,
        multiply_u16: _mm256_mullo_epi16,
        multiply_high_u16: _mm256_mulhi_epu16,
        saturating_sub_u16: _mm256_subs_epu16,
    }

    #[inline(always)]
    fn splat(_: Avx2, word: u64) -> Four {
        Four(execute!(_mm256_set1_epi64x(word.cast_signed())))
    }

    #[inline(always)]
    unsafe fn load_unchecked(_: Avx2, words: *const u64) -> Four {
        // SAFETY: the caller promises that the words are readable.
        Four(unsafe { _mm256_loadu_si256(words.cast()) })
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // four bits
    fn first_lanes(_: Avx2, count: usize) -> Lanes {
        execute!(_bzhi_u32(0xf, count.min(4) as u32)) as Lanes
    }

    #[inline(always)]
    fn first(_: Avx2, count: usize) -> Four {
        let masks = &FIRST_MASKS[4 - count.min(4)..][..4];
        // SAFETY: the slice has a word for each lane.
        Four(unsafe { _mm256_loadu_si256(masks.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn load_first(_: Avx2, words: *const u64, first: Four) -> Four {
        // SAFETY: the caller promises that the selected words are readable; the memory of
        // other lanes is not accessed.
        Four(unsafe { _mm256_maskload_epi64(words.cast(), first.0) })
    }

    #[inline(always)]
    unsafe fn load_expanded(set: Avx2, words: *const u64, selected: Lanes) -> Four {
        let first = Four::first(set, selected.count_ones() as usize);
        // SAFETY: a word is read for each selected lane.
        let packed = unsafe { Four::load_first(set, words, first) };
        let order = EXPANDED.of(selected);
        let expanded = Four(execute!(_mm256_permutevar8x32_epi32(packed.0, order.0)));
        expanded.or(UNSELECTED.of(selected))
    }

    #[inline(always)]
    unsafe fn gather(_: Avx2, words: &[u64], index: impl Fn(usize) -> usize) -> Four {
        let word = |lane| {
            let index = index(lane);
            debug_assert!(index < words.len(), "indexes in bounds");
            // SAFETY: the caller promises that all indexes are in bounds.
            unsafe { words.get_unchecked(index).cast_signed() }
        };
        Four(execute!(_mm256_set_epi64x(
            word(3),
            word(2),
            word(1),
            word(0)
        )))
    }

    #[inline(always)]
    unsafe fn gather_two(_: Avx2, words: &[u64], index: impl Fn(usize) -> usize) -> (Four, Four) {
        let two = |lane| {
            let index = index(lane);
            debug_assert!(index + 1 < words.len(), "indexes in bounds");
            // SAFETY: the caller promises that two words are readable from each index on.
            unsafe { _mm_loadu_si128(words.as_ptr().add(index).cast()) }
        };
        let [a, b, c, d] = [two(0), two(1), two(2), two(3)];
        execute!({
            let even = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), c);
            let odd = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(b), d);
            let first = Four(_mm256_unpacklo_epi64(even, odd));
            (first, Four(_mm256_unpackhi_epi64(even, odd)))
        })
    }

    #[inline(always)]
    fn from_bytes(_: Avx2, bytes: u64) -> Four {
        Four(execute!(_mm256_cvtepu8_epi64(_mm_cvtsi64_si128(
            bytes.cast_signed()
        ))))
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        let words = &mut words[..Four::LANE_COUNT];
        // SAFETY: the slice has a word for each lane.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn compress(self, selected: Lanes, words: &mut [u64]) {
        let order = COMPRESSED.of(selected);
        Four(execute!(_mm256_permutevar8x32_epi32(self.0, order.0))).store(words);
    }

    #[inline(always)]
    fn and_not(self, other: Four) -> Four {
        Four(execute!(_mm256_andnot_si256(other.0, self.0)))
    }

    /// From three products of 32-bit halves.
    #[inline(always)]
    fn multiply(self, other: Four) -> Four {
        let (a, b) = (self.0, other.0);
        execute!({
            let swapped = _mm256_shuffle_epi32::<0b10_11_00_01>(b);
            let crossed = _mm256_mullo_epi32(a, swapped);
            let sums = _mm256_add_epi32(crossed, _mm256_srli_epi64::<32>(crossed));
            let upper = _mm256_slli_epi64::<32>(sums);
            Four(_mm256_add_epi64(_mm256_mul_epu32(a, b), upper))
        })
    }

    #[inline(always)]
    fn shift_left<const BITS: i32>(self) -> Four {
        Four(execute!(_mm256_slli_epi64::<BITS>(self.0)))
    }

    #[inline(always)]
    fn shift_right<const BITS: i32>(self) -> Four {
        Four(execute!(_mm256_srli_epi64::<BITS>(self.0)))
    }

    #[inline(always)]
    fn shift_left_by(self, bits: u32) -> Four {
        Four(execute!(_mm256_sll_epi64(
            self.0,
            _mm_cvtsi32_si128(bits.cast_signed())
        )))
    }

    #[inline(always)]
    fn shift_right_by(self, bits: u32) -> Four {
        Four(execute!(_mm256_srl_epi64(
            self.0,
            _mm_cvtsi32_si128(bits.cast_signed())
        )))
    }

    #[inline(always)]
    fn zeros(self) -> Lanes {
        Four(execute!(_mm256_cmpeq_epi64(self.0, _mm256_setzero_si256()))).high_bits()
    }

    /// There is only a signed comparison, so the highest bits are flipped.
    #[inline(always)]
    fn less_than(self, other: Four) -> Lanes {
        let highest = Four(execute!(_mm256_set1_epi64x(i64::MIN)));
        self.xor(highest).less_than_i63(other.xor(highest))
    }

    #[inline(always)]
    fn less_than_i63(self, other: Four) -> Lanes {
        Four(execute!(_mm256_cmpgt_epi64(other.0, self.0))).high_bits()
    }
}
