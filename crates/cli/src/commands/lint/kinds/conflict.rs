//! Findings about pairs of rules that match the same packet.

use classyard::{FieldMatch, RuleRef, Schema};
use classyard_analysis::Conflict;
use classyard_report::output::join;

use super::super::finding::{FindingRow, Kind, Subject};
use crate::commands::headers::{header_text, header_values, is_acl};

/// Returns the row of a conflict, and the example as text.
pub(super) fn row(subject: &Subject<'_>, kind: Kind, conflict: &Conflict) -> (FindingRow, String) {
    let schema = subject.rules.policy.part(conflict.part).schema();
    let row = FindingRow {
        more: Some(conflict.more),
        header: header_values(schema, &conflict.header)
            .into_iter()
            .collect(),
        ..subject.row(kind, conflict.rule, &conflict.others)
    };
    let example = match is_acl(schema) {
        true => header_text(subject.rules, schema, &conflict.header),
        false => constrained_fields(subject, schema, conflict),
    };
    (row, example)
}

/// Returns the fields of the example that a rule of the conflict constrains, as text.
fn constrained_fields(subject: &Subject<'_>, schema: &Schema, conflict: &Conflict) -> String {
    let part = subject.rules.policy.part(conflict.part);
    let pair = [conflict.rule, conflict.others[0]];
    let pair: Vec<RuleRef<'_>> = pair.iter().filter_map(|&id| part.get(id)).collect();
    let values = schema
        .field_ids()
        .zip(header_values(schema, &conflict.header));
    let constrained = values.filter(|(id, _)| {
        let mut matches = pair.iter().map(|rule| rule.field(*id));
        matches.any(|matched| matched != FieldMatch::Any)
    });
    join(
        constrained.map(|(_, (name, value))| format!("{name}={value}")),
        " ",
    )
}

/// Returns ` and perhaps others` if a conflict may have more rules than it names.
pub(super) fn and_others(conflict: &Conflict) -> &'static str {
    if conflict.more {
        " and perhaps others"
    } else {
        ""
    }
}
