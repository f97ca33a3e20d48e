//! Tests of the cache selector with model datapaths.

use std::cell::Cell;

use classyard::author::splitmix;

use super::*;
use crate::pipeline::cached::learn::{SAMPLING_PACKETS, SEEN_SLOTS};

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
#[derive(Clone)]
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
    /// The share of packets whose flows were seen recently.
    seen: f64,
    /// The maximum number of flows in the microflow cache.
    microflows: f64,
    /// The time of a vector varies by this share. A few vectors are interrupted.
    noise: f64,
    random: u64,
    /// Vectors after a change of levels take up to this share longer, until the memory of
    /// the levels is in the CPU caches.
    displaced: f64,
    cold: f64,
    latest: Levels,
    /// Vectors between changes of entries, which make all megaflows stale, and vectors
    /// between changes of traffic, after which no flow is cached; 0 for none.
    entry_change_vectors: u32,
    traffic_change_vectors: u32,
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
            // Other flows have not taken the flow's slot since its previous packet.
            seen: (-flows / SEEN_SLOTS as f64).exp(),
            microflows: f64::INFINITY,
            noise: 0.0,
            random: 1,
            displaced: 0.0,
            cold: 0.0,
            latest: BOTH,
            entry_change_vectors: 0,
            traffic_change_vectors: 0,
            asked: 0,
            passed: 0,
        }
    }

    /// Processes vectors of 256 packets. Returns their time divided by the time without
    /// caches.
    fn run(&mut self, vectors: u32) -> f64 {
        let begun = NOW.get();
        for number in 1..=vectors {
            if self.entry_change_vectors > 0 && number.is_multiple_of(self.entry_change_vectors) {
                self.make_stale();
            }
            if self.traffic_change_vectors > 0 && number.is_multiple_of(self.traffic_change_vectors)
            {
                (self.stale, self.known_flows) = (0.0, 0.0);
            }
            let plan = self.selector.begin();
            let mut outcome = Outcome {
                packets: 256,
                ..Outcome::default()
            };
            let time = match plan.levels == self.selector.choices[0].levels {
                true => {
                    self.passed += 1;
                    256.0 * self.none
                }
                false => {
                    self.asked += 1;
                    self.look_up(plan, &mut outcome)
                }
            };
            NOW.set(NOW.get() + time * self.delay(plan.levels));
            self.selector.end(outcome);
        }
        (NOW.get() - begun) / (f64::from(vectors) * 256.0 * self.none)
    }

    /// Changes entries so that all megaflows are stale.
    fn make_stale(&mut self) {
        (self.stale, self.known_flows) = (self.stale + self.known_flows, 0.0);
    }

    /// Returns the time with the best levels and full caches, divided by the time without
    /// caches.
    fn best(&self) -> f64 {
        let misses_microflows = 1.0 - (self.microflows / self.flows).min(1.0);
        let both = self.lookup * (1.0 + misses_microflows);
        let microflows = self.lookup + misses_microflows * self.none;
        let caches = self.lookup.min(both).min(microflows);
        match self.flows < 1e6 {
            true => (caches / self.none).min(1.0),
            false => 1.0,
        }
    }

    /// Looks up and records the packets of a vector. Returns the time.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn look_up(&mut self, plan: VectorPlan, outcome: &mut Outcome) -> f64 {
        let microflow_hits = 256.0 * self.known_flows.min(self.microflows) / self.flows;
        let hits = match plan.levels.megaflows {
            true => 256.0 * self.known_flows / self.flows,
            false => microflow_hits,
        };
        outcome.hits = hits as usize;
        outcome.stale = (256.0 * self.stale / self.flows) as usize;
        outcome.renewed = outcome.stale.min(32);
        self.stale -= outcome.renewed as f64;
        self.known_flows += outcome.renewed as f64;
        let missed = 256 - outcome.hits;
        let new = missed - outcome.stale.min(missed);
        if plan.notes_flows {
            outcome.seen = Some((new as f64 * self.seen) as usize + outcome.stale);
        }
        if plan.may_record {
            let seen = outcome.seen.unwrap_or(0) - outcome.stale;
            let sampled = (new - seen) / SAMPLING_PACKETS as usize;
            outcome.recorded = match plan.of_any_flow {
                true => new.min(32),
                false => (seen + sampled).min(32),
            };
            let max_known = self.flows - self.stale;
            self.known_flows = (self.known_flows + outcome.recorded as f64).min(max_known);
        }
        outcome.took.asking = Duration::from_nanos((256.0 * self.lookup) as u64);
        let second_lookups = match plan.levels == BOTH {
            true => 256.0 - microflow_hits,
            false => 0.0,
        };
        (256.0 + second_lookups) * self.lookup
            + missed as f64 * self.none
            + (outcome.recorded + outcome.renewed) as f64 * self.record_ns
    }

    /// Returns the factor of a vector's time: memory that is not in the CPU caches, noise,
    /// and interruptions.
    fn delay(&mut self, levels: Levels) -> f64 {
        if levels != self.latest {
            (self.latest, self.cold) = (levels, 1.0);
        }
        self.cold *= 0.97;
        #[allow(clippy::cast_precision_loss)] // 53 bits
        let uniform = (splitmix(&mut self.random) >> 11) as f64 / (1u64 << 53) as f64;
        let is_interrupted = self.noise > 0.0 && splitmix(&mut self.random).is_multiple_of(2000);
        let interruption = if is_interrupted { 20.0 } else { 0.0 };
        1.0 + self.displaced * self.cold + self.noise * (2.0 * uniform - 1.0) + interruption
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
    model.seen = 0.0;
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
        model.make_stale();
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
    model.entry_change_vectors = 500;
    model.run(10_000);
    let share = model.run(100_000);
    assert!(share < 1.05, "{share}");
}

#[test]
fn without_a_clock_all_caches_are_asked() {
    let mut selector = CacheSelector::new(BOTH, None);
    for _ in 0..1000 {
        let plan = VectorPlan {
            levels: BOTH,
            notes_flows: true,
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

/// A model datapath with noise, and with CPU caches that are too small for all choices.
struct Datapath {
    name: &'static str,
    model: Model,
    /// Maximum time of the first 1.5 seconds, divided by the time without caches.
    max_first: f64,
    /// Maximum time of the next 10 seconds, divided by the time with the best levels.
    max_later: f64,
}

fn datapaths() -> Vec<Datapath> {
    let with = |model, microflows| Model {
        microflows,
        noise: 0.1,
        displaced: 0.3,
        ..model
    };
    let datapath = |name, model, max_first, max_later| Datapath {
        name,
        model,
        max_first,
        max_later,
    };
    let few = with(Model::new(600.0, 40.0, 1e3), 8192.0);
    let short = with(Model::new(60.0, 55.0, 1e3), 8192.0);
    let very_short = with(Model::new(30.0, 40.0, 1e5), 8192.0);
    let many = with(Model::new(300.0, 40.0, 4e4), 8192.0);
    // Few megaflows cover many flows, and no flow recurs.
    let shared = with(Model::new(300.0, 40.0, 1.5e4), 0.0);
    let shared = Model {
        seen: 0.0,
        ..shared
    };
    let most = with(Model::new(700.0, 60.0, 1.2e5), 8192.0);
    let slow = with(Model::new(400.0, 300.0, 4e4), 8192.0);
    let endless = with(Model::new(200.0, 60.0, 1e9), 8192.0);
    let endless_slow = with(Model::new(400.0, 400.0, 1e9), 0.0);
    let endless_seen = with(Model::new(200.0, 600.0, 1e9), 0.0);
    let endless_seen = Model {
        seen: 1.0,
        ..endless_seen
    };
    // The names have the number of vectors between changes.
    let changed = |entry_change_vectors, traffic_change_vectors| Model {
        entry_change_vectors,
        traffic_change_vectors,
        ..many.clone()
    };
    vec![
        datapath("few flows", few, 0.1, 1.12),
        datapath("a short pipeline", short, 1.0, 1.03),
        datapath("a very short pipeline", very_short, 1.05, 1.03),
        datapath("more flows than microflows", many.clone(), 0.45, 1.12),
        datapath("megaflows of many flows", shared, 0.4, 1.12),
        datapath("most flows", most, 0.75, 1.65),
        datapath("slow lookups", slow, 1.3, 1.1),
        datapath("flows never recur", endless, 1.06, 1.03),
        datapath("slow lookups, flows never recur", endless_slow, 1.05, 1.03),
        datapath("slow lookups, new megaflows", endless_seen, 1.05, 1.03),
        datapath("entries change, 7,000", changed(7000, 0), 0.75, 4.5),
        datapath("entries change, 9,000", changed(9000, 0), 0.75, 4.5),
        datapath("entries change, 11,000", changed(11_000, 0), 0.75, 4.5),
        datapath("flows change, 17,000", changed(0, 17_000), 0.75, 4.5),
        datapath("flows change, 23,000", changed(0, 23_000), 0.75, 4.5),
        datapath("flows change, 31,000", changed(0, 31_000), 0.75, 4.5),
    ]
}

/// Prints the times of the model datapaths. `bench/constants` reads them.
#[test]
#[allow(clippy::print_stdout)] // see above
fn choosing_costs_little() {
    println!("datapath;first;later");
    let mut exceeded = Vec::new();
    for datapath in datapaths() {
        let Datapath {
            name,
            mut model,
            max_first,
            max_later,
        } = datapath;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a few seconds
        let vectors = |seconds: f64| (seconds * 1e9 / 256.0 / model.none) as u32;
        let (first, later) = (vectors(1.5), vectors(10.0));
        let first = model.run(first);
        let later = model.run(later) / model.best();
        println!("{name};{first:.4};{later:.4}");
        if first > max_first || later > max_later {
            exceeded.push(name);
        }
    }
    assert!(exceeded.is_empty(), "more time than allowed: {exceeded:?}");
}
