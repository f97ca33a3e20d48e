//! Every registered engine, with its defaults and with each instruction set
//! that the processor has, over many random schemas.
//!
//! `CLASSYARD_SEEDS=n` multiplies the number of rounds by n. Each round has another seed.

// Prints the numbers of checks, and the skipped checks.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use classyard::{EngineSpec, NoProgress};
use classyard_conformance::differential::Counters;
use classyard_conformance::rounds::Round;
use classyard_conformance::{Subject, isa_specs};
use classyard_workload::formats::write_schema;

/// The number of rounds by default. They take a few seconds.
const ROUNDS: u64 = 25;

/// The number of changes in each round.
const UPDATES: usize = 600;

fn rounds() -> u64 {
    let seeds = std::env::var("CLASSYARD_SEEDS");
    let seeds: Option<u64> = seeds.ok().and_then(|text| text.parse().ok());
    ROUNDS * seeds.unwrap_or(1)
}

#[test]
fn every_engine_and_instruction_set_agrees_on_random_schemas() {
    let isas = isa_specs();
    println!("instruction sets: {isas:?}");
    let specs = EngineSpec::all().chain(isas);
    let subjects: Vec<Subject> = specs.map(Subject::from).collect();
    let mut sum = Counters::default();
    for seed in 7000..7000 + rounds() {
        let round = Round::draw(seed, Some(UPDATES));
        let outcome = round.run(&subjects, &mut NoProgress);
        if let Some(found) = outcome.disagreement {
            let mut schema = Vec::new();
            write_schema(&round.schema, &mut schema).unwrap();
            let schema = String::from_utf8(schema).unwrap();
            panic!("{found}\nin a round with the schema\n{schema}");
        }
        for skip in &outcome.skips {
            let subject = subjects.iter().find(|s| s.name() == skip.subject);
            assert!(!subject.unwrap().is_dynamic(), "{skip}");
            eprintln!("{skip}");
        }
        sum.add(&outcome.counters);
    }
    println!("{} lookups compared: {sum}", sum.lookups());
    assert!(sum.lookups() > 1_000_000, "{sum}");
}

#[test]
fn the_scalar_code_is_among_the_instruction_sets() {
    let specs: Vec<String> = isa_specs().iter().map(ToString::to_string).collect();
    assert!(
        specs.iter().any(|spec| spec == "forest:isa=scalar"),
        "{specs:?}"
    );
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
        assert!(
            specs.iter().any(|spec| spec == "forest:isa=avx2"),
            "{specs:?}"
        );
    }
}
