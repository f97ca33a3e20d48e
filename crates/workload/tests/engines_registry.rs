//! What an engine owes besides right answers: a place in the registry that
//! says everything, in the documentation, and in what is common to all.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use classyard::{
    ActionId, BuildError, ENGINES, EngineSpec, FieldMatch, KeySlice, Limits, NoProgress, Priority,
    Progress, RuleId, RuleSet, Schema, Scratch, Winner,
};
use classyard_workload::kit::random::{RuleMaker, SeededDice};

fn rules(count: usize) -> RuleSet {
    let mut dice = SeededDice::new(1);
    RuleMaker::new(&Schema::ipv4_5tuple(), &mut dice).rule_set(count, &mut dice)
}

#[test]
fn names_are_unique_and_every_entry_says_what_it_is() {
    for (index, engine) in ENGINES.iter().enumerate() {
        let name = engine.name;
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(!name.is_empty() && name.chars().all(allowed), "{name}");
        let same = ENGINES.iter().filter(|other| other.name == name);
        assert_eq!(same.count(), 1, "{name} is there twice");
        assert!(engine.summary.len() >= 10, "{name}: no summary");
        assert!(
            !engine.summary.ends_with('.'),
            "{name}: a summary is no sentence"
        );
        assert!(!engine.paper.is_empty(), "{name}: no paper");
        for option in engine.options {
            assert!(!option.name.is_empty(), "{name}: an option without a name");
            assert!(
                option.help.len() >= 10,
                "{name}: {} has no help",
                option.name
            );
        }
        let spec = EngineSpec::all().nth(index).unwrap();
        assert_eq!(spec, EngineSpec::parse(name).unwrap());
        assert_eq!(spec.to_string(), name);
    }
    assert_eq!(ENGINES[0].name, "linear", "the oracle comes first");
}

#[test]
fn built_classifiers_know_where_they_come_from() {
    let rules = rules(30);
    for spec in EngineSpec::all() {
        let mut built = spec
            .build(&rules, &Limits::default(), &mut NoProgress)
            .unwrap();
        assert_eq!(built.engine(), spec.engine().name);
        assert_eq!(built.schema(), rules.schema());
        assert_eq!(built.dynamic().is_some(), spec.engine().dynamic, "{spec}");
        assert_eq!(
            built.as_dynamic().is_some(),
            spec.engine().dynamic,
            "{spec}"
        );
        let stats = built.stats();
        assert_eq!(stats.rules, rules.len(), "{spec}");
        assert!(stats.bytes() > 0 && stats.tables > 0, "{spec}");
    }
}

#[test]
fn nonsense_in_options_is_refused_with_the_option_named() {
    let rules = rules(3);
    for engine in ENGINES {
        for option in engine.options {
            let text = format!("{}:{}=?!", engine.name, option.name);
            let spec = EngineSpec::parse(&text).unwrap();
            let error = spec
                .build(&rules, &Limits::default(), &mut NoProgress)
                .err();
            let error = error.unwrap_or_else(|| panic!("{text} builds"));
            assert!(error.to_string().contains(option.name), "{error}");
        }
        let text = format!("{}:no-such-option=1", engine.name);
        assert!(EngineSpec::parse(&text).is_err(), "{text}");
    }
}

#[test]
fn limits_are_met_with_an_error() {
    let rules = rules(200);
    for spec in EngineSpec::all() {
        let few = Limits {
            rules: rules.len() - 1,
            ..Limits::default()
        };
        let error = spec.build(&rules, &few, &mut NoProgress).err();
        assert!(
            matches!(error, Some(BuildError::TooManyRules { .. })),
            "{spec}"
        );
        let small = Limits {
            bytes: 100,
            ..Limits::default()
        };
        let error = spec.build(&rules, &small, &mut NoProgress).err();
        assert!(
            matches!(error, Some(BuildError::TooManyBytes { .. })),
            "{spec}"
        );
        let exact = Limits {
            rules: rules.len(),
            ..Limits::default()
        };
        assert!(
            spec.build(&rules, &exact, &mut NoProgress).is_ok(),
            "{spec}"
        );
    }
}

/// Asks to stop at once.
struct Impatient;

impl Progress for Impatient {
    fn report(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

#[test]
fn a_stopped_rebuild_leaves_the_classifier_as_it_was() {
    let rules = rules(300);
    let schema = rules.schema();
    let mut dice = SeededDice::new(2);
    let views: Vec<_> = rules.iter().collect();
    let mut keys = classyard::KeyVec::new(schema);
    for _ in 0..500 {
        let header = classyard_workload::kit::random::draw_header(schema, &views, &mut dice);
        keys.push(&header).unwrap();
    }
    for spec in EngineSpec::all().filter(|spec| spec.engine().dynamic) {
        let mut built = spec
            .build(&rules, &Limits::default(), &mut NoProgress)
            .unwrap();
        // Either it stops, or it had nothing to do.
        let stopped = built.as_dynamic().unwrap().rebuild(&mut Impatient);
        assert!(
            matches!(stopped, Ok(()) | Err(BuildError::Stopped { .. })),
            "{spec}"
        );
        for key in keys.as_slice().iter() {
            let found = built.classify_one(key, &mut Scratch::new());
            assert_eq!(found, rules.scan(key), "{spec}");
        }
        assert_eq!(built.stats().rules, rules.len(), "{spec}");
    }
}

#[test]
fn keys_of_another_width_are_a_mistake_that_panics() {
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    let id = RuleId::from_index(0);
    rules
        .add(id, Priority(1), ActionId(0), &[FieldMatch::Any; 5])
        .unwrap();
    for spec in EngineSpec::all() {
        let built = spec
            .build(&rules, &Limits::default(), &mut NoProgress)
            .unwrap();
        let wide = vec![0u64; schema.key_words() + 1];
        let panics = |call: &dyn Fn(&mut Scratch)| {
            let mut scratch = Scratch::new();
            let call = std::panic::AssertUnwindSafe(|| call(&mut scratch));
            std::panic::catch_unwind(call).is_err()
        };
        assert!(
            panics(&|scratch| {
                let keys = KeySlice::new(&wide, wide.len());
                built.classify_batch(keys, &mut [Winner::MISS], scratch);
            }),
            "{spec}: a batch of wide keys"
        );
        assert!(
            panics(&|scratch| {
                let keys = KeySlice::new(&wide[1..], schema.key_words());
                built.classify_batch(keys, &mut [Winner::MISS; 2], scratch);
            }),
            "{spec}: more winners than keys"
        );
        assert!(
            panics(&|scratch| {
                let mut mask = wide.clone();
                built.classify_masked(&wide, Winner::MISS, &mut mask, scratch);
            }),
            "{spec}: a masked lookup of a wide key"
        );
    }
}

fn docs() -> Option<PathBuf> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    docs.is_dir().then_some(docs)
}

/// A page must name every engine, as `name` in backquotes.
fn names_every_engine(page: &str) {
    let Some(docs) = docs() else {
        panic!("there is no docs folder");
    };
    let path = docs.join(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    for engine in ENGINES {
        let name = format!("`{}`", engine.name);
        assert!(text.contains(&name), "docs/{page} says nothing of {name}");
    }
}

#[test]
fn the_page_on_choosing_names_every_engine() {
    names_every_engine("choosing.md");
}

#[test]
fn the_page_on_papers_names_every_engine() {
    names_every_engine("papers.md");
}
