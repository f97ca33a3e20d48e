//! The writer: accepts transactions, and publishes them in groups.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::model::error::TryApplyError;

use super::handles::{Table, Version, VersionedReplica};
use super::left_right::{self, Sides};
use super::log::{Budget, Log};
use super::publish_interval::PublishInterval;
use super::replica::{Accepted, ChangeLog, Replica};
use super::sync;
// The default replica of a writer; nothing else in this file depends on it.
use super::EngineReplica;

/// The maximum number of pending changes: changes that are accepted and not yet visible
/// when [`Writer::apply`] returns. If there would be more, [`Writer::apply`] waits for
/// readers of older versions, and [`Writer::try_apply`] returns an error.
///
/// At 3 million changes a second, a writer reaches this number after 20 ms. So it does
/// not have to wait for a reader that was interrupted during a batch for a few time
/// slices. This number of changes takes 5 MB for IPv4 rules.
pub const MAX_PENDING: usize = 65_536;

/// The maximum number of changes that [`Writer::apply_later`] leaves to a later call. It
/// bounds the time of one call. In the flow tables of a switch, this number of changes takes 14 ms
/// (`bench/records/switch.md`, bundle).
pub const MAX_DEFERRED: usize = 4096;

/// With a publish interval, a call with *n* changes replays at most `CATCH_UP_TIMES` ×
/// *n* + `CATCH_UP_MORE` changes on the standby. The work itself is 2 × *n*, once on each
/// side. With the third *n*, the standby catches up after a time in which a reader was in
/// it. With the constant, calls with few changes catch up after a call with many; 256
/// changes take 0.1 to 0.2 ms in `forest`.
const CATCH_UP_TIMES: usize = 3;
const CATCH_UP_MORE: usize = 256;

/// Makes a table's transactions. Each table has one writer.
///
/// Dropping the writer publishes accepted changes if no reader is in the standby. To
/// publish them in any case, call [`publish`](Self::publish) first. Readers continue with
/// the last visible version.
pub struct Writer<R: Replica = EngineReplica> {
    sides: left_right::Writer<VersionedReplica<R>>,
    /// Accepted changes that the live side has and the standby lacks.
    old: Log<R>,
    /// Accepted changes that neither side has.
    new: Log<R>,
    /// The replica's state about accepted changes.
    state: R::Accepted,
    /// The newest version, which has everything accepted.
    accepted: Version,
    /// The live side's version.
    visible: Version,
    /// The version that was visible before the last swap. No reader has an older version
    /// pinned.
    before: Version,
    /// Limits how often the sides swap.
    interval: PublishInterval,
    /// True while a replica changes. If it stays true, the replica panicked.
    poisoned: bool,
}

impl<R: Replica> Table<R> {
    /// Makes a table of two equal replicas and the writer's state about accepted changes.
    /// From now on, this state enforces the limits.
    #[must_use]
    pub fn new(left: R, right: R, accepted: R::Accepted) -> (Writer<R>, Table<R>) {
        let [left, right] = [left, right].map(|replica| VersionedReplica {
            version: Version::default(),
            replica,
        });
        let (writer, sides) = Sides::share(left, right);
        (Writer::new(writer, accepted), Table { sides })
    }
}

impl<R: Replica> Writer<R> {
    fn new(sides: left_right::Writer<VersionedReplica<R>>, state: R::Accepted) -> Writer<R> {
        Writer {
            sides,
            old: Log::default(),
            new: Log::default(),
            state,
            accepted: Version::default(),
            visible: Version::default(),
            before: Version::default(),
            interval: PublishInterval::default(),
            poisoned: false,
        }
    }

    /// Accepts all changes of a transaction, in order, or refuses all. Returns the
    /// version that has the changes. This version is visible immediately, unless a reader
    /// is still in an older version or the [publish interval](Self::set_publish_interval)
    /// is not over. In that case, a later call makes it visible.
    ///
    /// Waits only if more than [`MAX_PENDING`] changes would stay invisible. The call
    /// then waits until readers of older versions have left, and for ever if such a
    /// reader was leaked together with a guard ([`Reader::pin`](super::Reader::pin)).
    /// [`try_apply`](Self::try_apply) never waits. In a policy, a change counts once for
    /// each part that it changes.
    ///
    /// # Errors
    /// The reason why the transaction cannot be made; nothing is changed then. For rules
    /// it is an [`UpdateError`](crate::UpdateError), which names the change. If a part
    /// of a policy has reached its limit on bytes, the error names the first change that
    /// adds a rule to the part.
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    pub fn apply(&mut self, transaction: R::Transaction<'_>) -> Result<Version, R::Refusal> {
        self.refuse_poisoned();
        self.count(transaction)?;
        Ok(self.accept(transaction))
    }

    /// Like [`apply`](Self::apply), but returns an error and changes nothing if
    /// [`apply`](Self::apply) would wait. Waits for no reader.
    ///
    /// # Errors
    /// [`TryApplyError::Refused`] if [`apply`](Self::apply) would refuse the transaction.
    /// [`TryApplyError::WouldWait`] if [`apply`](Self::apply) would wait for a reader.
    /// Nothing is changed then.
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    pub fn try_apply(
        &mut self,
        transaction: R::Transaction<'_>,
    ) -> Result<Version, TryApplyError<R::Refusal>> {
        self.refuse_poisoned();
        let counted = self.count(transaction);
        let changes = counted.map_err(TryApplyError::Refused)?;
        // A free standby stays free until this writer swaps.
        let pending = self.pending();
        if pending.saturating_add(changes) > MAX_PENDING && !self.sides.standby_is_free() {
            return Err(TryApplyError::WouldWait {
                pending,
                changes,
                limit: MAX_PENDING,
            });
        }
        Ok(self.accept(transaction))
    }

    /// Like [`apply`](Self::apply), but leaves the work on both sides to a later call, at the
    /// latest to the call after which more than [`MAX_DEFERRED`] changes would be pending.
    /// Work on many changes at a time takes less time than work on each change, since each
    /// side is in the processor's caches for more than one change. Call
    /// [`publish`](Self::publish) after the last transaction.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    pub fn apply_later(&mut self, transaction: R::Transaction<'_>) -> Result<Version, R::Refusal> {
        self.refuse_poisoned();
        let changes = self.count(transaction)?;
        if self.pending().saturating_add(changes) > MAX_DEFERRED {
            return Ok(self.accept(transaction));
        }
        let pending_before = self.append(transaction);
        self.state.deferred(self.new.changes(), pending_before);
        Ok(self.accepted)
    }

    /// Checks if [`apply`](Self::apply) would accept the transaction.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub fn check(&mut self, transaction: R::Transaction<'_>) -> Result<(), R::Refusal> {
        self.count(transaction).map(drop)
    }

    /// Checks a transaction and counts its changes.
    fn count(&mut self, transaction: R::Transaction<'_>) -> Result<usize, R::Refusal> {
        let (sides, state) = (&self.sides, &mut self.state);
        sides.with_live(|side| state.check(&side.replica, transaction))
    }

    /// Accepts a transaction that passed the check.
    fn accept(&mut self, transaction: R::Transaction<'_>) -> Version {
        let pending_before = self.append(transaction);
        if !self.proceed(self.pending() - pending_before) {
            self.state.deferred(self.new.changes(), pending_before);
            if self.pending() > MAX_PENDING {
                self.publish();
            }
        }
        self.accepted
    }

    /// Appends an accepted transaction to the log. Returns the number of changes that were
    /// pending before.
    fn append(&mut self, transaction: R::Transaction<'_>) -> usize {
        let pending_before = self.pending();
        self.poisoned = true;
        self.state.accept(transaction, self.new.changes_mut());
        self.poisoned = false;
        self.accepted = self.accepted.next();
        pending_before
    }

    /// Makes everything accepted visible to every reader that pins after the call
    /// returns. Returns the newest version. Waits until readers that pinned before the
    /// last publication have left, and for ever if such a reader was leaked together with
    /// a guard. [`try_publish`](Self::try_publish) never waits.
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    pub fn publish(&mut self) -> Version {
        while !self.try_publish() {
            self.wait_for_standby();
        }
        self.visible
    }

    /// Makes everything accepted visible, unless a reader is in the standby. Returns
    /// true if everything accepted is visible. Waits for no reader, and ignores the
    /// [publish interval](Self::set_publish_interval).
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    pub fn try_publish(&mut self) -> bool {
        self.refuse_poisoned();
        if self.is_published() {
            return true;
        }
        if !self.sides.standby_is_free() {
            return false;
        }
        self.catch_up(Budget::Unlimited);
        self.swap();
        true
    }

    /// If the [publish interval](Self::set_publish_interval) is over, does the same as
    /// [`try_publish`](Self::try_publish). Otherwise, prepares the next publication:
    /// makes up to 256 of the pending changes on the standby. Returns true if everything
    /// accepted is visible. Waits for no reader. Meant for a writer that has nothing else
    /// to do.
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    pub fn publish_if_due(&mut self) -> bool {
        self.refuse_poisoned();
        if self.interval.is_over() {
            return self.try_publish();
        }
        if self.sides.standby_is_free() {
            self.catch_up(Budget::Steps(CATCH_UP_MORE));
        }
        self.is_published()
    }

    /// Sets the publish interval, the least time from one publication to the next.
    /// Accepted changes are published together after the interval, or after up to two
    /// intervals if many are pending. If the interval is zero, the default, each call
    /// publishes if no reader is in the standby. The interval begins with this call, and
    /// again with each publication.
    ///
    /// After each publication, the readers' caches have no data of the new live side, so
    /// lookups are slower for a while. If rules change all the time, an interval of some
    /// milliseconds makes publications rare.
    ///
    /// The library reads no clock. With an interval, call [`set_now`](Self::set_now)
    /// before each other call. Otherwise the interval never ends.
    ///
    /// Changes are published only within a call of the writer. So if there may be no
    /// changes for a long time, call [`publish_if_due`](Self::publish_if_due) from time
    /// to time, or call [`publish`](Self::publish) after the last change. The first
    /// change after an idle time does not wait, since the interval is over by then.
    /// [`publish`](Self::publish), [`try_publish`](Self::try_publish),
    /// [`synchronize`](Self::synchronize), [`on_both_sides`](Self::on_both_sides) and
    /// `rebuild` ignore the interval. So does [`apply`](Self::apply) if more than
    /// [`MAX_PENDING`] changes would be pending.
    ///
    /// The work is spread over the calls: until twice the interval has passed, a call
    /// with *n* changes makes at most 3 *n* + 256 changes on the standby, including
    /// changes of earlier calls.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use classyard::prelude::*;
    /// use classyard::Transaction;
    ///
    /// # let rules = RuleSet::new(&Schema::ipv4_5tuple());
    /// # let engine = EngineSpec::parse("tuplemerge")?;
    /// let (mut writer, _table) = engine.builder().table(&rules)?;
    /// let start = Instant::now();
    /// writer.set_publish_interval(Duration::from_millis(10));
    /// # let changes = Transaction::new();
    /// // For each transaction:
    /// writer.set_now(start.elapsed());
    /// writer.apply(&changes)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_publish_interval(&mut self, interval: Duration) {
        self.interval.set(interval);
    }

    /// Returns the publish interval; zero means none.
    #[must_use]
    pub fn publish_interval(&self) -> Duration {
        self.interval.get()
    }

    /// Sets the time for the [publish interval](Self::set_publish_interval): the time
    /// since a moment that the caller chose once. An earlier time than before is ignored.
    /// All later calls use this time. Without an interval, the time is not needed.
    pub fn set_now(&mut self, now: Duration) {
        self.interval.set_now(now);
    }

    /// Called after `brought` changes or steps of other work were added to the log.
    /// Replays the log on the standby, and publishes if the interval allows it. Returns
    /// true if everything accepted is visible. Waits for no reader.
    fn proceed(&mut self, brought: usize) -> bool {
        if self.interval.get().is_zero() {
            return self.try_publish();
        }
        if !self.sides.standby_is_free() {
            return false;
        }
        let passed = self.interval.passed();
        let budget = match passed >= self.interval.get().saturating_mul(2) {
            true => Budget::Unlimited,
            false => {
                let steps = brought.saturating_mul(CATCH_UP_TIMES);
                Budget::Steps(steps.saturating_add(CATCH_UP_MORE))
            }
        };
        let done = self.catch_up(budget);
        if done && self.interval.is_over() {
            self.swap();
            return true;
        }
        false
    }

    /// True if everything accepted is visible and the live side has begun all other work.
    fn is_published(&self) -> bool {
        self.visible == self.accepted && !self.new.has_work()
    }

    /// Replays pending changes and work on the standby, which must be free, within the
    /// budget. Returns true if the standby then has everything.
    fn catch_up(&mut self, mut budget: Budget) -> bool {
        if self.old.is_done() && self.new.is_done() {
            return true;
        }
        let logs = [&mut self.old, &mut self.new];
        self.poisoned = true;
        let replayed = self.sides.with_standby(|side| {
            for log in logs {
                log.replay(&mut side.replica, &mut budget);
            }
        });
        self.poisoned = false;
        replayed.expect(FREE);
        self.old.is_done() && self.new.is_done()
    }

    /// Publishes, then waits until no reader is in an older version. After this call, no
    /// reader uses a rule that was removed before the call.
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    pub fn synchronize(&mut self) -> Version {
        self.publish();
        self.wait_for_standby();
        self.visible
    }

    /// Publishes, then does the same work on both sides, one after the other. Readers
    /// continue during the work, and both sides have the same version. So if readers are
    /// there, the work must not change an answer. Waits for readers of older versions.
    /// [`operate`](Self::operate) does work without waiting.
    ///
    /// # Errors
    /// The first error of `work`. If the work fails on the second side, the first side
    /// has done it and is live.
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    pub fn on_both_sides<E>(
        &mut self,
        mut work: impl FnMut(&mut R) -> Result<(), E>,
    ) -> Result<Version, E> {
        self.publish();
        self.work_on_standby(&mut work)?;
        self.swap();
        self.work_on_standby(&mut work)?;
        Ok(self.visible)
    }

    /// Waits for the standby, replays the old log on it and clears this log, then does
    /// the work. No change may be pending.
    fn work_on_standby<E>(
        &mut self,
        work: &mut impl FnMut(&mut R) -> Result<(), E>,
    ) -> Result<(), E> {
        self.wait_for_standby();
        self.catch_up(Budget::Unlimited);
        self.old.clear(MAX_PENDING);
        self.poisoned = true;
        let done = self.sides.with_standby(|side| work(&mut side.replica));
        self.poisoned = false;
        done.expect(FREE)
    }

    /// Does an operation on both sides, at the same position among the changes: after all
    /// accepted changes. Makes no new version and waits for no reader.
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    pub fn operate(&mut self, operation: R::Operation) {
        self.refuse_poisoned();
        self.new.push_operation(operation);
        self.proceed(1);
    }

    /// Does up to `steps` steps of work that an operation has begun, such as installing
    /// plans, on the standby. Meant for times without changes. A step is about the work
    /// of a change. The standby then becomes live, at the end of the [publish
    /// interval](Self::set_publish_interval) if there is one. Does nothing while a reader
    /// is in the standby. Returns true if there is more to do. A thread that has a guard
    /// must not repeat the call until it returns false: the guard may keep the standby
    /// occupied.
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    pub fn maintain(&mut self, steps: usize) -> bool {
        self.refuse_poisoned();
        if !self.is_unfinished() {
            return false;
        }
        if self.sides.standby_is_free() {
            self.new.push_steps(steps);
            self.proceed(steps);
        }
        self.is_unfinished()
    }

    /// Makes up to `steps` of the accepted changes that the standby lacks, unless a reader is in
    /// it. Then the next publication takes less time. Meant for times without changes. Publishes
    /// nothing and waits for no reader. Returns true if the standby lacks more changes.
    ///
    /// # Panics
    /// If the table is [poisoned](Self::is_poisoned).
    pub fn prepare(&mut self, steps: usize) -> bool {
        self.refuse_poisoned();
        if self.old.is_done() && self.new.is_done() {
            return false;
        }
        if self.sides.standby_is_free() {
            self.catch_up(Budget::Steps(steps));
            if self.old.is_done() {
                self.old.clear(MAX_PENDING);
            }
        }
        !(self.old.is_done() && self.new.is_done())
    }

    /// True if [`maintain`](Self::maintain) has work to do.
    fn is_unfinished(&self) -> bool {
        self.new.has_work() || self.with_accepted(|live, _| live.is_unfinished())
    }

    /// Makes the standby live; it must have everything. The previous live side lacks the
    /// changes and work in `new`.
    fn swap(&mut self) {
        let version = self.accepted;
        let named = self.sides.with_standby(|side| side.version = version);
        named.expect(FREE);
        self.sides.swap();
        self.state.published(self.new.changes());
        self.old.clear(MAX_PENDING);
        std::mem::swap(&mut self.old, &mut self.new);
        self.old.rewind();
        self.before = self.visible;
        self.visible = self.accepted;
        self.interval.begin();
    }

    /// Waits until the standby is free: until the readers that pinned it before the last
    /// swap have left. This is the only place where any thread waits.
    fn wait_for_standby(&mut self) {
        let mut attempt: u32 = 0;
        while !self.sides.standby_is_free() {
            sync::back_off(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    /// Calls `read` with the live side and the replica's state about accepted changes
    /// that are not visible yet.
    pub fn with_accepted<T>(&self, read: impl FnOnce(&R, &R::Accepted) -> T) -> T {
        let state = &self.state;
        self.sides.with_live(|side| read(&side.replica, state))
    }

    /// The newest version, which has everything accepted.
    #[must_use]
    pub fn accepted(&self) -> Version {
        self.accepted
    }

    /// The version that a reader pins now.
    #[must_use]
    pub fn visible(&self) -> Version {
        self.visible
    }

    /// Returns the oldest version that a reader may have pinned, now or later. No reader
    /// uses a rule that a transaction up to this version has removed. Waits for no
    /// reader; [`synchronize`](Self::synchronize) waits until this version is the newest
    /// one.
    pub fn oldest_in_use(&mut self) -> Version {
        match self.sides.standby_is_free() {
            true => self.visible,
            // Readers in the standby pinned before the last swap. The swap required that
            // no reader had an older version pinned.
            false => self.before,
        }
    }

    /// The number of changes that are accepted and not yet visible; at most
    /// [`MAX_PENDING`] between calls.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.new.changes().len()
    }

    /// The bytes that the writer holds, excluding the two sides
    /// ([`Guard::bytes`](super::Guard::bytes) returns the bytes of a side).
    #[must_use]
    pub fn log_bytes(&self) -> usize {
        self.old.bytes() + self.new.bytes() + self.state.bytes()
    }

    /// Returns a handle of the table, which creates readers.
    #[must_use]
    pub fn table(&self) -> Table<R> {
        Table {
            sides: Arc::clone(self.sides.sides()),
        }
    }

    /// True if a replica, such as an engine, panicked while the writer changed it.
    /// Readers then continue with the last visible version, which is intact. Calls that
    /// change or publish rules panic.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    fn refuse_poisoned(&self) {
        assert!(
            !self.poisoned,
            "the table is poisoned: a replica panicked during an earlier update"
        );
    }
}

const FREE: &str = "the standby stays free until the next swap";

impl<R: Replica> Drop for Writer<R> {
    fn drop(&mut self) {
        // If the thread is panicking, the panic may come from this writer.
        if !self.poisoned && !std::thread::panicking() {
            self.try_publish();
        }
    }
}

impl<R: Replica> fmt::Debug for Writer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("accepted", &self.accepted)
            .field("visible", &self.visible)
            .field("pending", &self.pending())
            .field("poisoned", &self.poisoned)
            .finish_non_exhaustive()
    }
}
