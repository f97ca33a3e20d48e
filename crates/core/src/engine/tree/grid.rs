//! Rules in terms of elementary intervals.
//!
//! The ends of all rules cut each field into elementary intervals, numbered from
//! 0. A rule's interval in a field is then a [`Span`] of such numbers, and so is
//! each side of a node's box.

use crate::engine::ranked::RankedRules;
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::schema::{FieldId, Schema};
use crate::sort::sort;

/// What progress observers are told.
const DIVIDING: &str = "dividing fields";

/// Consecutive elementary intervals of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Span {
    pub(in crate::engine) first: u32,
    /// One past the last.
    pub(in crate::engine) end: u32,
}

impl Span {
    /// Whether any interval is in both.
    #[inline(always)]
    pub(in crate::engine) fn meets(self, other: Span) -> bool {
        self.first < other.end && other.first < self.end
    }

    /// Whether all intervals of the other one are in this one.
    #[inline(always)]
    pub(in crate::engine) fn covers(self, other: Span) -> bool {
        self.first <= other.first && other.end <= self.end
    }

    /// The intervals that are in both. There must be some.
    #[inline(always)]
    pub(in crate::engine) fn within(self, other: Span) -> Span {
        Span {
            first: self.first.max(other.first),
            end: self.end.min(other.end),
        }
    }
}

/// A side of a box of which all values have the same upper bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Side {
    /// The least value.
    pub(in crate::engine) base: u128,
    /// How many lower bits are not the same.
    pub(in crate::engine) free: u32,
    /// The elementary intervals that have any of the values.
    pub(in crate::engine) span: Span,
}

impl Side {
    /// The smallest side of this kind that has two values, the smaller one first.
    pub(in crate::engine) fn around(grid: &Grid, field: usize, low: u128, high: u128) -> Side {
        let free = u128::BITS - (low ^ high).leading_zeros();
        let base = low & !ones(free);
        let at =
            |value: u128| interval(grid.starts[field].partition_point(|&start| start <= value));
        Side {
            base,
            free,
            span: Span {
                first: at(base) - 1,
                end: at(base | ones(free)),
            },
        }
    }

    /// The largest value.
    #[inline(always)]
    pub(in crate::engine) fn last(&self) -> u128 {
        self.base | ones(self.free)
    }
}

/// The lower bits.
#[inline(always)]
fn ones(bits: u32) -> u128 {
    u128::MAX.checked_shr(u128::BITS - bits).unwrap_or(0)
}

/// A rule in the list of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Entry {
    pub(in crate::engine) place: u32,
    /// Whether worse rules were left out of the list because this one matches
    /// wherever they do in the node's box.
    pub(in crate::engine) shadows: bool,
    /// A bit for each field in which the rule does not match all values of the
    /// node's box. Where there is none, the rule covers the box.
    pub(in crate::engine) open: u64,
}

/// Rules of which a [`Grid`] can be made, by their places: 0 is the best rule.
pub(in crate::engine) trait Intervals {
    fn schema(&self) -> &Schema;

    /// The number of places.
    fn count(&self) -> usize;

    /// The smallest and the largest value that a rule matches in a field.
    fn ends(&self, place: usize, field: FieldId) -> (u128, u128);

    /// Whether a rule matches all values between its ends in a field.
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

/// Rules in terms of elementary intervals.
pub(in crate::engine) struct Grid {
    /// The least value of each interval, for each field.
    starts: Vec<Vec<u128>>,
    /// The largest value of each field.
    most: Vec<u128>,
    /// Field by field, for each place.
    spans: Vec<Span>,
    /// For each place a bit for each field with a mask that has holes: there the
    /// rule matches some values of its span only.
    holes: Vec<u64>,
}

impl Grid {
    /// Divides all fields, in a stage of a build. The grid is working memory of
    /// [`bytes`](Self::bytes), which is counted.
    ///
    /// A field of more than 64 bits is cut as well where the upper 64 bits of an
    /// end begin and cease: so a box in which these are not all the same can be
    /// cut by them alone.
    pub(in crate::engine) fn new(
        rules: &dyn Intervals,
        monitor: &mut Monitor<'_>,
    ) -> Result<Grid, BuildError> {
        let schema = rules.schema();
        let fields = schema.fields().len();
        let all = rules.count().saturating_mul(fields);
        monitor.begin(DIVIDING, all)?;
        let bytes = bytes_of::<Span>(all) + bytes_of::<u64>(rules.count());
        monitor
            .memory()
            .take(bytes + bytes_of::<Vec<u128>>(fields) + bytes_of::<u128>(fields))?;
        let nothing = Span { first: 0, end: 0 };
        let mut grid = Grid {
            starts: Vec::with_capacity(fields),
            most: Vec::with_capacity(fields),
            spans: vec![nothing; all],
            holes: vec![0; rules.count()],
        };
        for (number, id) in schema.field_ids().enumerate() {
            let starts = starts(rules, id, monitor)?;
            let most = schema.field(id).max_value();
            let intervals = interval(starts.len());
            for place in 0..rules.count() {
                let (low, high) = rules.ends(place, id);
                let at = |value: u128| interval(starts.partition_point(|&start| start < value));
                grid.spans[place * fields + number] = Span {
                    first: if low == 0 { 0 } else { at(low) },
                    end: if high == most {
                        intervals
                    } else {
                        at(high + 1)
                    },
                };
                grid.holes[place] |= u64::from(!rules.is_interval(place, id)) << number;
                monitor.advance(1)?;
            }
            grid.starts.push(starts);
            grid.most.push(most);
        }
        Ok(grid)
    }

    /// Bytes that the grid takes while building.
    pub(in crate::engine) fn bytes(&self) -> usize {
        let starts = self.starts.iter();
        let starts = starts.map(|starts| bytes_of::<u128>(starts.capacity()));
        bytes_of::<Span>(self.spans.capacity())
            + bytes_of::<u64>(self.holes.capacity())
            + bytes_of::<Vec<u128>>(self.starts.capacity())
            + bytes_of::<u128>(self.most.capacity())
            + starts.sum::<usize>()
    }

    /// The number of fields.
    pub(in crate::engine) fn fields(&self) -> usize {
        self.starts.len()
    }

    /// The box of all keys.
    pub(in crate::engine) fn everything(&self) -> impl Iterator<Item = Span> {
        self.starts.iter().map(|starts| Span {
            first: 0,
            end: interval(starts.len()),
        })
    }

    /// The least values of a field's intervals.
    pub(in crate::engine) fn starts(&self, field: usize) -> &[u128] {
        &self.starts[field]
    }

    /// A rule's span in a field.
    #[inline(always)]
    pub(in crate::engine) fn span(&self, place: u32, field: usize) -> Span {
        self.spans[place as usize * self.fields() + field]
    }

    /// The smallest and the largest value of a span.
    #[inline(always)]
    pub(in crate::engine) fn values(&self, field: usize, span: Span) -> [u128; 2] {
        let starts = &self.starts[field];
        let next = starts.get(span.end as usize);
        let last = next.map_or(self.most[field], |next| next - 1);
        [starts[span.first as usize], last]
    }

    /// Whether a rule matches some values only between its ends in a field.
    #[inline(always)]
    pub(in crate::engine) fn has_holes(&self, place: u32, field: usize) -> bool {
        self.holes[place as usize] >> field & 1 == 1
    }

    /// Whether a rule matches in a field all values of a side.
    #[inline(always)]
    pub(in crate::engine) fn covers(&self, place: u32, field: usize, side: Span) -> bool {
        self.span(place, field).covers(side) && !self.has_holes(place, field)
    }

    /// A rule as an entry of the box of all keys.
    pub(in crate::engine) fn entry(&self, place: u32) -> Entry {
        let whole = self.everything().enumerate();
        let open = whole.filter(|(field, side)| !self.span(place, *field).covers(*side));
        let open = open.fold(0, |open, (field, _)| open | 1 << field);
        Entry {
            place,
            shadows: false,
            open: open | self.holes[place as usize],
        }
    }

    /// The entry of a rule in a part of its box, which is `side` in a field;
    /// `None` if the rule matches nothing there.
    #[inline(always)]
    pub(in crate::engine) fn clip(&self, entry: Entry, field: usize, side: Span) -> Option<Entry> {
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

/// Where the intervals of a field start.
fn starts(
    rules: &dyn Intervals,
    id: FieldId,
    monitor: &mut Monitor<'_>,
) -> Result<Vec<u128>, BuildError> {
    let field = rules.schema().field(id);
    let (most, is_wide) = (field.max_value(), field.width() > 64);
    let capacity = rules.count().saturating_mul(if is_wide { 6 } else { 2 });
    let bytes = bytes_of::<u128>(capacity.saturating_add(1));
    monitor.memory().take(bytes)?;
    let mut values = Vec::with_capacity(capacity + 1);
    values.push(0);
    for place in 0..rules.count() {
        let (low, high) = rules.ends(place, id);
        let next = high.wrapping_add(1) & most;
        for value in [low, next] {
            let upper = value >> 64 << 64;
            if is_wide && value > upper {
                values.extend([upper, upper.wrapping_add(1 << 64) & most]);
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

/// The number of an interval.
fn interval(number: usize) -> u32 {
    u32::try_from(number).expect("intervals of at most 2^28 rules")
}
