//! Intersection of bit rows: the rules whose bits are set in all of several
//! rows.

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
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(proof) => x86::avx512(proof, rows, offsets, from, to),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2(proof) => x86::avx2(proof, rows, offsets, from, to),
        Isa::Scalar => scalar(rows, offsets, from, to),
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

/// The scalar fallback.
fn scalar(
    rows: &[Block],
    offsets: &[usize],
    from: usize,
    to: usize,
) -> Option<(usize, [u64; WORDS])> {
    let mut bits = (from..to).map(|block| (block, common(rows, offsets, block)));
    bits.find(|(_, bits)| bits.iter().fold(0, |any, word| any | word) != 0)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_load_si256, _mm256_or_si256, _mm256_storeu_si256,
        _mm256_testz_si256, _mm512_and_si512, _mm512_load_epi64, _mm512_storeu_epi64,
        _mm512_test_epi64_mask,
    };

    use super::{Block, WORDS};
    use crate::parts::simd::{Avx2, Avx512};

    pub(super) fn avx512(
        _: Avx512,
        rows: &[Block],
        offsets: &[usize],
        from: usize,
        to: usize,
    ) -> Option<(usize, [u64; WORDS])> {
        // SAFETY: holding an `Avx512` means that the processor has the features;
        // the caller has checked that every row has `to` blocks.
        unsafe { first_common_avx512(rows, offsets, from, to) }
    }

    pub(super) fn avx2(
        _: Avx2,
        rows: &[Block],
        offsets: &[usize],
        from: usize,
        to: usize,
    ) -> Option<(usize, [u64; WORDS])> {
        // SAFETY: as above, with an `Avx2`.
        unsafe { first_common_avx2(rows, offsets, from, to) }
    }

    /// # Safety
    /// `offset + to <= rows.len()` for all offsets, and there is at least one
    /// offset.
    #[target_feature(enable = "avx512f")]
    unsafe fn first_common_avx512(
        rows: &[Block],
        offsets: &[usize],
        from: usize,
        to: usize,
    ) -> Option<(usize, [u64; WORDS])> {
        let (first, others) = offsets.split_first()?;
        for block in from..to {
            // SAFETY: `offset + block` is below `offset + to`, so the block
            // exists, as the caller promised. Blocks are aligned to 64 bytes.
            let load = |offset: usize| unsafe {
                _mm512_load_epi64(rows.as_ptr().add(offset + block).cast())
            };
            let mut bits = load(*first);
            for &offset in others {
                bits = _mm512_and_si512(bits, load(offset));
            }
            if _mm512_test_epi64_mask(bits, bits) != 0 {
                let mut words = [0; WORDS];
                // SAFETY: eight words are written to an array of eight.
                unsafe { _mm512_storeu_epi64(words.as_mut_ptr().cast(), bits) };
                return Some((block, words));
            }
        }
        None
    }

    /// # Safety
    /// `offset + to <= rows.len()` for all offsets, and there is at least one
    /// offset.
    #[target_feature(enable = "avx2")]
    unsafe fn first_common_avx2(
        rows: &[Block],
        offsets: &[usize],
        from: usize,
        to: usize,
    ) -> Option<(usize, [u64; WORDS])> {
        let (first, others) = offsets.split_first()?;
        for block in from..to {
            // SAFETY: `offset + block` is below `offset + to`, so the block
            // exists, as the caller promised. Blocks are aligned to 64 bytes,
            // and `half` is 0 or 1.
            let load = |offset: usize, half: usize| unsafe {
                let block: *const __m256i = rows.as_ptr().add(offset + block).cast();
                _mm256_load_si256(block.add(half))
            };
            let (mut low, mut high) = (load(*first, 0), load(*first, 1));
            for &offset in others {
                low = _mm256_and_si256(low, load(offset, 0));
                high = _mm256_and_si256(high, load(offset, 1));
            }
            let any = _mm256_or_si256(low, high);
            if _mm256_testz_si256(any, any) == 0 {
                let mut words = [0_u64; WORDS];
                let (first, second) = words.split_at_mut(4);
                // SAFETY: four words are written to each half of an array of
                // eight.
                unsafe {
                    _mm256_storeu_si256(first.as_mut_ptr().cast(), low);
                    _mm256_storeu_si256(second.as_mut_ptr().cast(), high);
                }
                return Some((block, words));
            }
        }
        None
    }
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
