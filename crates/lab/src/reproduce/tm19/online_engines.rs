//! The engines of [TM19] Figs. 1, 3 and 4, and the values that are measured for them.
//!
//! [TM19]: classyard::papers#tm19

use classyard_report::chart::Mark;

use super::sheet::Sheet;

/// The paper's engines, and ours at the end. With `leaf=1`, `partition-sort` sorts all
/// rules, as in the paper. With `mask=addresses`, `tss` hashes addresses only, as the
/// simulator of the paper's authors does.
pub(super) const ENGINES: [(&str, &str, Mark); 6] = [
    ("tuplemerge", "tuplemerge (TM)", Mark::Circle),
    (
        "partition-sort:leaf=1",
        "partition-sort:leaf=1 (PS)",
        Mark::Square,
    ),
    (
        "tss:mask=addresses",
        "tss:mask=addresses (TSS)",
        Mark::Triangle,
    ),
    ("tss", "tss, all fields in masks", Mark::Diamond),
    ("forest", "forest (ours)", Mark::Cross),
    ("partition-sort", "partition-sort, with lists", Mark::Plus),
];

/// Indices in [`ENGINES`].
pub(super) const TUPLE_MERGE: usize = 0;
pub(super) const PARTITION_SORT: usize = 1;
pub(super) const TUPLE_SPACE: usize = 2;

/// Values of all engines for each rule set.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) updates: Sheet,
    pub(super) lookups: Sheet,
    pub(super) index_bytes: Sheet,
    pub(super) bytes: Sheet,
}
