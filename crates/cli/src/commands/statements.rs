//! Rules grouped by the statements of a configuration that they come from.

use std::collections::BTreeSet;

use classyard::{FieldMatch, RuleId};
use classyard_analysis::{Finding, Statements};
use classyard_report::input::rules::LoadedRules;
use classyard_report::rule_view::RuleView;

/// Returns the statements of a file; each rule is one if the format has rules with a line
/// each.
pub(super) fn statements(rules: &LoadedRules) -> Statements {
    match rules.statement_of_rule() {
        Some(statement_of_rule) => Statements::new(&rules.policy, statement_of_rule),
        None => Statements::of_one_rule(&rules.policy),
    }
}

/// True if a finding is of use: not about a statement that the file does not have or that is
/// the default action of a list, not about a statement that matches some of its packets only,
/// and not about later fragments alone.
pub(super) fn is_reported(rules: &LoadedRules, finding: &Finding) -> bool {
    if let Finding::PartlyDead { dead_rules, .. } = finding
        && dead_rules
            .iter()
            .all(|&rule| has_only_later_fragments(rules, rule))
    {
        return false;
    }
    let position = rules.policy.position(finding.rule()).expect("a rule");
    let statement = rules.statement(position);
    statement.is_none_or(|statement| {
        !statement.is_implied && !statement.is_default && statement.conditions.is_empty()
    })
}

/// True if a rule matches only fragments without ports. Routers add such packets to entries
/// with ports, so a better entry nearly always has them.
fn has_only_later_fragments(rules: &LoadedRules, rule: RuleId) -> bool {
    rules.policy.rule(rule).all(|(_, rule)| {
        let field = rule.schema().field_named("fragment");
        let matched = field.map(|field| rule.field(field));
        matched.is_some_and(|matched| {
            matches!(
                matched,
                FieldMatch::Range {
                    low: FIRST_LATER_FRAGMENT,
                    ..
                }
            )
        })
    })
}

/// The value of the field `fragment` of fragments without ports.
const FIRST_LATER_FRAGMENT: u128 = 2;

/// Returns a number for a rule that all rules of its statement have, and no other rule.
pub(super) fn statement_number(rules: &LoadedRules, rule: RuleId) -> usize {
    let position = rules.policy.position(rule).expect("a rule");
    match rules.statement_of_rule() {
        Some(statement_of_rule) => statement_of_rule[position] as usize,
        None => position,
    }
}

/// Returns the first rule of each statement among some rules.
pub(super) fn views(rules: &LoadedRules, ids: &[RuleId]) -> Vec<RuleView> {
    let mut statements = BTreeSet::new();
    let firsts = ids
        .iter()
        .filter(|&&id| statements.insert(statement_number(rules, id)));
    firsts.filter_map(|&id| RuleView::of(rules, id)).collect()
}

/// Returns the first rule of each statement, with its position in file order.
pub(super) fn first_rules(rules: &LoadedRules) -> Vec<(usize, RuleId)> {
    let mut statements = BTreeSet::new();
    let ids = rules.policy.ids().iter().copied().enumerate();
    ids.filter(|&(_, id)| statements.insert(statement_number(rules, id)))
        .collect()
}
