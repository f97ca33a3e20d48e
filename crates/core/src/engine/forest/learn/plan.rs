//! The result of learning: the masks of a chain of tables.

use super::cost::Cost;

/// The masks of a chain, and what a lookup in it will cost.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan<const W: usize> {
    pub(crate) masks: Vec<[u64; W]>,
    pub(crate) cost: Cost,
    /// About how many words were read for it.
    pub(crate) words: usize,
}
