//! Rules whose removal changes nothing.

use classyard::RuleId;
use classyard_analysis::Finding;

use super::super::finding::{FindingRow, Kind, Subject};
use crate::commands::named_rules::named;

pub(super) const KIND: Kind = Kind {
    name: "redundant",
    label: "redundant",
    summary: "Without the rule, every packet gets the same action",
    is_default: true,
    needs_actions: true,
    enable: |settings| settings.redundant = true,
    find,
};

fn find(subject: &Subject<'_>) -> Vec<FindingRow> {
    subject.rows(|finding| match finding {
        Finding::Redundant {
            rule,
            successors,
            removable,
        } => Some(row(subject, *rule, successors, *removable)),
        _ => None,
    })
}

fn row(subject: &Subject<'_>, rule: RuleId, successors: &[RuleId], removable: bool) -> FindingRow {
    let row = subject.row(KIND, rule, successors);
    let verb = if row.by.len() == 1 { "gives" } else { "give" };
    let successors = match row.by.is_empty() {
        true => String::new(),
        false => format!("; {} {verb} its packets the same", named(&row.by)),
    };
    let exception = match removable {
        true => "",
        false => " (not together with the other findings)",
    };
    FindingRow {
        removable: Some(removable),
        sentence: format!("its removal changes no action{exception}{successors}"),
        ..row
    }
}
