//! Findings about some rules of a policy.

use std::collections::BTreeSet;

use classyard::{Policy, Progress, RuleId, RuleRef, RuleSet};

use super::statements::Statements;
use super::{Finding, LintSettings, lint_examined};
use crate::error::AnalysisError;

/// The findings of [`lint_some()`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFindings {
    /// The findings about the statements of the rules.
    pub findings: Vec<Finding>,
    /// The first rules of statements for which a search reached its limit.
    pub unknown: Vec<RuleId>,
}

/// Searches for statements that are dead, partly dead or redundant, as
/// [`lint_statements()`](super::lint_statements()) does, but only among the statements of some rules. It takes no account of rules that
/// overlap none of them.
///
/// A redundant rule is *removable* if it can be removed together with all other dead or
/// redundant rules among these.
///
/// # Errors
/// As for [`lint()`](super::lint()).
pub fn lint_some(
    policy: &Policy,
    statements: &Statements,
    rules: &[RuleId],
    settings: &LintSettings,
    progress: &mut dyn Progress,
) -> Result<RuleFindings, AnalysisError> {
    let selected: BTreeSet<RuleId> = rules.iter().copied().collect();
    let examined = statements.with_any(&selected);
    let parts = policy.parts().iter();
    let parts = parts.map(|rules| overlapping_any(rules, examined.rules()));
    let reduced = Policy::from_parts(policy.name(), parts.collect());
    let settings = LintSettings {
        rare_action: false,
        equal_priority: false,
        correlated: false,
        mergeable: false,
        ..*settings
    };
    let lint = lint_examined(&reduced, statements, &examined, &settings, progress)?;
    Ok(RuleFindings {
        findings: lint.findings,
        unknown: lint.unknown,
    })
}

/// Returns the rules that overlap at least one rule of a list.
fn overlapping_any(rules: &RuleSet, ids: &[RuleId]) -> RuleSet {
    let examined: Vec<RuleRef<'_>> = ids.iter().filter_map(|&id| rules.get(id)).collect();
    let mut overlapping = RuleSet::new(rules.schema());
    for rule in rules.iter() {
        if examined.iter().any(|other| rule.overlaps(other)) {
            overlapping
                .push(rule)
                .expect("rules of the schema with unique ids");
        }
    }
    overlapping
}
