//! Every registered engine over rule sets and lists of changes that are hard
//! for classifiers: right answers, and bounded memory.

// Prints the numbers of checks.
#![allow(clippy::print_stdout)]

use classyard::{
    Classifier, EngineSpec, KeyVec, Limits, NoProgress, RuleRef, RuleSet, Scratch, Transaction,
    Winner,
};
use classyard_conformance::Subject;
use classyard_conformance::differential::{Options, differential};
use classyard_conformance::random::{SeededDice, draw_header};
use classyard_workload::generate::hostile::updates::{HostileUpdates, UpdateList, UpdateStep};
use classyard_workload::generate::{Family, Hostile, Recipe, generate};

fn rules(set: Hostile, size: usize, seed: u64) -> RuleSet {
    let recipe = Recipe::new(Family::Hostile(set), size, seed);
    let policy = generate(&recipe, &mut NoProgress).unwrap();
    policy.parts()[0].clone()
}

/// Runs streams of updates with rules similar to the rules of each hostile set.
#[test]
fn hostile_rules_are_answered_right_while_they_change() {
    let subjects = Subject::engines();
    for (set, seed) in Hostile::ALL.into_iter().zip(7000..) {
        for size in [40, 400] {
            let options = Options {
                seed,
                updates: 700,
                rules: size,
                limit: 2 * size,
                headers: 32,
                masked: 8,
                ..Options::default()
            };
            let start = rules(set, size, seed);
            let outcome = differential(&subjects, &start, &options, &mut NoProgress);
            if let Some(found) = outcome.disagreement {
                panic!("{}\n{found}", set.name());
            }
            println!("{} {size}: {}", set.name(), outcome.counters);
            assert!(outcome.counters.changes > 350, "{}", outcome.counters);
        }
    }
}

/// Applies a list of updates to a new classifier. Calls `look` with the classifier and its
/// rules after each `every` steps and at the end. `look` may change the classifier, but not
/// its rules.
fn carry_out(
    spec: &EngineSpec,
    list: &UpdateList,
    every: usize,
    mut look: impl FnMut(&mut dyn Classifier, &RuleSet),
) -> Box<dyn Classifier> {
    let build = |rules: &RuleSet| {
        spec.build(rules, &Limits::default(), &mut NoProgress)
            .unwrap()
    };
    let mut classifier = build(&list.subset(&list.initial));
    let mut done = UpdateList {
        steps: Vec::new(),
        ..list.clone()
    };
    for (turn, step) in list.steps.iter().enumerate() {
        let mut transaction = Transaction::new();
        match step {
            UpdateStep::Insert(id) => transaction.insert(list.rules.rule(id.index())),
            UpdateStep::Remove(id) => transaction.remove(*id),
        };
        classifier
            .as_dynamic()
            .unwrap()
            .apply(&transaction)
            .unwrap();
        done.steps.push(*step);
        if turn % every == every - 1 || turn + 1 == list.steps.len() {
            look(classifier.as_mut(), &done.subset(&done.last()));
        }
    }
    classifier
}

/// Looks up headers around the rules and compares the answers with a scan.
fn ask(name: &str, classifier: &dyn Classifier, rules: &RuleSet, seed: u64) -> usize {
    let mut dice = SeededDice::new(seed);
    let views: Vec<RuleRef<'_>> = rules.iter().collect();
    let mut keys = KeyVec::new(rules.schema());
    for _ in 0..40 {
        let header = draw_header(rules.schema(), &views, &mut dice);
        keys.push(&header).unwrap();
    }
    let right: Vec<Winner> = keys.as_slice().iter().map(|key| rules.scan(key)).collect();
    let mut winners = vec![Winner::MISS; keys.len()];
    let mut scratch = Scratch::new();
    classifier.classify_batch(keys.as_slice(), &mut winners, &mut scratch);
    assert_eq!(winners, right, "{name}, {} rules", rules.len());
    for (key, &right) in keys.as_slice().iter().zip(&right) {
        assert_eq!(classifier.classify_one(key), right, "{name}");
        let mut mask = vec![0; key.len()];
        let masked = classifier.classify_masked(key, &mut mask);
        assert_eq!(masked, right, "{name}");
    }
    assert_eq!(classifier.stats().rules, rules.len());
    right.iter().filter(|winner| !winner.is_miss()).count()
}

#[test]
fn hostile_changes_are_answered_right() {
    for kind in HostileUpdates::ALL {
        let list = kind.list(1500, 11, &mut NoProgress).unwrap();
        let dynamic = EngineSpec::all().filter(EngineSpec::is_dynamic);
        let (alone, mut wrapping): (Vec<_>, Vec<_>) =
            dynamic.partition(|spec| spec.inner().is_none());
        // Pending changes in a wrapper do not depend on its inner engine.
        wrapping.dedup_by_key(|spec| spec.engine().name);
        for spec in alone.into_iter().chain(wrapping) {
            let name = format!("{} {spec}", kind.name());
            let mut hits = 0;
            let mut seed = 0;
            carry_out(&spec, &list, 113, |classifier, rules| {
                seed += 1;
                hits += ask(&name, classifier, rules, seed);
            });
            assert!(hits > 50, "{name}: only {hits} headers hit");
        }
    }
}

/// Re-optimises repeatedly during the updates. Each plan is installed with the next updates;
/// the previous plan is installed again before it.
#[test]
fn a_forest_that_learns_again_is_right_and_holds_little_more() {
    let spec = EngineSpec::parse("forest:seed=0").unwrap();
    let mut all_half_way = 0;
    for size in [1000, 20_000] {
        for kind in HostileUpdates::ALL {
            let list = kind.list(size, 5, &mut NoProgress).unwrap();
            let (mut worst, mut looks, mut half_way) = (0.0_f64, 0, 0);
            let mut before = None;
            carry_out(&spec, &list, list.steps.len() / 40, |classifier, rules| {
                worst = worst.max(times_fresh(
                    &spec,
                    classifier,
                    rules,
                    4,
                    &format!("{} {size}", kind.name()),
                ));
                looks += 1;
                ask(kind.name(), classifier, rules, looks);
                let engine = classifier.as_dynamic().unwrap();
                let engine = engine.reoptimise_mut().unwrap();
                half_way += usize::from(engine.drift().installing);
                let plan = engine.snapshot().compute(&mut NoProgress);
                let plan = plan.unwrap().unwrap();
                for plan in before.iter().chain([&plan]) {
                    assert!(engine.install(plan));
                }
                before = Some(plan);
            });
            println!(
                "{} {size}: at most {worst:.2} times a fresh build, adopting in {half_way} of \
                 {looks} looks",
                kind.name()
            );
            all_half_way += half_way;
        }
    }
    assert!(all_half_way > 200, "{all_half_way} looks while adopting");
}

/// Returns the bytes of a classifier divided by the bytes of a new build over its rules.
/// Panics if it has more than `bound` times the bytes of the new build, plus 64 KiB.
fn times_fresh(
    spec: &EngineSpec,
    classifier: &dyn Classifier,
    rules: &RuleSet,
    bound: usize,
    list: &str,
) -> f64 {
    let fresh = spec.build(rules, &Limits::default(), &mut NoProgress);
    let fresh = fresh.unwrap().stats().bytes();
    let bytes = classifier.stats().bytes();
    assert!(
        bytes <= bound * fresh + (1 << 16),
        "{list}: {bytes} bytes for {} rules, {fresh} afresh",
        rules.len()
    );
    #[allow(clippy::cast_precision_loss)] // to be printed
    let ratio = bytes as f64 / fresh as f64;
    ratio
}

/// The bound that `docs/forest.md` states.
#[test]
fn the_forest_holds_little_more_than_when_built_afresh() {
    let spec = EngineSpec::parse("forest:seed=0").unwrap();
    for size in [1000, 20_000] {
        for kind in HostileUpdates::ALL {
            let list = kind.list(size, 3, &mut NoProgress).unwrap();
            let mut worst = 0.0_f64;
            carry_out(&spec, &list, list.steps.len() / 8, |classifier, rules| {
                worst = worst.max(times_fresh(
                    &spec,
                    classifier,
                    rules,
                    3,
                    &format!("{} {size}", kind.name()),
                ));
            });
            println!(
                "{} {size}: at most {worst:.2} times a fresh build",
                kind.name()
            );
        }
    }
}
