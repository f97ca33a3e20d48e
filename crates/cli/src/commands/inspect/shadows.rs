//! Rules that can never win, because better rules match everything that they match.

use std::collections::BTreeSet;

use classyard::policy::PartId;
use classyard::{Policy, Progress, RuleId};
use classyard_analysis::{AnalysisError, Finding, LintSettings, lint_statements};
use classyard_report::input::rules::LoadedRules;

use crate::commands::statements::{is_reported, statements};

/// The maximum number of steps of the search. They take some two seconds.
const MAX_STEPS: u64 = 200_000_000;

/// A rule that cannot win, and better rules that cover it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shadow {
    pub(super) rule: RuleId,
    /// Best first; at least one.
    pub(super) by: Vec<RuleId>,
    /// True if it has the match of a better rule.
    pub(super) duplicate: bool,
    /// True if all of these rules have the same action.
    pub(super) same_action: bool,
}

/// Returns the rules that cannot win, in file order, and the number of rules that were not
/// decided.
pub(super) fn find(
    rules: &LoadedRules,
    progress: &mut dyn Progress,
) -> Result<(Vec<Shadow>, usize), AnalysisError> {
    let mut settings = LintSettings::default();
    settings.max_steps = MAX_STEPS;
    settings.redundant = false;
    let policy = &rules.policy;
    let lint = lint_statements(policy, &statements(rules), &settings, progress)?;
    let findings = lint.findings().iter();
    let findings = findings.filter(|finding| is_reported(rules, finding));
    let shadows = findings.filter_map(|finding| match finding {
        Finding::Dead {
            rule,
            blockers,
            same_action,
            ..
        } => Some(Shadow {
            rule: *rule,
            by: blockers.clone(),
            duplicate: is_duplicate(policy, *rule, blockers),
            same_action: *same_action,
        }),
        _ => None,
    });
    Ok((shadows.collect(), lint.unknown().len()))
}

/// True if a rule and the only rule that covers it have the same match.
fn is_duplicate(policy: &Policy, rule: RuleId, blockers: &[RuleId]) -> bool {
    let &[by] = blockers else { return false };
    let parts = |id| policy.rule(id).map(|(part, _)| part);
    let parts_of_rule: BTreeSet<PartId> = parts(rule).collect();
    parts_of_rule == parts(by).collect()
        && policy.rule(rule).all(|(part, rule)| {
            let by = policy.part(part).get(by);
            by.is_some_and(|by| rule.covers(&by))
        })
}
