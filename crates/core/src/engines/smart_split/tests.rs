//! Tests of properties that the shared tests cannot see: which trees are chosen, their
//! metrics, and lookups through several trees.

use super::classes::Classes;
use super::*;
use crate::contract::classifier::{Classifier, MetricValue};
use crate::model::rule::FieldMatch;
use crate::model::schema::{Field, MatchKind, Schema};
use crate::model::seed::splitmix;
use crate::parts::tree::kit::{ANY, build, check, count, keys, range, rules, schema};

/// Rules of two fields: some are small in both, others in one.
fn mixed(number: u64) -> RuleSet {
    let mut state = 7;
    let mut below = |bound: u64| u128::from(splitmix(&mut state) % bound);
    let matches = (0..number).map(|number| {
        let (a, b) = (below(60_000), below(60_000));
        let small = |low: u128| range(low, low + 20);
        match number % 8 {
            0..4 => vec![small(a), small(b)],
            4 | 5 => vec![small(a), range(b / 10, 60_000)],
            6 => vec![range(a / 10, 60_000), small(b)],
            _ => vec![range(a / 4, 60_000), range(b / 4, 60_000)],
        }
    });
    rules(&schema(&[16, 16]), matches.collect::<Vec<_>>())
}

fn word(classifier: &dyn Classifier, metric: &str) -> &'static str {
    match classifier.stats().metric(metric) {
        Some(MetricValue::Word(word)) => word,
        other => panic!("{metric}: {other:?}"),
    }
}

fn kinds(classifier: &dyn Classifier) -> [usize; 3] {
    ["trees", "hyper-split trees", "hyper-cuts trees"].map(|name| count(classifier, name))
}

#[test]
fn the_option_says_which_trees_there_are() {
    let rules = mixed(800);
    let keys = keys(&rules);
    for (option, expected) in [("hyper-split", [1, 1, 0]), ("hyper-cuts", [1, 0, 1])] {
        let built = build(&format!("smart-split:trees={option}"), &rules);
        assert_eq!(kinds(built.as_ref()), expected);
        assert_eq!(word(built.as_ref(), "parted by"), "nothing");
        check(built.as_ref(), &keys, &rules);
    }
    let built = build("smart-split:trees=several", &rules);
    let [trees, split, cuts] = kinds(built.as_ref());
    assert!((2..=4).contains(&trees) && split + cuts == trees, "{trees}");
    assert_eq!(built.stats().tables, trees);
    check(built.as_ref(), &keys, &rules);
    let built = build("smart-split", &rules);
    assert!(count(built.as_ref(), "trees") >= 1);
    check(built.as_ref(), &keys, &rules);
}

/// Metrics report the predicted lookups of the choice and of one tree.
#[test]
fn what_was_predicted_is_reported() {
    let mut state = 7;
    let mut small = || {
        let low = u128::from(splitmix(&mut state) % 60_000);
        range(low, low + 20)
    };
    let matches = (0..3000).map(|_| vec![small(), small()]);
    let alike = rules(&schema(&[16, 16]), matches.collect::<Vec<_>>());
    for (option, rules) in [("auto", alike), ("several", mixed(3000))] {
        let built = build(&format!("smart-split:trees={option}"), &rules);
        let stats = built.stats();
        let ns = |name| match stats.metric(name) {
            Some(MetricValue::Nanoseconds(ns)) => ns,
            other => panic!("{name}: {other:?}"),
        };
        let (chosen, one) = (ns("predicted lookup"), ns("predicted lookup, one tree"));
        assert!(chosen > 0.0, "{option}: {chosen} ns");
        // If one tree is not among the ways, no lookups in one tree are reported.
        assert!(
            option == "several" || chosen <= one,
            "{option}: {chosen} ns, {one} ns"
        );
        let Some(MetricValue::Bytes(bytes)) = stats.metric("predicted bytes") else {
            panic!("no bytes");
        };
        #[allow(clippy::cast_precision_loss)] // a ratio
        let (bytes, found) = (bytes as f64, stats.bytes() as f64);
        assert!(
            bytes < 3.0 * found && found < 3.0 * bytes,
            "{option}: {bytes} for {found}"
        );
    }
}

/// `hide` hides rules of all trees, and lookups find the next best rules.
#[test]
fn rules_are_hidden_whatever_their_tree() {
    let rules = mixed(300);
    let keys = keys(&rules);
    let mut built = build("smart-split:trees=several:binth=2", &rules);
    let mut hidden = Vec::new();
    for number in [0, 5, 6, 7, 12, 14, 15, 299] {
        let id = RuleId::from_index(number);
        assert_eq!((built.hide(id), built.hide(id)), (Some(true), Some(false)));
        hidden.push(id);
    }
    let mut left = RuleSet::new(rules.schema());
    for rule in rules.iter().filter(|rule| !hidden.contains(&rule.id())) {
        left.push(rule).unwrap();
    }
    assert_eq!(built.stats().rules, left.len());
    check(built.as_ref(), &keys, &left);
}

/// Classes depend on the widest fields that have rules of different size.
#[test]
fn the_widest_fields_part_rules() {
    let mixed = mixed(64);
    let some: Vec<u32> = (0..64).collect();
    let classes = Classes::of(&mixed, &some);
    let ways = classes.ways(&mixed, &some);
    let trees: Vec<usize> = ways.iter().map(Vec::len).collect();
    assert_eq!(trees, [1, 2, 2, 4]);
    for way in &ways {
        let mut all: Vec<u32> = way
            .iter()
            .flat_map(|&subset| classes.only(&mixed, &some, subset))
            .collect();
        all.sort_unstable();
        assert_eq!(all, some);
    }
    // All rules are alike, so no field divides them.
    let hosts = (0..64).map(|number| vec![range(number, number), ANY]);
    let hosts = rules(&schema(&[16, 16]), hosts);
    let classes = Classes::of(&hosts, &some);
    assert_eq!(classes.ways(&hosts, &some), [vec![Subset::ALL]]);
}

/// A wide field of exact values and wildcards, and ranges of ports.
#[test]
fn any_schema_is_parted() {
    let fields = vec![
        Field::new("wide", 128, MatchKind::Exact),
        Field::new("masked", 20, MatchKind::Ternary),
        Field::new("port", 16, MatchKind::Range),
    ];
    let schema = Schema::new("three", fields).unwrap();
    let mut state = 9;
    let mut random = || u128::from(splitmix(&mut state));
    let matches = (0..400).map(|number| {
        let wide = match number % 3 {
            0 => ANY,
            _ => FieldMatch::Exact((random() << 64) | (random() % 7)),
        };
        let (value, mask) = (random() & 0xf_ffff, random() & 0xf_ffff);
        let low = random() % 60_000;
        let value = value & mask;
        vec![
            wide,
            FieldMatch::Ternary { value, mask },
            range(low, low + 500),
        ]
    });
    let rules = rules(&schema, matches.collect::<Vec<_>>());
    for text in ["smart-split", "smart-split:trees=several"] {
        check(build(text, &rules).as_ref(), &keys(&rules), &rules);
    }
}

#[test]
fn few_rules_have_one_tree() {
    for number in [0, 1, 10] {
        let rules = mixed(number);
        let built = build("smart-split", &rules);
        assert_eq!(kinds(built.as_ref()), [1, 1, 0]);
        assert_eq!(built.stats().rules, rules.len());
        check(built.as_ref(), &keys(&rules), &rules);
    }
}
