//! Rules in sentences: by line, action and match.

use classyard_report::output::style::counted;
use classyard_report::rule_view::RuleView;

/// The maximum number of rules that a sentence names.
const MAX_NAMED_RULES: usize = 8;

/// Returns the file, line and column of a rule, or its id if the file has no lines.
pub(super) fn place(file: &str, rule: &RuleView) -> String {
    match (rule.line, rule.column) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column}"),
        (Some(line), None) => format!("{file}:{line}"),
        (None, _) => format!("{file}: rule {}", rule.id),
    }
}

/// Describes a rule: `web: permit dport=443`, or the statement of a configuration.
pub(super) fn described(rule: &RuleView) -> String {
    if let Some(statement) = &rule.statement {
        return statement.clone();
    }
    let name = rule.name.iter().map(|name| format!("{name}: "));
    let action = rule.action.iter().map(|action| format!("{action} "));
    let words: String = name.chain(action).collect();
    words + &rule.matches
}

/// Names rules by their lines, with actions and matches: `lines 2 (deny src=10.0.0.0/8) and
/// 4 (permit any)`.
pub(super) fn named(rules: &[RuleView]) -> String {
    names(rules, |rule| {
        format!("{} ({})", number(rule), described(rule))
    })
}

/// Names rules by their lines: `lines 2 and 4`.
pub(super) fn named_short(rules: &[RuleView]) -> String {
    names(rules, |rule| number(rule).to_string())
}

/// Returns the line of a rule, or its id if the file has no lines.
fn number(rule: &RuleView) -> u32 {
    rule.line.unwrap_or(rule.id)
}

fn names(rules: &[RuleView], name: impl Fn(&RuleView) -> String) -> String {
    let noun = match rules {
        [RuleView { line: None, .. }, ..] => "rule",
        _ => "line",
    };
    let mut parts: Vec<String> = rules.iter().take(MAX_NAMED_RULES).map(name).collect();
    if rules.len() > MAX_NAMED_RULES {
        parts.push(counted(rules.len() - MAX_NAMED_RULES, "more rule"));
    }
    match parts.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("{noun}s {} and {last}", others.join(", "))
        }
        _ => format!("{noun} {}", parts.concat()),
    }
}
