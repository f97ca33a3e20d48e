//! Random schemas.

use std::sync::Arc;

use classyard::schema::{MAX_BITS, MAX_FIELD_BITS};
use classyard::{Field, FieldRole, MatchKind, Schema, ValueFormat};

use super::Dice;

/// Widths at which something changes: one bit, a byte, a word, the largest.
const WIDTHS: [u32; 14] = [
    1,
    2,
    3,
    7,
    8,
    9,
    16,
    31,
    32,
    33,
    64,
    65,
    127,
    MAX_FIELD_BITS,
];

const FIELD_COUNTS: [usize; 9] = [1, 1, 2, 2, 3, 4, 5, 15, 40];

const KINDS: [MatchKind; 4] = [
    MatchKind::Exact,
    MatchKind::Prefix,
    MatchKind::Range,
    MatchKind::Ternary,
];

const ROLES: [FieldRole; 4] = [
    FieldRole::SourceAddress,
    FieldRole::DestinationAddress,
    FieldRole::SourcePort,
    FieldRole::DestinationPort,
];

const FORMATS: [ValueFormat; 6] = [
    ValueFormat::Decimal,
    ValueFormat::Hex,
    ValueFormat::Ipv4,
    ValueFormat::Ipv6,
    ValueFormat::Mac,
    ValueFormat::IpProtocol,
];

/// A schema of 1 to 40 fields of 1 to 128 bits, of all kinds, with roles on
/// whatever fields.
///
/// # Panics
/// Never: what it makes is a schema.
#[must_use]
pub fn random_schema(dice: &mut dyn Dice) -> Arc<Schema> {
    let count = match dice.below(3) {
        0 => *dice.pick(&FIELD_COUNTS),
        1 => 1 + dice.below(6),
        _ => 1 + dice.below(40),
    };
    // Some schemas are of one kind and of narrow fields only.
    let only_kind = dice.one_in(5).then(|| *dice.pick(&KINDS));
    let narrow = dice.one_in(3);
    let mut roles: Vec<FieldRole> = ROLES.to_vec();
    let mut left = MAX_BITS;
    let mut fields = Vec::new();
    for index in 0..count {
        let drawn = match dice.below(2) {
            0 => *dice.pick(&WIDTHS),
            _ => 1 + u32::try_from(dice.below(128)).expect("below 128"),
        };
        let width = if narrow { 1 + drawn % 8 } else { drawn };
        if left == 0 {
            break;
        }
        let width = width.min(left);
        left -= width;
        let kind = only_kind.unwrap_or_else(|| *dice.pick(&KINDS));
        let mut field = Field::new(&format!("f{index}"), width, kind);
        let format = *dice.pick(&FORMATS);
        if format.fits(width) {
            field = field.with_format(format);
        }
        if !roles.is_empty() && dice.one_in(3) {
            let role = roles.swap_remove(dice.below(roles.len()));
            field = field.with_role(role);
        }
        fields.push(field);
    }
    Schema::new("random", fields).expect("widths and names are in bounds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::random::{ByteDice, SeededDice};

    #[test]
    fn schemas_are_as_different_as_can_be() {
        let mut dice = SeededDice::new(1);
        let schemas: Vec<_> = (0..500).map(|_| random_schema(&mut dice)).collect();
        let any = |test: &dyn Fn(&Schema) -> bool| schemas.iter().any(|schema| test(schema));
        assert!(any(&|s| s.fields().len() == 1));
        assert!(any(&|s| s.fields().len() == 40));
        assert!(any(&|s| s.total_bits() == MAX_BITS));
        assert!(any(&|s| s.total_bits() == 1));
        for width in WIDTHS {
            assert!(any(&|s| s.fields().iter().any(|f| f.width() == width)));
        }
        for role in ROLES {
            assert!(any(&|s| s.field_with_role(role).is_some()));
        }
        assert_eq!(random_schema(&mut ByteDice::new(&[])).fields().len(), 1);
    }
}
