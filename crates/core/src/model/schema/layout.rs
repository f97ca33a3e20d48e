//! The place of each field in the words of a key and of a packed rule.

use super::{Field, FieldId, MatchKind, low_ones};

/// The key widths, in 64-bit words, for which the engines are compiled. The
/// built-in schemas have 2, 5 and 6 words. 16 words are enough for 1,024 bits
/// if the layout has no gaps, and 32 words are enough for every layout. A key
/// of another schema is padded with zero words to the next of these widths.
///
/// Each width adds compile time and code: `bench/records/build.md` compares five
/// widths with ten.
pub const KEY_WIDTHS: [usize; 5] = [2, 5, 6, 16, 32];

/// The widest key in words.
pub const MAX_KEY_WORDS: usize = KEY_WIDTHS[KEY_WIDTHS.len() - 1];

/// A contiguous group of bits within one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The word's index.
    pub word: usize,
    /// The position of the lowest bit in the word.
    pub shift: u32,
    /// The number of bits, 1 to 64.
    pub width: u32,
}

impl Part {
    /// Returns a mask of these bits in the word.
    #[must_use]
    pub fn mask(&self) -> u64 {
        (u64::MAX >> (64 - self.width)) << self.shift
    }

    /// Reads the bits, shifted down to bit 0.
    #[inline]
    #[must_use]
    pub fn get(&self, words: &[u64]) -> u64 {
        (words[self.word] >> self.shift) & (u64::MAX >> (64 - self.width))
    }

    /// Overwrites the bits. Bits of `value` beyond the width are dropped.
    #[inline]
    fn set(&self, words: &mut [u64], value: u64) {
        let mask = self.mask();
        words[self.word] = (words[self.word] & !mask) | ((value << self.shift) & mask);
    }
}

/// The place of a field: one part, or two for fields of more than 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The field's low 64 bits; all bits if the field is not wider.
    pub low: Part,
    /// The bits above the low 64 bits.
    pub high: Option<Part>,
}

impl Placement {
    /// Reads the field.
    #[inline]
    #[must_use]
    pub fn get(&self, words: &[u64]) -> u128 {
        let low = u128::from(self.low.get(words));
        match &self.high {
            None => low,
            Some(high) => low | (u128::from(high.get(words)) << 64),
        }
    }

    /// Overwrites the field. Bits of `value` beyond the width are dropped.
    #[inline]
    pub fn set(&self, words: &mut [u64], value: u128) {
        self.low.set(words, low_word(value));
        if let Some(high) = &self.high {
            high.set(words, low_word(value >> 64));
        }
    }

    /// Sets every bit of `value` that is not set yet.
    pub fn set_bits(&self, words: &mut [u64], value: u128) {
        let old = self.get(words);
        self.set(words, old | value);
    }
}

#[inline]
fn low_word(value: u128) -> u64 {
    u64::try_from(value & u128::from(u64::MAX)).expect("masked to 64 bits")
}

/// The place of a range field in a key, and in the high words of a packed rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeField {
    /// The field's id.
    pub field: FieldId,
    /// The place of the field in a key, and of the range's lower end in a
    /// rule's value words.
    pub key: Placement,
    /// The place of the range's upper end in a rule's high words.
    pub high: Placement,
}

impl RangeField {
    /// True if the key's field is between the rule's two ends.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &[u64], value: &[u64], high: &[u64]) -> bool {
        if self.key.high.is_none() {
            let field_value = self.key.low.get(key);
            (self.key.low.get(value) <= field_value) & (field_value <= self.high.low.get(high))
        } else {
            let field_value = self.key.get(key);
            self.key.get(value) <= field_value && field_value <= self.high.get(high)
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) key_words: usize,
    pub(super) used_words: usize,
    pub(super) high_words: usize,
    pub(super) placements: Vec<Placement>,
    pub(super) ranges: Vec<RangeField>,
}

impl Layout {
    pub(super) fn new(fields: &[Field]) -> Layout {
        let (placements, used_words) = pack(fields.iter().map(Field::width));
        let key_words = *KEY_WIDTHS
            .iter()
            .find(|&&width| width >= used_words)
            .expect("MAX_BITS packed first-fit needs at most 32 words");
        let is_range = |field: &&Field| field.kind() == MatchKind::Range;
        let (highs, high_words) = pack(fields.iter().filter(is_range).map(Field::width));
        let mut highs = highs.into_iter();
        let ranges = (0u8..)
            .zip(fields.iter().zip(&placements))
            .filter(|(_, (field, _))| is_range(field))
            .map(|(index, (_, key))| RangeField {
                field: FieldId(index),
                key: *key,
                high: highs.next().expect("one placement for each range field"),
            })
            .collect();
        Layout {
            key_words,
            used_words,
            high_words,
            placements,
            ranges,
        }
    }
}

/// Places fields first-fit by decreasing width. Ties keep their order, so that
/// a layout depends only on the schema. Returns the placements and the number
/// of words used.
pub(crate) fn pack(widths: impl Iterator<Item = u32>) -> (Vec<Placement>, usize) {
    let widths: Vec<u32> = widths.collect();
    // Each part: its field, true for the bits above the low 64, its width.
    let mut parts: Vec<(usize, bool, u32)> = Vec::new();
    for (field, &width) in widths.iter().enumerate() {
        parts.push((field, false, width.min(64)));
        if width > 64 {
            parts.push((field, true, width - 64));
        }
    }
    parts.sort_by_key(|&(_, _, width)| std::cmp::Reverse(width));

    let mut filled: Vec<u32> = Vec::new();
    let mut low: Vec<Option<Part>> = vec![None; widths.len()];
    let mut high: Vec<Option<Part>> = vec![None; widths.len()];
    for (field, is_high, width) in parts {
        let word = filled
            .iter()
            .position(|&used| used + width <= 64)
            .unwrap_or_else(|| {
                filled.push(0);
                filled.len() - 1
            });
        let part = Part {
            word,
            shift: filled[word],
            width,
        };
        filled[word] += width;
        let side = if is_high { &mut high } else { &mut low };
        side[field] = Some(part);
    }
    let placements = low
        .into_iter()
        .zip(high)
        .map(|(low, high)| Placement {
            low: low.expect("every field has a low part"),
            high,
        })
        .collect();
    (placements, filled.len())
}

/// Returns a prefix mask: the top `length` of `width` bits set.
pub(crate) fn prefix_mask(width: u32, length: u32) -> u128 {
    low_ones(width) & !low_ones(width - length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fields_never_overlap_and_round_trip(
            widths in proptest::collection::vec(1u32..=128, 1..=32),
            values in proptest::collection::vec(any::<u128>(), 32),
        ) {
            let mut total = 0;
            let widths: Vec<u32> = widths
                .into_iter()
                .take_while(|width| { total += width; total <= super::super::MAX_BITS })
                .collect();
            let fields: Vec<Field> = widths
                .iter()
                .enumerate()
                .map(|(i, &width)| Field::new(&format!("f{i}"), width, MatchKind::Range))
                .collect();
            let layout = Layout::new(&fields);
            prop_assert!(layout.key_words <= 32);
            let mut words = vec![0u64; layout.key_words];
            for (placement, value) in layout.placements.iter().zip(&values) {
                placement.set(&mut words, *value);
            }
            for ((placement, value), width) in layout.placements.iter().zip(&values).zip(&widths) {
                prop_assert_eq!(placement.get(&words), value & low_ones(*width));
            }
            let ones: u32 = layout.placements.iter().map(|p| {
                let mut field_bits = vec![0u64; layout.key_words];
                p.set(&mut field_bits, u128::MAX);
                field_bits.iter().map(|w| w.count_ones()).sum::<u32>()
            }).sum();
            prop_assert_eq!(ones, widths.iter().sum::<u32>());
        }
    }

    #[test]
    fn the_widest_schema_fits() {
        // 31 fields of 33 bits: no two fit in one word.
        let fields: Vec<Field> = (0..31)
            .map(|i| Field::new(&format!("f{i}"), 33, MatchKind::Ternary))
            .collect();
        assert_eq!(Layout::new(&fields).key_words, 32);
    }
}
