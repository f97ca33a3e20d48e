//! AVX-512: vectors of eight words, and of four with the same kind of instructions.

use std::arch::x86_64::*;

use super::execute::{binary, execute};
use super::vector::{Kernel, Lanes, Simd, Vector};

/// Proof that the processor has AVX-512 (F, BW, DQ, VL), BMI1, BMI2 and POPCNT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(super) fn find() -> Option<Avx512> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Avx512(()))
    }
}

impl Simd for Avx512 {
    type Half = Four;
    type Full = Eight;
    const MULTIPLIES: bool = true;
}

/// Runs a kernel with the instructions that an [`Avx512`] proves.
#[inline(always)]
pub(super) fn run<K: Kernel>(proof: Avx512, kernel: K) -> K::Output {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
    fn with_instructions<K: Kernel>(proof: Avx512, kernel: K) -> K::Output {
        kernel.run(proof)
    }
    // SAFETY: holding an `Avx512` means that the processor has the features.
    unsafe { with_instructions(proof, kernel) }
}

/// Eight words.
#[derive(Clone, Copy)]
pub(crate) struct Eight(__m512i);

/// Four words.
#[derive(Clone, Copy)]
pub(crate) struct Four(__m256i);

/// Bits for the first `count` of `lanes` lanes. Compilers shift only the lower part of a
/// register, so a shift would depend on the register's previous contents.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // at most eight
fn first_bits(count: usize, lanes: usize) -> Lanes {
    execute!(_bzhi_u32((1 << lanes) - 1, count.min(lanes) as u32)) as Lanes
}

/// The words with even numbers, and the words with odd numbers, of sixteen.
#[inline]
#[target_feature(enable = "avx512f")]
fn separate(first: __m512i, second: __m512i) -> (Eight, Eight) {
    let even = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
    let odd = _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1);
    (
        Eight(_mm512_permutex2var_epi64(first, even, second)),
        Eight(_mm512_permutex2var_epi64(first, odd, second)),
    )
}

impl Vector for Eight {
    type Set = Avx512;
    const LANE_COUNT: usize = 8;
    type First = Lanes;

    binary! {
        and: _mm512_and_si512,
        or: _mm512_or_si512,
        xor: _mm512_xor_si512,
        add: _mm512_add_epi64,
        multiply: _mm512_mullo_epi64,
        shift_right_each: _mm512_srlv_epi64,
        multiply_u16: _mm512_mullo_epi16,
        multiply_high_u16: _mm512_mulhi_epu16,
        saturating_sub_u16: _mm512_subs_epu16,
    }

    #[inline(always)]
    fn splat(_: Avx512, word: u64) -> Eight {
        Eight(execute!(_mm512_set1_epi64(word.cast_signed())))
    }

    #[inline(always)]
    unsafe fn load_unchecked(_: Avx512, words: *const u64) -> Eight {
        // SAFETY: the caller promises that the words are readable.
        Eight(unsafe { _mm512_loadu_si512(words.cast()) })
    }

    #[inline(always)]
    fn first(set: Avx512, count: usize) -> Lanes {
        Eight::first_lanes(set, count)
    }

    #[inline(always)]
    fn first_lanes(_: Avx512, count: usize) -> Lanes {
        first_bits(count, Eight::LANE_COUNT)
    }

    #[inline(always)]
    unsafe fn load_first(_: Avx512, words: *const u64, first: Lanes) -> Eight {
        // SAFETY: the caller promises that the selected words are readable; the memory of
        // other lanes is not accessed.
        Eight(unsafe { _mm512_maskz_loadu_epi64(first, words.cast()) })
    }

    #[inline(always)]
    unsafe fn load_expanded(set: Avx512, words: *const u64, selected: Lanes) -> Eight {
        let first = Eight::first(set, selected.count_ones() as usize);
        // SAFETY: a word is read for each selected lane.
        let packed = unsafe { Eight::load_first(set, words, first) };
        let ones = Eight::splat(set, u64::MAX);
        Eight(execute!(_mm512_mask_expand_epi64(
            ones.0, selected, packed.0
        )))
    }

    #[inline(always)]
    unsafe fn gather(_: Avx512, words: &[u64], index: impl Fn(usize) -> usize) -> Eight {
        let word = |lane| {
            let index = index(lane);
            debug_assert!(index < words.len(), "indexes in bounds");
            // SAFETY: the caller promises that all indexes are in bounds.
            unsafe { words.get_unchecked(index).cast_signed() }
        };
        Eight(execute!(_mm512_set_epi64(
            word(7),
            word(6),
            word(5),
            word(4),
            word(3),
            word(2),
            word(1),
            word(0)
        )))
    }

    #[inline(always)]
    unsafe fn gather_two(
        _: Avx512,
        words: &[u64],
        index: impl Fn(usize) -> usize,
    ) -> (Eight, Eight) {
        let two = |lane| {
            let index = index(lane);
            debug_assert!(index + 1 < words.len(), "indexes in bounds");
            // SAFETY: the caller promises that two words are readable from each index on.
            unsafe { _mm_loadu_si128(words.as_ptr().add(index).cast()) }
        };
        let [a, b, c, d] = [two(0), two(1), two(2), two(3)];
        let [e, f, g, h] = [two(4), two(5), two(6), two(7)];
        execute!({
            let [a, c, e, g] = [a, c, e, g].map(|two| _mm256_castsi128_si256(two));
            let ab = _mm512_castsi256_si512(_mm256_inserti128_si256::<1>(a, b));
            let cd = _mm256_inserti128_si256::<1>(c, d);
            let ef = _mm512_castsi256_si512(_mm256_inserti128_si256::<1>(e, f));
            let gh = _mm256_inserti128_si256::<1>(g, h);
            separate(
                _mm512_inserti64x4::<1>(ab, cd),
                _mm512_inserti64x4::<1>(ef, gh),
            )
        })
    }

    #[inline(always)]
    fn load_two(_: Avx512, words: &[u64]) -> (Eight, Eight) {
        let words = &words[..16];
        // SAFETY: sixteen words are read from a slice of sixteen.
        unsafe {
            let first = _mm512_loadu_si512(words.as_ptr().cast());
            separate(first, _mm512_loadu_si512(words.as_ptr().add(8).cast()))
        }
    }

    #[inline(always)]
    fn from_bytes(_: Avx512, bytes: u64) -> Eight {
        Eight(execute!(_mm512_cvtepu8_epi64(_mm_cvtsi64_si128(
            bytes.cast_signed()
        ))))
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        let words = &mut words[..Eight::LANE_COUNT];
        // SAFETY: the slice has a word for each lane.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn compress(self, selected: Lanes, words: &mut [u64]) {
        Eight(execute!(_mm512_maskz_compress_epi64(selected, self.0))).store(words);
    }

    /// No address depends on the selected lanes.
    #[inline(always)]
    unsafe fn first_selected(self, selected: Lanes, _: *const u64) -> u64 {
        let none = execute!(_mm512_set1_epi64(-1));
        let packed = execute!(_mm512_mask_compress_epi64(none, selected, self.0));
        execute!(_mm_cvtsi128_si64(_mm512_castsi512_si128(packed))).cast_unsigned()
    }

    #[inline(always)]
    fn and_not(self, other: Eight) -> Eight {
        Eight(execute!(_mm512_andnot_si512(other.0, self.0)))
    }

    #[inline(always)]
    fn shift_left<const BITS: i32>(self) -> Eight {
        Eight(execute!(_mm512_sll_epi64(self.0, _mm_cvtsi32_si128(BITS))))
    }

    #[inline(always)]
    fn shift_right<const BITS: i32>(self) -> Eight {
        Eight(execute!(_mm512_srl_epi64(self.0, _mm_cvtsi32_si128(BITS))))
    }

    #[inline(always)]
    fn shift_left_by(self, bits: u32) -> Eight {
        Eight(execute!(_mm512_sll_epi64(
            self.0,
            _mm_cvtsi32_si128(bits.cast_signed())
        )))
    }

    #[inline(always)]
    fn shift_right_by(self, bits: u32) -> Eight {
        Eight(execute!(_mm512_srl_epi64(
            self.0,
            _mm_cvtsi32_si128(bits.cast_signed())
        )))
    }

    #[inline(always)]
    fn zeros(self) -> Lanes {
        execute!(_mm512_testn_epi64_mask(self.0, self.0))
    }

    #[inline(always)]
    fn zeros_among(self, lanes: Lanes) -> Lanes {
        execute!(_mm512_mask_testn_epi64_mask(lanes, self.0, self.0))
    }

    #[inline(always)]
    fn less_than(self, other: Eight) -> Lanes {
        execute!(_mm512_cmplt_epu64_mask(self.0, other.0))
    }

    #[inline(always)]
    fn less_than_i63(self, other: Eight) -> Lanes {
        self.less_than(other)
    }
}

impl Vector for Four {
    type Set = Avx512;
    const LANE_COUNT: usize = 4;
    type First = Lanes;

    binary! {
        and: _mm256_and_si256,
        or: _mm256_or_si256,
        xor: _mm256_xor_si256,
        add: _mm256_add_epi64,
        multiply: _mm256_mullo_epi64,
        shift_right_each: _mm256_srlv_epi64,
        multiply_u16: _mm256_mullo_epi16,
        multiply_high_u16: _mm256_mulhi_epu16,
        saturating_sub_u16: _mm256_subs_epu16,
    }

    #[inline(always)]
    fn splat(_: Avx512, word: u64) -> Four {
        Four(execute!(_mm256_set1_epi64x(word.cast_signed())))
    }

    #[inline(always)]
    unsafe fn load_unchecked(_: Avx512, words: *const u64) -> Four {
        // SAFETY: the caller promises that the words are readable.
        Four(unsafe { _mm256_loadu_si256(words.cast()) })
    }

    #[inline(always)]
    fn first(set: Avx512, count: usize) -> Lanes {
        Four::first_lanes(set, count)
    }

    #[inline(always)]
    fn first_lanes(_: Avx512, count: usize) -> Lanes {
        first_bits(count, Four::LANE_COUNT)
    }

    #[inline(always)]
    unsafe fn load_first(_: Avx512, words: *const u64, first: Lanes) -> Four {
        // SAFETY: the caller promises that the selected words are readable; the memory of
        // other lanes is not accessed.
        Four(unsafe { _mm256_maskz_loadu_epi64(first, words.cast()) })
    }

    #[inline(always)]
    unsafe fn load_expanded(set: Avx512, words: *const u64, selected: Lanes) -> Four {
        let first = Four::first(set, selected.count_ones() as usize);
        // SAFETY: a word is read for each selected lane.
        let packed = unsafe { Four::load_first(set, words, first) };
        let ones = Four::splat(set, u64::MAX);
        Four(execute!(_mm256_mask_expand_epi64(
            ones.0, selected, packed.0
        )))
    }

    #[inline(always)]
    unsafe fn gather(_: Avx512, words: &[u64], index: impl Fn(usize) -> usize) -> Four {
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
    fn from_bytes(_: Avx512, bytes: u64) -> Four {
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
        Four(execute!(_mm256_maskz_compress_epi64(selected, self.0))).store(words);
    }

    /// No address depends on the selected lanes.
    #[inline(always)]
    unsafe fn first_selected(self, selected: Lanes, _: *const u64) -> u64 {
        let none = execute!(_mm256_set1_epi64x(-1));
        let packed = execute!(_mm256_mask_compress_epi64(none, selected, self.0));
        execute!(_mm_cvtsi128_si64(_mm256_castsi256_si128(packed))).cast_unsigned()
    }

    #[inline(always)]
    fn and_not(self, other: Four) -> Four {
        Four(execute!(_mm256_andnot_si256(other.0, self.0)))
    }

    #[inline(always)]
    fn shift_left<const BITS: i32>(self) -> Four {
        Four(execute!(_mm256_sll_epi64(self.0, _mm_cvtsi32_si128(BITS))))
    }

    #[inline(always)]
    fn shift_right<const BITS: i32>(self) -> Four {
        Four(execute!(_mm256_srl_epi64(self.0, _mm_cvtsi32_si128(BITS))))
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
        execute!(_mm256_testn_epi64_mask(self.0, self.0))
    }

    #[inline(always)]
    fn zeros_among(self, lanes: Lanes) -> Lanes {
        execute!(_mm256_mask_testn_epi64_mask(lanes, self.0, self.0))
    }

    #[inline(always)]
    fn less_than(self, other: Four) -> Lanes {
        execute!(_mm256_cmplt_epu64_mask(self.0, other.0))
    }

    #[inline(always)]
    fn less_than_i63(self, other: Four) -> Lanes {
        self.less_than(other)
    }
}
