//! Tests beyond the shared tests: the structure of trees, lists whose last rule is
//! hidden later, bounds, and the bits of a key that a lookup depends on.

use super::*;
use crate::budget::monitor::unwatched;
use crate::contract::classifier::Limits;
use crate::model::key::KeyVec;
use crate::model::rule::FieldMatch;
use crate::model::rule::RuleId;
use crate::model::ruleset::RuleSet;
use crate::model::seed::splitmix;
use crate::parts::tree::Grid;
use crate::parts::tree::kit::{
    ANY, build, check, check_hidden_rules, count, keys, range, rules, schema,
};
use crate::parts::tree::split::{Chooser, Cut};

#[test]
fn hosts_are_in_one_leaf_each_and_other_fields_do_not_matter() {
    let schema = schema(&[16, 32, 16]);
    let hosts = (0..1000).map(|number| {
        let host = FieldMatch::Exact(1 << 31 | number << 16);
        vec![ANY, host, ANY]
    });
    let rules = rules(&schema, hosts);
    let built = build("hyper-split", &rules);
    assert_eq!(count(built.as_ref(), "places"), 1000);
    assert!(count(built.as_ref(), "longest list") <= 8);
    assert!(count(built.as_ref(), "depth") <= 9);
    let mut keys = KeyVec::new(&schema);
    // The first bit is 1 in all rules.
    keys.push(&[7, 5, 9]).unwrap();
    keys.push(&[7, 1 << 31 | 500 << 16, 9]).unwrap();
    let field = schema.field_ids().nth(1).unwrap();
    for (key, bits, id) in [(keys.key(0), 1, None), (keys.key(1), 32, Some(500))] {
        let mut mask = vec![0; schema.key_words()];
        let winner = built.classify_masked(key, &mut mask);
        assert_eq!(winner.rule(), id.map(RuleId::from_index));
        let ones: u32 = mask.iter().map(|word| word.count_ones()).sum();
        assert_eq!(
            (ones, schema.get_field(&mask, field).count_ones()),
            (bits, bits)
        );
    }
    check(built.as_ref(), &keys, &rules);
}

/// Cuts the field with the fewest rules in a part, where half of the rules of its parts
/// are below.
#[test]
fn the_field_of_the_smallest_mean_is_cut_in_half() {
    let schema = schema(&[8, 8]);
    // Second field: parts from 0, 10, 20, …, 70, each with a rule. First field: parts
    // from 0 with half of the rules, and from 4 with all rules.
    let matches = (0..8).map(|number| {
        let first = if number % 2 == 0 {
            range(0, 255)
        } else {
            range(4, 255)
        };
        vec![first, range(10 * number, 10 * number + 9)]
    });
    let rules = rules(&schema, matches);
    let cut = unwatched(|monitor| {
        let ranked = RankedRules::build(&rules, &Limits::default(), monitor)?;
        let grid = Grid::new(&ranked, monitor)?;
        let entries: Vec<_> = (0..8).map(|place| grid.entry(place)).collect();
        let sides: Vec<_> = grid.everything().collect();
        assert_eq!(grid.starts(0), [0, 4]);
        assert_eq!(grid.starts(1), [0, 10, 20, 30, 40, 50, 60, 70, 80]);
        Chooser::new(monitor)?.choose(&grid, &entries, &sides, monitor)
    });
    // The ninth part is empty.
    let expected = Cut {
        field: 1,
        at: 4,
        mean: 8.0 / 9.0,
    };
    assert_eq!(cut, Some(expected));
}

/// Rules after a rule that covers the leaf are dropped, and found when that rule is
/// hidden.
#[test]
fn rules_behind_a_hidden_one_are_found() {
    check_hidden_rules("hyper-split:binth=1");
}

/// A rule with holes in its mask does not end a list.
#[test]
fn masks_with_holes_cover_nothing() {
    let schema = schema(&[8]);
    let holes = FieldMatch::Ternary { value: 0, mask: 1 };
    let rules = rules(&schema, [vec![holes], vec![ANY], vec![range(3, 9)]]);
    let built = build("hyper-split:binth=1", &rules);
    // The values 0 to 254 have both rules that may match, and 255 has the second rule.
    assert_eq!(count(built.as_ref(), "places"), 3);
    let mut keys = KeyVec::new(&schema);
    (0..=255).for_each(|value| keys.push(&[value]).unwrap());
    check(built.as_ref(), &keys, &rules);
}

/// Half of the rules are open in one field, and half in the other field: with 500 rules,
/// 62,500 pairs overlap.
fn crossing() -> RuleSet {
    let matches = (0..500_u128).map(|number| {
        let low = 100 * (number / 2);
        let (open, closed) = (range(0, u128::from(u16::MAX)), range(low, low + 99));
        match number % 2 {
            0 => vec![open, closed],
            _ => vec![closed, open],
        }
    });
    rules(&schema(&[16, 16]), matches)
}

#[test]
fn places_are_bounded_and_lists_stay_long() {
    let rules = crossing();
    let keys = keys(&rules);
    let mut before = usize::MAX;
    for places in [1, 2, 8, 64] {
        let built = build(&format!("hyper-split:places={places}"), &rules);
        let found = count(built.as_ref(), "places");
        assert!(found <= 500 * places, "{found} of {places} for each rule");
        assert!(found > 300 * places, "{found} of {places} for each rule");
        let longest = count(built.as_ref(), "longest list");
        assert!(longest < before, "{longest} rules, {before} before");
        before = longest;
        check(built.as_ref(), &keys, &rules);
    }
}

#[test]
fn equal_lists_are_stored_once() {
    let schema = schema(&[16, 16]);
    // Nine masks with holes are in every leaf. Leaves between the cells of a board have
    // no other rules.
    let holes = FieldMatch::Ternary { value: 0, mask: 1 };
    let wide = (0..9).map(|_| vec![holes, ANY]);
    let cells = (0..40).map(|number| {
        let at = |number: u128| range(1000 * number, 1000 * number + 10);
        vec![at(1 + number % 8), at(1 + number / 8)]
    });
    let rules = rules(&schema, cells.chain(wide));
    let built = build("hyper-split:binth=9", &rules);
    let count = |name| count(built.as_ref(), name);
    let (leaves, stored) = (count("leaves"), count("places stored"));
    // Each cell's leaf, the leaves between cells, and leaves that no mask matches.
    assert!(
        leaves > 80 && stored <= 40 * 10 + 9,
        "{leaves} leaves, {stored} places"
    );
    assert!(count("places") > stored + 9 * 20);
    check(built.as_ref(), &keys(&rules), &rules);
}

/// Fields of more than 64 bits, cut in their upper and in their lower half.
#[test]
fn wide_fields_are_cut_by_halves() {
    let schema = schema(&[128, 65, 64]);
    let mut state = 5;
    let mut random = || u128::from(splitmix(&mut state));
    let matches = (0..400).map(|number| {
        let wide = |upper: u128, lower: u128| upper << 64 | lower;
        let upper = 7 + random() % 5;
        let first = match number % 4 {
            0 => FieldMatch::Exact(wide(upper, random())),
            1 => range(
                wide(upper, random()),
                wide(upper + 1 + random() % 3, random()),
            ),
            2 => range(wide(u128::from(u64::MAX), random() >> 1), u128::MAX),
            _ => FieldMatch::Prefix {
                value: wide(upper, random() >> 60 << 60),
                length: 68,
            },
        };
        let low = random();
        let second = range(low, low + ((random() % 2) << 63));
        vec![first, second, range(0, random())]
    });
    let matches: Vec<_> = matches.collect();
    let rules = rules(&schema, matches);
    let built = build("hyper-split:binth=2", &rules);
    assert!(count(built.as_ref(), "longest list") < 100);
    check(built.as_ref(), &keys(&rules), &rules);
}

#[test]
fn rules_that_nothing_tells_apart_stay_in_one_leaf() {
    let schema = schema(&[8, 8]);
    for (number, places) in [(0, 0), (1, 1), (100, 1)] {
        let rules = rules(&schema, (0..number).map(|_| vec![ANY, ANY]));
        let built = build("hyper-split", &rules);
        let found = ["leaves", "places", "depth"].map(|name| count(built.as_ref(), name));
        assert_eq!(found, [1, places, 0]);
    }
    let rules = rules(&schema, (0..100).map(|_| vec![range(3, 9), ANY]));
    let built = build("hyper-split", &rules);
    // The first rule covers its leaf.
    let found = ["leaves", "places", "depth"].map(|name| count(built.as_ref(), name));
    assert_eq!(found, [3, 1, 2]);
    check(built.as_ref(), &keys(&rules), &rules);
}
