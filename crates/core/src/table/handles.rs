//! Versions, tables, readers and guards.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::left_right::{self, Sides};
use super::replica::Replica;
// The default replica of a table; nothing else in this file depends on it.
use super::EngineReplica;

/// The number of a state of the rules. Version *n* has the initial rules, changed by the
/// first *n* accepted transactions.
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

/// One of the two sides of a table, with its version.
pub(super) struct VersionedReplica<R> {
    pub(super) version: Version,
    pub(super) replica: R,
}

/// A handle of a live table, which creates readers. It may be cloned and used on any
/// thread. The table is freed after its writer, all readers and all handles are dropped.
///
/// `Table` without a type argument is a table of one engine. A
/// [`PolicyTable`](super::PolicyTable) has an engine for each part of a policy.
pub struct Table<R: Replica = EngineReplica> {
    pub(super) sides: Arc<Sides<VersionedReplica<R>>>,
}

impl<R: Replica> Table<R> {
    /// Creates a reader, for one thread. The reader reuses the slot of a dropped reader,
    /// or allocates a new slot (136 bytes). Creating and dropping a reader takes a lock
    /// for a constant number of steps (amortised), whatever the number of readers.
    /// Pinning takes no lock.
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

/// Reads a table. A reader may move to another thread, but only one thread can use it at
/// a time. Create one reader for each thread.
pub struct Reader<R: Replica = EngineReplica> {
    side: left_right::Reader<VersionedReplica<R>>,
}

impl<R: Replica> Reader<R> {
    /// Pins the table at its current version, until the guard is dropped. Never waits
    /// and never retries.
    ///
    /// Keep a guard for a few batches at most. While a guard of an older version exists,
    /// later changes stay invisible for all readers, and after
    /// [`MAX_PENDING`](super::MAX_PENDING) changes the writer waits. A thread that has a
    /// guard must not call methods of the writer that may wait: they may wait for this
    /// guard, and so for ever.
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

/// Keeps a table pinned. A guard dereferences to the replica at the pinned version.
pub struct Guard<'a, R: Replica = EngineReplica> {
    side: left_right::Guard<'a, VersionedReplica<R>>,
}

impl<R: Replica> Guard<'_, R> {
    /// Returns the pinned version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.side.version
    }

    /// Returns the bytes held by the pinned side, including unused capacity. A table has
    /// two sides.
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
