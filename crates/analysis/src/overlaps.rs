//! An index that lists the boxes that overlap a given box.
//!
//! # Idea
//! Two intervals overlap if each begins before the other ends. For some values `cut` of an
//! axis, the index has a row of bits over all boxes:
//!
//! ```text
//! begins[cut]   boxes that begin at `cut` or below
//! ends[cut]     boxes that end at `cut` or above
//! ```
//!
//! The boxes that overlap an interval `[low, high]` are in the row `begins` of the smallest
//! cut that is at least `high`, and in the row `ends` of the largest cut that is at most
//! `low`. The conjunction of these rows over all axes has every overlapping box, and boxes
//! that are within one cut of overlapping. Each box of the result is compared in full.
//!
//! # Cost
//! Two rows of N/64 words for each axis and box asked for. The number of cuts is chosen so
//! that all rows take at most [`MAX_ROW_BYTES`]. No input makes the index larger or a query
//! slower than that.

use crate::boxes::{Boxes, overlap};
use crate::space::Space;

/// The maximum number of bytes of all rows.
const MAX_ROW_BYTES: usize = 32 << 20;

/// The maximum number of cuts of an axis in each direction. More would save few comparisons.
const MAX_CUTS: usize = 512;

/// Words of rows that are combined before their bits are examined: 4 KiB of stack.
const CHUNK_WORDS: usize = 512;

/// The rows of all axes.
#[derive(Debug)]
pub(crate) struct OverlapIndex {
    axes: Vec<AxisRows>,
    /// Words of a row.
    row_words: usize,
}

#[derive(Debug)]
struct AxisRows {
    begins: Rows,
    ends: Rows,
}

/// Rows of bits over all boxes, one for each cut.
#[derive(Debug)]
struct Rows {
    /// Ascending. All boxes begin below an interval that ends above the last cut of
    /// `begins`, and end above an interval that begins below the first cut of `ends`.
    cuts: Vec<u32>,
    bits: Vec<u64>,
}

impl OverlapIndex {
    /// Returns the index of some boxes.
    pub(crate) fn new(space: &Space, boxes: &Boxes) -> OverlapIndex {
        let row_words = boxes.len().div_ceil(64);
        let rows = 2 * space.axes().max(1);
        let cuts = (MAX_ROW_BYTES / (rows * row_words.max(1) * 8)).min(MAX_CUTS);
        let axes = (0..space.axes()).map(|axis| {
            let bound = |end: usize| {
                let numbers = 0..u32::try_from(boxes.len()).expect("fewer than 2^32 boxes");
                numbers.map(move |number| boxes.bounds(number)[2 * axis + end])
            };
            AxisRows {
                begins: Rows::begins(bound(0), cuts, row_words),
                ends: Rows::ends(bound(1), space.last_rank(axis), cuts, row_words),
            }
        });
        OverlapIndex {
            axes: axes.collect(),
            row_words,
        }
    }

    /// Returns the bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let rows = self.axes.iter().flat_map(|axis| [&axis.begins, &axis.ends]);
        rows.map(|rows| rows.bits.capacity() * 8 + rows.cuts.capacity() * 4)
            .sum()
    }

    /// Calls `each` with the number of every box in `numbers` that overlaps `bounds`,
    /// ascending, until it returns false.
    pub(crate) fn overlapping(
        &self,
        boxes: &Boxes,
        bounds: &[u32],
        numbers: std::ops::Range<u32>,
        mut each: impl FnMut(u32) -> bool,
    ) {
        let ends = bounds.chunks_exact(2).zip(&self.axes);
        let rows: Vec<&[u64]> = ends
            .flat_map(|(ends, axis)| {
                let begins = axis.begins.at_least(ends[1], self.row_words);
                [begins, axis.ends.at_most(ends[0], self.row_words)]
            })
            .flatten()
            .collect();
        let (first, end) = (
            numbers.start as usize / 64,
            numbers.end.div_ceil(64) as usize,
        );
        let mut chunk = [0u64; CHUNK_WORDS];
        for start in (first..end).step_by(CHUNK_WORDS) {
            let words = CHUNK_WORDS.min(end - start);
            let chunk = &mut chunk[..words];
            chunk.fill(u64::MAX);
            for row in &rows {
                let row = &row[start..start + words];
                for (word, bits) in chunk.iter_mut().zip(row) {
                    *word &= bits;
                }
            }
            for (word, &bits) in chunk.iter().enumerate() {
                let mut bits = bits;
                while bits != 0 {
                    let number = (start + word) * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    let Ok(number) = u32::try_from(number) else {
                        return;
                    };
                    if numbers.contains(&number)
                        && overlap(boxes.bounds(number), bounds)
                        && !each(number)
                    {
                        return;
                    }
                }
            }
        }
    }
}

impl Rows {
    /// Returns rows of the boxes that begin at a cut or below it. `lows` has the begin of
    /// each box.
    fn begins(lows: impl Iterator<Item = u32> + Clone, count: usize, row_words: usize) -> Rows {
        // Boxes that begin at rank 0 are in every row.
        let cuts = quantiles(lows.clone().filter(|&low| low > 0).collect(), count);
        let mut bits = vec![0u64; cuts.len() * row_words];
        for (number, low) in lows.enumerate() {
            let row = cuts.partition_point(|&cut| cut < low);
            if row < cuts.len() {
                bits[row * row_words + number / 64] |= 1 << (number % 64);
            }
        }
        for word in row_words..bits.len() {
            bits[word] |= bits[word - row_words];
        }
        Rows { cuts, bits }
    }

    /// Returns rows of the boxes that end at a cut or above it. `highs` has the end of each
    /// box, at most `last`.
    fn ends(
        highs: impl Iterator<Item = u32> + Clone,
        last: u32,
        count: usize,
        row_words: usize,
    ) -> Rows {
        // Boxes that end at the last rank are in every row.
        let cuts = quantiles(highs.clone().filter(|&high| high < last).collect(), count);
        let mut bits = vec![0u64; cuts.len() * row_words];
        for (number, high) in highs.enumerate() {
            let rows = cuts.partition_point(|&cut| cut <= high);
            if let Some(row) = rows.checked_sub(1) {
                bits[row * row_words + number / 64] |= 1 << (number % 64);
            }
        }
        for word in (row_words..bits.len()).rev() {
            bits[word - row_words] |= bits[word];
        }
        Rows { cuts, bits }
    }

    fn row(&self, row: usize, row_words: usize) -> &[u64] {
        &self.bits[row * row_words..(row + 1) * row_words]
    }

    /// Returns the row of the smallest cut that is at least `value`, if there is one.
    fn at_least(&self, value: u32, row_words: usize) -> Option<&[u64]> {
        let row = self.cuts.partition_point(|&cut| cut < value);
        (row < self.cuts.len()).then(|| self.row(row, row_words))
    }

    /// Returns the row of the largest cut that is at most `value`, if there is one.
    fn at_most(&self, value: u32, row_words: usize) -> Option<&[u64]> {
        let row = self.cuts.partition_point(|&cut| cut <= value);
        row.checked_sub(1).map(|row| self.row(row, row_words))
    }
}

/// Returns at most `count` values that divide all values into parts of similar size.
fn quantiles(mut values: Vec<u32>, count: usize) -> Vec<u32> {
    values.sort_unstable();
    let (len, mut cuts) = (values.len(), Vec::with_capacity(count));
    cuts.extend((0..count.min(len)).map(|cut| values[cut * len / count.min(len)]));
    cuts.dedup();
    cuts
}
