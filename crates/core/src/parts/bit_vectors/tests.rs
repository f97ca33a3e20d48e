//! Tests beyond the shared tests: the number of vectors, the bits of a key that a
//! lookup depends on, and sets of rules with equal hashes.

use std::sync::Arc;

use super::*;
use crate::budget::memory::Memory;
use crate::budget::monitor::Monitor;
use crate::contract::classifier::{Classifier, Limits, MetricValue, NoProgress, Scratch};
use crate::model::key::KeyVec;
use crate::model::rule::{ActionId, FieldMatch, Priority};
use crate::model::ruleset::RuleSet;
use crate::model::schema::{Field as SchemaField, FieldId, MatchKind, Schema};
use crate::model::seed::splitmix;

/// A field with ranges of any kind, and a field with masks.
fn schema() -> Arc<Schema> {
    let fields = vec![
        SchemaField::new("range", 16, MatchKind::Range),
        SchemaField::new("wide", 100, MatchKind::Prefix),
        SchemaField::new("mask", 8, MatchKind::Ternary),
    ];
    Schema::new("three", fields).unwrap()
}

fn add(rules: &mut RuleSet, number: usize, priority: u32, matches: &[FieldMatch]) {
    let id = RuleId::from_index(number);
    rules
        .add(id, Priority(priority), ActionId(0), matches)
        .unwrap();
}

/// Rules that overlap in all ways, with few priorities.
fn rules(count: usize) -> RuleSet {
    let mut rules = RuleSet::new(&schema());
    let mut state = 1;
    let mut below = |bound: u64| u128::from(splitmix(&mut state) % bound);
    for number in 0..count {
        let ends = [below(1 << 16), below(1 << 16)];
        let length = u32::try_from(below(5)).unwrap() * 25;
        let matches = [
            FieldMatch::Range {
                low: ends[0].min(ends[1]),
                high: ends[0].max(ends[1]),
            },
            FieldMatch::Prefix {
                value: below(3) << 98 | below(3) << 60,
                length,
            },
            FieldMatch::Ternary {
                value: below(256),
                mask: below(256) & below(256),
            },
        ];
        add(
            &mut rules,
            number,
            u32::try_from(below(4)).unwrap(),
            &matches,
        );
    }
    rules
}

/// Keys near the ends of rules, and random keys.
fn keys(rules: &RuleSet) -> KeyVec {
    let mut keys = KeyVec::new(rules.schema());
    let ids: Vec<FieldId> = rules.schema().field_ids().collect();
    for (number, rule) in rules.iter().enumerate() {
        for step in 0..4 {
            let value = |field: usize| {
                let (low, high) = rule.ends(ids[field]);
                let most = rules.schema().field(ids[field]).max_value();
                match (step + number * field) % 4 {
                    0 => low,
                    1 => high,
                    2 => low.saturating_sub(1),
                    _ => (high + 1).min(most),
                }
            };
            keys.push(&[value(0), value(1), value(2)]).unwrap();
        }
    }
    keys
}

fn build(rules: &RuleSet) -> Box<dyn Classifier> {
    let spec = EngineSpec::parse("bit-vector").unwrap();
    spec.build(rules, &Limits::default(), &mut NoProgress)
        .unwrap()
}

fn count(classifier: &dyn Classifier, metric: &str) -> usize {
    match classifier.stats().metric(metric) {
        Some(MetricValue::Count(count)) => count,
        other => panic!("{metric}: {other:?}"),
    }
}

#[test]
fn gaps_between_hosts_share_a_vector_and_open_fields_have_none() {
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    let any = FieldMatch::Any;
    for number in 0..100 {
        let host = FieldMatch::Exact(1000 + 10 * number as u128);
        add(&mut rules, number, 1, &[any, host, any, any, any]);
    }
    let built = build(&rules);
    assert_eq!(built.stats().tables, 1);
    assert_eq!(count(built.as_ref(), "intervals"), 201);
    assert_eq!(count(built.as_ref(), "bit vectors"), 101);
    // No other field matters, and only the bits of this field that separate the value
    // from the hosts.
    let mut keys = KeyVec::new(&schema);
    keys.push(&[1, 1 << 31, 3, 4, 5]).unwrap();
    keys.push(&[1, 1010, 3, 4, 5]).unwrap();
    let field = schema.field_ids().nth(1).unwrap();
    for (key, bits, id) in [(keys.key(0), 1, None), (keys.key(1), 32, Some(1))] {
        let mut mask = vec![0; schema.key_words()];
        let winner = built.classify_masked(key, &mut mask);
        assert_eq!(winner.rule(), id.map(RuleId::from_index));
        let ones = mask.iter().map(|word| word.count_ones()).sum::<u32>();
        let of_field = schema.get_field(&mask, field).count_ones();
        assert_eq!((ones, of_field), (bits, bits));
    }
}

#[test]
fn rules_that_match_everything_have_one_vector() {
    for (rules, vectors) in [(0, 0), (1, 1), (70, 1)] {
        let mut set = RuleSet::new(&schema());
        for number in 0..rules {
            add(&mut set, number, 1, &[FieldMatch::Any; 3]);
        }
        let built = build(&set);
        assert_eq!(built.stats().tables, 1);
        assert_eq!(count(built.as_ref(), "bit vectors"), vectors);
        let found = built.classify_one(&vec![7; set.schema().key_words()]);
        assert_eq!(found.rule(), (rules > 0).then(|| RuleId::from_index(0)));
    }
}

#[test]
fn sets_of_rules_with_one_hash_keep_vectors_of_their_own() {
    let rules = rules(300);
    let keys = keys(&rules);
    let mut vectors = Vec::new();
    for hash_bits in [u64::MAX, 7, 0] {
        let spec = EngineSpec::parse("bit-vector").unwrap();
        let mut memory = Memory::unlimited();
        let mut request = BuildRequest {
            spec: &spec,
            rules: &rules,
            limits: &Limits::default(),
            progress: &mut NoProgress,
            memory: &mut memory,
        };
        let mut built = <BitVector as Algorithm<2>>::build(&mut request).unwrap();
        let mut progress = NoProgress;
        let mut monitor = Monitor::new(&mut progress, &mut memory);
        built.fill_rows(&spec, hash_bits, &mut monitor).unwrap();
        for key in keys.as_slice().iter() {
            let key: &[u64; 2] = key.try_into().unwrap();
            assert_eq!(built.improve(key, Winner::MISS), rules.scan(key));
        }
        vectors.push(built.rows.len() / built.row_blocks);
    }
    // A set that is not found by its hash is stored again.
    assert!(vectors[0] < vectors[2], "{vectors:?}");
    assert!(vectors[0] <= vectors[1], "{vectors:?}");
}

/// In every kind of lookup, and every batch length up to two groups.
#[test]
fn hidden_rules_are_passed_over() {
    let rules = rules(200);
    let keys = keys(&rules);
    let mut built = build(&rules);
    let mut left = RuleSet::new(rules.schema());
    for rule in rules.iter() {
        if rule.id().get() % 3 == 0 {
            assert_eq!(built.hide(rule.id()), Some(true));
            assert_eq!(built.hide(rule.id()), Some(false));
        } else {
            left.push(rule).unwrap();
        }
    }
    assert_eq!(built.hide(RuleId::from_index(1000)), Some(false));
    assert_eq!(built.stats().rules, left.len());
    let scratch = &mut Scratch::new();
    let words = keys.as_slice().width();
    for length in 0..=2 * GROUP + 1 {
        for batch in keys.batches(length.max(1)).take(20) {
            let mut winners = vec![Winner::MISS; batch.len()];
            built.classify_batch(batch, &mut winners, scratch);
            for (key, winner) in batch.iter().zip(winners) {
                assert_eq!(winner, left.scan(key));
            }
        }
    }
    for key in keys.as_slice().iter() {
        let expected = left.scan(key);
        let mut mask = vec![0; words];
        let winner = built.classify_masked(key, &mut mask);
        assert_eq!(winner, expected);
        let trace = built.trace(key);
        assert_eq!(trace.winner, expected);
        let compared = &trace.probes.last().unwrap().compared;
        assert!(compared.iter().all(|&id| left.get(id).is_some()));
        if let Some(id) = expected.rule() {
            assert_eq!(compared.last(), Some(&id));
        }
        // The winner does not depend on other bits.
        for word in 0..words {
            for bit in (0..64).filter(|bit| mask[word] >> bit & 1 == 0) {
                let mut other = key.to_vec();
                other[word] ^= 1 << bit;
                let is_key = rules.schema().field_ids().any(|id| {
                    let mut bits = vec![0; words];
                    let most = rules.schema().field(id).max_value();
                    rules.schema().placement(id).set(&mut bits, most);
                    bits[word] >> bit & 1 == 1
                });
                if is_key {
                    assert_eq!(left.scan(&other), expected);
                }
            }
        }
    }
}

/// Builds and estimates are refused, with the number of bytes.
#[test]
fn vectors_beyond_the_option_are_refused() {
    let rules = rules(4000);
    let built = build(&rules);
    let vectors = count(built.as_ref(), "bit vectors") * size_of::<Block>() * blocks_of(4000);
    let mebibytes = vectors.div_ceil(1 << 20);
    assert!(mebibytes > 2, "{vectors} bytes");
    let build = |mebibytes: usize| {
        let spec = EngineSpec::parse(&format!("bit-vector:mebibytes={mebibytes}")).unwrap();
        let estimate = spec.estimate(&Shape::of(&rules), &Limits::default());
        let built = spec.build(&rules, &Limits::default(), &mut NoProgress);
        (built.map(drop), estimate.map(drop))
    };
    assert_eq!(build(mebibytes).0, Ok(()));
    let error = Err(BuildError::TooManyBytes {
        needed: vectors,
        limit: (mebibytes - 1) << 20,
    });
    assert_eq!(build(mebibytes - 1).0, error);
    assert!(matches!(build(1).1, Err(BuildError::TooManyBytes { .. })));
}
