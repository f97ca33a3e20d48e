//! The traits of a replica, which a table has two copies of.

use std::error::Error;
use std::ops::Range;

/// A side of a table, without its version: a value that many threads can read, and that
/// can be brought from one state to the next twice, once on each side.
///
/// The library has two: [`EngineReplica`](super::EngineReplica), an engine with its
/// rules' actions and cookies, and [`PolicyReplica`](super::PolicyReplica), one such
/// engine for each part of a policy. [`Table::new`](super::Table::new) takes any other
/// replica, such as several flow tables with the groups that their actions refer to.
/// Structures that must change together belong into one replica, since readers see
/// either all of a transaction or nothing.
///
/// A transaction takes three steps:
///
/// ```text
///  Transaction ──▶ Accepted::check      by everything accepted: refused, or
///                  Accepted::accept ──▶ Log   its owned form, kept until both
///                                        │    sides have it
///                  Replica::replay  ◀────┘    once on each side, in order
/// ```
///
/// ```
/// use std::collections::BTreeMap;
/// use std::convert::Infallible;
/// use std::ops::Range;
///
/// use classyard::table::{Accepted, Replica, Table};
/// use classyard::table::Version;
///
/// /// Names of ports. A transaction sets some of them.
/// #[derive(Default)]
/// struct Names(BTreeMap<u32, String>);
///
/// impl Replica for Names {
///     type Transaction<'t> = &'t [(u32, &'t str)];
///     type Refusal = std::fmt::Error;
///     type Log = Vec<(u32, String)>;
///     type Accepted = NoEmptyName;
///     type Operation = Infallible;
///
///     fn replay(&mut self, log: &Self::Log, changes: Range<usize>) {
///         self.0.extend(log[changes].iter().cloned());
///     }
///
///     fn operate(&mut self, operation: &Infallible) {
///         match *operation {}
///     }
///
///     fn bytes(&self) -> usize {
///         self.0.values().map(String::capacity).sum()
///     }
/// }
///
/// /// This check does not depend on earlier names.
/// struct NoEmptyName;
///
/// impl Accepted<Names> for NoEmptyName {
///     fn check(&mut self, _: &Names, names: &[(u32, &str)]) -> Result<usize, std::fmt::Error> {
///         if names.iter().any(|(_, name)| name.is_empty()) {
///             return Err(std::fmt::Error);
///         }
///         Ok(names.len())
///     }
///
///     fn accept(&mut self, names: &[(u32, &str)], log: &mut Vec<(u32, String)>) {
///         log.extend(names.iter().map(|&(port, name)| (port, name.to_owned())));
///     }
/// }
///
/// let (mut writer, table) = Table::new(Names::default(), Names::default(), NoEmptyName);
/// let mut reader = table.reader();
/// writer.apply(&[(1, "up"), (2, "down")])?;
/// assert!(writer.apply(&[(1, "left"), (2, "")]).is_err());
/// assert_eq!(writer.publish().transactions(), 1);
/// assert_eq!(reader.pin().0[&1], "up");
/// # Ok::<(), std::fmt::Error>(())
/// ```
pub trait Replica: Send + Sync + Sized {
    /// Changes that are made together or not at all, as the caller passes them: usually
    /// a reference.
    type Transaction<'t>: Copy;

    /// The reason why a transaction cannot be made.
    type Refusal: Error;

    /// Accepted changes, in order, until both sides have them. A table has two logs and
    /// alternates between them.
    type Log: ChangeLog;

    /// The writer's state about accepted changes.
    type Accepted: Accepted<Self>;

    /// Work other than a change: both sides do it at the same position among the
    /// changes, and it makes no version. It must not change any answer.
    /// [`Infallible`](std::convert::Infallible) if there is none.
    type Operation;

    /// Makes accepted changes, by their positions in the log. The table calls this on
    /// each side for all changes in order, in ranges of any size. No reader sees the
    /// side before the last change of a transaction is made.
    ///
    /// # Panics
    /// If a change cannot be made after all. The table is then poisoned.
    fn replay(&mut self, log: &Self::Log, changes: Range<usize>);

    /// Does an operation, or begins it; [`maintain`](Self::maintain) and later changes
    /// continue it.
    fn operate(&mut self, operation: &Self::Operation);

    /// True if `operation` replaces an earlier operation that some side still has to do.
    /// The earlier operation is then dropped. If none is replaced, operations accumulate
    /// while a reader is in the standby.
    fn replaces(operation: &Self::Operation, earlier: &Self::Operation) -> bool {
        let _ = (operation, earlier);
        false
    }

    /// Does at most `steps` steps of the work that is otherwise left to later changes.
    /// Returns true if there is more to do.
    fn maintain(&mut self, steps: usize) -> bool {
        let _ = steps;
        self.is_unfinished()
    }

    /// True if [`maintain`](Self::maintain) has work to do.
    fn is_unfinished(&self) -> bool {
        false
    }

    /// Bytes held, including unused capacity.
    fn bytes(&self) -> usize;
}

/// The writer's state outside of the two sides. With it, a transaction is checked
/// against everything accepted, including changes that are not visible yet. Limits
/// belong here.
pub trait Accepted<R: Replica> {
    /// Checks a transaction against the live side and the changes
    /// [accepted](Self::accept) since. Returns the number of changes that it adds to the
    /// log. Repeated calls return the same; they change nothing that was accepted.
    ///
    /// # Errors
    /// The reason why the transaction cannot be made. A transaction that passes must be
    /// possible on both sides, whatever their memory layout.
    fn check(&mut self, live: &R, transaction: R::Transaction<'_>) -> Result<usize, R::Refusal>;

    /// Accepts the transaction that passed the last check: appends all of its changes to
    /// the log.
    fn accept(&mut self, transaction: R::Transaction<'_>, log: &mut R::Log);

    /// Called when the last transaction stays invisible for now. Its changes are in the
    /// log from position `from` on. Not called for a transaction that is visible
    /// immediately; its changes need not be recorded here.
    fn deferred(&mut self, log: &R::Log, from: usize) {
        let _ = (log, from);
    }

    /// Called when everything accepted has become visible, so the live side has it.
    /// `log` has the changes that became visible with this publication.
    fn published(&mut self, log: &R::Log) {
        let _ = log;
    }

    /// Bytes held, including unused capacity.
    fn bytes(&self) -> usize {
        0
    }
}

/// Accepted changes in order.
pub trait ChangeLog: Default {
    /// The number of changes.
    fn len(&self) -> usize;

    /// True if the log is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all changes. Keeps memory for about `keep` changes, so that the log can be
    /// filled again without allocating. Frees the rest, so that a large transaction does
    /// not hold memory for good.
    fn clear(&mut self, keep: usize);

    /// Bytes held, including unused capacity.
    fn bytes(&self) -> usize;
}

/// A list of changes. The count of bytes excludes memory that the changes point to.
impl<T> ChangeLog for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }

    fn clear(&mut self, keep: usize) {
        self.clear();
        if self.capacity() > 2 * keep {
            self.shrink_to(keep);
        }
    }

    fn bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}
