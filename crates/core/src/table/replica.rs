//! The traits of the contents of a table: a table has two copies of a [`Replica`].

use std::error::Error;
use std::ops::Range;

/// The contents of one side of a table. Many threads can read a replica. The writer makes
/// each accepted change twice, once on each side, so a change must have the same result
/// on both.
///
/// The library has two: [`EngineReplica`](super::EngineReplica), an engine with its
/// rules' actions and cookies, and [`PolicyReplica`](super::PolicyReplica), one such
/// engine for each part of a policy. [`Table::new`](super::Table::new) takes any other
/// replica, such as several flow tables with the groups that their actions refer to.
/// Structures that must change together belong in one replica: readers see either all
/// changes of a transaction or none.
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
    /// A list of changes that are made together or not at all, in the form that the
    /// caller passes: usually a reference.
    type Transaction<'t>: Copy;

    /// The reason why a transaction cannot be made.
    type Refusal: Error;

    /// A list of accepted changes, in order. It keeps a change until both sides have made
    /// it. A table has two logs, which it uses alternately.
    type Log: ChangeLog;

    /// The writer's state about accepted changes.
    type Accepted: Accepted<Self>;

    /// Work other than a change. Both sides do an operation at the same position among
    /// the changes. An operation makes no new version and must not change any answer. Use
    /// [`Infallible`](std::convert::Infallible) if there are no operations.
    type Operation;

    /// Makes the accepted changes at these positions of the log. The table calls this
    /// function on each side for all changes, in order, in ranges of any size. No reader
    /// sees a side in which a transaction is only partly made.
    ///
    /// # Panics
    /// If a change cannot be made, although it was accepted. The table is then poisoned.
    fn replay(&mut self, log: &Self::Log, changes: Range<usize>);

    /// Does an operation, or begins it; [`maintain`](Self::maintain) and later changes
    /// continue it.
    fn operate(&mut self, operation: &Self::Operation);

    /// True if `operation` replaces the operation `earlier`, which one side or both have
    /// not done yet. The table then drops `earlier`. Operations that are not replaced
    /// accumulate while a reader is in the standby.
    fn replaces(operation: &Self::Operation, earlier: &Self::Operation) -> bool {
        let _ = (operation, earlier);
        false
    }

    /// Does at most `steps` steps of the work that operations have begun. Otherwise,
    /// later changes do this work. Returns true if there is more to do.
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

/// The writer's state outside of the two sides. The writer uses it to check a transaction
/// against everything accepted, including changes that are not visible yet. Limits belong
/// here.
pub trait Accepted<R: Replica> {
    /// Checks a transaction against the live side and the changes
    /// [accepted](Self::accept) since. Returns the number of changes that it adds to the
    /// log. A check does not change what was accepted, so a repeated check returns the
    /// same result.
    ///
    /// # Errors
    /// The reason why the transaction cannot be made. A transaction that passes must be
    /// possible on both sides, whatever their memory layout.
    fn check(&mut self, live: &R, transaction: R::Transaction<'_>) -> Result<usize, R::Refusal>;

    /// Accepts the transaction that passed the last check: appends all of its changes to
    /// the log.
    fn accept(&mut self, transaction: R::Transaction<'_>, log: &mut R::Log);

    /// Called if the last transaction is not visible immediately. Its changes are in the
    /// log, beginning at position `from`. If a transaction is visible immediately, its
    /// changes need not be recorded here.
    fn deferred(&mut self, log: &R::Log, from: usize) {
        let _ = (log, from);
    }

    /// Called when everything accepted has become visible: the live side now has all
    /// accepted changes. `log` has the changes that became visible with this publication.
    fn published(&mut self, log: &R::Log) {
        let _ = log;
    }

    /// Bytes held, including unused capacity.
    fn bytes(&self) -> usize {
        0
    }
}

/// A list of accepted changes, in order.
pub trait ChangeLog: Default {
    /// The number of changes.
    fn len(&self) -> usize;

    /// True if the log is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all changes. Keeps memory for about `keep` changes, so that the log can be
    /// filled again without allocating. Frees all other memory, which a large transaction
    /// may have used.
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
