//! The writer: accepts transactions, and makes them visible in groups.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::classifier::{Classifier, Limits, NoProgress, Progress};
use crate::error::{BuildError, UpdateError};
use crate::policy::{PartId, PolicyClassifier};
use crate::rule::RuleId;
use crate::schema::Schema;
use crate::transaction::{Change, Transaction};

use super::hold::Hold;
use super::log::{Log, Operation, Overlay, Replica, dynamic};
use super::{Side, Table, Version, left_right, sync};

/// The most changes that are accepted and not yet visible when
/// [`Writer::apply`] returns; where there would be more, the writer waits for
/// the readers in its way. Room for what a writer does in 20 ms at 3 million
/// changes a second, several time slices of a reader that was interrupted in
/// mid-batch; 4 MB of IPv4 rules.
pub const MAX_PENDING: usize = 65_536;

/// With a hold, a call replays on the standby so many times the changes that it
/// brings, and so many more, at most. Two times is what must be, once on each
/// side; the third makes good the time in which a reader was in the standby.
/// The constant is 0.1 to 0.2 ms of `forest`'s, and lets calls with few changes
/// catch up with one that had many.
const CATCH_UP_TIMES: usize = 3;
const CATCH_UP_MORE: usize = 256;

/// The one that changes a table's rules.
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
    /// How often the sides may change places.
    hold: Hold,
    /// Rules there are after everything accepted.
    pub(super) rules: usize,
    /// Memory for replaying.
    memory: Transaction<'static>,
    /// Set while an engine changes the standby; still set afterwards, it
    /// panicked.
    poisoned: bool,
}

/// The one that changes a policy's rules beside readers.
pub type PolicyWriter = Writer<PolicyClassifier>;

impl Writer {
    /// Accepts all of a transaction's changes, in order, or refuses all.
    /// Accepted changes are visible when the version returned is; that is at
    /// once unless a reader that pinned an older version is still there or the
    /// [hold](Self::set_hold) is not over, and with a later call otherwise.
    /// Waits only when more than [`MAX_PENDING`] changes would stay invisible.
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
        for change in transaction.changes() {
            match change {
                Change::Insert(_) => self.rules += 1,
                Change::Remove(_) => self.rules -= 1,
                Change::Modify(_) => {}
            }
        }
        let changes = transaction.changes().iter();
        Ok(self.accept(changes.map(|change| (PartId::FIRST, change))))
    }

    /// Says whether [`apply`](Self::apply) would accept the transaction.
    ///
    /// # Errors
    /// The same as [`apply`](Self::apply).
    pub fn check(&self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        transaction.validate(
            &self.schemas[0],
            &self.limits,
            self.rules,
            || self.held_bytes(PartId::FIRST),
            |id| self.contains(id),
        )
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
            hold: Hold::default(),
            rules,
            memory: Transaction::new(),
            poisoned: false,
        }
    }

    /// Makes everything accepted visible to whoever pins once this returns;
    /// returns its version, the newest. Waits for readers that pinned before
    /// the last changes became visible, if they are in the way.
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
    /// whether everything accepted is visible now. Waits for nobody, and for no
    /// [hold](Self::set_hold).
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

    /// What a writer calls that has nothing else to do: as
    /// [`try_publish`](Self::try_publish) once the [hold](Self::set_hold) is
    /// over; before, it prepares what will be published then, a little with
    /// each call. Says whether everything accepted is visible now. Waits for
    /// nobody.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn publish_if_due(&mut self) -> bool {
        self.refuse_poisoned();
        if self.hold.is_over() {
            return self.try_publish();
        }
        if self.sides.standby_is_free() {
            self.catch_up(CATCH_UP_MORE);
        }
        self.is_published()
    }

    /// Lets accepted changes wait to be published together, until `hold` has
    /// passed since changes were last published; twice that where many have
    /// gathered. Zero, the default, publishes with each call where no reader is
    /// in the way.
    ///
    /// What is published is in no reader's caches: after each time, lookups are
    /// slower for a while. Where changes come all the time, a hold of some
    /// milliseconds makes that rare.
    ///
    /// Only calls publish. A writer that may have nothing to do for long calls
    /// [`publish_if_due`](Self::publish_if_due) now and then, or
    /// [`publish`](Self::publish) before. The first change after a quiet time
    /// is not held up: the hold is over by then. [`publish`](Self::publish),
    /// [`try_publish`](Self::try_publish), [`synchronize`](Self::synchronize)
    /// and [`rebuild`](Self::rebuild) mind no hold, nor does
    /// [`apply`](Self::apply) where more than [`MAX_PENDING`] changes would
    /// wait.
    ///
    /// The work is spread over the calls made meanwhile: until twice the hold
    /// has passed, one that brings *n* changes makes at most 3 *n* + 256 on the
    /// side that nobody reads, of its own and of what was left.
    pub fn set_hold(&mut self, hold: Duration) {
        self.hold.set(hold);
    }

    /// How long accepted changes wait to be published together.
    #[must_use]
    pub fn hold(&self) -> Duration {
        self.hold.get()
    }

    /// Takes the time from elsewhere, such as a test that makes it pass.
    #[doc(hidden)]
    pub fn set_clock(&mut self, clock: impl Fn() -> Instant + Send + Sync + 'static) {
        self.hold.set_clock(Box::new(clock));
    }

    /// Goes on with the standby after a call that brought so many changes, or
    /// steps of other work, and publishes if it is time. Says whether everything
    /// accepted is visible. Waits for nobody.
    pub(super) fn advance(&mut self, brought: usize) -> bool {
        if self.hold.get().is_zero() {
            return self.try_publish();
        }
        if !self.sides.standby_is_free() {
            return false;
        }
        let passed = self.hold.passed();
        let budget = match passed >= self.hold.get().saturating_mul(2) {
            true => usize::MAX,
            false => brought
                .saturating_mul(CATCH_UP_TIMES)
                .saturating_add(CATCH_UP_MORE),
        };
        let done = self.catch_up(budget);
        if done && passed >= self.hold.get() {
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
                let replica = &mut *side.classifier;
                log.replay(replica, schemas, memory, &mut budget, &mut NoProgress)
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
            let (replica, mut budget) = (&mut *side.classifier, usize::MAX);
            old.replay(replica, schemas, memory, &mut budget, progress)
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
        self.hold.begin();
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
        if !self.advance(self.new.len() - from) {
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
        self.with_live(|live| live.part(part).stats().bytes())
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

    /// Bytes of everything that the writer keeps beside the two sides.
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
