//! Statements of a configuration with rules that decide no packet.

use classyard::RuleId;
use classyard_analysis::Finding;
use classyard_report::output::join;
use classyard_report::output::style::counted;
use classyard_report::rule_view::RuleView;

use super::super::finding::{FindingRow, Kind, Subject};
use crate::commands::named_rules::named;

/// The maximum number of dead matches of a statement that a sentence shows.
const MAX_SHOWN_PARTS: usize = 3;

pub(super) const KIND: Kind = Kind {
    name: "partly-dead",
    label: "partly dead",
    summary: "Better rules match all packets of some networks, ports or jumps of a statement",
    is_default: true,
    needs_actions: false,
    enable: |_| {},
    find,
};

fn find(subject: &Subject<'_>) -> Vec<FindingRow> {
    subject.rows(|finding| match finding {
        Finding::PartlyDead {
            rule,
            dead_rules,
            blockers,
        } => Some(row(subject, *rule, dead_rules, blockers)),
        _ => None,
    })
}

fn row(subject: &Subject<'_>, rule: RuleId, dead: &[RuleId], blockers: &[RuleId]) -> FindingRow {
    let dead_rules = dead.iter();
    let dead_rules = dead_rules.filter_map(|&id| RuleView::of(subject.rules, id));
    let dead_rules: Vec<RuleView> = dead_rules.collect();
    let shown = dead_rules.iter().take(MAX_SHOWN_PARTS);
    let shown = join(shown.map(|rule| rule.matches.as_str()), "; ");
    let unshown = match dead_rules.len().saturating_sub(MAX_SHOWN_PARTS) {
        0 => String::new(),
        count => format!("; {}", counted(count, "more match")),
    };
    let row = subject.row(KIND, rule, blockers);
    FindingRow {
        dead_rules,
        sentence: format!("{shown}{unshown}: covered by {}", named(&row.by)),
        ..row
    }
}
