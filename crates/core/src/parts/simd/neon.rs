//! NEON: vectors of two words, in pairs.

use std::arch::aarch64::*;

use super::execute::{binary, execute};
use super::pair::Pair;
use super::vector::{Lanes, Simd, Vector};

/// Proof that the processor has NEON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neon(());

impl Neon {
    /// Every processor of this kind has it.
    pub(super) const ALWAYS: Neon = Neon(());
}

impl Simd for Neon {
    type Half = Pair<Two>;
    type Full = Pair<Pair<Two>>;
    const MULTIPLIES: bool = false;
}

/// Two words.
#[derive(Clone, Copy)]
pub(crate) struct Two(uint64x2_t);

impl Two {
    #[inline(always)]
    fn of(low: u64, high: u64) -> Two {
        Two(execute!(vcombine_u64(vcreate_u64(low), vcreate_u64(high))))
    }

    #[inline(always)]
    fn words(self) -> [u64; 2] {
        execute!([vgetq_lane_u64::<0>(self.0), vgetq_lane_u64::<1>(self.0)])
    }

    /// The vector as 16-bit parts.
    #[inline(always)]
    fn parts(self) -> uint16x8_t {
        execute!(vreinterpretq_u16_u64(self.0))
    }

    #[inline(always)]
    fn from_parts(parts: uint16x8_t) -> Two {
        Two(execute!(vreinterpretq_u64_u16(parts)))
    }

    /// A bit for each lane whose lowest bit is set.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // a bit each
    fn low_bits(self) -> Lanes {
        let [low, high] = self.words();
        (low & 1 | (high & 1) << 1) as Lanes
    }
}

impl Vector for Two {
    type Set = Neon;
    const LANE_COUNT: usize = 2;
    type First = usize;

    binary! {
        and: vandq_u64,
        or: vorrq_u64,
        xor: veorq_u64,
        add: vaddq_u64,
        and_not: vbicq_u64,
    }

    #[inline(always)]
    fn splat(_: Neon, word: u64) -> Two {
        Two(execute!(vdupq_n_u64(word)))
    }

    #[inline(always)]
    unsafe fn load_unchecked(_: Neon, words: *const u64) -> Two {
        // SAFETY: the caller promises that the words are readable.
        Two(unsafe { vld1q_u64(words) })
    }

    #[inline(always)]
    fn first(_: Neon, count: usize) -> usize {
        count.min(Two::LANE_COUNT)
    }

    #[inline(always)]
    unsafe fn load_first(_: Neon, words: *const u64, first: usize) -> Two {
        // SAFETY: the caller promises that the first words are readable.
        unsafe {
            match first {
                0 => Two::of(0, 0),
                1 => Two::of(*words, 0),
                _ => Two(vld1q_u64(words)),
            }
        }
    }

    #[inline(always)]
    unsafe fn load_expanded(_: Neon, words: *const u64, selected: Lanes) -> Two {
        // SAFETY: the caller promises a word for each selected lane.
        unsafe {
            match selected & 3 {
                0 => Two::of(u64::MAX, u64::MAX),
                1 => Two::of(*words, u64::MAX),
                2 => Two::of(u64::MAX, *words),
                _ => Two(vld1q_u64(words)),
            }
        }
    }

    #[inline(always)]
    unsafe fn gather(_: Neon, words: &[u64], index: impl Fn(usize) -> usize) -> Two {
        let [low, high] = [index(0), index(1)];
        debug_assert!(low < words.len() && high < words.len(), "indexes in bounds");
        // SAFETY: the caller promises that both indexes are in bounds.
        unsafe { Two::of(*words.get_unchecked(low), *words.get_unchecked(high)) }
    }

    #[inline(always)]
    fn from_bytes(_: Neon, bytes: u64) -> Two {
        Two::of(bytes & 0xff, bytes >> 8 & 0xff)
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        let words = &mut words[..Two::LANE_COUNT];
        // SAFETY: the slice has a word for each lane.
        unsafe { vst1q_u64(words.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn compress(self, selected: Lanes, words: &mut [u64]) {
        let [low, high] = self.words();
        words[..Two::LANE_COUNT]
            .copy_from_slice(&[if selected & 1 != 0 { low } else { high }, high]);
    }

    /// NEON multiplies no 64-bit words.
    #[inline(always)]
    fn multiply(self, other: Two) -> Two {
        let ([a, b], [c, d]) = (self.words(), other.words());
        Two::of(a.wrapping_mul(c), b.wrapping_mul(d))
    }

    #[inline(always)]
    fn shift_left<const BITS: i32>(self) -> Two {
        Two(execute!(vshlq_n_u64::<BITS>(self.0)))
    }

    #[inline(always)]
    fn shift_right<const BITS: i32>(self) -> Two {
        Two(execute!(vshrq_n_u64::<BITS>(self.0)))
    }

    #[inline(always)]
    fn shift_left_by(self, bits: u32) -> Two {
        Two(execute!(vshlq_u64(self.0, vdupq_n_s64(i64::from(bits)))))
    }

    #[inline(always)]
    fn shift_right_by(self, bits: u32) -> Two {
        Two(execute!(vshlq_u64(self.0, vdupq_n_s64(-i64::from(bits)))))
    }

    #[inline(always)]
    fn shift_right_each(self, bits: Two) -> Two {
        Two(execute!(vshlq_u64(
            self.0,
            vnegq_s64(vreinterpretq_s64_u64(bits.0))
        )))
    }

    #[inline(always)]
    fn multiply_u16(self, other: Two) -> Two {
        Two::from_parts(execute!(vmulq_u16(self.parts(), other.parts())))
    }

    #[inline(always)]
    fn multiply_high_u16(self, other: Two) -> Two {
        let (a, b) = (self.parts(), other.parts());
        execute!({
            let low = vshrn_n_u32::<16>(vmull_u16(vget_low_u16(a), vget_low_u16(b)));
            let high = vshrn_n_u32::<16>(vmull_high_u16(a, b));
            Two::from_parts(vcombine_u16(low, high))
        })
    }

    #[inline(always)]
    fn saturating_sub_u16(self, other: Two) -> Two {
        Two::from_parts(execute!(vqsubq_u16(self.parts(), other.parts())))
    }

    #[inline(always)]
    fn zeros(self) -> Lanes {
        Two(execute!(vceqzq_u64(self.0))).low_bits()
    }

    #[inline(always)]
    fn less_than(self, other: Two) -> Lanes {
        Two(execute!(vcltq_u64(self.0, other.0))).low_bits()
    }

    #[inline(always)]
    fn less_than_i63(self, other: Two) -> Lanes {
        self.less_than(other)
    }
}
