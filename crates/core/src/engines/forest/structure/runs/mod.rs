//! The memory of runs: one array of words.
//!
//! # Idea
//! Runs change length with every update, and each change frees a block and needs
//! another. Runs grow about as often as they shrink, so a freed block is soon used
//! again, for a run of its length. Freed blocks are not merged. When a quarter of the
//! array is free nevertheless, all runs are moved down into the free space, some with
//! each update, until the free space is at the end and is released.
//!
//! The array itself grows and shrinks without a pause ([`array`](super::array)).
//!
//! # Data layout
//! The array is measured in *units* of one rule each. Used and free blocks cover it
//! without gaps.
//! ```text
//! words    │ run of 3 rules │ free block of 4      │ run of 2 │
//!                             └ length, next in list
//! heads    1 0 0              1 0 0 0                1 0         block begins
//! free     0 0 0              1 0 0 0                0 0         free block begins
//! ```
//! Free blocks are in lists by length ([`free_lists`](super::free_lists)).
//!
//! While runs are moved, there is a *hole* between the moved runs and the others. It
//! grows by each free block that it reaches, and a run is moved from its end to its
//! start. Only the free blocks before it are in lists.
//! ```text
//! │ moved runs, few free blocks │ hole │ runs and free blocks │
//!                         target┘      └next
//! ```
//!
//! # Cost
//! All operations except copies are O(1). Moving begins when a quarter of the array is
//! free. It moves sixteen units with each update, and four more for each unit that the
//! update has written, so that less than half of the array is ever free.
//!
//! # Limits
//! Slots have 32 bits for the position of a run's first word. So there is a
//! [capacity](Runs::capacity) in rules. It reserves a quarter of the addressable
//! words for free blocks, and room for two of the longest runs. If free blocks take
//! more, all runs are moved together in one pause. That happens only near the
//! capacity, and not again before a quarter of all words has been appended.

use super::array::Array;
use super::bits::Bits;
use super::columns;
use super::free_lists::FreeLists;
use crate::budget::memory::grown;
use crate::engines::forest::rows::RunLayout;
use crate::engines::forest::slot::{MAX_RUN, Run};

/// The most units that one change appends, doubled as a reserve: a run that is split
/// is copied with one more rule, and small nested tables are folded.
const APPENDABLE_UNITS: usize = 2 * MAX_RUN;

/// Units that the hole passes with each update, in addition to four for each unit that
/// the update has written. Bounds the moves of an update.
const MOVED_PER_UPDATE: usize = 16;

/// With at most this number of free words, 8 KB, no runs are moved. Bounds the unused
/// memory of an array of few runs.
const MIN_FREE_WORDS: usize = 1 << 10;

/// Runs of rules of one shape.
#[derive(Debug)]
pub(super) struct Runs {
    array: Array,
    /// Words of a rule.
    columns: usize,
    /// 2^64 divided by `columns`, rounded up.
    columns_inverse: u64,
    /// The layout of a rule's words in a run.
    layout: RunLayout,
    /// The most words of the array, and the most units.
    limit: u32,
    most_units: usize,
    /// The number of units of the array.
    units: usize,
    heads: Bits,
    free: Bits,
    lists: FreeLists,
    free_units: usize,
    /// While runs are being moved down.
    hole: Option<Hole>,
    /// Units written since the last [`tidy`](Runs::tidy).
    written: usize,
}

/// The units between the moved runs and the others; may be none.
#[derive(Clone, Copy, Debug)]
struct Hole {
    /// The first unit: the next run goes here.
    target: usize,
    /// The unit after the last: the next block to move.
    next: usize,
}

impl Runs {
    pub(super) fn new(layout: RunLayout, huge: bool) -> Runs {
        let columns = layout.columns;
        assert!(columns >= 3, "a rank, a value and a mask");
        Runs {
            array: Array::new(huge),
            columns,
            columns_inverse: u64::MAX / columns as u64 + 1,
            layout,
            limit: u32::MAX,
            most_units: u32::MAX as usize / columns,
            units: 0,
            heads: Bits::default(),
            free: Bits::default(),
            lists: FreeLists::new(),
            free_units: 0,
            hole: None,
            written: 0,
        }
    }

    /// Limits the array to `limit` words.
    pub(super) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
        self.most_units = limit as usize / self.columns;
    }

    /// The most words that the array may have.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// The most rules for which there is always room.
    pub(super) fn capacity(&self) -> usize {
        let units = self.most_units;
        (units - units / 4).saturating_sub(APPENDABLE_UNITS)
    }

    /// True if [`compact`](Self::compact) must be called before the next change,
    /// which might append words that are not addressable. If there are no more rules
    /// than the [`capacity`](Self::capacity), there is enough room afterwards.
    pub(super) fn is_short_of_room(&self) -> bool {
        self.units + APPENDABLE_UNITS > self.most_units
    }

    /// Makes room for `rules` more rules.
    pub(super) fn reserve(&mut self, rules: usize) {
        self.array.reserve(rules * self.columns);
    }

    /// Words that [`reserve`](Self::reserve) requests: for the rules, and as spare
    /// room.
    pub(super) fn reserved(&self, rules: usize) -> (usize, usize) {
        let words = rules.saturating_mul(self.columns);
        (words, Array::spare(words))
    }

    /// Bytes of the bits and lists that describe the words.
    pub(super) fn index_bytes(&self) -> usize {
        self.heads.bytes() + self.free.bytes() + self.lists.bytes()
    }

    /// All words, including free blocks.
    #[inline]
    pub(super) fn words(&self) -> &[u64] {
        self.array.words()
    }

    /// The number of words that belong to no run.
    pub(super) fn free_words(&self) -> usize {
        self.free_units * self.columns
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.array.bytes() + self.index_bytes()
    }

    /// Bytes held for `rules` rules of `columns` columns, right after a build.
    pub(super) fn bytes_for(columns: usize, rules: usize) -> usize {
        let bits = 2 * grown(rules.div_ceil(64)) * size_of::<u64>();
        rules * columns * size_of::<u64>() + bits + FreeLists::new().bytes()
    }

    /// The ranks of a run's rules.
    #[inline]
    pub(super) fn ranks(&self, run: Run) -> &[u64] {
        &self.words()[run.start as usize..][..usize::from(run.len)]
    }

    /// The words of a run, column by column.
    #[inline]
    pub(super) fn of(&self, run: Run) -> &[u64] {
        &self.words()[run.start as usize..][..usize::from(run.len) * self.columns]
    }

    /// The words of a rule of a run, as a row.
    pub(super) fn row(&self, run: Run, rule: usize) -> impl Iterator<Item = u64> {
        let len = usize::from(run.len);
        let words = self.of(run);
        (0..self.columns).map(move |column| words[self.layout.at(column, rule, len)])
    }

    /// Appends a rule of a run as a row.
    pub(super) fn push_row(&self, run: Run, rule: usize, rows: &mut Vec<u64>) {
        rows.extend(self.row(run, rule));
    }

    /// Makes a run of rows, which must be sorted, best first.
    pub(super) fn create<'a>(&mut self, rows: impl ExactSizeIterator<Item = &'a [u64]>) -> Run {
        let run = self.allocate(rows.len());
        let len = usize::from(run.len);
        let (start, count) = (run.start as usize, len * self.columns);
        let layout = self.layout;
        self.array.edit(start, count, |words| {
            let words = &mut words[start..start + count];
            for (rule, row) in rows.enumerate() {
                for (column, &word) in row.iter().enumerate() {
                    words[layout.at(column, rule, len)] = word;
                }
            }
        });
        run
    }

    /// Returns the run with one more rule; `old` is no longer valid.
    pub(super) fn insert(&mut self, old: Run, row: &[u64]) -> Run {
        let position = self.ranks(old).partition_point(|&rank| rank < row[0]);
        let len = usize::from(old.len);
        let in_place = self.unit(old) + len == self.units;
        let new = if in_place {
            self.append(1);
            self.written += len + 1;
            self.run_at(self.unit(old), len + 1)
        } else {
            self.allocate(len + 1)
        };
        let (start, target) = (old.start as usize, new.start as usize);
        let heads = self.layout.heads;
        self.array.edit(target, (len + 1) * self.columns, |words| {
            columns::widen(words, start, target, len, position, row, heads);
        });
        if !in_place {
            self.release(old);
        }
        new
    }

    /// Returns the run without one of its rules, if any remains; `old` is no longer
    /// valid.
    pub(super) fn remove(&mut self, old: Run, position: usize) -> Option<Run> {
        let len = usize::from(old.len);
        if len == 1 {
            self.release(old);
            return None;
        }
        // A free block of the new length, or the first units of the present block.
        let moved = self.lists.has(len - 1);
        let new = if moved {
            self.allocate(len - 1)
        } else {
            self.written += len - 1;
            self.run_at(self.unit(old), len - 1)
        };
        let (start, target) = (old.start as usize, new.start as usize);
        let layout = self.layout;
        self.array.edit(target, (len - 1) * self.columns, |words| {
            columns::narrow(words, start, target, layout, len, position);
        });
        if moved {
            self.release(old);
        } else {
            let last = self.unit(old) + len - 1;
            self.heads.set(last);
            self.free_block(last, 1);
        }
        Some(new)
    }

    /// Frees a run.
    pub(super) fn release(&mut self, run: Run) {
        self.free_block(self.unit(run), usize::from(run.len));
    }

    /// Does some of the postponed work; to be called once at the end of each update.
    /// `moved` receives the rank of the first rule of each moved run, and the run's
    /// new position.
    #[inline]
    pub(super) fn tidy(&mut self, moved: &mut dyn FnMut(u64, Run)) {
        let sparse = self.free_words() > MIN_FREE_WORDS && self.free_units * 4 > self.units;
        if sparse || self.hole.is_some() {
            self.move_some(moved);
        }
        self.written = 0;
        self.array.tidy();
    }

    /// Moves some runs down.
    fn move_some(&mut self, moved: &mut dyn FnMut(u64, Run)) {
        if self.hole.is_none() {
            self.begin_moving();
        }
        let mut budget = MOVED_PER_UPDATE + 4 * self.written;
        while let Some(hole) = self.hole
            && budget > 0
        {
            let units = self.pass_block(hole, moved);
            budget = budget.saturating_sub(units);
        }
    }

    /// Moves all runs together, so that no unit is free. Calls `moved` as
    /// [`tidy`](Self::tidy) does.
    pub(super) fn compact(&mut self, moved: &mut dyn FnMut(u64, Run)) {
        // Free blocks that are in lists now are behind the hole.
        while let Some(hole) = self.hole {
            self.pass_block(hole, moved);
        }
        self.begin_moving();
        while let Some(hole) = self.hole {
            self.pass_block(hole, moved);
        }
    }

    /// The first unit of a run: its first word divided by `columns`. The product is too
    /// large by less than 2^64 divided by `columns`, since the word is below 2^32 and
    /// `columns` is too.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // not larger than the word's position
    fn unit(&self, run: Run) -> usize {
        let product = u128::from(run.start) * u128::from(self.columns_inverse);
        (product >> 64) as usize
    }

    fn run_at(&self, unit: usize, len: usize) -> Run {
        Run {
            start: number(unit * self.columns),
            len: u16::try_from(len).expect("at most MAX_RUN"),
        }
    }

    /// Takes a block for a run: a free one, or a part of the hole, or a new one.
    fn allocate(&mut self, len: usize) -> Run {
        self.written += len;
        let hole = self.hole.as_mut();
        let unit = if let Some(unit) = self.lists.find(len) {
            self.take_block(unit as usize, len)
        } else if let Some(hole) = hole.filter(|hole| hole.next - hole.target >= len) {
            let unit = hole.target;
            hole.target += len;
            if hole.target < hole.next {
                self.heads.set(hole.target);
            }
            self.free_units -= len;
            unit
        } else {
            let unit = self.append(len);
            self.heads.set(unit);
            unit
        };
        self.run_at(unit, len)
    }

    /// Takes the first block of a list; frees what it has beyond `len` units.
    #[allow(clippy::cast_possible_truncation)] // halves of words
    fn take_block(&mut self, unit: usize, len: usize) -> usize {
        let header = self.words()[unit * self.columns];
        let (units, next) = (header as u32 as usize, (header >> 32) as u32);
        self.lists.pop(units, next);
        self.free.clear(unit);
        self.free_units -= units;
        if units > len {
            self.heads.set(unit + len);
            self.free_block(unit + len, units - len);
        }
        unit
    }

    /// Appends units to the array.
    fn append(&mut self, len: usize) -> usize {
        let unit = self.units;
        let words = (unit + len) * self.columns;
        assert!(
            words <= self.limit as usize,
            "room that can be addressed was made before"
        );
        self.array.extend_to(words);
        self.units += len;
        self.heads.resize(unit + len);
        self.free.resize(unit + len);
        unit
    }

    /// Frees a block, which has its head.
    fn free_block(&mut self, unit: usize, units: usize) {
        self.free_units += units;
        if self.free_units == self.units {
            self.truncate(0);
            self.lists.clear();
            self.hole = None;
            self.free_units = 0;
            return;
        }
        self.free.set(unit);
        if self.hole.is_none_or(|hole| unit < hole.target) {
            let next = self.lists.push(units, number(unit));
            let header = u64::from(next) << 32 | units as u64;
            self.array.put(unit * self.columns, header);
        }
    }

    /// Shortens the array.
    fn truncate(&mut self, units: usize) {
        self.array.truncate(units * self.columns);
        self.units = units;
        self.heads.resize(units);
        self.free.resize(units);
    }

    /// Begins to move runs, with an empty hole at the first free block.
    fn begin_moving(&mut self) {
        self.lists.clear();
        let first = self.free.next_one(0);
        self.hole = first.map(|first| Hole {
            target: first,
            next: first,
        });
    }

    /// Lets the hole pass a block: a free block becomes part of it, a run is moved to its
    /// start. At the end of the array, the hole is cut off. Returns the block's units.
    fn pass_block(&mut self, hole: Hole, moved: &mut dyn FnMut(u64, Run)) -> usize {
        let Hole { target, next } = hole;
        if next == self.units {
            self.free_units -= next - target;
            self.truncate(target);
            self.hole = None;
            return 0;
        }
        let after = self.heads.next_one(next + 1).unwrap_or(self.units);
        let units = after - next;
        let mut hole = Hole {
            target,
            next: after,
        };
        if self.free.get(next) {
            self.free.clear(next);
        } else {
            hole.target += units;
            self.move_run(next, target, units, moved);
        }
        if hole.target < after {
            if next != hole.target {
                self.heads.clear(next);
            }
            self.heads.set(hole.target);
        }
        self.hole = Some(hole);
        units
    }

    /// Copies a run down.
    fn move_run(&mut self, from: usize, to: usize, units: usize, moved: &mut dyn FnMut(u64, Run)) {
        let (source, target) = (from * self.columns, to * self.columns);
        if from == to {
            return;
        }
        let count = units * self.columns;
        self.array.edit(target, count, |words| {
            words.copy_within(source..source + count, target);
        });
        moved(self.words()[target], self.run_at(to, units));
    }
}

/// Converts a unit or word index to 32 bits, as in lists and slots.
fn number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 words of rules")
}

#[cfg(test)]
mod tests;
