//! One key compared with eight rules at a time: which of them may match it.
//!
//! Rules stand in blocks of eight, one in each lane. A block has two rows for each
//! word of a key, the bits that a matching key has there and which bits these are:
//! ```text
//! block of W words:   [ value₀ × 8 | care₀ × 8 | value₁ × 8 | care₁ × 8 | … ]
//! ```

use super::bits::{Block, WORDS};
use super::{Aligned, Isa};

/// Rules in a block.
pub(crate) const LANES: usize = WORDS;

/// Rows of a block for each word of a key.
const ROWS: usize = 2;

/// The rows of a block of rules, for keys of so many words.
pub(crate) const fn rows_of(key_words: usize) -> usize {
    ROWS * key_words
}

/// A block that rules can be put into.
pub(crate) const EMPTY: Block = Aligned([0; WORDS]);

/// Puts what a rule cares for into a lane of a block.
pub(crate) fn put(block: &mut [Block], lane: usize, value: &[u64], care: &[u64]) {
    for (rows, (value, care)) in block.chunks_exact_mut(ROWS).zip(value.iter().zip(care)) {
        (rows[0][lane], rows[1][lane]) = (value & care, *care);
    }
}

/// Moves the lanes from a place on, counted over all blocks, to the next higher
/// places. What was in the last lane is gone.
pub(crate) fn open(rows: &mut [Block], key_words: usize, place: usize) {
    let height = rows_of(key_words);
    let (first, lane) = (place / LANES, place % LANES);
    for block in (first..rows.len() / height).rev() {
        let from = if block == first { lane } else { 0 };
        for row in block * height..(block + 1) * height {
            rows[row].copy_within(from..LANES - 1, from + 1);
            if block > first {
                rows[row][0] = rows[row - height][LANES - 1];
            }
        }
    }
}

/// Moves the lanes after a place, counted over all blocks, to the next lower places.
/// The last lane stays as it is.
pub(crate) fn close(rows: &mut [Block], key_words: usize, place: usize) {
    let height = rows_of(key_words);
    let (first, lane) = (place / LANES, place % LANES);
    let blocks = rows.len() / height;
    for block in first..blocks {
        let from = if block == first { lane } else { 0 };
        for row in block * height..(block + 1) * height {
            rows[row].copy_within(from + 1.., from);
            if block + 1 < blocks {
                rows[row][LANES - 1] = rows[row + height][0];
            }
        }
    }
}

/// The first block from `from` on with a lane from which the key does not differ
/// in any bit that the lane cares for: its number, and a bit for each such lane.
///
/// # Panics
/// When rows are left over after the last block.
#[inline]
pub(crate) fn first_alike<const W: usize>(
    isa: Isa,
    rows: &[Block],
    from: usize,
    key: &[u64; W],
) -> Option<(usize, u8)> {
    assert!(
        rows.len().is_multiple_of(ROWS * W),
        "whole blocks of {W} words"
    );
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(proof) => x86::avx512(proof, rows, from, key),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2(proof) => x86::avx2(proof, rows, from, key),
        Isa::Scalar => scalar(rows, from, key),
    }
}

/// The scalar fallback.
fn scalar<const W: usize>(rows: &[Block], from: usize, key: &[u64; W]) -> Option<(usize, u8)> {
    let blocks = rows.chunks_exact(ROWS * W).enumerate().skip(from);
    let mut alike = blocks.map(|(number, block)| {
        let mut differing = [0; LANES];
        for (key, rows) in key.iter().zip(block.chunks_exact(ROWS)) {
            for (lane, differing) in differing.iter_mut().enumerate() {
                *differing |= (key ^ rows[0][lane]) & rows[1][lane];
            }
        }
        let lanes = differing.iter().enumerate();
        let alike = lanes.fold(0, |alike, (lane, &differing)| {
            alike | u8::from(differing == 0) << lane
        });
        (number, alike)
    });
    alike.find(|(_, alike)| *alike != 0)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_load_si256,
        _mm256_movemask_pd, _mm256_or_si256, _mm256_set1_epi64x, _mm256_setzero_si256,
        _mm256_xor_si256, _mm512_load_epi64, _mm512_or_epi64, _mm512_set1_epi64,
        _mm512_setzero_si512, _mm512_ternarylogic_epi64, _mm512_testn_epi64_mask,
    };

    use super::{Block, ROWS};
    use crate::simd::{Avx2, Avx512};

    pub(super) fn avx512<const W: usize>(
        _: Avx512,
        rows: &[Block],
        from: usize,
        key: &[u64; W],
    ) -> Option<(usize, u8)> {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { first_alike_avx512(rows, from, key) }
    }

    pub(super) fn avx2<const W: usize>(
        _: Avx2,
        rows: &[Block],
        from: usize,
        key: &[u64; W],
    ) -> Option<(usize, u8)> {
        // SAFETY: holding an `Avx2` means that the processor has the features.
        unsafe { first_alike_avx2(rows, from, key) }
    }

    /// `(key ^ value) & care`, as the ternary logic instruction has it: a bit for
    /// each combination of its operands.
    const DIFFERS: i32 = (0xf0 ^ 0xcc) & 0xaa;

    #[target_feature(enable = "avx512f")]
    #[allow(clippy::cast_possible_wrap)] // the bits are meant
    fn first_alike_avx512<const W: usize>(
        rows: &[Block],
        from: usize,
        key: &[u64; W],
    ) -> Option<(usize, u8)> {
        let key = key.map(|word| _mm512_set1_epi64(word as i64));
        for (number, block) in rows.chunks_exact(ROWS * W).enumerate().skip(from) {
            let mut differing = _mm512_setzero_si512();
            for (&key, rows) in key.iter().zip(block.chunks_exact(ROWS)) {
                // SAFETY: a row has eight words and is aligned to 64 bytes.
                let [value, care] = [&rows[0], &rows[1]]
                    .map(|row| unsafe { _mm512_load_epi64(row.as_ptr().cast()) });
                let here = _mm512_ternarylogic_epi64::<DIFFERS>(key, value, care);
                differing = _mm512_or_epi64(differing, here);
            }
            let alike = _mm512_testn_epi64_mask(differing, differing);
            if alike != 0 {
                return Some((number, alike));
            }
        }
        None
    }

    #[target_feature(enable = "avx2")]
    #[allow(clippy::cast_possible_wrap)] // the bits are meant
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // four bits
    fn first_alike_avx2<const W: usize>(
        rows: &[Block],
        from: usize,
        key: &[u64; W],
    ) -> Option<(usize, u8)> {
        let key = key.map(|word| _mm256_set1_epi64x(word as i64));
        let zero = _mm256_setzero_si256();
        for (number, block) in rows.chunks_exact(ROWS * W).enumerate().skip(from) {
            let (mut low, mut high) = (zero, zero);
            for (&key, rows) in key.iter().zip(block.chunks_exact(ROWS)) {
                let (value, care) = (rows[0].as_ptr(), rows[1].as_ptr());
                let differs = |half: usize| {
                    // SAFETY: a row has eight words, four of which are a half, and
                    // is aligned to 64 bytes.
                    let [value, care] = [value, care]
                        .map(|row| unsafe { _mm256_load_si256(row.cast::<__m256i>().add(half)) });
                    _mm256_and_si256(_mm256_xor_si256(key, value), care)
                };
                low = _mm256_or_si256(low, differs(0));
                high = _mm256_or_si256(high, differs(1));
            }
            let [low, high] = [low, high].map(|differing| {
                let alike = _mm256_cmpeq_epi64(differing, zero);
                _mm256_movemask_pd(_mm256_castsi256_pd(alike)) as u8
            });
            let alike = low | high << 4;
            if alike != 0 {
                return Some((number, alike));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::splitmix;

    fn check<const W: usize>(state: &mut u64, found: &mut [u64; 2]) {
        let mut word = |ones: u64| match splitmix(state) % 8 < ones {
            true => splitmix(state),
            false => 0,
        };
        for rules in 0..=35 {
            let key: [u64; W] = std::array::from_fn(|_| word(8));
            // From rules of which all bits are compared to such of which few are.
            let sparse = word(8) % 8;
            let mut rows = vec![EMPTY; rules_rows::<W>(rules)];
            let mut alike = vec![0_u8; rules.div_ceil(LANES)];
            for lane in 0..alike.len() * LANES {
                let care: [u64; W] = std::array::from_fn(|_| word(1 + sparse) & word(2));
                // Often the key's own bits, or all but one of them.
                let mut value = key;
                if word(8) & 1 == 1 {
                    value[lane % W] ^= 1 << (word(8) % 64);
                }
                let block = &mut rows[lane / LANES * rows_of(W)..][..rows_of(W)];
                put(block, lane % LANES, &value, &care);
                let differs = (0..W).any(|at| (key[at] ^ value[at]) & care[at] != 0);
                alike[lane / LANES] |= u8::from(!differs) << (lane % LANES);
            }
            for from in 0..=alike.len() {
                let mut rest = alike.iter().copied().enumerate().skip(from);
                let expected = rest.find(|(_, alike)| *alike != 0);
                found[usize::from(expected.is_some())] += 1;
                for isa in Isa::available() {
                    let first = first_alike(isa, &rows, from, &key);
                    assert_eq!(first, expected, "{isa}, {W} words, {rules} rules");
                }
            }
            for (number, &alike) in alike.iter().enumerate() {
                let block = &rows[number * rows_of(W)..][..rows_of(W)];
                for isa in Isa::available() {
                    let first = first_alike(isa, block, 0, &key);
                    assert_eq!(first, (alike != 0).then_some((0, alike)), "{isa}");
                }
            }
        }
    }

    fn rules_rows<const W: usize>(rules: usize) -> usize {
        rules.div_ceil(LANES) * rows_of(W)
    }

    #[test]
    fn every_instruction_set_finds_the_first_block_that_is_alike() {
        let (mut state, mut found) = (5, [0; 2]);
        for _ in 0..4 {
            check::<1>(&mut state, &mut found);
            check::<2>(&mut state, &mut found);
            check::<3>(&mut state, &mut found);
            check::<8>(&mut state, &mut found);
            check::<32>(&mut state, &mut found);
        }
        assert!(found.iter().all(|&times| times > 100), "{found:?}");
    }

    #[test]
    fn lanes_move_by_one_place() {
        let number = |rows: &[Block], height: usize, place: usize| {
            let block = &rows[place / LANES * height..][..height];
            block
                .iter()
                .map(|row| row[place % LANES])
                .collect::<Vec<u64>>()
        };
        for (words, blocks) in [(1, 1), (1, 3), (2, 4), (3, 2)] {
            let height = rows_of(words);
            let lanes = |row: usize| std::array::from_fn(|lane| (row * LANES + lane) as u64);
            let rows: Vec<Block> = (0..blocks * height)
                .map(|row| Aligned(lanes(row)))
                .collect();
            let places = blocks * LANES;
            for place in 0..places {
                let (mut opened, mut closed) = (rows.clone(), rows.clone());
                open(&mut opened, words, place);
                close(&mut closed, words, place);
                for other in 0..places {
                    let old = number(&rows, height, other);
                    match other < place {
                        true => assert_eq!(number(&opened, height, other), old),
                        false if other + 1 < places => {
                            assert_eq!(number(&opened, height, other + 1), old);
                        }
                        false => {}
                    }
                    if other < place {
                        assert_eq!(number(&closed, height, other), old);
                    } else if other > place {
                        assert_eq!(number(&closed, height, other - 1), old);
                    }
                }
            }
        }
    }

    #[test]
    fn rows_that_are_left_over_are_a_mistake_that_panics() {
        for isa in Isa::available() {
            let rows = vec![EMPTY; 5];
            let call = || first_alike(isa, &rows, 0, &[0, 0]);
            assert!(std::panic::catch_unwind(call).is_err(), "{isa}");
        }
    }
}
