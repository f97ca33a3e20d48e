//! Range trees, which find the interval of a field that a value is in.
//!
//! # Idea
//! Intervals are represented by their smallest values, in ascending order. The first
//! one starts at 0. A node is a cache line of these starts, and each entry of an
//! upper level is the first entry of a node below. To find the last start that is not
//! above a value, a search counts on every level how many entries of one node are not
//! above it. So it has no branches to predict, and reads one cache line for each
//! level:
//! ```text
//!                  [ 0 | 64 | 640 | … ]
//!            ┌───────┘    └────────┐
//!   [ 0 | 3 | 4 | 9 | … ]   [ 64 | 70 | 99 | … ]       count, and go down
//! ```
//! Fields of up to 32 bits have sixteen entries in a node, fields of up to 64 bits
//! eight, wider fields four. Several values are searched together, level by level, so
//! that their reads overlap.
//!
//! Fields of up to 32 bits with many intervals also have *heads*. A head stands for
//! the first bits of a value, and holds the number of intervals that begin below all
//! values with these bits. A search starts at this number in the lowest level, and in
//! most cases reads one or two nodes. There are about as many heads as intervals. If
//! one head has too many intervals, the search descends from the root instead.
//!
//! # References
//! [DEC14] §III: range trees for prefix and range fields.
//!
//! [DEC14]: crate::papers#dec14

use crate::model::schema::{Placement, prefix_mask};
use crate::parts::simd::Aligned;

/// The number of values that are searched together. Measured in `bench/records/constants.md`
/// (Decomposition).
pub(crate) const GROUP: usize = 16;

/// The intervals of a field, by their smallest values.
pub(crate) enum RangeTree {
    Short(Tree<i32, 16>),
    Long(Tree<u64, 8>),
    Wide(Tree<u128, 4>),
}

/// Evaluates an expression for the tree of any kind of field.
macro_rules! each {
    ($tree:expr, $name:ident => $do:expr) => {
        match $tree {
            RangeTree::Short($name) => $do,
            RangeTree::Long($name) => $do,
            RangeTree::Wide($name) => $do,
        }
    };
}

impl RangeTree {
    /// Returns an empty tree with room for `intervals` intervals of a field of
    /// `width` bits.
    pub(crate) fn with_capacity(width: u32, intervals: usize) -> RangeTree {
        match width {
            0..=32 => RangeTree::Short(Tree::with_capacity(intervals, width)),
            33..=64 => RangeTree::Long(Tree::with_capacity(intervals, 0)),
            _ => RangeTree::Wide(Tree::with_capacity(intervals, 0)),
        }
    }

    /// Bytes held by a tree of `intervals` intervals.
    pub(crate) fn bytes_of(width: u32, intervals: usize) -> usize {
        match width {
            0..=32 => Tree::<i32, 16>::bytes_of(intervals, width),
            33..=64 => Tree::<u64, 8>::bytes_of(intervals, 0),
            _ => Tree::<u128, 4>::bytes_of(intervals, 0),
        }
    }

    /// Adds the next interval by its smallest value.
    pub(crate) fn push(&mut self, start: u128) {
        each!(self, tree => tree.push(start));
    }

    /// Makes the upper levels, after all intervals have been added.
    pub(crate) fn finish(&mut self) {
        each!(self, tree => tree.finish());
    }

    /// The number of intervals.
    pub(crate) fn len(&self) -> usize {
        each!(self, tree => tree.len)
    }

    pub(crate) fn bytes(&self) -> usize {
        each!(self, tree => tree.bytes())
    }

    /// Cache lines that a search reads: one for each level, or the head and a node.
    pub(crate) fn lines(&self) -> usize {
        match self {
            RangeTree::Short(tree) if !tree.heads.is_empty() => 2,
            tree => each!(tree, tree => tree.levels.len()),
        }
    }

    /// Returns the smallest and the largest value of an interval. `max_value` is the
    /// largest value of the field.
    pub(crate) fn ends(&self, interval: usize, max_value: u128) -> (u128, u128) {
        let start = |interval| each!(self, tree => tree.start(interval));
        let next = interval + 1;
        let high = if next < self.len() {
            start(next) - 1
        } else {
            max_value
        };
        (start(interval), high)
    }

    /// Returns the smallest number of leading bits that determine the interval of a
    /// key's value, in a field of `width` bits.
    pub(crate) fn leading_bits(&self, place: &Placement, width: u32, key: &[u64]) -> u32 {
        let value = place.get(key);
        let max_value = prefix_mask(width, width);
        let (low, high) = self.ends(self.find(place, key), max_value);
        let inside = |length: &u32| {
            let mask = prefix_mask(width, *length);
            low <= value & mask && (value & mask) | (max_value & !mask) <= high
        };
        let length = (0..=width).find(inside);
        length.expect("the value itself is in its interval")
    }

    /// Returns the index of the interval that a key's field is in.
    #[inline]
    pub(crate) fn find(&self, place: &Placement, key: &[u64]) -> usize {
        match self {
            RangeTree::Short(tree) if tree.heads.is_empty() => tree.find(short(place.low.get(key))),
            RangeTree::Short(tree) => tree.find_by_head(place.low.get(key)),
            RangeTree::Long(tree) => tree.find(place.low.get(key)),
            RangeTree::Wide(tree) => tree.find(place.get(key)),
        }
    }

    /// Writes the index of each key's interval to `intervals`.
    #[inline]
    pub(crate) fn find_each<const W: usize>(
        &self,
        place: &Placement,
        keys: &[[u64; W]; GROUP],
        intervals: &mut [usize; GROUP],
    ) {
        let keys = keys.each_ref();
        match self {
            RangeTree::Short(tree) if tree.heads.is_empty() => {
                tree.find_each(&keys.map(|key| short(place.low.get(key))), intervals);
            }
            RangeTree::Short(tree) => {
                tree.find_each_by_head(&keys.map(|key| place.low.get(key)), intervals);
            }
            RangeTree::Long(tree) => tree.find_each(&keys.map(|key| place.low.get(key)), intervals),
            RangeTree::Wide(tree) => tree.find_each(&keys.map(|key| place.get(key)), intervals),
        }
    }
}

/// Maps a value of a field of up to 32 bits to a signed number in the same order,
/// because vector instructions compare signed numbers.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
fn short(value: u64) -> i32 {
    (value as u32 ^ 1 << 31) as i32
}

/// A number stored in nodes.
pub(crate) trait Entry: Copy + PartialOrd {
    /// The largest number. It fills the last node up.
    const LARGEST: Self;

    fn of(value: u128) -> Self;

    fn value(self) -> u128;
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
impl Entry for i32 {
    const LARGEST: i32 = i32::MAX;

    fn of(value: u128) -> i32 {
        short(value as u64)
    }

    fn value(self) -> u128 {
        (self as u32 ^ 1 << 31).into()
    }
}

#[allow(clippy::cast_possible_truncation)]
impl Entry for u64 {
    const LARGEST: u64 = u64::MAX;

    fn of(value: u128) -> u64 {
        value as u64
    }

    fn value(self) -> u128 {
        self.into()
    }
}

impl Entry for u128 {
    const LARGEST: u128 = u128::MAX;

    fn of(value: u128) -> u128 {
        value
    }

    fn value(self) -> u128 {
        self
    }
}

/// A tree over starts, with `K` starts in a node.
pub(crate) struct Tree<T, const K: usize> {
    /// The lowest level first.
    nodes: Vec<Aligned<[T; K]>>,
    len: usize,
    /// The level of the root first.
    levels: Vec<Level>,
    /// For each possible number of a value's first bits, and for one number more: the
    /// number of intervals that begin below it. May be empty.
    heads: Vec<u32>,
    /// The number of a value's bits that follow its first bits.
    head_shift: u32,
}

/// The smallest number of intervals for which there are heads. Measured in
/// `bench/records/constants.md` (Decomposition).
const MIN_HEADED_INTERVALS: usize = 256;

/// The largest number of intervals of a head for which a search starts at the head.
/// Measured in `bench/records/constants.md` (Decomposition).
const MAX_HEAD_INTERVALS: u32 = 32;

/// The number of first bits that select a head, for `intervals` intervals of a field
/// of `width` bits. `None` if the tree has no heads.
fn head_bits(intervals: usize, width: u32) -> Option<u32> {
    let bits = intervals.next_power_of_two().trailing_zeros();
    (intervals >= MIN_HEADED_INTERVALS && width > 0).then(|| bits.min(width).min(16))
}

/// The nodes of one level.
#[derive(Clone, Copy)]
struct Level {
    /// The index of its first node.
    first: usize,
    /// The position of the last entry.
    last: usize,
}

impl<T: Entry, const K: usize> Tree<T, K> {
    /// The number of entries of each level, the lowest level first.
    fn sizes(intervals: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(intervals), |&entries| {
            (entries > K).then(|| entries.div_ceil(K))
        })
    }

    /// Makes an empty tree. It gets heads if `width` is not 0, and is then the
    /// field's width.
    fn with_capacity(intervals: usize, width: u32) -> Tree<T, K> {
        let nodes = Self::sizes(intervals).map(|entries| entries.div_ceil(K));
        let bits = head_bits(intervals, width);
        Tree {
            nodes: Vec::with_capacity(nodes.sum()),
            len: 0,
            levels: Vec::with_capacity(Self::sizes(intervals).count()),
            heads: Vec::with_capacity(bits.map_or(0, |bits| (1 << bits) + 1)),
            head_shift: bits.map_or(0, |bits| width - bits),
        }
    }

    fn bytes_of(intervals: usize, width: u32) -> usize {
        let nodes = Self::sizes(intervals).map(|entries| entries.div_ceil(K));
        let levels = Self::sizes(intervals).count();
        let heads = head_bits(intervals, width).map_or(0, |bits| (1 << bits) + 1);
        nodes.sum::<usize>() * size_of::<Aligned<[T; K]>>()
            + levels * size_of::<Level>()
            + heads * size_of::<u32>()
    }

    fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Aligned<[T; K]>>()
            + self.levels.capacity() * size_of::<Level>()
            + self.heads.capacity() * size_of::<u32>()
    }

    fn push(&mut self, start: u128) {
        Self::push_entry(&mut self.nodes, self.len, T::of(start));
        self.len += 1;
    }

    /// Adds an entry at a position of the level that is being filled.
    fn push_entry(nodes: &mut Vec<Aligned<[T; K]>>, position: usize, entry: T) {
        if position.is_multiple_of(K) {
            nodes.push(Aligned([T::LARGEST; K]));
        }
        nodes.last_mut().expect("a node")[position % K] = entry;
    }

    fn finish(&mut self) {
        let mut first = 0;
        for entries in Self::sizes(self.len) {
            if entries < self.len {
                // Copies the first entries of the nodes of the level below.
                let first_below = first - self.levels[0].nodes(K);
                for position in 0..entries {
                    let entry = self.nodes[first_below + position][0];
                    Self::push_entry(&mut self.nodes, position, entry);
                }
            }
            let level = Level {
                first,
                last: entries - 1,
            };
            self.levels.insert(0, level);
            first += level.nodes(K);
        }
        if self.heads.capacity() > 0 {
            let last_head = self.heads.capacity() - 1;
            let mut intervals_below = 0;
            for head in 0..=last_head as u128 {
                while intervals_below < self.len
                    && self.start(intervals_below) < head << self.head_shift
                {
                    intervals_below += 1;
                }
                let intervals_below = u32::try_from(intervals_below).expect("intervals of 32 bits");
                self.heads.push(intervals_below);
            }
        }
    }

    fn start(&self, interval: usize) -> u128 {
        self.nodes[interval / K][interval % K].value()
    }

    /// Goes from a node's position in its level to the position of its last entry
    /// that is not above `value`.
    #[inline(always)]
    fn descend(&self, level: Level, node: usize, value: T) -> usize {
        let entries = &self.nodes[level.first + node];
        let mut count = 0;
        for &entry in entries.iter() {
            count += u32::from(entry <= value);
        }
        // The largest value is not below the entries that fill up the last node.
        (node * K + count as usize - 1).min(level.last)
    }

    #[inline]
    fn find(&self, value: T) -> usize {
        let levels = self.levels.iter();
        levels.fold(0, |node, level| self.descend(*level, node, value))
    }

    #[inline]
    fn find_each(&self, values: &[T; GROUP], intervals: &mut [usize; GROUP]) {
        intervals.fill(0);
        for level in &self.levels {
            for (interval, &value) in intervals.iter_mut().zip(values) {
                *interval = self.descend(*level, *interval, value);
            }
        }
    }
}

impl Tree<i32, 16> {
    /// Returns the position of the last entry that is not above a value. `below`
    /// entries are below all values with the same first bits, and `behind` entries
    /// are not above all of them.
    #[inline(always)]
    fn find_between(&self, value: i32, below: u32, behind: u32) -> usize {
        if behind - below > MAX_HEAD_INTERVALS {
            return self.find(value);
        }
        let mut node = below as usize / 16;
        loop {
            let Some(entries) = self.nodes.get(node) else {
                return self.len - 1;
            };
            let mut count = 0;
            for &entry in entries.iter() {
                count += u32::from(entry <= value);
            }
            // The next node may have more such entries, unless it belongs to another
            // level.
            if count == 16 && (node + 1) * 16 < self.len {
                node += 1;
                continue;
            }
            return (node * 16 + count as usize - 1).min(self.len - 1);
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // sixteen bits
    fn find_by_head(&self, value: u64) -> usize {
        let head = (value >> self.head_shift) as usize;
        let ends = &self.heads[head..head + 2];
        self.find_between(short(value), ends[0], ends[1])
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // sixteen bits
    fn find_each_by_head(&self, values: &[u64; GROUP], intervals: &mut [usize; GROUP]) {
        let ends: [[u32; 2]; GROUP] = values.map(|value| {
            let head = (value >> self.head_shift) as usize;
            [self.heads[head], self.heads[head + 1]]
        });
        for ((interval, &value), [below, behind]) in intervals.iter_mut().zip(values).zip(ends) {
            *interval = self.find_between(short(value), below, behind);
        }
    }
}

impl Level {
    /// The number of its nodes, with `size` entries each.
    fn nodes(self, size: usize) -> usize {
        self.last / size + 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::schema::{Field, MatchKind, Schema};

    /// Finds the values around all starts, one by one and in groups.
    fn check(width: u32, mut starts: Vec<u128>) {
        let schema = Schema::new("t", vec![Field::new("f", width, MatchKind::Range)]).unwrap();
        let field = schema.field_ids().next().unwrap();
        let (place, max_value) = (schema.placement(field), schema.field(field).max_value());
        starts.iter_mut().for_each(|start| *start &= max_value);
        starts.push(0);
        starts.sort_unstable();
        starts.dedup();
        let mut tree = RangeTree::with_capacity(width, starts.len());
        for &start in &starts {
            tree.push(start);
        }
        tree.finish();
        assert_eq!(tree.len(), starts.len());
        assert_eq!(tree.bytes(), RangeTree::bytes_of(width, starts.len()));
        let values = starts.iter().flat_map(|&start| {
            [
                start.saturating_sub(1),
                start,
                start.saturating_add(1).min(max_value),
                max_value,
            ]
        });
        let keys: Vec<[u64; 2]> = values
            .map(|value| {
                let mut key = [0; 2];
                place.set(&mut key, value);
                key
            })
            .collect();
        let expected = |key: &[u64; 2]| {
            let value = place.get(key);
            starts.partition_point(|&start| start <= value) - 1
        };
        for key in &keys {
            let interval = tree.find(place, key);
            assert_eq!(interval, expected(key));
            let (low, high) = tree.ends(interval, max_value);
            assert!((low..=high).contains(&place.get(key)));
            assert_eq!(low, starts[interval]);
        }
        for keys in keys.as_chunks::<GROUP>().0 {
            let mut intervals = [0; GROUP];
            tree.find_each(place, keys, &mut intervals);
            assert_eq!(intervals, keys.each_ref().map(expected));
        }
    }

    proptest! {
        #[test]
        fn the_last_start_that_is_not_above_is_found(
            width in 1_u32..=128,
            starts in proptest::collection::vec(any::<u128>(), 0..400),
            dense in any::<bool>(),
        ) {
            let starts = match dense {
                false => starts,
                // The last values of the field, and their neighbours.
                true => starts.iter().map(|start| u128::MAX - start % 600).collect(),
            };
            check(width, starts);
        }
    }

    #[test]
    fn the_last_value_of_the_widest_field_is_a_start() {
        check(128, vec![u128::MAX, u128::MAX - 1]);
    }

    #[test]
    fn trees_of_every_number_of_levels_are_searched() {
        for width in [8, 13, 16, 24, 32, 33, 64, 65, 128] {
            for count in [
                0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 64, 65, 255, 256, 257, 4097,
            ] {
                check(width, (0..count).map(|start| start * 3).collect());
                let spread = (0..count).map(|start| start * 0x9e37_79b9);
                check(width, spread.collect());
            }
        }
    }
}
