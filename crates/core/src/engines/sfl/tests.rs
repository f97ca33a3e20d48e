//! Tests of properties that the shared tests cannot see: when the inner engine is
//! rebuilt, plans made during updates or for other rules, inner engines that cannot hide
//! rules, and the indices of the published form.

use std::collections::BTreeMap;

use super::*;
use crate::contract::adapter::{Algorithm, EveryWidth, build_static};
use crate::contract::classifier::{
    DynamicClassifier, Limits, LookupTrace, MetricValue, NoProgress, Probe, Scratch,
};
use crate::engines::registry::ENGINES;
use crate::model::error::BuildError;
use crate::model::key::KeyVec;
use crate::model::rule::{ActionId, FieldMatch, Priority, Rule, RuleId, Winner};
use crate::model::ruleset::RuleSet;
use crate::model::schema::{Field, MatchKind, Schema};
use crate::model::seed::splitmix;
use crate::model::transaction::Transaction;

/// An engine that cannot hide rules.
struct List(RuleSet);

impl<const W: usize> Algorithm<W> for List {
    type Buffers = ();

    fn build(request: &mut BuildRequest<'_>) -> Result<List, BuildError> {
        Ok(List(request.rules.clone()))
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        self.0.scan(key).or(best)
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        mask.fill(u64::MAX);
        self.0.scan(key).or(best)
    }

    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let winner = self.0.scan(key);
        LookupTrace {
            probes: vec![Probe {
                table: 0,
                mask: key.to_vec(),
                rules: self.0.len(),
                compared: self.0.iter().map(|rule| rule.id()).collect(),
                winner,
            }],
            tables: 1,
            winner,
        }
    }

    fn rules(&self) -> usize {
        self.0.len()
    }

    fn tables(&self) -> usize {
        1
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl EveryWidth for List {
    type At<const W: usize> = List;
}

const LIST: Engine = Engine {
    name: "list",
    wraps: Wraps::Nothing,
    options: &[],
    dynamic: Engine::takes_no_updates,
    accepts: Engine::accepts_all,
    build: build_static::<List>,
    estimate: |_, shape| {
        Ok(Costs {
            bytes: 100 * shape.rules(),
            build: Work::of(1e7),
            ..Costs::default()
        })
    },
    ..ENGINE
};

static WITH_LIST: &[Engine] = &[LIST, ENGINE];

fn spec(text: &str) -> EngineSpec {
    match text.contains("list") {
        true => EngineSpec::parse_in(WITH_LIST, text).unwrap(),
        false => EngineSpec::parse_in(ENGINES, text).unwrap(),
    }
}

/// A range field and a field with masks.
fn schema() -> std::sync::Arc<Schema> {
    let fields = vec![
        Field::new("range", 12, MatchKind::Range),
        Field::new("mask", 8, MatchKind::Ternary),
    ];
    Schema::new("two", fields).unwrap()
}

/// A classifier, and the rules that it should have.
struct World {
    subject: Box<dyn Classifier>,
    rules: BTreeMap<RuleId, Rule>,
    state: u64,
}

impl World {
    fn new(text: &str, rules: u32, seed: u64) -> World {
        let mut world = World {
            subject: spec("sfl(bit-vector)")
                .build(
                    &RuleSet::new(&schema()),
                    &Limits::default(),
                    &mut NoProgress,
                )
                .unwrap(),
            rules: BTreeMap::new(),
            state: seed,
        };
        let mut set = RuleSet::new(&schema());
        for number in 0..rules {
            let rule = world.rule(number);
            set.push(rule.view()).unwrap();
            world.rules.insert(rule.view().id(), rule);
        }
        world.subject = spec(text)
            .build(&set, &Limits::default(), &mut NoProgress)
            .unwrap();
        world
    }

    fn below(&mut self, bound: u64) -> u64 {
        splitmix(&mut self.state) % bound
    }

    fn rule(&mut self, number: u32) -> Rule {
        let low = u128::from(self.below(4096));
        let matches = [
            FieldMatch::Range {
                low,
                high: (low + u128::from(self.below(600))).min(4095),
            },
            FieldMatch::Ternary {
                value: self.below(256).into(),
                mask: (self.below(256) & self.below(256)).into(),
            },
        ];
        let priority = Priority(u32::try_from(self.below(6)).unwrap());
        let id = RuleId::new(number).unwrap();
        Rule::new(&schema(), id, priority, ActionId(number), &matches).unwrap()
    }

    fn engine(&mut self) -> &mut dyn DynamicClassifier {
        self.subject.as_dynamic().unwrap()
    }

    /// Inserts a rule, removes it, or replaces it.
    fn change(&mut self, numbers: u64) {
        let number = u32::try_from(self.below(numbers)).unwrap();
        let id = RuleId::new(number).unwrap();
        let (new, what) = (self.rule(number), self.below(3));
        let mut transaction = Transaction::new();
        match (self.rules.contains_key(&id), what) {
            (true, 0) => {
                transaction.modify(new.view());
                self.rules.insert(id, new.clone());
            }
            (true, _) => {
                transaction.remove(id);
                self.rules.remove(&id);
            }
            (false, _) => {
                transaction.insert(new.view());
                self.rules.insert(id, new.clone());
            }
        }
        self.engine().apply(&transaction).unwrap();
    }

    fn insert(&mut self, number: u32) {
        let rule = self.rule(number);
        let engine = self.engine();
        engine
            .apply(Transaction::new().insert(rule.view()))
            .unwrap();
        self.rules.insert(rule.view().id(), rule);
    }

    fn remove(&mut self, number: u32) {
        let id = RuleId::new(number).unwrap();
        self.engine().apply(Transaction::new().remove(id)).unwrap();
        self.rules.remove(&id);
    }

    fn metric(&self, name: &str) -> usize {
        match self.subject.stats().metric(name) {
            Some(MetricValue::Count(count)) => count,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn waiting(&self) -> usize {
        self.metric("rules in the update buffer") + self.metric("deleted rules in the inner engine")
    }

    /// Compares lookups of all kinds with a search of all rules.
    fn check(&mut self) {
        let mut keys = KeyVec::new(&schema());
        for _ in 0..60 {
            let values = [self.below(4096).into(), self.below(256).into()];
            keys.push(&values).unwrap();
        }
        let expected = |key: &[u64]| {
            let matching = self.rules.values().filter(|rule| rule.view().matches(key));
            let winners = matching.map(|rule| rule.view().winner());
            winners.fold(Winner::MISS, Winner::or)
        };
        let scratch = &mut Scratch::new();
        let mut winners = vec![Winner::MISS; keys.len()];
        self.subject
            .classify_batch(keys.as_slice(), &mut winners, scratch);
        for (key, winner) in keys.as_slice().iter().zip(winners) {
            assert_eq!(winner, expected(key));
            assert_eq!(self.subject.classify_one(key), winner);
            let trace = self.subject.trace(key);
            assert_eq!(trace.winner, winner);
            let probes = trace.probes.iter();
            let named = probes.flat_map(|probe| probe.compared.iter().copied());
            let won = trace.probes.iter().filter_map(|probe| probe.winner.rule());
            assert!(named.chain(won).all(|rule| self.rules.contains_key(&rule)));
            let mut mask = vec![0; key.len()];
            let masked = self.subject.classify_masked(key, &mut mask);
            assert_eq!(masked, winner);
            // Bits on which the outcome does not depend may have any value.
            let other: Vec<u64> = key.iter().zip(&mask).map(|(k, m)| k & m).collect();
            assert_eq!(expected(&other), winner, "{mask:x?}");
        }
        assert_eq!(self.subject.stats().rules, self.rules.len());
    }
}

/// The forms, and an inner engine that cannot hide. Its build counts no work, so with
/// `delta=auto` the first lookups of pending changes make a rebuild due.
const FORMS: [&str; 7] = [
    "sfl(list)",
    "sfl(list):rebuild=at-once",
    "sfl(bit-vector):delta=30",
    "sfl(bit-vector):delta=30:isa=scalar",
    "sfl(bit-vector):delta=30:rebuild=at-once",
    "sfl(bit-vector):delta=30:form=paper",
    "sfl(list):delta=30",
];

#[test]
fn every_form_answers_as_a_search_does_after_every_change() {
    for (seed, text) in (1..).zip(FORMS) {
        let mut world = World::new(text, 60, seed);
        for step in 0..600 {
            world.change(90);
            if step % 5 == 0 {
                world.check();
            }
        }
        assert!(world.metric("rebuilds") > 0, "{text}");
    }
}

#[test]
fn the_update_that_exceeds_delta_rebuilds_at_once() {
    for form in ["rebuild=at-once", "form=paper"] {
        let mut world = World::new(&format!("sfl(bit-vector):delta=20:{form}"), 100, 7);
        (200..220).for_each(|number| world.insert(number));
        assert_eq!(
            (world.metric("rebuilds"), world.waiting()),
            (0, 20),
            "{form}"
        );
        world.remove(3);
        assert_eq!(
            (world.metric("rebuilds"), world.waiting()),
            (1, 0),
            "{form}"
        );
        world.check();
    }
}

#[test]
fn beside_updates_the_caller_rebuilds_and_in_the_end_the_engine() {
    let mut world = World::new("sfl(bit-vector):delta=9", 300, 7);
    let is_due = |world: &mut World| world.engine().reoptimise().unwrap().drift().is_due();
    (400..409).for_each(|number| world.insert(number));
    assert!(!is_due(&mut world));
    world.remove(0);
    assert!(is_due(&mut world) && world.metric("rebuilds") == 0);
    (500..570).for_each(|number| world.insert(number));
    assert_eq!((world.metric("rebuilds"), world.waiting()), (0, 80));
    world.insert(600);
    assert_eq!((world.metric("rebuilds"), world.waiting()), (1, 0));
    assert!(!is_due(&mut world));
}

/// Changes of all kinds while rules are copied and while the plan is computed, also
/// several changes of the same rules.
#[test]
fn plans_are_made_beside_updates() {
    for (seed, inner) in (1..).zip(["bit-vector", "list", "bit-vector", "list"]) {
        let mut world = World::new(&format!("sfl({inner}):delta=1000000"), 1500, seed);
        for _ in 0..3 {
            let mut snapshot = crate::contract::reoptimise::Snapshot::new();
            while !world.engine().reoptimise().unwrap().look(&mut snapshot) {
                (0..60).for_each(|_| world.change(1700));
            }
            let plan = snapshot.compute(&mut NoProgress).unwrap().unwrap();
            (0..60).for_each(|_| world.change(1700));
            let before = world.waiting();
            assert!(world.engine().reoptimise_mut().unwrap().install(&plan));
            let after = world.waiting();
            assert!(after < before && after <= 300, "{before}, {after}");
            world.check();
            (0..60).for_each(|_| world.change(1700));
            world.check();
        }
        assert_eq!(world.metric("rebuilds"), 3);
    }
}

#[test]
fn plans_for_other_rules_or_out_of_date_change_nothing() {
    let text = "sfl(bit-vector):delta=1000000";
    let mut world = World::new(text, 200, 1);
    let mut other = World::new(text, 200, 2);
    let plan = |world: &mut World| {
        let snapshot = world.engine().reoptimise().unwrap().snapshot();
        snapshot.compute(&mut NoProgress).unwrap().unwrap()
    };
    // A plan with the same number of changes, for other rules.
    (0..30).for_each(|_| world.change(200));
    (0..30).for_each(|_| other.change(200));
    let foreign = plan(&mut other);
    assert!(world.engine().reoptimise_mut().unwrap().install(&foreign));
    assert_eq!(world.metric("rebuilds"), 0);
    world.check();
    // More changes since the snapshot than there are rules.
    let old = plan(&mut world);
    (0..900).for_each(|_| world.change(200));
    let rebuilds = world.metric("rebuilds");
    assert!(world.engine().reoptimise_mut().unwrap().install(&old));
    assert_eq!(world.metric("rebuilds"), rebuilds);
    world.check();
    // A plan from before the plan that was installed last.
    let (old, new) = (plan(&mut world), plan(&mut world));
    world.change(200);
    assert!(world.engine().reoptimise_mut().unwrap().install(&new));
    let rebuilt = plan(&mut world);
    assert!(world.engine().reoptimise_mut().unwrap().install(&rebuilt));
    assert!(world.engine().reoptimise_mut().unwrap().install(&old));
    assert_eq!(world.metric("rebuilds"), rebuilds + 2);
    world.check();
}

/// A plan that two classifiers install hides rules in each of them separately.
#[test]
fn what_one_classifier_hides_another_one_has() {
    for inner in ["bit-vector", "list"] {
        let text = format!("sfl({inner}):delta=1000000");
        let (mut one, mut two) = (World::new(&text, 100, 5), World::new(&text, 100, 5));
        let snapshot = one.engine().reoptimise().unwrap().snapshot();
        let plan = snapshot.compute(&mut NoProgress).unwrap().unwrap();
        for world in [&mut one, &mut two] {
            assert!(world.engine().reoptimise_mut().unwrap().install(&plan));
        }
        (0..50).for_each(|number| one.remove(number));
        (50..99).for_each(|number| two.remove(number));
        one.check();
        two.check();
    }
}

#[test]
fn an_inner_engine_that_refuses_the_rules_is_kept() {
    let text = "sfl(bit-vector:mebibytes=1):delta=50:rebuild=at-once";
    let mut world = World::new(text, 100, 3);
    (1000..4000).for_each(|number| world.insert(number));
    let rebuilds = world.metric("rebuilds");
    assert!(rebuilds > 0 && world.waiting() > 51, "{rebuilds}");
    assert!(world.engine().rebuild(&mut NoProgress).is_err());
    world.check();
    (1000..4000).for_each(|number| world.remove(number));
    world.check();
    assert!(world.metric("rebuilds") > rebuilds);
    assert!(world.waiting() < 51 * 8);
}

#[test]
fn the_threshold_weighs_waiting_against_rebuilding() {
    let delta = |text: &str, rules| {
        let world = World::new(text, rules, 1);
        world.metric("changes that may wait")
    };
    let usual = delta("sfl(bit-vector):lookups=10000", 2000);
    let seldom = delta("sfl(bit-vector):lookups=100", 2000);
    assert!(
        (usual * 9..usual * 11).contains(&seldom),
        "{usual}, {seldom}"
    );
    let form = "sfl(bit-vector):form=paper";
    assert_eq!(usual, delta(form, 2000));
    assert_eq!(delta("sfl(list):lookups=1000000000", 10), 1);
    let small = delta("sfl(bit-vector):lookups=10000", 20);
    assert!(usual > small, "{usual}, {small}");
    assert_eq!(delta("sfl(bit-vector):delta=0", 20), 0);
}

impl World {
    /// Looks up headers in batches.
    fn look_up(&mut self, headers: usize) {
        let mut keys = KeyVec::new(&schema());
        for _ in 0..headers {
            let values = [self.below(4096).into(), self.below(256).into()];
            keys.push(&values).unwrap();
        }
        let (mut winners, scratch) = (vec![Winner::MISS; 256], &mut Scratch::new());
        for batch in keys.batches(256) {
            let winners = &mut winners[..batch.len()];
            self.subject.classify_batch(batch, winners, scratch);
        }
    }

    /// Returns the part of a rebuild's cost that lookups and changes have paid.
    fn paid(&mut self) -> f64 {
        let drift = self.engine().reoptimise().unwrap().drift();
        drift.current - drift.fitted
    }
}

/// Changes of all kinds between phases with many lookups and phases with none.
#[test]
fn lookups_of_pending_changes_make_a_rebuild_due() {
    let mut world = World::new("sfl(bit-vector):rebuild=at-once", 1000, 4);
    world.look_up(1000);
    assert_eq!(world.paid(), 0.0, "nothing is pending");
    for phase in 0..4 {
        let rebuilds = world.metric("rebuilds");
        (0..150).for_each(|_| world.change(1200));
        let before = world.paid();
        assert_eq!(world.metric("rebuilds"), rebuilds, "{phase}: few lookups");
        world.check();
        let mut lookups = 0;
        while world.paid() < 1.0 {
            world.look_up(1 << 14);
            lookups += 1;
            assert!(lookups < 1000, "{phase}: {before}, then {}", world.paid());
        }
        assert_eq!(world.metric("rebuilds"), rebuilds, "no update yet");
        world.change(1200);
        assert_eq!(world.metric("rebuilds"), rebuilds + 1, "{phase}");
        assert_eq!((world.waiting(), world.paid()), (0, 0.0));
        world.check();
    }
}

/// The two sides of a live table count together after they have installed a plan.
#[test]
fn engines_of_one_plan_count_together() {
    let text = "sfl(bit-vector)";
    let (mut one, mut two) = (World::new(text, 500, 5), World::new(text, 500, 5));
    let snapshot = one.engine().reoptimise().unwrap().snapshot();
    let plan = snapshot.compute(&mut NoProgress).unwrap().unwrap();
    for world in [&mut one, &mut two] {
        assert!(world.engine().reoptimise_mut().unwrap().install(&plan));
        (600..700).for_each(|number| world.insert(number));
    }
    let before = two.paid();
    one.look_up(10_000);
    assert!(two.paid() > before);
    assert_eq!(one.paid(), two.paid());
}

/// Exact rules of one field, with the names in the figures of [SFL17] §IV.
fn figure(text: &str) -> (Box<dyn Classifier>, impl Fn(&dyn Classifier, u64) -> u32) {
    let field = Field::new("h", 8, MatchKind::Range);
    let schema = Schema::new("one", vec![field]).unwrap();
    let mut rules = RuleSet::new(&schema);
    for (id, low, high) in [(1, 20, 30), (2, 10, 19), (3, 2, 9), (4, 0, 255)] {
        rules
            .add(
                RuleId::new(id).unwrap(),
                Priority(100 - 10 * id),
                ActionId(0),
                &[FieldMatch::Range { low, high }],
            )
            .unwrap();
    }
    let built = spec(text).build(&rules, &Limits::default(), &mut NoProgress);
    let lookup = move |classifier: &dyn Classifier, value| {
        let mut keys = KeyVec::new(classifier.schema());
        keys.push(&[u128::from(value)]).unwrap();
        let winner = classifier.classify_one(keys.key(0));
        winner.rule().map_or(0, RuleId::get)
    };
    (built.unwrap(), lookup)
}

/// A rule is inserted before the third, then the second is deleted.
#[test]
fn the_figures_of_the_paper_hold() {
    for text in ["sfl(bit-vector):form=paper", "sfl(bit-vector)"] {
        let (mut built, lookup) = figure(text);
        let add = |built: &mut Box<dyn Classifier>, id: u32, priority, low, high| {
            let schema = std::sync::Arc::clone(built.schema());
            let range = [FieldMatch::Range { low, high }];
            let id = RuleId::new(id).unwrap();
            let rule = Rule::new(&schema, id, Priority(priority), ActionId(0), &range).unwrap();
            let engine = built.as_dynamic().unwrap();
            engine
                .apply(Transaction::new().insert(rule.view()))
                .unwrap();
        };
        let remove = |built: &mut Box<dyn Classifier>, id| {
            let (engine, id) = (built.as_dynamic().unwrap(), RuleId::new(id).unwrap());
            engine.apply(Transaction::new().remove(id)).unwrap();
        };
        let all = |built: &dyn Classifier| [25, 13, 4, 2, 200].map(|value| lookup(built, value));
        assert_eq!(all(built.as_ref()), [1, 2, 3, 3, 4]);
        add(&mut built, 9, 75, 2, 3);
        assert_eq!(all(built.as_ref()), [1, 2, 3, 9, 4]);
        remove(&mut built, 2);
        assert_eq!(all(built.as_ref()), [1, 4, 3, 9, 4]);
        // Between an inserted rule and a rule deleted later.
        remove(&mut built, 3);
        add(&mut built, 8, 76, 2, 2);
        assert_eq!(all(built.as_ref()), [1, 4, 4, 8, 4]);
        remove(&mut built, 9);
        remove(&mut built, 8);
        remove(&mut built, 4);
        assert_eq!(all(built.as_ref()), [1, 0, 0, 0, 0]);
    }
}
