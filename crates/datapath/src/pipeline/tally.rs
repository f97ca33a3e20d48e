//! What a thread has counted: packets and bytes of entries, groups, meters and tables.
//!
//! Each worker counts for itself, in cells that nobody else writes; the sum over
//! workers counts. Who reads while a worker counts may find a packet whose bytes are
//! still to be added; once the worker has gone on, both are there.
//!
//! ```text
//! entries:            [ 0 … 63 ] [ 64 … 191 ] [ 192 … 447 ] …    by their numbers
//! groups, meters:     the same, by the places that they were given
//! ```
//! Cells come in pieces, each twice as large as the one before, so none ever moves.
//!
//! A number or place is given to something new only after every worker has gone on
//! from the version in which it was something else, and its cells are set to 0 then.
//! So nothing is counted twice, and nothing is lost.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use classyard::{RuleId, Winner};

use super::path_counts::{Closed, PathCounts};
use crate::cache::path::PathId;
use crate::flow::TableId;
use crate::limits::PacketLimit;

/// Packets and bytes. A packet has the bytes of its frame at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Count) -> Count {
        Count {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
        }
    }

    pub(super) fn since(self, earlier: Count) -> Count {
        Count {
            packets: self.packets - earlier.packets,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

/// What came to a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCount {
    /// Packets that were looked up.
    pub lookups: u64,
    /// Those that an entry matched.
    pub matched: u64,
}

/// What came to a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCount {
    /// Packets that were sent to it.
    pub all: Count,
    /// Those that went to each bucket.
    pub buckets: Vec<Count>,
}

/// What came to a meter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterCount {
    /// Packets that came.
    pub all: Count,
    /// Those that each band was applied to.
    pub bands: Vec<Count>,
}

/// Where something is counted that has no number of its own for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) u32);

/// Where a group and its buckets are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupPlaces {
    pub(super) all: Place,
    pub(super) buckets: Vec<Place>,
}

/// Gives places, the smallest that is free.
#[derive(Clone, Debug, Default)]
pub(super) struct PlaceBook {
    free: BTreeSet<u32>,
    next: u32,
}

impl PlaceBook {
    pub(super) fn take(&mut self) -> Place {
        if let Some(place) = self.free.pop_first() {
            return Place(place);
        }
        let place = self.next;
        self.next = place.checked_add(1).expect("fewer places than numbers");
        Place(place)
    }

    pub(super) fn give_back(&mut self, place: Place) {
        self.free.insert(place.0);
    }
}

/// Packets, bytes, and the time of the last packet.
#[derive(Default)]
#[repr(align(32))]
pub(super) struct Cell {
    packets: AtomicU64,
    bytes: AtomicU64,
    /// In nanoseconds.
    last: AtomicU64,
}

impl Cell {
    /// Adds a packet. Nobody else writes.
    #[inline]
    pub(super) fn count(&self, bytes: usize, now: u64) {
        let count = Count {
            packets: 1,
            bytes: bytes as u64,
        };
        self.count_all(count, now);
    }

    /// Adds packets, the last of which came at a time.
    #[inline]
    fn count_all(&self, count: Count, last: u64) {
        let packets = self.packets.load(Relaxed) + count.packets;
        self.packets.store(packets, Relaxed);
        let bytes = self.bytes.load(Relaxed) + count.bytes;
        self.bytes.store(bytes, Relaxed);
        self.last.store(last, Relaxed);
    }

    /// Adds packets that came before, in part perhaps after what is counted here.
    fn add(&self, count: Count, last: u64) {
        self.count_all(count, last.max(self.last.load(Relaxed)));
    }

    /// Packets so far.
    #[inline]
    pub(super) fn packets(&self) -> u64 {
        self.packets.load(Relaxed)
    }

    fn read(&self) -> (Count, u64) {
        let count = Count {
            packets: self.packets.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        };
        (count, self.last.load(Relaxed))
    }

    fn clear(&self) {
        self.packets.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
        self.last.store(0, Relaxed);
    }
}

/// Cells of the first piece, as a power of 2.
const FIRST: usize = 6;

/// Cells by their numbers.
#[derive(Default)]
pub(super) struct Cells {
    pieces: [OnceLock<Box<[Cell]>>; 33 - FIRST],
}

impl Cells {
    /// The piece that has a number, and where in it.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // less than 32 bits
    fn at(number: u32) -> (usize, usize) {
        let number = u64::from(number) + (1 << FIRST);
        let power = number.ilog2();
        (power as usize - FIRST, (number - (1 << power)) as usize)
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> &Cell {
        let (piece, at) = Cells::at(number);
        let cells = self.pieces[piece].get_or_init(|| {
            let cells = (0..1_usize << (piece + FIRST)).map(|_| Cell::default());
            cells.collect()
        });
        &cells[at]
    }

    /// The cell of a number, if it ever counted something.
    fn find(&self, number: u32) -> Option<&Cell> {
        let (piece, at) = Cells::at(number);
        self.pieces[piece].get().map(|cells| &cells[at])
    }

    pub(super) fn read(&self, number: u32) -> (Count, u64) {
        self.find(number).map(Cell::read).unwrap_or_default()
    }

    pub(super) fn clear(&self, number: u32) {
        if let Some(cell) = self.find(number) {
            cell.clear();
        }
    }
}

/// What one worker has counted.
pub(super) struct Tally {
    flows: Cells,
    others: Cells,
    tables: Vec<(AtomicU64, AtomicU64)>,
    paths: PathCounts,
    /// Packets that were dropped at a limit, by the limit.
    limits: [AtomicU64; PacketLimit::ALL.len()],
}

impl Tally {
    pub(super) fn new() -> Tally {
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
    pub(super) fn count_flows(&self, id: RuleId, (packets, bytes): (usize, usize), now: u64) {
        let count = Count {
            packets: packets as u64,
            bytes: bytes as u64,
        };
        self.flows.get(id.get()).count_all(count, now);
    }

    /// A packet on a path.
    #[inline]
    pub(super) fn count_path(&self, path: PathId, bytes: usize, now: u64) {
        self.paths.count(path.0, bytes, now);
    }

    /// Fetches the cells of paths into the processor's cache: all together, since they
    /// are anywhere in memory.
    pub(super) fn fetch_paths(&self, paths: impl Iterator<Item = PathId>) {
        self.paths.fetch(paths.map(|path| path.0));
    }

    /// A path has entries that it counts for from now on.
    pub(super) fn open_path(&self, path: PathId, steps: impl Iterator<Item = (TableId, Winner)>) {
        self.close_path(path);
        self.paths.open(path, steps);
    }

    /// A path counts no more; its entries have what it has counted.
    pub(super) fn close_path(&self, path: PathId) {
        self.paths.close(path, |closed| self.add_closed(closed));
    }

    fn add_closed(&self, closed: &Closed<'_>) {
        closed.add_to(
            |id, count, last| self.flows.get(id.get()).add(count, last),
            |table, lookups, matched| self.add_table(table, lookups, matched),
        );
    }

    #[inline]
    pub(super) fn count(&self, place: Place, bytes: usize, now: u64) {
        self.others.get(place.0).count(bytes, now);
    }

    /// A packet is dropped at a limit.
    pub(super) fn count_limit(&self, limit: PacketLimit) {
        let cell = &self.limits[limit as usize];
        cell.store(cell.load(Relaxed) + 1, Relaxed);
    }

    pub(super) fn limits(&self, limit: PacketLimit) -> u64 {
        self.limits[limit as usize].load(Relaxed)
    }

    pub(super) fn count_table(&self, table: TableId, lookups: usize, matched: usize) {
        self.add_table(table, lookups as u64, matched as u64);
    }

    #[inline]
    fn add_table(&self, table: TableId, lookups: u64, matched: u64) {
        let (all, hits) = &self.tables[usize::from(table.0)];
        all.store(all.load(Relaxed) + lookups, Relaxed);
        hits.store(hits.load(Relaxed) + matched, Relaxed);
    }

    /// What an entry has matched, and when it did last.
    pub(super) fn flow(&self, id: RuleId) -> (Count, Duration) {
        let own = || self.flows.read(id.get());
        let (count, last) = self.paths.flow(id, own);
        (count, Duration::from_nanos(last))
    }

    pub(super) fn place(&self, place: Place) -> Count {
        self.others.read(place.0).0
    }

    /// What came to a table: nothing if there is no table of that number.
    pub(super) fn table(&self, table: TableId) -> TableCount {
        let Some((all, hits)) = self.tables.get(usize::from(table.0)) else {
            return TableCount::default();
        };
        self.paths.table(table, || TableCount {
            lookups: all.load(Relaxed),
            matched: hits.load(Relaxed),
        })
    }

    /// Begins at 0 with an entry. No worker may count it meanwhile.
    pub(super) fn clear_flow(&self, id: RuleId) {
        self.paths.forget(id);
        self.flows.clear(id.get());
    }

    /// Begins at 0 with a place. No worker may count there meanwhile.
    pub(super) fn clear(&self, place: Place) {
        self.others.clear(place.0);
    }

    /// Adds all that another one has counted, which counts no more.
    pub(super) fn absorb(&self, other: &Tally) {
        other.paths.close_all(|closed| other.add_closed(closed));
        let kinds = [(&self.flows, &other.flows), (&self.others, &other.others)];
        for (to, from) in kinds {
            for (piece, cells) in from.pieces.iter().enumerate() {
                let Some(cells) = cells.get() else { continue };
                let first = (1_u64 << (piece + FIRST)) - (1 << FIRST);
                for (number, cell) in (first..).zip(cells) {
                    let (count, last) = cell.read();
                    let Ok(number) = u32::try_from(number) else {
                        continue;
                    };
                    if count.packets > 0 {
                        to.get(number).add(count, last);
                    }
                }
            }
        }
        for (to, from) in self.limits.iter().zip(&other.limits) {
            to.store(to.load(Relaxed) + from.load(Relaxed), Relaxed);
        }
        for (to, from) in self.tables.iter().zip(&other.tables) {
            to.0.store(to.0.load(Relaxed) + from.0.load(Relaxed), Relaxed);
            to.1.store(to.1.load(Relaxed) + from.1.load(Relaxed), Relaxed);
        }
    }
}

/// A time as workers keep it: nanoseconds, which last for 584 years.
pub(super) fn nanoseconds(now: Duration) -> u64 {
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_cell_of_its_own() {
        let mut seen = BTreeSet::new();
        let numbers = (0..1000).chain([u32::MAX - 1, u32::MAX, 1 << 20, (1 << 20) - 64]);
        for number in numbers {
            let (piece, at) = Cells::at(number);
            assert!(at < 1 << (piece + FIRST), "{number}");
            assert!(piece < Cells::default().pieces.len(), "{number}");
            assert!(seen.insert((piece, at)), "{number}");
        }
    }

    #[test]
    fn what_a_worker_counted_is_added_to_what_others_did() {
        let (kept, left) = (Tally::new(), Tally::new());
        for (tally, number, bytes) in [(&kept, 3, 10), (&left, 3, 5), (&left, 700, 7)] {
            tally.count_flows(RuleId::new(number).unwrap(), (1, bytes), u64::from(number));
            tally.count(Place(number), bytes, 1);
            tally.count_table(TableId(2), 2, 1);
            tally.count_limit(PacketLimit::Copies);
        }
        kept.absorb(&left);
        let flow = |number| kept.flow(RuleId::new(number).unwrap());
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
            kept.place(Place(3)),
            Count {
                packets: 2,
                bytes: 15
            }
        );
        let limits = PacketLimit::ALL.map(|limit| kept.limits(limit));
        assert_eq!(limits, [0, 3]);
        let table = kept.table(TableId(2));
        assert_eq!((table.lookups, table.matched), (6, 3));
    }
}
