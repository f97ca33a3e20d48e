//! The rows of a page: statements of a configuration, or rules of other formats.

use std::collections::HashMap;

use classyard_report::input::rules::LoadedRules;
use classyard_report::rule_view::RuleView;

use crate::commands::statements::statement_number;

/// The statements of a file in the order of their first rules.
pub(super) struct StatementRows {
    /// The positions of the first rule of each row.
    firsts: Vec<usize>,
    /// The row of each rule, in file order.
    row_of_rule: Vec<usize>,
    /// The number of rules of each row.
    rule_counts: Vec<usize>,
}

impl StatementRows {
    /// Returns the rows of a file.
    pub(super) fn new(rules: &LoadedRules) -> StatementRows {
        let mut rows = StatementRows {
            firsts: Vec::new(),
            row_of_rule: Vec::new(),
            rule_counts: Vec::new(),
        };
        let mut row_of_statement = HashMap::new();
        for (position, &id) in rules.policy.ids().iter().enumerate() {
            let statement = statement_number(rules, id);
            let row = *row_of_statement.entry(statement).or_insert_with(|| {
                rows.firsts.push(position);
                rows.rule_counts.push(0);
                rows.firsts.len() - 1
            });
            rows.rule_counts[row] += 1;
            rows.row_of_rule.push(row);
        }
        rows
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.firsts.len()
    }

    /// Returns the first rule of a row.
    pub(super) fn view(&self, rules: &LoadedRules, row: usize) -> RuleView {
        RuleView::at(rules, self.firsts[row])
    }

    /// Returns the position of the first rule of a row, in file order.
    pub(super) fn first(&self, row: usize) -> usize {
        self.firsts[row]
    }

    /// Returns the number of rules of a row.
    pub(super) fn rule_count(&self, row: usize) -> usize {
        self.rule_counts[row]
    }

    /// Returns the row of the rule at a position in file order.
    pub(super) fn row_of(&self, position: usize) -> usize {
        self.row_of_rule[position]
    }
}
