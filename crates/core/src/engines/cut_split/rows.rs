//! The rules at the leaves: each leaf has its own copies, in contiguous memory, best
//! first.

use crate::budget::memory::bytes_of;
use crate::engines::cut_split::node::Leaf;
use crate::model::packed::PackedRule;
use crate::model::rule::Winner;
use crate::model::schema::{RangeField, Schema};
use crate::parts::simd::prefetch_early_at;
use crate::parts::unwildcard;

/// Blocks of up to this number of rows have a size for each number. Larger blocks have
/// four sizes for each doubling. Measured in `bench/records/constants.md`
/// (CutSplit).
const MAX_EXACT_ROWS: u32 = 8;

/// The end of a list of free blocks.
const NO_BLOCK: u32 = u32::MAX;

/// Returns the number of the smallest block size that has room for `len` rows, at
/// least one.
fn class(len: u32) -> usize {
    if len <= MAX_EXACT_ROWS {
        return len as usize - 1;
    }
    let doublings = (len - 1).ilog2();
    let step = 1 << (doublings - 2);
    let steps = (len - (1 << doublings)).div_ceil(step);
    (MAX_EXACT_ROWS + (doublings - MAX_EXACT_ROWS.ilog2()) * 4 + steps - 1) as usize
}

/// Returns the number of rows in a block of a size.
fn room(class: usize) -> u32 {
    let class = u32::try_from(class).expect("a hundred sizes");
    if class < MAX_EXACT_ROWS {
        return class + 1;
    }
    let (doublings, steps) = (
        (class - MAX_EXACT_ROWS) / 4 + MAX_EXACT_ROWS.ilog2(),
        (class - MAX_EXACT_ROWS) % 4 + 1,
    );
    (1 << doublings) + steps * (1 << (doublings - 2))
}

/// Rows that take at most these bytes are never compacted: a few dozen rules of the
/// narrowest keys, one page. It bounds the memory that stays unused.
const MIN_SPARSE_BYTES: usize = 4 << 10;

/// Returns the number of rows that are allocated for a leaf of `len` rows.
pub(super) fn room_for(len: usize) -> usize {
    match u32::try_from(len).expect("rows are bounded") {
        0 => 0,
        len => room(class(len)) as usize,
    }
}

/// A range field within one word, if all upper ends are in one word too.
#[derive(Clone, Copy)]
struct NarrowRange {
    word: usize,
    shift: u32,
    high_shift: u32,
    ones: u64,
}

/// The comparison of ranges.
enum Ranges {
    /// All upper ends are in one word.
    Narrow(Box<[NarrowRange]>),
    Wide(Box<[RangeField]>),
}

/// Rows of all leaves. A row has the rule's rank and its words.
pub(super) struct Rows<const W: usize> {
    words: Vec<u64>,
    /// The number of words in a row.
    stride: usize,
    ranges: Ranges,
    /// Rows from this index on have never been used.
    end: u32,
    /// The first free block of each size. Its first word has the next free block.
    free: Vec<u32>,
    /// The number of rows in used blocks.
    used: usize,
}

impl<const W: usize> Rows<W> {
    /// The number of words in a row.
    pub(super) fn stride(schema: &Schema) -> usize {
        1 + schema.rule_words()
    }

    pub(super) fn bytes_of(schema: &Schema, rows: usize) -> usize {
        bytes_of::<u64>(rows.saturating_mul(Self::stride(schema)))
    }

    pub(super) fn with_room(schema: &Schema, rows: usize) -> Rows<W> {
        let ranges = if schema.high_words() <= 1 {
            let narrow = schema.range_fields().iter().map(|range| NarrowRange {
                word: range.key.low.word,
                shift: range.key.low.shift,
                high_shift: range.high.low.shift,
                ones: u64::MAX >> (64 - range.key.low.width),
            });
            Ranges::Narrow(narrow.collect())
        } else {
            Ranges::Wide(schema.range_fields().into())
        };
        let stride = Self::stride(schema);
        Rows {
            words: Vec::with_capacity(rows * stride),
            stride,
            ranges,
            end: 0,
            free: Vec::new(),
            used: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of::<u64>(self.words.capacity()) + bytes_of::<u32>(self.free.capacity())
    }

    /// The number of rows in used blocks.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// True if at least half of the memory is unused, and there is more than
    /// [`MIN_SPARSE_BYTES`].
    pub(super) fn is_sparse(&self) -> bool {
        let room = self.words.capacity() / self.stride;
        bytes_of::<u64>(self.words.capacity()) > MIN_SPARSE_BYTES && 2 * self.used < room
    }

    fn alloc(&mut self, len: usize) -> u32 {
        let len = u32::try_from(len).expect("rows are bounded");
        if len == 0 {
            return 0;
        }
        let class = class(len);
        let count = room(class);
        self.used += count as usize;
        if let Some(free) = self.free.get_mut(class)
            && *free != NO_BLOCK
        {
            let first = *free;
            let next = self.words[first as usize * self.stride];
            *free = u32::try_from(next).expect("the next free block");
            return first;
        }
        let first = self.end;
        self.end += count;
        let words = self.end as usize * self.stride;
        if words > self.words.capacity() {
            // Grows by a quarter, not the usual doubling, because rows are large.
            let extra = (words - self.words.len()).max(self.words.len() / 4);
            self.words.reserve_exact(extra);
        }
        self.words.resize(words, 0);
        first
    }

    /// Frees the block of a leaf.
    pub(super) fn free(&mut self, leaf: Leaf) {
        if leaf.len == 0 {
            return;
        }
        let class = class(leaf.len);
        self.used -= room(class) as usize;
        if self.free.len() <= class {
            self.free.resize(class + 1, NO_BLOCK);
        }
        let next = std::mem::replace(&mut self.free[class], leaf.first);
        self.words[leaf.first as usize * self.stride] = u64::from(next);
    }

    /// Stores the rules of a leaf. `rows` has their ranks and words, best first.
    pub(super) fn store<'a>(
        &mut self,
        len: usize,
        rows: impl Iterator<Item = (u64, &'a [u64])>,
    ) -> Leaf {
        let first = self.alloc(len);
        let mut word = first as usize * self.stride;
        for (rank, words) in rows {
            self.words[word] = rank;
            self.words[word + 1..word + self.stride].copy_from_slice(words);
            word += self.stride;
        }
        let len = u32::try_from(len).expect("rows are bounded");
        debug_assert_eq!(word, (first + len) as usize * self.stride);
        Leaf { first, len }
    }

    /// Returns all words of a leaf's rows.
    #[inline(always)]
    pub(super) fn of(&self, leaf: Leaf) -> &[u64] {
        &self.words[leaf.first as usize * self.stride..][..leaf.len as usize * self.stride]
    }

    /// Returns the rows of a leaf, best first.
    #[inline(always)]
    pub(super) fn rows(&self, leaf: Leaf) -> impl Iterator<Item = &[u64]> {
        self.of(leaf).chunks_exact(self.stride)
    }

    /// Returns the row with a rank in a leaf.
    pub(super) fn find(&self, leaf: Leaf, rank: u64) -> Option<&[u64]> {
        let position = self.position(leaf, rank);
        let row = &self.of(leaf)[(position * self.stride).min(leaf.len as usize * self.stride)..];
        row.first()
            .is_some_and(|&row_rank| row_rank == rank)
            .then(|| &row[..self.stride])
    }

    /// Returns the number of rows in a leaf that are better than a rank.
    pub(super) fn position(&self, leaf: Leaf, rank: u64) -> usize {
        let words = self.of(leaf);
        if leaf.len <= MAX_EXACT_ROWS {
            return self.rows(leaf).take_while(|row| row[0] < rank).count();
        }
        let (mut low, mut high) = (0, leaf.len as usize);
        while low < high {
            let middle = usize::midpoint(low, high);
            if words[middle * self.stride] < rank {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Inserts a row in a leaf.
    pub(super) fn insert(&mut self, leaf: Leaf, row: &[u64]) -> Leaf {
        let offset = self.position(leaf, row[0]) * self.stride;
        let len = leaf.len + 1;
        let words = leaf.len as usize * self.stride;
        if leaf.len > 0 && class(leaf.len) == class(len) {
            let first = leaf.first as usize * self.stride;
            let block = &mut self.words[first..first + words + self.stride];
            block.copy_within(offset..words, offset + self.stride);
            block[offset..offset + self.stride].copy_from_slice(row);
            return Leaf { len, ..leaf };
        }
        let first = self.alloc(len as usize);
        let (from, to) = (
            leaf.first as usize * self.stride,
            first as usize * self.stride,
        );
        self.words.copy_within(from..from + offset, to);
        self.words
            .copy_within(from + offset..from + words, to + offset + self.stride);
        self.words[to + offset..to + offset + self.stride].copy_from_slice(row);
        self.free(leaf);
        Leaf { first, len }
    }

    /// Removes the row with a rank from a leaf. Returns `None` if the row is not in
    /// the leaf.
    pub(super) fn remove(&mut self, leaf: Leaf, rank: u64) -> Option<Leaf> {
        self.find(leaf, rank)?;
        let offset = self.position(leaf, rank) * self.stride;
        let len = leaf.len - 1;
        let words = leaf.len as usize * self.stride;
        if len > 0 && class(leaf.len) == class(len) {
            let first = leaf.first as usize * self.stride;
            let block = &mut self.words[first..first + words];
            block.copy_within(offset + self.stride.., offset);
            return Some(Leaf { len, ..leaf });
        }
        let first = self.alloc(len as usize);
        let (from, to) = (
            leaf.first as usize * self.stride,
            first as usize * self.stride,
        );
        self.words.copy_within(from..from + offset, to);
        self.words
            .copy_within(from + offset + self.stride..from + words, to + offset);
        self.free(leaf);
        Some(Leaf { first, len })
    }

    /// Returns the rows of two leaves, best first. A row that is in both leaves comes
    /// once.
    fn both(&self, leaves: [Leaf; 2]) -> impl Iterator<Item = &[u64]> {
        let [mut lower, mut upper] = leaves.map(|leaf| self.rows(leaf).peekable());
        std::iter::from_fn(move || match (lower.peek(), upper.peek()) {
            (Some(a), Some(b)) if a[0] == b[0] => {
                lower.next();
                upper.next()
            }
            (Some(a), Some(b)) if b[0] < a[0] => upper.next(),
            (None, _) => upper.next(),
            (Some(_), _) => lower.next(),
        })
    }

    /// Returns the number of different rules in two leaves.
    pub(super) fn distinct(&self, leaves: [Leaf; 2]) -> usize {
        self.both(leaves).count()
    }

    /// Returns the words of two leaves' rows, best first. A row that is in both
    /// leaves comes once.
    pub(super) fn merged(&self, leaves: [Leaf; 2]) -> Vec<u64> {
        let mut rows = Vec::new();
        for row in self.both(leaves) {
            rows.extend_from_slice(row);
        }
        rows
    }

    /// Returns the rule of a row.
    pub(super) fn rule<'a>(schema: &'a Schema, row: &'a [u64]) -> PackedRule<'a> {
        PackedRule::new(schema, &row[1..])
    }

    /// Prefetches the first rows of a leaf.
    #[inline(always)]
    pub(super) fn prefetch(&self, leaf: Leaf) {
        let word = leaf.first as usize * self.stride;
        prefetch_early_at(&self.words, word);
        prefetch_early_at(&self.words, word + 8);
    }

    #[inline(always)]
    fn matches(&self, row: &[u64], key: &[u64; W]) -> bool {
        let (value, rest) = row[1..].split_first_chunk::<W>().expect("a value");
        let (mask, high) = rest.split_first_chunk::<W>().expect("a mask");
        let mut differing = 0;
        for word in 0..W {
            differing |= (key[word] ^ value[word]) & mask[word];
        }
        if differing != 0 {
            return false;
        }
        match &self.ranges {
            Ranges::Narrow(ranges) => ranges.iter().all(|range| {
                let field_value = (key[range.word] >> range.shift) & range.ones;
                let low = (value[range.word] >> range.shift) & range.ones;
                let high = (high[0] >> range.high_shift) & range.ones;
                low <= field_value && field_value <= high
            }),
            Ranges::Wide(ranges) => ranges.iter().all(|range| range.contains(key, value, high)),
        }
    }

    /// Returns the better of `best` and the best rule of a leaf that matches.
    #[inline(always)]
    pub(super) fn improve(&self, leaf: Leaf, key: &[u64; W], best: Winner) -> Winner {
        for row in self.rows(leaf) {
            if row[0] >= best.rank() {
                return best;
            }
            if self.matches(row, key) {
                return Winner::from_rank(row[0]);
            }
        }
        best
    }

    /// Calls `show` with each rule that a search of a leaf compares, and whether it
    /// matches.
    pub(super) fn compare(
        &self,
        leaf: Leaf,
        key: &[u64; W],
        best: Winner,
        mut show: impl FnMut(&[u64], bool),
    ) -> Winner {
        for row in self.rows(leaf) {
            if row[0] >= best.rank() {
                return best;
            }
            let matches = self.matches(row, key);
            show(row, matches);
            if matches {
                return Winner::from_rank(row[0]);
            }
        }
        best
    }

    /// Does the same as [`improve`](Self::improve), and adds to `mask` the bits of
    /// the key that the comparisons depend on.
    pub(super) fn improve_masked(
        &self,
        schema: &Schema,
        leaf: Leaf,
        key: &[u64; W],
        best: Winner,
        mask: &mut [u64],
    ) -> Winner {
        self.compare(leaf, key, best, |row, matches| {
            let rule = Self::rule(schema, row);
            if matches {
                unwildcard::confirm(&rule, key, mask);
            } else {
                unwildcard::refute(&rule, key, mask);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_room_for_their_rows_and_few_more() {
        for len in 1..5000 {
            let room = room(class(len));
            assert!(len <= room && room <= len + len / 4, "{len}: {room}");
            assert_eq!(class(room), class(len));
        }
        assert!(class(u32::MAX >> 1) < 128);
    }
}
