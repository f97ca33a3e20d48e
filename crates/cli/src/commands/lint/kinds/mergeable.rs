//! Two rules that can be one rule.

use classyard_analysis::Finding;

use super::super::finding::{FindingRow, Kind, Subject};
use crate::commands::named_rules::named;

pub(super) const KIND: Kind = Kind {
    name: "mergeable",
    label: "mergeable",
    summary: "The rule and a better one differ in one field and can be one rule",
    is_default: false,
    needs_actions: true,
    enable: |settings| settings.mergeable = true,
    find,
};

fn find(subject: &Subject<'_>) -> Vec<FindingRow> {
    subject.rows(|finding| {
        let Finding::Mergeable {
            rule,
            other,
            part,
            field,
            merged,
        } = finding
        else {
            return None;
        };
        let row = subject.row(KIND, *rule, &[*other]);
        let field = subject.rules.policy.part(*part).schema().field(*field);
        let merged = format!("{}={}", field.name(), merged.describe(field));
        Some(FindingRow {
            sentence: format!("can be one rule with {}, with {merged}", named(&row.by)),
            merged: Some(merged),
            ..row
        })
    })
}
