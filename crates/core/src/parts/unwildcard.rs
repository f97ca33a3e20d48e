//! Un-wildcarding: the bits of a key on which a comparison with a rule
//! depended.
//!
//! A masked lookup starts with no bits. For every compared rule, it adds enough
//! bits to repeat the comparison's result: all of the rule's bits if it
//! matched, or one differing bit if it did not. A range that is not a prefix
//! may need more leading bits than its shared prefix: enough that the block of
//! values around the key's value is entirely inside or entirely outside of the
//! range. A value under a mask needs only the bits of the mask, in a range
//! field as well.

use crate::model::packed::PackedRule;
use crate::model::schema::{Placement, prefix_mask};

/// Adds the bits that prove that a matching rule matches.
pub(crate) fn confirm(rule: &PackedRule<'_>, key: &[u64], wanted: &mut [u64]) {
    for (wanted, mask) in wanted.iter_mut().zip(rule.mask) {
        *wanted |= mask;
    }
    for range in rule.schema.range_fields() {
        let width = rule.width(range);
        let (low, high) = rule.ends(range);
        let free = prefix_mask(width, width) & !range.key.get(rule.mask);
        if low & free == 0 && high == low | free {
            // A prefix or a value under a mask: the bits of the mask suffice.
            continue;
        }
        let key_value = range.key.get(key);
        let inside = |length: u32| {
            let mask = prefix_mask(width, length);
            let free = prefix_mask(width, width) & !mask;
            low <= key_value & mask && (key_value & mask) | free <= high
        };
        let length = (0..=width).find(|&length| inside(length));
        let length = length.expect("the value itself is inside of the range");
        want_leading(&range.key, width, length, wanted);
    }
}

/// Adds bits that prove that a rule does not match, unless the wanted bits
/// already prove it.
pub(crate) fn refute(rule: &PackedRule<'_>, key: &[u64], wanted: &mut [u64]) {
    let differing = |word: usize| (key[word] ^ rule.value[word]) & rule.mask[word];
    let words = 0..key.len();
    if words
        .clone()
        .any(|word| differing(word) & wanted[word] != 0)
    {
        return;
    }
    if let Some(word) = words.clone().find(|&word| differing(word) != 0) {
        wanted[word] |= 1 << differing(word).ilog2();
        return;
    }
    let mut shortest: Option<(u32, Placement, u32)> = None;
    for range in rule.schema.range_fields() {
        let width = rule.width(range);
        let (low, high) = rule.ends(range);
        let key_value = range.key.get(key);
        let bound = match key_value {
            key_value if key_value < low => low,
            key_value if key_value > high => high,
            _ => continue,
        };
        // All values that share the bits up to the first difference from the
        // nearer end are on the same side of this end.
        let shared = (key_value ^ bound).leading_zeros() - (128 - width);
        if shortest.is_none_or(|(length, _, _)| shared + 1 < length) {
            shortest = Some((shared + 1, range.key, width));
        }
    }
    let (length, placement, width) = shortest.expect("the rule does not match the key");
    want_leading(&placement, width, length, wanted);
}

fn want_leading(placement: &Placement, width: u32, length: u32, wanted: &mut [u64]) {
    placement.set_bits(wanted, prefix_mask(width, length));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::key::KeyVec;
    use crate::model::rule::{ActionId, FieldMatch, Priority, Rule, RuleId};
    use crate::model::schema::{Field, MatchKind, Schema};

    proptest! {
        /// Changing bits that are not wanted must not change the result.
        #[test]
        fn wanted_bits_decide_the_comparison(
            ends in (0u128..64, 0u128..64),
            holes in (0u128..64, 0u128..64, any::<bool>()),
            ternary in (0u128..16, 0u128..16),
            header in (0u128..64, 0u128..16),
        ) {
            let schema = Schema::new("t", vec![
                Field::new("r", 6, MatchKind::Range),
                Field::new("t", 4, MatchKind::Ternary),
            ]).unwrap();
            let (low, high) = (ends.0.min(ends.1), ends.0.max(ends.1));
            let matches = [
                match holes {
                    (value, mask, true) => FieldMatch::Ternary { value, mask },
                    _ => FieldMatch::Range { low, high },
                },
                FieldMatch::Ternary { value: ternary.0, mask: ternary.1 },
            ];
            let rule = Rule::new(&schema, RuleId::from_index(0), Priority(1), ActionId(0), &matches)
                .unwrap();
            let mut keys = KeyVec::new(&schema);
            for r in 0..64 {
                for t in 0..16 {
                    keys.push(&[r, t]).unwrap();
                }
            }
            let mut header_keys = KeyVec::new(&schema);
            header_keys.push(&[header.0, header.1]).unwrap();
            let key = header_keys.key(0);
            let matched = rule.view().matches(key);
            let mut wanted = vec![0; schema.key_words()];
            if matched {
                confirm(&rule.view().into(), key, &mut wanted);
            } else {
                refute(&rule.view().into(), key, &mut wanted);
            }
            for i in 0..keys.len() {
                if (keys.key(i)[0] ^ key[0]) & wanted[0] == 0 {
                    prop_assert_eq!(rule.view().matches(keys.key(i)), matched);
                }
            }
        }
    }
}
