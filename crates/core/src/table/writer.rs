//! The writer: accepts transactions, and makes them visible in groups.

use std::fmt;
use std::sync::Arc;

use crate::classifier::{Classifier, Limits, Progress};
use crate::error::{BuildError, UpdateError};
use crate::policy::{PartId, PolicyClassifier};
use crate::rule::RuleId;
use crate::schema::Schema;
use crate::transaction::{Change, Transaction};

use super::log::{Log, Operation, Overlay, Replica, dynamic};
use super::{Side, Table, Version, left_right, sync};

/// The most changes that are accepted and not yet visible when
/// [`Writer::apply`] returns; where there would be more, the writer waits for
/// the readers in its way. Room for what a writer does in 20 ms at 3 million
/// changes a second, several time slices of a reader that was interrupted in
/// mid-batch; 4 MB of IPv4 rules.
pub const MAX_PENDING: usize = 65_536;

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
    /// once unless a reader that pinned an older version is still there, and
    /// with a later call otherwise. Waits only when more than [`MAX_PENDING`]
    /// changes would stay invisible.
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
    /// whether everything accepted is visible now. Waits for nobody.
    ///
    /// # Panics
    /// When the table is [poisoned](Self::is_poisoned).
    pub fn try_publish(&mut self) -> bool {
        self.refuse_poisoned();
        if self.visible == self.accepted && !self.new.has_operations() {
            return true;
        }
        if !self.sides.standby_is_free() {
            return false;
        }
        let (rules, version) = (self.rules, self.accepted);
        let (old, new) = (&self.old, &self.new);
        let (schemas, memory) = (&self.schemas, &mut self.memory);
        self.poisoned = true;
        let replayed = self.sides.with_standby(|side| {
            old.replay_all(&mut *side.classifier, schemas, memory);
            new.replay_all(&mut *side.classifier, schemas, memory);
            side.classifier.set_rules(rules);
            side.version = version;
        });
        self.poisoned = false;
        replayed.expect(FREE);
        self.swap();
        true
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
        self.perform(Operation::Rebuild, progress)?;
        Ok(self.visible)
    }

    /// Has both sides do something that is no change of rules, at the same
    /// place among the changes: first the standby, which then becomes live, and
    /// then the other.
    fn perform(
        &mut self,
        operation: Operation,
        progress: &mut dyn Progress,
    ) -> Result<(), BuildError> {
        self.publish();
        self.settle(progress)?;
        let parts = self.schemas.len();
        self.poisoned = true;
        let performed = self
            .sides
            .with_standby(|side| operation.perform(&mut *side.classifier, parts, progress));
        self.poisoned = false;
        performed.expect(FREE)?;
        // Now the side that was live owes the operation.
        self.new.push_operation(operation);
        self.swap();
        self.settle(progress)
    }

    /// Brings the standby up to the live side, so that nothing is logged.
    /// Nothing may be pending. When an operation is stopped there, that side
    /// goes without.
    fn settle(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.wait_for_standby();
        let (rules, version) = (self.rules, self.accepted);
        let (schemas, memory, old) = (&self.schemas, &mut self.memory, &self.old);
        self.poisoned = true;
        let replayed = self.sides.with_standby(|side| {
            let done = old.replay(&mut *side.classifier, schemas, memory, progress);
            side.classifier.set_rules(rules);
            side.version = version;
            done
        });
        self.poisoned = false;
        self.old.clear(MAX_PENDING);
        replayed.expect(FREE)
    }

    /// The standby has everything: makes it live. What is in `new` is what the
    /// side that was live lacks.
    fn swap(&mut self) {
        self.sides.swap();
        self.overlay.forget(&self.new);
        self.old.clear(MAX_PENDING);
        std::mem::swap(&mut self.old, &mut self.new);
        self.visible = self.accepted;
    }

    /// The only place where anybody waits: the writer, for readers that are in
    /// the standby since before it was the standby.
    fn wait_for_standby(&mut self) {
        let mut rounds = 0;
        while !self.sides.standby_is_free() {
            sync::pause(rounds);
            rounds += 1;
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
        if !self.try_publish() {
            let (new, overlay, parts) = (&self.new, &mut self.overlay, self.schemas.len());
            self.sides.with_live(|side| {
                overlay.record(new, from, |id| standing(&*side.classifier, parts, id));
            });
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
