//! Lists of values and negations, such as `80,443` and `!10.0.0.0/8`, as matches of rules.

use classyard::schema::Field;
use classyard::value::ValueFormat;
use classyard::{FieldMatch, MatchKind};

/// The sign before values that a field must not have.
const NEGATION: char = '!';

/// The maximum number of rules that one line becomes.
pub(super) const MAX_RULES: usize = 1 << 16;

/// The maximum number of values in a list that has a mask with holes.
pub(super) const MAX_MASKS: usize = 1 << 10;

/// Splits the text of a condition into its values. The first item is true if the condition is
/// that the field has none of them.
pub(super) fn split(text: &str) -> (bool, impl Iterator<Item = &str>) {
    let values = text.strip_prefix(NEGATION);
    (values.is_some(), values.unwrap_or(text).split(','))
}

/// Returns matches that the kind of a field allows and that together match what `matches`
/// match, each value once; if `is_negated`, what none of them matches. `None` if that needs
/// more than [`MAX_RULES`] matches, or if `matches` are more than [`MAX_MASKS`] and have a mask
/// with holes.
pub(super) fn union(
    matches: &[FieldMatch],
    is_negated: bool,
    field: &Field,
) -> Option<Vec<FieldMatch>> {
    let ranges = matches.iter().map(|one| one.as_range(field.width()));
    let union: Vec<FieldMatch> = match ranges.collect::<Option<Vec<_>>>() {
        Some(ranges) => {
            let mut ranges = merged(ranges);
            if is_negated {
                ranges = between(&ranges, field.max_value());
            }
            let ranges = ranges.into_iter();
            ranges
                .map(|(low, high)| FieldMatch::Range { low, high })
                .collect()
        }
        None => under_masks(matches, is_negated, field.width())?,
    };
    let mut allowed = Vec::with_capacity(union.len());
    for one in union {
        allow(one, field, &mut allowed)?;
    }
    Some(allowed)
}

/// Sorts ranges, and joins ranges that overlap or touch.
fn merged(mut ranges: Vec<(u128, u128)>) -> Vec<(u128, u128)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match merged.last_mut() {
            Some((_, end)) if low <= end.saturating_add(1) => *end = high.max(*end),
            _ => merged.push((low, high)),
        }
    }
    merged
}

/// Returns the ranges between sorted ranges, from 0 to `max_value`.
fn between(ranges: &[(u128, u128)], max_value: u128) -> Vec<(u128, u128)> {
    let mut gaps = Vec::with_capacity(ranges.len() + 1);
    let mut next_low = Some(0);
    for &(low, high) in ranges {
        if let Some(next) = next_low.filter(|&next| next < low) {
            gaps.push((next, low - 1));
        }
        next_low = high.checked_add(1);
    }
    let last = next_low.filter(|&next| next <= max_value);
    gaps.extend(last.map(|next| (next, max_value)));
    gaps
}

/// Returns the same as [`union`] if some matches are masks with holes. The result is values
/// under masks.
fn under_masks(matches: &[FieldMatch], is_negated: bool, width: u32) -> Option<Vec<FieldMatch>> {
    let masked = matches.iter().flat_map(|one| one.masked_values(width));
    let mut union = Vec::new();
    // The values that no match so far has.
    let mut left = vec![(0, 0)];
    for (index, (value, mask)) in masked.enumerate() {
        let mut still_left = Vec::new();
        for piece in left {
            let (other, other_mask) = piece;
            if !is_negated && (value ^ other) & mask & other_mask == 0 {
                union.push((value | other, mask | other_mask));
            }
            still_left.extend(without(piece, (value, mask)));
            if index >= MAX_MASKS || still_left.len().max(union.len()) > MAX_RULES {
                return None;
            }
        }
        left = still_left;
    }
    let pieces = if is_negated { left } else { union };
    let ternary = |(value, mask)| FieldMatch::Ternary { value, mask };
    Some(pieces.into_iter().map(ternary).collect())
}

/// Returns the values of a piece that do not agree with `value` on the bits of `mask`.
fn without(piece: (u128, u128), (value, mask): (u128, u128)) -> Vec<(u128, u128)> {
    let (mut kept_value, mut kept_mask) = piece;
    if (value ^ kept_value) & mask & kept_mask != 0 {
        return vec![piece];
    }
    let mut pieces = Vec::new();
    let mut open = mask & !kept_mask;
    while open != 0 {
        let bit = 1 << open.ilog2();
        open &= !bit;
        kept_mask |= bit;
        pieces.push((kept_value | !value & bit, kept_mask));
        kept_value |= value & bit;
    }
    pieces
}

/// Adds matches that the kind of a field allows and that together match what `one` matches.
/// `None` if that makes more than [`MAX_RULES`].
fn allow(one: FieldMatch, field: &Field, allowed: &mut Vec<FieldMatch>) -> Option<()> {
    let width = field.width();
    match (field.kind(), one.as_range(width)) {
        (_, Some((low, high))) if low == 0 && high == field.max_value() => {
            allowed.push(FieldMatch::Any);
        }
        (_, Some((low, high))) if low == high => allowed.push(FieldMatch::Exact(low)),
        (MatchKind::Range, Some((low, high))) if field.format() != ValueFormat::Text => {
            allowed.push(FieldMatch::Range { low, high });
        }
        (MatchKind::Exact, Some((low, high))) => {
            allowed.extend(few(low..=high)?.map(FieldMatch::Exact));
        }
        (MatchKind::Exact, None) => {
            let [(value, mask)] = one.masked_values(width)[..] else {
                return None;
            };
            let ignored = field.max_value() & !mask;
            if ignored.count_ones() > MAX_RULES.ilog2() {
                return None;
            }
            allowed.extend(submasks(ignored).map(|bits| FieldMatch::Exact(value | bits)));
        }
        (_, Some(_)) => {
            allowed.extend(one.masked_values(width).into_iter().map(|(value, mask)| {
                let length = mask.count_ones();
                match length == width {
                    true => FieldMatch::Exact(value),
                    false => FieldMatch::Prefix { value, length },
                }
            }));
        }
        (_, None) => allowed.push(one),
    }
    (allowed.len() <= MAX_RULES).then_some(())
}

/// Returns the values of a range, if they are at most [`MAX_RULES`].
fn few(range: std::ops::RangeInclusive<u128>) -> Option<std::ops::RangeInclusive<u128>> {
    (range.end() - range.start() < MAX_RULES as u128).then_some(range)
}

/// Returns all numbers whose bits are bits of `mask`.
fn submasks(mask: u128) -> impl Iterator<Item = u128> {
    std::iter::successors(Some(0), move |&bits: &u128| match bits == mask {
        true => None,
        false => Some(bits.wrapping_sub(mask) & mask),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(one: &FieldMatch) -> Vec<u128> {
        let masked = one.masked_values(4);
        let matches = |value: &u128| masked.iter().any(|(bits, mask)| value & mask == *bits);
        (0..16).filter(matches).collect()
    }

    /// Every pair of matches of four bits, for every kind of field.
    #[test]
    fn unions_and_their_complements_have_each_value_once() {
        let mut forms = vec![FieldMatch::Any];
        for a in 0..16 {
            forms.extend((0..16).map(|mask| FieldMatch::Ternary { value: a, mask }));
            forms.extend((a..16).map(|high| FieldMatch::Range { low: a, high }));
        }
        for kind in [
            MatchKind::Exact,
            MatchKind::Prefix,
            MatchKind::Range,
            MatchKind::Ternary,
        ] {
            let field = Field::new("f", 4, kind);
            for (first, second) in forms.iter().zip(forms.iter().cycle().skip(97)).chain(
                forms
                    .iter()
                    .flat_map(|first| forms.iter().step_by(13).map(move |second| (first, second))),
            ) {
                for is_negated in [false, true] {
                    let union = union(&[*first, *second], is_negated, &field).unwrap();
                    let mut found: Vec<u128> = union.iter().flat_map(values).collect();
                    found.sort_unstable();
                    let (first, second) = (values(first), values(second));
                    let is_in = |value: &u128| first.contains(value) || second.contains(value);
                    let expected: Vec<u128> =
                        (0..16).filter(|value| is_in(value) != is_negated).collect();
                    assert_eq!(found, expected, "{kind} {union:?}");
                    for one in union {
                        assert!(super::super::kind_takes(&field, &one), "{kind} {one:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn unions_are_bounded() {
        let mac = Field::new("mac", 48, MatchKind::Exact);
        let range = FieldMatch::Range {
            low: 0,
            high: 1 << 16,
        };
        assert_eq!(union(&[range], false, &mac), None);
        let holes = FieldMatch::Ternary { value: 0, mask: 2 };
        assert_eq!(union(&[holes], false, &mac), None);
        // Each mask divides the pieces of the masks before it.
        let wide = Field::new("wide", 128, MatchKind::Ternary);
        let every_third = u128::MAX / 7;
        let holes = [0, 1, 2].map(|shift| FieldMatch::Ternary {
            value: 0,
            mask: every_third << shift,
        });
        assert_eq!(union(&holes, true, &wide), None);
    }
}
