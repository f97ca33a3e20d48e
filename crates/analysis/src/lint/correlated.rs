//! Correlated rules: each of two rules with different actions matches headers that the other
//! does not, and the better one decides headers that both match.
//!
//! Such a pair can be intended. But its order matters, and neither rule shows it.

use std::collections::HashMap;

use classyard::{BuildError, Progress, RuleId};

use super::limit::Limit;
use super::pairs::{Conflicts, Pair, PairSearch};
use crate::cover::Steps;

/// Returns the statements that are correlated with better statements.
pub(super) fn find(
    search: &mut PairSearch<'_>,
    limit: &mut Limit,
    progress: &mut dyn Progress,
) -> Result<Conflicts, BuildError> {
    let stage = "searching for correlated rules";
    // The answers about the statement under examination, by the first rule of the other.
    let mut examined = None;
    let mut answers: HashMap<RuleId, Option<bool>> = HashMap::new();
    search.conflicts(stage, limit, progress, |search, at, steps, partners| {
        let rules = search.statement_of(at.0, at.1);
        if examined.replace(rules[0]) != Some(rules[0]) {
            answers.clear();
        }
        let accept = |search: &mut PairSearch<'_>, pair: Pair, steps: &mut Steps| {
            let other = search.statement_of(pair.part, pair.better);
            let answer = answers.entry(other[0]);
            *answer.or_insert_with(|| are_crossing(search, [rules, other], steps))
        };
        let decided_by = |pair: Pair| 0..pair.better;
        search.add_partners(at, 0..at.1, decided_by, accept, steps, partners)
    })
}

/// True if each of two statements matches headers that the other does not.
fn are_crossing(
    search: &mut PairSearch<'_>,
    [first, second]: [&[RuleId]; 2],
    steps: &mut Steps,
) -> Option<bool> {
    match search.matches_more(first, second, steps) {
        Some(true) => search.matches_more(second, first, steps),
        answer => answer,
    }
}
