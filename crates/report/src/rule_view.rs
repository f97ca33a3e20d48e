//! Rules as reports show them.

use classyard::{FieldMatch, Policy, RuleId, RuleRef};
use classyard_configs::SourceRule;
use serde::Serialize;

use crate::input::rules::LoadedRules;

/// A rule as reports show it.
#[derive(Clone, Debug, Serialize)]
pub struct RuleView {
    /// The rule's number in file order, from 0.
    pub rule: usize,
    /// The line in the file of rules, from 1.
    pub line: Option<u32>,
    /// The column of the statement of a configuration, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The statement of a configuration that the rule comes from, or the line of a file of
    /// rules that became several rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// The list of rules that the statement is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// The number of packets that a configuration's counters have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
    /// The id, which decides among equal priorities.
    pub id: u32,
    /// The name, if any.
    pub name: Option<String>,
    /// The action's name, if any.
    pub action: Option<String>,
    /// The priority.
    pub priority: u32,
    /// The match, in the notation of rule files.
    #[serde(rename = "match")]
    pub matches: String,
}

impl RuleView {
    /// Returns the rule at a position in file order.
    pub fn at(rules: &LoadedRules, position: usize) -> RuleView {
        let policy = &rules.policy;
        let id = policy.ids()[position];
        let first = policy.rule(id).next();
        let statement = rules.statement(position);
        RuleView {
            rule: position,
            line: rules.line(position),
            column: statement.map(|statement| statement.column),
            statement: rules.text(position).map(|text| {
                let is_default = |one: &SourceRule| one.is_implied || one.is_default;
                match statement.is_some_and(is_default) {
                    true => format!("{text} (default)"),
                    false => text.to_owned(),
                }
            }),
            list: statement.map(|statement| statement.list.clone()),
            hits: statement.and_then(|statement| statement.hits),
            id: id.get(),
            name: policy.rule_name(id).map(str::to_owned),
            action: first
                .and_then(|(_, rule)| policy.action_name(rule.action()))
                .map(str::to_owned),
            priority: first.map_or(0, |(_, rule)| rule.priority().0),
            matches: describe(policy, id),
        }
    }

    /// Returns the rule with an id.
    pub fn of(rules: &LoadedRules, id: RuleId) -> Option<RuleView> {
        let position = rules.policy.position(id)?;
        Some(RuleView::at(rules, position))
    }

    /// Returns the line as text for a table.
    pub fn line_cell(&self) -> String {
        self.line.map(|line| line.to_string()).unwrap_or_default()
    }
}

/// Returns a rule's match in the notation of rule files: `src=10.0.0.0/8 dport=80`.
pub fn describe(policy: &Policy, id: RuleId) -> String {
    let parts = policy.parts().len();
    let standing: Vec<_> = policy.rule(id).collect();
    let Some((part, rule)) = standing.first() else {
        return String::new();
    };
    // A rule that is in only some families must name them, if its fields do not show
    // them.
    if standing.len() < parts && !shows_family(rule) {
        let family = policy.part(*part).schema().name();
        let family = family
            .trim_start_matches("acl-")
            .trim_end_matches("-5tuple");
        return format!("family={family} {rule}").replace(" any", "");
    }
    rule.to_string()
}

fn shows_family(rule: &RuleRef<'_>) -> bool {
    use classyard::value::ValueFormat::{Ipv4, Ipv6};
    let schema = rule.schema();
    schema.field_ids().any(|id| {
        matches!(schema.field(id).format(), Ipv4 | Ipv6) && rule.field(id) != FieldMatch::Any
    })
}
