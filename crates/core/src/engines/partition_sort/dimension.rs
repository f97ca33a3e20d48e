//! The dimensions that nodes compare: a field, or half of a wide field.

use crate::model::packed::PackedRule;
use crate::model::schema::{FieldId, Part, Schema};

/// Up to 64 bits of a key. Each rule has an interval of their values.
///
/// A field of up to 64 bits is one dimension. A wider field is two: the bits above the
/// lowest 64, and the lowest 64. An interval of such a field is not the product of
/// intervals of its halves. So a rule has all values in the lower half, unless its upper
/// half is a single value.
///
/// A value under a mask with holes becomes the interval from its smallest to its largest
/// value. In each case the interval contains every value that the rule matches.
///
/// Values are *aligned*: the dimension's highest bit is bit 63, and bits below the
/// dimension are zero. A key's word shifted by `up` may have other bits below the
/// dimension. They do not affect its comparison with an aligned lower end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dimension {
    /// The word of the key, and the number of bits to shift it up.
    pub(super) word: u8,
    pub(super) up: u8,
    /// The dimension's bits, aligned.
    pub(super) bits: u64,
    field: FieldId,
    ends: Ends,
}

/// The place of the upper end of a rule's interval.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// The lower end with all bits outside the mask set.
    Mask,
    /// In this part of the rule's upper ends.
    Range(Part),
    /// Computed from the wide field: the ends of its upper or its lower half.
    Upper,
    Lower,
}

impl Dimension {
    /// Returns the dimensions of a schema: at most two for each field.
    pub(super) fn all(schema: &Schema) -> Box<[Dimension]> {
        let mut dimensions = Vec::new();
        for field in schema.field_ids() {
            let placement = schema.placement(field);
            let mut ranges = schema.range_fields().iter();
            let range = ranges.find(|range| range.field == field);
            let mut add = |part: Part, ends| dimensions.push(Dimension::new(part, field, ends));
            match (placement.high, range) {
                (None, None) => add(placement.low, Ends::Mask),
                (None, Some(range)) => add(placement.low, Ends::Range(range.high.low)),
                (Some(upper), _) => {
                    add(upper, Ends::Upper);
                    add(placement.low, Ends::Lower);
                }
            }
        }
        dimensions.into()
    }

    fn new(part: Part, field: FieldId, ends: Ends) -> Dimension {
        let narrow = |number: usize| u8::try_from(number).expect("a key has at most 32 words");
        Dimension {
            word: narrow(part.word),
            up: narrow(64 - (part.shift + part.width) as usize),
            bits: u64::MAX << (64 - part.width),
            field,
            ends,
        }
    }

    /// Returns the smallest and the largest value of a rule's interval, aligned.
    #[inline]
    pub(super) fn ends(&self, rule: &PackedRule<'_>) -> (u64, u64) {
        let word = usize::from(self.word);
        let low = (rule.value[word] << self.up) & self.bits;
        match self.ends {
            Ends::Mask => (low, low | ((!rule.mask[word] << self.up) & self.bits)),
            Ends::Range(part) => (low, part.get(rule.high) << self.bits.trailing_zeros()),
            Ends::Upper | Ends::Lower => self.half_ends(rule),
        }
    }

    #[cold]
    #[allow(clippy::cast_possible_truncation)] // the two halves
    fn half_ends(&self, rule: &PackedRule<'_>) -> (u64, u64) {
        let (low, high) = rule.field_ends(self.field);
        let (upper_low, upper_high) = ((low >> 64) as u64, (high >> 64) as u64);
        if let Ends::Upper = self.ends {
            let up = self.bits.trailing_zeros();
            (upper_low << up, upper_high << up)
        } else if upper_low == upper_high {
            (low as u64, high as u64)
        } else {
            (0, u64::MAX)
        }
    }

    /// Adds the bits of a key that show that its value is at least `low` and less than
    /// `end`. The value must be in this range. Both ends are aligned.
    pub(super) fn want(&self, key: &[u64], low: u64, end: Option<u64>, wanted: &mut [u64]) {
        let value = (key[usize::from(self.word)] << self.up) & self.bits;
        let below_bits = end.map_or(0, |end| leading(!value, !(end - 1)));
        let length = leading(value, low).max(below_bits);
        let bits = !u64::MAX.checked_shr(length).unwrap_or(0);
        wanted[usize::from(self.word)] |= (bits & self.bits) >> self.up;
    }
}

/// Returns the number of leading bits of `value` that show that it is at least `bound`.
fn leading(value: u64, bound: u64) -> u32 {
    debug_assert!(value >= bound, "it is at least the bound");
    // Up to the first bit that differs, or up to the lowest one bit of the bound.
    let differing = (value ^ bound).leading_zeros() + 1;
    differing.min(64 - bound.trailing_zeros())
}
