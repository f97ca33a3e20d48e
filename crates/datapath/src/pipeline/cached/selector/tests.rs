//! Tests of the cache selector with model datapaths.

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

/// A model datapath. Each of its steps takes a given time.
struct Model {
    selector: CacheSelector,
    /// Nanoseconds per packet without caches, per cache lookup, and to record a packet.
    none: f64,
    lookup: f64,
    record_ns: f64,
    /// The number of equally frequent flows, and the number of cached flows.
    flows: f64,
    known_flows: f64,
    /// Flows that were cached until entries changed.
    stale: f64,
    /// The number of flows that recur soon.
    recurring: f64,
    /// Vectors with caches, and vectors that bypassed the caches.
    asked: u64,
    passed: u64,
}

impl Model {
    fn new(none: f64, lookup: f64, flows: f64) -> Model {
        Model {
            selector: CacheSelector::new(BOTH, Some(clock)),
            none,
            lookup,
            record_ns: 2500.0,
            flows,
            known_flows: 0.0,
            stale: 0.0,
            recurring: 20_000.0,
            asked: 0,
            passed: 0,
        }
    }

    /// Processes vectors of 256 packets. Returns their time divided by the time without
    /// caches.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn run(&mut self, vectors: u32) -> f64 {
        let begun = NOW.get();
        for _ in 0..vectors {
            let VectorPlan {
                levels,
                marks_flows,
                may_record,
                of_any_flow,
            } = self.selector.begin();
            let mut outcome = Outcome {
                packets: 256,
                ..Outcome::default()
            };
            if levels == self.selector.choices[0].levels {
                NOW.set(NOW.get() + 256.0 * self.none);
                self.passed += 1;
            } else {
                self.asked += 1;
                let share = self.known_flows / self.flows;
                outcome.hits = (256.0 * share) as usize;
                outcome.stale = (256.0 * self.stale / self.flows) as usize;
                outcome.renewed = outcome.stale.min(32);
                self.stale -= outcome.renewed as f64;
                self.known_flows += outcome.renewed as f64;
                let missed = 256 - outcome.hits;
                let new = missed - outcome.stale;
                if marks_flows {
                    // A few flows recur soon, the other flows do not.
                    let seen = new as f64 * (self.recurring / self.flows).min(1.0);
                    outcome.seen = Some(seen as usize + outcome.stale);
                }
                if may_record {
                    outcome.recorded = match of_any_flow {
                        true => new,
                        false => (outcome.seen.unwrap_or(0) - outcome.stale).min(32),
                    };
                    let max_known = self.flows - self.stale;
                    self.known_flows = (self.known_flows + outcome.recorded as f64).min(max_known);
                }
                let asking = Duration::from_nanos((256.0 * self.lookup) as u64);
                outcome.took.asking = asking;
                let time = 256.0 * self.lookup
                    + missed as f64 * self.none
                    + (outcome.recorded + outcome.renewed) as f64 * self.record_ns;
                NOW.set(NOW.get() + time);
            }
            self.selector.end(outcome);
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
    // Caches that no longer pay are bypassed.
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
    // Caches must also cost little if no flow ever recurs.
    let share = Model::new(200.0, 20.0, 1e12).run(100_000);
    assert!(share < 1.03, "{share}");
}

#[test]
fn caches_that_would_pay_grow() {
    // None of the 40,000 flows is cached: at first, caches cost more than they save.
    let mut model = Model::new(200.0, 40.0, 40_000.0);
    model.run(20_000);
    let share = model.run(20_000);
    assert!(share < 0.35, "{share}, {} are known", model.known_flows);
}

#[test]
fn caches_grow_where_few_flows_come_again() {
    // No flow recurs soon, but each flow recurs after 15,000 other flows.
    let mut model = Model::new(100.0, 40.0, 15_000.0);
    model.recurring = 0.0;
    model.run(20_000);
    let share = model.run(20_000);
    assert!(share < 0.55, "{share}, {} are known", model.known_flows);
}

#[test]
fn caches_that_pay_renew_what_changes_made_stale() {
    for nth in 0..20 {
        let mut model = Model::new(300.0, 40.0, 20_000.0);
        // The change is between rounds, or in the middle of a round.
        model.run(20_000 + nth * 37);
        (model.stale, model.known_flows) = (model.known_flows, 0.0);
        model.run(4_000);
        let share = model.run(2_000);
        assert!(
            share < 0.3,
            "{nth}: {share}, {} are known",
            model.known_flows
        );
    }
}

#[test]
fn caches_that_changes_make_stale_too_often_are_passed_by() {
    // Flows become stale before their hits have saved the time to record them.
    let mut model = Model::new(60.0, 20.0, 40_000.0);
    let change = |model: &mut Model| {
        (model.stale, model.known_flows) = (model.stale + model.known_flows, 0.0);
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
    let mut selector = CacheSelector::new(BOTH, None);
    for _ in 0..1000 {
        let plan = VectorPlan {
            levels: BOTH,
            marks_flows: true,
            may_record: true,
            of_any_flow: true,
        };
        assert_eq!(selector.begin(), plan);
        selector.end(Outcome {
            packets: 1,
            ..Outcome::default()
        });
    }
}
