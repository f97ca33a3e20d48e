//! Statements: rules that are examined together.

use std::collections::BTreeSet;

use classyard::{Policy, RuleId};

/// The statements that the rules of a policy come from.
///
/// A statement of a firewall's configuration can select several ranges or networks, or be
/// used by several lists. It becomes several rules then, and a finding is about all of them:
/// the statement is dead if all its rules are dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statements {
    /// The rules, by statement.
    rules: Vec<RuleId>,
    /// For each statement the number of rules before it, and the number of all rules.
    firsts: Vec<usize>,
}

impl Statements {
    /// Returns statements of one rule each.
    #[must_use]
    pub fn of_one_rule(policy: &Policy) -> Statements {
        Statements {
            rules: policy.ids().to_vec(),
            firsts: (0..=policy.len()).collect(),
        }
    }

    /// Returns the statements of a policy. `statement_of_rule` has a number of a statement
    /// for each rule, in file order.
    ///
    /// # Panics
    /// If the numbers are not as many as the rules.
    #[must_use]
    pub fn new(policy: &Policy, statement_of_rule: &[u32]) -> Statements {
        assert_eq!(
            policy.len(),
            statement_of_rule.len(),
            "a statement for each rule"
        );
        let mut numbered: Vec<(u32, usize)> = statement_of_rule.iter().copied().zip(0..).collect();
        numbered.sort_unstable();
        let mut groups: Vec<&[(u32, usize)]> =
            numbered.chunk_by(|rule, next| rule.0 == next.0).collect();
        groups.sort_unstable_by_key(|group| group[0].1);
        let mut statements = Statements {
            rules: Vec::with_capacity(policy.len()),
            firsts: vec![0],
        };
        for group in groups {
            let rules = group.iter().map(|&(_, position)| policy.ids()[position]);
            statements.rules.extend(rules);
            statements.firsts.push(statements.rules.len());
        }
        statements
    }

    /// Returns the statements of some rules.
    pub(super) fn with_any(&self, rules: &BTreeSet<RuleId>) -> Statements {
        let mut statements = Statements {
            rules: Vec::new(),
            firsts: vec![0],
        };
        for statement in self.iter() {
            if statement.iter().any(|rule| rules.contains(rule)) {
                statements.rules.extend(statement);
                statements.firsts.push(statements.rules.len());
            }
        }
        statements
    }

    /// Returns the rules of all statements.
    pub(super) fn rules(&self) -> &[RuleId] {
        &self.rules
    }

    /// Returns the rules of a statement by its number.
    pub(super) fn rules_of(&self, number: usize) -> &[RuleId] {
        &self.rules[self.firsts[number]..self.firsts[number + 1]]
    }

    /// Returns the number of each rule's statement, by position in a policy. The policy has
    /// some of the rules.
    pub(super) fn by_position(&self, policy: &Policy) -> Vec<u32> {
        let mut numbers = vec![0; policy.len()];
        for (number, statement) in (0..).zip(self.iter()) {
            for position in statement.iter().filter_map(|&rule| policy.position(rule)) {
                numbers[position] = number;
            }
        }
        numbers
    }

    /// Returns the number of statements.
    pub(super) fn len(&self) -> usize {
        self.firsts.len() - 1
    }

    /// Returns the rules of each statement, in file order of their first rules.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[RuleId]> {
        self.firsts
            .windows(2)
            .map(|ends| &self.rules[ends[0]..ends[1]])
    }
}
