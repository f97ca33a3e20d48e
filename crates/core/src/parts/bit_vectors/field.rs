//! The intervals of a field, with the row of each interval.

use crate::budget::memory::bytes_of;
use crate::model::schema::{FieldId, Placement, Schema};
use crate::parts::range_tree::RangeTree;

/// The intervals of a field.
pub(crate) struct Field {
    pub(crate) id: FieldId,
    pub(crate) placement: Placement,
    pub(crate) intervals: RangeTree,
    /// The number of each interval's row.
    pub(crate) rows: Vec<u32>,
}

impl Field {
    /// Bytes of a field of `width` bits with `intervals` intervals.
    pub(crate) fn bytes_of(width: u32, intervals: usize) -> usize {
        RangeTree::bytes_of(width, intervals).saturating_add(bytes_of::<u32>(intervals))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.intervals.bytes() + bytes_of::<u32>(self.rows.capacity())
    }

    /// Returns the number of the row for a key's value.
    #[inline]
    pub(crate) fn row(&self, key: &[u64]) -> usize {
        self.rows[self.intervals.find(&self.placement, key)] as usize
    }

    /// Returns the smallest number of leading bits that determine the interval of a
    /// key.
    pub(crate) fn leading_bits(&self, schema: &Schema, key: &[u64]) -> u32 {
        let width = schema.field(self.id).width();
        self.intervals.leading_bits(&self.placement, width, key)
    }
}
