//! Tests of the table's limits, panics, waiting, and dropping.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use super::*;
use crate::contract::classifier::{
    Classifier, DynamicClassifier, Limits, LookupTrace, NoProgress, Progress, Scratch, Stats,
};
use crate::contract::reoptimise::{Drift, LookupPlan, Reoptimise, Snapshot};
use crate::contract::spec::EngineSpec;
use crate::model::error::{BuildError, TryApplyError, UpdateError};
use crate::model::key::KeySlice;
use crate::model::rule::{ActionId, FieldMatch, Priority, Rule, RuleId, Winner};
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::model::transaction::Transaction;
use crate::policy::{PartId, Policy, PolicyTransaction};

mod layers;
mod leaks;
mod log;
mod publish_interval;

fn spec() -> EngineSpec {
    EngineSpec::parse("tuplemerge").unwrap()
}

fn rule_of(schema: &Arc<Schema>, number: u32, priority: u32) -> Rule {
    let any = vec![FieldMatch::Any; schema.fields().len()];
    let id = RuleId::new(number).unwrap();
    Rule::new(schema, id, Priority(priority), ActionId(0), &any).unwrap()
}

fn rule(number: u32) -> Rule {
    rule_of(&Schema::ipv4_5tuple(), number, number)
}

fn rules(numbers: std::ops::Range<u32>) -> RuleSet {
    let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
    rules.extend(numbers.map(rule));
    rules
}

fn build(numbers: std::ops::Range<u32>, limits: &Limits) -> (Writer, Table) {
    Table::build(&rules(numbers), &spec(), limits, &mut NoProgress).unwrap()
}

fn insert(writer: &mut Writer, number: u32) -> Result<Version, UpdateError> {
    writer.apply(Transaction::new().insert(rule(number).view()))
}

/// Returns the best rule, which every key of these tests matches.
fn best<R: RuleReplica>(reader: &mut Reader<R>, part: PartId) -> Option<u32> {
    let guard = reader.pin();
    let part = RuleReplica::part(&*guard, part);
    let key = vec![0; part.schema().key_words()];
    let winner = part.classify_one(&key);
    winner.rule().map(RuleId::get)
}

#[test]
fn handles_go_where_threads_need_them() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Writer>();
    send::<PolicyWriter>();
    send::<Reader>();
    send::<Table>();
    sync::<Table>();
    sync::<PolicyTable>();
}

#[test]
fn what_is_pinned_stays_and_what_is_published_shows() {
    let (mut writer, table) = build(0..3, &Limits::default());
    let (mut early, mut late) = (table.reader(), table.reader());
    let guard = early.pin();
    assert_eq!(insert(&mut writer, 10).unwrap(), Version(1));
    assert_eq!(writer.visible(), Version(1));
    assert_eq!(best(&mut late, PartId::FIRST), Some(10));
    // The guard occupies the standby.
    insert(&mut writer, 11).unwrap();
    assert_eq!((writer.pending(), writer.visible()), (1, Version(1)));
    assert!(!writer.try_publish());
    assert!(insert(&mut writer, 11).is_err(), "accepted is accepted");
    assert_eq!(guard.version(), Version(0));
    assert_eq!(guard.stats().rules, 3);
    drop(guard);
    assert_eq!(writer.publish(), Version(2));
    assert_eq!(best(&mut early, PartId::FIRST), Some(11));
    // Transactions without changes count as versions.
    assert_eq!(writer.apply(&Transaction::new()).unwrap(), Version(3));
    assert_eq!(late.pin().version(), Version(3));
}

#[test]
fn no_reader_is_in_a_version_older_than_the_oldest_in_use() {
    let (mut writer, table) = build(0..1, &Limits::default());
    let (mut early, mut late) = (table.reader(), table.reader());
    assert_eq!(writer.oldest_in_use(), Version(0));
    let first = early.pin();
    insert(&mut writer, 1).unwrap();
    assert_eq!(
        (first.version(), writer.visible()),
        (Version(0), Version(1))
    );
    assert_eq!(
        writer.oldest_in_use(),
        Version(0),
        "somebody is still there"
    );
    // A change accepted now waits, and a new reader enters the newer side.
    insert(&mut writer, 2).unwrap();
    let second = late.pin();
    assert_eq!(
        (second.version(), writer.visible()),
        (Version(1), Version(1))
    );
    assert_eq!(writer.oldest_in_use(), Version(0));
    drop(first);
    assert_eq!(writer.oldest_in_use(), Version(1));
    assert_eq!(writer.publish(), Version(2));
    assert_eq!(
        writer.oldest_in_use(),
        Version(1),
        "the second one is there"
    );
    drop(second);
    assert_eq!(writer.oldest_in_use(), Version(2));
}

#[test]
fn slots_are_used_again() {
    let (_writer, table) = build(0..1, &Limits::default());
    for _ in 0..10 {
        let _three = [table.reader(), table.reader(), table.reader()];
    }
    assert_eq!(table.sides.slot_count(), 3);
    assert!(format!("{table:?}").contains("slots: 3"));
}

/// Creating a reader takes a constant number of steps. If each new reader read all slots,
/// this test would take minutes.
#[test]
fn many_readers_come_and_go() {
    const READERS: usize = 20_000;
    let (mut writer, table) = build(0..3, &Limits::default());
    let mut readers: Vec<Reader> = (0..READERS).map(|_| table.reader()).collect();
    assert_eq!(table.sides.slot_count(), READERS);
    // Drops some readers, and makes the same number while all others exist.
    for round in 0..20 {
        let stay = |index: usize| !(index + round).is_multiple_of(3);
        let mut index = 0;
        readers.retain(|_| {
            index += 1;
            stay(index)
        });
        assert!(readers.len() < READERS * 7 / 10);
        readers.resize_with(READERS, || table.reader());
    }
    // One reader at a time, while all others exist.
    for _ in 0..READERS {
        drop(readers.pop());
        readers.push(table.reader());
    }
    assert_eq!(
        table.sides.slot_count(),
        READERS,
        "none was made without need"
    );
    // No two readers share a slot: each of them blocks the standby by itself.
    for which in [0, READERS / 2, READERS - 1] {
        writer.synchronize();
        let guard = readers[which].pin();
        let before = writer.visible();
        insert(&mut writer, 100).unwrap();
        writer
            .apply(Transaction::new().remove(RuleId::new(100).unwrap()))
            .unwrap();
        assert!(!writer.try_publish());
        assert_eq!(guard.version(), before);
        drop(guard);
        assert!(writer.try_publish());
    }
    let guards: Vec<_> = readers.iter_mut().map(Reader::pin).collect();
    let version = writer.visible();
    assert!(guards.iter().all(|guard| guard.version() == version));
    insert(&mut writer, 100).unwrap();
    insert(&mut writer, 101).unwrap();
    for guard in guards {
        assert!(!writer.try_publish(), "a guard is left");
        drop(guard);
    }
    assert!(writer.try_publish());
    readers.clear();
    let _one = table.reader();
    assert_eq!(table.sides.slot_count(), READERS);
}

#[test]
fn everything_may_be_dropped_in_any_order() {
    for order in 0..6 {
        let (mut writer, table) = build(0..3, &Limits::default());
        let reader = table.reader();
        insert(&mut writer, 5).unwrap();
        let mut parts: [Option<Box<dyn std::any::Any>>; 3] = [
            Some(Box::new(writer)),
            Some(Box::new(table)),
            Some(Box::new(reader)),
        ];
        for step in [order % 3, (order % 3 + 1 + order / 3) % 3] {
            parts[step].take();
        }
    }
}

#[test]
fn a_writer_that_goes_leaves_what_it_can() {
    let (mut writer, table) = build(0..3, &Limits::default());
    let mut reader = table.reader();
    let guard = reader.pin();
    insert(&mut writer, 10).unwrap();
    insert(&mut writer, 11).unwrap();
    drop(guard);
    drop(writer);
    assert_eq!(best(&mut reader, PartId::FIRST), Some(11));
}

#[test]
fn limits_hold_for_what_is_not_visible_yet() {
    let limits = Limits {
        rules: 4,
        ..Limits::default()
    };
    let (mut writer, table) = build(0..2, &limits);
    let mut reader = table.reader();
    let _guard = reader.pin();
    insert(&mut writer, 10).unwrap();
    insert(&mut writer, 11).unwrap();
    let refused = insert(&mut writer, 12).unwrap_err();
    let full = UpdateError::TooManyRules {
        change: 0,
        found: 5,
        limit: 4,
    };
    assert_eq!(refused, full);
    let gone = RuleId::new(11).unwrap();
    writer.apply(Transaction::new().remove(gone)).unwrap();
    assert!(!writer.contains(gone));
    insert(&mut writer, 12).unwrap();
    assert_eq!(writer.rules(), 4);
}

#[test]
fn a_limit_on_bytes_refuses_growth_and_never_what_was_accepted() {
    let (roomy, _) = build(0..300, &Limits::default());
    let limits = Limits {
        bytes: roomy.with_accepted(|live, _| live.bytes()),
        ..Limits::default()
    };
    let (mut writer, table) = build(0..100, &limits);
    let mut reader = table.reader();
    let mut guard = Some(reader.pin());
    let mut number = 100;
    let refused = loop {
        if number == 400 {
            // From now on pending changes become visible, on both sides.
            drop(guard.take());
        }
        match insert(&mut writer, number) {
            Ok(_) => number += 1,
            Err(refused) => break refused,
        }
        assert!(number < 100_000, "no limit");
    };
    assert!(guard.is_none(), "gathered beyond the limit, {number}");
    assert!(matches!(refused, UpdateError::TooManyBytes { .. }));
    writer.synchronize();
    writer.rebuild(&mut NoProgress).unwrap();
    assert_eq!(writer.rules(), number as usize);
    writer
        .apply(Transaction::new().remove(RuleId::new(0).unwrap()))
        .unwrap();
}

#[test]
fn pending_changes_are_bounded_and_only_the_writer_waits() {
    let (mut writer, table) = build(0..1, &Limits::default());
    let (pinned, is_pinned) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel::<()>();
    let mut reader = table.reader();
    let thread = std::thread::spawn(move || {
        let guard = reader.pin();
        pinned.send(()).unwrap();
        may_leave.recv().unwrap();
        guard.version()
    });
    is_pinned.recv().unwrap();
    let rule = rule(0);
    let mut one = Transaction::new();
    one.modify(rule.view());
    writer.apply(&one).unwrap();
    for _ in 0..MAX_PENDING {
        writer.apply(&one).unwrap();
    }
    assert_eq!(writer.pending(), MAX_PENDING);
    leave.send(()).unwrap();
    // This call waits for the reader.
    let last = writer.apply(&one).unwrap();
    assert_eq!((writer.pending(), writer.visible()), (0, last));
    assert_eq!(thread.join().unwrap(), Version(0));
    let bytes = writer.log_bytes();
    for _ in 0..1000 {
        writer.apply(&one).unwrap();
    }
    assert!(writer.log_bytes() <= bytes, "nothing piles up");
}

#[test]
fn deferred_changes_are_bounded() {
    let (mut writer, _table) = build(0..1, &Limits::default());
    let rule = rule(0);
    let mut one = Transaction::new();
    one.modify(rule.view());
    for number in 1..=MAX_DEFERRED {
        writer.apply_later(&one).unwrap();
        assert_eq!((writer.pending(), writer.visible()), (number, Version(0)));
    }
    let last = writer.apply_later(&one).unwrap();
    assert_eq!((writer.pending(), writer.visible()), (0, last));
    // A transaction that is applied immediately publishes the deferred transactions before it.
    writer.apply_later(&one).unwrap();
    let last = writer.apply(&one).unwrap();
    assert_eq!((writer.pending(), writer.visible()), (0, last));
}

#[test]
fn a_rebuild_may_be_stopped() {
    struct StopAfter(usize);
    impl Progress for StopAfter {
        fn report(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
            if self.0 == 0 {
                return ControlFlow::Break(());
            }
            self.0 -= 1;
            ControlFlow::Continue(())
        }
    }
    let (mut writer, table) = build(0..2000, &Limits::default());
    let mut reader = table.reader();
    let mut stops = 0;
    for number in 0..20u32 {
        insert(&mut writer, 5000 + number).unwrap();
        let after = number as usize % 4;
        if let Err(error) = writer.rebuild(&mut StopAfter(after)) {
            assert!(matches!(error, BuildError::Stopped { .. }));
            stops += 1;
        }
        assert_eq!(best(&mut reader, PartId::FIRST), Some(5000 + number));
        assert_eq!(writer.rules(), reader.pin().stats().rules);
    }
    assert!(stops >= 5, "{stops}");
}

/// An engine with at most one rule. It panics or takes no updates on demand, and records
/// the calls that it receives.
struct Fragile {
    schema: Arc<Schema>,
    rules: Vec<RuleId>,
    updates: bool,
    told: Arc<Mutex<Vec<Told>>>,
    /// The remaining steps of maintenance.
    steps: usize,
}

/// A call that the engine receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Change(u32),
    Maintain(usize),
    Adopt,
    Rebuild,
}

impl Fragile {
    fn new(updates: bool) -> Fragile {
        Fragile {
            schema: Schema::ipv4_5tuple(),
            rules: Vec::new(),
            updates,
            told: Arc::default(),
            steps: 0,
        }
    }

    fn boxed(updates: bool) -> Box<dyn Classifier> {
        Box::new(Fragile::new(updates))
    }
}

impl Classifier for Fragile {
    fn engine(&self) -> &'static str {
        "fragile"
    }

    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn improve_batch(&self, _: KeySlice<'_>, winners: &mut [Winner], _: &mut Scratch) {
        for winner in winners {
            for &id in &self.rules {
                *winner = winner.or(Winner::new(Priority(1), id));
            }
        }
    }

    fn improve_masked(&self, _: &[u64], _: Winner, _: &mut [u64]) -> Winner {
        unreachable!("not called here")
    }

    fn trace(&self, _: &[u64]) -> LookupTrace {
        unreachable!("not called here")
    }

    fn stats(&self) -> Stats {
        Stats {
            rules: self.rules.len(),
            ..Stats::default()
        }
    }

    fn dynamic(&self) -> Option<&dyn DynamicClassifier> {
        self.updates.then_some(self)
    }

    fn as_dynamic(&mut self) -> Option<&mut dyn DynamicClassifier> {
        if self.updates { Some(self) } else { None }
    }
}

impl DynamicClassifier for Fragile {
    fn contains(&self, id: RuleId) -> bool {
        self.rules.contains(&id)
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        self.contains(id).then(|| {
            words.extend_from_slice(rule(0).view().words());
            Priority(1)
        })
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        self.contains(id).then_some(ActionId(0))
    }

    fn winners(&self) -> Vec<Winner> {
        let winner = |&id| Winner::new(Priority(1), id);
        self.rules.iter().map(winner).collect()
    }

    fn check(&self, _: &Transaction<'_>) -> Result<(), UpdateError> {
        Ok(())
    }

    fn replay(&mut self, transaction: &Transaction<'_>) {
        for change in transaction.changes() {
            self.told
                .lock()
                .unwrap()
                .push(Told::Change(change.id().get()));
            self.rules.push(change.id());
            assert!(change.id().get() != 13, "an engine's mistake");
        }
    }

    fn rebuild(&mut self, _: &mut dyn Progress) -> Result<(), BuildError> {
        self.told.lock().unwrap().push(Told::Rebuild);
        Ok(())
    }

    fn reoptimise(&self) -> Option<&dyn Reoptimise> {
        Some(self)
    }

    fn reoptimise_mut(&mut self) -> Option<&mut dyn Reoptimise> {
        Some(self)
    }
}

impl Reoptimise for Fragile {
    fn drift(&self) -> Drift {
        unreachable!("not called here")
    }

    fn look(&self, _: &mut Snapshot) -> bool {
        unreachable!("not called here")
    }

    fn install(&mut self, _: &LookupPlan) -> bool {
        self.told.lock().unwrap().push(Told::Adopt);
        true
    }

    fn step(&mut self, steps: usize) -> bool {
        let made = steps.min(self.steps);
        self.steps -= made;
        self.told.lock().unwrap().push(Told::Maintain(made));
        self.steps > 0
    }

    fn is_installing(&self) -> bool {
        self.steps > 0
    }
}

#[test]
fn an_engine_that_panics_poisons_the_writer_and_no_reader() {
    let limits = Limits::default();
    let (mut writer, table) = Table::from_pair(
        Fragile::boxed(true),
        Fragile::boxed(true),
        &rules(0..0),
        &limits,
    )
    .unwrap();
    let mut reader = table.reader();
    insert(&mut writer, 20).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| insert(&mut writer, 13)));
    assert!(panicked.is_err());
    assert!(writer.is_poisoned());
    for call in [
        |writer: &mut Writer| insert(writer, 21).is_ok(),
        |writer: &mut Writer| writer.publish() > Version(0),
        |writer: &mut Writer| writer.try_publish(),
        |writer: &mut Writer| writer.rebuild(&mut NoProgress).is_ok(),
    ] {
        let refused = catch_unwind(AssertUnwindSafe(|| call(&mut writer))).unwrap_err();
        let message = refused.downcast_ref::<&str>().unwrap();
        assert!(message.contains("poisoned"), "{message}");
    }
    assert_eq!(best(&mut reader, PartId::FIRST), Some(20));
    drop(writer);
    assert_eq!(best(&mut table.reader(), PartId::FIRST), Some(20));
}

#[test]
fn static_engines_are_refused() {
    let limits = Limits::default();
    let (left, right) = (Fragile::boxed(false), Fragile::boxed(false));
    let built = Table::from_pair(left, right, &rules(0..0), &limits);
    let error = built.unwrap_err();
    assert_eq!(
        error.to_string(),
        "engine `fragile` takes no updates, so there can be no live table of it; these take \
         updates: linear, forest, tss, tuplemerge, tuplemerge-offline, tuplemerge-vpp, \
         partition-sort, cut-split, sfl(INNER)"
    );
}

/// A policy's table refuses and accepts exactly what the policy's classifier does, also
/// for rules that are not visible yet, with and without a publish interval.
#[test]
fn a_policys_table_agrees_with_the_policys_classifier() {
    for interval in [Duration::ZERO, Duration::MAX] {
        a_policys_table_with(interval);
    }
}

fn a_policys_table_with(interval: Duration) {
    let schemas = [Schema::ipv4_5tuple(), Schema::ipv6_5tuple()];
    let limits = Limits {
        rules: 5,
        ..Limits::default()
    };
    let policy = Policy::dual_stack();
    let mut direct = policy.build(&spec(), &limits, &mut NoProgress).unwrap();
    let (mut writer, table) =
        PolicyTable::build_policy(&policy, &spec(), &limits, &mut NoProgress).unwrap();
    writer.set_publish_interval(interval);
    let mut readers = [table.reader(), table.reader()];
    let mut state = 7u32;
    let mut roll = |bound: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % bound
    };
    let (mut taken, mut refused) = (0, 0);
    for round in 0..400 {
        let [first, second] = &mut readers;
        let guards = (round % 3 != 0).then(|| (first.pin(), first_version(second)));
        for _ in 0..=roll(4) {
            let wanted: Vec<(u32, u32, Vec<Rule>)> = (0..=roll(2))
                .map(|_| {
                    let (kind, number, parts) = (roll(3), roll(8), 1 + roll(3));
                    let rules = schemas.iter().enumerate();
                    let rules = rules.filter(|(part, _)| parts & (1 << part) != 0);
                    let priority = roll(4);
                    let rules = rules.map(|(_, schema)| rule_of(schema, number, priority));
                    (kind, number, rules.collect())
                })
                .collect();
            let mut changes = PolicyTransaction::new();
            for (kind, number, rules) in &wanted {
                let views = rules.iter().map(|rule| {
                    let part = usize::from(rule.view().schema() == &schemas[1]);
                    (PartId::from_index(part), rule.view())
                });
                match kind {
                    0 => changes.insert(views),
                    1 => changes.modify(views),
                    _ => changes.remove(RuleId::new(*number).unwrap()),
                };
            }
            let before = writer.accepted();
            let checked = writer.check(&changes);
            let applied = match roll(2) {
                0 => writer.apply(&changes),
                _ => writer.try_apply(&changes).map_err(|error| match error {
                    TryApplyError::Refused(error) => error,
                    TryApplyError::WouldWait { .. } => panic!("{error}"),
                }),
            };
            let expected = direct.apply(&changes);
            assert_eq!(checked, expected);
            assert_eq!(applied.clone().map(drop), expected);
            match applied {
                Ok(version) => {
                    taken += 1;
                    assert_eq!(version, before.next());
                }
                Err(_) => refused += 1,
            }
            assert_eq!(writer.rules(), direct.rules());
        }
        drop(guards);
        if round % 50 == 0 {
            writer.rebuild(&mut NoProgress).unwrap();
        }
        writer.publish();
        assert_eq!(table.reader().pin().len(), direct.rules());
        for (index, schema) in schemas.iter().enumerate() {
            let part = PartId::from_index(index);
            let mut reader = table.reader();
            let key = vec![0; schema.key_words()];
            let expected = direct.part(part).classify_one(&key);
            assert_eq!(best(&mut reader, part), expected.rule().map(RuleId::get));
            assert_eq!(
                reader.pin().part(part).stats().rules,
                direct.part(part).stats().rules
            );
        }
    }
    assert!(
        taken > 200 && refused > 200,
        "{taken} taken, {refused} refused"
    );
}

fn first_version(reader: &mut Reader<PolicyReplica>) -> Version {
    reader.pin().version()
}
