//! Tests beyond the shared tests: the division of rules between lists and vectors,
//! superfields, summaries, vectors that values share, and hashes that separate no
//! values.

mod bounds;

use std::sync::Arc;

use super::*;
use crate::budget::memory::Memory;
use crate::budget::monitor::unwatched;
use crate::contract::classifier::{Classifier, MetricValue, NoProgress, Scratch};
use crate::contract::spec::EngineSpec;
use crate::model::key::KeyVec;
use crate::model::rule::{ActionId, FieldMatch, Priority};
use crate::model::schema::{Field as SchemaField, MatchKind, Schema};
use crate::model::seed::splitmix;
use crate::parts::range_tree::GROUP;

/// A field of each kind, a wide field, and short fields.
fn schema() -> Arc<Schema> {
    let fields = vec![
        SchemaField::new("range", 16, MatchKind::Range),
        SchemaField::new("wide", 100, MatchKind::Prefix),
        SchemaField::new("mask", 8, MatchKind::Ternary),
        SchemaField::new("long", 40, MatchKind::Exact),
        SchemaField::new("short", 3, MatchKind::Exact),
        SchemaField::new("bit", 1, MatchKind::Exact),
    ];
    Schema::new("six", fields).unwrap()
}

fn add(rules: &mut RuleSet, priority: u32, matches: &[FieldMatch]) {
    let id = RuleId::from_index(rules.len());
    rules
        .add(id, Priority(priority), ActionId(0), matches)
        .unwrap();
}

/// Rules that overlap in all ways, with many values of the long field.
fn rules(count: usize, values: u64) -> RuleSet {
    let mut rules = RuleSet::new(&schema());
    let mut state = 11;
    let mut below = |bound: u64| u128::from(splitmix(&mut state) % bound);
    for _ in 0..count {
        let ends = [below(1 << 16), below(1 << 16)];
        let mask = below(256) & below(256);
        let matches = [
            match below(3) {
                0 => FieldMatch::Exact(ends[0]),
                1 => FieldMatch::Any,
                _ => FieldMatch::Range {
                    low: ends[0].min(ends[1]),
                    high: ends[0].max(ends[1]),
                },
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
                0 => FieldMatch::Any,
                _ => FieldMatch::Exact(below(values) << 10),
            },
            match below(2) {
                0 => FieldMatch::Any,
                _ => FieldMatch::Exact(below(8)),
            },
            match below(3) {
                2 => FieldMatch::Any,
                bit => FieldMatch::Exact(bit),
            },
        ];
        add(&mut rules, u32::try_from(below(40)).unwrap(), &matches);
    }
    rules
}

/// Keys at the ends of rules and next to them.
fn keys(rules: &RuleSet) -> KeyVec {
    let mut keys = KeyVec::new(rules.schema());
    for (number, rule) in rules.iter().enumerate() {
        for step in 0..4 {
            let ids = rules.schema().field_ids().zip(0..);
            let header: Vec<u128> = ids
                .map(|(id, field)| {
                    let (low, high) = rule.ends(id);
                    let most = rules.schema().field(id).max_value();
                    match (step + number * field) % 5 {
                        0 | 3 => low,
                        1 => high,
                        2 => low.saturating_sub(1),
                        _ => (high + 1).min(most),
                    }
                })
                .collect();
            keys.push(&header).unwrap();
        }
    }
    keys
}

fn build(options: &str, rules: &RuleSet) -> Box<dyn Classifier> {
    let spec = EngineSpec::parse(&format!("decomposition{options}")).unwrap();
    let built = spec.build(rules, &Limits::default(), &mut NoProgress);
    built.unwrap()
}

fn tuned(options: &str, rules: &RuleSet, tuning: Tuning) -> Decomposition {
    let spec = EngineSpec::parse(&format!("decomposition{options}")).unwrap();
    let limits = Limits::default();
    unwatched(|monitor| Decomposition::new(rules, spec.options(), &limits, tuning, monitor))
}

fn count(classifier: &dyn Classifier, metric: &str) -> usize {
    match classifier.stats().metric(metric) {
        Some(MetricValue::Count(count)) => count,
        other => panic!("{metric}: {other:?}"),
    }
}

/// Looks up each key by itself, in a batch, and with its mask. The outcome does not
/// change with any bit outside of the mask, and no lookup exceeds the limits on tests.
fn check<const W: usize>(built: &Decomposition, rules: &RuleSet, keys: &KeyVec) {
    let most = built.most_tests();
    let rows = keys.as_slice().rows::<W>();
    let mut winners = vec![Winner::MISS; rows.len()];
    let mut buffers = lookup::Buffers::default();
    built.improve_batch(rows, &mut winners, &mut buffers);
    for (number, (key, winner)) in rows.iter().zip(winners).enumerate() {
        let expected = rules.scan(key);
        assert_eq!(winner, expected);
        assert_eq!(built.improve(key, Winner::MISS), expected);
        assert_eq!(built.improve(key, expected), expected);
        let mut mask = [0; W];
        assert_eq!(built.improve_masked(key, Winner::MISS, &mut mask), expected);
        let mut other = *key;
        let mut state = number as u64;
        for id in rules.schema().field_ids() {
            let place = rules.schema().placement(id);
            let most = rules.schema().field(id).max_value();
            let random = u128::from(splitmix(&mut state)) << 64 | u128::from(splitmix(&mut state));
            let (free, value) = (most & !place.get(&mask), place.get(key));
            place.set(&mut other, value & !free | random & free);
        }
        assert_eq!(rules.scan(&other), expected, "{key:x?} under {mask:x?}");
        let trace = <Decomposition as Algorithm<W>>::trace(built, key);
        assert_eq!(trace.winner, expected);
        let compared = &trace.probes.last().unwrap().compared;
        assert!(expected.rule().is_none_or(|id| compared.contains(&id)));
        let tests = built.tests_of(key);
        assert_eq!(tests.compared, compared.len());
        assert!(tests.compared <= most.compared && tests.tags <= most.tags);
        assert!(tests.worse <= most.worse, "{tests:?} of {most:?}");
    }
}

#[test]
fn every_option_gives_the_same_answers() {
    let rules = rules(700, 250);
    let keys = keys(&rules);
    let lists = Tuning {
        least_listed: 1,
        ..Tuning::default()
    };
    for options in [
        "",
        ":share=0",
        ":share=1",
        ":share=254",
        ":group=off",
        ":share=0:group=off:stop=off",
        ":share=0:aggregate=1",
        ":share=0:aggregate=1:stop=off",
        ":share=0:product=2",
        ":share=0:isa=scalar",
        ":share=2:aggregate=1:mebibytes=1",
        ":seed=3",
    ] {
        for tuning in [lists, Tuning::default()] {
            check::<5>(&tuned(options, &rules, tuning), &rules, &keys);
        }
    }
}

/// No seed of a hash table separates values, and different sets have the same hash.
#[test]
fn hashes_that_tell_nothing_apart_change_no_answer() {
    let rules = rules(300, 100);
    let keys = keys(&rules);
    for hash_bits in [0, 7] {
        for least_listed in [1, usize::MAX] {
            let tuning = Tuning {
                least_listed,
                hash_bits,
                ..Tuning::default()
            };
            for options in ["", ":share=0", ":share=0:mebibytes=1"] {
                check::<5>(&tuned(options, &rules, tuning), &rules, &keys);
            }
        }
    }
}

#[test]
fn rules_that_share_a_value_with_few_are_in_its_list() {
    // 300 values in two rules each, a value in a hundred rules, and a hundred open rules.
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    let any = FieldMatch::Any;
    for number in 0..800_u128 {
        let host = match number {
            0..600 => FieldMatch::Exact(10 * (number / 2)),
            600..700 => FieldMatch::Exact(5),
            _ => any,
        };
        let port = FieldMatch::Exact(number % 7);
        add(&mut rules, 1, &[host, any, any, port, any]);
    }
    let built = build("", &rules);
    assert_eq!(count(built.as_ref(), "fields with lists"), 1);
    assert_eq!(count(built.as_ref(), "rules in vectors"), 200);
    // The empty list; for each value two places and an end.
    let places = 1 + 3 * 300;
    assert_eq!(count(built.as_ref(), "places in lists"), places);
    let without = build(":share=1", &rules);
    assert_eq!(count(without.as_ref(), "rules in vectors"), 800);
    let without = build(":share=0", &rules);
    assert_eq!(count(without.as_ref(), "rules in vectors"), 800);
    assert_eq!(count(without.as_ref(), "fields with vectors"), 2);
}

#[test]
fn lists_are_no_longer_than_asked_for() {
    let rules = rules(900, 300);
    for share in [1, 2, 5, 20] {
        let tuning = Tuning {
            least_listed: 1,
            ..Tuning::default()
        };
        let built = tuned(&format!(":share={share}"), &rules, tuning);
        let lists = &built.shared.store.lists;
        let lists: Vec<&[Entry]> = lists.split(|&entry| entry == Entry::END).collect();
        let longest = lists.iter().map(|list| list.len()).max();
        assert!(longest.unwrap() <= share, "{longest:?}");
        let places: usize = lists.iter().map(|list| list.len()).sum();
        assert!(places <= 2 * rules.len() * share);
        let places = |list: &[Entry]| -> Vec<usize> { list.iter().map(|e| e.place()).collect() };
        for list in &lists {
            assert!(places(list).is_sorted());
        }
        let mut all: Vec<usize> = lists.iter().flat_map(|list| places(list)).collect();
        all.extend(places(&built.shared.wide));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), rules.len(), "each rule is somewhere");
    }
}

/// Joins short fields, in ascending order of classes, up to a product of classes.
#[test]
fn short_fields_are_joined_to_superfields() {
    let rules = rules(600, 1);
    let searched = |options: &str| build(options, &rules).stats().tables;
    // Eight values and two, and the values that no rule names: 27 combinations.
    assert_eq!(searched(":share=0:group=off"), 6);
    assert_eq!(searched(":share=0:product=26"), 6);
    assert_eq!(searched(":share=0:product=27"), 5);
    assert_eq!(searched(":share=0"), 5);
}

/// The vectors need 4 MiB, and get as little as a quarter of this memory.
#[test]
fn values_share_vectors_where_memory_is_short() {
    let rules = rules(3000, 1 << 30);
    let keys = keys(&rules);
    let bytes = |built: &Decomposition| bytes_of::<Block>(built.shared.store.rows.len());
    let mut before = usize::MAX;
    for mebibytes in [8, 2, 1] {
        let options = format!(":share=0:group=off:mebibytes={mebibytes}");
        let built = tuned(&options, &rules, Tuning::default());
        let slack = 16 * bytes_of::<Block>(built.shared.store.row_blocks);
        assert!(bytes(&built) < before);
        assert!(
            bytes(&built) <= (mebibytes << 20) + slack,
            "{} bytes",
            bytes(&built)
        );
        before = bytes(&built);
        for key in keys.as_slice().rows::<5>().iter().step_by(9) {
            assert_eq!(built.improve(key, Winner::MISS), rules.scan(key));
        }
    }
}

/// Table I of the paper, with headers that the paper does not have.
#[test]
fn the_papers_example_is_classified() {
    let schema = Schema::openflow15();
    let mut rules = RuleSet::new(&schema);
    let (any, exact) = (FieldMatch::Any, FieldMatch::Exact);
    let prefix = |value: u128, length: u32| FieldMatch::Prefix {
        value: value << (32 - length),
        length,
    };
    let (tcp, udp) = (exact(6), exact(17));
    let ports = FieldMatch::Range { low: 0, high: 124 };
    let table = [
        [
            exact(5),
            any,
            exact(0x13),
            exact(0x06),
            exact(0x0800),
            any,
            exact(5),
            any,
            exact(0),
            prefix(1, 3),
            any,
            tcp,
            exact(0),
            any,
            any,
        ],
        [
            any,
            any,
            exact(0x07),
            exact(0xff),
            exact(0x0800),
            exact(100),
            exact(7),
            exact(16000),
            exact(0),
            prefix(0, 2),
            prefix(0b1011, 4),
            udp,
            any,
            any,
            any,
        ],
        [
            any,
            any,
            any,
            exact(0),
            exact(0x8100),
            exact(4095),
            exact(7),
            any,
            any,
            prefix(1, 1),
            prefix(0b1011, 4),
            any,
            any,
            exact(2),
            exact(5),
        ],
        [
            exact(1),
            any,
            exact(0xff),
            any,
            any,
            exact(4095),
            any,
            any,
            any,
            prefix(1, 1),
            prefix(1, 1),
            any,
            exact(0),
            ports,
            exact(5),
        ],
    ];
    for (priority, matches) in (0..4).zip(&table) {
        add(&mut rules, 4 - priority, matches);
    }
    let both = 0xb000_0000;
    let headers: [([u128; 15], Option<usize>); 5] = [
        (
            [5, 9, 0x13, 6, 0x0800, 1, 5, 2, 0, 1 << 29, 3, 6, 0, 7, 8],
            Some(0),
        ),
        (
            [
                2, 9, 7, 0xff, 0x0800, 100, 7, 16000, 0, 1, both, 17, 3, 7, 8,
            ],
            Some(1),
        ),
        (
            [
                1, 9, 0xff, 0, 0x8100, 4095, 7, 2, 0, both, both, 17, 0, 2, 5,
            ],
            Some(2),
        ),
        (
            [
                1, 9, 0xff, 1, 0x8100, 4095, 7, 2, 0, both, both, 17, 0, 124, 5,
            ],
            Some(3),
        ),
        (
            [
                1, 9, 0xff, 1, 0x8100, 4095, 7, 2, 0, both, both, 17, 0, 125, 5,
            ],
            None,
        ),
    ];
    for options in ["", ":share=0", ":share=0:group=off:stop=off"] {
        let built = build(options, &rules);
        for (header, expected) in &headers {
            let mut keys = KeyVec::new(&schema);
            keys.push(header).unwrap();
            let found = built.classify_one(keys.key(0));
            assert_eq!(found.rule(), expected.map(RuleId::from_index));
        }
    }
}

/// In every kind of lookup, and every batch length up to two groups.
#[test]
fn hidden_rules_are_passed_over() {
    let rules = rules(700, 200);
    let keys = keys(&rules);
    for options in ["", ":share=0", ":share=0:stop=off:aggregate=1"] {
        let mut built = build(options, &rules);
        let mut left = RuleSet::new(rules.schema());
        for rule in rules.iter() {
            if rule.id().get() % 3 == 0 {
                assert_eq!(built.hide(rule.id()), Some(true));
                assert_eq!(built.hide(rule.id()), Some(false));
            } else {
                left.push(rule).unwrap();
            }
        }
        assert_eq!(built.stats().rules, left.len());
        let scratch = &mut Scratch::new();
        for length in (1..=2 * GROUP + 1).chain([4 * GROUP, 9 * GROUP + 5]) {
            for batch in keys.batches(length).take(10) {
                let mut winners = vec![Winner::MISS; batch.len()];
                built.classify_batch(batch, &mut winners, scratch);
                for (key, winner) in batch.iter().zip(winners) {
                    assert_eq!(winner, left.scan(key));
                }
            }
        }
        for key in keys.as_slice().iter().step_by(5) {
            let expected = left.scan(key);
            let mut mask = vec![0; keys.as_slice().width()];
            let winner = built.improve_masked(key, Winner::MISS, &mut mask);
            assert_eq!(winner, expected);
            let trace = built.trace(key);
            assert_eq!(trace.winner, expected);
            let compared = &trace.probes.last().unwrap().compared;
            assert!(compared.iter().all(|&id| left.get(id).is_some()));
        }
    }
}

/// A summary of more than a word. Most blocks have no rule that matches.
#[test]
fn summaries_lead_to_the_right_block() {
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    let any = FieldMatch::Any;
    for number in 0..40_000_u128 {
        let matches = [
            FieldMatch::Exact(number / 200),
            FieldMatch::Exact(number % 200),
            any,
            any,
            any,
        ];
        add(&mut rules, 1, &matches);
    }
    let mut memory = Memory::unlimited();
    let spec = EngineSpec::parse("decomposition:share=0").unwrap();
    let limits = Limits::default();
    let mut progress = NoProgress;
    let mut monitor = Monitor::new(&mut progress, &mut memory);
    let built = Decomposition::new(
        &rules,
        spec.options(),
        &limits,
        Tuning::default(),
        &mut monitor,
    );
    let built = built.unwrap();
    assert_eq!(built.shared.store.summary, 1);
    let mut keys = KeyVec::new(&schema);
    for number in (0..40_400).step_by(97) {
        keys.push(&[number / 200, number % 200, 1, 2, 3]).unwrap();
    }
    for (key, number) in keys
        .as_slice()
        .rows::<2>()
        .iter()
        .zip((0..40_400).step_by(97))
    {
        let expected = (number < 40_000).then(|| RuleId::from_index(number));
        assert_eq!(built.improve(key, Winner::MISS).rule(), expected);
    }
}

/// A summary does not exclude a block if each vector has a bit there, even without a common bit.
#[test]
fn blocks_that_a_summary_does_not_exclude_are_counted() {
    let fields =
        ["a", "b"].map(|name| crate::model::schema::Field::new(name, 16, MatchKind::Exact));
    let schema = Schema::new("two", fields.to_vec()).unwrap();
    let mut rules = RuleSet::new(&schema);
    // The rules (1, 0) and (0, 1) alternate in ten blocks. The ten blocks after them have (1, 1).
    for number in 0..20 * BLOCK_RULES {
        let (a, b) = match (number / (10 * BLOCK_RULES), number % 2) {
            (0, 0) => (1, 0),
            (0, _) => (0, 1),
            _ => (1, 1),
        };
        add(&mut rules, 1, &[FieldMatch::Exact(a), FieldMatch::Exact(b)]);
    }
    for (options, of_summary) in [(":aggregate=20000", 0.0), ("", 1.0)] {
        let options = format!(":share=0:group=off{options}");
        let built = tuned(&options, &rules, Tuning::default());
        assert_eq!(built.shared.store.summary > 0, of_summary > 0.0);
        // Half of the headers read one block, the other half eleven.
        let steps = built.counts().steps;
        let expected = f64::midpoint(1.0, 11.0) + of_summary;
        assert!((steps - expected).abs() < 1e-9, "{options}: {steps}");
    }
}

/// A rule's rarest other field excludes most candidates of lists.
#[test]
fn few_candidates_are_compared() {
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    let any = FieldMatch::Any;
    for number in 0..2000_u128 {
        // Six rules share a source, and twenty a port. The matching rule ends the
        // search: it is the first to the sixth, 3.5 on average.
        let source = FieldMatch::Exact(number / 6);
        let port = FieldMatch::Exact(number % 100);
        add(&mut rules, 1, &[source, any, any, port, any]);
    }
    let built = tuned("", &rules, Tuning::default());
    assert_eq!(built.shared.listing, 1);
    let counts = built.counts();
    assert!(counts.entries > 3.0 && counts.entries < 4.0, "{counts:?}");
    assert!(counts.compared > 0.9 && counts.compared < 1.1, "{counts:?}");
    let metrics = <Decomposition as Algorithm<2>>::metrics(&built);
    let found = metrics
        .iter()
        .find(|metric| metric.name == "entries a lookup");
    assert_eq!(found.unwrap().value, MetricValue::Ratio(counts.entries));
}
