//! The live table: one writer changes rules while any number of readers look
//! headers up, and no reader ever waits.
//!
//! # Semantics
//!
//! A [`Reader`] *pins* the table for one batch and sees the rules as they are
//! after some number of whole transactions, its [`Version`], until it unpins.
//! Pinning takes a constant number of steps, whatever the writer and other
//! readers do. What one reader sees never goes back.
//!
//! The [`Writer`] has each transaction accepted or refused at once
//! ([`Writer::apply`]), by all that was accepted before. Accepted changes
//! become visible together, in order: at once where no reader is in the way,
//! else with one of the next calls; [`Writer::publish`] returns when everything
//! accepted is visible to whoever pins from then on. Only the writer ever
//! waits, and only for batches that began before.
//!
//! A writer that changes rules all the time may publish changes together, every
//! few milliseconds ([`Writer::set_publish_interval`]): each publication leaves
//! readers with cold caches. The library reads no clock; with an interval, the
//! caller tells the writer the time.
//!
//! A reader that is leaked while it is pinned ([`Reader::pin`]) stays in the way
//! for good. [`Writer::try_apply`] and [`Writer::try_publish`] return where
//! [`Writer::apply`] and [`Writer::publish`] would wait.
//!
//! A [`Guard`] also answers what the rules are at its version: a winner's action
//! and cookie ([`Guard::action`], [`Guard::cookie`]), a rule by its id
//! ([`Guard::rule`]), all rules ([`Guard::rules`]).
//!
//! A table holds two copies of the engine, of the rules' actions and cookies,
//! and the changes that one of them lacks, at most [`MAX_PENDING`] and the last
//! transaction's.
//!
//! ```
//! use classyard::*;
//!
//! let schema = Schema::ipv4_5tuple();
//! let engine = EngineSpec::parse("forest")?;
//! let (mut writer, table) =
//!     Table::build(&RuleSet::new(&schema), &engine, &Limits::default(), &mut NoProgress)?;
//!
//! let any = [FieldMatch::Any; 5];
//! let rule = Rule::new(&schema, RuleId::new(7)?, Priority(1), ActionId(3), &any)?;
//! let mut keys = KeyVec::new(&schema);
//! keys.push(&[0xc000_0201, 0x0a01_0203, 40_000, 80, 6])?;
//!
//! let mut reader = table.reader(); // one for each thread
//! let before = reader.pin();
//! let accepted = writer.apply(Transaction::new().insert(rule.view()))?;
//! assert_eq!(before.classify_one(keys.key(0), &mut Scratch::new()), Winner::MISS);
//! drop(before);
//!
//! assert_eq!(writer.publish(), accepted);
//! let mut winners = [Winner::MISS];
//! let seen = reader.classify_batch(keys.as_slice(), &mut winners, &mut Scratch::new());
//! assert_eq!(seen, accepted);
//! assert_eq!(winners[0].rule(), Some(RuleId::new(7)?));
//!
//! // An action is read at the version of the lookup: under the same guard.
//! let guard = reader.pin();
//! let winner = guard.classify_one(keys.key(0), &mut Scratch::new());
//! assert_eq!(guard.action(winner), Some(ActionId(3)));
//! assert_eq!(guard.rule(RuleId::new(7)?), Some(rule));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Re-optimisation
//!
//! An engine that is fitted to its rules can be fitted [again](crate::relearn)
//! while readers look up and the writer makes transactions: on a thread of the
//! caller's, with a reader of its own. Nobody is kept waiting.
//!
//! ```
//! use std::sync::mpsc;
//! use classyard::*;
//!
//! let schema = Schema::ipv4_5tuple();
//! let engine = EngineSpec::parse("forest")?;
//! let (mut writer, table) =
//!     Table::build(&RuleSet::new(&schema), &engine, &Limits::default(), &mut NoProgress)?;
//! let mut reader = table.reader();
//! let (ask, asked) = mpsc::channel();
//! let (learned, plans) = mpsc::channel();
//! std::thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
//!     scope.spawn(move || {
//!         while asked.recv().is_ok() {
//!             let plan = reader.learn(&mut NoProgress).expect("nobody stops it");
//!             let _ = learned.send(plan.expect("a forest learns"));
//!         }
//!     });
//!     let mut learning = false;
//!     for number in 0..5000 {
//!         let mut matches = [FieldMatch::Any; 5];
//!         matches[1] = FieldMatch::Exact(u128::from(number) << 8);
//!         let rule = Rule::new(&schema, RuleId::new(number)?, Priority(1), ActionId(0), &matches)?;
//!         writer.apply(Transaction::new().insert(rule.view()))?;
//!         let look = number % 1000 == 999;
//!         if look && !learning && writer.drift().is_some_and(|drift| drift.is_due()) {
//!             ask.send(())?;
//!             learning = true;
//!         }
//!         if let Ok(plan) = plans.try_recv() {
//!             learning = !writer.adopt(&plan);
//!         }
//!     }
//!     // In quiet times:
//!     if learning && writer.adopt(&plans.recv()?) {
//!         while writer.maintain(64) {}
//!     }
//!     drop(ask);
//!     Ok(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Mechanism
//!
//! Left-right [RC15] with group commit; `left_right.rs` draws the protocol and
//! says why it is right, `docs/live-table.md` walks through it.
//!
//! ```text
//!            apply, publish                        pin
//!  ┌──────┐  ┌─────┐ ┌─────┐        ┌──────────┐  ◀──── Reader
//!  │Writer│─▶│ new │▶│ old │─┐      │   live   │  ◀──── Reader
//!  └──────┘  └─────┘ └─────┘ │      └──────────┘
//!             neither  the   │        ▲  swap
//!             side    live   │        ▼
//!             has     side   │      ┌──────────┐
//!             these   has    └─────▶│ standby  │  ◀──── readers that came before
//!                     these  replay └──────────┘        the last swap, if any
//! ```

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use crate::classifier::{Classifier, Limits, Progress, Scratch};
use crate::engine::EngineSpec;
use crate::error::BuildError;
use crate::key::KeySlice;
use crate::policy::{PartId, Policy, PolicyClassifier};
use crate::rule::Winner;
use crate::rule_store::RuleStore;
use crate::ruleset::RuleSet;

mod left_right;
mod log;
mod policy;
mod publish_interval;
mod read;
mod relearn;
mod sync;
mod writer;

#[cfg(test)]
mod tests;

pub use log::Replica;
pub use writer::{MAX_PENDING, PolicyWriter, Writer};

use left_right::Sides;

/// A state of the rules: version *n* is the initial rules plus the first *n*
/// transactions, in the order in which they were accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(u64);

impl Version {
    /// The number of transactions.
    #[must_use]
    pub fn transactions(self) -> u64 {
        self.0
    }

    fn next(self) -> Version {
        Version(self.0 + 1)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One of a table's sides.
struct Side<C: ?Sized> {
    version: Version,
    classifier: Box<C>,
    /// Actions and cookies of each part's rules, at the same version.
    stores: Box<[RuleStore]>,
}

impl<C: Replica + ?Sized> Side<C> {
    fn new<'r>(classifier: Box<C>, parts: impl Iterator<Item = &'r RuleSet>) -> Side<C> {
        Side {
            version: Version::default(),
            classifier,
            stores: parts.map(RuleStore::new).collect(),
        }
    }

    /// Bytes of a part: its engine, its rules' actions and cookies.
    fn part_bytes(&self, part: PartId) -> usize {
        self.classifier.part(part).stats().bytes() + self.stores[part.index()].bytes()
    }

    /// Checks the parts' bytes right after the build.
    fn check_bytes(&self, limits: &Limits) -> Result<(), BuildError> {
        if limits.bytes == usize::MAX {
            return Ok(());
        }
        let mut parts = (0..self.stores.len()).map(PartId::from_index);
        parts.try_for_each(|part| limits.check_bytes(self.part_bytes(part)))
    }
}

/// Makes readers. May be cloned freely and used on any thread. The table lives
/// as long as its writer, a reader or a clone of this.
///
/// A table of a [`Classifier`] unless said otherwise; [`PolicyTable`] holds the
/// parts of a policy.
pub struct Table<C: Replica + ?Sized = dyn Classifier> {
    sides: Arc<Sides<Side<C>>>,
}

/// A live table of a policy's parts, such as IPv4 and IPv6: readers see a
/// transaction in all parts or in none.
pub type PolicyTable = Table<PolicyClassifier>;

impl Table {
    /// Builds an engine over the rules twice, and the table around it.
    ///
    /// # Errors
    /// [`BuildError`] when the engine takes no updates, does not serve the
    /// schema, a limit is met or the observer asks to stop. The limit on bytes
    /// is for each of the two copies, actions and cookies
    /// included.
    pub fn build(
        rules: &RuleSet,
        spec: &EngineSpec,
        limits: &Limits,
        progress: &mut dyn Progress,
    ) -> Result<(Writer, Table), BuildError> {
        refuse_static(spec)?;
        let side = |progress: &mut dyn Progress| -> Result<_, BuildError> {
            let classifier = spec.build(rules, limits, progress)?;
            Ok(Side::new(classifier, std::iter::once(rules)))
        };
        let (left, right) = (side(progress)?, side(progress)?);
        let schemas = vec![Arc::clone(rules.schema())];
        share(left, right, schemas, rules.len(), limits)
    }

    /// A table around two classifiers that were built over these rules, for
    /// engines that are not in the registry. Actions and cookies come from
    /// `rules`. From now on the limits are the table's to keep.
    ///
    /// # Errors
    /// [`BuildError::Static`] when one of them takes no updates,
    /// [`BuildError::TooManyBytes`] when one of them and the actions and cookies
    /// take more bytes together than the limit.
    ///
    /// # Panics
    /// When they differ from `rules` in the schema, or in which ids there are.
    pub fn from_pair(
        left: Box<dyn Classifier>,
        right: Box<dyn Classifier>,
        rules: &RuleSet,
        limits: &Limits,
    ) -> Result<(Writer, Table), BuildError> {
        for side in [&left, &right] {
            let Some(dynamic) = side.dynamic() else {
                return Err(BuildError::takes_no_updates(side.engine()));
            };
            assert_eq!(side.schema(), rules.schema(), "two sides, one schema");
            let same = side.stats().rules == rules.len()
                && rules.iter().all(|rule| dynamic.contains(rule.id()));
            assert!(same, "two sides with the same rules");
        }
        let side = |classifier| Side::new(classifier, std::iter::once(rules));
        let schemas = vec![Arc::clone(rules.schema())];
        share(side(left), side(right), schemas, rules.len(), limits)
    }
}

impl PolicyTable {
    /// Builds an engine for each part, twice, and the table around it.
    ///
    /// # Errors
    /// [`BuildError`] when the engine takes no updates, does not serve the
    /// schema, a limit is met or the observer asks to stop. The limit on bytes
    /// is for each part in each of the two copies, actions and cookies
    /// included.
    pub fn build_policy(
        policy: &Policy,
        spec: &EngineSpec,
        limits: &Limits,
        progress: &mut dyn Progress,
    ) -> Result<(PolicyWriter, PolicyTable), BuildError> {
        refuse_static(spec)?;
        let side = |progress: &mut dyn Progress| -> Result<_, BuildError> {
            let classifier = policy.build(spec, limits, progress)?;
            Ok(Side::new(Box::new(classifier), policy.parts().iter()))
        };
        let (left, right) = (side(progress)?, side(progress)?);
        let schemas = policy.schemas().map(Arc::clone).collect();
        share(left, right, schemas, policy.len(), limits)
    }
}

fn refuse_static(spec: &EngineSpec) -> Result<(), BuildError> {
    if spec.is_dynamic() {
        return Ok(());
    }
    Err(BuildError::takes_no_updates(&spec.to_string()))
}

fn share<C: Replica + ?Sized>(
    left: Side<C>,
    right: Side<C>,
    schemas: Vec<Arc<crate::schema::Schema>>,
    rules: usize,
    limits: &Limits,
) -> Result<(Writer<C>, Table<C>), BuildError> {
    left.check_bytes(limits)?;
    right.check_bytes(limits)?;
    let (writer, sides) = Sides::share(left, right);
    let writer = Writer::new(writer, schemas, rules, limits);
    Ok((writer, Table { sides }))
}

impl<C: Replica + ?Sized> Table<C> {
    /// A reader, for one thread. Takes a slot that a dropped reader left, or
    /// memory for one more (136 bytes). Making and dropping readers takes a lock
    /// for a constant number of steps, amortised, however many readers there
    /// are; pinning never takes it.
    #[must_use]
    pub fn reader(&self) -> Reader<C> {
        Reader {
            side: left_right::Reader::new(&self.sides),
        }
    }
}

impl<C: Replica + ?Sized> Clone for Table<C> {
    fn clone(&self) -> Table<C> {
        Table {
            sides: Arc::clone(&self.sides),
        }
    }
}

impl<C: Replica + ?Sized> fmt::Debug for Table<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = f.debug_struct("Table");
        table.field("slots", &self.sides.slot_count());
        table.finish_non_exhaustive()
    }
}

/// Looks headers up in a table, on one thread at a time. May move to another
/// thread; each thread should have one of its own.
pub struct Reader<C: Replica + ?Sized = dyn Classifier> {
    side: left_right::Reader<Side<C>>,
}

impl<C: Replica + ?Sized> Reader<C> {
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
    /// [`Writer::apply`] waits for ever when more than [`MAX_PENDING`] changes
    /// would be pending. [`Writer::try_apply`] says so instead, and
    /// [`Writer::try_publish`] returns `false`.
    #[inline]
    pub fn pin(&mut self) -> Guard<'_, C> {
        Guard {
            side: self.side.pin(),
            table: PhantomData,
        }
    }
}

impl Reader {
    /// Improves `winners[i]` by the best rule that matches `keys[i]`, all at
    /// one version, which is returned.
    ///
    /// # Panics
    /// When there are not as many winners as keys, or the keys are of another
    /// width than the schema's.
    pub fn classify_batch(
        &mut self,
        keys: KeySlice<'_>,
        winners: &mut [Winner],
        scratch: &mut Scratch,
    ) -> Version {
        let guard = self.pin();
        guard.classify_batch(keys, winners, scratch);
        guard.version()
    }
}

impl<C: Replica + ?Sized> fmt::Debug for Reader<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// A table as it was when it was pinned: a classifier, its rules and its
/// version.
pub struct Guard<'a, C: Replica + ?Sized = dyn Classifier> {
    side: left_right::Guard<'a, Side<C>>,
    table: PhantomData<&'a C>,
}

impl<C: Replica + ?Sized> Guard<'_, C> {
    /// Which transactions have been made here.
    #[must_use]
    pub fn version(&self) -> Version {
        self.side.version
    }
}

impl<C: Replica + ?Sized> Deref for Guard<'_, C> {
    type Target = C;

    #[inline]
    fn deref(&self) -> &C {
        &self.side.classifier
    }
}

impl<C: Replica + ?Sized> fmt::Debug for Guard<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut guard = f.debug_struct("Guard");
        guard.field("version", &self.version());
        guard.finish_non_exhaustive()
    }
}
