//! The differences of `diff` against every header of small schemas.

use std::collections::BTreeMap;

use classyard::NoProgress;
use classyard::prelude::*;
use classyard_analysis::{AnalysisError, Diff, DiffSettings, diff};
use classyard_conformance::random::{Dice, SeededDice};

mod small;

use small::{all_keys, crowded_policy, small_match, small_policy, small_schema};

/// Returns a policy with some rules of another one removed, added, or given another action,
/// priority or place.
fn changed(policy: &Policy, dice: &mut dyn Dice) -> Policy {
    let schema = policy.parts()[0].schema();
    let mut result = Policy::single(schema);
    // Other ids of the same names.
    for name in ["log", "permit", "deny"] {
        result.declare_action(name);
    }
    let part = result.part_ids().next().unwrap();
    let mut rules: Vec<_> = policy.parts()[0].iter().collect();
    rules.sort_by_key(|rule| rule.winner().rank());
    let add = |result: &mut Policy, matches: &[FieldMatch], action: &str| {
        let id = RuleId::from_index(result.len());
        let action = result.declare_action(action);
        let priority = Priority(10_000 - id.get());
        result
            .add(id, priority, action, &[(part, matches)])
            .unwrap();
    };
    for rule in rules {
        let mut matches = rule.fields();
        let mut action = policy.action_name(rule.action()).unwrap();
        match dice.below(12) {
            0 => continue,
            1 => action = "permit",
            2 => {
                let field = dice.below(matches.len());
                matches[field] = small_match(&schema.fields()[field], dice);
            }
            3 => add(&mut result, &matches, "log"),
            _ => {}
        }
        add(&mut result, &matches, action);
    }
    result
}

/// Checks a result against every header. Returns the number of headers.
fn check(first: &Policy, second: &Policy, result: &Diff) -> usize {
    let rules = [&first.parts()[0], &second.parts()[0]];
    let keys = all_keys(rules[0].schema());
    assert!(result.undecided().is_empty(), "small sets are decided");
    let mut expected: BTreeMap<[Option<RuleId>; 2], usize> = BTreeMap::new();
    let verdicts = |key: &[u64]| {
        let winners = rules.map(|rules| rules.scan(key).rule());
        let action = |policy: &Policy, winner: Option<RuleId>| {
            let rule = policy.parts()[0].get(winner?)?;
            policy.action_name(rule.action()).map(str::to_owned)
        };
        (
            winners,
            action(first, winners[0]),
            action(second, winners[1]),
        )
    };
    for key in keys.as_slice().iter() {
        let (winners, a, b) = verdicts(key);
        if a != b {
            *expected.entry(winners).or_default() += 1;
        }
    }
    for difference in result.differences() {
        let winners = [difference.first, difference.second];
        let count = expected.remove(&winners);
        let count = count.unwrap_or_else(|| panic!("{first:?} {second:?} {difference:?}"));
        #[allow(clippy::cast_precision_loss)] // few headers
        let share = count as f64 / keys.len() as f64;
        assert!(
            (share - difference.share).abs() < 1e-12,
            "{share} {difference:?}"
        );
        assert!(!difference.more);
        let mut key = KeyVec::new(rules[0].schema());
        key.push(&difference.header).unwrap();
        assert_eq!(verdicts(key.key(0)).0, winners);
    }
    assert!(expected.is_empty(), "{first:?} {second:?} {expected:?}");
    keys.len()
}

#[test]
fn differences_are_those_of_every_header() {
    let mut dice = SeededDice::new(5);
    let (mut headers, mut equivalent, mut differences) = (0, 0, 0);
    for round in 0..2500 {
        let schema = small_schema(&mut dice);
        let first = small_policy(&schema, &mut dice);
        let second = match round % 4 {
            0 => small_policy(&schema, &mut dice),
            _ => changed(&first, &mut dice),
        };
        let result = diff(&first, &second, &DiffSettings::default(), &mut NoProgress).unwrap();
        headers += check(&first, &second, &result);
        equivalent += usize::from(result.is_equivalent() == Some(true));
        differences += result.differences().len();
        let mut settings = DiffSettings::default();
        settings.max_differences = 1;
        let short = diff(&first, &second, &settings, &mut NoProgress).unwrap();
        assert_eq!(short.is_equivalent(), result.is_equivalent());
        assert_eq!(short.is_cut(), result.is_equivalent() == Some(false));
        assert!(!result.is_cut());
    }
    assert!(headers >= 1_000_000, "{headers} headers");
    assert!(equivalent > 100 && differences > 1000);
}

#[test]
fn long_lists_of_rules_give_the_same_differences() {
    let mut dice = SeededDice::new(8);
    for _ in 0..3 {
        let first = crowded_policy(&mut dice);
        let second = changed(&first, &mut dice);
        let result = diff(&first, &second, &DiffSettings::default(), &mut NoProgress).unwrap();
        check(&first, &second, &result);
        assert!(result.unpaired()[0] > 500);
        let same = diff(&first, &first, &DiffSettings::default(), &mut NoProgress).unwrap();
        assert_eq!(same.is_equivalent(), Some(true));
        assert_eq!(same.unpaired(), [0, 0]);
    }
}

#[test]
fn other_schemas_are_refused() {
    let first = Policy::single(&Schema::ipv4_5tuple());
    let second = Policy::dual_stack();
    let result = diff(&first, &second, &DiffSettings::default(), &mut NoProgress);
    let Err(error @ AnalysisError::Schemas { .. }) = result else {
        panic!("{result:?}")
    };
    assert!(error.to_string().contains("ipv6-5tuple"), "{error}");
}
