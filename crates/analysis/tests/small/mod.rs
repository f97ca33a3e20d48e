//! Schemas, rules and keys of few bits, so that tests examine every header.

// Each test uses some of these functions.
#![allow(dead_code)]

use std::sync::Arc;

use classyard::prelude::*;
use classyard::{Field, MatchKind};
use classyard_conformance::random::Dice;

/// Returns a schema of a few fields with at most 12 bits together.
pub(crate) fn small_schema(dice: &mut dyn Dice) -> Arc<Schema> {
    let count = 1 + dice.below(4);
    let fields = (0..count).map(|index| {
        let width = 1 + dice.below(12 / count);
        let kinds = [
            MatchKind::Exact,
            MatchKind::Prefix,
            MatchKind::Range,
            MatchKind::Ternary,
        ];
        let name = format!("f{index}");
        Field::new(&name, u32::try_from(width).unwrap(), *dice.pick(&kinds))
    });
    Schema::new("small", fields.collect()).unwrap()
}

/// Returns a random match of a field, often a wildcard.
pub(crate) fn small_match(field: &Field, dice: &mut dyn Dice) -> FieldMatch {
    let width = field.width();
    let value = dice.bits(width);
    match (field.kind(), dice.below(4)) {
        (_, 0) => FieldMatch::Any,
        (MatchKind::Exact, _) => FieldMatch::Exact(value),
        (MatchKind::Range, 1 | 2) => {
            let other = dice.bits(width);
            FieldMatch::Range {
                low: value.min(other),
                high: value.max(other),
            }
        }
        (MatchKind::Prefix, 1 | 2) => FieldMatch::Prefix {
            value,
            length: u32::try_from(dice.below(width as usize + 1)).unwrap(),
        },
        _ => FieldMatch::Ternary {
            value,
            mask: dice.bits(width),
        },
    }
}

/// Returns at most `count` random rules. No header matches two of them.
pub(crate) fn apart(schema: &Arc<Schema>, count: usize, dice: &mut dyn Dice) -> Policy {
    let mut policy = Policy::single(schema);
    let part = policy.part_ids().next().unwrap();
    for id in (0..count).map(RuleId::from_index) {
        let fields = schema.fields().iter();
        let matches: Vec<_> = fields.map(|field| small_match(field, dice)).collect();
        let rule = Rule::new(schema, id, Priority(0), ActionId(0), &matches).unwrap();
        let overlaps = |other: classyard::RuleRef<'_>| other.overlaps(&rule.view());
        if !policy.parts()[0].iter().any(overlaps) {
            let added = policy.add(id, Priority(0), ActionId(0), &[(part, &matches)]);
            added.unwrap();
        }
    }
    policy
}

/// Returns a policy of 2 to 15 rules with three actions.
pub(crate) fn small_policy(schema: &Arc<Schema>, dice: &mut dyn Dice) -> Policy {
    let rules = 2 + dice.below(14);
    random_policy(schema, rules, dice)
}

/// Returns a policy of 2,500 rules over two fields with 12 bits together, so that lists of
/// overlapping rules are long.
pub(crate) fn crowded_policy(dice: &mut dyn Dice) -> Policy {
    let kinds = [MatchKind::Range, MatchKind::Ternary, MatchKind::Prefix];
    let field = |name, kind| Field::new(name, 6, kind);
    let fields = vec![field("x", MatchKind::Range), field("y", *dice.pick(&kinds))];
    let schema = Schema::new("crowded", fields).unwrap();
    random_policy(&schema, 2500, dice)
}

fn random_policy(schema: &Arc<Schema>, rules: usize, dice: &mut dyn Dice) -> Policy {
    let mut policy = Policy::single(schema);
    for name in ["permit", "deny", "log"] {
        policy.declare_action(name);
    }
    let part = policy.part_ids().next().unwrap();
    for index in 0..rules {
        let matches: Vec<_> = schema
            .fields()
            .iter()
            .map(|field| small_match(field, dice))
            .collect();
        let priority = Priority(u32::try_from(dice.below(6)).unwrap());
        let action = ActionId(u32::try_from(dice.below(3)).unwrap());
        let id = RuleId::from_index(index);
        policy
            .add(id, priority, action, &[(part, &matches)])
            .unwrap();
    }
    policy
}

/// Returns all keys of a schema of few bits.
pub(crate) fn all_keys(schema: &Arc<Schema>) -> KeyVec {
    let mut keys = KeyVec::new(schema);
    for number in 0..1u128 << schema.total_bits() {
        let mut left = number;
        let header: Vec<u128> = schema
            .fields()
            .iter()
            .map(|field| {
                let value = left & field.max_value();
                left >>= field.width();
                value
            })
            .collect();
        keys.push(&header).unwrap();
    }
    keys
}
