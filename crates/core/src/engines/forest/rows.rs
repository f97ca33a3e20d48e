//! Rows: a rule as the columns of a run, from the schema's packed words and back.
//!
//! ```text
//! packed (schema)   value × W │ mask × W │ high × H
//! row, IPv4         rank │ value₀ │ mask₀ │ low₁ │ high₁          5 words
//! run of n rules    rank × n │ value₀ × n │ mask₀ × n │ low₁ × n │ high₁ × n
//! ```
//! A row is a run of one rule. Key words without fields have no columns.
//! [`RowShape`] has the columns for the rules of a schema; the kernels that compare
//! columns receive [`RunColumns`].
//!
//! Keys of [`WIDE_KEY_WORDS`] words and more can have *wide* runs. These begin with
//! three columns, including a [fingerprint](super::kernels::fingerprint), and store
//! the rest of each rule in one piece:
//! ```text
//! row, wide         rank │ print │ care │ value × W │ mask × W │ high × lanes │ odd
//! run of n rules    rank × n │ print × n │ care × n │ rest of a row │ rest │ …
//! ```

use std::sync::Arc;

use super::kernels::compare::{self, RunColumns};
use super::kernels::fingerprint::Fingerprint;
use super::kernels::wide::{self, HEAD_COLUMNS, WIDE_KEY_WORDS, WideColumns};
use super::outline::Outline;
use crate::model::packed::PackedRule;
use crate::model::rule::RuleRef;
use crate::model::ruleset::RuleSet;
use crate::model::schema::{MAX_KEY_WORDS, MatchKind, Part, Placement, RangeField, Schema, pack};

/// The layout of the words of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunLayout {
    /// Words for each rule.
    pub(super) columns: usize,
    /// The number of head columns, stored column by column. The other columns
    /// follow, rule by rule.
    pub(super) heads: usize,
}

impl RunLayout {
    /// The position of a rule's word in a run of `len` rules.
    #[inline(always)]
    pub(super) fn at(self, column: usize, rule: usize, len: usize) -> usize {
        if column < self.heads {
            column * len + rule
        } else {
            let body_columns = self.columns - self.heads;
            self.heads * len + rule * body_columns + column - self.heads
        }
    }
}

/// The columns of a rule in a run, in order: the rank; then for each key word its
/// value, its mask and, if the word has range lanes, the lanes' upper ends; last the
/// lower and the upper ends of odd ranges.
///
/// A *range lane* is a range field of 16 bits that starts at a multiple of 16, as
/// ports do: one instruction compares four of them. Other ranges are *odd*: they are
/// checked one by one if everything else matches.
///
/// A word with range lanes may hold other fields as well, and the comparison of
/// lanes covers their bits too. So the value column has the lower end of a range
/// only in lanes. Of every other field it has the bits under the rule's mask and
/// zeros elsewhere, and in each lane a matching key is at least that value. The
/// lower end of an odd range may be above a matching key in a lane (10.0.255.255 to
/// 10.1.0.1 contains 10.1.0.0), so it has a column of its own.
///
/// A word needs no mask if every field in it has a lane of its own and is not
/// ternary. Such a word is *bounds*: lower and upper ends. The ports and the
/// protocol of five-tuples are such a word. A rule may have a non-contiguous mask on
/// a prefix or a range there. Then its row has the range from the smallest value to
/// the largest, and the structure keeps the mask separately.
#[derive(Clone, Debug)]
pub(super) struct RowShape {
    schema: Arc<Schema>,
    layout: RunLayout,
    run_columns: RunColumns,
    /// Present if runs are wide.
    fingerprint: Option<Fingerprint>,
    words: Vec<WordColumns>,
    lanes: Vec<Lanes>,
    odd: Vec<OddRange>,
    /// The first column of the odd ranges' lower ends, and of their upper ends.
    lows: usize,
    highs: usize,
    /// A row whose columns of upper ends have all bits, where no range is written.
    open: Vec<u64>,
}

/// The columns of a key word.
#[derive(Clone, Copy, Debug)]
struct WordColumns {
    /// The column of the word's value.
    value: usize,
    /// The column of the word's mask; of its upper ends, if the word is bounds.
    mask_or_high: usize,
    /// The column of the lanes' upper ends, if the word has range lanes.
    high: Option<usize>,
    /// The bits of the word's fields, if it is bounds.
    bounds: Option<u64>,
}

impl WordColumns {
    /// Returns the exact bits of a key word, from its columns `value` and `mask_or_high`.
    /// The exact bits of a range are the leading bits that its values share.
    #[inline]
    fn exact_bits(&self, value: u64, next: u64) -> u64 {
        match self.bounds {
            None => next,
            Some(fields) => fields & !below_highest_ones(value ^ next),
        }
    }
}

/// Range lanes of a word whose upper ends are in one word of packed rules, all at the
/// same distance from their lanes.
#[derive(Clone, Copy, Debug)]
struct Lanes {
    /// The word in keys, and the lanes' bits there.
    word: usize,
    bits: u64,
    /// The word of the upper ends in packed rules. Rotated to the left by `turn`, its
    /// bits are in their lanes.
    end_word: usize,
    turn: u32,
    /// The columns of the lower and of the upper ends.
    low: usize,
    high: usize,
}

/// A range that does not fit a lane.
#[derive(Clone, Copy, Debug)]
struct OddRange {
    /// The field in a key.
    key: Placement,
    /// The upper end in a packed rule.
    high: Placement,
    /// Either end of the range, in the columns of odd ranges.
    end: Placement,
}

fn is_lane(key: &Placement) -> bool {
    key.high.is_none() && key.low.width == 16 && key.low.shift.is_multiple_of(16)
}

/// Returns the bits of the word's fields, if each field has a lane of its own and
/// can be compared as a range.
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

/// Returns, for each lane of 16 bits, all bits from the highest one downwards.
fn below_highest_ones(word: u64) -> u64 {
    let shifted = |word: u64, by: u32| (word >> by) & (0x0001_0001_0001_0001 * (0xffff >> by));
    let word = word | shifted(word, 1);
    let word = word | shifted(word, 2);
    let word = word | shifted(word, 4);
    word | shifted(word, 8)
}

/// True if in each lane of 16 bits the bits that are set are the lowest. Adding one to
/// such bits clears them; no sum carries into the next lane.
fn are_lowest(word: u64) -> bool {
    let highest = word & 0x8000_8000_8000_8000;
    let added = ((word ^ highest) + 0x0001_0001_0001_0001) ^ highest;
    word & added == 0
}

/// True if the ranges overlap in each of the four 16-bit lanes.
fn lanes_meet(a_low: u64, a_high: u64, b_low: u64, b_high: u64) -> bool {
    let lane = |word: u64, lane: u32| (word >> (16 * lane)) & 0xffff;
    (0..4).all(|n| lane(a_low, n) <= lane(b_high, n) && lane(b_low, n) <= lane(a_high, n))
}

/// Returns a part of a word, shifted down.
#[inline]
fn part_of(part: &Part, word: u64) -> u64 {
    (word >> part.shift) & (u64::MAX >> (64 - part.width))
}

/// Returns an end of an odd range, from the columns that begin with `first`.
#[inline]
fn end_of(end: &Placement, first: usize, at: impl Fn(usize) -> u64) -> u128 {
    let low = part_of(&end.low, at(first + end.low.word));
    let high = end.high.as_ref();
    let high = high.map_or(0, |high| part_of(high, at(first + high.word)));
    u128::from(low) | u128::from(high) << 64
}

impl RowShape {
    /// Returns the shape for rules like `rules`. Runs are wide if `fingerprints` is
    /// set and keys have [`WIDE_KEY_WORDS`] words. The seed determines the hash
    /// functions of fingerprints.
    pub(super) fn for_rules(rules: &RuleSet, seed: u64, fingerprints: bool) -> RowShape {
        let schema = rules.schema();
        let fingerprint = fingerprints.then(|| Fingerprint::new(schema, rules.iter(), seed));
        RowShape::new(schema, fingerprint)
    }

    /// Returns the shape for rules of a schema. Runs are wide if there is a
    /// fingerprint and keys have [`WIDE_KEY_WORDS`] words.
    pub(super) fn new(schema: &Arc<Schema>, fingerprint: Option<Fingerprint>) -> RowShape {
        let key_words = schema.key_words();
        let fingerprint = fingerprint.filter(|_| key_words >= WIDE_KEY_WORDS);
        let wide = fingerprint.is_some();
        let key_words = if wide { key_words } else { schema.used_words() };
        let ranges = schema.range_fields();
        let odd = ranges.iter().filter(|range| !is_lane(&range.key));
        let widths = odd.clone().map(|range| schema.field(range.field).width());
        let (ends, end_words) = pack(widths);
        let odd: Vec<OddRange> = odd
            .zip(ends)
            .map(|(range, end)| OddRange {
                key: range.key,
                high: range.high,
                end,
            })
            .collect();
        let mut words = Vec::with_capacity(key_words);
        let mut next = if wide {
            HEAD_COLUMNS + 2 * key_words
        } else {
            1
        };
        for word in 0..key_words {
            let is_here = |range: &&RangeField| is_lane(&range.key) && range.key.low.word == word;
            let has_lanes = ranges.iter().any(|range| is_here(&range));
            if wide {
                words.push(WordColumns {
                    value: HEAD_COLUMNS + word,
                    mask_or_high: HEAD_COLUMNS + key_words + word,
                    high: has_lanes.then_some(next),
                    bounds: None,
                });
                next += usize::from(has_lanes);
                continue;
            }
            let bounds = has_lanes.then(|| bounds_of(schema, word)).flatten();
            let value = next;
            next += if has_lanes && bounds.is_none() { 3 } else { 2 };
            words.push(WordColumns {
                value,
                mask_or_high: value + 1,
                high: has_lanes.then_some(next - 1),
                bounds,
            });
        }
        let mut lanes: Vec<Lanes> = Vec::new();
        for range in ranges.iter().filter(|range| is_lane(&range.key)) {
            let (key, end) = (range.key.low, range.high.low);
            let columns = &words[key.word];
            let lane = Lanes {
                word: key.word,
                bits: key.mask(),
                end_word: end.word,
                turn: key.shift.wrapping_sub(end.shift) % u64::BITS,
                low: columns.value,
                high: columns.high.expect("a word with range lanes"),
            };
            let distance = |lane: &Lanes| (lane.word, lane.end_word, lane.turn);
            match (lanes.iter_mut()).find(|other| distance(other) == distance(&lane)) {
                Some(other) => other.bits |= lane.bits,
                None => lanes.push(lane),
            }
        }
        let columns = next + 2 * end_words;
        let mut open = vec![0; columns];
        for word in words.iter().filter(|word| word.bounds.is_none()) {
            if let Some(high) = word.high {
                open[high] = u64::MAX;
            }
        }
        let bits = |is_one: fn(&WordColumns) -> bool| {
            let words = words.iter().enumerate();
            words.fold(0, |bits, (word, columns)| {
                bits | u32::from(is_one(columns)) << word
            })
        };
        RowShape {
            schema: Arc::clone(schema),
            layout: RunLayout {
                columns,
                heads: if wide { HEAD_COLUMNS } else { columns },
            },
            fingerprint,
            run_columns: RunColumns::new(
                key_words,
                bits(|columns| columns.high.is_some()),
                bits(|columns| columns.bounds.is_some()),
                columns,
            ),
            lanes,
            words,
            odd,
            lows: next,
            highs: next + end_words,
            open,
        }
    }

    /// The schema of the rules.
    pub(super) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The number of words in a row.
    #[inline]
    pub(super) fn columns(&self) -> usize {
        self.layout.columns
    }

    /// The layout of the words of a run.
    #[inline]
    pub(super) fn layout(&self) -> RunLayout {
        self.layout
    }

    /// The columns in the form for kernels, if runs are not wide.
    #[inline]
    pub(super) fn run_columns(&self) -> RunColumns {
        self.run_columns
    }

    /// The fingerprint and the columns for kernels, if runs are wide.
    #[inline]
    pub(super) fn wide(&self) -> Option<(&Fingerprint, WideColumns)> {
        let columns = WideColumns {
            lanes: self.run_columns.lanes(),
            count: self.layout.columns,
        };
        Some((self.fingerprint.as_ref()?, columns))
    }

    /// The most rules of a short run.
    #[inline]
    pub(super) fn max_short_len(&self) -> usize {
        if self.fingerprint.is_some() {
            wide::MAX_SHORT_RUN
        } else {
            compare::MAX_SHORT_RUN
        }
    }

    /// The fingerprint of a key; 0 if runs are not wide.
    #[inline]
    pub(super) fn print(&self, key: &[u64]) -> u64 {
        let fingerprint = self.fingerprint.as_ref();
        fingerprint.map_or(0, |fingerprint| fingerprint.of_key(key))
    }

    /// Returns a word of a rule in a run.
    #[inline(always)]
    fn word(&self, run: &[u64], len: usize, rule: usize, column: usize) -> u64 {
        run[self.layout.at(column, rule, len)]
    }

    /// Returns the exact bits of a row, and its rank.
    #[inline]
    pub(super) fn outline<const W: usize>(&self, row: &[u64]) -> Outline<W> {
        let mut outline = Outline {
            value: [0; W],
            mask: [0; W],
            rank: row[0],
        };
        for (word, columns) in self.words.iter().enumerate() {
            let value = row[columns.value];
            outline.value[word] = value;
            outline.mask[word] = columns.exact_bits(value, row[columns.mask_or_high]);
        }
        outline
    }

    /// True if a table with that mask can hold a row: all bits of the mask are exact
    /// in the row.
    pub(super) fn fits<const W: usize>(&self, row: &[u64], mask: &[u64; W]) -> bool {
        let words = mask.iter().zip(&self.words);
        let mut words = words.filter(|(bits, _)| **bits != 0);
        words.all(|(bits, columns)| {
            bits & !columns.exact_bits(row[columns.value], row[columns.mask_or_high]) == 0
        })
    }

    /// True if a row contains a rule's whole mask. It does not if a field of a
    /// bounds word has a non-contiguous mask.
    #[inline]
    pub(super) fn holds_mask(&self, rule: &RuleRef<'_>) -> bool {
        let mut words = self.words.iter().zip(rule.mask());
        words.all(|(columns, mask)| {
            let Some(fields) = columns.bounds else {
                return true;
            };
            are_lowest(!mask & fields)
        })
    }

    /// Returns the value of a rule of a run for a key word: the bits under its mask.
    #[inline]
    pub(super) fn value(&self, run: &[u64], len: usize, rule: usize, word: usize) -> u64 {
        let columns = self.words.get(word);
        columns.map_or(0, |columns| self.word(run, len, rule, columns.value))
    }

    /// Appends a rule as a row of columns.
    pub(super) fn push_row(&self, rule: &RuleRef<'_>, rows: &mut Vec<u64>) {
        let start = rows.len();
        rows.extend_from_slice(&self.open);
        let row = &mut rows[start..];
        row[0] = rule.winner().rank();
        let (values, masks, ends) = (rule.value(), rule.mask(), rule.high());
        for (columns, (&value, &mask)) in self.words.iter().zip(values.iter().zip(masks)) {
            let next = match columns.bounds {
                Some(fields) => (value | !mask) & fields,
                None => mask,
            };
            row[columns.value] = value & mask;
            row[columns.mask_or_high] = next;
        }
        if let Some(fingerprint) = &self.fingerprint {
            (row[1], row[2]) = fingerprint.of_rule(values, masks);
        }
        for lanes in &self.lanes {
            let (bits, high) = (lanes.bits, ends[lanes.end_word].rotate_left(lanes.turn));
            row[lanes.low] = row[lanes.low] & !bits | values[lanes.word] & bits;
            row[lanes.high] = row[lanes.high] & !bits | high & bits;
        }
        for range in &self.odd {
            let low = range.key.get(values);
            range.end.set(&mut row[self.lows..self.highs], low);
            let high = range.high.get(ends);
            range.end.set(&mut row[self.highs..], high);
        }
    }

    /// Appends a rule of a run in the schema's packed form.
    pub(super) fn push_packed(&self, run: &[u64], len: usize, rule: usize, words: &mut Vec<u64>) {
        let start = words.len();
        words.resize(start + self.schema.rule_words(), 0);
        let (value, rest) = words[start..].split_at_mut(self.schema.key_words());
        let (mask, high) = rest.split_at_mut(self.schema.key_words());
        self.unpack(run, len, rule, value, mask, high);
    }

    /// Writes the packed words of a rule of a run.
    fn unpack(
        &self,
        run: &[u64],
        len: usize,
        rule: usize,
        value: &mut [u64],
        mask: &mut [u64],
        high: &mut [u64],
    ) {
        let column_word = |column: usize| self.word(run, len, rule, column);
        for (word, columns) in self.words.iter().enumerate() {
            value[word] = column_word(columns.value);
            mask[word] = columns.exact_bits(value[word], column_word(columns.mask_or_high));
        }
        for lanes in &self.lanes {
            let ends = (column_word(lanes.high) & lanes.bits).rotate_right(lanes.turn);
            let word = &mut high[lanes.end_word];
            *word = *word & !lanes.bits.rotate_right(lanes.turn) | ends;
        }
        for range in &self.odd {
            range
                .key
                .set(value, end_of(&range.end, self.lows, column_word));
            range
                .high
                .set(high, end_of(&range.end, self.highs, column_word));
        }
    }

    /// True if some header may match both a rule of a run and a rule given as a row.
    /// Reads only the exact bits of odd ranges.
    pub(super) fn may_overlap(&self, run: &[u64], len: usize, rule: usize, row: &[u64]) -> bool {
        let column_pair = |column: usize| (self.word(run, len, rule, column), row[column]);
        if self.fingerprint.is_some() {
            let ((print, row_print), (care, row_care)) = (column_pair(1), column_pair(2));
            if (print ^ row_print) & care & row_care != 0 {
                return false;
            }
        }
        self.words.iter().all(|columns| {
            let (a, b) = column_pair(columns.value);
            let alike = columns.bounds.is_some() || {
                let (a_mask, b_mask) = column_pair(columns.mask_or_high);
                (a ^ b) & a_mask & b_mask == 0
            };
            alike
                && columns.high.is_none_or(|high| {
                    let (a_high, b_high) = column_pair(high);
                    lanes_meet(a, a_high, b, b_high)
                })
        })
    }

    /// True if some ranges must be checked by [`odd_ranges_accept`].
    ///
    /// [`odd_ranges_accept`]: Self::odd_ranges_accept
    pub(super) fn has_odd_ranges(&self) -> bool {
        !self.odd.is_empty()
    }

    /// True if the odd ranges of a rule in a run contain the key's values.
    pub(super) fn odd_ranges_accept(
        &self,
        run: &[u64],
        len: usize,
        rule: usize,
        key: &[u64],
    ) -> bool {
        let column_word = |column: usize| self.word(run, len, rule, column);
        self.odd.iter().all(|range| {
            let field_value = range.key.get(key);
            let low = end_of(&range.end, self.lows, column_word);
            let high = end_of(&range.end, self.highs, column_word);
            low <= field_value && field_value <= high
        })
    }
}

/// The most words that hold the upper ends of a rule's ranges: ranges are fields,
/// and all fields fit a key.
const HIGH_WORDS: usize = MAX_KEY_WORDS;

/// A rule in the schema's packed form, in memory of fixed size, so that reading a
/// rule of a run allocates nothing.
pub(super) struct Unpacked<const W: usize> {
    value: [u64; W],
    mask: [u64; W],
    high: [u64; HIGH_WORDS],
}

impl<const W: usize> Unpacked<W> {
    pub(super) fn new() -> Unpacked<W> {
        Unpacked {
            value: [0; W],
            mask: [0; W],
            high: [0; HIGH_WORDS],
        }
    }

    /// Unpacks a rule of a run. `exact`, if given, replaces the mask from the run.
    pub(super) fn rule<'a>(
        &'a mut self,
        shape: &'a RowShape,
        run: &[u64],
        len: usize,
        rule: usize,
        exact: Option<[u64; W]>,
    ) -> PackedRule<'a> {
        let Unpacked { value, mask, high } = self;
        let high = &mut high[..shape.schema.high_words()];
        shape.unpack(run, len, rule, value, mask, high);
        if let Some(exact) = exact {
            *mask = exact;
        }
        PackedRule {
            schema: &shape.schema,
            value,
            mask,
            high,
        }
    }
}

/// Some rules as rows, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    words: &'a [u64],
    columns: usize,
}

impl<'a> Rows<'a> {
    /// Rows of `columns` columns.
    pub(super) fn new(words: &'a [u64], columns: usize) -> Rows<'a> {
        Rows { words, columns }
    }

    pub(super) fn row(&self, index: u32) -> &'a [u64] {
        &self.words[index as usize * self.columns..][..self.columns]
    }

    #[inline]
    pub(super) fn rank(&self, index: u32) -> u64 {
        self.row(index)[0]
    }

    pub(super) fn len(&self) -> usize {
        self.words.len() / self.columns
    }

    /// The numbers of all rows.
    pub(super) fn numbers(&self) -> Vec<u32> {
        (0..u32::try_from(self.len()).expect("ids are 32 bits")).collect()
    }
}

#[cfg(test)]
mod tests;
