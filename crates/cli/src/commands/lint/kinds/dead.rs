//! Rules that decide no packet.

use classyard::RuleId;
use classyard_analysis::Finding;

use super::super::finding::{FindingRow, Kind, Subject};
use crate::commands::named_rules::{named, named_short};

pub(super) const KIND: Kind = Kind {
    name: "dead",
    label: "dead",
    summary: "Better rules match every packet that the rule matches",
    is_default: true,
    needs_actions: false,
    enable: |_| {},
    find,
};

fn find(subject: &Subject<'_>) -> Vec<FindingRow> {
    subject.rows(|finding| match finding {
        Finding::Dead {
            rule,
            blockers,
            all_needed,
            same_action,
        } => Some(row(subject, *rule, blockers, *all_needed, *same_action)),
        _ => None,
    })
}

fn row(
    subject: &Subject<'_>,
    rule: RuleId,
    blockers: &[RuleId],
    all_needed: bool,
    same_action: bool,
) -> FindingRow {
    let row = subject.row(KIND, rule, blockers);
    let other_rules = named(&row.by);
    let need = match (row.by.len(), all_needed) {
        (1, _) => "",
        (_, true) => ", by none alone",
        _ => ", perhaps by fewer",
    };
    let action = row.about.rule().and_then(|rule| rule.action.as_ref());
    let other_actions = row.by.iter().filter(|by| by.action.as_ref() != action);
    let other_actions: Vec<_> = other_actions.cloned().collect();
    let actions = match (same_action, other_actions.len()) {
        (true, _) | (_, 0) => String::new(),
        (_, 1) => format!("; {} has another action", named_short(&other_actions)),
        _ => format!("; {} have other actions", named_short(&other_actions)),
    };
    FindingRow {
        all_needed: Some(all_needed),
        same_action: Some(same_action),
        sentence: format!("covered by {other_rules}{need}{actions}"),
        ..row
    }
}
