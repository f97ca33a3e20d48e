//! Vectors of one word, for every processor.

use super::vector::{Kernel, Lanes, Simd, Vector};

/// No vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plain;

/// Runs a kernel. Not inlined, so that callers with vectors save no registers for it.
#[inline(never)]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Plain)
}

impl Simd for Plain {
    type Half = Word;
    type Full = Word;
    const MULTIPLIES: bool = false;
}

/// One word.
#[derive(Clone, Copy)]
pub(crate) struct Word(u64);

/// The highest bit of each 16-bit part.
const HIGH_BITS: u64 = 0x8000_8000_8000_8000;

/// The highest bit of each 16-bit part of `a` that is less than the part of `b`. All parts at
/// once (Warren, *Hacker's Delight*, 2nd ed., §2–18): a part's lower bits borrow from its
/// highest bit, which is set in between.
#[inline(always)]
fn less_u16(a: u64, b: u64) -> u64 {
    let no_borrow = (a | HIGH_BITS) - (b & !HIGH_BITS);
    ((!a & b) | (!(a ^ b) & !no_borrow)) & HIGH_BITS
}

/// Multiplies 16-bit parts; keeps 16 bits of each product, from bit `from` on.
#[inline(always)]
fn products(a: u64, b: u64, from: u32) -> u64 {
    let mut products = 0;
    for at in [0, 16, 32, 48] {
        let product = (a >> at & 0xffff) * (b >> at & 0xffff);
        products |= (product >> from & 0xffff) << at;
    }
    products
}

impl Vector for Word {
    type Set = Plain;
    const LANE_COUNT: usize = 1;
    type First = ();

    #[inline(always)]
    fn splat(_: Plain, word: u64) -> Word {
        Word(word)
    }

    #[inline(always)]
    unsafe fn load_unchecked(_: Plain, words: *const u64) -> Word {
        // SAFETY: the caller promises that the words are readable.
        Word(unsafe { *words })
    }

    #[inline(always)]
    fn first(_: Plain, count: usize) {
        debug_assert!(count > 0, "at least the one word");
    }

    #[inline(always)]
    unsafe fn load_first(_: Plain, words: *const u64, (): ()) -> Word {
        // SAFETY: the caller promises that the selected word is readable.
        Word(unsafe { *words })
    }

    #[inline(always)]
    unsafe fn load_expanded(_: Plain, words: *const u64, selected: Lanes) -> Word {
        if selected & 1 == 0 {
            return Word(u64::MAX);
        }
        // SAFETY: the caller promises that the selected word is readable.
        Word(unsafe { *words })
    }

    #[inline(always)]
    unsafe fn gather(_: Plain, words: &[u64], index: impl Fn(usize) -> usize) -> Word {
        let index = index(0);
        debug_assert!(index < words.len(), "an index in bounds");
        // SAFETY: the caller promises that the index is in bounds.
        Word(unsafe { *words.get_unchecked(index) })
    }

    #[inline(always)]
    fn from_bytes(_: Plain, bytes: u64) -> Word {
        Word(bytes & 0xff)
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        words[0] = self.0;
    }

    #[inline(always)]
    fn compress(self, _: Lanes, words: &mut [u64]) {
        words[0] = self.0;
    }

    #[inline(always)]
    fn and(self, other: Word) -> Word {
        Word(self.0 & other.0)
    }

    #[inline(always)]
    fn and_not(self, other: Word) -> Word {
        Word(self.0 & !other.0)
    }

    #[inline(always)]
    fn or(self, other: Word) -> Word {
        Word(self.0 | other.0)
    }

    #[inline(always)]
    fn xor(self, other: Word) -> Word {
        Word(self.0 ^ other.0)
    }

    #[inline(always)]
    fn add(self, other: Word) -> Word {
        Word(self.0.wrapping_add(other.0))
    }

    #[inline(always)]
    fn multiply(self, other: Word) -> Word {
        Word(self.0.wrapping_mul(other.0))
    }

    #[inline(always)]
    fn shift_left<const BITS: i32>(self) -> Word {
        Word(self.0 << BITS)
    }

    #[inline(always)]
    fn shift_right<const BITS: i32>(self) -> Word {
        Word(self.0 >> BITS)
    }

    #[inline(always)]
    fn shift_left_by(self, bits: u32) -> Word {
        Word(self.0.checked_shl(bits).unwrap_or(0))
    }

    #[inline(always)]
    fn shift_right_by(self, bits: u32) -> Word {
        Word(self.0 >> bits)
    }

    #[inline(always)]
    fn shift_right_each(self, bits: Word) -> Word {
        Word(self.0 >> bits.0)
    }

    #[inline(always)]
    fn multiply_u16(self, other: Word) -> Word {
        Word(products(self.0, other.0, 0))
    }

    #[inline(always)]
    fn multiply_high_u16(self, other: Word) -> Word {
        Word(products(self.0, other.0, 16))
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // a part
    fn saturating_sub_u16(self, other: Word) -> Word {
        let (a, b) = (self.0, other.0);
        let part = |at: u32| ((a >> at) as u16).saturating_sub((b >> at) as u16);
        let parts = [0, 16, 32, 48].map(|at| u64::from(part(at)) << at);
        Word(parts.iter().fold(0, |word, part| word | part))
    }

    #[inline(always)]
    fn outside_u16(self, low: Word, high: Word) -> Word {
        Word(less_u16(self.0, low.0) | less_u16(high.0, self.0))
    }

    #[inline(always)]
    fn zeros(self) -> Lanes {
        Lanes::from(self.0 == 0)
    }

    #[inline(always)]
    fn less_than(self, other: Word) -> Lanes {
        Lanes::from(self.0 < other.0)
    }

    #[inline(always)]
    fn less_than_i63(self, other: Word) -> Lanes {
        Lanes::from(self.0 < other.0)
    }
}
