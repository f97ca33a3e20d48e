//! Rare actions whose name is close to the name of a common action: typing errors such as
//! `premit`.

use std::collections::HashMap;

use classyard::{ActionId, Policy, RuleId};

use super::Finding;
use super::statements::Statements;

/// The number of statements below which no action is rare.
const MIN_STATEMENTS: usize = 50;

/// The maximum number of statements with a rare action.
const MAX_RARE: usize = 2;

/// A rare action has at most one statement in 100.
const RARE_SHARE: usize = 100;

/// The maximum number of changed, missing, additional or swapped characters.
const MAX_CHANGES: usize = 2;

/// Returns a finding for each statement with a rare action.
pub(super) fn find(policy: &Policy, statements: &Statements) -> Vec<Finding> {
    let action = |rule: RuleId| policy.rule(rule).next().map(|(_, rule)| rule.action());
    let actions: Vec<(RuleId, ActionId)> = statements
        .iter()
        .filter_map(|rules| Some((rules[0], action(rules[0])?)))
        .collect();
    if actions.len() < MIN_STATEMENTS {
        return Vec::new();
    }
    let mut counts: HashMap<ActionId, usize> = HashMap::new();
    for &(_, action) in &actions {
        *counts.entry(action).or_default() += 1;
    }
    let is_rare = |action: ActionId| {
        let count = counts[&action];
        count <= MAX_RARE && count * RARE_SHARE <= actions.len()
    };
    let rare = actions.iter().filter(|&&(_, action)| is_rare(action));
    let findings = rare.filter_map(|&(rule, action)| {
        let name = policy.action_name(action)?;
        let common = counts.iter().filter(|&(&other, _)| !is_rare(other));
        let common = common.filter_map(|(&other, count)| Some((count, policy.action_name(other)?)));
        let similar = common.filter(|(_, other)| is_similar(name, other));
        let (_, similar) = similar.max()?;
        Some(Finding::RareAction {
            rule,
            action: name.to_owned(),
            similar: similar.to_owned(),
        })
    });
    findings.collect()
}

/// True if one name may be a misspelling of the other. Names that differ in their digits only
/// are not: `queue1` and `queue2`.
fn is_similar(name: &str, other: &str) -> bool {
    let without_digits =
        |name: &str| name.replace(|character: char| character.is_ascii_digit(), "");
    let shorter = name.chars().count().min(other.chars().count());
    let changes = strsim::osa_distance(name, other);
    (1..=MAX_CHANGES).contains(&changes)
        && 2 * changes < shorter
        && without_digits(name) != without_digits(other)
}

#[cfg(test)]
mod tests {
    use super::is_similar;

    #[test]
    fn misspelled_names_are_similar() {
        for name in ["premit", "permitt", "permi", "Permit", "pernit"] {
            assert!(is_similar(name, "permit"), "{name}");
        }
        for (name, other) in [
            ("queue1", "queue2"),
            ("drop", "stop"),
            ("log", "nat"),
            ("a", "b"),
        ] {
            assert!(!is_similar(name, other), "{name} {other}");
        }
        assert!(is_similar("dney", "deny"));
        assert!(!is_similar("permit", "permit"));
    }
}
