//! Un-wildcarding: which bits of a key a comparison with a rule depended on.
//!
//! A masked lookup starts from no bits and adds, for every rule that it
//! compares, enough of them to repeat the comparison's result: all of a rule's
//! bits where it matched, one disagreeing bit where it did not. A range that
//! is no prefix needs more leading bits than its shared prefix: as many as
//! make the block of values around the key's lie inside of the range, or
//! outside of it. A value under a mask needs no more than the mask, in a range
//! field as well.

use crate::packed::PackedRule;
use crate::schema::{Placement, prefix_mask};

/// Adds the bits that show that a matching rule matches.
pub(crate) fn confirm(rule: &PackedRule<'_>, key: &[u64], wanted: &mut [u64]) {
    for (wanted, mask) in wanted.iter_mut().zip(rule.mask) {
        *wanted |= mask;
    }
    for range in rule.schema.range_fields() {
        let width = rule.width(range);
        let (low, high) = rule.ends(range);
        let free = prefix_mask(width, width) & !range.key.get(rule.mask);
        if low & free == 0 && high == low | free {
            // A prefix or a value under a mask: the bits of the mask are all.
            continue;
        }
        let found = range.key.get(key);
        let inside = |length: u32| {
            let mask = prefix_mask(width, length);
            let free = prefix_mask(width, width) & !mask;
            low <= found & mask && (found & mask) | free <= high
        };
        let length = (0..=width).find(|&length| inside(length));
        let length = length.expect("the value itself is inside of the range");
        want_leading(&range.key, width, length, wanted);
    }
}

/// Adds bits that show that a rule does not match, or none if the bits that
/// are wanted already show it.
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
        let found = range.key.get(key);
        let bound = match found {
            found if found < low => low,
            found if found > high => high,
            _ => continue,
        };
        // Up to the first bit in which the value leaves the nearer end, every
        // member of the block is on the same side of it.
        let shared = (found ^ bound).leading_zeros() - (128 - width);
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
    use crate::key::KeyVec;
    use crate::rule::{ActionId, FieldMatch, Priority, Rule, RuleId};
    use crate::schema::{Field, MatchKind, Schema};

    proptest! {
        /// Whatever the wanted bits leave open must not change the result.
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
            let mut one = KeyVec::new(&schema);
            one.push(&[header.0, header.1]).unwrap();
            let key = one.key(0);
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
