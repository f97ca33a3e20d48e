//! Random headers, from places where answers change.

use classyard::{FieldId, FieldMatch, RuleRef, Schema};

use super::{Dice, borders};

/// Returns a random header: one value for each field of the schema.
///
/// Most headers come from rules: a corner, a point one step outside of a corner, a point
/// inside, a point where two rules overlap, a mixture of fields of several rules, or a
/// value at a border of bytes, lanes or words that a range crosses. Other headers are
/// random, all zeros or all ones.
#[must_use]
pub fn draw_header(schema: &Schema, rules: &[RuleRef<'_>], dice: &mut dyn Dice) -> Vec<u128> {
    let fields = || schema.fields().iter();
    if rules.is_empty() || dice.one_in(12) {
        return match dice.below(4) {
            0 => vec![0; schema.fields().len()],
            1 => fields().map(classyard::Field::max_value).collect(),
            _ => fields().map(|f| dice.bits(f.width())).collect(),
        };
    }
    let rule = *dice.pick(rules);
    let mut header: Vec<u128> = match dice.below(8) {
        0 => {
            let high = dice.one_in(2);
            let ends = schema.field_ids().map(|id| rule.ends(id));
            ends.map(|(low, top)| if high { top } else { low })
                .collect()
        }
        1 | 2 => {
            let second_rule = *dice.pick(rules);
            let ids = schema.field_ids();
            ids.map(|id| common(schema, rule, second_rule, id, dice))
                .collect()
        }
        3 => {
            let ids = schema.field_ids();
            ids.map(|id| inside(schema, *dice.pick(rules), id, dice))
                .collect()
        }
        _ => draw_member(schema, rule, dice),
    };
    if dice.one_in(3) {
        step_outside(schema, rule, &mut header, dice);
    }
    header
}

/// Returns a random header that matches the rule.
#[must_use]
pub fn draw_member(schema: &Schema, rule: RuleRef<'_>, dice: &mut dyn Dice) -> Vec<u128> {
    let ids = schema.field_ids();
    ids.map(|id| inside(schema, rule, id, dice)).collect()
}

/// Moves one field outside of the rule, by 1 or by a piece of the field, or flips one bit.
fn step_outside(schema: &Schema, rule: RuleRef<'_>, header: &mut [u128], dice: &mut dyn Dice) {
    let ids: Vec<FieldId> = schema.field_ids().collect();
    let id = *dice.pick(&ids);
    let field = schema.field(id);
    let (low, high) = rule.ends(id);
    header[id.index()] = match dice.below(4) {
        0 => low.saturating_sub(1),
        1 => high.saturating_add(1).min(field.max_value()),
        2 => borders::beyond(low, high, field.width(), dice),
        _ => header[id.index()] ^ (1 << dice.below(field.width() as usize)),
    };
}

/// Returns a value that the rule accepts, often its lowest or highest value.
fn inside(schema: &Schema, rule: RuleRef<'_>, id: FieldId, dice: &mut dyn Dice) -> u128 {
    let field = schema.field(id);
    let (low, high) = rule.ends(id);
    match (dice.below(4), rule.field(id)) {
        (0, _) => low,
        (1, _) => high,
        (2, FieldMatch::Range { low, high }) => borders::beside(low, high, dice),
        (_, FieldMatch::Ternary { value, mask }) => value | (dice.bits(field.width()) & !mask),
        _ => dice.between(low, high),
    }
}

/// Returns a value that both rules accept, or any value if there is none.
fn common(
    schema: &Schema,
    a: RuleRef<'_>,
    b: RuleRef<'_>,
    id: FieldId,
    dice: &mut dyn Dice,
) -> u128 {
    let field = schema.field(id);
    let as_bits = |wanted| match wanted {
        FieldMatch::Ternary { value, mask } => Some((value, mask)),
        FieldMatch::Exact(value) => Some((value, field.max_value())),
        FieldMatch::Any => Some((0, 0)),
        _ => None,
    };
    if let (Some((value_a, mask_a)), Some((value_b, mask_b))) =
        (as_bits(a.field(id)), as_bits(b.field(id)))
    {
        let wildcard_bits = dice.bits(field.width()) & !(mask_a | mask_b);
        return (value_a & mask_a) | (value_b & mask_b) | wildcard_bits;
    }
    let ((low_a, high_a), (low_b, high_b)) = (a.ends(id), b.ends(id));
    let (low, high) = (low_a.max(low_b), high_a.min(high_b));
    let between = match dice.below(3) {
        0 => low,
        1 => high,
        _ => dice.between(low.min(high), high.max(low)),
    };
    match (a.field(id), b.field(id)) {
        // The bits outside of the mask are copied from a value in the range.
        (FieldMatch::Ternary { value, mask }, _) | (_, FieldMatch::Ternary { value, mask }) => {
            (value & mask) | (between & !mask)
        }
        _ => between,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{RuleMaker, SeededDice, random_schema};
    use classyard::KeyVec;

    #[test]
    fn headers_fit_their_schema_and_often_match() {
        let mut dice = SeededDice::new(9);
        let (mut headers, mut hits, mut multiple) = (0, 0, 0);
        for _ in 0..100 {
            let schema = random_schema(&mut dice);
            let rules = RuleMaker::new(&schema, &mut dice).rule_set(40, &mut dice);
            let views: Vec<_> = rules.iter().collect();
            let mut keys = KeyVec::new(&schema);
            for _ in 0..40 {
                let header = draw_header(&schema, &views, &mut dice);
                keys.push(&header).expect("a header of the schema");
            }
            for key in keys.as_slice().iter() {
                let matching = rules.iter().filter(|rule| rule.matches(key)).count();
                headers += 1;
                hits += usize::from(matching > 0);
                multiple += usize::from(matching > 1);
            }
        }
        assert!(
            hits * 2 > headers && multiple * 4 > headers,
            "{hits} {multiple} of {headers}"
        );
    }
}
