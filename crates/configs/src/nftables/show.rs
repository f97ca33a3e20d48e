//! Expressions and statements as text, equal for both forms of a ruleset.
//!
//! Conditions that are not modelled are compared by this text. So numbers are decimal, and
//! the equality operator is left out.

use super::tree::{
    Element, ElementData, Expression, ExpressionKind, RejectKind, Relation, Rule, Statement,
    StatementAction, Verdict,
};

/// Returns a rule as text, without its comment.
pub(super) fn rule(rule: &Rule<'_>) -> String {
    joined(rule.statements.iter().map(statement), " ")
}

fn joined(parts: impl Iterator<Item = String>, separator: &str) -> String {
    parts.collect::<Vec<_>>().join(separator)
}

fn statement(statement: &Statement<'_>) -> String {
    match &statement.action {
        StatementAction::Match {
            left_side,
            relation,
            right_side,
        } => comparison(left_side, *relation, right_side),
        StatementAction::Verdict(target) => verdict(target),
        StatementAction::VerdictMap { key, map } => {
            format!("{} vmap {}", expression(key), expression(map))
        }
        StatementAction::Counter(packets) => format!("counter packets {packets}"),
        StatementAction::Pass(shown) | StatementAction::StatefulCondition(shown, _) => {
            shown.clone()
        }
        StatementAction::Change(field, value) => {
            format!("{} set {}", expression(field), expression(value))
        }
        StatementAction::ChangeSet { shown, .. } => shown.clone(),
        StatementAction::Reject { shown, kind } => match kind {
            RejectKind::Any if shown.is_empty() => "reject".to_owned(),
            _ => format!("reject with {shown}"),
        },
        StatementAction::Translate { action, .. } => action.clone(),
        StatementAction::Unsupported(feature) => feature.clone(),
    }
}

/// Returns a verdict as text.
pub(super) fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Accept => "accept".to_owned(),
        Verdict::Drop => "drop".to_owned(),
        Verdict::Continue => "continue".to_owned(),
        Verdict::Return => "return".to_owned(),
        Verdict::Jump(chain) => format!("jump {chain}"),
        Verdict::Goto(chain) => format!("goto {chain}"),
        Verdict::Queue(shown) => shown.clone(),
    }
}

/// Returns a comparison as text.
pub(super) fn comparison(
    left_side: &Expression<'_>,
    relation: Relation,
    right_side: &Expression<'_>,
) -> String {
    let operator = match relation {
        Relation::Implicit => "",
        Relation::Equal if has_operator(left_side) => "== ",
        Relation::Equal => "",
        Relation::NotEqual => "!= ",
        Relation::Less => "< ",
        Relation::LessOrEqual => "<= ",
        Relation::Greater => "> ",
        Relation::GreaterOrEqual => ">= ",
        Relation::NoCommonBit => "! ",
    };
    format!(
        "{} {operator}{}",
        expression(left_side),
        expression(right_side)
    )
}

/// True if the operator `==` is written after an expression: after operations, and after
/// fields of flags, for which no operator has another meaning.
fn has_operator(expression: &Expression<'_>) -> bool {
    match &expression.kind {
        ExpressionKind::Selector(selector) => matches!(
            &selector[..],
            "tcp flags" | "ct state" | "ct status" | "ct label" | "ct event"
        ),
        ExpressionKind::Binary(..) => true,
        _ => false,
    }
}

/// Returns an expression as text.
pub(super) fn expression(shown: &Expression<'_>) -> String {
    match &shown.kind {
        ExpressionKind::Selector(selector) => selector.clone(),
        ExpressionKind::Word(word) => number(word).unwrap_or_else(|| word.to_string()),
        ExpressionKind::Any => "*".to_owned(),
        ExpressionKind::Range(ends) => joined(ends.iter().map(expression), "-"),
        ExpressionKind::List(parts) => joined(parts.iter().map(expression), ","),
        ExpressionKind::Set(elements) => {
            format!("{{ {} }}", joined(elements.iter().map(element), ", "))
        }
        ExpressionKind::SetReference(name) => format!("@{name}"),
        ExpressionKind::Concatenation(parts) => joined(parts.iter().map(expression), " . "),
        ExpressionKind::Binary(operator, operands) => joined(
            operands.iter().map(expression),
            &format!(" {} ", operator.symbol()),
        ),
        ExpressionKind::Map(parts) => joined(parts.iter().map(expression), " map "),
    }
}

/// Returns a hexadecimal number in decimal notation.
fn number(word: &str) -> Option<String> {
    let digits = word.strip_prefix("0x")?;
    u128::from_str_radix(digits, 16)
        .ok()
        .map(|value| value.to_string())
}

fn element(element: &Element<'_>) -> String {
    let key = expression(&element.key);
    match &element.data {
        ElementData::None => key,
        ElementData::Verdict(target) => format!("{key} : {}", verdict(target)),
        ElementData::Value(value) => format!("{key} : {}", expression(value)),
    }
}

/// Returns the name of a translation of addresses, such as `dnat to 10.0.0.1:80`.
pub(super) fn translation(
    keyword: &str,
    address: Option<&Expression<'_>>,
    port: Option<&Expression<'_>>,
    flags: &[String],
) -> String {
    let mut action = keyword.to_owned();
    let port = port.map(expression);
    let address = address.map(expression);
    match (address, port) {
        (None, None) => {}
        (None, Some(port)) => action.push_str(&format!(" to :{port}")),
        (Some(address), None) => action.push_str(&format!(" to {address}")),
        (Some(address), Some(port)) if address.contains(':') && !address.contains(' ') => {
            action.push_str(&format!(" to [{address}]:{port}"));
        }
        (Some(address), Some(port)) => action.push_str(&format!(" to {address}:{port}")),
    }
    if !flags.is_empty() {
        action.push(' ');
        action.push_str(&flags.join(","));
    }
    action
}
