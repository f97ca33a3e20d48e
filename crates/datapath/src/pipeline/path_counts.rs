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

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use classyard::RuleId;

use super::tally::{Cells, Count, TableCount};
use crate::flow::TableId;

/// Tables and the entries that win there. An entry whose counters are gone is left out.
type Steps = Vec<(TableId, Entry)>;

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

#[derive(Default)]
struct Register {
    paths: BTreeMap<u32, Steps>,
    by_entry: HashMap<RuleId, BTreeSet<u32>>,
}

/// Counts of a worker's paths.
#[derive(Default)]
pub(super) struct PathCounts {
    cells: Cells,
    register: Mutex<Register>,
}

/// What is to be added where a path is closed.
pub(super) struct Closed {
    count: Count,
    last: u64,
    steps: Steps,
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

    /// A path has entries to count for.
    pub(super) fn open(&self, path: u32, steps: &[(TableId, Option<RuleId>)]) {
        let mut register = self.lock();
        for entry in steps.iter().filter_map(|step| step.1) {
            register.by_entry.entry(entry).or_default().insert(path);
        }
        let steps = steps.iter().map(|&(table, entry)| {
            let entry = entry.map_or(Entry::Miss, Entry::Known);
            (table, entry)
        });
        register.paths.insert(path, steps.collect());
    }

    /// A path counts no more: what it has counted is added by `add`, while no reader
    /// looks.
    pub(super) fn close(&self, path: u32, add: impl FnOnce(&Closed)) {
        let mut register = self.lock();
        if let Some(closed) = self.take(&mut register, path) {
            add(&closed);
        }
    }

    /// The same of all paths.
    pub(super) fn close_all(&self, mut add: impl FnMut(&Closed)) {
        let mut register = self.lock();
        let paths: Vec<u32> = register.paths.keys().copied().collect();
        for path in paths {
            if let Some(closed) = self.take(&mut register, path) {
                add(&closed);
            }
        }
    }

    fn take(&self, register: &mut Register, path: u32) -> Option<Closed> {
        let steps = register.paths.remove(&path)?;
        for (_, entry) in &steps {
            if let Entry::Known(entry) = entry {
                register.leave(*entry, path);
            }
        }
        let (count, last) = self.cells.read(path);
        self.cells.clear(path);
        Some(Closed { count, last, steps })
    }

    /// What an entry has matched on paths, and when it did last, together with its own
    /// cell, which `own` reads.
    pub(super) fn flow(&self, id: RuleId, own: impl FnOnce() -> (Count, u64)) -> (Count, u64) {
        let register = self.lock();
        let paths = register.by_entry.get(&id).into_iter().flatten();
        paths.fold(own(), |(count, last), &path| {
            let (more, later) = self.cells.read(path);
            (count.and(more), last.max(later))
        })
    }

    /// What came to a table on paths, together with its own cell.
    pub(super) fn table(&self, table: TableId, own: impl FnOnce() -> TableCount) -> TableCount {
        let register = self.lock();
        let mut sum = own();
        for (&path, steps) in &register.paths {
            if let Some((_, entry)) = steps.iter().find(|step| step.0 == table) {
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
        for path in register.by_entry.remove(&id).unwrap_or_default() {
            let steps = register.paths.get_mut(&path).into_iter().flatten();
            for (_, entry) in steps.filter(|step| step.1 == Entry::Known(id)) {
                *entry = Entry::Gone;
            }
        }
    }
}

impl Register {
    fn leave(&mut self, entry: RuleId, path: u32) {
        if let Some(paths) = self.by_entry.get_mut(&entry) {
            paths.remove(&path);
            if paths.is_empty() {
                self.by_entry.remove(&entry);
            }
        }
    }
}

impl Closed {
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
        for &(number, entry) in &self.steps {
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
