//! The writer: accepts transactions, and makes them visible in groups.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::classifier::{Classifier, Limits, NoProgress, Progress};
use crate::error::{BuildError, TryApplyError, UpdateError};
use crate::policy::{PartId, PolicyClassifier};
use crate::rule::RuleId;
use crate::schema::Schema;
use crate::transaction::{Change, Transaction};

use super::log::{Log, Operation, Overlay, Replica, dynamic};
use super::publish_interval::PublishInterval;
use super::{Side, Table, Version, left_right, sync};

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

/// Changes a table's rules. A table has one writer.
///
/// Dropping it makes accepted changes visible if no reader is in the way; call
/// [`publish`](Self::publish) before, to be sure. Readers go on with the last
/// version that was visible.
pub struct Writer<C: Replica + ?Sized = dyn Classifier> {
    pub(super) sides: left_right::Writer<Side<C>>,
    /// The parts' schemas.
    pub(super) schemas: Vec<Arc<Schema>>,
    pub(super) limits: Limits,
    /// What the live side has and the standby lacks.
    old: Log,
    /// What was accepted and neither side has.
    pub(super) new: Log,
    /// Where rules stand after `new`, unless as in the live side.
    overlay: Overlay,
    /// The newest version, all that was accepted.
    accepted: Version,
    /// The live side's version.
    visible: Version,
    /// How often the sides may swap.
    interval: PublishInterval,
    /// Rules there are after everything accepted.
    pub(super) rules: usize,
    /// Memory for replaying.
    memory: Transaction<'static>,
    /// Set while an engine changes the standby; still set afterwards, it
    /// panicked.
    poisoned: bool,
}

/// Changes a policy's rules beside readers.
pub type PolicyWriter = Writer<PolicyClassifier>;

impl Writer {
    /// Accepts all of a transaction's changes, in order, or refuses all.
    /// Accepted changes are visible when the version returned is; that is at
    /// once unless a reader that pinned an older version is still there or the
    /// [publish interval](Self::set_publish_interval) is not over, and with a
    /// later call otherwise.
    ///
    /// Waits only when more than [`MAX_PENDING`] changes would stay invisible,
    /// for the readers that are in the way. If such a reader was leaked together
    /// with a guard ([`Reader::pin`](super::Reader::pin)), it waits for ever.
    /// [`try_apply`](Self::try_apply) never waits.
    ///
    /// # Errors
    /// [`UpdateError`] names the change that cannot be made and why; nothing is
    /// changed then.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn apply(&mut self, transaction: &Transaction<'_>) -> Result<Version, UpdateError> {
        self.refuse_poisoned();
        self.check(transaction)?;
        Ok(self.accept_checked(transaction))
    }

    /// As [`apply`](Self::apply), but where that would wait this changes nothing
    /// and says so. Waits for nobody.
    ///
    /// # Errors
    /// [`TryApplyError::Refused`] when [`apply`](Self::apply) would refuse the
    /// transaction, and [`TryApplyError::WouldWait`] when it would wait for a
    /// reader; nothing is changed then.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn try_apply(&mut self, transaction: &Transaction<'_>) -> Result<Version, TryApplyError> {
        self.refuse_poisoned();
        self.check(transaction)?;
        self.check_room(transaction.changes().len())?;
        Ok(self.accept_checked(transaction))
    }

    /// Accepts a transaction that was checked.
    fn accept_checked(&mut self, transaction: &Transaction<'_>) -> Version {
        for change in transaction.changes() {
            match change {
                Change::Insert(_) => self.rules += 1,
                Change::Remove(_) => self.rules -= 1,
                Change::Modify(_) => {}
            }
        }
        let changes = transaction.changes().iter();
        self.accept(changes.map(|change| (PartId::FIRST, change)))
    }

    /// Says whether [`apply`](Self::apply) would accept the transaction.
    ///
    /// # Errors
    /// The same as [`apply`](Self::apply).
    pub fn check(&self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        let (engine, capacity) = self.with_live(|live| {
            let live = dynamic(live, PartId::FIRST);
            (live.engine(), live.capacity())
        });
        let checked = transaction.validate(
            &self.schemas[0],
            &self.limits.within(capacity),
            self.rules,
            || self.held_bytes(PartId::FIRST),
            |id| self.contains(id),
        );
        checked.map_err(|error| error.within(&self.limits, engine))
    }
}

impl<C: Replica + ?Sized> Writer<C> {
    pub(super) fn new(
        sides: left_right::Writer<Side<C>>,
        schemas: Vec<Arc<Schema>>,
        rules: usize,
        limits: &Limits,
    ) -> Writer<C> {
        Writer {
            sides,
            schemas,
            limits: *limits,
            old: Log::default(),
            new: Log::default(),
            overlay: Overlay::default(),
            accepted: Version::default(),
            visible: Version::default(),
            interval: PublishInterval::default(),
            rules,
            memory: Transaction::new(),
            poisoned: false,
        }
    }

    /// Makes everything accepted visible to whoever pins once this returns;
    /// returns its version, the newest. Waits for readers that pinned before
    /// the last changes became visible, if they are in the way, and for ever if
    /// one of them was leaked together with a guard;
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
    /// whether everything accepted is visible now. Waits for nobody, and ignores
    /// the [publish interval](Self::set_publish_interval).
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
    /// visible now. Waits for nobody.
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
    /// [`synchronize`](Self::synchronize) and [`rebuild`](Self::rebuild) ignore
    /// the interval. So does [`apply`](Self::apply) where more than
    /// [`MAX_PENDING`] changes would wait.
    ///
    /// The work is spread over the calls made meanwhile: until twice the
    /// interval has passed, a call that brings *n* changes makes at most
    /// 3 *n* + 256 changes on the side that nobody reads, its own and older
    /// ones.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use classyard::*;
    ///
    /// # let schema = Schema::ipv4_5tuple();
    /// # let engine = EngineSpec::parse("tuplemerge")?;
    /// # let (rules, limits) = (RuleSet::new(&schema), Limits::default());
    /// let (mut writer, _table) = Table::build(&rules, &engine, &limits, &mut NoProgress)?;
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
    /// accepted is visible. Waits for nobody.
    pub(super) fn proceed(&mut self, brought: usize) -> bool {
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
        self.visible == self.accepted && !self.new.has_operations()
    }

    /// Replays on the standby, which must be free, as much of what it lacks as
    /// the budget allows; says whether it has everything then.
    fn catch_up(&mut self, mut budget: usize) -> bool {
        if self.old.is_done() && self.new.is_done() {
            return true;
        }
        let (schemas, memory) = (&self.schemas, &mut self.memory);
        let logs = [&mut self.old, &mut self.new];
        self.poisoned = true;
        let replayed = self.sides.with_standby(|side| {
            for log in logs {
                log.replay(side, schemas, memory, &mut budget, &mut NoProgress)
                    .expect("only an observer stops an operation");
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

    /// Publishes, then reorganises both sides for faster lookups, one after the
    /// other, without changing any answer or the version. Readers go on
    /// meanwhile, and gain as soon as the first side is done. Waits for readers
    /// of older versions.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer asks to stop. Stopped in the
    /// second half, one side is reorganised and the other is not, which costs
    /// speed and nothing else.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<Version, BuildError> {
        self.publish();
        self.settle(progress)?;
        self.poisoned = true;
        let rebuilt = self
            .sides
            .with_standby(|side| side.classifier.rebuild(progress));
        self.poisoned = false;
        rebuilt.expect(FREE)?;
        // Now the side that was live owes it.
        self.new.push_operation(Operation::Rebuild);
        self.swap();
        self.settle(progress)?;
        Ok(self.visible)
    }

    /// Brings the standby up to the live side, so that nothing is logged.
    /// Nothing may be pending. When an operation is stopped there, that side
    /// goes without.
    fn settle(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.wait_for_standby();
        let (schemas, memory, old) = (&self.schemas, &mut self.memory, &mut self.old);
        self.poisoned = true;
        let replayed = self.sides.with_standby(|side| {
            let mut budget = usize::MAX;
            old.replay(side, schemas, memory, &mut budget, progress)
        });
        self.poisoned = false;
        self.old.clear(MAX_PENDING);
        replayed.expect(FREE)
    }

    /// The standby has everything: makes it live. What is in `new` is what the
    /// side that was live lacks.
    fn swap(&mut self) {
        let (rules, version) = (self.rules, self.accepted);
        let named = self.sides.with_standby(|side| {
            side.classifier.set_rules(rules);
            side.version = version;
        });
        named.expect(FREE);
        self.sides.swap();
        self.overlay.forget(&self.new);
        self.old.clear(MAX_PENDING);
        std::mem::swap(&mut self.old, &mut self.new);
        self.old.rewind();
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

    /// Whether that many changes more can be accepted without waiting.
    ///
    /// # Errors
    /// [`TryApplyError::WouldWait`] when they cannot.
    pub(super) fn check_room(&mut self, changes: usize) -> Result<(), TryApplyError> {
        let pending = self.new.len();
        // A standby that is free stays so until this writer swaps.
        if pending.saturating_add(changes) <= MAX_PENDING || self.sides.standby_is_free() {
            return Ok(());
        }
        Err(TryApplyError::WouldWait {
            pending,
            changes,
            limit: MAX_PENDING,
        })
    }

    /// Takes the changes of one transaction in, which were checked.
    pub(super) fn accept<'c>(
        &mut self,
        changes: impl Iterator<Item = (PartId, &'c Change<'c>)>,
    ) -> Version {
        let from = self.new.len();
        for (part, change) in changes {
            self.new.push(part, change);
        }
        self.accepted = self.accepted.next();
        if !self.proceed(self.new.len() - from) {
            self.overlay.record(&self.new, from);
            if self.new.len() > MAX_PENDING {
                self.publish();
            }
        }
        self.accepted
    }

    /// Whether a rule has that id, by everything accepted.
    #[must_use]
    pub fn contains(&self, id: RuleId) -> bool {
        self.standing(id) != 0
    }

    /// The parts where a rule stands, by everything accepted: a bit for each.
    pub(super) fn standing(&self, id: RuleId) -> u8 {
        let pending = self.overlay.get(id);
        pending.unwrap_or_else(|| {
            self.sides
                .with_live(|side| standing(&*side.classifier, self.schemas.len(), id))
        })
    }

    /// Reads the live side.
    pub(super) fn with_live<R>(&self, read: impl FnOnce(&C) -> R) -> R {
        self.sides.with_live(|side| read(&side.classifier))
    }

    /// Bytes that a part of the live side holds; what is pending is not in yet.
    pub(super) fn held_bytes(&self, part: PartId) -> usize {
        self.sides.with_live(|side| side.part_bytes(part))
    }

    /// The number of rules, by everything accepted.
    #[must_use]
    pub fn rules(&self) -> usize {
        self.rules
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

    /// Changes that are accepted and not visible yet; at most [`MAX_PENDING`]
    /// between calls.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.new.len()
    }

    /// Bytes of everything that the writer keeps beside the two sides
    /// ([`Guard::bytes`](super::Guard::bytes) has those).
    #[must_use]
    pub fn log_bytes(&self) -> usize {
        self.old.bytes() + self.new.bytes() + self.overlay.bytes()
    }

    /// Where readers come from.
    #[must_use]
    pub fn table(&self) -> Table<C> {
        Table {
            sides: Arc::clone(self.sides.sides()),
        }
    }

    /// Whether an engine panicked while it was changed. Readers then go on with
    /// the last visible version, which is unharmed; the writer can do nothing
    /// more, and its calls panic.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    pub(super) fn refuse_poisoned(&self) {
        assert!(
            !self.poisoned,
            "the table is poisoned: its engine panicked during an earlier update"
        );
    }
}

const FREE: &str = "the standby stays free until the next swap";

/// The parts of a replica where a rule stands: a bit for each.
fn standing<C: Replica + ?Sized>(replica: &C, parts: usize, id: RuleId) -> u8 {
    (0..parts).fold(0, |bits, index| {
        let part = dynamic(replica, PartId::from_index(index));
        bits | (u8::from(part.contains(id)) << index)
    })
}

impl<C: Replica + ?Sized> Drop for Writer<C> {
    fn drop(&mut self) {
        // A panic that is under way may come from anywhere in here.
        if !self.poisoned && !std::thread::panicking() {
            self.try_publish();
        }
    }
}

impl<C: Replica + ?Sized> fmt::Debug for Writer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("accepted", &self.accepted)
            .field("visible", &self.visible)
            .field("pending", &self.pending())
            .field("rules", &self.rules)
            .field("poisoned", &self.poisoned)
            .finish_non_exhaustive()
    }
}
