//! Random orders of everything that one can do with a live table, step by step,
//! against a model that knows what each step must show.
//!
//! Readers sit on threads of their own and do one thing when told, so guards
//! are held and let go in any order; nothing happens at the same time.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use classyard::*;
use proptest::prelude::*;

mod table_kit;

use table_kit::{Dice, Model, answers, batch, check_markers, linear, transaction};

#[derive(Clone, Copy, Debug)]
enum Step {
    Apply,
    ApplyRefused,
    TryPublish,
    Publish,
    Synchronize,
    Rebuild,
    /// Learns and adopts.
    Adopt,
    Maintain,
    /// For the reader of that number, from those there are.
    Pin(usize),
    Look(usize),
    Unpin(usize),
    Create,
    Drop(usize),
    /// The guard is leaked.
    Leak(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Apply),
        1 => Just(Step::ApplyRefused),
        2 => Just(Step::TryPublish),
        1 => Just(Step::Publish),
        1 => Just(Step::Synchronize),
        1 => Just(Step::Rebuild),
        2 => Just(Step::Adopt),
        2 => Just(Step::Maintain),
        4 => (0usize..8).prop_map(Step::Pin),
        2 => (0usize..8).prop_map(Step::Look),
        4 => (0usize..8).prop_map(Step::Unpin),
        2 => Just(Step::Create),
        1 => (0usize..8).prop_map(Step::Drop),
        1 => (0usize..8).prop_map(Step::Leak),
    ]
}

/// What a reader is told.
enum Order {
    Pin,
    Look,
    Unpin,
    Leak,
    Quit,
}

/// What it answers: the version of its guard and what that finds.
type Answer = (u64, Vec<Winner>);

/// A reader on its thread, and what the model knows about it.
struct Seat {
    orders: SyncSender<Order>,
    answers: Receiver<Answer>,
    thread: std::thread::JoinHandle<()>,
    /// The version that it has pinned.
    pinned: Option<u64>,
    /// Holds the standby: pinned, or leaked a guard, before the last swap.
    in_standby: bool,
    /// The same for the live side.
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
                let look = |guard: &Guard<'_>| {
                    let found = answers(&**guard, &keys);
                    (guard.version().transactions(), found)
                };
                outbox.send(look(&guard)).unwrap();
                loop {
                    match inbox.recv().unwrap() {
                        Order::Look => outbox.send(look(&guard)).unwrap(),
                        Order::Leak => {
                            std::mem::forget(guard);
                            outbox.send((0, Vec::new())).unwrap();
                            break;
                        }
                        Order::Unpin => {
                            drop(guard);
                            outbox.send((0, Vec::new())).unwrap();
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

/// A table and what must be true of it.
struct World {
    writer: Writer,
    table: Table,
    seats: Vec<Seat>,
    model: Model,
    keys: KeyVec,
    /// The answers at each version.
    expected: Vec<Vec<Winner>>,
    oracle: Box<dyn Classifier>,
    visible: usize,
    /// A plan was accepted that the live side does not adopt yet.
    unseen_plan: bool,
    dice: Dice,
}

impl World {
    fn new(spec: &EngineSpec, seed: u64) -> World {
        let mut dice = Dice(seed);
        let model = Model::new(40, &mut dice);
        let rules = model.rule_set();
        let built = Table::build(&rules, spec, &Limits::default(), &mut NoProgress);
        let (writer, table) = built.unwrap();
        let keys = batch(24, &mut dice);
        let oracle = linear(&rules);
        World {
            writer,
            table,
            seats: Vec::new(),
            model,
            expected: vec![answers(oracle.as_ref(), &keys)],
            keys,
            oracle,
            visible: 0,
            unseen_plan: false,
            dice,
        }
    }

    fn accepted(&self) -> usize {
        self.expected.len() - 1
    }

    /// The writer could publish now; says whether it must have, by the model.
    fn may_publish(&mut self) -> bool {
        if self.visible == self.accepted() && !self.unseen_plan {
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
        self.unseen_plan = false;
        self.swap();
    }

    fn swap(&mut self) {
        for seat in &mut self.seats {
            assert!(!seat.in_standby, "the standby was free");
            std::mem::swap(&mut seat.in_live, &mut seat.in_standby);
        }
    }

    fn held(&self) -> bool {
        self.seats.iter().any(|seat| seat.in_standby)
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Apply => {
                let changes = self.model.draw(&mut self.dice);
                let version = self.writer.apply(&transaction(&changes)).unwrap();
                let oracle = self.oracle.as_dynamic().unwrap();
                oracle.apply(&transaction(&changes)).unwrap();
                self.expected
                    .push(answers(self.oracle.as_ref(), &self.keys));
                assert_eq!(version.transactions(), self.accepted() as u64);
                self.may_publish();
            }
            Step::ApplyRefused => {
                // The last change cannot be made; those before must not stay.
                let mut wrong = transaction(&[]);
                let known = self.model.rules.values().last().unwrap().clone();
                wrong.remove(table_kit::id(0)).insert(known.view());
                let error = self.writer.apply(&wrong).unwrap_err();
                assert_eq!(error.change(), 1);
            }
            Step::TryPublish => {
                let published = self.writer.try_publish();
                assert_eq!(published, self.may_publish());
            }
            Step::Publish => {
                // It would wait for ever where a guard is in the way.
                if (self.visible == self.accepted() && !self.unseen_plan) || !self.held() {
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
                    self.visible = self.accepted();
                    self.unseen_plan = false;
                }
            }
            Step::Adopt => {
                let plan = self.table.reader().learn(&mut NoProgress).unwrap();
                assert_eq!(plan.is_some(), self.writer.drift().is_some());
                if let Some(plan) = plan {
                    assert!(self.writer.adopt(&plan));
                    self.unseen_plan = true;
                    self.may_publish();
                }
            }
            Step::Maintain => {
                let adopting = self.writer.drift().is_some_and(|drift| drift.adopting);
                let more = self.writer.maintain(3);
                if (adopting || self.unseen_plan) && !self.held() {
                    self.published();
                }
                let drift = self.writer.drift();
                let adopting = drift.is_some_and(|drift| drift.adopting);
                assert_eq!(more, adopting || self.unseen_plan);
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
        let seat = &mut self.seats[number];
        let (seen, version) = match (step, seat.pinned) {
            (Step::Pin(_), None) => {
                // Whatever it leaked is over.
                seat.left();
                seat.in_live = true;
                seat.pinned = Some(visible);
                (seat.tell(Order::Pin), visible)
            }
            (Step::Look(_), Some(version)) => (seat.tell(Order::Look), version),
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
        assert_eq!(seen.0, version);
        let expected = &self.expected[usize::try_from(version).unwrap()];
        assert_eq!(&seen.1, expected, "version {version}");
        check_markers(&seen.1);
    }

    /// The writer knows what the model knows.
    fn agree(&self) {
        let writer = &self.writer;
        assert_eq!(writer.accepted().transactions(), self.accepted() as u64);
        assert_eq!(writer.visible().transactions(), self.visible as u64);
        assert_eq!(writer.rules(), self.model.rules.len());
        if self.visible == self.accepted() {
            assert_eq!(writer.pending(), 0);
        }
        for number in 0..40 {
            let there = self.model.rules.contains_key(&number);
            assert_eq!(
                writer.contains(table_kit::id(number)),
                there,
                "rule {number}"
            );
        }
    }

    /// Takes everything down, the readers before the writer or after it.
    fn end(self, writer_first: bool) {
        let World {
            writer,
            table,
            seats,
            ..
        } = self;
        if writer_first {
            drop(writer);
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
