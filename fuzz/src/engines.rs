//! Engines with any rules, headers and updates.

use std::sync::{Arc, OnceLock};

use classyard::{
    EngineSpec, KeyVec, Limits, NoProgress, Priority, RuleId, RuleSet, Schema, Scratch, Winner,
};
use classyard_conformance::differential::{
    Counters, Disagreement, Options, Question, Scenario, differential_with,
};
use classyard_conformance::oracle::Oracle;
use classyard_conformance::random::{ByteDice, Dice, RuleMaker, draw_header, random_schema};
use classyard_conformance::{Subject, variant_specs};

/// Returns all engines with their defaults, and an engine with other options. More engines
/// would slow every run down.
fn subjects(dice: &mut dyn Dice) -> Vec<Subject> {
    static SPECS: OnceLock<Vec<EngineSpec>> = OnceLock::new();
    let variants = SPECS.get_or_init(variant_specs);
    let variant = dice.pick(variants).clone();
    // A fixed seed makes findings reproducible in another process.
    let specs = EngineSpec::all().chain([variant]);
    specs.map(|spec| Subject::from(spec.seeded(0))).collect()
}

fn schema(dice: &mut dyn Dice) -> Arc<Schema> {
    match dice.below(5) {
        0 => Schema::ipv4_5tuple(),
        1 => Schema::ipv6_5tuple(),
        2 => Schema::openflow15(),
        _ => random_schema(dice),
    }
}

fn rules(schema: &Arc<Schema>, max_rules: usize, dice: &mut dyn Dice) -> RuleSet {
    let maker = RuleMaker::new(schema, dice);
    let count = dice.below(max_rules);
    maker.rule_set(count, dice)
}

/// Runs updates with checks in between until the bytes are used up.
pub(crate) fn stream(data: &[u8]) {
    let mut dice = ByteDice::new(data);
    let subjects = subjects(&mut dice);
    let schema = schema(&mut dice);
    let start = rules(&schema, 20, &mut dice);
    let options = Options {
        updates: 200,
        rules: 20,
        limit: 30,
        check_every: 2,
        headers: 12,
        masked: 4,
        flips: 0,
        build_every: 6,
        minimise: false,
        ..Options::default()
    };
    let outcome = differential_with(&subjects, &start, &options, &mut dice, &mut NoProgress);
    if let Some(disagreement) = outcome.disagreement {
        report(*disagreement, &subjects);
    }
    for skip in outcome.skips {
        let subject = subjects.iter().find(|s| s.name() == skip.subject);
        assert!(subject.is_some_and(|s| !s.is_dynamic()), "{skip}");
    }
}

/// Checks masked lookups with candidates and preset bits over one rule set.
pub(crate) fn masks(data: &[u8]) {
    let mut dice = ByteDice::new(data);
    let dice: &mut dyn Dice = &mut dice;
    let subjects = subjects(dice);
    let schema = schema(dice);
    let rules = rules(&schema, 40, dice);
    let limits = Limits::default();
    let oracle = Oracle::new(&rules, &limits);
    let views = oracle.views();
    let built = subjects.iter().filter_map(|subject| {
        let built = subject.build(&rules, &limits, &mut NoProgress);
        assert!(built.is_ok() || !subject.is_dynamic(), "{subject:?}");
        Some((subject, built.ok()?))
    });
    let built: Vec<_> = built.collect();
    let (mut scratch, mut counters) = (Scratch::new(), Counters::default());
    for _ in 0..50 {
        let mut keys = KeyVec::new(&schema);
        keys.push(&draw_header(&schema, &views, dice))
            .expect("a header of the schema");
        let best = match dice.below(4) {
            0 | 1 => Winner::MISS,
            2 if !views.is_empty() => dice.pick(&views).winner(),
            _ => {
                let id = RuleId::from_index(dice.below(1000));
                Winner::new(Priority(u32::try_from(dice.below(4)).expect("below 4")), id)
            }
        };
        let preset = match dice.below(4) {
            0 => (0..schema.key_words()).map(|_| dice.word()).collect(),
            _ => vec![0; schema.key_words()],
        };
        let question = Question::Masked {
            keys,
            best,
            preset,
            flips: dice.one_in(16).then(|| dice.word()),
        };
        for (subject, classifier) in &built {
            let classifier = classifier.as_ref();
            let answer = question.ask(classifier, &oracle, &mut scratch, &mut counters);
            if let Err(finding) = answer {
                let scenario = Scenario {
                    schema: Arc::clone(&schema),
                    limits,
                    initial: oracle.rules().cloned().collect(),
                    history: Vec::new(),
                    question: question.clone(),
                };
                let disagreement = Disagreement {
                    subject: subject.name().to_owned(),
                    seed: 0,
                    step: 0,
                    finding,
                    scenario,
                    minimal: false,
                };
                report(disagreement, &subjects);
            }
        }
        if dice.spent() {
            break;
        }
    }
}

/// Panics with the disagreement, minimised.
fn report(disagreement: Disagreement, subjects: &[Subject]) -> ! {
    let subject = subjects.iter().find(|s| s.name() == disagreement.subject);
    let disagreement = match subject {
        Some(subject) => disagreement.minimised(subject, &mut NoProgress),
        None => disagreement,
    };
    panic!("{disagreement}");
}
