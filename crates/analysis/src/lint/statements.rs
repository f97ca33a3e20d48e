//! Statements: rules that are examined together.

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
