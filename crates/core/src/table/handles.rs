//! Versions, and what readers have in hand.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::left_right::{self, Sides};
use super::replica::Replica;
use super::writer::Writer;
// The replica of a table unless said otherwise; nothing here knows what it is.
use super::EngineReplica;

/// A state of the rules: version *n* is the initial rules plus the first *n*
/// transactions, in the order in which they were accepted.
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

/// One of a table's sides.
pub(super) struct Side<R> {
    pub(super) version: Version,
    pub(super) replica: R,
}

/// Makes readers. May be cloned freely and used on any thread. The table lives
/// as long as its writer, a reader or a clone of this.
///
/// A table of one engine unless said otherwise; a
/// [`PolicyTable`](super::PolicyTable) holds the parts of a policy.
pub struct Table<R: Replica = EngineReplica> {
    pub(super) sides: Arc<Sides<Side<R>>>,
}

impl<R: Replica> Table<R> {
    /// A table around two replicas that hold the same, and what the writer knows
    /// of them. From now on limits are the writer's to keep.
    #[must_use]
    pub fn new(left: R, right: R, accepted: R::Accepted) -> (Writer<R>, Table<R>) {
        let [left, right] = [left, right].map(|replica| Side {
            version: Version::default(),
            replica,
        });
        let (writer, sides) = Sides::share(left, right);
        (Writer::new(writer, accepted), Table { sides })
    }

    /// A reader, for one thread. Takes a slot that a dropped reader left, or
    /// memory for one more (136 bytes). Making and dropping readers takes a lock
    /// for a constant number of steps, amortised, however many readers there
    /// are; pinning never takes it.
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

/// Reads a table, on one thread at a time. May move to another thread; each
/// thread should have one of its own.
pub struct Reader<R: Replica = EngineReplica> {
    side: left_right::Reader<Side<R>>,
}

impl<R: Replica> Reader<R> {
    /// Pins the table as it is now, until the guard is dropped. Never waits and
    /// never tries again.
    ///
    /// Keep a guard for a batch or a few: while an old guard is kept, changes
    /// stay invisible for everybody, and in the end the writer waits. A thread
    /// that has a guard must not call the writer where that may wait.
    ///
    /// A leaked guard ([`std::mem::forget`]) counts as kept until the reader
    /// pins again or is dropped. If the reader is leaked as well, it counts as
    /// kept for good: at most one more publication becomes visible, and
    /// [`Writer::apply`] waits for ever when more than
    /// [`MAX_PENDING`](super::MAX_PENDING) changes would be pending.
    /// [`Writer::try_apply`] says so instead, and [`Writer::try_publish`]
    /// returns `false`.
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

/// A table as it was when it was pinned: the replica, which it stands for, and
/// its version.
pub struct Guard<'a, R: Replica = EngineReplica> {
    side: left_right::Guard<'a, Side<R>>,
}

impl<R: Replica> Guard<'_, R> {
    /// Which transactions have been made here.
    #[must_use]
    pub fn version(&self) -> Version {
        self.side.version
    }

    /// Bytes of the side that is pinned, spare room included. A table holds two
    /// sides.
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
