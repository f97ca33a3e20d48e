//! The counts of one thread.

use crate::comparison::Comparison;
use crate::counts::Counts;

/// The counts of one thread.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) counts: Counts,
    pub(crate) comparison: Comparison,
}
