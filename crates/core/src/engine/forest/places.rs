//! Where the rule of an id is.

use super::TableNumber;
use crate::id_map::IdMap;

/// A rule's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) table: TableNumber,
    pub(super) slot: u32,
}

/// The buckets of all rules.
pub(super) type Places = IdMap<Place>;
