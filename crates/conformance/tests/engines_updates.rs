//! Every registered engine, with its defaults and with each of its options set
//! to several values, over long random streams of updates.
//!
//! `CLASSYARD_SEEDS=n` multiplies the number of streams by n. Each stream has another seed.
//! `CLASSYARD_SEEDS=1..n` runs only the streams that do not run by default; a separate CI
//! step does this.

// Prints the numbers of checks, and the skipped checks.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::ops::Range;
use std::sync::Arc;

use classyard::{NoProgress, RuleSet, Schema};
use classyard_conformance::Subject;
use classyard_conformance::differential::{Counters, Options, differential};
use classyard_conformance::random::{Dice, RuleMaker, SeededDice, random_schema};

/// Returns the numbers of the streams to run. By default only stream 0 runs.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("CLASSYARD_SEEDS") else {
        return 0..1;
    };
    let range = match text.split_once("..") {
        Some((first, end)) => first.parse().ok().zip(end.parse().ok()),
        None => text.parse().ok().map(|end| (0, end)),
    };
    let Some((first, end)) = range else {
        panic!("CLASSYARD_SEEDS is `{text}`; expected a number, or a range such as 1..3");
    };
    first..end
}

/// Runs a stream. A failure message has all data to repeat it.
fn run(subjects: &[Subject], schema: &Arc<Schema>, options: &Options) -> Counters {
    let mut dice = SeededDice::new(options.seed);
    let rules = match dice.below(3) {
        0 => RuleSet::new(schema),
        _ => RuleMaker::new(schema, &mut dice).rule_set(options.rules, &mut dice),
    };
    let outcome = differential(subjects, &rules, options, &mut NoProgress);
    if let Some(found) = outcome.disagreement {
        panic!("{schema:?}\n{found}");
    }
    for skip in &outcome.skips {
        let subject = subjects.iter().find(|s| s.name() == skip.subject);
        assert!(!subject.unwrap().is_dynamic(), "{skip}");
        eprintln!("{skip}");
    }
    outcome.counters
}

fn stream(schema: &Arc<Schema>, first: u64) {
    let name = schema.name();
    let (mut changes, mut asked) = (0, 0);
    for (subjects, updates) in [(Subject::engines(), 1500), (Subject::variants(), 600)] {
        for seed in seeds().map(|number| first + number) {
            let options = Options {
                seed,
                updates,
                ..Options::default()
            };
            let counters = run(&subjects, schema, &options);
            println!("{name} seed {seed}: {counters}");
            changes += counters.changes;
            asked += updates;
        }
    }
    // Some transactions must be refused. A single short stream may have many of them.
    assert!(changes * 3 > asked * 2, "{name}: {changes} of {asked}");
}

#[test]
fn ipv4_five_tuples() {
    stream(&Schema::ipv4_5tuple(), 1000);
}

#[test]
fn ipv6_five_tuples() {
    stream(&Schema::ipv6_5tuple(), 2000);
}

#[test]
fn fifteen_fields() {
    stream(&Schema::openflow15(), 3000);
}

/// Runs a short stream for each of many schemas.
#[test]
fn any_schema() {
    let subjects = Subject::variants();
    let numbers = seeds();
    for seed in 4000 + 8 * numbers.start..4000 + 8 * numbers.end {
        let mut dice = SeededDice::new(seed);
        let schema = random_schema(&mut dice);
        let rules = [3, 20, 60][dice.below(3)];
        let options = Options {
            seed,
            updates: 400,
            rules,
            limit: rules + rules / 2,
            headers: 32,
            masked: 8,
            ..Options::default()
        };
        run(&subjects, &schema, &options);
    }
}

/// Tests large tables, in which buckets overflow and tables split.
#[test]
fn many_rules() {
    let subjects = Subject::engines();
    for seed in seeds().map(|number| 5000 + number) {
        let options = Options {
            seed,
            updates: 1500,
            rules: 1000,
            limit: 1200,
            check_every: 40,
            build_every: 6,
            masked: 8,
            ..Options::default()
        };
        let schema = Schema::ipv4_5tuple();
        run(&subjects, &schema, &options);
    }
}
