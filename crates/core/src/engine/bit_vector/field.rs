//! The intervals of a field, with the row of each interval.

use crate::engine::range_tree::RangeTree;
use crate::memory::bytes_of;
use crate::schema::{FieldId, Placement, Schema};

/// The intervals of a field.
pub(in crate::engine) struct Field {
    pub(in crate::engine) id: FieldId,
    pub(in crate::engine) placement: Placement,
    pub(in crate::engine) intervals: RangeTree,
    /// The number of each interval's row.
    pub(in crate::engine) rows: Vec<u32>,
}

impl Field {
    /// Bytes of a field of `width` bits with `intervals` intervals.
    pub(in crate::engine) fn bytes_of(width: u32, intervals: usize) -> usize {
        RangeTree::bytes_of(width, intervals).saturating_add(bytes_of::<u32>(intervals))
    }

    pub(in crate::engine) fn bytes(&self) -> usize {
        self.intervals.bytes() + bytes_of::<u32>(self.rows.capacity())
    }

    /// Returns the number of the row for a key's value.
    #[inline]
    pub(in crate::engine) fn row(&self, key: &[u64]) -> usize {
        self.rows[self.intervals.find(&self.placement, key)] as usize
    }

    /// Returns the smallest number of leading bits that determine the interval of a
    /// key.
    pub(in crate::engine) fn leading_bits(&self, schema: &Schema, key: &[u64]) -> u32 {
        let width = schema.field(self.id).width();
        self.intervals.leading_bits(&self.placement, width, key)
    }
}
