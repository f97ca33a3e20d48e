//! Runs random orders of all operations on a live table, step by step, and
//! compares each step with a model of the expected result.
//!
//! Readers have their own threads and do one operation per order, so guards are
//! pinned and dropped in any order. No two operations run at the same time.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use classyard::error::TryApplyError;
use classyard::table::{Guard, MAX_DEFERRED, Version};
use classyard::*;
use proptest::prelude::*;

mod table_kit;

use table_kit::{
    Dice, Model, Owned, answers, batch, best_first, check_markers, linear, rules_seen, transaction,
};

#[derive(Clone, Copy, Debug)]
enum Step {
    Apply,
    /// A transaction of hundreds of changes.
    ApplyMany,
    /// A transaction that leaves the work on the sides to a later step.
    ApplyLater,
    ApplyRefused,
    TryPublish,
    PublishIfDue,
    /// Sets a publish interval, or none.
    SetInterval(bool),
    /// Waits for this number of quarters of the publish interval.
    Wait(u32),
    Publish,
    Synchronize,
    Rebuild,
    /// Computes and installs a plan.
    Adopt,
    Maintain,
    /// Makes changes that the standby lacks.
    Prepare(usize),
    /// Applies to the existing reader with this number.
    Pin(usize),
    Look(usize),
    Unpin(usize),
    Create,
    Drop(usize),
    /// Leaks the guard.
    Leak(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Apply),
        1 => Just(Step::ApplyRefused),
        1 => Just(Step::ApplyMany),
        3 => Just(Step::ApplyLater),
        2 => Just(Step::TryPublish),
        2 => Just(Step::PublishIfDue),
        1 => any::<bool>().prop_map(Step::SetInterval),
        4 => (1u32..9).prop_map(Step::Wait),
        1 => Just(Step::Publish),
        1 => Just(Step::Synchronize),
        1 => Just(Step::Rebuild),
        2 => Just(Step::Adopt),
        2 => Just(Step::Maintain),
        2 => (0usize..400).prop_map(Step::Prepare),
        4 => (0usize..8).prop_map(Step::Pin),
        2 => (0usize..8).prop_map(Step::Look),
        4 => (0usize..8).prop_map(Step::Unpin),
        2 => Just(Step::Create),
        1 => (0usize..8).prop_map(Step::Drop),
        1 => (0usize..8).prop_map(Step::Leak),
    ]
}

/// Number of possible ids.
const ID_COUNT: u32 = 40;

const PUBLISH_INTERVAL: Duration = Duration::from_millis(10);

/// With a publish interval, the standby receives three times the changes of a
/// call, plus this number.
const EXTRA_CATCH_UP: usize = 256;

/// Changes and steps that a side lacks: a lower and an upper bound, since plans
/// may be replaced and steps may have nothing to do.
#[derive(Clone, Copy, Default)]
struct Owed {
    least: usize,
    most: usize,
}

impl Owed {
    fn add(&mut self, least: usize, most: usize) {
        self.least += least;
        self.most += most;
    }

    fn pay(&mut self, budget: usize) {
        self.least = self.least.saturating_sub(budget);
        self.most = self.most.saturating_sub(budget);
    }
}

/// An order for a reader.
enum Order {
    Pin,
    /// Lookups only, or all rules as well.
    Look(bool),
    Unpin,
    Leak,
    Quit,
}

/// A reader's answer: the version of its guard and the results there.
#[derive(Default)]
struct Answer {
    version: u64,
    winners: Vec<Winner>,
    /// The action of each winner.
    actions: Vec<Option<ActionId>>,
    /// All rules, if the order included them.
    rules: Option<Vec<Rule>>,
}

/// The expected contents of a version.
struct Shown {
    winners: Vec<Winner>,
    actions: Vec<Option<ActionId>>,
    rules: Vec<Rule>,
}

impl Shown {
    fn new(oracle: &dyn Classifier, model: &Model, keys: &KeyVec) -> Shown {
        let winners = answers(oracle, keys);
        let action = |winner: &Winner| {
            let rule = &model.rules[&winner.rule()?.get()];
            Some(rule.view().action())
        };
        Shown {
            actions: winners.iter().map(action).collect(),
            winners,
            rules: best_first(&model.rules),
        }
    }
}

/// A reader on its thread, and its state in the model.
struct Seat {
    orders: SyncSender<Order>,
    answers: Receiver<Answer>,
    thread: std::thread::JoinHandle<()>,
    /// The version that it has pinned.
    pinned: Option<u64>,
    /// True if it is in the standby: it pinned or leaked a guard before the
    /// last swap.
    in_standby: bool,
    /// True if it is in the live side.
    in_live: bool,
}

impl Seat {
    fn new(mut reader: Reader, keys: &KeyVec) -> Seat {
        let (orders, inbox) = sync_channel::<Order>(0);
        let (outbox, answers_in) = sync_channel(0);
        let keys = keys.clone();
        let thread = std::thread::spawn(move || {
            while let Ok(order) = inbox.recv() {
                assert!(matches!(order, Order::Pin | Order::Quit), "not pinned");
                if let Order::Quit = order {
                    break;
                }
                let guard = reader.pin();
                let look = |guard: &Guard<'_>, all: bool| {
                    let winners = answers(guard.classifier(), &keys);
                    let actions = winners.iter().map(|&winner| guard.action(winner));
                    Answer {
                        version: guard.version().transactions(),
                        actions: actions.collect(),
                        rules: all.then(|| rules_seen(guard, &winners, ID_COUNT)),
                        winners,
                    }
                };
                outbox.send(look(&guard, false)).unwrap();
                loop {
                    match inbox.recv().unwrap() {
                        Order::Look(all) => outbox.send(look(&guard, all)).unwrap(),
                        Order::Leak => {
                            std::mem::forget(guard);
                            outbox.send(Answer::default()).unwrap();
                            break;
                        }
                        Order::Unpin => {
                            drop(guard);
                            outbox.send(Answer::default()).unwrap();
                            break;
                        }
                        Order::Pin | Order::Quit => unreachable!("pinned"),
                    }
                }
            }
        });
        Seat {
            orders,
            answers: answers_in,
            thread,
            pinned: None,
            in_standby: false,
            in_live: false,
        }
    }

    fn tell(&self, order: Order) -> Answer {
        self.orders.send(order).unwrap();
        self.answers.recv().unwrap()
    }

    fn left(&mut self) {
        (self.in_live, self.in_standby) = (false, false);
    }

    fn quit(mut self) {
        if self.pinned.take().is_some() {
            self.tell(Order::Unpin);
        }
        self.orders.send(Order::Quit).unwrap();
        self.thread.join().unwrap();
    }
}

/// A table and its expected state.
struct World {
    writer: Writer,
    table: Table,
    seats: Vec<Seat>,
    model: Model,
    keys: KeyVec,
    /// The expected contents of each version.
    expected: Vec<Shown>,
    oracle: Box<dyn Classifier>,
    visible: usize,
    /// True if a plan was accepted that the live side has not installed, or
    /// steps of it were made that the live side lacks.
    unseen_work: bool,
    /// The changes and steps that the standby and the live side lack.
    owed: Owed,
    owed_next: Owed,
    interval: Duration,
    /// The time given to the writer.
    now: Duration,
    /// The time since the last publication.
    passed: Duration,
    dice: Dice,
}

impl World {
    fn new(spec: &EngineSpec, seed: u64) -> World {
        let mut dice = Dice(seed);
        let model = Model::new(ID_COUNT, &mut dice);
        let rules = model.rule_set();
        let built = Table::build(&rules, spec, &Limits::default(), &mut NoProgress);
        let (writer, table) = built.unwrap();
        let keys = batch(24, &mut dice);
        let oracle = linear(&rules);
        World {
            writer,
            table,
            seats: Vec::new(),
            expected: vec![Shown::new(oracle.as_ref(), &model, &keys)],
            model,
            keys,
            oracle,
            visible: 0,
            unseen_work: false,
            owed: Owed::default(),
            owed_next: Owed::default(),
            interval: Duration::ZERO,
            now: Duration::ZERO,
            passed: Duration::ZERO,
            dice,
        }
    }

    fn accepted(&self) -> usize {
        self.expected.len() - 1
    }

    /// Publishes in the model if the writer can publish now. Returns true if
    /// everything is visible then.
    fn may_publish(&mut self) -> bool {
        if self.visible == self.accepted() && !self.unseen_work {
            return true;
        }
        if self.seats.iter().any(|seat| seat.in_standby) {
            return false;
        }
        self.published();
        true
    }

    fn published(&mut self) {
        self.visible = self.accepted();
        self.unseen_work = false;
        self.owed = std::mem::take(&mut self.owed_next);
        self.passed = Duration::ZERO;
        self.swap();
    }

    /// Accounts for a call that adds `least` to `most` changes and steps. If
    /// the model cannot predict whether the standby will have caught up, lets
    /// time pass until it will.
    fn bring(&mut self, least: usize, most: usize) {
        self.owed.add(least, most);
        self.owed_next.add(least, most);
        let budget = 3 * most + EXTRA_CATCH_UP;
        if (self.owed.least <= budget) != (self.owed.most <= budget) && self.passed >= self.interval
        {
            self.pass(2 * PUBLISH_INTERVAL);
        }
    }

    /// Models the writer's publication after a call with up to `most` changes.
    fn brought(&mut self, most: usize) {
        if self.interval.is_zero() {
            self.may_publish();
        } else if !self.is_blocked() {
            if self.passed >= 2 * self.interval {
                self.published();
                return;
            }
            self.owed.pay(3 * most + EXTRA_CATCH_UP);
            if self.owed.most == 0 && self.passed >= self.interval {
                self.published();
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.passed += time;
        self.writer.set_now(self.now);
    }

    fn apply(&mut self, changes: &[Owned]) {
        self.bring(changes.len(), changes.len());
        let transaction_to_apply = transaction(changes);
        let version = match self.dice.below(2) {
            0 => self.writer.apply(&transaction_to_apply).unwrap(),
            // A transaction this small never has to wait.
            _ => self.writer.try_apply(&transaction_to_apply).unwrap(),
        };
        self.expect(changes, version);
        self.brought(changes.len());
    }

    fn apply_later(&mut self, changes: &[Owned]) {
        assert!(self.writer.pending() + changes.len() <= MAX_DEFERRED);
        self.owed.add(changes.len(), changes.len());
        self.owed_next.add(changes.len(), changes.len());
        let transaction_to_apply = transaction(changes);
        let version = self.writer.apply_later(&transaction_to_apply).unwrap();
        self.expect(changes, version);
    }

    /// Expects the contents after an accepted transaction in its version.
    fn expect(&mut self, changes: &[Owned], version: Version) {
        let oracle = self.oracle.as_dynamic().unwrap();
        oracle.apply(&transaction(changes)).unwrap();
        let shown = Shown::new(self.oracle.as_ref(), &self.model, &self.keys);
        self.expected.push(shown);
        assert_eq!(version.transactions(), self.accepted() as u64);
    }

    fn swap(&mut self) {
        for seat in &mut self.seats {
            assert!(!seat.in_standby, "the standby was free");
            std::mem::swap(&mut seat.in_live, &mut seat.in_standby);
        }
    }

    fn is_blocked(&self) -> bool {
        self.seats.iter().any(|seat| seat.in_standby)
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Apply => {
                let changes = self.model.draw(&mut self.dice);
                self.apply(&changes);
            }
            Step::ApplyMany => {
                let draws = (0..100).flat_map(|_| self.model.draw(&mut self.dice));
                let changes: Vec<Owned> = draws.collect();
                self.apply(&changes);
            }
            Step::ApplyLater => {
                let changes = self.model.draw(&mut self.dice);
                self.apply_later(&changes);
            }
            Step::ApplyRefused => {
                // The last change cannot be made; the earlier changes must not
                // remain.
                let mut wrong = transaction(&[]);
                let known = self.model.rules.values().last().unwrap().clone();
                wrong.remove(table_kit::id(0)).insert(known.view());
                let error = self.writer.apply(&wrong).unwrap_err();
                assert_eq!(error.change(), 1);
                let tried = self.writer.try_apply(&wrong);
                assert_eq!(tried, Err(TryApplyError::Refused(error.clone())));
                assert_eq!(self.writer.apply_later(&wrong), Err(error));
            }
            Step::TryPublish => {
                let published = self.writer.try_publish();
                assert_eq!(published, self.may_publish());
            }
            Step::PublishIfDue => {
                let published = self.writer.publish_if_due();
                let expected = if self.passed >= self.interval {
                    self.may_publish()
                } else {
                    if !self.is_blocked() {
                        self.owed.pay(EXTRA_CATCH_UP);
                    }
                    self.visible == self.accepted() && !self.unseen_work
                };
                assert_eq!(published, expected);
            }
            Step::SetInterval(there) => {
                self.interval = if there {
                    PUBLISH_INTERVAL
                } else {
                    Duration::ZERO
                };
                self.writer.set_publish_interval(self.interval);
                self.passed = Duration::ZERO;
            }
            Step::Wait(quarters) => self.pass(PUBLISH_INTERVAL / 4 * quarters),
            Step::Publish => {
                // Would wait forever if a guard is in the way.
                if (self.visible == self.accepted() && !self.unseen_work) || !self.is_blocked() {
                    self.writer.publish();
                    assert!(self.may_publish());
                }
            }
            Step::Synchronize => {
                let free = self
                    .seats
                    .iter()
                    .all(|seat| !seat.in_standby && !seat.in_live);
                if free {
                    self.writer.synchronize();
                    assert!(self.may_publish());
                }
            }
            Step::Rebuild => {
                let free = self
                    .seats
                    .iter()
                    .all(|seat| !seat.in_standby && !seat.in_live);
                if free {
                    self.writer.rebuild(&mut NoProgress).unwrap();
                    self.published();
                    self.owed = Owed::default();
                }
            }
            Step::Adopt => {
                let plan = self.table.reader().plan(&mut NoProgress).unwrap();
                assert_eq!(plan.is_some(), self.writer.drift().is_some());
                if let Some(plan) = plan {
                    self.bring(0, 1);
                    assert!(self.writer.install(&plan));
                    self.unseen_work = true;
                    self.brought(1);
                }
            }
            Step::Maintain => {
                let adopting = self.writer.drift().is_some_and(|drift| drift.installing);
                let works = (adopting || self.unseen_work) && !self.is_blocked();
                if works {
                    self.bring(0, 3);
                }
                let has_more = self.writer.maintain(3);
                if works {
                    self.unseen_work = true;
                    self.brought(3);
                }
                let drift = self.writer.drift();
                let adopting = drift.is_some_and(|drift| drift.installing);
                assert_eq!(has_more, adopting || self.unseen_work);
            }
            Step::Prepare(steps) => {
                let lacks_more = self.writer.prepare(steps);
                if !self.is_blocked() {
                    self.owed.pay(steps);
                }
                assert!(!lacks_more || self.owed.most > 0);
                assert!(lacks_more || self.owed.least == 0);
            }
            Step::Create if self.seats.len() < 4 => {
                self.seats.push(Seat::new(self.table.reader(), &self.keys));
            }
            Step::Create => {}
            Step::Pin(n) | Step::Look(n) | Step::Unpin(n) | Step::Drop(n) | Step::Leak(n) => {
                if !self.seats.is_empty() {
                    let number = n % self.seats.len();
                    self.reader(step, number);
                }
            }
        }
        self.agree();
    }

    fn reader(&mut self, step: Step, number: usize) {
        let visible = self.visible as u64;
        let with_rules = self.dice.below(2) == 0;
        let seat = &mut self.seats[number];
        let (seen, version) = match (step, seat.pinned) {
            (Step::Pin(_), None) => {
                // A new pin ends a leaked guard of this reader.
                seat.left();
                seat.in_live = true;
                seat.pinned = Some(visible);
                (seat.tell(Order::Pin), visible)
            }
            (Step::Look(_), Some(version)) => (seat.tell(Order::Look(with_rules)), version),
            (Step::Unpin(_), Some(_)) => {
                seat.pinned = None;
                seat.tell(Order::Unpin);
                seat.left();
                return;
            }
            (Step::Leak(_), Some(_)) => {
                seat.pinned = None;
                seat.tell(Order::Leak);
                return;
            }
            (Step::Drop(_), _) => {
                self.seats.swap_remove(number).quit();
                return;
            }
            _ => return,
        };
        assert_eq!(seen.version, version);
        let expected = &self.expected[usize::try_from(version).unwrap()];
        assert_eq!(seen.winners, expected.winners, "version {version}");
        assert_eq!(seen.actions, expected.actions, "version {version}");
        if let Some(rules) = seen.rules {
            assert_eq!(rules, expected.rules, "version {version}");
        }
        check_markers(&seen.winners);
    }

    /// Compares the writer's state with the model.
    fn agree(&self) {
        let writer = &self.writer;
        assert_eq!(writer.accepted().transactions(), self.accepted() as u64);
        assert_eq!(writer.visible().transactions(), self.visible as u64);
        assert_eq!(writer.rules(), self.model.rules.len());
        if self.visible == self.accepted() {
            assert_eq!(writer.pending(), 0);
        }
        for number in 0..ID_COUNT {
            let there = self.model.rules.contains_key(&number);
            assert_eq!(
                writer.contains(table_kit::id(number)),
                there,
                "rule {number}"
            );
        }
    }

    /// Drops everything, with the readers before or after the writer.
    fn end(self, writer_first: bool) {
        let last = match self.is_blocked() {
            true => self.visible,
            false => self.accepted(),
        };
        let World {
            writer,
            table,
            seats,
            ..
        } = self;
        if writer_first {
            drop(writer);
            let shown = table.reader().pin().version().transactions();
            assert_eq!(shown, last as u64, "what could be published was");
            drop(table);
            seats.into_iter().for_each(Seat::quit);
        } else {
            seats.into_iter().for_each(Seat::quit);
            drop(table);
            drop(writer);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_order_shows_what_the_model_says(
        steps in prop::collection::vec(step(), 1..120),
        seed in any::<u64>(),
        engine in prop::sample::select(vec![
            "linear", "tss", "tuplemerge", "tuplemerge-vpp", "forest", "forest:most=2",
        ]),
        writer_first in any::<bool>(),
    ) {
        let mut world = World::new(&EngineSpec::parse(engine).unwrap(), seed);
        for step in steps {
            world.take(step);
        }
        world.end(writer_first);
    }
}
