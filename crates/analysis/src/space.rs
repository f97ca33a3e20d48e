//! The space of headers, divided where rules begin and end.
//!
//! A field is one *axis*, or several: groups of adjacent bits on which every match of
//! every rule is an interval. A prefix or a range is an interval of the whole field. A mask
//! with holes is a list of intervals, one for each group of bits:
//!
//! ```text
//! field of 8 bits, masks 11110000 and 00001100    axis 0: bits 7-4    axis 1: bits 3-0
//! value 10100000 under 11110000                   [10, 10]            [0, 15]
//! value 00000100 under 00001100                   [0, 15]             [4, 7]
//! ```
//!
//! The ends of all intervals divide an axis into pieces. The number of a piece is its
//! *rank*. Headers with equal ranks on all axes match the same rules. So a rule is a *box*,
//! an interval of ranks for each axis, and fields of 1 to 128 bits cost the same.
//!
//! A range of a field with several axes is expanded into prefixes, so such a rule has
//! several boxes.

use std::sync::Arc;

use classyard::value::ValueFormat;
use classyard::{FieldId, FieldMatch, RuleRef, Schema};

use crate::error::{AnalysisError, check_bytes};

/// The axes of a schema, with the ranks that some rules need.
#[derive(Debug)]
pub(crate) struct Space {
    schema: Arc<Schema>,
    axes: Vec<Axis>,
}

/// Adjacent bits of a field.
#[derive(Debug)]
struct Axis {
    field: FieldId,
    /// The position of the lowest bit in the field.
    shift: u32,
    /// The number of bits, 1 to 64.
    width: u32,
    /// The smallest value of each rank, ascending; the first is 0.
    starts: Vec<u64>,
}

/// The widest axis in bits.
const MAX_AXIS_BITS: u32 = 64;

impl Space {
    /// Returns the space that these rules divide. All rules have this schema. The ranks of an
    /// axis have at most `max_bytes`.
    pub(crate) fn new<'a>(
        schema: &Arc<Schema>,
        rules: &(impl Iterator<Item = RuleRef<'a>> + Clone),
        max_bytes: u64,
    ) -> Result<Space, AnalysisError> {
        let mut axes = Vec::new();
        for field in schema.field_ids() {
            let first = axes.len();
            axes.extend(axes_of(schema, field, rules.clone()));
            let single = axes.len() == first + 1;
            for axis in &mut axes[first..] {
                axis.divide(single, rules.clone(), max_bytes)?;
            }
        }
        Ok(Space {
            schema: Arc::clone(schema),
            axes,
        })
    }

    /// Returns the number of axes.
    pub(crate) fn axes(&self) -> usize {
        self.axes.len()
    }

    /// Returns the last rank of an axis.
    pub(crate) fn last_rank(&self, axis: usize) -> u32 {
        let ranks = self.axes[axis].starts.len();
        u32::try_from(ranks - 1).expect("at most 2^32 ranks")
    }

    /// Returns the bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let starts = self.axes.iter().map(|axis| axis.starts.capacity());
        starts.sum::<usize>() * size_of::<u64>()
    }

    /// Returns the values that a rule matches in each axis of a field: a list of
    /// alternatives, each with an interval of ranks for each axis.
    fn alternatives(&self, rule: &RuleRef<'_>, axes: &[Axis]) -> Vec<Vec<[u32; 2]>> {
        let [first, ..] = axes else { return Vec::new() };
        let field = rule.field(first.field);
        if let [only] = axes {
            let ends = ends_of(&field, only.width);
            return vec![vec![only.ranks(ends)]];
        }
        let width = self.schema.field(first.field).width();
        let prefixes = field.masked_values(width);
        let intervals = prefixes.into_iter().map(|prefix| {
            let ends = axes.iter().map(|axis| axis.ranks(axis.ends_under(prefix)));
            ends.collect()
        });
        intervals.collect()
    }

    /// Calls `each` with every box of a rule: the lowest and the highest rank of each axis.
    ///
    /// A rule of more than `max_boxes` boxes has one box that contains all of them, and the
    /// function returns false.
    pub(crate) fn boxes_of(
        &self,
        rule: &RuleRef<'_>,
        max_boxes: usize,
        mut each: impl FnMut(&[u32]),
    ) -> bool {
        let by_field = self.axes.chunk_by(|a, b| a.field == b.field);
        let mut alternatives: Vec<_> = by_field.map(|axes| self.alternatives(rule, axes)).collect();
        let product = alternatives
            .iter()
            .try_fold(1usize, |product, list| product.checked_mul(list.len()));
        let exact = product.is_some_and(|product| product <= max_boxes);
        if !exact {
            for list in &mut alternatives {
                *list = vec![hull(list)];
            }
        }
        let mut choice = vec![0; alternatives.len()];
        let mut bounds = Vec::with_capacity(2 * self.axes.len());
        loop {
            bounds.clear();
            for (list, &chosen) in alternatives.iter().zip(&choice) {
                bounds.extend(list[chosen].iter().flatten());
            }
            each(&bounds);
            // The next choice of an alternative for each field.
            let next =
                (0..choice.len()).find(|&field| choice[field] + 1 < alternatives[field].len());
            let Some(next) = next else { return exact };
            choice[next] += 1;
            choice[..next].fill(0);
        }
    }

    /// Returns the header with the smallest values that have these ranks.
    pub(crate) fn header(&self, ranks: impl Iterator<Item = u32>) -> Vec<u128> {
        let starts = ranks.zip(&self.axes);
        self.assemble(starts.map(|(rank, axis)| axis.starts[rank as usize]))
    }

    /// Replaces an example by the header with the smallest values of a box, if it has fewer
    /// values that are not names in fields of names.
    pub(crate) fn prefer(&self, example: &mut Vec<u128>, bounds: &[u32]) {
        let odd_values = self.odd_values(example);
        if odd_values > 0 {
            let header = self.header(bounds.chunks_exact(2).map(|ends| ends[0]));
            if self.odd_values(&header) < odd_values {
                *example = header;
            }
        }
    }

    /// Returns the number of values that are not names in fields of names.
    fn odd_values(&self, header: &[u128]) -> usize {
        let fields = self.schema.fields().iter().zip(header);
        let names = fields.filter(|(field, _)| field.format() == ValueFormat::Text);
        names.filter(|(_, value)| !is_name(**value)).count()
    }

    /// Returns the box of a single header.
    pub(crate) fn point(&self, header: &[u128]) -> Vec<u32> {
        let values = self.axes.iter().map(|axis| {
            let value = header[axis.field.index()] >> axis.shift & u128::from(axis.max_value());
            let value = u64::try_from(value).expect("an axis has at most 64 bits");
            let rank = axis.starts.partition_point(|&start| start <= value) - 1;
            u32::try_from(rank).expect("at most 2^32 ranks")
        });
        values.flat_map(|rank| [rank, rank]).collect()
    }

    /// Returns a header within a box; `choose` returns a number up to its argument.
    pub(crate) fn header_within(
        &self,
        bounds: &[u32],
        mut choose: impl FnMut(u64) -> u64,
    ) -> Vec<u128> {
        let ends = bounds.chunks_exact(2).zip(&self.axes);
        let values = ends.map(|(ends, axis)| {
            let low = axis.starts[ends[0] as usize];
            low + choose(axis.last_value(ends[1]) - low)
        });
        self.assemble(values)
    }

    /// Returns the number of headers in a box divided by the number of all headers.
    pub(crate) fn share(&self, bounds: &[u32]) -> f64 {
        let ends = bounds.chunks_exact(2).zip(&self.axes);
        ends.map(|(ends, axis)| axis.share([ends[0], ends[1]]))
            .product()
    }

    fn assemble(&self, values: impl Iterator<Item = u64>) -> Vec<u128> {
        let mut header = vec![0; self.schema.fields().len()];
        for (value, axis) in values.zip(&self.axes) {
            header[axis.field.index()] |= u128::from(value) << axis.shift;
        }
        header
    }
}

/// True if a text has printable characters only, or none.
fn is_name(text: u128) -> bool {
    let bytes = text.to_be_bytes();
    let length = bytes.len() - text.trailing_zeros() as usize / 8;
    bytes[..length].iter().all(u8::is_ascii_graphic)
}

impl Axis {
    fn max_value(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    /// Finds the ranks that these rules need. `single` means that no other axis has bits of
    /// the field.
    fn divide<'a>(
        &mut self,
        single: bool,
        rules: impl Iterator<Item = RuleRef<'a>>,
        max_bytes: u64,
    ) -> Result<(), AnalysisError> {
        let mut starts = Starts::default();
        for rule in rules {
            let field = rule.field(self.field);
            if single {
                starts.add(ends_of(&field, self.width), self.max_value());
            } else {
                let width = rule.schema().field(self.field).width();
                for prefix in field.masked_values(width) {
                    starts.add(self.ends_under(prefix), self.max_value());
                }
            }
            check_bytes(&starts.values, max_bytes)?;
        }
        self.starts = starts.finish();
        Ok(())
    }

    /// Returns the smallest and the largest value under the axis' part of a mask, which is a
    /// prefix there.
    fn ends_under(&self, (value, mask): (u128, u128)) -> [u64; 2] {
        let part = |bits: u128| {
            let bits = u64::try_from(bits >> self.shift & u128::from(u64::MAX));
            bits.expect("64 bits") & self.max_value()
        };
        let (value, mask) = (part(value), part(mask));
        [value & mask, value & mask | self.max_value() & !mask]
    }

    /// Returns the lowest and the highest rank of an interval that begins and ends where
    /// ranks do.
    fn ranks(&self, [low, high]: [u64; 2]) -> [u32; 2] {
        let rank = |count: usize| u32::try_from(count - 1).expect("at most 2^32 ranks");
        // Most matches are wildcards.
        if low == 0 && high == self.max_value() {
            return [0, rank(self.starts.len())];
        }
        let below = self.starts.partition_point(|&start| start <= low);
        let within = self.starts[below..].partition_point(|&start| start <= high);
        [rank(below), rank(below + within)]
    }

    fn last_value(&self, rank: u32) -> u64 {
        let next = self.starts.get(rank as usize + 1);
        next.map_or(self.max_value(), |start| start - 1)
    }

    #[allow(clippy::cast_precision_loss)] // a share needs few digits
    fn share(&self, [low, high]: [u32; 2]) -> f64 {
        let values = self.last_value(high) - self.starts[low as usize];
        (values as f64 + 1.0) / (self.max_value() as f64 + 1.0)
    }
}

/// The smallest values of ranks, while they are collected.
#[derive(Default)]
struct Starts {
    values: Vec<u64>,
    /// The number of different values at the last count.
    distinct: usize,
}

/// The number of collected values up to which repeated values are not removed.
const MIN_COUNTED_STARTS: usize = 1 << 16;

impl Starts {
    /// Adds the ranks that begin with an interval and behind it.
    fn add(&mut self, [low, high]: [u64; 2], max: u64) {
        self.values.push(low);
        if high < max {
            self.values.push(high + 1);
        }
        if self.values.len() > 2 * self.distinct.max(MIN_COUNTED_STARTS) {
            self.remove_repeated();
        }
    }

    fn remove_repeated(&mut self) {
        self.values.sort_unstable();
        self.values.dedup();
        self.distinct = self.values.len();
    }

    fn finish(mut self) -> Vec<u64> {
        self.values.push(0);
        self.remove_repeated();
        self.values.shrink_to_fit();
        self.values
    }
}

/// Returns the axes of a field, highest bits first, without ranks.
fn axes_of<'a>(
    schema: &Schema,
    field: FieldId,
    rules: impl Iterator<Item = RuleRef<'a>>,
) -> Vec<Axis> {
    let width = schema.field(field).width();
    // Bit `j` is set if an axis ends at bit `j`, and the next one begins below it.
    let mut cuts: u128 = 1;
    if width > MAX_AXIS_BITS {
        cuts |= 1 << MAX_AXIS_BITS;
    }
    for rule in rules {
        if let FieldMatch::Ternary { mask, .. } = rule.field(field) {
            cuts |= !mask & mask << 1;
        }
    }
    let mut axes = Vec::new();
    let mut above = width;
    for shift in (0..width).rev().filter(|shift| cuts >> shift & 1 == 1) {
        axes.push(Axis {
            field,
            shift,
            width: above - shift,
            starts: Vec::new(),
        });
        above = shift;
    }
    axes
}

/// Returns the smallest and the largest value of a match that is an interval.
fn ends_of(field: &FieldMatch, width: u32) -> [u64; 2] {
    let (low, high) = field.as_range(width).expect("an interval");
    [low, high].map(|end| u64::try_from(end).expect("an axis has at most 64 bits"))
}

/// Returns the smallest intervals that contain all alternatives.
fn hull(alternatives: &[Vec<[u32; 2]>]) -> Vec<[u32; 2]> {
    let mut hull = alternatives[0].clone();
    for alternative in &alternatives[1..] {
        for (hull, ends) in hull.iter_mut().zip(alternative) {
            *hull = [hull[0].min(ends[0]), hull[1].max(ends[1])];
        }
    }
    hull
}
