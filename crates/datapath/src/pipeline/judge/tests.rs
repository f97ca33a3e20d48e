//! Judges of datapaths of which it is known what everything takes.

use std::cell::Cell;

use super::*;

thread_local! {
    static NOW: Cell<f64> = const { Cell::new(0.0) };
}

fn clock() -> Duration {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a test's time
    Duration::from_nanos(NOW.get() as u64)
}

const BOTH: Levels = Levels {
    microflows: true,
    megaflows: true,
};

/// A datapath of which it is known what everything takes, in nanoseconds.
struct Model {
    judge: Judge,
    /// What packets take without caches, what a lookup takes, and watching a packet.
    none: f64,
    lookup: f64,
    watch: f64,
    /// Flows, each as frequent as the others, and how many are known.
    flows: f64,
    known: f64,
    /// Others that were known, until entries changed.
    stale: f64,
    /// As many of the flows as come again soon.
    recurring: f64,
    /// Packets by whether caches were asked.
    asked: u64,
    passed: u64,
}

impl Model {
    fn new(none: f64, lookup: f64, flows: f64) -> Model {
        Model {
            judge: Judge::new(BOTH, Some(clock)),
            none,
            lookup,
            watch: 2500.0,
            flows,
            known: 0.0,
            stale: 0.0,
            recurring: 20_000.0,
            asked: 0,
            passed: 0,
        }
    }

    /// Processes vectors of 256 packets. Returns how long they took, in shares of the
    /// time without caches.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn run(&mut self, vectors: u32) -> f64 {
        let begun = NOW.get();
        for _ in 0..vectors {
            let Turn {
                levels,
                notes_flows,
                may_watch,
                of_any_flow,
            } = self.judge.begin();
            let mut outcome = Outcome {
                packets: 256,
                ..Outcome::default()
            };
            if levels == self.judge.choices[0].levels {
                NOW.set(NOW.get() + 256.0 * self.none);
                self.passed += 1;
            } else {
                self.asked += 1;
                let share = self.known / self.flows;
                outcome.known = (256.0 * share) as usize;
                outcome.stale = (256.0 * self.stale / self.flows) as usize;
                outcome.renewed = outcome.stale.min(32);
                self.stale -= outcome.renewed as f64;
                self.known += outcome.renewed as f64;
                let missed = 256 - outcome.known;
                let new = missed - outcome.stale;
                if notes_flows {
                    // Few flows come again soon; many do not.
                    let seen = new as f64 * (self.recurring / self.flows).min(1.0);
                    outcome.seen = Some(seen as usize + outcome.stale);
                }
                if may_watch {
                    outcome.watched = match of_any_flow {
                        true => new,
                        false => (outcome.seen.unwrap_or(0) - outcome.stale).min(32),
                    };
                    let most = self.flows - self.stale;
                    self.known = (self.known + outcome.watched as f64).min(most);
                }
                let asking = Duration::from_nanos((256.0 * self.lookup) as u64);
                outcome.took.asking = asking;
                let time = 256.0 * self.lookup
                    + missed as f64 * self.none
                    + (outcome.watched + outcome.renewed) as f64 * self.watch;
                NOW.set(NOW.get() + time);
            }
            self.judge.end(outcome);
        }
        (NOW.get() - begun) / (f64::from(vectors) * 256.0 * self.none)
    }
}

#[test]
fn caches_that_pay_are_asked() {
    let mut model = Model::new(60.0, 20.0, 1000.0);
    model.run(2000);
    let share = model.run(20_000);
    assert!(share < 0.40, "{share}");
    // And as soon as they do not any more, they are not.
    model.lookup = 70.0;
    model.run(60_000);
    model.passed = 0;
    let share = model.run(20_000);
    assert!(share < 1.03, "{share}");
    assert!(model.passed > 19_000, "{}", model.passed);
}

#[test]
fn caches_that_do_not_pay_cost_little() {
    for (none, lookup) in [(30.0, 28.0), (30.0, 40.0), (60.0, 90.0), (200.0, 250.0)] {
        for flows in [64.0, 80_000.0, 1e9] {
            let mut model = Model::new(none, lookup, flows);
            let share = model.run(10_000);
            assert!(share < 2.0, "{none}, {lookup}, {flows}: {share} at first");
            let share = model.run(100_000);
            assert!(share < 1.03, "{none}, {lookup}, {flows}: {share}");
        }
    }
    // Nor if no flow ever comes again.
    let share = Model::new(200.0, 20.0, 1e12).run(100_000);
    assert!(share < 1.03, "{share}");
}

#[test]
fn caches_that_would_pay_grow() {
    // Of 40,000 flows none is known: caches are slower than none until some are.
    let mut model = Model::new(200.0, 40.0, 40_000.0);
    model.run(20_000);
    let share = model.run(20_000);
    assert!(share < 0.35, "{share}, {} are known", model.known);
}

#[test]
fn caches_grow_where_few_flows_come_again() {
    // No flow comes again soon, but after 15,000 others each does.
    let mut model = Model::new(100.0, 40.0, 15_000.0);
    model.recurring = 0.0;
    model.run(20_000);
    let share = model.run(20_000);
    assert!(share < 0.55, "{share}, {} are known", model.known);
}

#[test]
fn caches_that_pay_renew_what_changes_made_stale() {
    for nth in 0..20 {
        let mut model = Model::new(300.0, 40.0, 20_000.0);
        // Between rounds, and in the middle of one.
        model.run(20_000 + nth * 37);
        (model.stale, model.known) = (model.known, 0.0);
        model.run(4_000);
        let share = model.run(2_000);
        assert!(share < 0.3, "{nth}: {share}, {} are known", model.known);
    }
}

#[test]
fn caches_that_changes_make_stale_too_often_are_passed_by() {
    // Flows are stale before what it took to learn them is saved.
    let mut model = Model::new(60.0, 20.0, 40_000.0);
    let change = |model: &mut Model| {
        (model.stale, model.known) = (model.stale + model.known, 0.0);
        model.run(500)
    };
    for _ in 0..20 {
        change(&mut model);
    }
    let shares = (0..200).map(|_| change(&mut model));
    let share = shares.sum::<f64>() / 200.0;
    assert!(share < 1.05, "{share}");
}

#[test]
fn without_a_clock_all_caches_are_asked() {
    let mut judge = Judge::new(BOTH, None);
    for _ in 0..1000 {
        let turn = Turn {
            levels: BOTH,
            notes_flows: true,
            may_watch: true,
            of_any_flow: true,
        };
        assert_eq!(judge.begin(), turn);
        judge.end(Outcome {
            packets: 1,
            ..Outcome::default()
        });
    }
}
