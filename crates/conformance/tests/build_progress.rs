//! Measures the longest CPU time of builds without a call of the progress callback. It is a
//! measurement and not part of the test suite:
//!
//! ```text
//! cargo test --release -p classyard-conformance --test build_progress -- --ignored --nocapture
//! ```
//! `ENGINES=forest,tss` and `SETS=ipv4-64k,wide-16k` select rows.

// Prints the measurement.
#![allow(clippy::print_stdout)]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use classyard::{
    ActionId, EngineSpec, Field, FieldMatch, Limits, MatchKind, Priority, Progress, RuleId,
    RuleSet, Schema,
};
use classyard_workload::generate::{Family, OpenFlowRules, Profile, Recipe, generate};
use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time of this thread.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).expect("time goes on");
    let nanoseconds = u32::try_from(now.tv_nsec).expect("less than a second");
    Duration::new(seconds, nanoseconds)
}

/// Records the longest time between two calls of the progress callback.
struct Gaps {
    last: Duration,
    stage: &'static str,
    reports: usize,
    longest: Duration,
    /// The stages reported before and after the longest gap.
    between: (&'static str, &'static str),
}

impl Gaps {
    fn new() -> Gaps {
        Gaps {
            last: processor_time(),
            stage: "start",
            reports: 0,
            longest: Duration::ZERO,
            between: ("", ""),
        }
    }

    fn note(&mut self, stage: &'static str) {
        let now = processor_time();
        if now - self.last > self.longest {
            self.longest = now - self.last;
            self.between = (self.stage, stage);
        }
        (self.last, self.stage) = (now, stage);
        self.reports += 1;
    }
}

impl Progress for Gaps {
    fn report(&mut self, stage: &'static str, _: usize, _: usize) -> ControlFlow<()> {
        self.note(stage);
        ControlFlow::Continue(())
    }
}

fn generated(family: Family, rules: usize) -> RuleSet {
    let mut recipe = Recipe::new(family, rules, 1);
    recipe.accept_fewer = true;
    let policy = generate(&recipe, &mut classyard::NoProgress).unwrap();
    policy.parts()[0].clone()
}

fn ipv4(rules: usize) -> RuleSet {
    let profile = Arc::new(Profile::built_in("fw1").unwrap().clone());
    generated(Family::Ipv4(profile), rules)
}

fn openflow(rules: usize) -> RuleSet {
    generated(
        Family::OpenFlow15(Box::new(OpenFlowRules::consistent())),
        rules,
    )
}

/// Returns rules with 16 fields of 64 bits and random masks, so that no two rules share a
/// mask.
fn wide(rules: usize) -> RuleSet {
    let fields = (0..16).map(|n| Field::new(&format!("f{n}"), 64, MatchKind::Ternary));
    let schema = Schema::new("wide", fields.collect()).unwrap();
    let mut set = RuleSet::new(&schema);
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        u128::from(state ^ state >> 29)
    };
    for number in 0..rules {
        let matches: Vec<FieldMatch> = (0..16)
            .map(|_| {
                let mask = random() & random();
                FieldMatch::Ternary {
                    value: random() & mask,
                    mask,
                }
            })
            .collect();
        let priority = Priority(u32::try_from(random() % 1000).unwrap());
        let id = RuleId::from_index(number);
        set.add(id, priority, ActionId(0), &matches).unwrap();
    }
    set
}

/// True if the row `name` is selected. All rows are selected if the environment variable is
/// not set.
fn chosen(variable: &str, name: &str) -> bool {
    std::env::var(variable).map_or(true, |list| list.split(',').any(|row| row == name))
}

#[test]
#[ignore = "a measurement: it takes minutes and prints a table"]
fn the_longest_time_between_reports() {
    type Make = fn(usize) -> RuleSet;
    let sets: [(&str, Make, usize); 7] = [
        ("ipv4-64k", ipv4, 1 << 16),
        ("ipv4-256k", ipv4, 1 << 18),
        ("ipv4-1M", ipv4, 1 << 20),
        ("openflow15-64k", openflow, 1 << 16),
        ("openflow15-256k", openflow, 1 << 18),
        ("openflow15-1M", openflow, 1 << 20),
        ("wide-16k", wide, 1 << 14),
    ];
    println!("set, engine, rules, seconds, reports, longest gap in ms, between");
    for (name, make, count) in sets {
        if !chosen("SETS", name) {
            continue;
        }
        let rules = make(count);
        for spec in EngineSpec::all() {
            let engine = spec.to_string();
            if !chosen("ENGINES", &engine) {
                continue;
            }
            let row = |what: &str, gaps: &Gaps, time: Duration| {
                println!(
                    "{name}, {engine}{what}, {}, {:.2}, {}, {:.1}, {} | {}",
                    rules.len(),
                    time.as_secs_f64(),
                    gaps.reports,
                    gaps.longest.as_secs_f64() * 1e3,
                    gaps.between.0,
                    gaps.between.1,
                );
            };
            let start = processor_time();
            let mut gaps = Gaps::new();
            let mut built = spec.build(&rules, &Limits::default(), &mut gaps).unwrap();
            gaps.note("end");
            row("", &gaps, processor_time() - start);
            let Some(dynamic) = built.as_dynamic() else {
                continue;
            };
            if let Some(fitted) = dynamic.reoptimise() {
                let snapshot = fitted.snapshot();
                let start = processor_time();
                let mut gaps = Gaps::new();
                snapshot.compute(&mut gaps).unwrap();
                gaps.note("end");
                row(" (plan)", &gaps, processor_time() - start);
            }
            if std::env::var("REBUILD").is_ok() {
                let start = processor_time();
                let mut gaps = Gaps::new();
                dynamic.rebuild(&mut gaps).unwrap();
                gaps.note("end");
                row(" (rebuild)", &gaps, processor_time() - start);
            }
        }
    }
}
