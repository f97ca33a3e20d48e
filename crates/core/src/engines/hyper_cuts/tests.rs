//! Tests beyond the shared tests: the structure of trees, rules that are left out,
//! bounds, and the bits of a key that a lookup depends on.

use super::choose::{Budget, Chooser, cuts};
use super::node::Cut;
use super::*;
use crate::budget::monitor::unwatched;
use crate::contract::classifier::Limits;
use crate::model::key::KeyVec;
use crate::model::rule::FieldMatch;
use crate::model::rule::RuleId;
use crate::model::ruleset::RuleSet;
use crate::model::schema::Field;
use crate::model::seed::splitmix;
use crate::parts::tree::kit::{
    ANY, build, check, check_hidden_rules, count, keys, range, rules, schema,
};
use crate::parts::tree::{Grid, Side};

/// Hosts that differ in six bits: higher bits are not read, and lower bits are compared
/// at the leaf.
#[test]
fn hosts_are_in_one_leaf_each_and_other_fields_do_not_matter() {
    let schema = schema(&[16, 32, 16]);
    let hosts = (0..64).map(|number| {
        let host = FieldMatch::Exact(1 << 31 | number << 16);
        vec![ANY, host, ANY]
    });
    let rules = rules(&schema, hosts);
    let built = build("hyper-cuts:binth=1:spfac=8", &rules);
    let found = ["nodes", "leaves", "places", "depth"].map(|name| count(built.as_ref(), name));
    assert_eq!(found, [65, 64, 64, 1]);
    let mut keys = KeyVec::new(&schema);
    // The last bit is 0 in all rules.
    keys.push(&[7, 1 << 31 | 33 << 16 | 1, 9]).unwrap();
    keys.push(&[7, 1 << 31 | 50 << 16, 9]).unwrap();
    let field = schema.field_ids().nth(1).unwrap();
    for (key, bits, id) in [(keys.key(0), 7, None), (keys.key(1), 32, Some(50))] {
        let mut mask = vec![0; schema.key_words()];
        let winner = built.classify_masked(key, &mut mask);
        assert_eq!(winner.rule(), id.map(RuleId::from_index));
        let ones: u32 = mask.iter().map(|word| word.count_ones()).sum();
        let of_field = schema.get_field(&mask, field).count_ones();
        assert_eq!((ones, of_field), (bits, bits));
    }
    check(built.as_ref(), &keys, &rules);
}

/// Returns the cuts of a node with all rules.
fn cuts_of(rules: &RuleSet, bits: u32) -> Vec<Cut> {
    unwatched(|monitor| {
        let ranked = RankedRules::build(rules, &Limits::default(), monitor)?;
        let grid = Grid::new(&ranked, monitor)?;
        let entries: Vec<_> = (0..).take(rules.len()).map(|at| grid.entry(at)).collect();
        let most = rules.schema().fields().iter().map(Field::max_value);
        let sides = most.enumerate();
        let sides: Vec<_> = sides
            .map(|(field, most)| Side::around(&grid, field, 0, most))
            .collect();
        let budget = Budget {
            bits,
            places: 100_000,
        };
        let mut chooser = Chooser::default();
        let mut found = Vec::new();
        cuts(
            chooser.choose(&grid, &entries, &sides, budget, monitor)?,
            &sides,
            &mut found,
        );
        Ok(found)
    })
}

/// A board of 8 × 8 cells in two of three fields: both are cut into eight parts. The
/// third field has one interval and is not cut.
#[test]
fn several_fields_are_cut_at_once() {
    let schema = schema(&[8, 12, 16]);
    let cells = (0..64).map(|number| {
        let at = |number: u128, size: u128| range(size * number, size * (number + 1) - 1);
        vec![at(number % 8, 32), ANY, at(number / 8, 8192)]
    });
    let rules = rules(&schema, cells);
    let mut found = cuts_of(&rules, 6);
    found.sort_by_key(|cut| cut.field);
    let cut = |field, shift| Cut {
        field,
        shift,
        bits: 3,
    };
    assert_eq!(found, [cut(0, 5), cut(2, 13)]);
    let built = build("hyper-cuts:binth=1:spfac=8", &rules);
    let found = ["nodes", "places", "depth", "longest list"];
    let found = found.map(|name| count(built.as_ref(), name));
    assert_eq!(found, [65, 64, 1, 1]);
    check(built.as_ref(), &keys(&rules), &rules);
}

/// A cut in half does not separate the rules, but a cut into eight parts does.
#[test]
fn a_field_may_be_cut_into_many_parts_at_once() {
    let schema = schema(&[16]);
    let low = (0..16).map(|number| vec![range(number, number)]);
    let high = (0..16).map(|number| vec![range(40_000 + number, 50_000)]);
    let rules = rules(&schema, low.chain(high));
    assert!(!cuts_of(&rules, 4).is_empty());
    let built = build("hyper-cuts:binth=2", &rules);
    check(built.as_ref(), &keys(&rules), &rules);
}

/// Rules that a better rule covers in a box are left out, and found when the better
/// rule is hidden.
#[test]
fn rules_behind_a_hidden_one_are_found() {
    check_hidden_rules("hyper-cuts:binth=1");
}

/// Small rules, each within a larger and better rule: no small rule is stored.
#[test]
fn covered_rules_are_left_out() {
    let schema = schema(&[16, 16]);
    let large = (0..20).map(|number| vec![range(3000 * number, 3000 * number + 1999), ANY]);
    let small = (0..200).map(|number| {
        let low = 300 * (number / 2) + 1000 * (number % 10) / 10;
        vec![range(low, low + 10), range(number, number + 50)]
    });
    let small: Vec<_> = small.collect();
    let rules = rules(&schema, large.chain(small));
    let mut built = build("hyper-cuts:binth=1", &rules);
    check(built.as_ref(), &keys(&rules), &rules);
    let mut hidden = Vec::new();
    for number in [3, 4, 19] {
        let id = RuleId::from_index(number);
        assert_eq!(built.hide(id), Some(true));
        hidden.push(id);
        let mut left = RuleSet::new(&schema);
        for rule in rules.iter().filter(|rule| !hidden.contains(&rule.id())) {
            left.push(rule).unwrap();
        }
        check(built.as_ref(), &keys(&rules), &left);
    }
}

/// A rule with holes in its mask does not end a list.
#[test]
fn masks_with_holes_cover_nothing() {
    let schema = schema(&[8]);
    let holes = FieldMatch::Ternary { value: 0, mask: 1 };
    let rules = rules(&schema, [vec![holes], vec![ANY], vec![range(3, 9)]]);
    let built = build("hyper-cuts:binth=1", &rules);
    assert!((2..=3).contains(&count(built.as_ref(), "places")));
    let mut keys = KeyVec::new(&schema);
    (0..=255).for_each(|value| keys.push(&[value]).unwrap());
    check(built.as_ref(), &keys, &rules);
}

/// Half of the rules are open in one field, and half in the other field: with 500 rules,
/// 62,500 pairs overlap.
#[test]
fn places_are_bounded_and_lists_stay_long() {
    let matches = (0..500_u128).map(|number| {
        let low = 100 * (number / 2);
        let (open, closed) = (range(0, u128::from(u16::MAX)), range(low, low + 99));
        match number % 2 {
            0 => vec![open, closed],
            _ => vec![closed, open],
        }
    });
    let rules = rules(&schema(&[16, 16]), matches);
    let keys = keys(&rules);
    let mut before = usize::MAX;
    for places in [1, 2, 8, 64] {
        let built = build(&format!("hyper-cuts:places={places}"), &rules);
        let found = count(built.as_ref(), "places");
        assert!(found <= 500 * places, "{found} of {places} for each rule");
        let nodes = count(built.as_ref(), "nodes");
        assert!(nodes <= 500 * places, "{nodes} nodes");
        let longest = count(built.as_ref(), "longest list");
        assert!(longest <= before, "{longest} rules, {before} before");
        before = longest;
        check(built.as_ref(), &keys, &rules);
    }
    assert!(before < 50, "{before} rules");
}

/// Rules that span many parts of a field, and small rules: three of eight parts have no
/// small rules, and so the same rules.
#[test]
fn equal_children_are_made_once() {
    let schema = schema(&[16, 16]);
    let small = (0..40).map(|number| {
        let low = match number {
            0..20 => 800 * number,
            _ => 48_000 + 800 * (number - 20),
        };
        vec![range(low, low + 7), ANY]
    });
    let wide = (0..4).map(|number| {
        let low = 5000 * number;
        vec![range(5, 60_000), range(low, low + 99)]
    });
    let rules = rules(&schema, small.chain(wide));
    let built = build("hyper-cuts:binth=16", &rules);
    let found = ["nodes", "leaves", "depth"].map(|name| count(built.as_ref(), name));
    assert_eq!(found, [9, 6, 1]);
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
    let built = build("hyper-cuts:binth=2", &rules);
    let longest = count(built.as_ref(), "longest list");
    assert!(longest < 100, "{longest}");
    check(built.as_ref(), &keys(&rules), &rules);
}

#[test]
fn rules_that_nothing_tells_apart_stay_in_one_leaf() {
    let schema = schema(&[8, 8]);
    for (number, places) in [(0, 0), (1, 1), (100, 1)] {
        let rules = rules(&schema, (0..number).map(|_| vec![ANY, ANY]));
        let built = build("hyper-cuts", &rules);
        let found = ["leaves", "places", "depth"].map(|name| count(built.as_ref(), name));
        assert_eq!(found, [1, places, 0]);
    }
    let rules = rules(&schema, (0..100).map(|_| vec![range(3, 9), ANY]));
    let built = build("hyper-cuts", &rules);
    // The first rule covers all other rules.
    let found = ["leaves", "places", "depth"].map(|name| count(built.as_ref(), name));
    assert_eq!(found, [1, 1, 0]);
    check(built.as_ref(), &keys(&rules), &rules);
}
