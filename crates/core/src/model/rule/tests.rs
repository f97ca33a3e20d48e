//! Tests of packing, unpacking, overlap and cover against enumeration.

use super::*;
use crate::model::key::KeyVec;

fn field(kind: MatchKind) -> Field {
    Field::new("f", 8, kind)
}

#[test]
fn winners_order_by_priority_then_id() {
    let winner = |p, id| Winner::new(Priority(p), RuleId::new(id).unwrap());
    assert!(winner(2, 9).beats(winner(1, 0)));
    assert!(winner(1, 0).beats(winner(1, 1)));
    assert!(!winner(1, 1).beats(winner(1, 1)));
    assert!(winner(0, u32::MAX - 1).beats(Winner::MISS));
    assert_eq!(winner(7, 3).rule().map(RuleId::get), Some(3));
    assert_eq!(winner(7, 3).priority(), Some(Priority(7)));
    assert_eq!(Winner::MISS.rule(), None);
    assert!(RuleId::new(u32::MAX).is_err());
}

#[test]
fn kinds_take_what_means_the_same_and_refuse_the_rest() {
    use FieldMatch::{Any, Exact, Prefix, Range, Ternary};
    use MatchKind as K;
    let all = [K::Exact, K::Prefix, K::Range, K::Ternary];
    let cases: [(FieldMatch, &[K]); 9] = [
        (Any, &all),
        (Exact(7), &all),
        (
            Prefix {
                value: 0xa0,
                length: 8,
            },
            &all,
        ),
        (
            Prefix {
                value: 0xa0,
                length: 3,
            },
            &[K::Prefix, K::Range, K::Ternary],
        ),
        (
            Range {
                low: 0xa0,
                high: 0xbf,
            },
            &[K::Prefix, K::Range, K::Ternary],
        ),
        (Range { low: 9, high: 10 }, &[K::Range]),
        (
            Ternary {
                value: 0xa0,
                mask: 0xe0,
            },
            &[K::Prefix, K::Range, K::Ternary],
        ),
        (
            Ternary { value: 1, mask: 1 },
            &[K::Prefix, K::Range, K::Ternary],
        ),
        (
            Ternary {
                value: 0xff,
                mask: 0x5a,
            },
            &[K::Prefix, K::Range, K::Ternary],
        ),
    ];
    for (wanted, allowed) in cases {
        for kind in all {
            let schema = Schema::new("t", vec![field(kind)]).unwrap();
            let rule = Rule::new(
                &schema,
                RuleId::from_index(0),
                Priority(1),
                ActionId(0),
                &[wanted],
            );
            assert_eq!(
                rule.is_ok(),
                allowed.contains(&kind),
                "{wanted:?} as {kind}"
            );
            let Ok(rule) = rule else { continue };
            for value in 0..=255u128 {
                let expected = match wanted {
                    Any => true,
                    Exact(v) => v == value,
                    Prefix { value: v, length } => {
                        length == 0 || v >> (8 - length) == value >> (8 - length)
                    }
                    Range { low, high } => (low..=high).contains(&value),
                    Ternary { value: v, mask } => (v ^ value) & mask == 0,
                };
                let mut keys = KeyVec::new(&schema);
                keys.push(&[value]).unwrap();
                assert_eq!(
                    rule.view().matches(keys.key(0)),
                    expected,
                    "{wanted:?} {value}"
                );
            }
        }
    }
}

#[test]
fn numbers_must_fit() {
    let schema = Schema::new("t", vec![field(MatchKind::Range)]).unwrap();
    let build = |wanted| {
        Rule::new(
            &schema,
            RuleId::from_index(0),
            Priority(1),
            ActionId(0),
            &[wanted],
        )
        .unwrap_err()
        .to_string()
    };
    assert!(build(FieldMatch::Exact(256)).contains("8 bits"));
    assert!(build(FieldMatch::Range { low: 9, high: 8 }).contains("9"));
    assert!(
        build(FieldMatch::Prefix {
            value: 0,
            length: 9
        })
        .contains("/9")
    );
}

#[test]
fn the_smallest_number_under_a_mask_is_found() {
    for mask in 0..256u128 {
        for value in (0..256).filter(|value| value & !mask == 0) {
            let mut expected = None;
            for low in (0..256).rev() {
                if low & mask == value {
                    expected = Some(low);
                }
                let found = smallest_from(low, value, mask, 8);
                assert_eq!(found, expected, "{value:#x}&{mask:#x} from {low:#x}");
            }
        }
    }
    let top = 1 << 127;
    assert_eq!(smallest_from(top + 1, 0, 1, 128), Some(top + 2));
    assert_eq!(smallest_from(u128::MAX, 0, 1, 128), None);
}

/// Fields are returned in their simplest form: masks with holes as given,
/// otherwise the form of the field's kind.
#[test]
fn values_under_masks_are_read_back() {
    for kind in [MatchKind::Prefix, MatchKind::Range] {
        let schema = Schema::new("t", vec![field(kind)]).unwrap();
        let field_id = schema.field_ids().next().unwrap();
        for mask in 0..256u128 {
            for value in [0, 0xff, 0x5a, 0x81] {
                let wanted = [FieldMatch::Ternary { value, mask }];
                let id = RuleId::from_index(0);
                let rule = Rule::new(&schema, id, Priority(1), ActionId(0), &wanted).unwrap();
                let rule = rule.view();
                let found = rule.field(field_id);
                let value = value & mask;
                let length = mask.count_ones();
                let high = value | (0xff & !mask);
                let expected = match mask {
                    0 => FieldMatch::Any,
                    0xff => FieldMatch::Exact(value),
                    mask if mask != prefix_mask(8, length) => FieldMatch::Ternary { value, mask },
                    _ if kind == MatchKind::Range => FieldMatch::Range { low: value, high },
                    _ => FieldMatch::Prefix { value, length },
                };
                assert_eq!(found, expected, "{kind} {value:#x}&{mask:#x}");
                assert_eq!(rule.ends(field_id), (value, high));
                let again = Rule::new(&schema, id, Priority(1), ActionId(0), &[found]);
                assert_eq!(again.unwrap().view().words(), rule.words());
            }
        }
    }
}

#[test]
fn an_exact_field_takes_no_mask() {
    let schema = Schema::new("t", vec![field(MatchKind::Exact)]).unwrap();
    let id = RuleId::from_index(0);
    let wanted = [FieldMatch::Ternary { value: 1, mask: 3 }];
    let error = Rule::new(&schema, id, Priority(1), ActionId(0), &wanted).unwrap_err();
    assert!(error.to_string().contains("0x1&0x3"), "{error}");
}

#[test]
fn overlap_and_cover_agree_with_enumeration() {
    let schema = Schema::new(
        "t",
        vec![
            Field::new("r", 4, MatchKind::Range),
            Field::new("p", 2, MatchKind::Prefix),
        ],
    )
    .unwrap();
    let mut wanted = Vec::new();
    for a in 0..16 {
        for b in a..16 {
            wanted.push(FieldMatch::Range { low: a, high: b });
        }
        for b in (0..16).filter(|b| a & !b == 0) {
            wanted.push(FieldMatch::Ternary { value: a, mask: b });
        }
    }
    let mut rules = Vec::new();
    for first in wanted {
        for (value, mask) in [(0, 0), (1, 1), (3, 3), (0, 1)] {
            let matches = [first, FieldMatch::Ternary { value, mask }];
            let id = RuleId::from_index(rules.len());
            rules.push(Rule::new(&schema, id, Priority(1), ActionId(0), &matches).unwrap());
        }
    }
    let mut keys = KeyVec::new(&schema);
    for r in 0..16 {
        for p in 0..4 {
            keys.push(&[r, p]).unwrap();
        }
    }
    let sets: Vec<u64> = rules
        .iter()
        .map(|rule| {
            (0..keys.len()).fold(0, |set, i| {
                set | (u64::from(rule.view().matches(keys.key(i))) << i)
            })
        })
        .collect();
    for (a, set_a) in rules.iter().zip(&sets) {
        for (b, set_b) in rules.iter().zip(&sets) {
            assert_eq!(a.view().overlaps(&b.view()), set_a & set_b != 0);
            assert_eq!(a.view().covers(&b.view()), set_a & set_b == *set_b);
        }
    }
}
