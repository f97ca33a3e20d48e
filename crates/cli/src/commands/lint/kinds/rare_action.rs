//! Actions that may be misspelled.

use classyard_analysis::Finding;

use super::super::finding::{FindingRow, Kind, Subject};

pub(super) const KIND: Kind = Kind {
    name: "rare-action",
    label: "rare action",
    summary: "One or two rules of a long list have an action whose name is close to a common one",
    is_default: true,
    needs_actions: false,
    enable: |settings| settings.rare_action = true,
    find,
};

fn find(subject: &Subject<'_>) -> Vec<FindingRow> {
    subject.rows(|finding| {
        let Finding::RareAction {
            rule,
            action,
            similar,
        } = finding
        else {
            return None;
        };
        Some(FindingRow {
            sentence: format!("few rules have the action `{action}`; is `{similar}` meant?"),
            similar: Some(similar.clone()),
            ..subject.row(KIND, *rule, &[])
        })
    })
}
