//! Rules of equal priority that match the same packet, and have different actions.

use classyard_analysis::{Conflict, Finding};

use super::super::finding::{FindingRow, Kind, Subject};
use super::conflict::{and_others, row as conflict_row};
use crate::commands::named_rules::named;

pub(super) const KIND: Kind = Kind {
    name: "equal-priority",
    label: "equal priority",
    summary: "Rules of equal priority and different actions match a packet that no better rule decides",
    is_default: true,
    needs_actions: false,
    enable: |settings| settings.equal_priority = true,
    find,
};

fn find(subject: &Subject<'_>) -> Vec<FindingRow> {
    subject.rows(|finding| match finding {
        Finding::EqualPriority(conflict) => Some(row(subject, conflict)),
        _ => None,
    })
}

fn row(subject: &Subject<'_>, conflict: &Conflict) -> FindingRow {
    let (row, example) = conflict_row(subject, KIND, conflict);
    let sentence = format!(
        "{}{} {} its priority {} and another action; OpenFlow leaves open which of them \
         decides, here the smaller id does: {example}",
        named(&row.by),
        and_others(conflict),
        if row.by.len() == 1 && !conflict.more {
            "has"
        } else {
            "have"
        },
        row.about.rule().map_or(0, |rule| rule.priority),
    );
    row.saying(sentence)
}
