//! Versions, tables, readers and guards.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::left_right::{self, Sides};
use super::replica::Replica;
// The default replica of a table; nothing else in this file depends on it.
use super::EngineReplica;

/// A state of the rules: version *n* is the initial rules plus the first *n*
/// transactions that were accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub(super) u64);

impl Version {
    /// The number of transactions.
    #[must_use]
    pub fn transactions(self) -> u64 {
        self.0
    }

    pub(super) fn next(self) -> Version {
        Version(self.0 + 1)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One side of a table.
pub(super) struct Side<R> {
    pub(super) version: Version,
    pub(super) replica: R,
}

/// Makes readers. May be cloned and used on any thread. The table lives as long as its
/// writer, a reader or a clone of this.
///
/// By default a table of one engine; a [`PolicyTable`](super::PolicyTable) has the parts
/// of a policy.
pub struct Table<R: Replica = EngineReplica> {
    pub(super) sides: Arc<Sides<Side<R>>>,
}

impl<R: Replica> Table<R> {
    /// Makes a reader, for one thread. Takes the slot of a dropped reader, or memory for
    /// a new slot (136 bytes). Making and dropping readers takes a lock for a constant
    /// number of steps (amortised), however many readers there are; pinning never takes
    /// it.
    #[must_use]
    pub fn reader(&self) -> Reader<R> {
        Reader {
            side: left_right::Reader::new(&self.sides),
        }
    }
}

impl<R: Replica> Clone for Table<R> {
    fn clone(&self) -> Table<R> {
        Table {
            sides: Arc::clone(&self.sides),
        }
    }
}

impl<R: Replica> fmt::Debug for Table<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = f.debug_struct("Table");
        table.field("slots", &self.sides.slot_count());
        table.finish_non_exhaustive()
    }
}

/// Reads a table, on one thread at a time. May move to another thread; each thread
/// should have its own.
pub struct Reader<R: Replica = EngineReplica> {
    side: left_right::Reader<Side<R>>,
}

impl<R: Replica> Reader<R> {
    /// Pins the table at its current version, until the guard is dropped. Never waits
    /// and never retries.
    ///
    /// Keep a guard for a few batches at most: while an old guard is kept, changes stay
    /// invisible for all readers, and finally the writer waits. A thread that has a
    /// guard must not make calls of the writer that may wait.
    ///
    /// A leaked guard ([`std::mem::forget`]) counts as kept until the reader pins again
    /// or is dropped. If the reader is leaked as well, the guard counts as kept for
    /// good: at most one more publication becomes visible, and
    /// [`Writer::apply`](super::Writer::apply) waits for ever if more than
    /// [`MAX_PENDING`](super::MAX_PENDING) changes would be pending.
    /// [`Writer::try_apply`](super::Writer::try_apply) returns an error instead, and
    /// [`Writer::try_publish`](super::Writer::try_publish) returns `false`.
    #[inline]
    pub fn pin(&mut self) -> Guard<'_, R> {
        Guard {
            side: self.side.pin(),
        }
    }
}

impl<R: Replica> fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// A pinned table. It dereferences to the replica at the pinned version.
pub struct Guard<'a, R: Replica = EngineReplica> {
    side: left_right::Guard<'a, Side<R>>,
}

impl<R: Replica> Guard<'_, R> {
    /// The version that is pinned.
    #[must_use]
    pub fn version(&self) -> Version {
        self.side.version
    }

    /// Bytes of the pinned side, including unused capacity. A table has two sides.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.side.replica.bytes()
    }
}

impl<R: Replica> Deref for Guard<'_, R> {
    type Target = R;

    #[inline]
    fn deref(&self) -> &R {
        &self.side.replica
    }
}

impl<R: Replica> fmt::Debug for Guard<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut guard = f.debug_struct("Guard");
        guard.field("version", &self.version());
        guard.finish_non_exhaustive()
    }
}
