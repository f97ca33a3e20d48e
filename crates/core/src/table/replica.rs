//! What a table keeps two copies of.

use std::error::Error;
use std::ops::Range;

/// One of a table's two sides, without its version: anything that many threads
/// can read, and that can be brought from one state to the next twice, once on
/// each side.
///
/// The library has two: [`EngineReplica`](super::EngineReplica), an engine with
/// its rules' actions and cookies, and [`PolicyReplica`](super::PolicyReplica),
/// the same for each part of a policy. [`Table::new`](super::Table::new) takes
/// any other, such as several flow tables with what their actions refer to:
/// whatever must change together is in one replica, since readers see a
/// transaction whole or not at all.
///
/// A transaction goes through three hands:
///
/// ```text
///  Transaction ──▶ Accepted::check      against all that was accepted: refused, or
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
/// /// This check needs nothing of what is there.
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
    /// Changes that are made together or not at all, as the caller has them:
    /// usually a reference.
    type Transaction<'t>: Copy;

    /// Why a transaction cannot be made.
    type Refusal: Error;

    /// Accepted changes, in order, until both sides have them. A table has two
    /// and uses them by turns.
    type Log: ChangeLog;

    /// What the writer knows beside the two sides.
    type Accepted: Accepted<Self>;

    /// Work that is no change: both sides do it at the same place among the
    /// changes, and it makes no version. It must not change any answer.
    /// [`Infallible`](std::convert::Infallible) where there is none.
    type Operation;

    /// Makes changes that were accepted, by their positions in the log. The
    /// table calls it on each side for all changes in order, in pieces of any
    /// size; no reader sees the side before the last change of a transaction is
    /// made.
    ///
    /// # Panics
    /// When a change cannot be made after all. The table is poisoned then.
    fn replay(&mut self, log: &Self::Log, changes: Range<usize>);

    /// Does an operation, or begins it; [`maintain`](Self::maintain) and later
    /// changes go on with it.
    fn operate(&mut self, operation: &Self::Operation);

    /// Whether an operation takes the place of an earlier one that some side
    /// has still to do; that is forgotten then. Without such a rule, operations
    /// pile up while a reader is in the way.
    fn replaces(operation: &Self::Operation, earlier: &Self::Operation) -> bool {
        let _ = (operation, earlier);
        false
    }

    /// Does at most `steps` steps of the work that is otherwise left to later
    /// changes; says whether there is more to do.
    fn maintain(&mut self, steps: usize) -> bool {
        let _ = steps;
        self.is_unfinished()
    }

    /// Whether [`maintain`](Self::maintain) has anything to do.
    fn is_unfinished(&self) -> bool {
        false
    }

    /// Bytes held, spare room included.
    fn bytes(&self) -> usize;
}

/// What the writer knows beside the two sides, so that a transaction is checked
/// against everything accepted, also what is not visible yet. Limits belong
/// here.
pub trait Accepted<R: Replica> {
    /// Checks a transaction against the live side and what was
    /// [accepted](Self::accept) since: how many changes it adds to the log.
    /// Called again, it says the same; nothing that was accepted changes.
    ///
    /// # Errors
    /// What cannot be made, and why. What passes must be possible on both sides,
    /// whatever they hold in memory.
    fn check(&mut self, live: &R, transaction: R::Transaction<'_>) -> Result<usize, R::Refusal>;

    /// Accepts the transaction that the last check let pass: appends all of its
    /// changes to the log.
    fn accept(&mut self, transaction: R::Transaction<'_>, log: &mut R::Log);

    /// The changes of the log from a position on, those of the last transaction,
    /// stay invisible for now. A transaction that is visible at once is never
    /// deferred; what is remembered here need not be remembered for it.
    fn deferred(&mut self, log: &R::Log, from: usize) {
        let _ = (log, from);
    }

    /// Everything accepted is visible, so the live side has it: this log, from
    /// its beginning, is what became visible just now.
    fn published(&mut self, log: &R::Log) {
        let _ = log;
    }

    /// Bytes held, spare room included.
    fn bytes(&self) -> usize {
        0
    }
}

/// Accepted changes in order.
pub trait ChangeLog: Default {
    /// The number of changes.
    fn len(&self) -> usize;

    /// Whether there is no change.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all changes. Keeps memory for `keep` changes or so, so that the
    /// log can be filled again without allocating, and frees the rest, so that
    /// one large transaction does not cost memory for good.
    fn clear(&mut self, keep: usize);

    /// Bytes held, spare room included.
    fn bytes(&self) -> usize;
}

/// A list of changes, whose bytes are counted without what they point at.
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
