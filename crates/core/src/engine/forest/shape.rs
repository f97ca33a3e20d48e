//! How a rule lies in a run: from the schema's packed words to columns, and
//! back.

use crate::packed::PackedRule;
use crate::rule::RuleRef;
use crate::schema::{MatchKind, Part, Placement, Schema};
use crate::simd::runs::RunColumns;

/// The columns of a rule in a run, in order: the rank, then for each key word
/// its value, its mask and, where the word has range lanes, the lanes' upper
/// ends; last the schema's high words, if some range is no lane.
///
/// A word in which every field could be a range lane, because it is exact or a
/// prefix, needs no mask: it is *bounds*, lower and upper ends. The ports and the
/// protocol of five-tuples are such a word.
///
/// A *range lane* is a range field of 16 bits that starts at a multiple of 16,
/// as ports do: four of them are compared by one instruction. Others, *odd*
/// ranges, are checked one by one where all else matches.
#[derive(Clone, Debug)]
pub(super) struct RowShape {
    lanes: u32,
    /// For each key word: the bits of its fields, if the word is bounds.
    bounds: Vec<Option<u64>>,
    columns: usize,
    odd: Vec<OddRange>,
    /// For each key word: the column of its value.
    values: Vec<usize>,
    /// The column of the first high word, if there are odd ranges.
    highs: usize,
}

/// A range that is no lane.
#[derive(Clone, Copy, Debug)]
struct OddRange {
    key: Placement,
    high: Placement,
}

fn is_lane(key: &Placement) -> bool {
    key.high.is_none() && key.low.width == 16 && key.low.shift.is_multiple_of(16)
}

/// The bits of a word's fields, if each of them has a lane of its own and is
/// compared as a range would be.
fn bounds_of(schema: &Schema, word: usize) -> Option<u64> {
    let mut bits = 0;
    for id in schema.field_ids() {
        let placement = schema.placement(id);
        let parts = [Some(placement.low), placement.high];
        if parts.iter().flatten().any(|part| part.word == word) {
            let part = placement.low;
            let fits = placement.high.is_none()
                && part.width <= 16
                && part.shift.is_multiple_of(16)
                && schema.field(id).kind() != MatchKind::Ternary;
            if !fits {
                return None;
            }
            bits |= part.mask();
        }
    }
    Some(bits)
}

/// In each lane of 16 bits: all bits from the highest one downwards.
fn below_highest_ones(word: u64) -> u64 {
    let shifted = |word: u64, by: u32| (word >> by) & (0x0001_0001_0001_0001 * (0xffff >> by));
    let word = word | shifted(word, 1);
    let word = word | shifted(word, 2);
    let word = word | shifted(word, 4);
    word | shifted(word, 8)
}

/// Whether ranges in lanes of 16 bits meet, in every lane.
fn lanes_meet(a_low: u64, a_high: u64, b_low: u64, b_high: u64) -> bool {
    let lane = |word: u64, lane: u32| (word >> (16 * lane)) & 0xffff;
    (0..4).all(|n| lane(a_low, n) <= lane(b_high, n) && lane(b_low, n) <= lane(a_high, n))
}

impl RowShape {
    pub(super) fn new(schema: &Schema) -> RowShape {
        let ranges = schema.range_fields();
        let lanes = ranges
            .iter()
            .filter(|range| is_lane(&range.key))
            .fold(0, |lanes, range| lanes | 1 << range.key.low.word);
        let odd: Vec<OddRange> = ranges
            .iter()
            .filter(|range| !is_lane(&range.key))
            .map(|range| OddRange {
                key: range.key,
                high: range.high,
            })
            .collect();
        let mut values = Vec::with_capacity(schema.key_words());
        let mut bounds = Vec::with_capacity(schema.key_words());
        let mut next = 1;
        for word in 0..schema.key_words() {
            values.push(next);
            let has_lanes = lanes >> word & 1 != 0;
            bounds.push(has_lanes.then(|| bounds_of(schema, word)).flatten());
            next += match (has_lanes, bounds[word]) {
                (true, None) => 3,
                (true, Some(_)) | (false, _) => 2,
            };
        }
        let high_words = if odd.is_empty() {
            0
        } else {
            schema.high_words()
        };
        RowShape {
            lanes,
            bounds,
            columns: next + high_words,
            odd,
            values,
            highs: next,
        }
    }

    /// Words of a rule.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn run_columns(&self) -> RunColumns {
        RunColumns {
            lanes: self.lanes,
            bounds: (self.bounds.iter().enumerate())
                .filter(|(_, bounds)| bounds.is_some())
                .fold(0, |words, (word, _)| words | 1 << word),
            count: self.columns,
        }
    }

    /// A key word's value in a row.
    #[inline]
    pub(super) fn value(&self, row: &[u64], word: usize) -> u64 {
        row[self.values[word]]
    }

    /// The bits of a key word that are exact in a row. Of a range, these are the
    /// leading bits that its values share.
    #[inline]
    pub(super) fn mask(&self, row: &[u64], word: usize) -> u64 {
        let column = self.values[word];
        match self.bounds[word] {
            None => row[column + 1],
            Some(fields) => fields & !below_highest_ones(row[column] ^ row[column + 1]),
        }
    }

    /// The column of the upper ends of a key word's lanes.
    fn high(&self, word: usize) -> usize {
        self.values[word] + if self.bounds[word].is_some() { 1 } else { 2 }
    }

    /// Appends a rule as a row of columns.
    pub(super) fn push_row(&self, rule: &RuleRef<'_>, rows: &mut Vec<u64>) {
        let start = rows.len();
        rows.push(rule.winner().rank());
        for (word, (&value, &mask)) in rule.value().iter().zip(rule.mask()).enumerate() {
            rows.push(value);
            match self.bounds[word] {
                Some(fields) => rows.push((value | !mask) & fields),
                None => rows.push(mask),
            }
            if self.lanes >> word & 1 != 0 && self.bounds[word].is_none() {
                rows.push(u64::MAX);
            }
        }
        if !self.odd.is_empty() {
            rows.extend_from_slice(rule.high());
        }
        for range in rule.schema().range_fields() {
            if is_lane(&range.key) {
                let lane = &range.key.low;
                let word = &mut rows[start + self.high(lane.word)];
                *word = (*word & !lane.mask()) | (range.high.low.get(rule.high()) << lane.shift);
            }
        }
    }

    /// A row's words in the schema's packed form: value, mask, high.
    pub(super) fn unpack(&self, schema: &Schema, row: &[u64]) -> Vec<u64> {
        let mut words = Vec::with_capacity(schema.rule_words());
        words.extend((0..schema.key_words()).map(|word| self.value(row, word)));
        words.extend((0..schema.key_words()).map(|word| self.mask(row, word)));
        let start = words.len();
        if self.odd.is_empty() {
            words.resize(start + schema.high_words(), 0);
        } else {
            words.extend_from_slice(&row[self.highs..]);
        }
        for range in schema.range_fields() {
            if is_lane(&range.key) {
                let lane = &range.key.low;
                let high = Part { word: 0, ..*lane };
                let high = high.get(&row[self.high(lane.word)..]);
                range.high.set(&mut words[start..], high.into());
            }
        }
        words
    }

    /// A row as a packed rule; the words come from [`unpack`](Self::unpack).
    pub(super) fn packed<'a>(schema: &'a Schema, words: &'a [u64]) -> PackedRule<'a> {
        PackedRule::new(schema, words)
    }

    /// Whether some header may match both a rule of a run and a rule given as a
    /// row. Of odd ranges only the exact bits are looked at.
    pub(super) fn may_overlap(&self, run: &[u64], len: usize, rule: usize, row: &[u64]) -> bool {
        let at = |column: usize| (run[column * len + rule], row[column]);
        (0..self.values.len()).all(|word| {
            let (a, b) = at(self.values[word]);
            let alike = self.bounds[word].is_some() || {
                let (a_mask, b_mask) = at(self.values[word] + 1);
                (a ^ b) & a_mask & b_mask == 0
            };
            alike
                && (self.lanes >> word & 1 == 0 || {
                    let (a_high, b_high) = at(self.high(word));
                    lanes_meet(a, a_high, b, b_high)
                })
        })
    }

    /// Whether some ranges are left to [`odd_ranges_accept`].
    ///
    /// [`odd_ranges_accept`]: Self::odd_ranges_accept
    pub(super) fn has_odd_ranges(&self) -> bool {
        !self.odd.is_empty()
    }

    /// Whether the odd ranges of a rule in a run contain the key's values.
    pub(super) fn odd_ranges_accept(
        &self,
        run: &[u64],
        len: usize,
        rule: usize,
        key: &[u64],
    ) -> bool {
        let word = |column: usize| run[column * len + rule];
        let part = |part: &Part, word: u64| (word >> part.shift) & (u64::MAX >> (64 - part.width));
        let both = |placement: &Placement, column: &dyn Fn(usize) -> usize| {
            let low = part(&placement.low, word(column(placement.low.word)));
            let high = placement.high.as_ref();
            let high = high.map_or(0, |high| part(high, word(column(high.word))));
            u128::from(low) | u128::from(high) << 64
        };
        self.odd.iter().all(|range| {
            let found = range.key.get(key);
            let low = both(&range.key, &|word| self.values[word]);
            let high = both(&range.high, &|word| self.highs + word);
            low <= found && found <= high
        })
    }
}
