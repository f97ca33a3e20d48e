//! Comparison of one key with eight rules at a time, to find the rules that may
//! match.
//!
//! Rules are stored in blocks of eight, one in each lane. For each word of a
//! key, a block has two rows: the bits of a matching key, and the mask of the
//! bits to compare:
//! ```text
//! block of W words:   [ value₀ × 8 | care₀ × 8 | value₁ × 8 | care₁ × 8 | … ]
//! ```

use super::bits::{Block, WORDS};
use super::vector::{Kernel, Lanes, Simd, Vector};
use super::{Aligned, Isa};

/// Rules in a block.
pub(crate) const LANES: usize = WORDS;

/// Rows of a block for each word of a key.
const ROWS_PER_WORD: usize = 2;

/// Returns the number of rows in a block of rules, for keys of `key_words`
/// words.
pub(crate) const fn rows_of(key_words: usize) -> usize {
    ROWS_PER_WORD * key_words
}

/// An empty block.
pub(crate) const EMPTY: Block = Aligned([0; WORDS]);

/// Stores a rule's value and mask in a lane of a block.
pub(crate) fn put(block: &mut [Block], lane: usize, value: &[u64], care: &[u64]) {
    for (rows, (value, care)) in block
        .chunks_exact_mut(ROWS_PER_WORD)
        .zip(value.iter().zip(care))
    {
        (rows[0][lane], rows[1][lane]) = (value & care, *care);
    }
}

/// Moves the lanes from `place` on (counted over all blocks) up by one place.
/// Drops the contents of the last lane.
pub(crate) fn open(rows: &mut [Block], key_words: usize, place: usize) {
    let height = rows_of(key_words);
    let (first, lane) = (place / LANES, place % LANES);
    for block in (first..rows.len() / height).rev() {
        let first_lane = if block == first { lane } else { 0 };
        for row in block * height..(block + 1) * height {
            rows[row].copy_within(first_lane..LANES - 1, first_lane + 1);
            if block > first {
                rows[row][0] = rows[row - height][LANES - 1];
            }
        }
    }
}

/// Moves the lanes after `place` (counted over all blocks) down by one place.
/// The last lane keeps its contents.
pub(crate) fn close(rows: &mut [Block], key_words: usize, place: usize) {
    let height = rows_of(key_words);
    let (first, lane) = (place / LANES, place % LANES);
    let blocks = rows.len() / height;
    for block in first..blocks {
        let first_lane = if block == first { lane } else { 0 };
        for row in block * height..(block + 1) * height {
            rows[row].copy_within(first_lane + 1.., first_lane);
            if block + 1 < blocks {
                rows[row][LANES - 1] = rows[row + height][0];
            }
        }
    }
}

/// Returns the first block, at or after block `from`, with a lane that equals
/// the key in all bits that the lane compares: the block's number, and a bit
/// for each such lane.
///
/// # Panics
/// If the rows are not a whole number of blocks.
#[inline]
pub(crate) fn first_alike<const W: usize>(
    isa: Isa,
    rows: &[Block],
    from: usize,
    key: &[u64; W],
) -> Option<(usize, u8)> {
    assert!(
        rows.len().is_multiple_of(ROWS_PER_WORD * W),
        "whole blocks of {W} words"
    );
    isa.run(FirstAlike { rows, from, key })
}

/// [`first_alike`] as a kernel.
struct FirstAlike<'a, const W: usize> {
    rows: &'a [Block],
    from: usize,
    key: &'a [u64; W],
}

impl<const W: usize> Kernel for FirstAlike<'_, W> {
    type Output = Option<(usize, Lanes)>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Option<(usize, Lanes)> {
        let blocks = self.rows.chunks_exact(ROWS_PER_WORD * W).enumerate();
        for (number, block) in blocks.skip(self.from) {
            let mut alike = 0;
            for from in (0..LANES).step_by(S::Full::LANE_COUNT) {
                let mut differs = S::Full::splat(simd, 0);
                for (&key, rows) in self.key.iter().zip(block.chunks_exact(ROWS_PER_WORD)) {
                    let value = S::Full::load(simd, &rows[0][from..]);
                    let care = S::Full::load(simd, &rows[1][from..]);
                    differs = differs.or(S::Full::splat(simd, key).xor(value).and(care));
                }
                alike |= differs.zeros() << from;
            }
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
    use crate::model::seed::splitmix;

    fn check<const W: usize>(state: &mut u64, found: &mut [u64; 2]) {
        let mut word = |ones: u64| match splitmix(state) % 8 < ones {
            true => splitmix(state),
            false => 0,
        };
        for rules in 0..=35 {
            let key: [u64; W] = std::array::from_fn(|_| word(8));
            // From rules that compare nearly all bits to rules that compare few
            // bits.
            let sparse = word(8) % 8;
            let mut rows = vec![EMPTY; rules_rows::<W>(rules)];
            let mut alike = vec![0_u8; rules.div_ceil(LANES)];
            for lane in 0..alike.len() * LANES {
                let care: [u64; W] = std::array::from_fn(|_| word(1 + sparse) & word(2));
                // The value often equals the key, or differs from it in one
                // bit.
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
                let mut remaining = alike.iter().copied().enumerate().skip(from);
                let expected = remaining.find(|(_, alike)| *alike != 0);
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
            let place_count = blocks * LANES;
            for place in 0..place_count {
                let (mut opened, mut closed) = (rows.clone(), rows.clone());
                open(&mut opened, words, place);
                close(&mut closed, words, place);
                for other in 0..place_count {
                    let old = number(&rows, height, other);
                    match other < place {
                        true => assert_eq!(number(&opened, height, other), old),
                        false if other + 1 < place_count => {
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
