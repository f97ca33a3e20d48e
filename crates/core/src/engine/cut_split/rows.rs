//! The rules at the leaves: each leaf has its own copies, one after the other,
//! best first.

use crate::engine::cut_split::node::Leaf;
use crate::memory::bytes_of;
use crate::packed::PackedRule;
use crate::rule::Winner;
use crate::schema::{RangeField, Schema};
use crate::simd::prefetch_early_at;
use crate::unwildcard;

/// Blocks of up to so many rows have a size of their own; from there on there are
/// four sizes for each doubling.
const SMALL: u32 = 8;

/// The end of a list of free blocks.
const NONE: u32 = u32::MAX;

/// The number of a block's size: the smallest that has room for `len` rows, of
/// which there is at least one.
fn class(len: u32) -> usize {
    if len <= SMALL {
        return len as usize - 1;
    }
    let doublings = (len - 1).ilog2();
    let step = 1 << (doublings - 2);
    let steps = (len - (1 << doublings)).div_ceil(step);
    (SMALL + (doublings - 3) * 4 + steps - 1) as usize
}

/// The rows of a block of a size.
fn room(class: usize) -> u32 {
    let class = u32::try_from(class).expect("a hundred sizes");
    if class < SMALL {
        return class + 1;
    }
    let (doublings, steps) = ((class - SMALL) / 4 + 3, (class - SMALL) % 4 + 1);
    (1 << doublings) + steps * (1 << (doublings - 2))
}

/// Rows of at most these bytes are never compacted: a few dozen rules of the
/// narrowest keys, one page.
const MIN_SPARSE_BYTES: usize = 4 << 10;

/// Rows that a leaf of `len` rows takes.
pub(super) fn room_for(len: usize) -> usize {
    match u32::try_from(len).expect("rows are bounded") {
        0 => 0,
        len => room(class(len)) as usize,
    }
}

/// A range field of one word, whose upper end is in the only word of upper ends.
#[derive(Clone, Copy)]
struct NarrowRange {
    word: usize,
    shift: u32,
    high_shift: u32,
    ones: u64,
}

/// How ranges are compared.
enum Ranges {
    /// Upper ends are in one word.
    Narrow(Box<[NarrowRange]>),
    Wide(Box<[RangeField]>),
}

/// Rows of all leaves. A row has the rule's rank and its words.
pub(super) struct Rows<const W: usize> {
    words: Vec<u64>,
    /// Words of a row.
    stride: usize,
    ranges: Ranges,
    /// Rows from here on were never used.
    end: u32,
    /// For each size of blocks the first free one; the others follow by their
    /// first word.
    free: Vec<u32>,
    /// Rows of the blocks that are in use.
    used: usize,
}

impl<const W: usize> Rows<W> {
    /// Words of a row.
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

    /// Rows of blocks in use.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// True if there is twice the memory that is used, and more than
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
            && *free != NONE
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
            // A quarter, not the usual doubling: rows are large.
            let more = (words - self.words.len()).max(self.words.len() / 4);
            self.words.reserve_exact(more);
        }
        self.words.resize(words, 0);
        first
    }

    /// Gives the block of a leaf back.
    pub(super) fn free(&mut self, leaf: Leaf) {
        if leaf.len == 0 {
            return;
        }
        let class = class(leaf.len);
        self.used -= room(class) as usize;
        if self.free.len() <= class {
            self.free.resize(class + 1, NONE);
        }
        let next = std::mem::replace(&mut self.free[class], leaf.first);
        self.words[leaf.first as usize * self.stride] = u64::from(next);
    }

    /// Stores the rules of a leaf, ranks and words, which come best first.
    pub(super) fn store<'a>(
        &mut self,
        len: usize,
        rows: impl Iterator<Item = (u64, &'a [u64])>,
    ) -> Leaf {
        let first = self.alloc(len);
        let mut at = first as usize * self.stride;
        for (rank, words) in rows {
            self.words[at] = rank;
            self.words[at + 1..at + self.stride].copy_from_slice(words);
            at += self.stride;
        }
        let len = u32::try_from(len).expect("rows are bounded");
        debug_assert_eq!(at, (first + len) as usize * self.stride);
        Leaf { first, len }
    }

    /// All words of a leaf's rows.
    #[inline(always)]
    pub(super) fn of(&self, leaf: Leaf) -> &[u64] {
        &self.words[leaf.first as usize * self.stride..][..leaf.len as usize * self.stride]
    }

    /// The rows of a leaf, best first.
    #[inline(always)]
    pub(super) fn rows(&self, leaf: Leaf) -> impl Iterator<Item = &[u64]> {
        self.of(leaf).chunks_exact(self.stride)
    }

    /// The row of a rank in a leaf.
    pub(super) fn find(&self, leaf: Leaf, rank: u64) -> Option<&[u64]> {
        let at = self.position(leaf, rank);
        let row = &self.of(leaf)[(at * self.stride).min(leaf.len as usize * self.stride)..];
        row.first()
            .is_some_and(|&found| found == rank)
            .then(|| &row[..self.stride])
    }

    /// How many rows of a leaf are better than a rank.
    pub(super) fn position(&self, leaf: Leaf, rank: u64) -> usize {
        let words = self.of(leaf);
        if leaf.len <= SMALL {
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
        let at = self.position(leaf, row[0]) * self.stride;
        let len = leaf.len + 1;
        let words = leaf.len as usize * self.stride;
        if leaf.len > 0 && class(leaf.len) == class(len) {
            let first = leaf.first as usize * self.stride;
            let block = &mut self.words[first..first + words + self.stride];
            block.copy_within(at..words, at + self.stride);
            block[at..at + self.stride].copy_from_slice(row);
            return Leaf { len, ..leaf };
        }
        let first = self.alloc(len as usize);
        let (from, to) = (
            leaf.first as usize * self.stride,
            first as usize * self.stride,
        );
        self.words.copy_within(from..from + at, to);
        self.words
            .copy_within(from + at..from + words, to + at + self.stride);
        self.words[to + at..to + at + self.stride].copy_from_slice(row);
        self.free(leaf);
        Leaf { first, len }
    }

    /// Removes the row of a rank from a leaf, if it is there.
    pub(super) fn remove(&mut self, leaf: Leaf, rank: u64) -> Option<Leaf> {
        self.find(leaf, rank)?;
        let at = self.position(leaf, rank) * self.stride;
        let len = leaf.len - 1;
        let words = leaf.len as usize * self.stride;
        if len > 0 && class(leaf.len) == class(len) {
            let first = leaf.first as usize * self.stride;
            let block = &mut self.words[first..first + words];
            block.copy_within(at + self.stride.., at);
            return Some(Leaf { len, ..leaf });
        }
        let first = self.alloc(len as usize);
        let (from, to) = (
            leaf.first as usize * self.stride,
            first as usize * self.stride,
        );
        self.words.copy_within(from..from + at, to);
        self.words
            .copy_within(from + at + self.stride..from + words, to + at);
        self.free(leaf);
        Some(Leaf { first, len })
    }

    /// The rows of two leaves, best first, those of both once.
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

    /// The number of rules of two leaves.
    pub(super) fn distinct(&self, leaves: [Leaf; 2]) -> usize {
        self.both(leaves).count()
    }

    /// Words of the rows of two leaves, best first, those of both once.
    pub(super) fn merged(&self, leaves: [Leaf; 2]) -> Vec<u64> {
        let mut rows = Vec::new();
        for row in self.both(leaves) {
            rows.extend_from_slice(row);
        }
        rows
    }

    /// The rule of a row.
    pub(super) fn rule<'a>(schema: &'a Schema, row: &'a [u64]) -> PackedRule<'a> {
        PackedRule::new(schema, &row[1..])
    }

    /// Prefetches the first rows of a leaf.
    #[inline(always)]
    pub(super) fn prefetch(&self, leaf: Leaf) {
        let at = leaf.first as usize * self.stride;
        prefetch_early_at(&self.words, at);
        prefetch_early_at(&self.words, at + 8);
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
                let found = (key[range.word] >> range.shift) & range.ones;
                let low = (value[range.word] >> range.shift) & range.ones;
                let high = (high[0] >> range.high_shift) & range.ones;
                low <= found && found <= high
            }),
            Ranges::Wide(ranges) => ranges.iter().all(|range| range.contains(key, value, high)),
        }
    }

    /// The better of `best` and the best rule of a leaf that matches.
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

    /// Shows the rules that a search of a leaf compares, with whether they match.
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

    /// The same as [`improve`](Self::improve), with the bits of the key that say
    /// which rules match.
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
