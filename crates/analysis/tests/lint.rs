//! The findings of `lint` against every header of small schemas.

use std::collections::{BTreeMap, BTreeSet};

use classyard::prelude::*;
use classyard::{Field, MatchKind, NoProgress, PartId};
use classyard_analysis::{Finding, Lint, LintSettings, lint};
use classyard_conformance::random::SeededDice;

mod small;

use small::{all_keys, crowded_policy, small_policy, small_schema};

/// Returns the action of a key by a scan of all rules that `has` accepts.
fn verdict(rules: &RuleSet, key: &[u64], has: impl Fn(RuleId) -> bool) -> Option<ActionId> {
    let matching = rules
        .iter()
        .filter(|rule| has(rule.id()) && rule.matches(key));
    let best = matching.min_by_key(|rule| rule.winner().rank());
    best.map(|rule| rule.action())
}

/// Returns true if two lists of rules give the same action to every key.
fn same_verdicts(rules: &RuleSet, keys: &KeyVec, removed: &BTreeSet<RuleId>) -> bool {
    keys.as_slice().iter().all(|key| {
        verdict(rules, key, |_| true) == verdict(rules, key, |id| !removed.contains(&id))
    })
}

/// The winner of a key, and the action that the key gets without the winner.
type Decision = (Option<RuleId>, Option<ActionId>);

fn decision(rules: &RuleSet, key: &[u64]) -> Decision {
    let winner = rules.scan(key).rule();
    (winner, verdict(rules, key, |id| Some(id) != winner))
}

/// Checks a result against every header. Returns the number of headers times rules.
fn check(policy: &Policy, lint: &Lint) -> usize {
    let rules = policy.part(policy.part_ids().next().unwrap());
    let keys = all_keys(rules.schema());
    assert!(lint.unknown().is_empty(), "small sets are decided");
    let mut won: BTreeMap<RuleId, Vec<Option<ActionId>>> = BTreeMap::new();
    for key in keys.as_slice().iter() {
        let (winner, next) = decision(rules, key);
        won.entry(winner.unwrap_or(RuleId::MAX))
            .or_default()
            .push(next);
    }
    let findings = lint.findings().iter();
    let findings: BTreeMap<RuleId, &Finding> = findings.map(|f| (f.rule(), f)).collect();
    assert_eq!(findings.len(), lint.findings().len());
    let mut removed: Vec<RuleId> = Vec::new();
    for (position, &id) in policy.ids().iter().enumerate() {
        let own = rules.get(id).unwrap();
        let is_dead = !won.contains_key(&id);
        let is_redundant = won
            .get(&id)
            .is_some_and(|next| next.iter().all(|&action| action == Some(own.action())));
        let finding = findings.get(&id);
        match finding {
            Some(Finding::Dead {
                blockers,
                all_needed,
                same_action,
                ..
            }) => {
                assert!(is_dead, "{policy:?} {finding:?}");
                assert!(all_needed);
                check_blockers(rules, &keys, id, blockers, *same_action);
                removed.push(id);
            }
            Some(Finding::Redundant {
                removable,
                successors,
                ..
            }) => {
                assert!(is_redundant, "{policy:?} {finding:?}");
                for &successor in successors {
                    let successor = rules.get(successor).unwrap();
                    assert!(own.winner().beats(successor.winner()));
                    assert_eq!(own.action(), successor.action());
                }
                removed.extend(removable.then_some(id));
            }
            _ => assert!(!is_dead && !is_redundant, "{policy:?} rule {id}"),
        }
        let witness = lint.witness(position);
        assert_eq!(witness.is_none(), is_dead);
        if let Some((_, header)) = witness {
            let mut key = KeyVec::new(rules.schema());
            key.push(&header).unwrap();
            assert_eq!(rules.scan(key.key(0)).rule(), Some(id));
        }
    }
    let removed = removed.into_iter().collect();
    assert!(
        same_verdicts(rules, &keys, &removed),
        "{policy:?} {removed:?}"
    );
    keys.len() * policy.len()
}

/// Checks that better rules cover a dead rule, and that each of them is needed.
fn check_blockers(
    rules: &RuleSet,
    keys: &KeyVec,
    dead: RuleId,
    blockers: &[RuleId],
    same_action: bool,
) {
    let dead = rules.get(dead).unwrap();
    let own: Vec<&[u64]> = keys
        .as_slice()
        .iter()
        .filter(|key| dead.matches(key))
        .collect();
    let covered_without = |left_out: Option<RuleId>| {
        own.iter().all(|key| {
            let mut others = blockers.iter().filter(|&&id| Some(id) != left_out);
            others.any(|&id| rules.get(id).unwrap().matches(key))
        })
    };
    assert!(covered_without(None));
    for &blocker in blockers {
        assert!(rules.get(blocker).unwrap().winner().beats(dead.winner()));
        assert!(!covered_without(Some(blocker)), "{blocker} is not needed");
    }
    let mut actions = blockers.iter().map(|&id| rules.get(id).unwrap().action());
    assert_eq!(same_action, actions.all(|action| action == dead.action()));
}

#[test]
fn findings_are_those_of_every_header() {
    let mut dice = SeededDice::new(11);
    let (mut cases, mut dead, mut by_several, mut redundant, mut kept) = (0, 0, 0, 0, 0);
    for _ in 0..400 {
        let schema = small_schema(&mut dice);
        let policy = small_policy(&schema, &mut dice);
        let lint = lint(&policy, &LintSettings::default(), &mut NoProgress).unwrap();
        cases += check(&policy, &lint);
        for finding in lint.findings() {
            match finding {
                Finding::Dead { blockers, .. } => {
                    dead += 1;
                    by_several += usize::from(blockers.len() > 1);
                }
                Finding::Redundant { removable, .. } => {
                    redundant += 1;
                    kept += usize::from(!removable);
                }
                _ => unreachable!(),
            }
        }
    }
    assert!(cases >= 1_000_000, "{cases} cases");
    assert!(dead > 100 && by_several > 20 && redundant > 100 && kept > 0);
}

#[test]
fn long_lists_of_rules_give_the_same_findings() {
    let mut dice = SeededDice::new(7);
    for _ in 0..2 {
        let policy = crowded_policy(&mut dice);
        let lint = lint(&policy, &LintSettings::default(), &mut NoProgress).unwrap();
        check(&policy, &lint);
        assert!(lint.findings().len() > 1000);
    }
}

/// Returns a policy over IPv4 and IPv6 whose rules match a range of destination ports.
fn dual_stack(ranges: &[(u128, u128, u32, &[usize])]) -> Policy {
    let mut policy = Policy::dual_stack();
    let parts: Vec<PartId> = policy.part_ids().collect();
    for (index, &(low, high, action, families)) in ranges.iter().enumerate() {
        let mut matches = [FieldMatch::Any; 5];
        matches[3] = FieldMatch::Range { low, high };
        let families: Vec<_> = families
            .iter()
            .map(|&family| (parts[family], &matches[..]))
            .collect();
        let priority = Priority(u32::try_from(ranges.len() - index).unwrap());
        let id = RuleId::from_index(index);
        policy
            .add(id, priority, ActionId(action), &families)
            .unwrap();
    }
    policy
}

#[test]
fn a_rule_of_two_families_is_dead_if_it_is_dead_in_both() {
    let both: &[usize] = &[0, 1];
    let find = |ranges: &[(u128, u128, u32, &[usize])]| {
        let policy = dual_stack(ranges);
        let lint = lint(&policy, &LintSettings::default(), &mut NoProgress).unwrap();
        lint.findings().to_vec()
    };
    let only_v4 = find(&[(0, 99, 1, &[0]), (10, 20, 0, both)]);
    assert_eq!(only_v4, []);
    let each = find(&[(0, 99, 1, &[0]), (5, 50, 0, &[1]), (10, 20, 0, both)]);
    let [
        Finding::Dead {
            rule,
            blockers,
            same_action,
            ..
        },
    ] = &each[..]
    else {
        panic!("{each:?}")
    };
    assert_eq!((rule.get(), blockers.len(), *same_action), (2, 2, false));
}

#[test]
fn too_few_steps_leave_rules_undecided() {
    // A grid of ranges of two fields, which together cover the last rule.
    let schema = Schema::new(
        "grid",
        vec![
            Field::new("x", 16, MatchKind::Range),
            Field::new("y", 16, MatchKind::Range),
        ],
    )
    .unwrap();
    let mut policy = Policy::single(&schema);
    let part = policy.part_ids().next().unwrap();
    let mut add = |low: [u128; 2], size: u128| {
        let id = RuleId::from_index(policy.len());
        let matches = low.map(|low| FieldMatch::Range {
            low,
            high: low + size - 1,
        });
        let priority = Priority(10_000 - id.get());
        policy
            .add(id, priority, ActionId(0), &[(part, &matches)])
            .unwrap();
    };
    for cell in 0..64 * 64 {
        add([cell % 64 * 1024, cell / 64 * 1024], 1024);
    }
    add([0, 0], 1 << 16);
    let mut settings = LintSettings::default();
    settings.redundant = false;
    let all = lint(&policy, &settings, &mut NoProgress).unwrap();
    let Some(Finding::Dead { blockers, .. }) = all.findings().first() else {
        panic!("the last rule is dead")
    };
    assert_eq!(blockers.len(), 4096);
    settings.max_steps_per_rule = 1000;
    let few = lint(&policy, &settings, &mut NoProgress).unwrap();
    assert_eq!(few.findings(), []);
    assert_eq!(few.unknown(), [RuleId::from_index(4096)]);
}
