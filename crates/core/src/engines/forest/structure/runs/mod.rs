//! The memory of runs: one array of words.
//!
//! # Idea
//! Runs change length with every update, and a freed run seldom fits the next run.
//! So free blocks are merged with their neighbours, and any long enough block is cut
//! to size. When a quarter of the array is free nevertheless, runs are moved down
//! into the gaps, some with each update, until the free space is at the end and is
//! released.
//!
//! The array itself grows and shrinks without a pause ([`array`](super::array)).
//!
//! # Data layout
//! The array is measured in *units* of one rule each. Used and free blocks cover it
//! without gaps; the last block is used.
//! ```text
//! words    │ run of 3 rules │ free block of 4     │ run of 2 │
//!                             ├ first unit: length, next ┤ previous
//!                             └ last unit: … third word: first unit
//! heads    1 0 0              1 0 0 0               1 0          block begins
//! free     0 0 0              1 0 0 0               0 0          free block begins
//! tails    0 0 0              0 0 0 1               0 0          free block ends
//! ```
//! Free blocks are in lists by length ([`free_lists`](super::free_lists)).
//!
//! # Cost
//! All operations except copies are O(1). After an update, at most a quarter of the
//! array is free, plus the blocks freed by the latest change, provided that moving
//! keeps up. Moving four units for each written unit guarantees that.
//!
//! # Limits
//! Slots have 32 bits for the position of a run's first word. So there is a
//! [capacity](Runs::capacity) in rules. It reserves a quarter of the addressable
//! words for free blocks, and room for two of the longest runs. If free blocks take
//! more, all runs are moved together in one pause. That happens only near the
//! capacity, and not again before a quarter of all words has been appended.
//!
//! # References
//! M. Masmano et al., "TLSF: a new dynamic memory allocator for
//! real-time systems", 2004.

use super::array::Array;
use super::bits::Bits;
use super::columns;
use super::free_lists::{FreeLists, NO_UNIT};
use crate::budget::memory::grown;
use crate::engines::forest::rows::RunLayout;
use crate::engines::forest::slot::{MAX_RUN, Run};

/// The most units that one change appends, doubled as a reserve: a run that is split
/// is copied with one more rule, and small nested tables are folded.
const APPENDABLE_UNITS: usize = 2 * MAX_RUN;

/// Units moved down with each update while moving, in addition to four for each unit
/// that the update has written. Bounds the moves of an update.
const MOVED_PER_UPDATE: usize = 16;

/// With at most this number of free units, no runs are moved. Bounds the unused
/// memory of an array of few runs.
const MIN_FREE_UNITS: usize = 64;

/// Runs of rules of one shape.
#[derive(Debug)]
pub(super) struct Runs {
    array: Array,
    /// Words of a rule.
    columns: usize,
    /// The layout of a rule's words in a run.
    layout: RunLayout,
    /// The most words of the array.
    limit: u32,
    heads: Bits,
    free: Bits,
    tails: Bits,
    lists: FreeLists,
    free_units: usize,
    /// While runs are being moved down, the unit where that continues.
    moving: Option<usize>,
    /// Units written since the last [`tidy`](Runs::tidy).
    written: usize,
}

impl Runs {
    pub(super) fn new(layout: RunLayout, huge: bool) -> Runs {
        let columns = layout.columns;
        assert!(columns >= 3, "a rank, a value and a mask");
        Runs {
            array: Array::new(huge),
            columns,
            layout,
            limit: u32::MAX,
            heads: Bits::default(),
            free: Bits::default(),
            tails: Bits::default(),
            lists: FreeLists::new(),
            free_units: 0,
            moving: None,
            written: 0,
        }
    }

    /// Limits the array to `limit` words.
    pub(super) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// The most words that the array may have.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// The most rules for which there is always room.
    pub(super) fn capacity(&self) -> usize {
        let units = self.most_units();
        (units - units / 4).saturating_sub(APPENDABLE_UNITS)
    }

    /// True if [`compact`](Self::compact) must be called before the next change,
    /// which might append words that are not addressable. If there are no more rules
    /// than the [`capacity`](Self::capacity), there is enough room afterwards.
    pub(super) fn is_short_of_room(&self) -> bool {
        self.units() + APPENDABLE_UNITS > self.most_units()
    }

    /// The number of addressable units.
    fn most_units(&self) -> usize {
        self.limit as usize / self.columns
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
        let bits = self.heads.bytes() + self.free.bytes() + self.tails.bytes();
        bits + self.lists.bytes()
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
        let bits = 3 * grown(rules.div_ceil(64)) * size_of::<u64>();
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

    /// Appends a rule of a run as a row.
    pub(super) fn push_row(&self, run: Run, rule: usize, rows: &mut Vec<u64>) {
        let len = usize::from(run.len);
        let words = self.of(run);
        rows.extend((0..self.columns).map(|column| words[self.layout.at(column, rule, len)]));
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
        let longer = self.lengthen(old);
        let new = longer.unwrap_or_else(|| self.allocate(len + 1));
        let (start, target) = (old.start as usize, new.start as usize);
        let heads = self.layout.heads;
        self.array.edit(target, (len + 1) * self.columns, |words| {
            columns::widen(words, start, target, len, position, row, heads);
        });
        if longer.is_none() {
            self.release(old);
        }
        new
    }

    /// Extends the run by one unit in place, if the unit behind it is free.
    #[inline]
    fn lengthen(&mut self, run: Run) -> Option<Run> {
        let len = usize::from(run.len);
        let after = run.start as usize / self.columns + len;
        if after == self.units() {
            self.append(1);
        } else if self.free.get(after) {
            let units = self.take_free(after);
            self.heads.clear(after);
            if units > 1 {
                self.heads.set(after + 1);
                self.add_free(after + 1, units - 1);
            }
        } else {
            return None;
        }
        self.written += len + 1;
        Some(Run {
            start: run.start,
            len: run.len + 1,
        })
    }

    /// Returns the run without one of its rules, if any remains; `old` is no longer
    /// valid.
    pub(super) fn remove(&mut self, old: Run, position: usize) -> Option<Run> {
        let len = usize::from(old.len);
        if len == 1 {
            self.release(old);
            return None;
        }
        // Columns only move down, so the run stays in place.
        let (start, columns) = (old.start as usize, self.columns);
        let layout = self.layout;
        self.array.edit(start, (len - 1) * columns, |words| {
            columns::narrow(words, start, layout, len, position);
        });
        self.written += len - 1;
        let unit = start / self.columns + len - 1;
        self.heads.set(unit);
        self.release_units(unit, 1);
        Some(Run {
            start: old.start,
            len: old.len - 1,
        })
    }

    /// Frees a run.
    pub(super) fn release(&mut self, run: Run) {
        self.release_units(run.start as usize / self.columns, usize::from(run.len));
    }

    /// Does some of the postponed work; to be called once at the end of each update.
    /// `moved` receives the rank of the first rule of each moved run, and the run's
    /// new position.
    pub(super) fn tidy(&mut self, moved: &mut dyn FnMut(u64, Run)) {
        let sparse = self.free_units > MIN_FREE_UNITS && self.free_units * 4 > self.units();
        if sparse && self.moving.is_none() {
            self.moving = Some(0);
        } else if self.free_units * 8 < self.units() {
            self.moving = None;
        }
        let mut budget = MOVED_PER_UPDATE + 4 * self.written;
        while let Some(unit) = self.moving {
            if budget == 0 {
                break;
            }
            let Some(run) = self.move_down(unit) else {
                self.moving = None;
                break;
            };
            budget = budget.saturating_sub(usize::from(run.len));
            moved(self.words()[run.start as usize], run);
        }
        self.written = 0;
        self.array.tidy();
    }

    /// Moves all runs together, so that no unit is free. Calls `moved` as
    /// [`tidy`](Self::tidy) does.
    pub(super) fn compact(&mut self, moved: &mut dyn FnMut(u64, Run)) {
        let mut unit = 0;
        while let Some(run) = self.move_down(unit) {
            unit = run.start as usize / self.columns;
            moved(self.words()[run.start as usize], run);
        }
        self.moving = None;
    }

    fn units(&self) -> usize {
        self.array.len() / self.columns
    }

    fn allocate(&mut self, len: usize) -> Run {
        self.written += len;
        let unit = match self.lists.find(len) {
            Some(unit) => {
                let unit = unit as usize;
                let units = self.take_free(unit);
                if units > len {
                    self.heads.set(unit + len);
                    self.add_free(unit + len, units - len);
                }
                unit
            }
            None => self.append(len),
        };
        self.heads.set(unit);
        Run {
            start: u32::try_from(unit * self.columns).expect("fewer than 2^32 words of rules"),
            len: u16::try_from(len).expect("at most MAX_RUN"),
        }
    }

    /// Appends units to the array.
    fn append(&mut self, len: usize) -> usize {
        let unit = self.units();
        let words = (unit + len) * self.columns;
        assert!(
            words <= self.limit as usize,
            "room that can be addressed was made before"
        );
        self.array.extend_to(words);
        for bits in [&mut self.heads, &mut self.free, &mut self.tails] {
            bits.resize(unit + len);
        }
        unit
    }

    /// Frees units that are a block or the end of a block, and merges them with free
    /// neighbours.
    fn release_units(&mut self, mut unit: usize, mut units: usize) {
        let after = unit + units;
        if after < self.units() && self.free.get(after) {
            self.heads.clear(after);
            units += self.take_free(after);
        }
        if unit > 0 && self.tails.get(unit - 1) {
            let before = self.words()[(unit - 1) * self.columns + 2];
            let before = usize::try_from(before).expect("a unit");
            self.heads.clear(unit);
            units += self.take_free(before);
            unit = before;
        }
        self.add_free(unit, units);
    }

    /// Puts a block into its list, or removes it from the end of the array.
    fn add_free(&mut self, unit: usize, units: usize) {
        if unit + units == self.units() {
            self.array.truncate(unit * self.columns);
            for bits in [&mut self.heads, &mut self.free, &mut self.tails] {
                bits.resize(unit);
            }
            return;
        }
        self.free_units += units;
        let next = self.lists.push(units, number(unit));
        self.write_header(unit, units, next, NO_UNIT);
        let last = (unit + units - 1) * self.columns;
        self.array.put(last + 2, unit as u64);
        self.free.set(unit);
        self.tails.set(unit + units - 1);
        if next != NO_UNIT {
            let (units, after, _) = self.header(next as usize);
            self.write_header(next as usize, units, after, number(unit));
        }
    }

    /// Takes a block out of its list; returns its length in units.
    fn take_free(&mut self, unit: usize) -> usize {
        let (units, next, previous) = self.header(unit);
        self.free_units -= units;
        self.free.clear(unit);
        self.tails.clear(unit + units - 1);
        if next != NO_UNIT {
            let (units, after, _) = self.header(next as usize);
            self.write_header(next as usize, units, after, previous);
        }
        if previous == NO_UNIT {
            self.lists.pop(units, next);
        } else {
            let (units, _, before) = self.header(previous as usize);
            self.write_header(previous as usize, units, next, before);
        }
        units
    }

    /// Returns the length of a free block, and the next and previous block of its
    /// list.
    #[allow(clippy::cast_possible_truncation)] // halves of words
    fn header(&self, unit: usize) -> (usize, u32, u32) {
        let words = &self.words()[unit * self.columns..][..2];
        (
            words[0] as u32 as usize,
            (words[0] >> 32) as u32,
            words[1] as u32,
        )
    }

    fn write_header(&mut self, unit: usize, units: usize, next: u32, previous: u32) {
        let start = unit * self.columns;
        self.array.put(start, u64::from(next) << 32 | units as u64);
        self.array.put(start + 1, u64::from(previous));
    }

    /// Moves a run down into the first gap at or after `from`.
    fn move_down(&mut self, from: usize) -> Option<Run> {
        let gap = self.free.next_one(from)?;
        let length = self.take_free(gap);
        let run = gap + length;
        let after = self.heads.next_one(run + 1).unwrap_or(self.units());
        let units = after - run;
        let (source, target) = (run * self.columns, gap * self.columns);
        let count = units * self.columns;
        self.array.edit(target, count, |words| {
            words.copy_within(source..source + count, target);
        });
        self.heads.clear(run);
        self.heads.set(gap + units);
        self.release_units(gap + units, length);
        self.moving = Some(gap + units);
        Some(Run {
            start: number(target),
            len: u16::try_from(units).expect("at most MAX_RUN"),
        })
    }
}

/// Converts a unit or word index to 32 bits, as in lists and slots.
fn number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 words of rules")
}

#[cfg(test)]
mod tests;
