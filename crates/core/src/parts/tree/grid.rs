//! Rules in terms of elementary intervals.
//!
//! The ends of all rules cut each field into elementary intervals, numbered from 0. A
//! rule's interval in a field is a [`Span`] of these numbers, and so is each side of a
//! node's box.

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::schema::{FieldId, Schema};
use crate::parts::ranked::RankedRules;
use crate::parts::sort::sort;

/// Name of the phase for the progress callback.
const DIVIDING: &str = "dividing fields";

/// Consecutive elementary intervals of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u32,
    /// One more than the last interval.
    pub(crate) end: u32,
}

impl Span {
    /// True if any interval is in both spans.
    #[inline(always)]
    pub(crate) fn meets(self, other: Span) -> bool {
        self.first < other.end && other.first < self.end
    }

    /// True if this span has all intervals of the other one.
    #[inline(always)]
    pub(crate) fn covers(self, other: Span) -> bool {
        self.first <= other.first && other.end <= self.end
    }

    /// Returns the intervals that are in both spans. There must be at least one.
    #[inline(always)]
    pub(crate) fn within(self, other: Span) -> Span {
        Span {
            first: self.first.max(other.first),
            end: self.end.min(other.end),
        }
    }
}

/// A side of a box, whose values all have the same upper bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    /// The smallest value.
    pub(crate) base: u128,
    /// The number of lower bits that may differ.
    pub(crate) free: u32,
    /// The elementary intervals that have any of the values.
    pub(crate) span: Span,
}

impl Side {
    /// Returns the smallest such side that contains `low` and `high`; `low` <= `high`.
    pub(crate) fn around(grid: &Grid, field: usize, low: u128, high: u128) -> Side {
        let free = u128::BITS - (low ^ high).leading_zeros();
        let base = low & !ones(free);
        let intervals_up_to =
            |value: u128| interval(grid.starts[field].partition_point(|&start| start <= value));
        Side {
            base,
            free,
            span: Span {
                first: intervals_up_to(base) - 1,
                end: intervals_up_to(base | ones(free)),
            },
        }
    }

    /// The largest value.
    #[inline(always)]
    pub(crate) fn last(&self) -> u128 {
        self.base | ones(self.free)
    }
}

/// Returns a value whose `bits` lowest bits are set.
#[inline(always)]
fn ones(bits: u32) -> u128 {
    u128::MAX.checked_shr(u128::BITS - bits).unwrap_or(0)
}

/// A rule in the list of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) place: u32,
    /// True if worse rules were left out of the list because this rule matches every key
    /// of the node's box that they match.
    pub(crate) shadows: bool,
    /// Bit *n* is set unless the rule matches all values of the node's box in field *n*.
    /// If no bit is set, the rule covers the box.
    pub(crate) open: u64,
}

/// Rules that a [`Grid`] can be made of, by place: 0 is the best rule.
pub(crate) trait Intervals {
    fn schema(&self) -> &Schema;

    /// The number of places.
    fn count(&self) -> usize;

    /// Returns the smallest and the largest value that a rule matches in a field.
    fn ends(&self, place: usize, field: FieldId) -> (u128, u128);

    /// True if a rule matches all values between its ends in a field.
    fn is_interval(&self, place: usize, field: FieldId) -> bool;
}

impl Intervals for RankedRules {
    fn schema(&self) -> &Schema {
        self.schema()
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn ends(&self, place: usize, field: FieldId) -> (u128, u128) {
        self.ends(place, field)
    }

    fn is_interval(&self, place: usize, field: FieldId) -> bool {
        self.is_interval(place, field)
    }
}

/// The rules in terms of elementary intervals.
pub(crate) struct Grid {
    /// The smallest value of each interval, for each field.
    starts: Vec<Vec<u128>>,
    /// The largest value of each field.
    most: Vec<u128>,
    /// The spans of each place: one for each field.
    spans: Vec<Span>,
    /// For each place, a bit for each field whose mask has holes: the rule matches only
    /// some values of its span.
    holes: Vec<u64>,
}

impl Grid {
    /// Divides all fields, as a phase of a build. The grid is working memory of
    /// [`bytes`](Self::bytes), which is counted.
    ///
    /// A field of more than 64 bits is also cut at the first and after the last value
    /// that shares the upper 64 bits of an end. Then a box whose values differ in the
    /// upper 64 bits can be cut by these bits alone.
    pub(crate) fn new(
        rules: &dyn Intervals,
        monitor: &mut Monitor<'_>,
    ) -> Result<Grid, BuildError> {
        let schema = rules.schema();
        let fields = schema.fields().len();
        let span_count = rules.count().saturating_mul(fields);
        monitor.begin(DIVIDING, span_count)?;
        let bytes = bytes_of::<Span>(span_count) + bytes_of::<u64>(rules.count());
        monitor
            .memory()
            .take(bytes + bytes_of::<Vec<u128>>(fields) + bytes_of::<u128>(fields))?;
        let nothing = Span { first: 0, end: 0 };
        let mut grid = Grid {
            starts: Vec::with_capacity(fields),
            most: Vec::with_capacity(fields),
            spans: vec![nothing; span_count],
            holes: vec![0; rules.count()],
        };
        for (number, id) in schema.field_ids().enumerate() {
            let starts = starts(rules, id, monitor)?;
            let max_value = schema.field(id).max_value();
            let intervals = interval(starts.len());
            for place in 0..rules.count() {
                let (low, high) = rules.ends(place, id);
                let first_from =
                    |value: u128| interval(starts.partition_point(|&start| start < value));
                grid.spans[place * fields + number] = Span {
                    first: if low == 0 { 0 } else { first_from(low) },
                    end: if high == max_value {
                        intervals
                    } else {
                        first_from(high + 1)
                    },
                };
                grid.holes[place] |= u64::from(!rules.is_interval(place, id)) << number;
                monitor.advance(1)?;
            }
            grid.starts.push(starts);
            grid.most.push(max_value);
        }
        Ok(grid)
    }

    /// Bytes that the grid takes during a build.
    pub(crate) fn bytes(&self) -> usize {
        let starts = self.starts.iter();
        let starts = starts.map(|starts| bytes_of::<u128>(starts.capacity()));
        bytes_of::<Span>(self.spans.capacity())
            + bytes_of::<u64>(self.holes.capacity())
            + bytes_of::<Vec<u128>>(self.starts.capacity())
            + bytes_of::<u128>(self.most.capacity())
            + starts.sum::<usize>()
    }

    /// The number of fields.
    pub(crate) fn fields(&self) -> usize {
        self.starts.len()
    }

    /// Returns the box of all keys.
    pub(crate) fn everything(&self) -> impl Iterator<Item = Span> {
        self.starts.iter().map(|starts| Span {
            first: 0,
            end: interval(starts.len()),
        })
    }

    /// The smallest values of a field's intervals.
    pub(crate) fn starts(&self, field: usize) -> &[u128] {
        &self.starts[field]
    }

    /// Returns a rule's span in a field.
    #[inline(always)]
    pub(crate) fn span(&self, place: u32, field: usize) -> Span {
        self.spans[place as usize * self.fields() + field]
    }

    /// Returns the smallest and the largest value of a span.
    #[inline(always)]
    pub(crate) fn values(&self, field: usize, span: Span) -> [u128; 2] {
        let starts = &self.starts[field];
        let next = starts.get(span.end as usize);
        let last = next.map_or(self.most[field], |next| next - 1);
        [starts[span.first as usize], last]
    }

    /// True if a rule matches only some values between its ends in a field.
    #[inline(always)]
    pub(crate) fn has_holes(&self, place: u32, field: usize) -> bool {
        self.holes[place as usize] >> field & 1 == 1
    }

    /// True if a rule matches all values of a side of a box.
    #[inline(always)]
    pub(crate) fn covers(&self, place: u32, field: usize, side: Span) -> bool {
        self.span(place, field).covers(side) && !self.has_holes(place, field)
    }

    /// Returns a rule's entry for the box of all keys.
    pub(crate) fn entry(&self, place: u32) -> Entry {
        let whole = self.everything().enumerate();
        let open = whole.filter(|(field, side)| !self.span(place, *field).covers(*side));
        let open = open.fold(0, |open, (field, _)| open | 1 << field);
        Entry {
            place,
            shadows: false,
            open: open | self.holes[place as usize],
        }
    }

    /// Returns a rule's entry for the part of its box that is `side` in a field, or
    /// `None` if the rule matches nothing there.
    #[inline(always)]
    pub(crate) fn clip(&self, entry: Entry, field: usize, side: Span) -> Option<Entry> {
        if entry.open >> field & 1 == 0 {
            return Some(entry);
        }
        let span = self.span(entry.place, field);
        if !span.meets(side) {
            return None;
        }
        let covers = span.covers(side) && !self.has_holes(entry.place, field);
        Some(Entry {
            open: entry.open & !(u64::from(covers) << field),
            ..entry
        })
    }
}

/// Returns the first values of a field's intervals.
fn starts(
    rules: &dyn Intervals,
    id: FieldId,
    monitor: &mut Monitor<'_>,
) -> Result<Vec<u128>, BuildError> {
    let field = rules.schema().field(id);
    let (max_value, is_wide) = (field.max_value(), field.width() > 64);
    let capacity = rules.count().saturating_mul(if is_wide { 6 } else { 2 });
    let bytes = bytes_of::<u128>(capacity.saturating_add(1));
    monitor.memory().take(bytes)?;
    let mut values = Vec::with_capacity(capacity + 1);
    values.push(0);
    for place in 0..rules.count() {
        let (low, high) = rules.ends(place, id);
        let next = high.wrapping_add(1) & max_value;
        for value in [low, next] {
            let upper = value >> 64 << 64;
            if is_wide && value > upper {
                values.extend([upper, upper.wrapping_add(1 << 64) & max_value]);
            }
            values.push(value);
        }
        monitor.work(1)?;
    }
    sort(&mut values, monitor)?;
    values.dedup();
    monitor.memory().take(bytes_of::<u128>(values.len()))?;
    let mut starts = Vec::with_capacity(values.len());
    starts.extend_from_slice(&values);
    drop(values);
    monitor.memory().give_back(bytes);
    Ok(starts)
}

/// Converts the number of an interval.
fn interval(number: usize) -> u32 {
    u32::try_from(number).expect("intervals of at most 2^28 rules")
}
