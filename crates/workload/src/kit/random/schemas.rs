//! Random schemas.

use std::sync::Arc;

use classyard::schema::FieldRole;
use classyard::schema::{MAX_BITS, MAX_FIELD_BITS, MAX_FIELDS};
use classyard::value::ValueFormat;
use classyard::{Field, MatchKind, Schema};

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

/// Widths that divide words of 64 bits, so that fields of 16 bits start at
/// multiples of 16 behind wider fields, or beside narrower ones, or just do not.
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

/// The widths beside those of 16 bits in schemas of many 16-bit fields.
const BESIDE_LANES: [u32; 12] = [8, 24, 32, 32, 48, 48, 64, 9, 17, 20, 28, 40];

/// How likely a field's kind is which.
#[derive(Clone, Copy)]
enum Kinds {
    /// All kinds alike.
    Mixed,
    /// Ranges, three times of four.
    MostlyRanges,
    /// One kind for all fields.
    Only(MatchKind),
}

/// A schema of 1 to 64 fields of 1 to 128 bits and at most 1,024 bits, of all
/// kinds, with roles on whatever fields, in any order.
///
/// Five times of twelve every width and kind is drawn for itself. Otherwise the
/// fields are such that layouts become special: words that 16-bit fields share
/// with wider fields and with the upper parts of fields of more than 64 bits;
/// dozens of 16-bit fields among others; 64 narrow fields; all 1,024 bits.
///
/// # Panics
/// Never: what it makes is a schema.
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

/// Widths that keep within the bounds of a schema: the last is cut where the
/// bits end.
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

/// A width of any size, those at which something changes more often.
fn any_width(dice: &mut dyn Dice) -> u32 {
    match dice.below(2) {
        0 => *dice.pick(&WIDTHS),
        _ => up_to(MAX_FIELD_BITS, dice),
    }
}

/// A number from 1.
fn up_to(most: u32, dice: &mut dyn Dice) -> u32 {
    1 + u32::try_from(dice.below(most as usize)).expect("at most 128")
}

fn any_widths(dice: &mut dyn Dice) -> Vec<u32> {
    let count = match dice.below(3) {
        0 => *dice.pick(&FIELD_COUNTS),
        1 => 1 + dice.below(6),
        _ => 1 + dice.below(MAX_FIELDS),
    };
    // Some schemas have narrow fields only.
    let narrow = dice.one_in(3);
    let mut widths = Widths::default();
    for _ in 0..count {
        let drawn = any_width(dice);
        widths.push(if narrow { 1 + drawn % 8 } else { drawn });
    }
    widths.0
}

/// Words that are divided in special ways; what is wider than 16 bits becomes
/// the upper part of a wider field now and then.
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

/// Half of the fields have 16 bits.
fn many_lanes(dice: &mut dyn Dice) -> Vec<u32> {
    let count = 2 + dice.below(MAX_FIELDS - 1);
    let mut widths = Widths::default();
    for _ in 0..count {
        let other = *dice.pick(&BESIDE_LANES);
        widths.push(if dice.one_in(2) { 16 } else { other });
    }
    widths.0
}

/// Fields of more than 64 bits, with fields of 16 bits to fill the words of
/// their upper parts.
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

/// As many fields as there may be.
fn narrow_fields(dice: &mut dyn Dice) -> Vec<u32> {
    let most = *dice.pick(&[1, 2, 8, 9, 16]);
    let same = dice.one_in(3);
    let width = |dice: &mut dyn Dice| if same { most } else { up_to(most, dice) };
    (0..MAX_FIELDS).map(|_| width(dice)).collect()
}

/// As many bits as there may be.
fn all_bits(dice: &mut dyn Dice) -> Vec<u32> {
    let most = *dice.pick(&[24, 40, 64, MAX_FIELD_BITS]);
    let mut widths = Widths::default();
    while !widths.is_full() {
        // What is left must fit into the other fields.
        let others = MAX_FIELDS - widths.0.len() - 1;
        let others = u32::try_from(others).expect("at most 64") * MAX_FIELD_BITS;
        let least = widths.left().saturating_sub(others);
        widths.push(up_to(most, dice).max(least));
    }
    widths.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::random::{ByteDice, SeededDice};
    use classyard::schema::Part;

    fn schemas(count: usize) -> Vec<Arc<Schema>> {
        let mut dice = SeededDice::new(1);
        (0..count).map(|_| random_schema(&mut dice)).collect()
    }

    /// The parts of fields in each word, with the fields' widths and kinds.
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
        // Narrow fields before wide ones, and the other way round.
        let width = |s: &Schema, index: usize| s.fields()[index].width();
        assert!(any(&|s| s.fields().len() > 1 && width(s, 0) < width(s, 1)));
        assert!(any(&|s| s.fields().len() > 1 && width(s, 0) > width(s, 1)));
        assert_eq!(random_schema(&mut ByteDice::new(&[])).fields().len(), 1);
    }

    /// A range of 16 bits at a multiple of 16 is compared as a lane, and other
    /// fields of its word beside it.
    #[test]
    fn lanes_share_their_words_with_everything() {
        let schemas = schemas(2000);
        let is_lane = |&(part, width, kind): &(Part, u32, MatchKind)| {
            kind == MatchKind::Range && width == 16 && part.shift.is_multiple_of(16)
        };
        let beside = |test: &dyn Fn(Part, u32, MatchKind) -> bool| {
            let shares = |word: &Vec<(Part, u32, MatchKind)>| {
                let others = word.iter().filter(|entry| !is_lane(entry));
                word.iter().any(is_lane)
                    && others
                        .into_iter()
                        .any(|&(part, width, kind)| test(part, width, kind))
            };
            let count = schemas.iter().filter(|s| words(s).iter().any(shares));
            count.count()
        };
        let range = MatchKind::Range;
        for (least, what, count) in [
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
            assert!(count >= least, "{what}: only {count} schemas of 2,000");
        }
        // Words of lanes and nothing else, and ranges of 16 bits that are no lanes.
        let all = |s: &Arc<Schema>| {
            words(s)
                .iter()
                .any(|w| w.len() == 4 && w.iter().all(is_lane))
        };
        assert!(schemas.iter().filter(|s| all(s)).count() > 50);
        let odd = |&(part, width, kind): &(Part, u32, MatchKind)| {
            kind == range && width == 16 && !part.shift.is_multiple_of(16)
        };
        let odd = |s: &&Arc<Schema>| words(s).iter().flatten().any(odd);
        assert!(schemas.iter().filter(odd).count() > 50);
    }
}
