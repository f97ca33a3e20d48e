//! Where runs of rules are kept: one array of words, with freed runs reused by
//! length.

use crate::simd::pages::ask_for_huge_pages;

/// A run of rules, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The position of its first word.
    pub(super) start: u32,
    /// The number of its rules, 1 to [`MAX_RUN`].
    pub(super) len: u16,
}

/// The most rules of a run. Longer ones are never compared as a whole, and
/// inserting into one costs a copy.
pub(super) const MAX_RUN: usize = 1024;

/// Runs of rules of one shape.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    words: Vec<u64>,
    columns: usize,
    /// For each length, the starts of free runs.
    free: Vec<Vec<u32>>,
    free_words: usize,
}

impl Runs {
    pub(super) fn new(columns: usize) -> Runs {
        Runs {
            words: Vec::new(),
            columns,
            free: Vec::new(),
            free_words: 0,
        }
    }

    /// Makes room for that many more rules.
    pub(super) fn reserve(&mut self, rules: usize) {
        self.words.reserve_exact(rules * self.columns);
        ask_for_huge_pages(&self.words);
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Words that belong to no run.
    pub(super) fn free_words(&self) -> usize {
        self.free_words
    }

    pub(super) fn bytes(&self) -> usize {
        let lists: usize = self.free.iter().map(Vec::capacity).sum();
        self.words.capacity() * size_of::<u64>()
            + lists * size_of::<u32>()
            + self.free.capacity() * size_of::<Vec<u32>>()
    }

    /// The ranks of a run's rules.
    pub(super) fn ranks(&self, run: Run) -> &[u64] {
        &self.words[run.start as usize..][..usize::from(run.len)]
    }

    /// The words of a run, column by column.
    fn of(&self, run: Run) -> &[u64] {
        &self.words[run.start as usize..][..usize::from(run.len) * self.columns]
    }

    /// Appends a rule of a run as a row.
    pub(super) fn push_row(&self, run: Run, rule: usize, rows: &mut Vec<u64>) {
        let len = usize::from(run.len);
        let words = self.of(run);
        rows.extend((0..self.columns).map(|column| words[column * len + rule]));
    }

    fn allocate(&mut self, len: usize) -> Run {
        let size = len * self.columns;
        let start = if let Some(start) = self.free.get_mut(len).and_then(Vec::pop) {
            self.free_words -= size;
            start
        } else {
            let start = self.words.len();
            if start + size > self.words.capacity() {
                // A quarter, because spare room is the largest waste there is.
                self.words.reserve_exact(size.max(start / 4));
                ask_for_huge_pages(&self.words);
            }
            self.words.resize(start + size, 0);
            u32::try_from(start).expect("fewer than 2^32 words of rules")
        };
        Run {
            start,
            len: u16::try_from(len).expect("at most MAX_RUN"),
        }
    }

    pub(super) fn release(&mut self, run: Run) {
        let len = usize::from(run.len);
        if self.free.len() <= len {
            self.free.resize_with(len + 1, Vec::new);
        }
        self.free[len].push(run.start);
        self.free_words += len * self.columns;
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
        self.release(old);
        new
    }

    /// The run without one of its rules, if any remains; the old one is gone.
    pub(super) fn remove(&mut self, old: Run, at: usize) -> Option<Run> {
        let len = usize::from(old.len);
        let new = (len > 1).then(|| self.allocate(len - 1));
        if let Some(new) = new {
            let (from, to) = (old.start as usize, new.start as usize);
            for column in 0..self.columns {
                let (from, to) = (from + column * len, to + column * (len - 1));
                self.words.copy_within(from..from + at, to);
                self.words.copy_within(from + at + 1..from + len, to + at);
            }
        }
        self.release(old);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(runs: &Runs, run: Run) -> Vec<Vec<u64>> {
        let len = usize::from(run.len);
        let row = |rule| {
            let mut row = Vec::new();
            runs.push_row(run, rule, &mut row);
            row
        };
        (0..len).map(row).collect()
    }

    #[test]
    fn runs_keep_their_rules_in_order() {
        let mut runs = Runs::new(3);
        let row = |rank: u64| [rank, rank + 100, rank + 200];
        let first = row(5);
        let mut run = runs.create([&first[..]].into_iter());
        for rank in [9, 1, 7, 3] {
            run = runs.insert(run, &row(rank));
        }
        assert_eq!(rows(&runs, run), [1, 3, 5, 7, 9].map(|r| row(r).to_vec()));
        run = runs.remove(run, 0).unwrap();
        run = runs.remove(run, 3).unwrap();
        run = runs.remove(run, 1).unwrap();
        assert_eq!(rows(&runs, run), [3, 7].map(|r| row(r).to_vec()));
        assert_eq!(runs.ranks(run), [3, 7]);
        run = runs.remove(run, 0).unwrap();
        assert_eq!(runs.remove(run, 0), None);
        assert_eq!(runs.free_words(), runs.words().len());
        // All of that memory is used again.
        let held = runs.words().len();
        let all: Vec<_> = (0..4).map(row).collect();
        let run = runs.create(all.iter().map(|row| &row[..]));
        assert_eq!(runs.words().len(), held);
        assert_eq!(rows(&runs, run).len(), 4);
    }
}
