//! Rules of equal priority and different actions that match the same header.
//!
//! In this program the smaller id decides such a header. OpenFlow leaves it undefined. A
//! header that a rule of higher priority matches does not matter.

use classyard::{BuildError, Progress};

use super::limit::Limit;
use super::pairs::{Conflicts, PairSearch};
use crate::part::AnalysedPart;

/// Returns the statements with a rule that shares headers with a better rule of the same
/// priority and another action, if no rule of higher priority matches them.
pub(super) fn find(
    search: &mut PairSearch<'_>,
    limit: &mut Limit,
    progress: &mut dyn Progress,
) -> Result<Conflicts, BuildError> {
    let stage = "searching for equal priorities";
    search.conflicts(stage, limit, progress, |search, at, steps, partners| {
        let equal = equal_before(search.part(at.0), at.1);
        let higher = 0..equal.start;
        let decided_by = |_| higher.clone();
        search.add_partners(at, equal, decided_by, |_, _, _| Some(true), steps, partners)
    })
}

/// Returns the places before a place whose rules have the same priority.
fn equal_before(part: &AnalysedPart<'_>, place: u32) -> std::ops::Range<u32> {
    let priority = part.rule(place).priority();
    // The rules are sorted by priority.
    let (mut first, mut end) = (0, place);
    while first < end {
        let middle = first + (end - first) / 2;
        if part.rule(middle).priority() == priority {
            end = middle;
        } else {
            first = middle + 1;
        }
    }
    first..place
}
