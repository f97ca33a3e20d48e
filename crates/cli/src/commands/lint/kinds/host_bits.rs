//! Networks whose address has bits outside of the prefix.

use std::collections::BTreeSet;

use classyard_configs::HostBits;
use classyard_report::output::join;

use super::super::finding::{About, FindingRow, Kind, MemberView, Subject};
use crate::commands::statements::first_rules;

pub(super) const KIND: Kind = Kind {
    name: "host-bits",
    label: "host bits",
    summary: "The address of a network has bits outside of its prefix, which devices ignore",
    is_default: false,
    needs_actions: false,
    enable: |_| {},
    find,
};

fn find(subject: &Subject<'_>) -> Vec<FindingRow> {
    let rules = subject.rules;
    let mut lines = BTreeSet::new();
    let mut rows = Vec::new();
    for (position, rule) in first_rules(rules) {
        let Some(line) = rules.line(position) else {
            continue;
        };
        let Some(networks) = rules.host_bits().get(&line) else {
            continue;
        };
        if lines.insert(line) {
            rows.push(subject.row(KIND, rule, &[]).saying(meanings(networks)));
        }
    }
    for member in rules.members_with_host_bits() {
        // A line with a rule has been searched already.
        if lines.contains(&member.line) {
            continue;
        }
        let about = About::Member(MemberView {
            line: member.line,
            column: member.column,
            group: member.group.clone(),
            text: member.text.clone(),
        });
        let sentence = format!("{} in `{}`", meanings(&member.networks), member.group);
        rows.push(FindingRow::new(KIND, about).saying(sentence));
    }
    rows
}

/// Returns the networks that devices compare, as a sentence.
fn meanings(networks: &[HostBits]) -> String {
    let meanings = networks
        .iter()
        .map(|one| format!("{} means {}", one.written, one.network));
    join(meanings, ", ")
}
