//! Rules that decide no packet of a capture or a trace, or whose counters have no packet.

use std::collections::{BTreeMap, BTreeSet};

use classyard::RuleId;
use classyard_analysis::Finding;
use classyard_report::output::style::counted;

use super::super::finding::{FindingRow, Kind, Subject};
use crate::commands::classify::RuleHits;
use crate::commands::statements::{first_rules, statement_number};

pub(super) const KIND: Kind = Kind {
    name: "never-hit",
    label: "never hit",
    summary: "The rule decides no packet of the capture, or has counted none; and it is not dead",
    is_default: false,
    needs_actions: false,
    enable: |_| {},
    find,
};

fn find(subject: &Subject<'_>) -> Vec<FindingRow> {
    let dead = subject.findings().filter_map(|finding| match finding {
        Finding::Dead { rule, .. } => Some(*rule),
        _ => None,
    });
    let dead: BTreeSet<RuleId> = dead.collect();
    let rules = match subject.hits {
        Some(hits) if hits.headers == 0 => Vec::new(),
        Some(hits) => unhit(subject, hits),
        None => uncounted(subject),
    };
    let rules = rules.into_iter().filter(|(rule, _)| !dead.contains(rule));
    rules
        .map(|(rule, sentence)| subject.row(KIND, rule, &[]).saying(sentence))
        .collect()
}

/// Returns the first rules of the statements that decide no header of a capture or a trace.
fn unhit(subject: &Subject<'_>, hits: &RuleHits) -> Vec<(RuleId, String)> {
    let rules = subject.rules;
    let hit = rules.policy.ids().iter().zip(&hits.by_rule);
    let hit = hit.filter(|(_, headers)| **headers > 0);
    let hit: BTreeSet<usize> = hit.map(|(id, _)| statement_number(rules, *id)).collect();
    let sentence = format!(
        "it decides none of the {} of {}",
        counted(hits.headers, "packet"),
        hits.source
    );
    let firsts = first_rules(rules).into_iter();
    let firsts = firsts.filter(|&(position, rule)| {
        let statement = rules.statement(position);
        let is_own = statement.is_none_or(|one| !one.is_implied && !one.is_default);
        is_own && !hit.contains(&statement_number(rules, rule))
    });
    firsts.map(|(_, rule)| (rule, sentence.clone())).collect()
}

/// Returns the first rules of the statements whose counters have no packet.
fn uncounted(subject: &Subject<'_>) -> Vec<(RuleId, String)> {
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
    let unhit = statements.iter().filter_map(|&(rule, statement, hits)| {
        let list_hits = hits_of_list[statement.list.as_str()];
        let is_own = !statement.is_implied && !statement.is_default;
        let packets = counted(list_hits, "packet");
        let sentence = format!(
            "it has counted no packet; the statements of {} have counted {packets}",
            statement.list
        );
        (hits == 0 && list_hits > 0 && is_own).then_some((rule, sentence))
    });
    unhit.collect()
}
