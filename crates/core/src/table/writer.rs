//! The writer: accepts transactions, and makes them visible in groups.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::TryApplyError;

use super::handles::{Side, Table, Version};
use super::log::Log;
use super::publish_interval::PublishInterval;
use super::replica::{Accepted, ChangeLog, Replica};
use super::{left_right, sync};
// The replica of a writer unless said otherwise; nothing here knows what it is.
use super::EngineReplica;

/// The most changes that are accepted and not yet visible when
/// [`Writer::apply`] returns. Where there would be more, the writer waits for
/// the readers in its way, and [`Writer::try_apply`] does nothing. Room for what
/// a writer does in 20 ms at 3 million changes a second, several time slices of
/// a reader that was interrupted in mid-batch; 5 MB of IPv4 rules.
pub const MAX_PENDING: usize = 65_536;

/// With a publish interval, a call that brings *n* changes replays at most
/// `CATCH_UP_TIMES` × *n* + `CATCH_UP_MORE` changes on the standby. Two times
/// *n* is the work itself, once on each side; the third makes up for the time in
/// which a reader was in the standby. The constant is 0.1 to 0.2 ms of
/// `forest`'s work, and lets calls with few changes catch up with one that had
/// many.
const CATCH_UP_TIMES: usize = 3;
const CATCH_UP_MORE: usize = 256;

/// Makes a table's transactions. A table has one writer.
///
/// Dropping it makes accepted changes visible if no reader is in the way; call
/// [`publish`](Self::publish) before, to be sure. Readers go on with the last
/// version that was visible.
pub struct Writer<R: Replica = EngineReplica> {
    sides: left_right::Writer<Side<R>>,
    /// What the live side has and the standby lacks.
    old: Log<R>,
    /// What was accepted and neither side has.
    new: Log<R>,
    /// What the replica remembers of everything accepted.
    state: R::Accepted,
    /// The newest version, all that was accepted.
    accepted: Version,
    /// The live side's version.
    visible: Version,
    /// The version that was visible before; no reader is in an older one.
    before: Version,
    /// How often the sides may swap.
    interval: PublishInterval,
    /// Set while a replica changes; still set afterwards, it panicked.
    poisoned: bool,
}

impl<R: Replica> Writer<R> {
    pub(super) fn new(sides: left_right::Writer<Side<R>>, state: R::Accepted) -> Writer<R> {
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

    /// Accepts all of a transaction's changes, in order, or refuses all.
    /// Accepted changes are visible when the version returned is; that is at
    /// once unless a reader that pinned an older version is still there or the
    /// [publish interval](Self::set_publish_interval) is not over, and with a
    /// later call otherwise.
    ///
    /// Waits only when more than [`MAX_PENDING`] changes would stay invisible,
    /// for the readers that are in the way. If such a reader was leaked together
    /// with a guard ([`Reader::pin`](super::Reader::pin)), it waits for ever.
    /// [`try_apply`](Self::try_apply) never waits. In a policy, a change counts
    /// once for each part where it does something.
    ///
    /// # Errors
    /// What cannot be made, and why; nothing is changed then. For rules it is an
    /// [`UpdateError`](crate::UpdateError), which names the change. When a part
    /// of a policy has no room left in bytes, that is the first change that
    /// gives this part a rule.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn apply(&mut self, transaction: R::Transaction<'_>) -> Result<Version, R::Refusal> {
        self.refuse_poisoned();
        self.count(transaction)?;
        Ok(self.accept(transaction))
    }

    /// As [`apply`](Self::apply), but where that would wait this changes nothing
    /// and says so. Waits for no reader.
    ///
    /// # Errors
    /// [`TryApplyError::Refused`] when [`apply`](Self::apply) would refuse the
    /// transaction, and [`TryApplyError::WouldWait`] when it would wait for a
    /// reader; nothing is changed then.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn try_apply(
        &mut self,
        transaction: R::Transaction<'_>,
    ) -> Result<Version, TryApplyError<R::Refusal>> {
        self.refuse_poisoned();
        let counted = self.count(transaction);
        let changes = counted.map_err(TryApplyError::Refused)?;
        // A standby that is free stays so until this writer swaps.
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

    /// Says whether [`apply`](Self::apply) would accept the transaction.
    ///
    /// # Errors
    /// The same as [`apply`](Self::apply).
    pub fn check(&mut self, transaction: R::Transaction<'_>) -> Result<(), R::Refusal> {
        self.count(transaction).map(drop)
    }

    /// Checks a transaction and counts its changes.
    fn count(&mut self, transaction: R::Transaction<'_>) -> Result<usize, R::Refusal> {
        let (sides, state) = (&self.sides, &mut self.state);
        sides.with_live(|side| state.check(&side.replica, transaction))
    }

    /// Accepts a transaction that was checked.
    fn accept(&mut self, transaction: R::Transaction<'_>) -> Version {
        let from = self.pending();
        self.poisoned = true;
        self.state.accept(transaction, self.new.changes_mut());
        self.poisoned = false;
        self.accepted = self.accepted.next();
        if !self.proceed(self.pending() - from) {
            self.state.deferred(self.new.changes(), from);
            if self.pending() > MAX_PENDING {
                self.publish();
            }
        }
        self.accepted
    }

    /// Makes everything accepted visible to every reader that pins once this
    /// returns; returns its version, the newest. Waits for readers that pinned
    /// before the last changes became visible, if they are in the way, and for
    /// ever if one of them was leaked together with a guard;
    /// [`try_publish`](Self::try_publish) never waits.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn publish(&mut self) -> Version {
        while !self.try_publish() {
            self.wait_for_standby();
        }
        self.visible
    }

    /// Makes everything accepted visible, unless a reader is in the way; says
    /// whether everything accepted is visible now. Waits for no reader, and
    /// ignores the [publish interval](Self::set_publish_interval).
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn try_publish(&mut self) -> bool {
        self.refuse_poisoned();
        if self.is_published() {
            return true;
        }
        if !self.sides.standby_is_free() {
            return false;
        }
        self.catch_up(usize::MAX);
        self.swap();
        true
    }

    /// For a writer that has nothing else to do. Once the
    /// [publish interval](Self::set_publish_interval) is over, the same as
    /// [`try_publish`](Self::try_publish); before, prepares up to 256 of the
    /// changes that will be published then. Says whether everything accepted is
    /// visible now. Waits for no reader.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn publish_if_due(&mut self) -> bool {
        self.refuse_poisoned();
        if self.interval.is_over() {
            return self.try_publish();
        }
        if self.sides.standby_is_free() {
            self.catch_up(CATCH_UP_MORE);
        }
        self.is_published()
    }

    /// Sets the publish interval, the least time from one publication to the
    /// next. Accepted changes wait to be published together until it is over, or
    /// until twice that where many have gathered. Zero, the default, publishes
    /// with each call where no reader is in the way. The interval begins now,
    /// and again with each publication.
    ///
    /// A reader's caches hold nothing of what is newly published: after each
    /// publication, lookups are slower for a while. Where changes come all the
    /// time, an interval of some milliseconds makes that rare.
    ///
    /// The library reads no clock. With an interval, tell the writer the time
    /// with [`set_now`](Self::set_now) before each call; an interval during
    /// which it is not told is never over.
    ///
    /// Only calls publish. A writer that may have nothing to do for long calls
    /// [`publish_if_due`](Self::publish_if_due) now and then, or
    /// [`publish`](Self::publish) before. The first change after a quiet time
    /// does not wait, since the interval is over by then.
    /// [`publish`](Self::publish), [`try_publish`](Self::try_publish),
    /// [`synchronize`](Self::synchronize) and
    /// [`on_both_sides`](Self::on_both_sides) (`rebuild`) ignore the interval. So does [`apply`](Self::apply) where more than
    /// [`MAX_PENDING`] changes would wait.
    ///
    /// The work is spread over the calls made meanwhile: until twice the
    /// interval has passed, a call that brings *n* changes makes at most
    /// 3 *n* + 256 changes on the side that no reader uses, its own and older
    /// ones.
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

    /// The publish interval; zero for none.
    #[must_use]
    pub fn publish_interval(&self) -> Duration {
        self.interval.get()
    }

    /// Tells the writer the time, for the
    /// [publish interval](Self::set_publish_interval): how long ago a moment is
    /// that the caller chose once for all calls. Time that is told to go back
    /// stands still. All later calls use it; where there is no interval, it is
    /// not needed.
    pub fn set_now(&mut self, now: Duration) {
        self.interval.set_now(now);
    }

    /// Replays on the standby after a call that brought that many changes, or
    /// steps of other work, and publishes if it is time. Says whether everything
    /// accepted is visible. Waits for no reader.
    fn proceed(&mut self, brought: usize) -> bool {
        if self.interval.get().is_zero() {
            return self.try_publish();
        }
        if !self.sides.standby_is_free() {
            return false;
        }
        let passed = self.interval.passed();
        let budget = match passed >= self.interval.get().saturating_mul(2) {
            true => usize::MAX,
            false => brought
                .saturating_mul(CATCH_UP_TIMES)
                .saturating_add(CATCH_UP_MORE),
        };
        let done = self.catch_up(budget);
        if done && self.interval.is_over() {
            self.swap();
            return true;
        }
        false
    }

    /// Whether everything accepted is visible and begun.
    fn is_published(&self) -> bool {
        self.visible == self.accepted && !self.new.has_work()
    }

    /// Replays on the standby, which must be free, as much of what it lacks as
    /// the budget allows; says whether it has everything then.
    fn catch_up(&mut self, mut budget: usize) -> bool {
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

    /// Publishes, then waits until no reader is in an older version: what was
    /// removed is no longer in use anywhere.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn synchronize(&mut self) -> Version {
        self.publish();
        self.wait_for_standby();
        self.visible
    }

    /// Publishes, then has both sides do the same work, one after the other,
    /// without a new version: it must not change any answer. Readers go on
    /// meanwhile. Waits for readers of older versions. [`operate`](Self::operate)
    /// is for work that need not be waited for.
    ///
    /// # Errors
    /// The first error of `work`. Where that is the second side's, the first has
    /// done the work and is live.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
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

    /// Waits for the standby, brings it up to the live side, so that nothing is
    /// logged, and works on it. Nothing may be pending.
    fn work_on_standby<E>(
        &mut self,
        work: &mut impl FnMut(&mut R) -> Result<(), E>,
    ) -> Result<(), E> {
        self.wait_for_standby();
        self.catch_up(usize::MAX);
        self.old.clear(MAX_PENDING);
        self.poisoned = true;
        let done = self.sides.with_standby(|side| work(&mut side.replica));
        self.poisoned = false;
        done.expect(FREE)
    }

    /// Has both sides do an operation after everything accepted, at the same
    /// place among the changes. Makes no version and waits for no reader.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn operate(&mut self, operation: R::Operation) {
        self.refuse_poisoned();
        self.new.push_operation(operation);
        self.proceed(1);
    }

    /// For times without changes: makes up to `steps` steps of work that an
    /// operation has begun, such as adopting plans, each about the work of a
    /// change, on the side that no reader uses. That side then becomes the live
    /// one, at the end of the [publish interval](Self::set_publish_interval) if
    /// there is one. Does nothing while a reader is in the way. Says whether
    /// there is more to do; a thread that holds a guard must not wait for that.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
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

    /// Whether there is anything to do for [`maintain`](Self::maintain).
    fn is_unfinished(&self) -> bool {
        self.new.has_work() || self.with_accepted(|live, _| live.is_unfinished())
    }

    /// The standby has everything: makes it live. What is in `new` is what the
    /// side that was live lacks.
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

    /// The only place where anybody waits: the writer, for readers that have
    /// been in the standby since before it was the standby.
    fn wait_for_standby(&mut self) {
        let mut attempt: u32 = 0;
        while !self.sides.standby_is_free() {
            sync::back_off(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    /// Reads what was accepted: the live side, and what the replica remembers of
    /// everything that is not visible yet.
    pub fn with_accepted<T>(&self, read: impl FnOnce(&R, &R::Accepted) -> T) -> T {
        let state = &self.state;
        self.sides.with_live(|side| read(&side.replica, state))
    }

    /// The newest version, with everything accepted.
    #[must_use]
    pub fn accepted(&self) -> Version {
        self.accepted
    }

    /// The version that readers who pin now see.
    #[must_use]
    pub fn visible(&self) -> Version {
        self.visible
    }

    /// A version of which no reader is in an older one, nor will be: what was removed
    /// by its transactions is no longer in use anywhere. Waits for no reader;
    /// [`synchronize`](Self::synchronize) does, until this is the newest version.
    pub fn oldest_in_use(&mut self) -> Version {
        match self.sides.standby_is_free() {
            true => self.visible,
            // Readers that came before the last swap, which found none older.
            false => self.before,
        }
    }

    /// Changes that are accepted and not visible yet; at most [`MAX_PENDING`]
    /// between calls.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.new.changes().len()
    }

    /// Bytes of everything that the writer keeps beside the two sides
    /// ([`Guard::bytes`](super::Guard::bytes) has those).
    #[must_use]
    pub fn log_bytes(&self) -> usize {
        self.old.bytes() + self.new.bytes() + self.state.bytes()
    }

    /// Where readers come from.
    #[must_use]
    pub fn table(&self) -> Table<R> {
        Table {
            sides: Arc::clone(self.sides.sides()),
        }
    }

    /// Whether a replica, such as one of an engine, panicked while it was changed.
    /// Readers then go on with the last visible version, which is unharmed; the writer can do nothing
    /// more, and its calls panic.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    fn refuse_poisoned(&self) {
        assert!(
            !self.poisoned,
            "the table is poisoned: what it holds panicked during an earlier update"
        );
    }
}

const FREE: &str = "the standby stays free until the next swap";

impl<R: Replica> Drop for Writer<R> {
    fn drop(&mut self) {
        // A panic that is under way may come from anywhere in here.
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
