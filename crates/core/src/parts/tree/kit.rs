//! Shared parts of the tests of decision trees.

use std::sync::Arc;

use crate::contract::classifier::{Classifier, Limits, MetricValue, NoProgress, Scratch};
use crate::contract::spec::EngineSpec;
use crate::model::key::KeyVec;
use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId, Winner};
use crate::model::ruleset::RuleSet;
use crate::model::schema::{Field, FieldId, MatchKind, Schema};
use crate::model::seed::splitmix;

pub(crate) const ANY: FieldMatch = FieldMatch::Any;

pub(crate) fn range(low: u128, high: u128) -> FieldMatch {
    FieldMatch::Range { low, high }
}

pub(crate) fn schema(widths: &[u32]) -> Arc<Schema> {
    let fields = widths.iter().enumerate();
    let fields =
        fields.map(|(number, &width)| Field::new(&format!("f{number}"), width, MatchKind::Range));
    Schema::new("ranges", fields.collect()).unwrap()
}

/// Rules with decreasing priorities.
pub(crate) fn rules(
    schema: &Arc<Schema>,
    matches: impl IntoIterator<Item = Vec<FieldMatch>>,
) -> RuleSet {
    let mut rules = RuleSet::new(schema);
    for (number, matches) in matches.into_iter().enumerate() {
        let priority = Priority(1_000_000 - u32::try_from(number).unwrap());
        let id = RuleId::from_index(number);
        rules.add(id, priority, ActionId(0), &matches).unwrap();
    }
    rules
}

pub(crate) fn build(text: &str, rules: &RuleSet) -> Box<dyn Classifier> {
    let spec = EngineSpec::parse(text).unwrap();
    spec.build(rules, &Limits::default(), &mut NoProgress)
        .unwrap()
}

pub(crate) fn count(classifier: &dyn Classifier, metric: &str) -> usize {
    match classifier.stats().metric(metric) {
        Some(MetricValue::Count(count)) => count,
        other => panic!("{metric}: {other:?}"),
    }
}

/// Keys at the ends of rules and next to them.
pub(crate) fn keys(rules: &RuleSet) -> KeyVec {
    let mut keys = KeyVec::new(rules.schema());
    let ids: Vec<FieldId> = rules.schema().field_ids().collect();
    for (number, rule) in rules.iter().enumerate() {
        for step in 0..4 {
            let values = ids.iter().enumerate().map(|(field, &id)| {
                let (low, high) = rule.ends(id);
                let max_value = rules.schema().field(id).max_value();
                match (step + number * field) % 4 {
                    0 => low,
                    1 => high,
                    2 => low.saturating_sub(1),
                    _ => high.saturating_add(1).min(max_value),
                }
            });
            keys.push(&values.collect::<Vec<u128>>()).unwrap();
        }
    }
    keys
}

/// Checks that every kind of lookup agrees with a scan of the rules, and that the
/// outcome does not change if bits outside the mask do.
pub(crate) fn check(built: &dyn Classifier, keys: &KeyVec, left: &RuleSet) {
    let scratch = &mut Scratch::new();
    for length in [1, 15, 16, 35] {
        for batch in keys.batches(length) {
            let mut winners = vec![Winner::MISS; batch.len()];
            built.classify_batch(batch, &mut winners, scratch);
            for (key, winner) in batch.iter().zip(winners) {
                assert_eq!(winner, left.scan(key));
            }
        }
    }
    let mut state = 1;
    for key in keys.as_slice().iter() {
        let expected = left.scan(key);
        let mut mask = vec![0; key.len()];
        let masked = built.classify_masked(key, &mut mask);
        assert_eq!(masked, expected);
        assert_eq!(built.trace(key).winner, expected);
        for _ in 0..4 {
            let changed = key.iter().zip(&mask);
            let changed = changed.map(|(word, mask)| word ^ (splitmix(&mut state) & !mask));
            let changed: Vec<u64> = changed.collect();
            assert_eq!(
                left.scan(&changed),
                expected,
                "{key:x?} {mask:x?} {changed:x?}"
            );
        }
    }
}

/// Checks a tree engine over 300 rules of which six match every header: each leaf ends
/// with the first of these, and the rules after it are found when it is hidden.
///
/// `spec` has `binth=1`.
pub(crate) fn check_hidden_rules(spec: &str) {
    let schema = schema(&[16, 16]);
    let mut state = 3;
    let mut below = |bound: u64| u128::from(splitmix(&mut state) % bound);
    let matches = (0..300).map(|number| {
        if number % 50 == 20 {
            return vec![ANY, ANY];
        }
        let low = below(60_000);
        vec![range(low, low + below(4000)), range(below(100), 60_000)]
    });
    let matches: Vec<_> = matches.collect();
    let rules = rules(&schema, matches);
    let keys = keys(&rules);
    let mut built = build(spec, &rules);
    // No leaf has a rule after the first rule that matches every header.
    assert!(count(built.as_ref(), "longest list") <= 21);
    check(built.as_ref(), &keys, &rules);
    let mut hidden = Vec::new();
    for number in [20, 3, 70, 69, 220, 120] {
        let id = RuleId::from_index(number);
        assert_eq!((built.hide(id), built.hide(id)), (Some(true), Some(false)));
        hidden.push(id);
        let mut visible = RuleSet::new(&schema);
        for rule in rules.iter().filter(|rule| !hidden.contains(&rule.id())) {
            visible.push(rule).unwrap();
        }
        assert_eq!(built.stats().rules, visible.len());
        check(built.as_ref(), &keys, &visible);
    }
}
