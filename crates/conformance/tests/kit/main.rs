//! Tests of the test kit: it must detect classifiers with one fault each, and its report
//! must be small and repeatable.

use classyard::{Field, Limits, MatchKind, NoProgress, RuleSet, Schema};
use classyard_conformance::Subject;
use classyard_conformance::differential::{Options, differential};
use classyard_conformance::random::{RuleMaker, SeededDice};
use classyard_conformance::vectors::parse;

mod broken;
mod collisions;

use broken::{FAULTS, Fault};

fn start(seed: u64) -> RuleSet {
    let mut dice = SeededDice::new(seed);
    let schema = Schema::ipv4_5tuple();
    RuleMaker::new(&schema, &mut dice).rule_set(20, &mut dice)
}

fn options(seed: u64) -> Options {
    Options {
        seed,
        updates: 3000,
        rules: 60,
        limit: 90,
        ..Options::default()
    }
}

#[test]
fn every_fault_is_found_with_every_seed() {
    for fault in FAULTS {
        for seed in 1..=3 {
            let subjects = [fault.subject()];
            let outcome = differential(&subjects, &start(seed), &options(seed), &mut NoProgress);
            let found = outcome.disagreement;
            let found = found
                .unwrap_or_else(|| panic!("{fault:?} survives seed {seed}: {}", outcome.counters));
            assert_eq!(found.subject, format!("{fault:?}"));
        }
    }
}

#[test]
fn what_is_found_is_made_small_and_repeats() {
    for fault in FAULTS {
        let subject = fault.subject();
        let subjects = [fault.subject()];
        let outcome = differential(&subjects, &start(7), &options(7), &mut NoProgress);
        let found = outcome
            .disagreement
            .unwrap_or_else(|| panic!("{fault:?} survives"));
        if fault == Fault::StaleScratch {
            // The fault requires a used scratch, but scenarios start with a new scratch.
            assert!(!found.minimal);
            continue;
        }
        assert!(found.minimal, "{found}");
        let size = found.scenario.size();
        let most = match fault {
            Fault::BatchOf17 | Fault::PanicsAt33 => 40,
            Fault::LimitOffByOne => 100,
            Fault::ThirteenthOfTuple => 20,
            Fault::CountOffByOne => 25,
            _ => 8,
        };
        assert!(size <= most, "{fault:?} has size {size}:\n{found}");
        let again = found.scenario.replay(&subject).unwrap();
        assert_eq!(again.as_ref(), Some(&found.finding));
        // Right engines pass the scenario, and its text is a case.
        let linear = &Subject::engines()[0];
        assert_eq!(found.scenario.replay(linear).unwrap(), None);
        let cases = parse("t", &found.to_case()).unwrap_or_else(|e| panic!("{e}\n{found}"));
        assert_eq!(cases.len(), 1);
    }
}

#[test]
fn fields_that_do_not_matter_are_left_out() {
    let kinds = [
        MatchKind::Exact,
        MatchKind::Prefix,
        MatchKind::Range,
        MatchKind::Ternary,
    ];
    let fields = (0..12).map(|i: u32| {
        let kind = kinds[i as usize % 4];
        Field::new(&format!("f{i}"), 9 * (i + 1), kind)
    });
    let schema = Schema::new("many", fields.collect()).unwrap();
    for fault in [Fault::HigherIdOnTie, Fault::BatchOf17] {
        let mut dice = SeededDice::new(3);
        let start = RuleMaker::new(&schema, &mut dice).rule_set(20, &mut dice);
        let outcome = differential(&[fault.subject()], &start, &options(3), &mut NoProgress);
        let found = outcome.disagreement.unwrap();
        assert!(found.minimal);
        let left = found.scenario.schema.fields().len();
        assert!(left <= 2, "{left} fields:\n{found}");
        assert!(parse("t", &found.to_case()).is_ok(), "{found}");
    }
}

#[test]
fn the_text_of_a_disagreement_tells_everything() {
    let subjects = [Fault::HigherIdOnTie.subject()];
    let outcome = differential(&subjects, &start(1), &options(1), &mut NoProgress);
    let text = outcome.disagreement.unwrap().to_string();
    for part in [
        "engine HigherIdOnTie",
        "expected rule",
        "found rule",
        "seed 1",
        "[[case]]",
        "schema = \"ipv4-5tuple\"",
        "rules = [",
        "probes = [",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn runs_repeat_and_may_be_stopped() {
    struct StopAt(usize);
    impl classyard::Progress for StopAt {
        fn report(&mut self, _: &str, done: usize, _: usize) -> std::ops::ControlFlow<()> {
            if done >= self.0 {
                std::ops::ControlFlow::Break(())
            } else {
                std::ops::ControlFlow::Continue(())
            }
        }
    }
    let subjects = Subject::engines();
    let run = || differential(&subjects, &start(5), &options(5), &mut NoProgress);
    let (first, second) = (run(), run());
    assert!(first.disagreement.is_none() && !first.stopped);
    assert_eq!(first.counters, second.counters);
    let stopped = differential(&subjects, &start(5), &options(5), &mut StopAt(100));
    assert!(stopped.stopped && stopped.counters.changes < first.counters.changes);
}

#[test]
fn an_engine_that_does_not_build_is_a_skip_with_its_reason() {
    let few = Limits::default().with_rules(5);
    let subject = Subject::new("few", false, move |rules, _, progress| {
        few.check_rules(rules.len())?;
        Subject::engines()[0].build(rules, &few, progress)
    });
    let outcome = differential(&[subject], &start(1), &options(1), &mut NoProgress);
    assert!(
        outcome
            .skips
            .iter()
            .any(|skip| skip.reason.contains("limit is 5"))
    );
}
