//! The differences of `outside` against every header of small schemas.

use std::collections::BTreeMap;

use classyard::prelude::*;
use classyard::{Field, MatchKind, NoProgress};
use classyard_analysis::{Diff, DiffSettings, outside};
use classyard_conformance::random::{Dice, SeededDice};

mod small;

use small::{all_keys, apart, crowded_policy, small_policy, small_schema};

/// Returns the name of the action of a rule.
fn action(policy: &Policy, rule: Option<RuleId>) -> Option<&str> {
    let (_, rule) = policy.rule(rule?).next()?;
    policy.action_name(rule.action())
}

/// Checks a result against every header. Returns the number of headers.
fn check(policies: [&Policy; 2], selection: Option<&Policy>, result: &Diff) -> usize {
    let rules = policies.map(|policy| &policy.parts()[0]);
    let keys = all_keys(rules[0].schema());
    assert!(result.undecided().is_empty() && !result.is_cut());
    let selects = |key: &[u64]| {
        let mut rules = selection.map(|selection| selection.parts()[0].iter());
        rules
            .as_mut()
            .is_none_or(|rules| rules.any(|rule| rule.matches(key)))
    };
    let winners = |key: &[u64]| rules.map(|rules| rules.scan(key).rule());
    let is_outside = |winners: [Option<RuleId>; 2]| {
        action(policies[0], winners[0]) == Some("permit")
            && action(policies[1], winners[1]) != Some("permit")
    };
    let mut expected: BTreeMap<[Option<RuleId>; 2], u32> = BTreeMap::new();
    let mut selected = 0;
    for key in keys.as_slice().iter().filter(|key| selects(key)) {
        selected += 1;
        if is_outside(winners(key)) {
            *expected.entry(winners(key)).or_default() += 1;
        }
    }
    assert_eq!(result.is_equivalent(), Some(expected.is_empty()));
    for difference in result.differences() {
        let pair = [difference.first, difference.second];
        let count = expected.remove(&pair).expect("headers outside");
        let share = f64::from(count) / f64::from(selected);
        assert!(
            (share - difference.share).abs() < 1e-9,
            "{share} {difference:?}"
        );
        let mut key = KeyVec::new(rules[0].schema());
        key.push(&difference.header).unwrap();
        assert!(selects(key.key(0)));
        assert_eq!(winners(key.key(0)), pair);
    }
    assert!(expected.is_empty(), "{policies:?} {expected:?}");
    keys.len()
}

#[test]
fn headers_outside_are_those_of_every_header() {
    let mut dice = SeededDice::new(21);
    let (mut headers, mut within, mut differences) = (0, 0, 0);
    for round in 0..2500 {
        let schema = small_schema(&mut dice);
        let first = small_policy(&schema, &mut dice);
        let second = match round % 3 {
            0 => first.clone(),
            _ => small_policy(&schema, &mut dice),
        };
        let selection = (round % 2 == 0).then(|| apart(&schema, 1 + dice.below(3), &mut dice));
        let settings = DiffSettings::default();
        let selection = selection.as_ref();
        let result = outside(
            &first,
            &second,
            "permit",
            selection,
            &settings,
            &mut NoProgress,
        );
        let result = result.unwrap();
        headers += check([&first, &second], selection, &result);
        within += usize::from(result.is_equivalent() == Some(true));
        differences += result.differences().len();
    }
    assert!(headers >= 1_000_000, "{headers} headers");
    assert!(within > 900 && differences > 1000, "{within} {differences}");
}

#[test]
fn nearly_equal_lists_give_the_headers_outside() {
    let mut dice = SeededDice::new(22);
    let (mut within, mut differences) = (0, 0);
    for _ in 0..1500 {
        let schema = small_schema(&mut dice);
        let first = small_policy(&schema, &mut dice);
        let mut second = Policy::single(&schema);
        let part = second.part_ids().next().unwrap();
        // Actions with other numbers.
        second.declare_action("log");
        for &id in first.ids() {
            let rule = first.rule(id).next().unwrap().1;
            let name = match dice.below(8) {
                0 => continue,
                1 => "permit",
                _ => first.action_name(rule.action()).unwrap(),
            };
            let action = second.declare_action(name);
            let added = second.add(id, rule.priority(), action, &[(part, &rule.fields())]);
            added.unwrap();
        }
        let settings = DiffSettings::default();
        let result = outside(&first, &second, "permit", None, &settings, &mut NoProgress);
        let result = result.unwrap();
        check([&first, &second], None, &result);
        within += usize::from(result.is_equivalent() == Some(true));
        differences += result.differences().len();
    }
    assert!(within > 200 && differences > 200, "{within} {differences}");
}

#[test]
fn long_lists_give_the_headers_outside() {
    let mut dice = SeededDice::new(23);
    let first = crowded_policy(&mut dice);
    let is_same = |other: &Policy| other.schemas().eq(first.schemas());
    let mut others = std::iter::repeat_with(|| crowded_policy(&mut dice));
    let second = others.find(is_same).expect("one of three schemas");
    let settings = DiffSettings::default();
    let result = outside(&first, &second, "permit", None, &settings, &mut NoProgress);
    check([&first, &second], None, &result.unwrap());
}

#[test]
fn a_selection_of_too_many_boxes_is_undecided() {
    let fields = ["a", "b", "c"].map(|name| Field::new(name, 16, MatchKind::Range));
    let schema = Schema::new("holes", fields.into()).unwrap();
    let policy = |matched: FieldMatch, action: &str| {
        let mut policy = Policy::single(&schema);
        let part = policy.part_ids().next().unwrap();
        let action = policy.declare_action(action);
        let rules = [(part, &[matched; 3][..])];
        policy
            .add(RuleId::from_index(0), Priority(0), action, &rules)
            .unwrap();
        policy
    };
    let (value, mask) = (0, 0x0f0f);
    let rules = policy(FieldMatch::Ternary { value, mask }, "permit");
    let selection = policy(FieldMatch::Range { low: 1, high: 999 }, "");
    let settings = DiffSettings::default();
    let within = |selection| {
        outside(
            &rules,
            &rules,
            "permit",
            selection,
            &settings,
            &mut NoProgress,
        )
    };
    assert_eq!(within(None).unwrap().is_equivalent(), Some(true));
    let result = within(Some(&selection)).unwrap();
    assert_eq!(result.is_equivalent(), None);
    assert_eq!(result.undecided()[0].rule, RuleId::from_index(0));
}

#[test]
fn both_families_are_compared() {
    let policy = |actions: [&str; 2]| {
        let mut policy = Policy::dual_stack();
        let parts: Vec<_> = policy.part_ids().collect();
        for (index, (part, action)) in parts.into_iter().zip(actions).enumerate() {
            let action = policy.declare_action(action);
            let rules = [(part, &[FieldMatch::Any; 5][..])];
            let id = RuleId::from_index(index);
            policy.add(id, Priority(0), action, &rules).unwrap();
        }
        policy
    };
    let outside = |first, second| {
        let (first, second, settings) = (policy(first), policy(second), DiffSettings::default());
        let result = outside(&first, &second, "permit", None, &settings, &mut NoProgress);
        let differences = result.unwrap().differences().to_vec();
        differences
            .into_iter()
            .map(|difference| difference.part.index())
            .collect::<Vec<_>>()
    };
    let (both, none) = (["permit", "permit"], ["deny", "deny"]);
    assert_eq!(outside(both, both), []);
    assert_eq!(outside(both, ["permit", "deny"]), [1]);
    assert_eq!(outside(both, none), [0, 1]);
    assert_eq!(outside(none, both), []);
}
