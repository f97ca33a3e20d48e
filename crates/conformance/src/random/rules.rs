//! Random rules over small pools of values.

use std::sync::Arc;

use classyard::{
    ActionId, Field, FieldId, FieldMatch, MatchKind, Priority, Rule, RuleId, RuleRef, RuleSet,
    Schema,
};

use super::{Dice, borders};

/// A match of a prefix or range field has a value under an arbitrary mask with probability
/// `1 / MASKED_ONE_IN`.
const MASKED_ONE_IN: usize = 6;

/// Makes rules that overlap, nest, touch and repeat each other.
///
/// Four styles are mixed: rules with a random match for each field; rules of a few fixed
/// tuples, so that hash tables fill; a crowd of rules that differ in one field only, so
/// that buckets overflow; and near copies of existing rules.
#[derive(Clone, Debug)]
pub struct RuleMaker {
    schema: Arc<Schema>,
    pools: Vec<Pool>,
    /// The shape of each field, for each tuple.
    tuples: Vec<Vec<Shape>>,
    /// The common match of a crowd, and the only field that differs among its rules.
    crowd: (Vec<FieldMatch>, usize),
    priorities: Vec<u32>,
    /// The probability, in percent, that a field is a wildcard.
    wild: usize,
    /// Percentages of tuple rules, crowd rules and near copies.
    styles: [usize; 3],
}

/// The values, masks and prefix lengths of a field's matches.
#[derive(Clone, Debug)]
struct Pool {
    values: Vec<u128>,
    masks: Vec<u128>,
    lengths: Vec<u32>,
}

/// The shape of a field's matches in a tuple.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Any,
    Mask(u128),
    Length(u32),
    /// A range across a border of bytes, lanes or words.
    Straddle,
}

impl RuleMaker {
    /// Returns a maker with new random pools.
    #[must_use]
    pub fn new(schema: &Arc<Schema>, dice: &mut dyn Dice) -> RuleMaker {
        let pools: Vec<Pool> = schema.fields().iter().map(|f| pool(f, dice)).collect();
        let wild = *dice.pick(&[10, 30, 50, 80, 95]);
        let tuples = (0..1 + dice.below(4))
            .map(|_| {
                let fields = schema.fields().iter().zip(&pools);
                let mut shapes: Vec<Shape> =
                    fields.map(|(f, pool)| shape(f, pool, wild, dice)).collect();
                // A tuple of only wildcards would hide all other tuples.
                let narrow = dice.below(pools.len());
                if shapes.iter().all(|shape| matches!(shape, Shape::Any)) {
                    shapes[narrow] = shape(&schema.fields()[narrow], &pools[narrow], 0, dice);
                }
                shapes
            })
            .collect();
        let mut priorities = vec![0, 1, 2, u32::MAX - 1, u32::MAX];
        priorities.extend((0..3).map(|_| low_word(dice)));
        let styles = *dice.pick(&[
            [20, 20, 20],
            [60, 10, 10],
            [10, 70, 10],
            [0, 0, 0],
            [5, 5, 80],
        ]);
        let mut maker = RuleMaker {
            schema: Arc::clone(schema),
            pools,
            tuples,
            crowd: (Vec::new(), dice.below(schema.fields().len())),
            priorities,
            wild,
            styles,
        };
        maker.crowd.0 = maker.fresh(dice);
        maker
    }

    /// Returns a maker whose pools also hold values, lengths and masks of up to 8 of these
    /// rules, so that its rules overlap them.
    #[must_use]
    pub fn like(rules: &RuleSet, dice: &mut dyn Dice) -> RuleMaker {
        let mut maker = RuleMaker::new(rules.schema(), dice);
        for _ in 0..rules.len().min(8) {
            let rule = rules.rule(dice.below(rules.len()));
            for (id, pool) in rules.schema().field_ids().zip(&mut maker.pools) {
                let (low, high) = rule.ends(id);
                pool.values.extend([low, high]);
                match rule.field(id) {
                    FieldMatch::Prefix { length, .. } => pool.lengths.push(length),
                    FieldMatch::Ternary { mask, .. } => pool.masks.push(mask),
                    _ => {}
                }
            }
        }
        maker
    }

    /// The schema of the rules.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns up to `count` rules with various ids. Ids are unique, so there are fewer
    /// rules if the dice repeat an id.
    ///
    /// # Panics
    /// Never: the rules have the schema, and their ids are unused.
    #[must_use]
    pub fn rule_set(&self, count: usize, dice: &mut dyn Dice) -> RuleSet {
        let mut rules = RuleSet::new(&self.schema);
        let sequential = dice.one_in(3);
        for index in 0..count {
            let id = if sequential {
                RuleId::from_index(index)
            } else {
                self.id(dice)
            };
            if rules.position(id).is_none() {
                let like = (!rules.is_empty()).then(|| rules.rule(dice.below(rules.len())));
                let rule = self.rule(id, like, dice);
                rules.push(rule.view()).expect("a rule with a fresh id");
            }
        }
        rules
    }

    /// Returns an id: usually below 1,000, sometimes any id, rarely near the largest id.
    #[must_use]
    pub fn id(&self, dice: &mut dyn Dice) -> RuleId {
        let number = match dice.below(20) {
            0 => RuleId::MAX.get() - u32::try_from(dice.below(4)).expect("below 4"),
            1..=4 => low_word(dice).min(RuleId::MAX.get()),
            _ => u32::try_from(dice.below(1000)).expect("below 1000"),
        };
        RuleId::new(number).expect("not above the largest")
    }

    /// Returns a rule with that id. It may be a near copy of the rule `like`.
    ///
    /// # Panics
    /// Never: the matches are drawn for the schema.
    #[must_use]
    pub fn rule(&self, id: RuleId, like: Option<RuleRef<'_>>, dice: &mut dyn Dice) -> Rule {
        let [tuple, crowd, copy] = self.styles;
        let style = dice.below(100);
        let mut matches = match like {
            _ if style < tuple => self.of_tuple(dice),
            _ if style < tuple + crowd => {
                let (mut matches, field) = self.crowd.clone();
                matches[field] = self.wide_open(field, dice);
                matches
            }
            Some(like) if style < tuple + crowd + copy => self.near_copy(like, dice),
            _ => self.fresh(dice),
        };
        let open = self.narrow(&mut matches, dice);
        let priority = match dice.below(10) {
            1..=9 if open => u32::try_from(dice.below(3)).expect("below 3"),
            0..=5 => *dice.pick(&self.priorities),
            6..=8 => u32::try_from(dice.below(64)).expect("below 64"),
            _ => low_word(dice),
        };
        let action = ActionId(low_word(dice));
        Rule::new(&self.schema, id, Priority(priority), action, &matches)
            .expect("matches are drawn for their fields")
    }

    /// Returns a rule with the matches of `original`, and with another priority and id.
    ///
    /// # Panics
    /// Never: the matches are valid in `original`.
    #[must_use]
    pub fn duplicate(&self, id: RuleId, original: RuleRef<'_>, dice: &mut dyn Dice) -> Rule {
        let priority = Priority(*dice.pick(&self.priorities));
        let action = ActionId(low_word(dice));
        Rule::new(&self.schema, id, priority, action, &original.fields())
            .expect("matches of a rule")
    }

    /// Returns a rule of the maker's tuple number `tuple`.
    ///
    /// # Panics
    /// If `tuple` is not below the number of tuples.
    #[must_use]
    pub fn rule_of_tuple(&self, tuple: usize, id: RuleId, dice: &mut dyn Dice) -> Rule {
        let matches = self.in_tuple(&self.tuples[tuple], dice);
        let priority = Priority(*dice.pick(&self.priorities));
        Rule::new(&self.schema, id, priority, ActionId(0), &matches)
            .expect("matches are drawn for their fields")
    }

    /// The number of tuples for [`rule_of_tuple`](Self::rule_of_tuple).
    #[must_use]
    pub fn tuples(&self) -> usize {
        self.tuples.len()
    }

    fn fresh(&self, dice: &mut dyn Dice) -> Vec<FieldMatch> {
        self.schema
            .field_ids()
            .map(|id| self.field_match(id, dice))
            .collect()
    }

    fn of_tuple(&self, dice: &mut dyn Dice) -> Vec<FieldMatch> {
        let tuple = dice.below(self.tuples.len());
        self.in_tuple(&self.tuples[tuple], dice)
    }

    fn in_tuple(&self, tuple: &[Shape], dice: &mut dyn Dice) -> Vec<FieldMatch> {
        let fields = self.schema.fields().iter().zip(&self.pools).zip(tuple);
        fields
            .map(|((field, pool), shape)| {
                let value = if dice.one_in(2) {
                    *dice.pick(&pool.values)
                } else {
                    dice.bits(field.width())
                };
                match *shape {
                    Shape::Any => FieldMatch::Any,
                    Shape::Mask(mask) => FieldMatch::Ternary { value, mask },
                    Shape::Length(length) => FieldMatch::Prefix { value, length },
                    Shape::Straddle => straddle(field, value, dice),
                }
            })
            .collect()
    }

    /// Narrows most matches that match everything, because such rules hide all others.
    /// Returns true if the result still matches everything.
    fn narrow(&self, matches: &mut [FieldMatch], dice: &mut dyn Dice) -> bool {
        if is_open(matches) && !dice.one_in(30) {
            let index = dice.below(matches.len());
            matches[index] = self.demand(index, dice);
        }
        is_open(matches)
    }

    fn near_copy(&self, like: RuleRef<'_>, dice: &mut dyn Dice) -> Vec<FieldMatch> {
        let mut matches = like.fields();
        if dice.one_in(3) {
            return matches;
        }
        let ids: Vec<FieldId> = self.schema.field_ids().collect();
        let id = *dice.pick(&ids);
        matches[id.index()] = match dice.below(3) {
            0 => FieldMatch::Any,
            1 => self.field_match(id, dice),
            _ => nudged(self.schema.field(id), matches[id.index()], dice),
        };
        matches
    }

    fn field_match(&self, id: FieldId, dice: &mut dyn Dice) -> FieldMatch {
        if dice.percent(self.wild) {
            FieldMatch::Any
        } else {
            self.demand(id.index(), dice)
        }
    }

    /// Returns a match with values of the pool. It is a wildcard only if the pool has a mask
    /// or prefix length of 0.
    fn demand(&self, index: usize, dice: &mut dyn Dice) -> FieldMatch {
        let field = &self.schema.fields()[index];
        let pool = &self.pools[index];
        let value = *dice.pick(&pool.values);
        match field.kind() {
            MatchKind::Exact => FieldMatch::Exact(value),
            MatchKind::Prefix | MatchKind::Range if dice.one_in(MASKED_ONE_IN) => {
                FieldMatch::Ternary {
                    value,
                    mask: *dice.pick(&pool.masks),
                }
            }
            MatchKind::Prefix => FieldMatch::Prefix {
                value,
                length: *dice.pick(&pool.lengths),
            },
            MatchKind::Ternary => FieldMatch::Ternary {
                value,
                mask: *dice.pick(&pool.masks),
            },
            MatchKind::Range => range(field, pool, value, dice),
        }
    }

    /// Returns a match with random values of the whole field.
    fn wide_open(&self, index: usize, dice: &mut dyn Dice) -> FieldMatch {
        let field = &self.schema.fields()[index];
        let pool = &self.pools[index];
        let value = dice.bits(field.width());
        match field.kind() {
            MatchKind::Exact => FieldMatch::Exact(value),
            MatchKind::Prefix | MatchKind::Range if dice.one_in(MASKED_ONE_IN) => {
                FieldMatch::Ternary {
                    value,
                    mask: dice.bits(field.width()),
                }
            }
            MatchKind::Prefix => FieldMatch::Prefix {
                value,
                length: *dice.pick(&pool.lengths),
            },
            MatchKind::Ternary => FieldMatch::Ternary {
                value,
                mask: dice.bits(field.width()),
            },
            MatchKind::Range if dice.one_in(2) => straddle(field, value, dice),
            MatchKind::Range => FieldMatch::Range {
                low: value,
                high: dice.between(value, field.max_value()),
            },
        }
    }
}

/// Returns a range with values on both sides of a border, perhaps the next border below
/// `near`.
fn straddle(field: &Field, near: u128, dice: &mut dyn Dice) -> FieldMatch {
    let border = borders::border(field.width(), near, dice);
    let (low, high) = borders::straddling(border, field.width(), dice);
    FieldMatch::Range { low, high }
}

/// True if every header matches. Ranges are not considered.
fn is_open(matches: &[FieldMatch]) -> bool {
    matches.iter().all(|&wanted| {
        matches!(
            wanted,
            FieldMatch::Any
                | FieldMatch::Prefix { length: 0, .. }
                | FieldMatch::Ternary { mask: 0, .. }
        )
    })
}

fn low_word(dice: &mut dyn Dice) -> u32 {
    u32::try_from(dice.word() & u64::from(u32::MAX)).expect("masked to 32 bits")
}

fn pool(field: &Field, dice: &mut dyn Dice) -> Pool {
    let (width, full) = (field.width(), field.max_value());
    let half = 1u128 << (width - 1);
    let edges = [0, full, half, half - 1, 1 & full, full - (1 & full)];
    let mut values = Vec::new();
    for _ in 0..1 + dice.below(4) {
        let value = match dice.below(3) {
            0 => *dice.pick(&edges),
            _ => dice.bits(width),
        };
        let low = low_bits(width, dice);
        // The value with its neighbours, and both ends of its prefix.
        values.extend([value, value ^ 1, value & !low, value | low]);
        values.push(value.saturating_add(1).min(full));
        values.push(value.saturating_sub(1));
    }
    if field.kind() == MatchKind::Range {
        let border = borders::border(width, 0, dice);
        values.extend([border, border - 1]);
    }
    let alternating = 0xaaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa_u128 & full;
    let bit = 1u128 << dice.below(width as usize);
    let low = low_bits(width, dice);
    let masks = vec![
        full,
        0,
        alternating,
        full & !alternating,
        bit,
        full & !bit,
        low,
        full & !low,
        dice.bits(width),
        dice.bits(width) & dice.bits(width) & dice.bits(width),
    ];
    let mut lengths = vec![
        0,
        width,
        width - 1,
        1,
        width / 2,
        width / 4,
        width - width / 4,
    ];
    lengths.push(u32::try_from(dice.below(width as usize + 1)).expect("at most 128"));
    // Fewer masks and lengths give fewer tables, with more rules in each table.
    let masks = some_of(masks, dice);
    let lengths = some_of(lengths, dice);
    Pool {
        values,
        masks,
        lengths,
    }
}

/// Returns a mask of some low bits: fewer than `width`.
fn low_bits(width: u32, dice: &mut dyn Dice) -> u128 {
    (1u128 << dice.below(width as usize)) - 1
}

fn some_of<T>(mut things: Vec<T>, dice: &mut dyn Dice) -> Vec<T> {
    let keep = 1 + dice.below(things.len());
    dice.shuffle(&mut things);
    things.truncate(keep);
    things
}

fn shape(field: &Field, pool: &Pool, wild: usize, dice: &mut dyn Dice) -> Shape {
    if dice.percent(wild) {
        return Shape::Any;
    }
    match field.kind() {
        MatchKind::Exact => Shape::Length(field.width()),
        MatchKind::Prefix | MatchKind::Range if dice.one_in(MASKED_ONE_IN) => {
            Shape::Mask(*dice.pick(&pool.masks))
        }
        MatchKind::Range if dice.one_in(3) => Shape::Straddle,
        MatchKind::Prefix | MatchKind::Range => Shape::Length(*dice.pick(&pool.lengths)),
        MatchKind::Ternary => Shape::Mask(*dice.pick(&pool.masks)),
    }
}

fn range(field: &Field, pool: &Pool, value: u128, dice: &mut dyn Dice) -> FieldMatch {
    let full = field.max_value();
    let width = field.width();
    let (low, high) = match dice.below(14) {
        0 => (value, value),
        1 => (value, full),
        2 => (0, value),
        3 => (0, full),
        4 => (value, value.saturating_add(1).min(full)),
        5 => {
            // Just across the border of two prefixes.
            let border = 1u128 << dice.below(field.width() as usize);
            (border - 1, border)
        }
        6 => {
            let low = low_bits(field.width(), dice);
            (value & !low, value | low)
        }
        7 => (value, dice.between(value, full)),
        8..=10 => return straddle(field, value, dice),
        11 => borders::nearly_prefix(value, width, dice),
        12 => {
            let high = dice.between(value, full);
            borders::round_ends(value, high, width, dice)
        }
        _ => {
            let second_value = *dice.pick(&pool.values);
            (value.min(second_value), value.max(second_value))
        }
    };
    FieldMatch::Range { low, high }
}

/// Returns a slightly changed match.
fn nudged(field: &Field, wanted: FieldMatch, dice: &mut dyn Dice) -> FieldMatch {
    let full = field.max_value();
    let bit = 1u128 << dice.below(field.width() as usize);
    match wanted {
        FieldMatch::Any => FieldMatch::Any,
        FieldMatch::Exact(value) => FieldMatch::Exact(value ^ bit),
        FieldMatch::Prefix { value, length } => FieldMatch::Prefix {
            value,
            length: if dice.one_in(2) {
                (length + 1).min(field.width())
            } else {
                length.saturating_sub(1)
            },
        },
        FieldMatch::Range { low, high } => match dice.below(6) {
            0 => FieldMatch::Range {
                low: low.saturating_sub(1),
                high,
            },
            1 => FieldMatch::Range {
                low,
                high: high.saturating_add(1).min(full),
            },
            2 => FieldMatch::Range { low: high, high },
            3 => FieldMatch::Range {
                low,
                high: high.saturating_add(bit).min(full),
            },
            4 => FieldMatch::Range {
                low: low.saturating_sub(bit),
                high,
            },
            // The range that begins after the end of this range.
            _ => FieldMatch::Range {
                low: high.saturating_add(1).min(full),
                high: full,
            },
        },
        FieldMatch::Ternary { value, mask } => FieldMatch::Ternary {
            value,
            mask: mask ^ bit,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{ByteDice, SeededDice, random_schema};

    #[test]
    fn rules_overlap_nest_and_repeat() {
        let mut dice = SeededDice::new(3);
        let (mut overlaps, mut covers, mut duplicates, mut ties) = (0, 0, 0, 0);
        for _ in 0..20 {
            let maker = RuleMaker::new(&Schema::ipv4_5tuple(), &mut dice);
            let rules = maker.rule_set(60, &mut dice);
            for (at, a) in rules.iter().enumerate() {
                for b in rules.iter().take(at) {
                    overlaps += usize::from(a.overlaps(&b));
                    covers += usize::from(a.covers(&b) != b.covers(&a));
                    duplicates += usize::from(a.words() == b.words());
                    ties += usize::from(a.priority() == b.priority());
                }
            }
        }
        assert!(overlaps > 1000 && covers > 1000, "{overlaps} {covers}");
        assert!(duplicates > 100 && ties > 1000, "{duplicates} {ties}");
    }

    /// Ranges of every width cross every border of a byte, a lane or a word, both narrow
    /// and wide ranges. Headers are looked up on both sides of the border.
    #[test]
    fn ranges_cross_every_border() {
        use crate::random::draw_member;
        use std::collections::HashSet;
        let mut dice = SeededDice::new(41);
        for width in [9, 16, 17, 24, 32, 33, 48, 49, 64, 65, 80, 96, 112, 128] {
            let schema = Schema::new("r", vec![Field::new("r", width, MatchKind::Range)]);
            let schema = schema.unwrap();
            let mut seen = HashSet::new();
            for _ in 0..300 {
                let rules = RuleMaker::new(&schema, &mut dice).rule_set(30, &mut dice);
                for rule in rules.iter() {
                    let id = schema.field_ids().next().unwrap();
                    let (low, high) = rule.ends(id);
                    for bit in (8..width).step_by(8) {
                        let border = high >> bit << bit;
                        if border <= low || high - low >= (field_values(width) >> 1) {
                            continue;
                        }
                        let close = border - low <= 16 && high - border < 16;
                        let multiple = border > 1 << bit;
                        seen.insert((bit, "crossed", close));
                        if multiple {
                            seen.insert((bit, "a multiple crossed", close));
                        }
                        let header = draw_member(&schema, rule, &mut dice)[0];
                        if header == border {
                            seen.insert((bit, "looked up at it", close));
                        } else if header == border - 1 {
                            seen.insert((bit, "looked up below it", close));
                        }
                    }
                    let lows = [low & 0xffff, high & 0xffff];
                    for (end, name) in lows.iter().zip(["low", "high"]) {
                        match end {
                            0 => seen.insert((16, name, false)),
                            0xffff => seen.insert((16, name, true)),
                            _ => false,
                        };
                    }
                }
            }
            for close in [true, false] {
                for bit in (8..width).step_by(8) {
                    for what in ["crossed", "looked up at it", "looked up below it"] {
                        let key = (bit, what, close);
                        assert!(seen.contains(&key), "{width} bits: {key:?}");
                    }
                    if bit + 1 < width {
                        let key = (bit, "a multiple crossed", close);
                        assert!(seen.contains(&key), "{width} bits: {key:?}");
                    }
                }
                if width > 16 {
                    assert!(seen.contains(&(16, "low", close)), "{width} {close}");
                    assert!(seen.contains(&(16, "high", close)), "{width} {close}");
                }
            }
        }
    }

    /// Prefix and range fields have masks that are not prefix masks, and rules with such
    /// masks overlap rules with ranges.
    #[test]
    fn masks_stand_on_every_kind_of_field() {
        let mut dice = SeededDice::new(7);
        for kind in [MatchKind::Prefix, MatchKind::Range, MatchKind::Ternary] {
            let schema = Schema::new("m", vec![Field::new("m", 16, kind)]).unwrap();
            let id = schema.field_ids().next().unwrap();
            let (mut masked, mut meetings) = (0, 0);
            for _ in 0..40 {
                let rules = RuleMaker::new(&schema, &mut dice).rule_set(30, &mut dice);
                let has_mask =
                    |rule: &RuleRef<'_>| matches!(rule.field(id), FieldMatch::Ternary { .. });
                for rule in rules.iter().filter(has_mask) {
                    masked += 1;
                    let unmasked = rules.iter().filter(|rule| !has_mask(rule));
                    meetings += unmasked.filter(|r| rule.overlaps(r)).count();
                }
            }
            assert!(masked > 50 && meetings > 200, "{kind}: {masked} {meetings}");
        }
    }

    /// Returns the number of values of a field, minus 1.
    fn field_values(width: u32) -> u128 {
        u128::MAX >> (128 - width)
    }

    #[test]
    fn any_schema_and_any_bytes_make_rules() {
        let mut dice = SeededDice::new(5);
        for _ in 0..200 {
            let schema = random_schema(&mut dice);
            let maker = RuleMaker::new(&schema, &mut dice);
            assert!(!maker.rule_set(30, &mut dice).is_empty());
            let maker = RuleMaker::new(&schema, &mut ByteDice::new(&[1, 2, 3]));
            assert!(!maker.rule_set(3, &mut ByteDice::new(&[])).is_empty());
        }
    }
}
