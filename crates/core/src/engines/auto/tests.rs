//! Choices over toy engines with known costs, and over all engines.

use std::ops::ControlFlow;

use super::*;
use crate::contract::classifier::NoProgress;
use crate::contract::spec::Wraps;
use crate::cost::estimate::Costs;
use crate::cost::machine::{Operation, Work};
use crate::engines::linear;
use crate::model::rule::Rule;
use crate::model::schema::Schema;
use crate::model::seed::splitmix;

/// A scan under another name.
const fn toy(
    name: &'static str,
    dynamic: fn(&EngineSpec) -> bool,
    estimate: crate::contract::spec::EstimateFn,
) -> Engine {
    Engine {
        name,
        wraps: Wraps::Nothing,
        options: &[],
        dynamic,
        estimate,
        ..linear::ENGINE
    }
}

/// Work that takes `ns` nanoseconds on the default machine.
fn work(ns: f64) -> Work {
    Work::of(ns / Machine::default().instruction_ns())
}

fn costs(batch: f64, single: f64, update: Option<f64>, bytes: usize) -> Costs {
    Costs {
        bytes,
        build: Work::of(1.0),
        batch: work(batch),
        single: work(single),
        update: update.map(work),
    }
}

/// Toy engines with their nanoseconds on the default machine: lookups in batches,
/// single lookups, updates.
static TOYS: &[Engine] = &[
    toy("fast-static", Engine::takes_no_updates, |_, _| {
        Ok(costs(10.0, 50.0, None, 1000))
    }),
    toy("fast-lookups", Engine::takes_updates, |_, _| {
        Ok(costs(20.0, 60.0, Some(1000.0), 2000))
    }),
    toy("fast-updates", Engine::takes_updates, |_, _| {
        Ok(costs(40.0, 45.0, Some(100.0), 500))
    }),
    toy("grows", Engine::takes_updates, |_, shape| {
        #[allow(clippy::cast_precision_loss)]
        Ok(costs(shape.rules() as f64, 100.0, Some(500.0), 10))
    }),
    Engine {
        build: |_| {
            Err(BuildError::TooManyPeakBytes {
                stage: "testing",
                needed: 2,
                limit: 1,
            })
        },
        ..toy("never-built", Engine::takes_no_updates, |_, _| {
            Ok(costs(1.0, 1.0, None, 10))
        })
    },
];

fn toys() -> Auto {
    Auto::default().with_registry(TOYS)
}

/// All toy engines except the engine that cannot be built.
fn sound() -> Auto {
    let specs = EngineSpec::all_in(TOYS).filter(|spec| spec.engine().name != "never-built");
    toys().with_engines(specs.collect())
}

fn rules(count: u32) -> RuleSet {
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    let mut state = 7;
    for id in 0..count {
        let [source, destination] =
            [(); 2].map(|()| u32::try_from(splitmix(&mut state) >> 32).unwrap());
        let rule = Rule::builder(&schema)
            .id(id)
            .priority(id % 17)
            .field("src", std::net::Ipv4Addr::from_bits(source))
            .field("dst", std::net::Ipv4Addr::from_bits(destination));
        rules.push(rule.build().unwrap().view()).unwrap();
    }
    rules
}

fn names(ranking: &Ranking) -> Vec<&'static str> {
    let candidates = ranking.candidates.iter();
    candidates.map(|one| one.spec.engine().name).collect()
}

#[test]
fn the_load_decides() {
    let shape = Shape::of(&rules(1000));
    let rank = |load| names(&sound().with_load(load).rank(&shape));
    let full = Load::default();
    assert_eq!(
        rank(full),
        ["fast-static", "fast-lookups", "fast-updates", "grows"]
    );
    let single = full.with_batch(1);
    assert_eq!(rank(single)[..2], ["fast-updates", "fast-static"]);
    let rare = full.with_lookups_per_update(1000.0);
    assert_eq!(rank(rare), ["fast-lookups", "fast-updates", "grows"]);
    let often = full.with_lookups_per_update(10.0);
    assert_eq!(rank(often)[0], "fast-updates");
}

/// One core makes lookups and updates. With several, one core makes each update on both
/// sides.
#[test]
fn cores_share_the_work() {
    let shape = Shape::of(&rules(10));
    let ns = |load: Load| {
        let ranking = sound().with_load(load).rank(&shape);
        let spec = EngineSpec::parse_in(TOYS, "fast-lookups").unwrap();
        ranking.candidate(&spec).unwrap().ns
    };
    let load = Load::default().with_lookups_per_update(100.0);
    let expected = [(1, 30.0), (2, 20.0), (3, 20.0), (9, 20.0)];
    for (cores, expected) in expected {
        let found = ns(load.with_cores(cores));
        assert!((found - expected).abs() < 1e-9, "{cores} cores: {found} ns");
    }
    let idle = ns(Load::default().with_cores(4));
    assert!((idle - 5.0).abs() < 1e-9, "{idle} ns");
    let between = ns(Load::default().with_batch(4));
    assert!((between - 30.0).abs() < 1e-9, "{between} ns");
}

#[test]
fn what_meets_a_limit_gives_way_to_the_next() {
    let rules = rules(100);
    let chosen = toys().build(&rules, &mut NoProgress).unwrap();
    assert_eq!(chosen.spec.engine().name, "fast-static");
    let refused: Vec<&str> = chosen
        .refused
        .iter()
        .map(|one| one.spec.engine().name)
        .collect();
    assert_eq!(refused, ["never-built"]);

    let limits = Limits {
        bytes: 900,
        ..Limits::default()
    };
    let ranking = toys().with_limits(limits).rank(&Shape::of(&rules));
    assert_eq!(names(&ranking), ["never-built", "fast-updates", "grows"]);
    assert_eq!(ranking.excluded.len(), 2);

    let never = vec![EngineSpec::parse_in(TOYS, "never-built").unwrap()];
    let error = toys().with_engines(never).build(&rules, &mut NoProgress);
    assert!(matches!(
        error.err(),
        Some(BuildError::TooManyPeakBytes { .. })
    ));
    let none = toys().with_engines(Vec::new());
    let error = none.build(&rules, &mut NoProgress);
    assert!(matches!(error.err(), Some(BuildError::Static { .. })));
}

struct Cancelled;

impl Progress for Cancelled {
    fn report(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

#[test]
fn a_stopped_build_is_no_reason_for_another_engine() {
    let stopped = sound().build(&rules(1000), &mut Cancelled);
    assert!(matches!(stopped.err(), Some(BuildError::Stopped { .. })));
}

/// A clock for calls of given durations, with two readings for each call.
fn clock(mut took: impl FnMut(usize) -> u64) -> impl FnMut() -> Duration {
    let (mut now, mut readings) = (Duration::ZERO, 0);
    move || {
        readings += 1;
        if readings % 2 == 0 {
            now += Duration::from_micros(took(readings / 2 - 1));
        }
        now
    }
}

#[test]
fn the_one_that_is_fastest_when_tried_out_stays() {
    let rules = rules(50);
    let headers = headers_of(&rules, 100);
    // The first engine alone has one call to warm up and one that counts. Then calls
    // come in pairs.
    let mut ticks = clock(|call| match call {
        0 | 1 => 500,
        _ if call % 2 == 0 => 500,
        2..=5 => 300,
        _ => 400,
    });
    let mut how = TryOut {
        keys: headers.as_slice(),
        candidates: 3,
        rounds: 1,
        clock: &mut ticks,
    };
    let chosen = toys().try_out(&rules, &mut how, &mut NoProgress).unwrap();
    let tried: Vec<_> = chosen
        .trials
        .iter()
        .map(|one| one.spec.engine().name)
        .collect();
    assert_eq!(tried, ["fast-static", "fast-lookups", "fast-updates"]);
    // The second engine was faster than the first, and the third faster than the second.
    assert_eq!(chosen.spec.engine().name, "fast-updates");
    assert_eq!(chosen.refused.len(), 1);
    assert!((chosen.trials[1].lookup_ns - 3000.0).abs() < 1e-6);
    assert_eq!(chosen.classifier.stats().rules, 50);
}

/// Two engines at a time do not fit.
#[test]
fn trials_stay_within_the_limit_on_peak_bytes() {
    let rules = rules(5000);
    let headers = headers_of(&rules, 10);
    let spec = EngineSpec::parse_in(TOYS, "fast-static").unwrap();
    let mut memory = Memory::unlimited();
    let limits = Limits::default();
    let built = spec.build_within(&rules, &limits, &mut NoProgress, &mut memory);
    let (bytes, peak) = (built.unwrap().stats().bytes(), memory.peak());
    let limits = Limits {
        peak_bytes: peak + bytes / 2,
        ..Limits::default()
    };
    let mut ticks = clock(|_| 1);
    let mut how = TryOut {
        keys: headers.as_slice(),
        candidates: 3,
        rounds: 2,
        clock: &mut ticks,
    };
    let auto = sound().with_limits(limits);
    let chosen = auto.try_out(&rules, &mut how, &mut NoProgress).unwrap();
    assert_eq!(chosen.spec, spec);
    assert_eq!((chosen.trials.len(), chosen.refused.len()), (1, 3));
}

#[test]
fn drifted_rules_are_reviewed() {
    let auto = toys().with_load(Load::default().with_lookups_per_update(100.0));
    let grows = EngineSpec::parse_in(TOYS, "grows").unwrap();
    let few = auto.review(&grows, &rules(5));
    assert_eq!((few.better, few.now_ns.map(f64::round)), (None, Some(10.0)));
    let many = auto.review(&grows, &rules(60));
    let better = many.better.expect("another one is better");
    assert_eq!(better.engine().name, "fast-lookups");
    // Better, but by less than the margin.
    let slightly = auto.review(&grows, &rules(28));
    assert_eq!(slightly.ranking.candidates[0].spec, better);
    assert_eq!(slightly.better, None);
    // An engine that could not be built any more is replaced, whatever the margin.
    let limits = Limits {
        bytes: 9,
        ..Limits::default()
    };
    let gone = auto.with_limits(limits).review(&grows, &rules(5));
    assert_eq!((gone.now_ns, gone.better), (None, None));
}

/// Every registered engine is ranked once; static engines plain or within `sfl`.
#[test]
fn all_engines_are_asked() {
    let shape = Shape::of(&rules(200));
    for load in [
        Load::default(),
        Load::default().with_lookups_per_update(2500.7),
    ] {
        let ranking = Auto::default().with_load(load).rank(&shape);
        assert!(ranking.excluded.is_empty(), "{:?}", ranking.excluded);
        let single = EngineSpec::all().filter(|spec| spec.inner().is_none());
        assert_eq!(ranking.candidates.len(), single.count());
        let sorted = ranking.candidates.is_sorted_by(|a, b| a.ns <= b.ns);
        assert!(sorted);
        for candidate in &ranking.candidates {
            let text = candidate.spec.to_string();
            let is_static = load.lookups_per_update().is_none();
            assert_eq!(
                text.ends_with("):lookups=2500"),
                candidate.spec.inner().is_some()
            );
            assert!(is_static || candidate.spec.is_dynamic(), "{text}");
            let parts = candidate.breakdown(&load, &Machine::default());
            let sum = parts.instructions_ns + parts.mispredictions_ns + parts.reads_ns;
            assert!(
                (sum + parts.factor_ns - candidate.lookup_ns).abs() < 1e-6,
                "{text}"
            );
            assert!(parts.factor_ns.abs() < 1e-6, "{text}");
        }
    }
}

#[test]
fn factors_of_the_machine_change_the_order() {
    let shape = Shape::of(&rules(15));
    let mut machine = Machine::default();
    machine
        .set_factor("fast-static", Operation::Batch, 5.0)
        .unwrap();
    let auto = sound().with_machine(machine.clone());
    let ranking = auto.rank(&shape);
    assert_eq!(names(&ranking)[..2], ["grows", "fast-lookups"]);
    let slowed = ranking
        .candidates
        .iter()
        .find(|one| one.costs.bytes == 1000)
        .unwrap();
    let parts = slowed.breakdown(auto.load(), &machine);
    assert!((parts.factor_ns - 40.0).abs() < 1e-9);
    assert!(parts.to_string().contains("calibrated +40.0 ns"), "{parts}");
}
