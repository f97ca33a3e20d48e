//! How a rule lies in a run: from the schema's packed words to columns, and
//! back.

use crate::packed::PackedRule;
use crate::rule::RuleRef;
use crate::schema::{Part, Placement, Schema};
use crate::simd::runs::RunColumns;

/// The columns of a rule in a run, in order: the rank, then for each key word
/// its value, its mask and, where the word has range lanes, the lanes' upper
/// ends; last the schema's high words, if some range is no lane.
///
/// A *range lane* is a range field of 16 bits that starts at a multiple of 16,
/// as ports do: four of them are compared by one instruction. Others, *odd*
/// ranges, are checked one by one where all else matches.
#[derive(Clone, Debug)]
pub(super) struct RowShape {
    lanes: u32,
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
        let mut next = 1;
        for word in 0..schema.key_words() {
            values.push(next);
            next += if lanes >> word & 1 != 0 { 3 } else { 2 };
        }
        let high_words = if odd.is_empty() {
            0
        } else {
            schema.high_words()
        };
        RowShape {
            lanes,
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
            count: self.columns,
        }
    }

    /// The column of a key word's value; its mask is in the next one.
    pub(super) fn value(&self, word: usize) -> usize {
        self.values[word]
    }

    /// Appends a rule as a row of columns.
    pub(super) fn push_row(&self, rule: &RuleRef<'_>, rows: &mut Vec<u64>) {
        let start = rows.len();
        rows.push(rule.winner().rank());
        for (word, (&value, &mask)) in rule.value().iter().zip(rule.mask()).enumerate() {
            rows.extend([value, mask]);
            if self.lanes >> word & 1 != 0 {
                rows.push(u64::MAX);
            }
        }
        if !self.odd.is_empty() {
            rows.extend_from_slice(rule.high());
        }
        for range in rule.schema().range_fields() {
            if is_lane(&range.key) {
                let lane = &range.key.low;
                let word = &mut rows[start + self.values[lane.word] + 2];
                *word = (*word & !lane.mask()) | (range.high.low.get(rule.high()) << lane.shift);
            }
        }
    }

    /// A row's words in the schema's packed form: value, mask, high.
    pub(super) fn unpack(&self, schema: &Schema, row: &[u64]) -> Vec<u64> {
        let mut words = Vec::with_capacity(schema.rule_words());
        words.extend(self.values.iter().map(|&column| row[column]));
        words.extend(self.values.iter().map(|&column| row[column + 1]));
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
                let high = high.get(&row[self.values[lane.word] + 2..]);
                range.high.set(&mut words[start..], high.into());
            }
        }
        words
    }

    /// A row as a packed rule; the words come from [`unpack`](Self::unpack).
    pub(super) fn packed<'a>(schema: &'a Schema, words: &'a [u64]) -> PackedRule<'a> {
        PackedRule::new(schema, words)
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
