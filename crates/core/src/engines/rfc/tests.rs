//! Tests of properties that the shared tests cannot see: when there are tables and how
//! large they are, outcomes before the last table, and lookups without tables.

use std::sync::Arc;

use super::*;
use crate::contract::classifier::{Classifier, Limits, MetricValue, NoProgress, Scratch};
use crate::model::key::KeyVec;
use crate::model::rule::{ActionId, FieldMatch, Priority};
use crate::model::ruleset::RuleSet;
use crate::model::schema::{Field as SchemaField, MatchKind, Schema};
use crate::model::seed::splitmix;

fn schema() -> Arc<Schema> {
    let fields = vec![
        SchemaField::new("range", 16, MatchKind::Range),
        SchemaField::new("wide", 100, MatchKind::Prefix),
        SchemaField::new("mask", 8, MatchKind::Ternary),
        SchemaField::new("bit", 1, MatchKind::Exact),
    ];
    Schema::new("four", fields).unwrap()
}

fn add(rules: &mut RuleSet, priority: u32, matches: &[FieldMatch]) {
    let id = RuleId::from_index(rules.len());
    rules
        .add(id, Priority(priority), ActionId(0), matches)
        .unwrap();
}

/// Overlapping rules of all kinds; one in `holes` has a mask with holes.
fn rules(count: usize, holes: u64) -> RuleSet {
    let mut rules = RuleSet::new(&schema());
    let mut state = 5;
    let mut below = |bound: u64| u128::from(splitmix(&mut state) % bound);
    for _ in 0..count {
        let ends = [below(1 << 16), below(1 << 16)];
        let mask = match below(holes) {
            0 => below(256),
            _ => 0xf0,
        };
        let matches = [
            FieldMatch::Range {
                low: ends[0].min(ends[1]),
                high: ends[0].max(ends[1]),
            },
            FieldMatch::Prefix {
                value: below(3) << 98 | below(3) << 60,
                length: u32::try_from(below(5)).unwrap() * 25,
            },
            FieldMatch::Ternary {
                value: below(256) & mask,
                mask,
            },
            match below(3) {
                2 => FieldMatch::Any,
                bit => FieldMatch::Exact(bit),
            },
        ];
        add(&mut rules, u32::try_from(below(4)).unwrap(), &matches);
    }
    rules
}

/// Keys at the ends of rules and next to them.
fn keys(rules: &RuleSet) -> KeyVec {
    let mut keys = KeyVec::new(rules.schema());
    for (number, rule) in rules.iter().enumerate() {
        for step in 0..6 {
            let ids = rules.schema().field_ids().zip(0..);
            let header: Vec<u128> = ids
                .map(|(id, field)| {
                    let (low, high) = rule.ends(id);
                    let most = rules.schema().field(id).max_value();
                    match (step + number * field) % 5 {
                        0 => low,
                        1 => high,
                        2 => low.saturating_sub(1),
                        3 => (high + 1).min(most),
                        _ => low.midpoint(high),
                    }
                })
                .collect();
            keys.push(&header).unwrap();
        }
    }
    keys
}

fn build(text: &str, rules: &RuleSet) -> Box<dyn Classifier> {
    let spec = EngineSpec::parse(text).unwrap();
    spec.build(rules, &Limits::default(), &mut NoProgress)
        .unwrap()
}

fn count(classifier: &dyn Classifier, metric: &str) -> usize {
    match classifier.stats().metric(metric) {
        Some(MetricValue::Count(count)) => count,
        other => panic!("{metric}: {other:?}"),
    }
}

/// Compares batches, single lookups, masked lookups and traces with a scan.
fn agrees(built: &dyn Classifier, rules: &RuleSet, keys: &KeyVec) {
    let scratch = &mut Scratch::new();
    for length in [1, 15, 16, 17, 40] {
        for batch in keys.batches(length) {
            let mut winners = vec![Winner::MISS; batch.len()];
            built.classify_batch(batch, &mut winners, scratch);
            for (key, winner) in batch.iter().zip(winners) {
                assert_eq!(winner, rules.scan(key), "batches of {length}");
            }
        }
    }
    for key in keys.as_slice().iter() {
        let expected = rules.scan(key);
        assert_eq!(built.classify_one(key), expected);
        let mut mask = vec![0; key.len()];
        let masked = built.classify_masked(key, &mut mask);
        assert_eq!(masked, expected);
        assert_eq!(built.trace(key).winner, expected);
    }
}

/// Also with masks with holes in most rules, so that most outcomes must be compared, and
/// with hidden rules.
#[test]
fn tables_answer_as_a_scan_does() {
    for holes in [1_000_000, 10, 1] {
        let rules = rules(60, holes);
        let keys = keys(&rules);
        let mut built = build("rfc", &rules);
        assert_eq!(count(built.as_ref(), "tables of classes"), 4, "{holes}");
        agrees(built.as_ref(), &rules, &keys);
        let mut left = RuleSet::new(rules.schema());
        for rule in rules.iter() {
            if rule.id().get() % 3 == 0 {
                assert_eq!(built.hide(rule.id()), Some(true));
            } else {
                left.push(rule).unwrap();
            }
        }
        agrees(built.as_ref(), &left, &keys);
    }
}

/// The sizes counted for an estimate equal the sizes of the built tables, also
/// with masks with holes and duplicate rules.
#[test]
fn entries_are_known_before_building() {
    for (size, holes) in [(1, 3), (20, 1), (60, 3), (150, 1_000_000)] {
        let rules = rules(size, holes);
        let shape = Shape::of(&rules);
        let built = build("rfc", &rules);
        let counted = combine::cells(shape.sample(), shape.rules()).iter().sum();
        assert!(counted > 0, "{size} rules");
        assert_eq!(count(built.as_ref(), "entries"), counted, "{size} rules");
    }
}

/// The best rule matches everything, so the second field does not matter. A
/// sample's entries are extrapolated to all rules.
#[test]
fn entries_are_extrapolated_from_a_sample() {
    let field = |name| SchemaField::new(name, 16, MatchKind::Range);
    let schema = Schema::new("two", vec![field("a"), field("b")]).unwrap();
    let any = FieldMatch::Any;
    let prefix = |value| FieldMatch::Prefix { value, length: 8 };
    let range = |low, high| FieldMatch::Range { low, high };
    let holes = FieldMatch::Ternary {
        value: 0x0101,
        mask: 0x0f0f,
    };
    let matches = [
        [any, any],
        [prefix(0x1200), range(0, 0xffff)],
        [range(0x1200, 0x12ff), range(0, 0xfffe)],
        [prefix(0x1300), holes],
        [range(0, 0x7fff), holes],
        [FieldMatch::Exact(5), any],
    ];
    let mut rules = RuleSet::new(&schema);
    for (number, matches) in matches.iter().enumerate() {
        let id = RuleId::from_index(number);
        rules.add(id, Priority(1), ActionId(0), matches).unwrap();
    }
    assert_eq!(combine::cells(&rules, 6), [5, 0]);
    assert_eq!(combine::cells(&rules, 60), [50, 0]);
}

#[test]
fn without_effort_or_memory_there_are_no_tables() {
    let rules = rules(60, 5);
    let keys = keys(&rules);
    let all = count(build("rfc", &rules).as_ref(), "entries");
    assert!(all > 1000, "{all} entries");
    let none = build("rfc:effort=0", &rules);
    let vectors = build("bit-vector", &rules);
    assert_eq!(count(none.as_ref(), "tables of classes"), 0);
    assert_eq!(none.stats().bytes(), vectors.stats().bytes());
    agrees(none.as_ref(), &rules, &keys);
    // The exact number of bytes, and one byte less.
    let spec = EngineSpec::parse("rfc").unwrap();
    for (bytes, complete) in [(4 * all, true), (4 * all - 1, false)] {
        let mut memory = crate::budget::memory::Memory::unlimited();
        let mut request = BuildRequest {
            spec: &spec,
            rules: &rules,
            limits: &Limits::default(),
            progress: &mut NoProgress,
            memory: &mut memory,
        };
        let vectors = <BitVector as Algorithm<3>>::build(&mut request).unwrap();
        let monitor = &mut request.monitor();
        let before = monitor.memory().held();
        let columns = columns(&vectors, monitor).unwrap();
        let bounds = Bounds { effort: 20, bytes };
        let tables = combine(&vectors.rules, &columns, bounds, true, monitor).unwrap();
        assert_eq!(tables.is_some(), complete);
        let of_columns = columns.iter().map(Columns::bytes).sum::<usize>();
        let of_columns = of_columns + bytes_of::<Columns>(columns.capacity());
        let held = if complete { 4 * all } else { 0 };
        assert_eq!(monitor.memory().held(), before + of_columns + held);
    }
}

/// The first rule matches all values of every field except the first. That field has
/// more classes, so its table comes first and decides.
#[test]
fn lookups_end_where_the_winner_is_known() {
    let mut rules = RuleSet::new(&schema());
    let any = FieldMatch::Any;
    let range = |low, high| FieldMatch::Range { low, high };
    add(&mut rules, 9, &[range(10, 20), any, any, any]);
    add(
        &mut rules,
        8,
        &[range(15, 30), any, any, FieldMatch::Exact(1)],
    );
    let built = build("rfc", &rules);
    assert_eq!(count(built.as_ref(), "tables of classes"), 2);
    let cases = [(12, 0, 1), (17, 1, 1), (25, 1, 2), (25, 0, 2), (50, 0, 1)];
    for (value, bit, expected) in cases {
        let mut keys = KeyVec::new(rules.schema());
        keys.push(&[value, 1, 2, bit]).unwrap();
        let trace = built.trace(keys.key(0));
        assert_eq!(trace.winner, rules.scan(keys.key(0)));
        assert_eq!(trace.probes.len(), expected, "{value} {bit}");
    }
}

/// The best rule matches everything, or there is only one rule, or none.
#[test]
fn outcomes_that_depend_on_few_fields_need_few_tables() {
    let any = FieldMatch::Any;
    let exact = FieldMatch::Exact;
    let cases: [(&[[FieldMatch; 4]], usize); 4] = [
        (&[], 0),
        (&[[any; 4]], 0),
        (&[[any; 4], [exact(7), any, exact(9), exact(1)]], 1),
        (&[[exact(7), any, any, exact(1)], [any; 4]], 2),
    ];
    for (matches, tables) in cases {
        let mut rules = RuleSet::new(&schema());
        for (better, matches) in (0..).zip(matches) {
            add(&mut rules, 9 - better, matches);
        }
        let built = build("rfc", &rules);
        assert_eq!(count(built.as_ref(), "tables of classes"), tables);
        let mut keys = KeyVec::new(rules.schema());
        for number in 0..40 {
            let header = [number % 2 * 7, 3, number % 3 * 9, number % 2];
            keys.push(&header).unwrap();
        }
        agrees(built.as_ref(), &rules, &keys);
    }
}
