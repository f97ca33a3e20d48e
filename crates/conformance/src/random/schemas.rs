//! Random schemas.

use std::sync::Arc;

use classyard::schema::FieldRole;
use classyard::schema::{MAX_BITS, MAX_FIELD_BITS, MAX_FIELDS};
use classyard::value::ValueFormat;
use classyard::{Field, MatchKind, Schema};

use super::Dice;

/// Widths in bits at which layouts change: around one bit, a byte, a word, the maximum.
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

const FORMATS: [ValueFormat; 10] = [
    ValueFormat::Decimal,
    ValueFormat::Hex,
    ValueFormat::Ipv4,
    ValueFormat::Ipv6,
    ValueFormat::Mac,
    ValueFormat::IpProtocol,
    ValueFormat::ConnectionState,
    ValueFormat::Fragment,
    ValueFormat::TcpFlags,
    ValueFormat::Text,
];

/// Field widths that divide words of 64 bits. The 16-bit fields start at multiples of 16,
/// after wider fields or next to narrower fields, or just miss a multiple.
const DIVISIONS: [&[u32]; 18] = [
    &[48, 16],
    &[32, 16, 16],
    &[32, 32],
    &[24, 24, 16],
    &[28, 20, 16],
    &[31, 17, 16],
    &[30, 17, 16],
    &[16, 16, 16, 16],
    &[16, 16, 16, 8, 8],
    &[16, 16, 8],
    &[16, 8],
    &[32, 16, 8, 8],
    &[32, 16],
    &[40, 16, 8],
    &[24, 16, 16, 8],
    &[16, 16, 15, 9, 8],
    &[64],
    &[56, 8],
];

/// The widths of the other fields in schemas of many 16-bit fields.
const BESIDE_LANES: [u32; 12] = [8, 24, 32, 32, 48, 48, 64, 9, 17, 20, 28, 40];

/// The probabilities of the kinds of fields.
#[derive(Clone, Copy)]
enum Kinds {
    /// All kinds are equally likely.
    Mixed,
    /// At least three of four fields are ranges.
    MostlyRanges,
    /// One kind for all fields.
    Only(MatchKind),
}

/// Returns a random schema of 1 to 64 fields with 1 to 128 bits each, at most 1,024 bits in
/// total. Kinds, roles and order are random.
///
/// In 5 of 12 schemas all widths are independent. The other schemas have special layouts:
/// words that 16-bit fields share with wider fields and with the upper parts of fields of
/// more than 64 bits; dozens of 16-bit fields among other fields; 64 narrow fields; all
/// 1,024 bits.
///
/// # Panics
/// Never: the fields always form a valid schema.
#[must_use]
pub fn random_schema(dice: &mut dyn Dice) -> Arc<Schema> {
    let mut widths = match dice.below(12) {
        0..=4 => any_widths(dice),
        5..=7 => divided_words(dice),
        8 => many_lanes(dice),
        9 => wide_beside_lanes(dice),
        10 => narrow_fields(dice),
        _ => all_bits(dice),
    };
    let kinds = match dice.below(8) {
        0 => Kinds::Only(*dice.pick(&KINDS)),
        1 => Kinds::Only(MatchKind::Range),
        2..=4 => Kinds::MostlyRanges,
        _ => Kinds::Mixed,
    };
    dice.shuffle(&mut widths);
    let mut roles: Vec<FieldRole> = ROLES.to_vec();
    let mut fields = Vec::with_capacity(widths.len());
    for (index, width) in widths.into_iter().enumerate() {
        let kind = match kinds {
            Kinds::Only(kind) => kind,
            Kinds::MostlyRanges if !dice.one_in(4) => MatchKind::Range,
            Kinds::Mixed | Kinds::MostlyRanges => *dice.pick(&KINDS),
        };
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

/// Field widths within the limits of a schema. The last width is reduced to the bits that
/// remain.
#[derive(Default)]
struct Widths(Vec<u32>);

impl Widths {
    fn left(&self) -> u32 {
        MAX_BITS - self.0.iter().sum::<u32>()
    }

    fn is_full(&self) -> bool {
        self.left() == 0 || self.0.len() == MAX_FIELDS
    }

    fn push(&mut self, width: u32) {
        if !self.is_full() {
            self.0.push(width.min(self.left()));
        }
    }
}

/// Returns a width from 1 to the maximum. Half of the results are from [`WIDTHS`].
fn any_width(dice: &mut dyn Dice) -> u32 {
    match dice.below(2) {
        0 => *dice.pick(&WIDTHS),
        _ => up_to(MAX_FIELD_BITS, dice),
    }
}

/// Returns a number from 1 to `max`.
fn up_to(max: u32, dice: &mut dyn Dice) -> u32 {
    1 + u32::try_from(dice.below(max as usize)).expect("at most 128")
}

fn any_widths(dice: &mut dyn Dice) -> Vec<u32> {
    let count = match dice.below(3) {
        0 => *dice.pick(&FIELD_COUNTS),
        1 => 1 + dice.below(6),
        _ => 1 + dice.below(MAX_FIELDS),
    };
    // A third of these schemas has only narrow fields.
    let narrow = dice.one_in(3);
    let mut widths = Widths::default();
    for _ in 0..count {
        let drawn = any_width(dice);
        widths.push(if narrow { 1 + drawn % 8 } else { drawn });
    }
    widths.0
}

/// Returns the widths of words with special divisions. Some widths other than 16 bits
/// become the upper part of a wider field.
fn divided_words(dice: &mut dyn Dice) -> Vec<u32> {
    let words = match dice.below(3) {
        0 => 1,
        1 => 1 + dice.below(3),
        _ => 1 + dice.below(12),
    };
    let uppers = [0, 25, 100][dice.below(3)];
    let mut widths = Widths::default();
    for _ in 0..words {
        for &width in *dice.pick(&DIVISIONS) {
            let is_upper = width != 16 && dice.percent(uppers);
            widths.push(if is_upper { 64 + width } else { width });
        }
    }
    widths.0
}

/// Returns random widths; about half of them are 16 bits.
fn many_lanes(dice: &mut dyn Dice) -> Vec<u32> {
    let count = 2 + dice.below(MAX_FIELDS - 1);
    let mut widths = Widths::default();
    for _ in 0..count {
        let width = *dice.pick(&BESIDE_LANES);
        widths.push(if dice.one_in(2) { 16 } else { width });
    }
    widths.0
}

/// Returns widths of more than 64 bits, and widths of 16 bits to fill the words of their
/// upper parts.
fn wide_beside_lanes(dice: &mut dyn Dice) -> Vec<u32> {
    let mut widths = Widths::default();
    for _ in 0..1 + dice.below(6) {
        let upper = match dice.below(2) {
            0 => *dice.pick(&[16, 17, 24, 31, 32, 33, 40, 47, 48]),
            _ => up_to(64, dice),
        };
        widths.push(64 + upper);
        for _ in 0..dice.below(4) {
            widths.push(16);
        }
    }
    widths.0
}

/// Returns the widths of the maximum number of fields.
fn narrow_fields(dice: &mut dyn Dice) -> Vec<u32> {
    let max_width = *dice.pick(&[1, 2, 8, 9, 16]);
    let is_uniform = dice.one_in(3);
    let width = |dice: &mut dyn Dice| match is_uniform {
        true => max_width,
        false => up_to(max_width, dice),
    };
    (0..MAX_FIELDS).map(|_| width(dice)).collect()
}

/// Returns widths with the maximum total number of bits.
fn all_bits(dice: &mut dyn Dice) -> Vec<u32> {
    let max_width = *dice.pick(&[24, 40, 64, MAX_FIELD_BITS]);
    let mut widths = Widths::default();
    while !widths.is_full() {
        // The remaining bits must fit into the fields after this one.
        let fields_after = MAX_FIELDS - widths.0.len() - 1;
        let fields_after = u32::try_from(fields_after).expect("at most 64");
        let min_width = widths.left().saturating_sub(fields_after * MAX_FIELD_BITS);
        widths.push(up_to(max_width, dice).max(min_width));
    }
    widths.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{ByteDice, SeededDice};
    use classyard::schema::Part;

    fn schemas(count: usize) -> Vec<Arc<Schema>> {
        let mut dice = SeededDice::new(1);
        (0..count).map(|_| random_schema(&mut dice)).collect()
    }

    /// Returns the parts of fields in each word, with the fields' widths and kinds.
    fn words(schema: &Schema) -> Vec<Vec<(Part, u32, MatchKind)>> {
        let mut words = vec![Vec::new(); schema.key_words()];
        for id in schema.field_ids() {
            let (placement, field) = (schema.placement(id), schema.field(id));
            for part in [Some(placement.low), placement.high].into_iter().flatten() {
                words[part.word].push((part, field.width(), field.kind()));
            }
        }
        words
    }

    #[test]
    fn schemas_are_as_different_as_can_be() {
        let schemas = schemas(1000);
        let any = |test: &dyn Fn(&Schema) -> bool| schemas.iter().any(|schema| test(schema));
        assert!(any(&|s| s.fields().len() == 1));
        assert!(any(&|s| s.fields().len() == MAX_FIELDS));
        assert!(any(&|s| s.total_bits() == MAX_BITS));
        assert!(any(
            &|s| s.total_bits() == MAX_BITS && s.fields().len() == MAX_FIELDS
        ));
        assert!(any(&|s| s.total_bits() == 1));
        for words in classyard::schema::KEY_WIDTHS {
            assert!(any(&|s| s.key_words() == words), "{words} words");
        }
        for width in 1..=MAX_FIELD_BITS {
            assert!(
                any(&|s| s.fields().iter().any(|f| f.width() == width)),
                "{width} bits"
            );
        }
        for kind in KINDS {
            for width in [1, 8, 16, 24, 32, 33, 48, 64, 65, 80, 96, 112, 128] {
                let has = |f: &Field| f.width() == width && f.kind() == kind;
                assert!(
                    any(&|s| s.fields().iter().any(has)),
                    "{kind} of {width} bits"
                );
            }
            assert!(
                any(&|s| s.fields().len() > 1 && s.fields().iter().all(|f| f.kind() == kind)),
                "only {kind}"
            );
        }
        for role in ROLES {
            assert!(any(&|s| s.field_with_role(role).is_some()));
        }
        // Narrow fields before wide fields, and wide fields before narrow fields.
        let width = |s: &Schema, index: usize| s.fields()[index].width();
        assert!(any(&|s| s.fields().len() > 1 && width(s, 0) < width(s, 1)));
        assert!(any(&|s| s.fields().len() > 1 && width(s, 0) > width(s, 1)));
        assert_eq!(random_schema(&mut ByteDice::new(&[])).fields().len(), 1);
    }

    /// A 16-bit range at a multiple of 16 is compared as a lane, and separately from the
    /// other fields of its word.
    #[test]
    fn lanes_share_their_words_with_everything() {
        let schemas = schemas(2000);
        let is_lane = |&(part, width, kind): &(Part, u32, MatchKind)| {
            kind == MatchKind::Range && width == 16 && part.shift.is_multiple_of(16)
        };
        let beside = |test: &dyn Fn(Part, u32, MatchKind) -> bool| {
            let shares = |word: &Vec<(Part, u32, MatchKind)>| {
                let not_lanes = word.iter().filter(|entry| !is_lane(entry));
                word.iter().any(is_lane)
                    && not_lanes
                        .into_iter()
                        .any(|&(part, width, kind)| test(part, width, kind))
            };
            let count = schemas.iter().filter(|s| words(s).iter().any(shares));
            count.count()
        };
        let range = MatchKind::Range;
        for (min_count, what, count) in [
            (
                100,
                "a wider range",
                beside(&|_, w, k| k == range && (17..=64).contains(&w)),
            ),
            (
                100,
                "the upper part of a range",
                beside(&|_, w, k| k == range && w > 64),
            ),
            (
                50,
                "an upper part of more than 16 bits",
                beside(&|p, w, k| k == range && w > 64 && p.width > 16),
            ),
            (
                100,
                "a ternary field",
                beside(&|_, _, k| k == MatchKind::Ternary),
            ),
            (
                50,
                "an 8-bit range",
                beside(&|_, w, k| k == range && w == 8),
            ),
            (
                50,
                "a 16-bit field of another kind",
                beside(&|_, w, k| k != range && w == 16),
            ),
            (
                20,
                "a range of 48 bits",
                beside(&|_, w, k| k == range && w == 48),
            ),
        ] {
            assert!(count >= min_count, "{what}: only {count} schemas of 2,000");
        }
        // Words with only lanes, and 16-bit ranges that are not lanes.
        let has_lane_word = |s: &Arc<Schema>| {
            words(s)
                .iter()
                .any(|w| w.len() == 4 && w.iter().all(is_lane))
        };
        assert!(schemas.iter().filter(|s| has_lane_word(s)).count() > 50);
        let odd = |&(part, width, kind): &(Part, u32, MatchKind)| {
            kind == range && width == 16 && !part.shift.is_multiple_of(16)
        };
        let odd = |s: &&Arc<Schema>| words(s).iter().flatten().any(odd);
        assert!(schemas.iter().filter(odd).count() > 50);
    }
}
