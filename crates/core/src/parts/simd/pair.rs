//! Two vectors as one, for instruction sets whose vectors have fewer than eight words.

use super::vector::{Lanes, Vector};

/// Two vectors as one.
#[derive(Clone, Copy)]
pub(crate) struct Pair<V>(V, V);

/// Implements operations of a pair by operations of its halves.
macro_rules! by_halves {
    ($($name:ident($($other:ident)?)),*) => {
        $(
            #[inline(always)]
            fn $name(self $(, $other: Self)?) -> Self {
                Pair(self.0.$name($($other.0)?), self.1.$name($($other.1)?))
            }
        )*
    };
}

impl<V: Vector> Pair<V> {
    const LOW_LANES: Lanes = (1 << V::LANE_COUNT) - 1;
}

impl<V: Vector> Vector for Pair<V> {
    type Set = V::Set;
    const LANE_COUNT: usize = 2 * V::LANE_COUNT;
    type First = (V::First, V::First);

    by_halves!(
        and(other),
        and_not(other),
        or(other),
        xor(other),
        add(other),
        multiply(other),
        shift_right_each(other),
        multiply_u16(other),
        multiply_high_u16(other),
        saturating_sub_u16(other)
    );

    #[inline(always)]
    fn splat(set: V::Set, word: u64) -> Self {
        let half = V::splat(set, word);
        Pair(half, half)
    }

    #[inline(always)]
    unsafe fn load_unchecked(set: V::Set, words: *const u64) -> Self {
        // SAFETY: the caller promises the words of both halves.
        unsafe {
            let second = V::load_unchecked(set, words.wrapping_add(V::LANE_COUNT));
            Pair(V::load_unchecked(set, words), second)
        }
    }

    #[inline(always)]
    fn first(set: V::Set, count: usize) -> Self::First {
        let second = count.saturating_sub(V::LANE_COUNT);
        (V::first(set, count), V::first(set, second))
    }

    #[inline(always)]
    unsafe fn load_first(set: V::Set, words: *const u64, first: Self::First) -> Self {
        // SAFETY: the selected lanes of the second half follow all lanes of the first.
        unsafe {
            let second = V::load_first(set, words.wrapping_add(V::LANE_COUNT), first.1);
            Pair(V::load_first(set, words, first.0), second)
        }
    }

    #[inline(always)]
    unsafe fn load_expanded(set: V::Set, words: *const u64, selected: Lanes) -> Self {
        let in_first = (selected & Self::LOW_LANES).count_ones() as usize;
        // SAFETY: the words of the second half follow the words of the first.
        unsafe {
            let second =
                V::load_expanded(set, words.wrapping_add(in_first), selected >> V::LANE_COUNT);
            Pair(
                V::load_expanded(set, words, selected & Self::LOW_LANES),
                second,
            )
        }
    }

    #[inline(always)]
    unsafe fn gather(set: V::Set, words: &[u64], index: impl Fn(usize) -> usize) -> Self {
        // SAFETY: the caller promises all indexes.
        unsafe {
            let first = V::gather(set, words, &index);
            Pair(
                first,
                V::gather(set, words, |lane| index(V::LANE_COUNT + lane)),
            )
        }
    }

    #[inline(always)]
    unsafe fn gather_two(
        set: V::Set,
        words: &[u64],
        index: impl Fn(usize) -> usize,
    ) -> (Self, Self) {
        // SAFETY: the caller promises all indexes.
        unsafe {
            let (a, b) = V::gather_two(set, words, &index);
            let (c, d) = V::gather_two(set, words, |lane| index(V::LANE_COUNT + lane));
            (Pair(a, c), Pair(b, d))
        }
    }

    #[inline(always)]
    fn from_bytes(set: V::Set, bytes: u64) -> Self {
        let second = V::from_bytes(set, bytes >> (8 * V::LANE_COUNT));
        Pair(V::from_bytes(set, bytes), second)
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        self.0.store(words);
        self.1.store(&mut words[V::LANE_COUNT..]);
    }

    #[inline(always)]
    fn compress(self, selected: Lanes, words: &mut [u64]) {
        let words = &mut words[..Self::LANE_COUNT];
        let in_first = (selected & Self::LOW_LANES).count_ones() as usize;
        self.0.compress(selected & Self::LOW_LANES, words);
        self.1
            .compress(selected >> V::LANE_COUNT, &mut words[in_first..]);
    }

    #[inline(always)]
    fn shift_left<const BITS: i32>(self) -> Self {
        Pair(self.0.shift_left::<BITS>(), self.1.shift_left::<BITS>())
    }

    #[inline(always)]
    fn shift_right<const BITS: i32>(self) -> Self {
        Pair(self.0.shift_right::<BITS>(), self.1.shift_right::<BITS>())
    }

    #[inline(always)]
    fn shift_left_by(self, bits: u32) -> Self {
        Pair(self.0.shift_left_by(bits), self.1.shift_left_by(bits))
    }

    #[inline(always)]
    fn shift_right_by(self, bits: u32) -> Self {
        Pair(self.0.shift_right_by(bits), self.1.shift_right_by(bits))
    }

    #[inline(always)]
    fn zeros(self) -> Lanes {
        self.0.zeros() | self.1.zeros() << V::LANE_COUNT
    }

    #[inline(always)]
    fn less_than(self, other: Self) -> Lanes {
        self.0.less_than(other.0) | self.1.less_than(other.1) << V::LANE_COUNT
    }

    #[inline(always)]
    fn less_than_i63(self, other: Self) -> Lanes {
        self.0.less_than_i63(other.0) | self.1.less_than_i63(other.1) << V::LANE_COUNT
    }
}
