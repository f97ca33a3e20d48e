//! Kernels that are written once for all instruction sets.
//!
//! A [`Kernel`] is a computation over vectors of an instruction set that it does not
//! know. [`Isa::run`](super::Isa::run) runs it with the instructions of an [`Isa`](super::Isa):
//! ```text
//! Isa::run ─▶ one function for each instruction set, compiled with its instructions
//!                └─▶ Kernel::run, inlined, with the vectors of the set
//! ```
//! A vector needs the set's proof value to be made. So holding a vector means that the
//! processor has the instructions, and nearly all operations are safe to call.
//!
//! Everything that takes vectors must be `#[inline(always)]`, and closures must not
//! take them: only what is inlined is compiled with the instructions of the set.

/// An instruction set, as a value that proves that the processor has it.
pub(crate) trait Simd: Copy {
    /// Vectors of up to four words, for short columns.
    type Half: Vector<Set = Self>;
    /// Vectors of up to eight words.
    type Full: Vector<Set = Self>;
    /// True if vectors multiply faster than words one by one.
    const MULTIPLIES: bool;
}

/// A computation with any instruction set.
pub(crate) trait Kernel {
    type Output;

    /// Computes. Implementations are `#[inline(always)]`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Bits for the lanes of a vector; lane 0 is the lowest bit.
pub(crate) type Lanes = u8;

/// A few 64-bit words, each in a *lane*.
pub(crate) trait Vector: Copy {
    /// The proof that the processor has the instructions.
    type Set: Copy;
    /// The number of words, at most eight.
    const LANE_COUNT: usize;
    /// The lanes that [`load_first`](Self::load_first) reads.
    type First: Copy;

    /// The word in all lanes.
    fn splat(set: Self::Set, word: u64) -> Self;

    /// Reads the first words of a slice.
    ///
    /// # Panics
    /// If there are fewer than [`LANES`](Self::LANE_COUNT).
    #[inline(always)]
    fn load(set: Self::Set, words: &[u64]) -> Self {
        let words = &words[..Self::LANE_COUNT];
        // SAFETY: the slice has a word for each lane.
        unsafe { Self::load_unchecked(set, words.as_ptr()) }
    }

    /// Reads all lanes.
    ///
    /// # Safety
    /// A word for each lane must be readable.
    unsafe fn load_unchecked(set: Self::Set, words: *const u64) -> Self;

    /// Selects the first `count` lanes, or all.
    fn first(set: Self::Set, count: usize) -> Self::First;

    /// Bits for the first `count` lanes, or for all.
    #[inline(always)]
    fn first_lanes(_: Self::Set, count: usize) -> Lanes {
        ((1_u32 << count.min(Self::LANE_COUNT)) - 1).to_le_bytes()[0]
    }

    /// Reads the selected lanes. The other lanes have any value, and their memory is
    /// not accessed.
    ///
    /// # Safety
    /// The words of the selected lanes must be readable.
    unsafe fn load_first(set: Self::Set, words: *const u64, first: Self::First) -> Self;

    /// Reads adjacent words into the lanes of `selected`, in order. Other lanes have
    /// all bits set.
    ///
    /// # Safety
    /// A word for each selected lane must be readable.
    unsafe fn load_expanded(set: Self::Set, words: *const u64, selected: Lanes) -> Self;

    /// Reads `words[index(lane)]` for each lane.
    ///
    /// # Safety
    /// All indexes must be in bounds.
    unsafe fn gather(set: Self::Set, words: &[u64], index: impl Fn(usize) -> usize) -> Self;

    /// Reads two adjacent words for each lane, from `words[index(lane)]` on. Returns the
    /// first words and the second words.
    ///
    /// # Safety
    /// All indexes, and those after them, must be in bounds.
    #[inline(always)]
    unsafe fn gather_two(
        set: Self::Set,
        words: &[u64],
        index: impl Fn(usize) -> usize,
    ) -> (Self, Self) {
        // SAFETY: the caller promises both indexes.
        unsafe {
            let first = Self::gather(set, words, &index);
            (first, Self::gather(set, words, |lane| index(lane) + 1))
        }
    }

    /// Reads the first pairs of words of a slice, one for each lane. Returns the first
    /// words and the second words.
    ///
    /// # Panics
    /// If there are fewer pairs than [`LANES`](Self::LANE_COUNT).
    #[inline(always)]
    fn load_two(set: Self::Set, words: &[u64]) -> (Self, Self) {
        let words = &words[..2 * Self::LANE_COUNT];
        // SAFETY: a lane is below `LANE_COUNT`, so both words are in the slice.
        unsafe { Self::gather_two(set, words, |lane| 2 * lane) }
    }

    /// The lowest bytes, each in a lane.
    fn from_bytes(set: Self::Set, bytes: u64) -> Self;

    /// Writes all lanes to the first words of a slice.
    ///
    /// # Panics
    /// If there are fewer than [`LANES`](Self::LANE_COUNT).
    fn store(self, words: &mut [u64]);

    /// Writes the selected lanes, in order, to the first words of a slice. What follows
    /// them in the first [`LANES`](Self::LANE_COUNT) words has any value.
    ///
    /// # Panics
    /// If the slice has fewer than [`LANES`](Self::LANE_COUNT) words.
    fn compress(self, selected: Lanes, words: &mut [u64]);

    /// The word of the first selected lane, or all ones if none is selected. `words` is
    /// where the vector was loaded from.
    ///
    /// # Safety
    /// The first word and the words of the selected lanes must be readable.
    #[inline(always)]
    unsafe fn first_selected(self, selected: Lanes, words: *const u64) -> u64 {
        let lane = selected.trailing_zeros() as usize & (Self::LANE_COUNT - 1);
        // SAFETY: without a selected lane, `lane` is 0, since eight, the number of
        // trailing zeros, is a multiple of the number of lanes.
        let word = unsafe { *words.add(lane) };
        word | u64::from(selected == 0).wrapping_neg()
    }

    fn and(self, other: Self) -> Self;
    /// `self & !other`.
    fn and_not(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// The sum, modulo 2^64.
    fn add(self, other: Self) -> Self;
    /// The product, modulo 2^64.
    fn multiply(self, other: Self) -> Self;
    fn shift_left<const BITS: i32>(self) -> Self;
    fn shift_right<const BITS: i32>(self) -> Self;
    /// Shifts all lanes to the left by the same number of bits; by 64, to 0.
    fn shift_left_by(self, bits: u32) -> Self;
    /// Shifts all lanes to the right by the same number of bits, below 64.
    fn shift_right_by(self, bits: u32) -> Self;
    /// Shifts each lane by its own number of bits, below 64.
    fn shift_right_each(self, bits: Self) -> Self;
    /// The lower halves of products of 16-bit parts.
    fn multiply_u16(self, other: Self) -> Self;
    /// The upper halves of products of 16-bit parts.
    fn multiply_high_u16(self, other: Self) -> Self;
    /// Differences of 16-bit parts, or 0 where they would be negative.
    fn saturating_sub_u16(self, other: Self) -> Self;
    /// Lanes that are 0 if each of their 16-bit parts is at least the part of `low` and at
    /// most the part of `high`.
    #[inline(always)]
    fn outside_u16(self, low: Self, high: Self) -> Self {
        low.saturating_sub_u16(self)
            .or(self.saturating_sub_u16(high))
    }

    /// The lanes that are 0.
    fn zeros(self) -> Lanes;
    /// The lanes of a set that are 0.
    #[inline(always)]
    fn zeros_among(self, lanes: Lanes) -> Lanes {
        self.zeros() & lanes
    }
    /// The lanes that are less than the lanes of `other`.
    fn less_than(self, other: Self) -> Lanes;
    /// The lanes that are less than the lanes of `other`, if all are below 2^63.
    fn less_than_i63(self, other: Self) -> Lanes;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::seed::splitmix;
    use crate::parts::simd::Isa;

    /// Words with many parts that are 0, all ones, or equal.
    fn words(state: &mut u64) -> [u64; 24] {
        std::array::from_fn(|_| {
            let (word, mask) = (splitmix(state), splitmix(state));
            let parts: [u64; 4] = std::array::from_fn(|part| match mask >> (8 * part) & 7 {
                0 => 0,
                1 => 0xffff,
                2 => 0x8000,
                3 => 0x1234,
                _ => word >> (16 * part) & 0xffff,
            });
            match mask >> 60 {
                0 => 0,
                1 => word,
                _ => parts.iter().fold(0, |word, part| word << 16 | part),
            }
        })
    }

    /// The results of all operations of two vectors, lane by lane.
    struct Results<'a> {
        a: &'a [u64],
        b: &'a [u64],
        is_half: bool,
    }

    /// The lanes of words, and sets of lanes.
    type Found = (Vec<Vec<u64>>, Vec<Lanes>);

    impl Kernel for Results<'_> {
        type Output = Found;

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Found {
            if self.is_half {
                results::<S::Half>(simd, self.a, self.b)
            } else {
                results::<S::Full>(simd, self.a, self.b)
            }
        }
    }

    #[inline(always)]
    fn results<V: Vector>(set: V::Set, a: &[u64], b: &[u64]) -> Found {
        let (mut words, mut lanes) = (Vec::new(), Vec::new());
        for from in (0..8).step_by(V::LANE_COUNT) {
            let (left, right) = (V::load(set, &a[from..]), V::load(set, &b[from..]));
            let counts = right.and(V::splat(set, 63));
            let bits = (b[0] & 63) as u32;
            let small = V::splat(set, u64::MAX >> 1);
            // SAFETY: the index is below the number of words.
            let gathered = unsafe { V::gather(set, b, |lane| (from + lane) * 3) };
            let (even, odd) = V::load_two(set, &b[2 * from..]);
            let vectors = [
                left.and(right),
                left.and_not(right),
                left.or(right),
                left.xor(right),
                left.add(right),
                left.multiply(right),
                left.shift_left::<16>(),
                left.shift_right::<16>(),
                left.shift_left_by(bits),
                left.shift_left_by(64),
                left.shift_right_by(bits),
                left.shift_right_each(counts),
                left.multiply_u16(right),
                left.multiply_high_u16(right),
                left.saturating_sub_u16(right),
                V::splat(set, a[1]),
                V::from_bytes(set, a[0] >> (8 * from)),
                gathered,
                even,
                odd,
            ];
            for (index, vector) in vectors.into_iter().enumerate() {
                if from == 0 {
                    words.push(Vec::new());
                }
                let mut stored = [0; 8];
                vector.store(&mut stored);
                words[index].extend(&stored[..V::LANE_COUNT]);
            }
            let sets = [
                left.zeros(),
                left.outside_u16(left.and(right), right).zeros(),
                left.outside_u16(right, left.or(right)).zeros(),
                left.less_than(right),
                left.and(small).less_than_i63(right.and(small)),
            ];
            for (index, set) in sets.into_iter().enumerate() {
                if from == 0 {
                    lanes.push(0);
                }
                lanes[index] |= set << from;
            }
        }
        (words, lanes)
    }

    #[test]
    fn every_operation_agrees_with_words_one_by_one() {
        let mut state = 3;
        for _ in 0..2000 {
            let (a, b) = (words(&mut state), words(&mut state));
            let of = |isa: Isa, is_half| {
                let (a, b) = (&a, &b);
                isa.run(Results { a, b, is_half })
            };
            let expected = of(Isa::Scalar, false);
            // The words one by one are defined by the language's own operations.
            let sum: Vec<u64> = a.iter().zip(&b).map(|(a, b)| a.wrapping_add(*b)).collect();
            assert_eq!(expected.0[4], sum[..8]);
            let parts = |word: u64| [0, 16, 32, 48].map(|at| (word >> at & 0xffff) as u16);
            for lane in 0..8 {
                let both = || parts(a[lane]).into_iter().zip(parts(b[lane]));
                let high = both().map(|(a, b)| ((u32::from(a) * u32::from(b)) >> 16) as u16);
                assert!(high.eq(parts(expected.0[13][lane])));
                let differences = both().map(|(a, b)| a.saturating_sub(b));
                assert!(differences.eq(parts(expected.0[14][lane])));
            }
            for isa in Isa::available() {
                for is_half in [false, true] {
                    assert_eq!(of(isa, is_half), expected, "{isa}, half: {is_half}");
                }
            }
        }
    }

    /// Checks the operations on some lanes.
    struct Partial<'a> {
        words: &'a [u64],
        count: usize,
        selected: Lanes,
    }

    impl Kernel for Partial<'_> {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            self.check::<S::Half>(simd);
            self.check::<S::Full>(simd);
        }
    }

    impl Partial<'_> {
        #[inline(always)]
        fn check<V: Vector>(&self, set: V::Set) {
            let every_lane = V::first_lanes(set, 8);
            assert_eq!(every_lane.count_ones() as usize, V::LANE_COUNT);
            let count = self.count.min(V::LANE_COUNT);
            assert_eq!(
                V::first_lanes(set, self.count),
                every_lane
                    & !u8::MAX
                        .checked_shl(u32::try_from(count).unwrap())
                        .unwrap_or(0)
            );
            let mut stored = [0; 8];
            if count > 0 {
                // The words end where the lanes do.
                let words = self.words[..count].to_vec();
                // SAFETY: there is a word for each selected lane.
                let first = unsafe { V::load_first(set, words.as_ptr(), V::first(set, count)) };
                first.store(&mut stored);
                assert_eq!(stored[..count], self.words[..count]);
            }
            let selected = self.selected & every_lane;
            let lanes = (0..V::LANE_COUNT).filter(|lane| selected >> lane & 1 != 0);
            let packed: Vec<u64> = lanes.clone().map(|lane| self.words[lane]).collect();
            let all = V::load(set, self.words);
            all.compress(selected, &mut stored);
            assert_eq!(stored[..packed.len()], packed);
            // SAFETY: all words can be read.
            let first = unsafe { all.first_selected(selected, self.words.as_ptr()) };
            assert_eq!(first, packed.first().copied().unwrap_or(u64::MAX));
            let mut expected = [u64::MAX; 8];
            for (lane, word) in lanes.zip(self.words) {
                expected[lane] = *word;
            }
            let words = self.words[..packed.len()].to_vec();
            // SAFETY: there is a word for each selected lane.
            unsafe { V::load_expanded(set, words.as_ptr(), selected) }.store(&mut stored);
            assert_eq!(stored[..V::LANE_COUNT], expected[..V::LANE_COUNT]);
        }
    }

    #[test]
    fn some_lanes_are_read_and_written_as_all_are() {
        let mut state = 7;
        for selected in 0..=Lanes::MAX {
            for count in 0..=9 {
                let words = &words(&mut state);
                for isa in Isa::available() {
                    isa.run(Partial {
                        words,
                        count,
                        selected,
                    });
                }
            }
        }
    }
}
