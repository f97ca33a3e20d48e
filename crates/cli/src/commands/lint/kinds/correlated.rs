//! Pairs of rules whose order matters, though neither contains the other.

use classyard_analysis::{Conflict, Finding};

use super::super::finding::{FindingRow, Kind, Subject};
use super::conflict::{and_others, row as conflict_row};
use crate::commands::named_rules::named;

pub(super) const KIND: Kind = Kind {
    name: "correlated",
    label: "correlated",
    summary: "A better rule with another action has some packets of the rule, and neither has all packets of the other",
    is_default: false,
    needs_actions: true,
    enable: |settings| settings.correlated = true,
    find,
};

fn find(subject: &Subject<'_>) -> Vec<FindingRow> {
    subject.rows(|finding| match finding {
        Finding::Correlated(conflict) => Some(row(subject, conflict)),
        _ => None,
    })
}

fn row(subject: &Subject<'_>, conflict: &Conflict) -> FindingRow {
    let (row, example) = conflict_row(subject, KIND, conflict);
    let better_rules = format!("{}{}", named(&row.by), and_others(conflict));
    let sentence = match row.by.len() == 1 && !conflict.more {
        true => {
            format!("{better_rules} decides some of its packets with another action: {example}")
        }
        false => format!("{better_rules} decide some of its packets with other actions: {example}"),
    };
    row.saying(sentence)
}
