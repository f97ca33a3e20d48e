//! Counters of a worker: packets and bytes of entries, groups, meters and tables.
//!
//! Each worker counts in its own cells, which no other thread writes. A counter is the sum
//! over all workers. A reader may see a packet before its bytes are added; soon after, both
//! are visible.
//!
//! ```text
//! entries:            [ 0 … 63 ] [ 64 … 191 ] [ 192 … 447 ] …    by entry number
//! groups, meters:     the same, by the number assigned to each counter
//! ```
//! Each bracket is a piece of [`cells`](super::cells).
//!
//! A number gets a new owner only after every worker has left the versions with
//! the old owner. Before that, its cells are set to 0. So nothing is counted twice or
//! lost.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use classyard::{RuleId, Winner};

use super::cells::Cells;
use super::counts::{Count, TableCount};
use super::path_counts::{Closed, PathCounts};
use crate::cache::path::PathId;
use crate::flow::TableId;
use crate::limits::PacketLimit;

/// The number of a counter among the counters of groups, buckets, meters and
/// bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pipeline) struct CounterId(pub(in crate::pipeline) u32);

/// The counters of a group and its buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::pipeline) struct GroupCounters {
    pub(in crate::pipeline) all: CounterId,
    pub(in crate::pipeline) buckets: Vec<CounterId>,
}

/// Assigns counters: always the smallest free number.
#[derive(Clone, Debug, Default)]
pub(in crate::pipeline) struct CounterBook {
    free: BTreeSet<u32>,
    next: u32,
}

impl CounterBook {
    pub(in crate::pipeline) fn take(&mut self) -> CounterId {
        if let Some(counter) = self.free.pop_first() {
            return CounterId(counter);
        }
        let number = self.next;
        self.next = number.checked_add(1).expect("fewer counters than numbers");
        CounterId(number)
    }

    pub(in crate::pipeline) fn give_back(&mut self, counter: CounterId) {
        self.free.insert(counter.0);
    }
}

/// The counters of one worker.
pub(in crate::pipeline) struct Tally {
    flows: Cells,
    others: Cells,
    tables: Vec<(AtomicU64, AtomicU64)>,
    paths: PathCounts,
    /// Packets dropped at each limit.
    limits: [AtomicU64; PacketLimit::ALL.len()],
}

impl Tally {
    pub(in crate::pipeline) fn new() -> Tally {
        Tally {
            flows: Cells::default(),
            others: Cells::default(),
            tables: (0..=TableId::LAST.0).map(|_| Default::default()).collect(),
            paths: PathCounts::default(),
            limits: Default::default(),
        }
    }

    /// Counts packets that an entry wins, and their bytes.
    #[inline]
    pub(in crate::pipeline) fn count_flows(
        &self,
        id: RuleId,
        (packets, bytes): (usize, usize),
        now: u64,
    ) {
        let count = Count {
            packets: packets as u64,
            bytes: bytes as u64,
        };
        self.flows.get(id.get()).count_all(count, now);
    }

    /// Counts a packet on a path.
    #[inline]
    pub(in crate::pipeline) fn count_path(&self, path: PathId, bytes: usize, now: u64) {
        self.paths.count(path.0, bytes, now);
    }

    /// Returns the number of packets counted on a path since it was opened.
    pub(in crate::pipeline) fn path_packets(&self, path: PathId) -> u64 {
        self.paths.packets(path.0)
    }

    /// Loads the cells of paths into the CPU cache, all together so that the cache misses
    /// overlap.
    pub(in crate::pipeline) fn fetch_paths(&self, paths: impl Iterator<Item = PathId>) {
        self.paths.fetch(paths.map(|path| path.0));
    }

    /// Opens a path, which then counts for the entries of `steps`.
    pub(in crate::pipeline) fn open_path(
        &self,
        path: PathId,
        steps: impl Iterator<Item = (TableId, Winner)>,
    ) {
        self.close_path(path);
        self.paths.open(path, steps);
    }

    /// Prefetches the lists of entries, for paths that are opened next.
    pub(in crate::pipeline) fn fetch_entries(&self, entries: impl Iterator<Item = RuleId>) {
        self.paths.fetch_entries(entries);
    }

    /// Closes a path and adds its counts to its entries.
    pub(in crate::pipeline) fn close_path(&self, path: PathId) {
        self.paths.close(path, |closed| self.add_closed(closed));
    }

    fn add_closed(&self, closed: &Closed<'_>) {
        closed.add_to(
            |id, count, last| self.flows.get(id.get()).add(count, last),
            |table, lookups, matched| self.add_table(table, lookups, matched),
        );
    }

    #[inline]
    pub(in crate::pipeline) fn count(&self, counter: CounterId, bytes: usize, now: u64) {
        self.others.get(counter.0).count(bytes, now);
    }

    /// Counts a packet dropped at a limit.
    pub(super) fn count_limit(&self, limit: PacketLimit) {
        let cell = &self.limits[limit as usize];
        cell.store(cell.load(Relaxed) + 1, Relaxed);
    }

    pub(in crate::pipeline) fn limits(&self, limit: PacketLimit) -> u64 {
        self.limits[limit as usize].load(Relaxed)
    }

    pub(in crate::pipeline) fn count_table(&self, table: TableId, lookups: usize, matched: usize) {
        self.add_table(table, lookups as u64, matched as u64);
    }

    #[inline]
    fn add_table(&self, table: TableId, lookups: u64, matched: u64) {
        let (looked_up, hits) = &self.tables[usize::from(table.0)];
        looked_up.store(looked_up.load(Relaxed) + lookups, Relaxed);
        hits.store(hits.load(Relaxed) + matched, Relaxed);
    }

    /// Returns the count of an entry and the time of its last packet.
    pub(in crate::pipeline) fn flow(&self, id: RuleId) -> (Count, Duration) {
        let read_cell = || self.flows.read(id.get());
        let (count, last) = self.paths.flow(id, read_cell);
        (count, Duration::from_nanos(last))
    }

    pub(in crate::pipeline) fn counted(&self, counter: CounterId) -> Count {
        self.others.read(counter.0).0
    }

    /// Returns the counts of a table; zeros for an invalid table number.
    pub(in crate::pipeline) fn table(&self, table: TableId) -> TableCount {
        let Some((looked_up, hits)) = self.tables.get(usize::from(table.0)) else {
            return TableCount::default();
        };
        self.paths.table(table, || TableCount {
            lookups: looked_up.load(Relaxed),
            matched: hits.load(Relaxed),
        })
    }

    /// Sets the counters of an entry to 0. No worker may count the entry during this call.
    pub(in crate::pipeline) fn clear_flow(&self, id: RuleId) {
        self.paths.forget(id);
        self.flows.clear(id.get());
    }

    /// Sets a counter to 0. No worker may count there during this call.
    pub(in crate::pipeline) fn clear(&self, counter: CounterId) {
        self.others.clear(counter.0);
    }

    /// Adds all counts of a tally whose worker has been dropped.
    pub(in crate::pipeline) fn absorb(&self, dropped: &Tally) {
        let paths = &dropped.paths;
        paths.close_all(|closed| dropped.add_closed(closed));
        self.flows.absorb(&dropped.flows);
        self.others.absorb(&dropped.others);
        for (to, from) in self.limits.iter().zip(&dropped.limits) {
            to.store(to.load(Relaxed) + from.load(Relaxed), Relaxed);
        }
        for (to, from) in self.tables.iter().zip(&dropped.tables) {
            to.0.store(to.0.load(Relaxed) + from.0.load(Relaxed), Relaxed);
            to.1.store(to.1.load(Relaxed) + from.1.load(Relaxed), Relaxed);
        }
    }
}

/// Converts a time to nanoseconds in 64 bits, enough for 584 years.
pub(in crate::pipeline) fn nanoseconds(now: Duration) -> u64 {
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_counted_is_added_to_what_others_did() {
        let (former, dropped) = (Tally::new(), Tally::new());
        for (tally, number, bytes) in [(&former, 3, 10), (&dropped, 3, 5), (&dropped, 700, 7)] {
            tally.count_flows(RuleId::new(number).unwrap(), (1, bytes), u64::from(number));
            tally.count(CounterId(number), bytes, 1);
            tally.count_table(TableId(2), 2, 1);
            tally.count_limit(PacketLimit::Copies);
        }
        former.absorb(&dropped);
        let flow = |number| former.flow(RuleId::new(number).unwrap());
        assert_eq!(
            flow(3).0,
            Count {
                packets: 2,
                bytes: 15
            }
        );
        assert_eq!(
            flow(700),
            (
                Count {
                    packets: 1,
                    bytes: 7
                },
                Duration::from_nanos(700)
            )
        );
        assert_eq!(
            former.counted(CounterId(3)),
            Count {
                packets: 2,
                bytes: 15
            }
        );
        let limits = PacketLimit::ALL.map(|limit| former.limits(limit));
        assert_eq!(limits, [0, 3]);
        let table = former.table(TableId(2));
        assert_eq!((table.lookups, table.matched), (6, 3));
    }
}
