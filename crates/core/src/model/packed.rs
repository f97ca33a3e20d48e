//! The packed words of a rule, and the test for a match.

use crate::model::schema::{FieldId, RangeField, Schema};

/// A packed rule, borrowed from a rule set or from an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedRule<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) value: &'a [u64],
    pub(crate) mask: &'a [u64],
    pub(crate) high: &'a [u64],
}

impl<'a> PackedRule<'a> {
    /// Splits a row of [`Schema::rule_words`] words.
    #[inline]
    pub(crate) fn new(schema: &'a Schema, words: &'a [u64]) -> PackedRule<'a> {
        let (value, rest) = words.split_at(schema.key_words());
        let (mask, high) = rest.split_at(schema.key_words());
        PackedRule {
            schema,
            value,
            mask,
            high,
        }
    }

    /// True if the rule matches a key. This is the definition of a match.
    #[inline]
    pub(crate) fn matches(&self, key: &[u64]) -> bool {
        let mut differing = 0;
        for ((key, value), mask) in key.iter().zip(self.value).zip(self.mask) {
            differing |= (key ^ value) & mask;
        }
        let ranges = self.schema.range_fields();
        differing == 0
            && ranges
                .iter()
                .all(|range| range.contains(key, self.value, self.high))
    }

    /// Returns the smallest and the largest value that the rule matches in a
    /// field.
    pub(crate) fn field_ends(&self, id: FieldId) -> (u128, u128) {
        let placement = self.schema.placement(id);
        let low = placement.get(self.value);
        let range = self.schema.range_fields().iter().find(|r| r.field == id);
        match range {
            Some(range) => (low, range.high.get(self.high)),
            None => {
                let free = self.schema.field(id).max_value() & !placement.get(self.mask);
                (low, low | free)
            }
        }
    }

    /// Returns the lower and the upper end of the rule's range in a range
    /// field.
    pub(crate) fn ends(&self, range: &RangeField) -> (u128, u128) {
        (range.key.get(self.value), range.high.get(self.high))
    }

    /// Returns the width of a range field in bits.
    pub(crate) fn width(&self, range: &RangeField) -> u32 {
        self.schema.field(range.field).width()
    }
}
