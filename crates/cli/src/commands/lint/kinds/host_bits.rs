//! Networks whose address has bits outside of the prefix.

use std::collections::BTreeSet;

use classyard_report::output::join;

use super::super::finding::{FindingRow, Kind, Subject};
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
    let rows = first_rules(rules)
        .into_iter()
        .filter_map(|(position, rule)| {
            let line = rules.line(position)?;
            let networks = rules.host_bits().get(&line)?;
            let meanings = networks
                .iter()
                .map(|one| format!("{} means {}", one.written, one.network));
            let is_first = lines.insert(line);
            is_first.then(|| subject.row(KIND, rule, &[]).saying(join(meanings, ", ")))
        });
    rows.collect()
}
