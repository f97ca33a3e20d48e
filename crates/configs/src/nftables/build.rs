//! Statements that both forms of a ruleset have: text and JSON build them here, so that
//! their conditions and actions are equal.

use super::show;
use super::tree::{Expression, ExpressionKind, Family, RejectKind, StatementAction};

/// Fields that `set` changes and that other rules compare.
const MODELLED_HEADERS: [&str; 12] = [
    "ip saddr",
    "ip daddr",
    "ip protocol",
    "ip6 saddr",
    "ip6 daddr",
    "tcp ",
    "udp ",
    "udplite ",
    "sctp ",
    "dccp ",
    "th ",
    "icmp",
];

/// Returns the statement that changes a field.
pub(super) fn change_of_field<'t>(
    field: Expression<'t>,
    value: Expression<'t>,
) -> StatementAction<'t> {
    let name = show::expression(&field);
    let is_option = name.starts_with("tcp option");
    let is_modelled = MODELLED_HEADERS
        .iter()
        .any(|header| name.starts_with(header));
    match is_modelled && !is_option {
        true => {
            let feature = "statements that change addresses, ports or other fields";
            StatementAction::Unsupported(feature.to_owned())
        }
        false => StatementAction::Change(field, value),
    }
}

/// Returns the statement that changes a set.
pub(super) fn change_of_set<'t>(
    operation: &str,
    set: &str,
    key: Expression<'t>,
    limit: &str,
) -> StatementAction<'t> {
    let separator = if limit.is_empty() { "" } else { " " };
    let shown_key = show::expression(&key);
    StatementAction::ChangeSet {
        set: set.to_owned(),
        key,
        shown: format!("{operation} @{set} {{ {shown_key}{separator}{limit} }}"),
        is_limited: !limit.is_empty(),
    }
}

/// Returns the statement of a meter.
pub(super) fn meter<'t>(name: &str, key: Expression<'t>, limit: &str) -> StatementAction<'t> {
    let shown = format!("meter {name} {{ {} {limit} }}", show::expression(&key));
    StatementAction::StatefulCondition(shown, Some(key))
}

/// Returns a `queue` as text.
pub(super) fn queue(flags: &[String], number: Option<String>) -> String {
    let mut shown = String::from("queue");
    if !flags.is_empty() {
        shown.push_str(&format!(" flags {}", flags.join(",")));
    }
    if let Some(number) = number.filter(|number| number != "0") {
        shown.push_str(&format!(" to {number}"));
    }
    shown
}

/// Returns a `reject` with an error.
pub(super) fn reject(protocol: &str, name: &str) -> Option<StatementAction<'static>> {
    let kind = match protocol {
        "tcp" if name == "reset" => RejectKind::TcpReset,
        "icmp" => RejectKind::Icmp,
        "icmpv6" | "icmp6" => RejectKind::Icmpv6,
        "icmpx" => RejectKind::Any,
        _ => return None,
    };
    Some(StatementAction::Reject {
        shown: format!("{protocol} {name}"),
        kind,
    })
}

/// Returns the family of an address, or of the first address of a range.
pub(super) fn address_family(address: &Expression<'_>) -> Option<Family> {
    match &address.kind {
        ExpressionKind::Word(word) if word.contains(':') => Some(Family::Ip6),
        ExpressionKind::Word(word) if word.contains('.') => Some(Family::Ip),
        ExpressionKind::Range(ends) => address_family(&ends[0]),
        _ => None,
    }
}
