//! One field: its intervals, and the row of each.

use crate::engine::range_tree::RangeTree;
use crate::memory::bytes_of;
use crate::schema::{FieldId, Placement, Schema};

/// The intervals of a field.
pub(in crate::engine) struct Field {
    pub(in crate::engine) id: FieldId,
    pub(in crate::engine) placement: Placement,
    pub(in crate::engine) intervals: RangeTree,
    /// Which row each has.
    pub(in crate::engine) rows: Vec<u32>,
}

impl Field {
    /// Bytes of a field of `width` bits with that many intervals.
    pub(in crate::engine) fn bytes_of(width: u32, intervals: usize) -> usize {
        RangeTree::bytes_of(width, intervals).saturating_add(bytes_of::<u32>(intervals))
    }

    pub(in crate::engine) fn bytes(&self) -> usize {
        self.intervals.bytes() + bytes_of::<u32>(self.rows.capacity())
    }

    /// The row of a key's value.
    #[inline]
    pub(in crate::engine) fn row(&self, key: &[u64]) -> usize {
        self.rows[self.intervals.find(&self.placement, key)] as usize
    }

    /// The fewest leading bits that say that a value is in the key's interval.
    pub(in crate::engine) fn leading_bits(&self, schema: &Schema, key: &[u64]) -> u32 {
        let width = schema.field(self.id).width();
        self.intervals.leading_bits(&self.placement, width, key)
    }
}
