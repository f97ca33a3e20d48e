//! The findings about statements of several rules, against every header of small schemas.

use std::collections::BTreeSet;

use classyard::NoProgress;
use classyard::prelude::*;
use classyard_analysis::{Finding, LintSettings, Statements, lint_some, lint_statements};
use classyard_conformance::random::{Dice, SeededDice};

mod small;

use small::{all_keys, small_policy, small_schema};

/// The rules of a policy, all headers, and their winners.
struct Truth<'a> {
    rules: &'a RuleSet,
    keys: KeyVec,
    /// The rules that decide a header.
    winners: BTreeSet<RuleId>,
}

impl<'a> Truth<'a> {
    fn new(rules: &'a RuleSet) -> Truth<'a> {
        let keys = all_keys(rules.schema());
        let winners = keys.as_slice().iter();
        let winners = winners.filter_map(|key| rules.scan(key).rule()).collect();
        Truth {
            rules,
            keys,
            winners,
        }
    }

    fn action(&self, key: &[u64], removed: &BTreeSet<RuleId>) -> Option<ActionId> {
        let rules = self.rules.iter();
        let matching = rules.filter(|rule| !removed.contains(&rule.id()) && rule.matches(key));
        let best = matching.min_by_key(|rule| rule.winner().rank());
        best.map(|rule| rule.action())
    }

    /// True if no header gets another action without some rules.
    fn can_remove(&self, removed: &BTreeSet<RuleId>) -> bool {
        let mut keys = self.keys.as_slice().iter();
        keys.all(|key| self.action(key, &BTreeSet::new()) == self.action(key, removed))
    }

    /// True if each header of some rules is matched by a better rule among others.
    fn covers(&self, covered: &[RuleId], by: &[&[RuleId]]) -> bool {
        let rule = |&id: &RuleId| self.rules.get(id).unwrap();
        let mut keys = self.keys.as_slice().iter();
        keys.all(|key| {
            let matched = covered.iter().map(rule).filter(|rule| rule.matches(key));
            let others = || by.iter().copied().flatten().map(rule);
            let mut matched = matched.map(|rule| rule.winner());
            matched.all(|winner| {
                others().any(|other| other.matches(key) && other.winner().beats(winner))
            })
        })
    }
}

#[test]
fn findings_about_statements_are_those_of_every_header() {
    let mut dice = SeededDice::new(5);
    let mut counts = [0; 4];
    for _ in 0..300 {
        let schema = small_schema(&mut dice);
        let policy = small_policy(&schema, &mut dice);
        let rules = policy.parts()[0].clone();
        let truth = Truth::new(&rules);
        let statement_count = 1 + dice.below(policy.len());
        let number = |_| u32::try_from(dice.below(statement_count)).unwrap();
        let statement_of_rule: Vec<u32> = policy.ids().iter().map(number).collect();
        let statements = Statements::new(&policy, &statement_of_rule);
        let settings = LintSettings::default();
        let lint = lint_statements(&policy, &statements, &settings, &mut NoProgress).unwrap();
        assert!(lint.unknown().is_empty());
        let mut removed = BTreeSet::new();
        for number in 0..u32::try_from(statement_count).unwrap() {
            let rules = policy.ids().iter().zip(&statement_of_rule);
            let rules = rules.filter(|(_, statement)| **statement == number);
            let statement: Vec<RuleId> = rules.map(|(&id, _)| id).collect();
            let Some(&first) = statement.first() else {
                continue;
            };
            let findings = lint
                .findings()
                .iter()
                .filter(|finding| finding.rule() == first);
            counts[0] += 1;
            for finding in findings {
                check_needed_statements(&truth, &statement, finding, |rule| {
                    statement_of_rule[policy.position(rule).unwrap()]
                });
                removed.extend(check(&truth, &statement, finding, &mut counts));
            }
            check_that_all_is_found(&truth, &statement, lint.findings());
        }
        assert!(truth.can_remove(&removed), "{policy:?} {removed:?}");
    }
    assert!(counts.iter().all(|&count| count > 50), "{counts:?}");
}

/// Checks that no statement among the blockers of a finding can be left out, with all rules of
/// the others.
fn check_needed_statements(
    truth: &Truth<'_>,
    statement: &[RuleId],
    finding: &Finding,
    statement_of: impl Fn(RuleId) -> u32,
) {
    let Finding::Dead {
        blockers,
        all_needed: true,
        ..
    } = finding
    else {
        return;
    };
    let numbers: BTreeSet<u32> = blockers.iter().map(|&rule| statement_of(rule)).collect();
    for skipped in &numbers {
        let is_left = |rule: &RuleId| {
            let number = statement_of(*rule);
            number != *skipped && numbers.contains(&number)
        };
        let others = truth.rules.iter().map(|rule| rule.id());
        let others: Vec<RuleId> = others.filter(is_left).collect();
        assert!(
            !truth.covers(statement, &[&others]),
            "{finding:?} {skipped}"
        );
    }
}

/// Checks a finding. Returns the rules that can be removed, together with the rules of other findings.
fn check(
    truth: &Truth<'_>,
    statement: &[RuleId],
    finding: &Finding,
    counts: &mut [usize; 4],
) -> Vec<RuleId> {
    let is_dead = |rule: &RuleId| !truth.winners.contains(rule);
    match finding {
        Finding::Dead {
            blockers,
            all_needed,
            ..
        } => {
            counts[1] += 1;
            assert!(statement.iter().all(is_dead));
            assert!(blockers.iter().all(|blocker| !statement.contains(blocker)));
            assert!(truth.covers(statement, &[blockers]));
            for skipped in 0..blockers.len() {
                let (before, after) = (&blockers[..skipped], &blockers[skipped + 1..]);
                assert!(!all_needed || !truth.covers(statement, &[before, after]));
            }
            statement.to_vec()
        }
        Finding::PartlyDead {
            dead_rules,
            blockers,
            ..
        } => {
            counts[2] += 1;
            let expected: Vec<RuleId> = statement.iter().copied().filter(is_dead).collect();
            assert_eq!(*dead_rules, expected);
            assert!(dead_rules.len() < statement.len());
            assert!(blockers.iter().all(|blocker| !statement.contains(blocker)));
            assert!(truth.covers(dead_rules, &[blockers, statement]));
            Vec::new()
        }
        Finding::Redundant { removable, .. } => {
            counts[3] += 1;
            assert!(truth.can_remove(&statement.iter().copied().collect()));
            if *removable {
                statement.to_vec()
            } else {
                Vec::new()
            }
        }
        other => panic!("{other:?}"),
    }
}

/// Checks that a dead statement and a redundant statement of one action have a finding.
fn check_that_all_is_found(truth: &Truth<'_>, statement: &[RuleId], findings: &[Finding]) {
    let mut own = findings
        .iter()
        .filter(|finding| finding.rule() == statement[0]);
    let is_dead = statement.iter().all(|rule| !truth.winners.contains(rule));
    let mut actions = statement
        .iter()
        .map(|&id| truth.rules.get(id).unwrap().action());
    let first_action = actions.next().unwrap();
    let has_one_action = actions.all(|action| action == first_action);
    let is_redundant = truth.can_remove(&statement.iter().copied().collect());
    if is_dead {
        assert!(own.any(|finding| matches!(finding, Finding::Dead { .. })));
    } else if is_redundant && has_one_action {
        assert!(own.any(|finding| matches!(finding, Finding::Redundant { .. })));
    }
}

#[test]
fn findings_about_some_rules_are_those_about_all() {
    let mut dice = SeededDice::new(6);
    let mut count = 0;
    for round in 0..400 {
        let policy = small_policy(&small_schema(&mut dice), &mut dice);
        let number = |_| u32::try_from(dice.below(policy.len())).unwrap();
        let statement_of_rule: Vec<u32> = policy.ids().iter().map(number).collect();
        let statements = match round % 2 {
            0 => Statements::of_one_rule(&policy),
            _ => Statements::new(&policy, &statement_of_rule),
        };
        let settings = LintSettings::default();
        let all = lint_statements(&policy, &statements, &settings, &mut NoProgress).unwrap();
        for &rule in policy.ids() {
            let some = lint_some(&policy, &statements, &[rule], &settings, &mut NoProgress);
            let some = some.unwrap();
            assert_eq!(some.unknown, []);
            // A rule is the first of its statement, or has no finding.
            let kinds = |findings: &[Finding]| {
                let own = findings.iter().filter(|finding| finding.rule() == rule);
                own.map(std::mem::discriminant).collect::<Vec<_>>()
            };
            assert_eq!(
                kinds(&some.findings),
                kinds(all.findings()),
                "{policy:?} {rule}"
            );
            count += some.findings.len();
        }
    }
    assert!(count > 500, "{count}");
}
