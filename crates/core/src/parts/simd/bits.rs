//! Intersection of bit rows: the rules whose bits are set in all of several
//! rows.

use super::vector::{Kernel, Simd, Vector};
use super::{Aligned, Isa};

/// Words in a block.
pub(crate) const WORDS: usize = 8;

/// 512 bits that are intersected together: a cache line.
pub(crate) type Block = Aligned<[u64; WORDS]>;

/// Returns the first block with a bit that all rows have, among the blocks
/// `from..to` of a row: the block's number and the common bits. Rows start at
/// `offsets`, in blocks.
///
/// # Panics
/// If `offsets` is empty, or a row has fewer than `to` blocks.
#[inline]
pub(crate) fn first_common(
    isa: Isa,
    rows: &[Block],
    offsets: &[usize],
    from: usize,
    to: usize,
) -> Option<(usize, [u64; WORDS])> {
    assert!(!offsets.is_empty(), "at least one row");
    let fits = |&offset: &usize| rows.len() >= to && offset <= rows.len() - to;
    assert!(offsets.iter().all(fits), "rows of {to} blocks");
    isa.run(FirstCommon {
        rows,
        offsets,
        from,
        to,
    })
}

/// [`first_common`] as a kernel.
struct FirstCommon<'a> {
    rows: &'a [Block],
    offsets: &'a [usize],
    from: usize,
    to: usize,
}

impl Kernel for FirstCommon<'_> {
    type Output = Option<(usize, [u64; WORDS])>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Option<(usize, [u64; WORDS])> {
        let (first, others) = self.offsets.split_first()?;
        for block in self.from..self.to {
            let mut common = [0; WORDS];
            let mut is_empty = true;
            for from in (0..WORDS).step_by(S::Full::LANE_COUNT) {
                let mut bits = S::Full::load(simd, &self.rows[first + block][from..]);
                for offset in others {
                    bits = bits.and(S::Full::load(simd, &self.rows[offset + block][from..]));
                }
                is_empty &= bits.zeros() == S::Full::first_lanes(simd, S::Full::LANE_COUNT);
                bits.store(&mut common[from..]);
            }
            if !is_empty {
                return Some((block, common));
            }
        }
        None
    }
}

/// Returns the common bits of all rows in one block.
///
/// # Panics
/// If `offsets` is empty, or a row is too short.
pub(crate) fn common(rows: &[Block], offsets: &[usize], block: usize) -> [u64; WORDS] {
    let (first, others) = offsets.split_first().expect("at least one row");
    let mut bits = rows[first + block].0;
    for &offset in others {
        for (bits, word) in bits.iter_mut().zip(rows[offset + block].iter()) {
            *bits &= word;
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::seed::splitmix;

    /// Rows with few or no bits, for every length, number of rows and first
    /// block.
    #[test]
    fn the_first_block_with_a_common_bit_is_found() {
        let mut state = 3;
        let mut outcomes = [0; 2];
        for blocks in 0..=9 {
            for count in 1..=17 {
                let ones = 1 + splitmix(&mut state) % 6;
                let mut word = |_| match splitmix(&mut state) % 8 < ones {
                    true => splitmix(&mut state) | splitmix(&mut state),
                    false => 0,
                };
                let rows: Vec<Block> = (0..blocks * count + 5)
                    .map(|_| Aligned(std::array::from_fn(&mut word)))
                    .collect();
                // Rows may overlap, or be the same row.
                let offset = |_| {
                    let last = rows.len() - blocks;
                    usize::try_from(splitmix(&mut state)).unwrap() % (last + 1)
                };
                let offsets: Vec<usize> = (0..count).map(offset).collect();
                for from in 0..=blocks {
                    let bits = |block: usize| -> [u64; WORDS] {
                        std::array::from_fn(|word| {
                            let words = offsets.iter().map(|offset| rows[offset + block][word]);
                            words.fold(u64::MAX, |bits, word| bits & word)
                        })
                    };
                    let mut common_bits = (from..blocks).map(|block| (block, bits(block)));
                    let expected = common_bits.find(|(_, bits)| *bits != [0; WORDS]);
                    outcomes[usize::from(expected.is_some())] += 1;
                    for isa in Isa::available() {
                        let first = first_common(isa, &rows, &offsets, from, blocks);
                        assert_eq!(first, expected, "{isa}");
                    }
                }
            }
        }
        assert!(outcomes.iter().all(|&times| times > 100), "{outcomes:?}");
    }

    #[test]
    fn rows_that_are_too_short_are_a_mistake_that_panics() {
        for isa in Isa::available() {
            let rows = vec![Aligned([0; WORDS]); 2];
            for (offsets, to) in [(&[1][..], 2), (&[0, 2][..], 1), (&[][..], 1), (&[0][..], 3)] {
                let call = || first_common(isa, &rows, offsets, 0, to);
                assert!(std::panic::catch_unwind(call).is_err(), "{isa} {offsets:?}");
            }
        }
    }
}
