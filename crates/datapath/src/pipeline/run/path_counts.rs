//! Counts of paths: a packet on a cached path is counted once, for all entries of the path
//! together.
//!
//! ```text
//! worker   path 17: 1,000 packets           register 17: table 0 entry 7, table 1 entry 9
//! reader   entry 9 = its own cell + path 17 + path 23 + …
//! ```
//! The worker counts in a cell for each path, without a lock. A register has the entries of
//! each path. It is behind a lock, which the worker takes to open a path, to close a path,
//! and once in each vector that stores recorded paths.
//! Closing a path adds its counts to the entries' own cells. Readers hold the lock while
//! they add counts up, so nothing is counted twice or missed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use classyard::{RuleId, Winner};

use super::cells::Cells;
use super::counts::{Count, TableCount};
use crate::cache::path::{EntryPaths, Opened, PathId};
use crate::flow::TableId;

/// The entry that is counted at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// An existing entry.
    Known(RuleId),
    /// An entry that was removed together with its counters.
    Gone,
    /// No entry matches.
    Miss,
}

/// The tables of an open path, and the entry that wins in each.
#[derive(Default)]
struct Steps {
    /// The stamp of the latest opening; `None` while the path is closed.
    stamp: Option<u64>,
    /// The memory is reused by the next path with the same number.
    steps: Vec<(TableId, Entry)>,
}

#[derive(Default)]
struct Register {
    /// Paths, indexed by number.
    paths: Vec<Steps>,
    by_entry: EntryPaths,
    /// The number of paths opened so far: the next stamp.
    opened: u64,
}

/// The counts of a worker's paths.
#[derive(Default)]
pub(super) struct PathCounts {
    cells: Cells,
    register: Mutex<Register>,
}

/// The counts of a closed path, to be added to its entries.
pub(super) struct Closed<'r> {
    count: Count,
    last: u64,
    steps: &'r [(TableId, Entry)],
}

impl PathCounts {
    fn lock(&self) -> MutexGuard<'_, Register> {
        // No code panics while it holds the lock, and counts are right at every step.
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a packet on a path. Only the worker calls this.
    #[inline]
    pub(in crate::pipeline) fn count(&self, path: u32, bytes: usize, now: u64) {
        self.cells.get(path).count(bytes, now);
    }

    /// Returns the packets counted on a path since it was opened.
    pub(super) fn packets(&self, path: u32) -> u64 {
        self.cells.read(path).0.packets
    }

    /// Loads the cells of paths into the CPU cache.
    pub(super) fn fetch(&self, paths: impl Iterator<Item = u32>) {
        let cells = paths.map(|path| self.cells.get(path).packets());
        std::hint::black_box(cells.fold(0, |all, packets| all | packets));
    }

    /// Prefetches the lists of entries, for paths that are opened next.
    pub(super) fn fetch_entries(&self, entries: impl Iterator<Item = RuleId>) {
        self.lock().by_entry.fetch(entries);
    }

    /// Opens a path: its counts then belong to the entries of `steps`.
    pub(super) fn open(&self, path: PathId, steps: impl Iterator<Item = (TableId, Winner)>) {
        let mut register = self.lock();
        let Register {
            paths,
            by_entry,
            opened,
        } = &mut *register;
        let index = path.0 as usize;
        if paths.len() <= index {
            paths.resize_with(index + 1, Steps::default);
        }
        let stamp = *opened;
        *opened += 1;
        paths[index].stamp = Some(stamp);
        paths[index].steps.clear();
        for (table, winner) in steps {
            let entry = winner.rule().map_or(Entry::Miss, Entry::Known);
            paths[index].steps.push((table, entry));
            if let Entry::Known(id) = entry {
                by_entry.open(id, Opened { path, stamp }, |opened| is_open(paths, opened));
            }
        }
    }

    /// Closes a path. Its counts are passed to `add`, while no reader has the lock.
    pub(in crate::pipeline) fn close(&self, path: PathId, add: impl FnOnce(&Closed<'_>)) {
        self.take(&mut self.lock(), path, add);
    }

    /// Closes all paths.
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
        let Register {
            paths, by_entry, ..
        } = register;
        let steps = &paths[path.0 as usize].steps;
        for (_, entry) in steps {
            if let Entry::Known(entry) = *entry {
                let closed = Opened { path, stamp };
                by_entry.close(entry, closed, |opened| is_open(paths, opened));
            }
        }
        let (count, last) = self.cells.read(path.0);
        self.cells.clear(path.0);
        add(&Closed { count, last, steps });
    }

    /// Returns the count of an entry and the time of its last packet, over its paths and its
    /// own cell. `own` reads the cell.
    pub(in crate::pipeline) fn flow(
        &self,
        id: RuleId,
        own: impl FnOnce() -> (Count, u64),
    ) -> (Count, u64) {
        let register = self.lock();
        let paths = register.by_entry.of(id);
        let open = paths.filter(|&opened| is_open(&register.paths, opened));
        open.fold(own(), |(count, last), opened| {
            let (path_count, path_last) = self.cells.read(opened.path.0);
            (count.and(path_count), last.max(path_last))
        })
    }

    /// Returns the counts of a table, over paths and its own cell. `own` reads the cell.
    pub(in crate::pipeline) fn table(
        &self,
        table: TableId,
        own: impl FnOnce() -> TableCount,
    ) -> TableCount {
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

    /// Stops counting on paths for an entry whose counters were removed.
    pub(in crate::pipeline) fn forget(&self, id: RuleId) {
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

/// Returns true if the path has not been closed since this opening.
fn is_open(paths: &[Steps], opened: Opened) -> bool {
    paths[opened.path.0 as usize].stamp == Some(opened.stamp)
}

impl Closed<'_> {
    /// Passes the path's counts to `flow` for each entry and to `table` for each table.
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
