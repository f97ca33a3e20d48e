//! Counts of paths: packets whose path is known are counted once, for all entries of the
//! path together.
//!
//! ```text
//! worker   path 17: 1,000 packets           register 17: table 0 entry 7, table 1 entry 9
//! reader   entry 9 = its own cell + path 17 + path 23 + …
//! ```
//! The worker counts in a cell for each path without asking anybody. What the entries of
//! paths are is in a register, behind a lock that the worker takes only for a path that
//! is new or closed; a path that is closed is added to the entries' own cells. Readers
//! hold the lock while they add, so nothing is counted twice or missed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use classyard::{RuleId, Winner};

use super::tally::{Cells, Count, TableCount};
use crate::cache::entry_paths::{EntryPaths, Opened};
use crate::cache::path::PathId;
use crate::flow::TableId;

/// Who is counted at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// An entry.
    Known(RuleId),
    /// An entry that is gone, with its counters.
    Gone,
    /// No entry matches.
    Miss,
}

/// Tables and the entries that win there, while a path is open.
#[derive(Default)]
struct Steps {
    /// When it was opened; `None` while it is closed.
    stamp: Option<u64>,
    /// In memory that is kept for the next path of the number.
    steps: Vec<(TableId, Entry)>,
}

#[derive(Default)]
struct Register {
    /// By their numbers.
    paths: Vec<Steps>,
    by_entry: EntryPaths,
    /// Paths ever opened.
    opened: u64,
}

/// Counts of a worker's paths.
#[derive(Default)]
pub(super) struct PathCounts {
    cells: Cells,
    register: Mutex<Register>,
}

/// What is to be added where a path is closed.
pub(super) struct Closed<'r> {
    count: Count,
    last: u64,
    steps: &'r [(TableId, Entry)],
}

impl PathCounts {
    fn lock(&self) -> MutexGuard<'_, Register> {
        // Nothing panics while it is held, and counts are right at every step.
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a packet on a path. Only the worker does.
    #[inline]
    pub(super) fn count(&self, path: u32, bytes: usize, now: u64) {
        self.cells.get(path).count(bytes, now);
    }

    /// Fetches the cells of paths into the processor's cache.
    pub(super) fn fetch(&self, paths: impl Iterator<Item = u32>) {
        let cells = paths.map(|path| self.cells.get(path).packets());
        std::hint::black_box(cells.fold(0, |all, packets| all | packets));
    }

    /// A path has entries to count for.
    pub(super) fn open(&self, path: PathId, steps: impl Iterator<Item = (TableId, Winner)>) {
        let mut register = self.lock();
        let Register {
            paths,
            by_entry,
            opened,
        } = &mut *register;
        let at = path.0 as usize;
        if paths.len() <= at {
            paths.resize_with(at + 1, Steps::default);
        }
        let stamp = *opened;
        *opened += 1;
        paths[at].stamp = Some(stamp);
        paths[at].steps.clear();
        for (table, winner) in steps {
            let entry = winner.rule().map_or(Entry::Miss, Entry::Known);
            paths[at].steps.push((table, entry));
            if let Entry::Known(id) = entry {
                by_entry.open(id, Opened { path, stamp }, |it| is_open(paths, it));
            }
        }
    }

    /// A path counts no more: what it has counted is added by `add`, while no reader
    /// looks.
    pub(super) fn close(&self, path: PathId, add: impl FnOnce(&Closed<'_>)) {
        self.take(&mut self.lock(), path, add);
    }

    /// The same of all paths.
    pub(super) fn close_all(&self, mut add: impl FnMut(&Closed<'_>)) {
        let mut register = self.lock();
        for path in (0..).take(register.paths.len()) {
            self.take(&mut register, PathId(path), &mut add);
        }
    }

    fn take(&self, register: &mut Register, path: PathId, add: impl FnOnce(&Closed<'_>)) {
        let Some(held) = register.paths.get_mut(path.0 as usize) else {
            return;
        };
        let Some(stamp) = held.stamp.take() else {
            return;
        };
        for (_, entry) in &held.steps {
            if let Entry::Known(entry) = *entry {
                register.by_entry.close(entry, Opened { path, stamp });
            }
        }
        let (count, last) = self.cells.read(path.0);
        self.cells.clear(path.0);
        add(&Closed {
            count,
            last,
            steps: &held.steps,
        });
    }

    /// What an entry has matched on paths, and when it did last, together with its own
    /// cell, which `own` reads.
    pub(super) fn flow(&self, id: RuleId, own: impl FnOnce() -> (Count, u64)) -> (Count, u64) {
        let register = self.lock();
        let paths = register.by_entry.of(id);
        let open = paths.filter(|&it| is_open(&register.paths, it));
        open.fold(own(), |(count, last), it| {
            let (more, later) = self.cells.read(it.path.0);
            (count.and(more), last.max(later))
        })
    }

    /// What came to a table on paths, together with its own cell.
    pub(super) fn table(&self, table: TableId, own: impl FnOnce() -> TableCount) -> TableCount {
        let register = self.lock();
        let mut sum = own();
        for (path, held) in (0..).zip(&register.paths) {
            let step = held.steps.iter().find(|step| step.0 == table);
            if let Some((_, entry)) = step.filter(|_| held.stamp.is_some()) {
                let packets = self.cells.read(path).0.packets;
                sum.lookups += packets;
                sum.matched += match entry {
                    Entry::Miss => 0,
                    Entry::Known(_) | Entry::Gone => packets,
                };
            }
        }
        sum
    }

    /// An entry's counters are gone: paths do not count for it any more.
    pub(super) fn forget(&self, id: RuleId) {
        let mut register = self.lock();
        let Register {
            paths, by_entry, ..
        } = &mut *register;
        for opened in by_entry.remove(id) {
            if !is_open(paths, opened) {
                continue;
            }
            let steps = &mut paths[opened.path.0 as usize].steps;
            for (_, entry) in steps.iter_mut().filter(|step| step.1 == Entry::Known(id)) {
                *entry = Entry::Gone;
            }
        }
    }
}

/// Whether a path was not closed since it was opened.
fn is_open(paths: &[Steps], opened: Opened) -> bool {
    paths[opened.path.0 as usize].stamp == Some(opened.stamp)
}

impl Closed<'_> {
    /// Adds what the path has counted to entries and tables.
    pub(super) fn add_to(
        &self,
        mut flow: impl FnMut(RuleId, Count, u64),
        mut table: impl FnMut(TableId, u64, u64),
    ) {
        let packets = self.count.packets;
        if packets == 0 {
            return;
        }
        for &(number, entry) in self.steps {
            match entry {
                Entry::Known(id) => flow(id, self.count, self.last),
                Entry::Gone | Entry::Miss => {}
            }
            table(
                number,
                packets,
                if entry == Entry::Miss { 0 } else { packets },
            );
        }
    }
}
