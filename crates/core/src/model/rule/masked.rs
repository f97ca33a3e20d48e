//! Field matches in other forms: values under masks, and ranges.

use super::FieldMatch;
use crate::model::schema::{low_ones, prefix_mask};

impl FieldMatch {
    /// Returns values under masks that together match what this match of a field of
    /// `field_width` bits matches, each value once. A range becomes the fewest prefixes: at
    /// most `2 × field_width - 2`. Bits of a value outside of its mask are 0.
    ///
    /// ```
    /// use classyard::FieldMatch;
    ///
    /// let ports = FieldMatch::Range { low: 1024, high: 65535 };
    /// let masked = ports.masked_values(16);
    /// assert_eq!(masked.len(), 6);
    /// assert_eq!(masked[0], (0x0400, 0xfc00));
    /// ```
    #[must_use]
    pub fn masked_values(&self, field_width: u32) -> Vec<(u128, u128)> {
        match *self {
            FieldMatch::Range { low, high } => prefixes(low, high, low_ones(field_width)),
            _ => self.value_and_mask(field_width).into_iter().collect(),
        }
    }

    /// Returns the smallest and the largest value that the match of a field of `field_width`
    /// bits matches, if it matches all values between them. `None` for a mask that ignores
    /// bits above bits that it compares.
    #[must_use]
    pub fn as_range(&self, field_width: u32) -> Option<(u128, u128)> {
        match *self {
            FieldMatch::Range { low, high } => Some((low, high)),
            _ => {
                let (value, mask) = self.value_and_mask(field_width)?;
                let ignored = low_ones(field_width) & !mask;
                (ignored & ignored.wrapping_add(1) == 0).then_some((value, value | ignored))
            }
        }
    }

    /// Returns the value and the mask of this match. `None` for a range.
    fn value_and_mask(&self, field_width: u32) -> Option<(u128, u128)> {
        let full = low_ones(field_width);
        let (value, mask) = match *self {
            FieldMatch::Any => (0, 0),
            FieldMatch::Exact(value) => (value, full),
            FieldMatch::Prefix { value, length } => (value, prefix_mask(field_width, length)),
            FieldMatch::Ternary { value, mask } => (value, mask & full),
            FieldMatch::Range { .. } => return None,
        };
        Some((value & mask, mask))
    }
}

/// Returns the fewest prefixes that together match a range.
fn prefixes(mut low: u128, high: u128, full: u128) -> Vec<(u128, u128)> {
    let mut prefixes = Vec::new();
    loop {
        // The largest prefix that starts at `low` and does not end above `high`.
        let mut ignored = low_ones(low.trailing_zeros()) & full;
        while ignored > high - low {
            ignored >>= 1;
        }
        prefixes.push((low, full & !ignored));
        match low | ignored {
            last if last >= high => return prefixes,
            last => low = last + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_its_prefixes() {
        for width in 1..=6 {
            let top = low_ones(width);
            for low in 0..=top {
                for high in low..=top {
                    let range = FieldMatch::Range { low, high };
                    let prefixes = range.masked_values(width);
                    assert!(prefixes.len() <= (2 * width as usize).max(3) - 2);
                    for value in 0..=top {
                        let matching = prefixes
                            .iter()
                            .filter(|(bits, mask)| value & mask == *bits)
                            .count();
                        assert_eq!(matching, usize::from((low..=high).contains(&value)));
                    }
                }
            }
        }
        let range = |low, high| FieldMatch::Range { low, high }.masked_values(128);
        assert_eq!(range(0, u128::MAX), [(0, 0)]);
        assert_eq!(range(1, u128::MAX).len(), 128);
        assert_eq!(range(1, u128::MAX - 1).len(), 254);
    }

    #[test]
    fn matches_without_holes_are_ranges() {
        for value in 0..16 {
            for mask in 0..16 {
                let ternary = FieldMatch::Ternary { value, mask };
                let matched: Vec<u128> = (0..16).filter(|v| (v ^ value) & mask == 0).collect();
                let ends = (matched[0], *matched.last().unwrap());
                let is_range = ends.1 - ends.0 + 1 == matched.len() as u128;
                assert_eq!(ternary.as_range(4), is_range.then_some(ends));
            }
        }
        let prefix = FieldMatch::Prefix {
            value: 0b1011,
            length: 2,
        };
        assert_eq!(prefix.as_range(4), Some((0b1000, 0b1011)));
        assert_eq!(FieldMatch::Any.as_range(4), Some((0, 15)));
        assert_eq!(FieldMatch::Exact(3).as_range(4), Some((3, 3)));
    }
}
