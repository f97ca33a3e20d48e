//! The result of learning: the masks of a chain of tables.

use super::cost::Cost;

/// The masks of a chain, and the predicted cost of a lookup in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan<const W: usize> {
    pub(crate) masks: Vec<[u64; W]>,
    pub(crate) cost: Cost,
    /// The approximate number of words read for learning it.
    pub(crate) words: usize,
}
