//! Statements whose counters have no packet.

use std::collections::{BTreeMap, BTreeSet};

use classyard::RuleId;
use classyard_analysis::Finding;
use classyard_report::output::style::counted;

use super::super::finding::{FindingRow, Kind, Subject};
use crate::commands::statements::first_rules;

pub(super) const KIND: Kind = Kind {
    name: "never-hit",
    label: "never hit",
    summary: "The statement has counted no packet, its list has counted some, and it is not dead",
    is_default: false,
    needs_actions: false,
    enable: |_| {},
    find,
};

fn find(subject: &Subject<'_>) -> Vec<FindingRow> {
    let rules = subject.rules;
    let firsts = first_rules(rules);
    let statements = firsts.into_iter().filter_map(|(position, rule)| {
        let statement = rules.statement(position)?;
        Some((rule, statement, statement.hits?))
    });
    let statements: Vec<(RuleId, _, u64)> = statements.collect();
    let mut hits_of_list: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, statement, hits) in &statements {
        let sum = hits_of_list.entry(&statement.list).or_default();
        *sum = sum.saturating_add(*hits);
    }
    let dead = subject.findings().filter_map(|finding| match finding {
        Finding::Dead { rule, .. } => Some(*rule),
        _ => None,
    });
    let dead: BTreeSet<RuleId> = dead.collect();
    let rows = statements.iter().filter_map(|&(rule, statement, hits)| {
        let list_hits = hits_of_list[statement.list.as_str()];
        let is_own = !statement.is_implied && !statement.is_default;
        let is_found = hits == 0 && list_hits > 0 && is_own && !dead.contains(&rule);
        let packets = counted(list_hits, "packet");
        let sentence = format!(
            "it has counted no packet; the statements of {} have counted {packets}",
            statement.list
        );
        is_found.then(|| subject.row(KIND, rule, &[]).saying(sentence))
    });
    rows.collect()
}
