//! The counts of all logs.

use std::collections::BTreeMap;

use classyard::policy::PartId;

use crate::comparison::VerdictSummary;
use crate::counts::Counts;
use crate::totals::Totals;

/// The maximum number of examples of disagreements.
pub const MAX_EXAMPLES: usize = 10;

/// The counts of all rows of logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// All rows.
    pub rows: u64,
    /// Rows with a null in a mapped column: they have no header.
    pub null_rows: u64,
    /// Rows whose addresses are of a family without a part in the policy: they have no header.
    pub other_family_rows: u64,
    /// Rows with a header that no rule matches.
    pub unmatched: u64,
    /// The number of rows that each rule decides, by the rule's id, without zeros.
    pub hits: BTreeMap<u32, u64>,
    /// The comparison of verdicts with actions, if the logs have a column of verdicts.
    pub verdicts: Option<VerdictSummary>,
    /// The first rows whose verdict means something else than their action, at most
    /// [`MAX_EXAMPLES`].
    pub examples: Vec<Example>,
}

/// A row whose verdict means something else than the action of its rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The file, as its place in [`Logs::paths`](crate::Logs::paths).
    pub file: usize,
    /// The row of the file, from 0.
    pub row: u64,
    /// The verdict.
    pub verdict: String,
    /// The id of the rule.
    pub rule: u32,
    /// The part of the policy that the header belongs to.
    pub part: PartId,
    /// The header: a value for each field of the part's schema.
    pub header: Vec<u128>,
}

impl Summary {
    pub(crate) fn new(totals: Vec<Totals>, has_verdicts: bool, examples: Vec<Example>) -> Summary {
        let mut counts = Counts::default();
        let mut verdicts = VerdictSummary::default();
        for thread in totals {
            counts.merge(&thread.counts);
            thread.comparison.add_to(&mut verdicts);
        }
        Summary {
            rows: counts.rows,
            null_rows: counts.null_rows,
            other_family_rows: counts.other_family_rows,
            unmatched: counts.unmatched(),
            hits: counts.hits(),
            verdicts: has_verdicts.then_some(verdicts),
            examples,
        }
    }

    /// Returns the number of rows with a header.
    #[must_use]
    pub fn headers(&self) -> u64 {
        self.rows - self.null_rows - self.other_family_rows
    }
}
