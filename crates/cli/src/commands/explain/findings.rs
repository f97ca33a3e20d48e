//! The findings of `lint` about the rules that match a header.

use classyard::{Progress, RuleId, RuleRef};
use classyard_analysis::{LintSettings, RuleFindings, lint_some};
use classyard_report::failure::Failure;
use classyard_report::input::rules::LoadedRules;
use classyard_report::rule_view::RuleView;
use serde::Serialize;

use crate::commands::analysis_failure::failure;
use crate::commands::lint::{FindingRow, Kind, has_actions, rows};
use crate::commands::statements::{statement_number, statements, views};

/// The maximum number of steps for one rule. They take some 20 ms.
const MAX_STEPS_PER_RULE: u64 = 2_000_000;

/// The maximum number of steps for the winner, and for all other rules together.
const MAX_STEPS: u64 = 20_000_000;

/// The maximum number of matching rules that are examined, the winner included.
const MAX_EXAMINED: usize = 30;

/// The kinds of findings about the winner.
const SHOWN_KINDS: [Kind; 3] = [Kind::DEAD, Kind::PARTLY_DEAD, Kind::REDUNDANT];

/// The findings about the winner, and the dead rules among the other rules that match.
#[derive(Default, Serialize)]
pub(super) struct Findings {
    pub(super) found: Vec<FindingRow>,
    /// Rules that were not decided within the limit of steps, or that were not examined.
    pub(super) undecided: Vec<RuleView>,
}

/// Searches for findings. `matching` has the rules that match, the winner first.
pub(super) fn find(
    rules: &LoadedRules,
    matching: &[RuleRef<'_>],
    progress: &mut dyn Progress,
) -> Result<Findings, Failure> {
    let ids: Vec<RuleId> = matching.iter().map(RuleRef::id).collect();
    let Some(&winner) = ids.first() else {
        return Ok(Findings::default());
    };
    let winning_statement = statement_number(rules, winner);
    let (examined, unexamined) = ids.split_at(ids.len().min(MAX_EXAMINED));
    let other_rules = examined.iter().copied();
    let other_rules = other_rules.filter(|&id| statement_number(rules, id) != winning_statement);
    let other_rules: Vec<RuleId> = other_rules.collect();
    let mut settings = LintSettings::default();
    settings.max_steps_per_rule = MAX_STEPS_PER_RULE;
    settings.max_steps = MAX_STEPS;
    settings.redundant = has_actions(&rules.policy);
    let mut search = |ids: &[RuleId], settings: &LintSettings| {
        lint_some(&rules.policy, &statements(rules), ids, settings, progress).map_err(failure)
    };
    let of_winner = search(&[winner], &settings)?;
    settings.redundant = false;
    let of_others = match other_rules.is_empty() {
        true => RuleFindings::default(),
        false => search(&other_rules, &settings)?,
    };
    let mut found_rows = rows(rules, &of_winner.findings, &SHOWN_KINDS);
    found_rows.extend(rows(rules, &of_others.findings, &[Kind::DEAD]));
    found_rows.retain(|row| {
        let line = row.about.line();
        let allowance = line.and_then(|line| rules.allowance(line, row.finding.name()));
        allowance.is_none()
    });
    let undecided = [&of_winner.unknown, &of_others.unknown, unexamined].concat();
    Ok(Findings {
        found: found_rows,
        undecided: views(rules, &undecided),
    })
}
