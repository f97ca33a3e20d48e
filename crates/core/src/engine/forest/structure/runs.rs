//! Where runs of rules are kept: one array of words.
//!
//! # Idea
//! Runs change length with every update, and what a run leaves seldom fits the
//! next. So free blocks are joined with their neighbours, any block that is
//! long enough is cut to size, and when a quarter of the array is free all the
//! same, runs are moved down into the gaps, some with each update, until the
//! free room is at the end and goes.
//!
//! The array grows without a pause: a larger one is filled in the background of
//! updates, some words with each, before the old one is full.
//!
//! # Data layout
//! The array is measured in *units*, one rule each. Blocks, used and free, cover
//! it without gaps; the last is used.
//! ```text
//! words    │ run of 3 rules │ free block of 4     │ run of 2 │
//!                             ├ first unit: length, next ┤ previous
//!                             └ last unit: … third word: first unit
//! heads    1 0 0              1 0 0 0               1 0          block begins
//! free     0 0 0              1 0 0 0               0 0          free block begins
//! tails    0 0 0              0 0 0 1               0 0          free block ends
//! ```
//! Free blocks are in lists by length: of their own up to 64 units, then eight
//! lists for each power of two, as in TLSF.
//!
//! # Cost
//! All operations but copies are O(1). At most a quarter of the array and the
//! most recent change's garbage is free when an update is over, as long as
//! moving keeps up, which four units moved for each unit written guarantee.
//!
//! # Limits
//! Slots have 32 bits for the position of a run's first word. So there is a
//! [capacity](Runs::capacity), in rules, that leaves a quarter of the words that
//! can be addressed for free blocks, and some runs' worth besides. Should free
//! blocks take more nevertheless, all runs are moved together at once; that
//! pause comes only near the capacity, and a quarter of all words must be
//! appended before the next.
//!
//! # References
//! M. Masmano et al., "TLSF: a new dynamic memory allocator for
//! real-time systems", 2004.

use super::bits::Bits;
use crate::engine::forest::slot::{MAX_RUN, Run};
use crate::simd::pages::ask_for_huge_pages;

/// Units that one change appends at most, and as many to spare: a run that is
/// split is copied, with one more rule, and small nested tables are folded.
const ROOM: usize = 2 * MAX_RUN;

/// Free blocks of up to this many units have lists of their own.
const EXACT: usize = 64;

/// Lists for each power of two above.
const FINE: usize = 8;

/// All lists; the last power of two is 2³¹.
const LISTS: usize = EXACT + 1 + (31 - 5) * FINE;

/// No unit.
const NONE: u32 = u32::MAX;

/// Arrays of up to this many words are copied at once when they grow: 512 KB
/// take some 50 microseconds.
const SMALL: usize = 1 << 16;

/// Words copied to the larger array with each update, besides eight for each
/// word that the update has appended.
const COPIED: usize = 512;

/// Units moved down with each update while moving, besides four for each unit
/// that the update has written.
const MOVED: usize = 16;

/// Fewer free units than this are not worth moving anything.
const FEW: usize = 64;

/// Words of memory given back with each update while there is too much: 64 KB.
const GIVEN_BACK: usize = 1 << 13;

/// Arrays of fewer words than this are not made smaller: 4 KB.
const KEPT: usize = 1 << 9;

/// Runs of rules of one shape.
#[derive(Debug)]
pub(super) struct Runs {
    words: Vec<u64>,
    /// The larger array to come; its words are those of the first so far.
    next: Vec<u64>,
    /// The smaller array that was, going bit by bit.
    old: Vec<u64>,
    columns: usize,
    /// The array has at most this many words.
    limit: u32,
    /// Whether to ask for huge pages.
    huge: bool,
    heads: Bits,
    free: Bits,
    tails: Bits,
    /// The first free block of each list.
    lists: Box<[u32; LISTS]>,
    /// Which lists have any.
    filled: [u64; LISTS.div_ceil(64)],
    free_units: usize,
    /// Whether runs are being moved down, and from where on.
    moving: Option<usize>,
    /// Units written since the last [`tidy`](Runs::tidy).
    written: usize,
    /// Words appended since then.
    appended: usize,
    /// The most words that the array has ever had: the rest of its room has
    /// not been touched and is no memory yet.
    touched: usize,
}

/// The list that a free block belongs to.
fn list_of(units: usize) -> usize {
    if units <= EXACT {
        return units;
    }
    let power = units.ilog2() as usize;
    let fine = (units >> (power - 3)) & (FINE - 1);
    EXACT + 1 + (power - 6) * FINE + fine
}

/// The first list all of whose blocks have so many units.
fn list_for(units: usize) -> usize {
    if units <= EXACT {
        return units;
    }
    let power = units.ilog2() as usize;
    list_of(units + (1 << (power - 3)) - 1)
}

impl Runs {
    pub(super) fn new(columns: usize, huge: bool) -> Runs {
        assert!(columns >= 3, "a rank, a value and a mask");
        Runs {
            words: Vec::new(),
            next: Vec::new(),
            old: Vec::new(),
            columns,
            limit: u32::MAX,
            huge,
            heads: Bits::default(),
            free: Bits::default(),
            tails: Bits::default(),
            lists: Box::new([NONE; LISTS]),
            filled: [0; LISTS.div_ceil(64)],
            free_units: 0,
            moving: None,
            written: 0,
            appended: 0,
            touched: 0,
        }
    }

    /// Limits the array to so many words, or to as many as another's.
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
        (units - units / 4).saturating_sub(ROOM)
    }

    /// Whether to [`compact`](Self::compact) before the next change: what it
    /// appends might not be addressable. With no more rules than the
    /// [`capacity`](Self::capacity), there is room afterwards.
    pub(super) fn is_short_of_room(&self) -> bool {
        self.units() + ROOM > self.most_units()
    }

    /// Units that can be addressed.
    fn most_units(&self) -> usize {
        self.limit as usize / self.columns
    }

    /// Makes room for that many more rules, and for growing without a pause.
    pub(super) fn reserve(&mut self, rules: usize) {
        let words = rules * self.columns;
        let spare = if words > SMALL { words / 2 } else { 0 };
        self.words.reserve_exact(words + spare);
        if self.huge {
            ask_for_huge_pages(&self.words, words);
        }
    }

    /// All words, those of free blocks included.
    #[inline]
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Words that belong to no run.
    pub(super) fn free_words(&self) -> usize {
        self.free_units * self.columns
    }

    /// Bytes held. Room at the end of an array that was never written is
    /// address space, not memory.
    pub(super) fn bytes(&self) -> usize {
        let words = self.held() + self.next.len() + self.old.capacity();
        let bits = self.heads.bytes() + self.free.bytes() + self.tails.bytes();
        words * size_of::<u64>() + bits + size_of_val(&*self.lists)
    }

    /// Words of the array that are memory.
    fn held(&self) -> usize {
        self.touched.max(self.words.capacity().min(SMALL))
    }

    /// The ranks of a run's rules.
    #[inline]
    pub(super) fn ranks(&self, run: Run) -> &[u64] {
        &self.words[run.start as usize..][..usize::from(run.len)]
    }

    /// The words of a run, column by column.
    #[inline]
    pub(super) fn of(&self, run: Run) -> &[u64] {
        &self.words[run.start as usize..][..usize::from(run.len) * self.columns]
    }

    /// Appends a rule of a run as a row.
    pub(super) fn push_row(&self, run: Run, rule: usize, rows: &mut Vec<u64>) {
        let len = usize::from(run.len);
        let words = self.of(run);
        rows.extend((0..self.columns).map(|column| words[column * len + rule]));
    }

    /// Makes a run of rows, which must be in order, best first.
    pub(super) fn create<'a>(&mut self, rows: impl ExactSizeIterator<Item = &'a [u64]>) -> Run {
        let run = self.allocate(rows.len());
        let len = usize::from(run.len);
        let words = &mut self.words[run.start as usize..][..len * self.columns];
        for (rule, row) in rows.enumerate() {
            for (column, &word) in row.iter().enumerate() {
                words[column * len + rule] = word;
            }
        }
        self.copy_on(run.start as usize, len * self.columns);
        run
    }

    /// The run with one more rule; the old one is gone.
    pub(super) fn insert(&mut self, old: Run, row: &[u64]) -> Run {
        let at = self.ranks(old).partition_point(|&rank| rank < row[0]);
        let len = usize::from(old.len);
        let new = self.allocate(len + 1);
        let (from, to) = (old.start as usize, new.start as usize);
        for (column, &word) in row.iter().enumerate() {
            let (from, to) = (from + column * len, to + column * (len + 1));
            self.words.copy_within(from..from + at, to);
            self.words[to + at] = word;
            self.words.copy_within(from + at..from + len, to + at + 1);
        }
        self.copy_on(to, (len + 1) * self.columns);
        self.release(old);
        new
    }

    /// The run without one of its rules, if any remains; the old one is gone.
    pub(super) fn remove(&mut self, old: Run, at: usize) -> Option<Run> {
        let len = usize::from(old.len);
        if len == 1 {
            self.release(old);
            return None;
        }
        // Columns only move down, so the run stays where it is.
        let start = old.start as usize;
        for column in 0..self.columns {
            let (from, to) = (start + column * len, start + column * (len - 1));
            self.words.copy_within(from..from + at, to);
            self.words.copy_within(from + at + 1..from + len, to + at);
        }
        self.copy_on(start, (len - 1) * self.columns);
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

    /// Work put off, some of it: to be called once at the end of each update.
    /// `moved` is told the rank of the first rule of each run that has moved,
    /// and its new place.
    pub(super) fn tidy(&mut self, moved: &mut dyn FnMut(u64, Run)) {
        let sparse = self.free_units > FEW && self.free_units * 4 > self.units();
        if sparse && self.moving.is_none() {
            self.moving = Some(0);
        } else if self.free_units * 8 < self.units() {
            self.moving = None;
        }
        let mut budget = MOVED + 4 * self.written;
        while let Some(from) = self.moving {
            if budget == 0 {
                break;
            }
            let Some(run) = self.move_down(from) else {
                self.moving = None;
                break;
            };
            budget = budget.saturating_sub(usize::from(run.len));
            moved(self.words[run.start as usize], run);
        }
        self.written = 0;
        self.change_arrays();
        self.appended = 0;
    }

    /// Moves all runs together, so that no unit is free. `moved` is told as by
    /// [`tidy`](Self::tidy).
    pub(super) fn compact(&mut self, moved: &mut dyn FnMut(u64, Run)) {
        let mut from = 0;
        while let Some(run) = self.move_down(from) {
            from = run.start as usize / self.columns;
            moved(self.words[run.start as usize], run);
        }
        self.moving = None;
    }

    fn units(&self) -> usize {
        self.words.len() / self.columns
    }

    /// Writes a word, into the array to come as well.
    fn put(&mut self, at: usize, word: u64) {
        self.words[at] = word;
        if let Some(copy) = self.next.get_mut(at) {
            *copy = word;
        }
    }

    /// Copies words that have changed to the array to come.
    fn copy_on(&mut self, start: usize, count: usize) {
        let end = (start + count).min(self.next.len());
        if start < end {
            self.next[start..end].copy_from_slice(&self.words[start..end]);
        }
    }

    fn allocate(&mut self, len: usize) -> Run {
        self.written += len;
        let unit = match self.filled_from(list_for(len)) {
            Some(list) => {
                let unit = self.lists[list] as usize;
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

    /// The first list from here on that has a block.
    fn filled_from(&self, list: usize) -> Option<usize> {
        let mut word = list / 64;
        let mut bits = self.filled.get(word)? & u64::MAX << (list % 64);
        while bits == 0 {
            word += 1;
            bits = *self.filled.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// Units at the end of the array.
    fn append(&mut self, len: usize) -> usize {
        let unit = self.units();
        let words = (unit + len) * self.columns;
        assert!(
            words <= self.limit as usize,
            "room that can be addressed was made before"
        );
        if words > self.words.capacity() {
            // Not before the room ahead is used up: while it is small, or at
            // the first updates after a build that left none.
            let more = words.max(self.words.len() / 4 * 5) - self.words.len();
            self.words.reserve_exact(more);
            self.next = Vec::new();
        }
        self.words.resize(words, 0);
        self.touched = self.touched.max(words);
        self.appended += len * self.columns;
        for bits in [&mut self.heads, &mut self.free, &mut self.tails] {
            bits.resize(unit + len);
        }
        unit
    }

    /// Frees units that are a block or the end of one, and joins them with
    /// free neighbours.
    fn release_units(&mut self, mut unit: usize, mut units: usize) {
        let after = unit + units;
        if after < self.units() && self.free.get(after) {
            self.heads.clear(after);
            units += self.take_free(after);
        }
        if unit > 0 && self.tails.get(unit - 1) {
            let before = self.words[(unit - 1) * self.columns + 2];
            let before = usize::try_from(before).expect("a unit");
            self.heads.clear(unit);
            units += self.take_free(before);
            unit = before;
        }
        self.add_free(unit, units);
    }

    /// Puts a block into its list, or cuts it off the end of the array.
    fn add_free(&mut self, unit: usize, units: usize) {
        if unit + units == self.units() {
            self.words.truncate(unit * self.columns);
            self.next.truncate(unit * self.columns);
            for bits in [&mut self.heads, &mut self.free, &mut self.tails] {
                bits.resize(unit);
            }
            return;
        }
        self.free_units += units;
        let list = list_of(units);
        let next = self.lists[list];
        self.write_header(unit, units, next, NONE);
        let last = (unit + units - 1) * self.columns;
        self.put(last + 2, unit as u64);
        self.free.set(unit);
        self.tails.set(unit + units - 1);
        if next != NONE {
            let (units, after, _) = self.header(next as usize);
            self.write_header(next as usize, units, after, number(unit));
        }
        self.lists[list] = number(unit);
        self.filled[list / 64] |= 1 << (list % 64);
    }

    /// Takes a block out of its list; returns its units.
    fn take_free(&mut self, unit: usize) -> usize {
        let (units, next, previous) = self.header(unit);
        self.free_units -= units;
        self.free.clear(unit);
        self.tails.clear(unit + units - 1);
        if next != NONE {
            let (units, after, _) = self.header(next as usize);
            self.write_header(next as usize, units, after, previous);
        }
        if previous == NONE {
            let list = list_of(units);
            self.lists[list] = next;
            if next == NONE {
                self.filled[list / 64] &= !(1 << (list % 64));
            }
        } else {
            let (units, _, before) = self.header(previous as usize);
            self.write_header(previous as usize, units, next, before);
        }
        units
    }

    /// Length, next and previous of a free block.
    #[allow(clippy::cast_possible_truncation)] // halves of words
    fn header(&self, unit: usize) -> (usize, u32, u32) {
        let words = &self.words[unit * self.columns..][..2];
        (
            words[0] as u32 as usize,
            (words[0] >> 32) as u32,
            words[1] as u32,
        )
    }

    fn write_header(&mut self, unit: usize, units: usize, next: u32, previous: u32) {
        let at = unit * self.columns;
        self.put(at, u64::from(next) << 32 | units as u64);
        self.put(at + 1, u64::from(previous));
    }

    /// Moves the run behind the first gap from a unit on down into it.
    fn move_down(&mut self, from: usize) -> Option<Run> {
        let gap = self.free.next_one(from)?;
        let length = self.take_free(gap);
        let run = gap + length;
        let after = self.heads.next_one(run + 1).unwrap_or(self.units());
        let units = after - run;
        let (source, target) = (run * self.columns, gap * self.columns);
        let count = units * self.columns;
        self.words.copy_within(source..source + count, target);
        self.copy_on(target, count);
        self.heads.clear(run);
        self.heads.set(gap + units);
        self.release_units(gap + units, length);
        self.moving = Some(gap + units);
        Some(Run {
            start: number(target),
            len: u16::try_from(units).expect("at most MAX_RUN"),
        })
    }

    /// Goes on with replacing the array by a larger one, and with giving back
    /// memory.
    fn change_arrays(&mut self) {
        let (used, room) = (self.words.len(), self.words.capacity());
        let growing = self.next.capacity() > 0;
        if !growing && room > SMALL && used > room / 8 * 7 {
            self.next = Vec::with_capacity(used * 2);
        }
        if self.next.capacity() > 0 {
            let from = self.next.len();
            let to = used.min(from + COPIED + 8 * self.appended);
            self.next.extend_from_slice(&self.words[from..to]);
            if to == used {
                self.old = std::mem::replace(&mut self.words, std::mem::take(&mut self.next));
                self.old.clear();
                self.touched = used;
                if self.huge {
                    // The system joins its pages in its own time.
                    ask_for_huge_pages(&self.words, used);
                }
            }
        } else {
            let held = self.held();
            if held > KEPT && used < held / 4 * 3 {
                // The array has shrunk by a quarter: give back its end.
                self.words.shrink_to(held - GIVEN_BACK.min(held / 8));
                self.touched = self.touched.min(self.words.capacity());
            }
        }
        if self.old.capacity() > 0 {
            let keep = self.old.capacity().saturating_sub(4 * GIVEN_BACK);
            self.old.shrink_to(keep);
        }
    }
}

/// A unit or word as the 32 bits that it has in lists and slots.
fn number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 words of rules")
}

#[cfg(test)]
mod tests;
