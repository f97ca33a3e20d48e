use super::super::kernels::compare::Hits;
use super::super::kernels::keys::{Best, Keys};
use super::super::kernels::wide::Candidate;
use super::super::slot::{Bucket, FoundSlot, Run, Slot};
use super::*;
use crate::model::key::KeyVec;
use crate::model::rule::{ActionId, FieldMatch, Priority, Rule};
use crate::model::rule::{RuleId, Winner};
use crate::model::schema::{Field, low_ones};
use crate::model::seed::splitmix;
use crate::parts::simd::Isa;
use crate::parts::simd::vector::{Kernel, Simd};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        splitmix(&mut self.0) % bound
    }

    fn bits(&mut self, width: u32) -> u128 {
        let word = |state: &mut u64| u128::from(splitmix(state));
        (word(&mut self.0) << 64 | word(&mut self.0)) & low_ones(width)
    }

    /// Returns a value close to a border between lanes or words, or any value.
    fn border(&mut self, width: u32) -> u128 {
        let shifts: Vec<u32> = [8, 16, 32, 48, 64, 80, 96, 112]
            .into_iter()
            .filter(|&shift| shift < width)
            .collect();
        if shifts.is_empty() || self.below(4) == 0 {
            return self.bits(width);
        }
        let shift = shifts[usize::try_from(self.below(shifts.len() as u64)).unwrap()];
        let border = self.bits(width - shift) << shift;
        let distance = u128::from(self.below(3));
        let value = match self.below(2) {
            0 => border.wrapping_add(distance),
            _ => border.wrapping_sub(1 + distance),
        };
        value & low_ones(width)
    }

    fn schema(&mut self) -> Arc<Schema> {
        const WIDTHS: [u32; 10] = [16, 16, 16, 32, 8, 48, 24, 80, 96, 128];
        const KINDS: [MatchKind; 6] = [
            MatchKind::Range,
            MatchKind::Range,
            MatchKind::Range,
            MatchKind::Prefix,
            MatchKind::Exact,
            MatchKind::Ternary,
        ];
        let count = 1 + self.below(5);
        let mut pick = |count: usize| usize::try_from(self.below(count as u64)).unwrap();
        let field = |number| {
            let (width, kind) = (WIDTHS[pick(WIDTHS.len())], KINDS[pick(KINDS.len())]);
            Field::new(&format!("f{number}"), width, kind)
        };
        Schema::new("random", (0..count).map(field).collect()).unwrap()
    }

    fn field(&mut self, field: &Field) -> FieldMatch {
        let width = field.width();
        if self.below(6) == 0 {
            return FieldMatch::Any;
        }
        match field.kind() {
            MatchKind::Exact => FieldMatch::Exact(self.bits(width)),
            MatchKind::Prefix | MatchKind::Range if self.below(5) == 0 => FieldMatch::Ternary {
                value: self.bits(width),
                mask: self.bits(width),
            },
            MatchKind::Prefix => FieldMatch::Prefix {
                value: self.bits(width),
                length: u32::try_from(self.below(u64::from(width) + 1)).unwrap(),
            },
            MatchKind::Range => {
                let (a, b) = (self.border(width), self.border(width));
                FieldMatch::Range {
                    low: a.min(b),
                    high: a.max(b),
                }
            }
            MatchKind::Ternary => FieldMatch::Ternary {
                value: self.bits(width),
                mask: self.bits(width),
            },
        }
    }

    /// Returns a value in a rule's field, or one step outside its ends.
    fn value(&mut self, rule: &RuleRef<'_>, id: crate::model::schema::FieldId) -> u128 {
        let field = rule.schema().field(id);
        let (low, high) = rule.ends(id);
        let free = match rule.field(id) {
            FieldMatch::Ternary { mask, .. } => field.max_value() & !mask,
            _ => 0,
        };
        let value = match self.below(6) {
            0 => low,
            1 => high,
            2 => low.saturating_sub(u128::from(self.below(8) == 0)),
            3 => high + u128::from(self.below(8) == 0 && high < field.max_value()),
            _ => {
                let inside = self.border(field.width());
                let spread = high - low;
                match spread.checked_add(1) {
                    Some(count) => low + inside % count,
                    None => inside,
                }
            }
        };
        match free {
            0 => value,
            free => {
                let inside = low | (self.bits(field.width()) & free);
                let bit = self.below(u64::from(field.width()));
                inside ^ u128::from(self.below(8) == 0) << bit
            }
        }
    }
}

/// Compares keys with a run.
struct Compare<'a, const W: usize> {
    shape: &'a RowShape,
    run: &'a [u64],
    keys: Keys<'a, W>,
    hits: Hits<'a>,
}

impl<const W: usize> Kernel for Compare<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Compare {
            shape,
            run,
            keys,
            hits,
        } = self;
        let accept =
            |run: &[u64], len, rule, key: &[u64; W]| shape.odd_ranges_accept(run, len, rule, key);
        let columns = shape.run_columns();
        if let Some((_, columns)) = shape.wide() {
            let room = &mut [Candidate::NONE];
            wide::improve::<S, W, true>(simd, run, columns, keys, hits, room, accept);
        } else if shape.has_odd_ranges() {
            compare::improve::<S, W, true>(simd, run, columns, keys, hits, accept);
        } else {
            let accept = |_: &[u64], _, _, _: &[u64; W]| true;
            compare::improve::<S, W, false>(simd, run, columns, keys, hits, accept);
        }
    }
}

/// True if the kernels find the rule in a run of one rule.
fn found<const W: usize>(shape: &RowShape, isa: Isa, run: &[u64], key: &[u64]) -> bool {
    let key: &[u64; W] = key.try_into().unwrap();
    let run = &[run, &[0; compare::WORDS_AFTER_RUNS]].concat();
    let (mut best, print) = (Best::new(Winner::MISS), shape.print(key));
    let slot = Slot::new(Bucket::Run(Run { start: 0, len: 1 }), 0);
    let hits = Hits {
        hits: &[FoundSlot::new(slot, 0)],
        is_short: true,
        prefetch: false,
    };
    isa.run(Compare {
        shape,
        run,
        keys: best.of_key(key, &print),
        hits,
    });
    !best.winner.is_miss()
}

#[test]
fn rows_are_compared_as_their_rules_match_whatever_shares_a_word() {
    let mut random = Random(17);
    let (mut matches, mut misses) = (0, 0);
    let (mut ranges_for_masks, mut found_for_masks) = (0, 0);
    for round in 0..3000 {
        let schema = random.schema();
        let print = (round % 3 != 0).then(|| Fingerprint::blind(&schema, round));
        let shape = RowShape::new(&schema, print);
        for _ in 0..4 {
            let fields = schema.fields().iter();
            let fields: Vec<FieldMatch> = fields.map(|field| random.field(field)).collect();
            let id = RuleId::from_index(3);
            let rule = Rule::new(&schema, id, Priority(7), ActionId(0), &fields).unwrap();
            let mut row = Vec::new();
            shape.push_row(&rule.view(), &mut row);
            assert_eq!(row.len(), shape.columns());
            let mut packed = Vec::new();
            shape.push_packed(&row, 1, 0, &mut packed);
            let whole = shape.holds_mask(&rule.view());
            assert_eq!(packed == rule.view().words(), whole, "{schema:?}");
            ranges_for_masks += usize::from(!whole);
            let mut keys = KeyVec::new(&schema);
            for _ in 0..8 {
                let ids = schema.field_ids();
                let header: Vec<u128> = ids.map(|id| random.value(&rule.view(), id)).collect();
                keys.push(&header).unwrap();
            }
            for key in keys.as_slice().iter() {
                let expected = rule.view().matches(key);
                *(if expected { &mut matches } else { &mut misses }) += 1;
                for isa in Isa::available() {
                    let has_match = match schema.key_words() {
                        2 => found::<2>(&shape, isa, &row, key),
                        5 => found::<5>(&shape, isa, &row, key),
                        6 => found::<6>(&shape, isa, &row, key),
                        16 => found::<16>(&shape, isa, &row, key),
                        words => unreachable!("{words} words"),
                    };
                    // A row without the rule's mask may match more.
                    let right = has_match == expected || has_match && !whole;
                    assert!(right, "{isa}: {} of {schema:?}", rule.view());
                    found_for_masks += usize::from(has_match != expected);
                }
            }
        }
    }
    assert!(matches > 10_000 && misses > 5000, "{matches}, {misses}");
    let counts = (ranges_for_masks, found_for_masks);
    assert!(counts.0 > 100 && counts.1 > 10, "{counts:?}");
}

#[test]
fn open_bits_of_prefixes_are_the_lowest() {
    for high in 0..=16_u32 {
        let bits = (1_u64 << high) - 1;
        for lane in 0..4 {
            let word = bits << (16 * lane);
            assert!(are_lowest(word), "{word:x}");
            assert!(are_lowest(u64::MAX ^ 0xffff << (16 * lane) | word));
            let hole = word & !(1 << (16 * lane));
            assert_eq!(are_lowest(hole), hole == 0, "{hole:x}");
        }
    }
}
