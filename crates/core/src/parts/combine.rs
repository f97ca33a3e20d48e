//! Combining the classes of fields, one field after the other, until the winner
//! is known: the tables of recursive flow classification.
//!
//! # Idea
//! A *row* stands for all headers for which the same rules can still win,
//! judged by the fields so far. A table has an entry for each row and each
//! class of the next field: a row of the next table, or the outcome.
//! ```text
//!            classes of field 1     classes of field 2       classes of field 3
//!           ┌───┬───┬───┬───┐       ┌───┬───┬───┐            ┌───┬───┐
//!  row 0    │ 0 │ 1 │ - │ 0 │  ─▶ 0 │r7 │ 0 │ 1 │   ─▶  0    │r2 │ - │
//!           └───┴───┴───┴───┘     1 │r7 │ 1 │r9 │       1    │r5 │r2 │
//!                                   └───┴───┴───┘            └───┴───┘
//! ```
//! A row is identified by the list of its rules, best first. A rule is left out
//! of the list if a better rule covers it in all remaining fields. Two rows
//! with the same list are one row. If the list is empty, or its first rule
//! matches all values of the remaining fields, the outcome is known and needs
//! no row.
//!
//! # Build
//! ```text
//! for each row of the table so far, with the list L:
//!     events = the first interval of each rule of L in the field, and the
//!              interval after its last
//!     for each run of intervals between two events:
//!         list = rules of L that match there, except covered rules
//!         entry = the outcome, or the row of this list
//! ```
//! So the work depends on how many rules can still win, not on how many values
//! or classes the field has.
//!
//! The two fields with most classes come last; the other fields come before
//! them, in descending order of classes. The last table needs no lists. With
//! the five-tuples of the built-in profiles at 1,000 rules, taking addresses
//! first needs up to ten times the work and twice the entries (November 2026).
//!
//! # Cost
//! The number of lists can reach the product of all classes. So work is
//! counted, in steps of about two nanoseconds, and combining stops without a
//! result when the count exceeds its limit. The count depends on the rules
//! alone: two runs over the same rules both give tables, or both give none.
//!
//! # References
//! P. Gupta and N. McKeown, Packet Classification on Multiple Fields, SIGCOMM
//! 1999.

use std::hash::BuildHasher;

use hashbrown::HashMap;

use crate::budget::memory::bytes_of;
use crate::budget::monitor::{Monitor, unwatched};
use crate::cost::estimate::whole;
use crate::model::error::BuildError;
use crate::model::ruleset::RuleSet;
use crate::model::schema::{FieldId, Schema};
use crate::model::seed::MapState;
use crate::parts::projection::{Columns, Places, Projection};

/// Stage name for progress reports.
const COMBINING: &str = "combining fields";

/// Marks an entry as an outcome: the place of the winner, [`MISS`] or
/// [`COMPARE`]. An entry without this bit is a row of the next table.
pub(crate) const DECIDED: u32 = 1 << 31;

/// Outcome: no rule matches.
pub(crate) const MISS: u32 = u32::MAX;

/// Outcome: the winner depends on a rule that is not a box in space, so rules
/// must be compared.
pub(crate) const COMPARE: u32 = u32::MAX - 1;

/// Default limit on work, in thousands of steps for each rule: 40 ms in all.
pub(crate) const EFFORT: usize = 20;

/// Rules beyond this number do not raise the limit on work.
const MAX_COUNTED_RULES: usize = 1000;

/// Fields with most classes that come last. Measured in `bench/records/constants.md`
/// (RFC, combining fields).
const LAST_FIELDS: usize = 2;

/// Steps of work that count as one step of a [`Monitor`]. It sets how often a build
/// reports progress.
const STEPS_PER_MONITOR_STEP: usize = 32;

/// Entries filled in one step of the work that [`EFFORT`] limits.
const ENTRIES_PER_STEP: usize = 16;

/// Tails (matches in the remaining fields) are compared with each other only up
/// to this number. It bounds work and memory, which grow with its square.
const MAX_COMPARED_TAILS: usize = 1024;

/// Limits on the work and memory of combining.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Thousands of steps of work for each rule, counting at most 1,000 rules.
    pub(crate) effort: usize,
    /// Bytes of all tables, and of the lists for each table.
    pub(crate) bytes: usize,
}

impl Bounds {
    /// Returns the maximum steps of work for `rules` rules.
    pub(crate) fn steps(&self, rules: usize) -> usize {
        self.effort
            .saturating_mul(1000 * rules.min(MAX_COUNTED_RULES))
    }

    /// True if there are rules, and the intervals of all fields can be found
    /// within the limit on work.
    pub(crate) fn allow(&self, rules: &impl Places) -> bool {
        let fields = rules.schema().fields().len();
        let ends = rules.count().saturating_mul(2 * fields);
        ends > 0 && ends.saturating_mul(2) <= self.steps(rules.count())
    }
}

/// The table of a field.
pub(crate) struct Table {
    /// The number of the field in the list of columns.
    pub(crate) field: usize,
    /// The number of classes of the field, which is the number of entries in a
    /// row.
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    /// Entries, row by row; empty if tables are only counted.
    pub(crate) entries: Vec<u32>,
}

impl Table {
    pub(crate) fn cells(&self) -> usize {
        self.rows * self.columns
    }
}

/// Returns tables that give the winner, or `None` if they would exceed the
/// bounds. Each field on which outcomes still depend has a table, except fields
/// that every rule leaves open. With `fill`, the tables are filled and their
/// memory is counted as kept.
///
/// # Errors
/// [`BuildError::Stopped`], [`BuildError::TooManyPeakBytes`],
/// [`BuildError::TooManyBytes`]
pub(crate) fn combine(
    rules: &impl Places,
    fields: &[Columns],
    bounds: Bounds,
    fill: bool,
    monitor: &mut Monitor<'_>,
) -> Result<Option<Vec<Table>>, BuildError> {
    let mut order: Vec<usize> = (0..fields.len()).collect();
    order.retain(|&field| fields[field].classes > 1);
    order.sort_by_key(|&field| std::cmp::Reverse(fields[field].classes));
    let last = order.len().min(LAST_FIELDS);
    order.rotate_left(last);
    monitor.begin(COMBINING, order.len())?;
    let mut tables: Vec<Table> = Vec::with_capacity(order.len());
    let count = rules.count();
    if order.is_empty() || count >= COMPARE as usize - DECIDED as usize {
        return Ok(None);
    }
    let mut work = Work {
        done: count * fields.len(),
        reported: 0,
        most: bounds.steps(count),
    };
    let Some(mut before) = all_rules(count, monitor)? else {
        return Ok(None);
    };
    let mut bytes_left = bounds.bytes;
    let mut complete = true;
    for (step, &field) in order.iter().enumerate() {
        let (columns, rows) = (fields[field].classes, before.len());
        if rows == 0 {
            // All outcomes are known without the remaining fields.
            break;
        }
        let bytes = bytes_of::<u32>(rows.saturating_mul(columns));
        if bytes > bytes_left || !work.spend(rows * columns / ENTRIES_PER_STEP, monitor)? {
            complete = false;
            break;
        }
        bytes_left -= bytes;
        let to_come: Vec<&Columns> = order[step + 1..].iter().map(|&f| &fields[f]).collect();
        let Some(tails) = Tails::new(rules, &to_come, &mut work, monitor)? else {
            complete = false;
            break;
        };
        let mut table = Table {
            field,
            columns,
            rows,
            entries: Vec::new(),
        };
        if fill {
            monitor.memory().keep(bytes)?;
            table.entries = vec![0; rows * columns];
        }
        let mut joining = Joining {
            rules,
            field: &fields[field],
            tails: &tails,
            is_last: to_come.is_empty(),
            most_places: bounds.bytes / size_of::<u32>(),
            after: Lists::default(),
            active: Vec::new(),
            events: Vec::new(),
            list: Vec::new(),
            covered: Vec::new(),
        };
        for row in 0..rows {
            let entries = match fill {
                true => &mut table.entries[row * columns..][..columns],
                false => &mut [],
            };
            if !joining.join(before.list(row), entries, &mut work, monitor)? {
                complete = false;
                break;
            }
        }
        tables.push(table);
        let after = joining.finish(monitor);
        tails.finish(monitor);
        before.finish(monitor);
        before = after;
        if !complete {
            break;
        }
        monitor.advance(1)?;
    }
    before.finish(monitor);
    if complete {
        return Ok(Some(tables));
    }
    for table in tables {
        monitor
            .memory()
            .drop_kept(bytes_of::<u32>(table.entries.capacity()));
    }
    Ok(None)
}

/// Returns the number of table entries for each field, indexed by field id; 0
/// for fields without a table.
///
/// # Errors
/// As for [`combine`].
fn measure(
    rules: &impl Places,
    effort: usize,
    monitor: &mut Monitor<'_>,
) -> Result<Vec<usize>, BuildError> {
    let schema = rules.schema();
    let mut cells = vec![0; schema.fields().len()];
    let bounds = Bounds {
        effort,
        bytes: usize::MAX,
    };
    if !bounds.allow(rules) {
        return Ok(cells);
    }
    let mut projection = Projection::with_room(rules.count(), monitor)?;
    let mut fields = Vec::with_capacity(cells.len());
    for id in schema.field_ids() {
        projection.gather(rules, id, monitor)?;
        fields.push(projection.columns(rules, id, monitor)?);
    }
    projection.finish(monitor);
    if let Some(tables) = combine(rules, &fields, bounds, false, monitor)? {
        for table in tables {
            cells[fields[table.field].id.index()] = table.cells();
        }
    }
    Ok(cells)
}

/// Counted steps of work and their limit.
struct Work {
    done: usize,
    reported: usize,
    most: usize,
}

impl Work {
    /// Counts steps. Returns false once the total exceeds the limit.
    fn spend(&mut self, steps: usize, monitor: &mut Monitor<'_>) -> Result<bool, BuildError> {
        self.done = self.done.saturating_add(steps);
        let new = (self.done - self.reported) / STEPS_PER_MONITOR_STEP;
        if new > 0 {
            self.reported += new * STEPS_PER_MONITOR_STEP;
            monitor.work(new)?;
        }
        Ok(self.done <= self.most)
    }
}

/// Numbered lists of rules, each best first.
#[derive(Default)]
struct Lists {
    places: Vec<u32>,
    /// The end of each list in `places`.
    ends: Vec<usize>,
    /// The number of the newest list with each hash.
    known: HashMap<u64, u32, MapState>,
}

/// Returns the number of table entries for each field; all 0 if no tables are
/// made. `rules` may be a sample of `rule_count` rules: the limit on work is then
/// the sample's share of [`EFFORT`], and the entries are extrapolated.
#[allow(clippy::cast_precision_loss)] // an estimate
pub(crate) fn cells(rules: &RuleSet, rule_count: usize) -> Vec<usize> {
    let sampled = rules.len();
    if sampled == 0 {
        return vec![0; rules.schema().fields().len()];
    }
    let effort = match rule_count <= sampled {
        true => EFFORT,
        false => EFFORT * sampled / rule_count,
    };
    let times = rule_count as f64 / sampled as f64;
    let cells = cells_of(rules, effort).into_iter();
    let scaled = cells.map(|cells| whole((cells as f64 * times).ceil()));
    scaled.collect()
}

fn cells_of(rules: &RuleSet, effort: usize) -> Vec<usize> {
    let schema = rules.schema();
    let is_box = |at: &u32| {
        let rule = rules.rule(*at as usize);
        schema.field_ids().all(|id| {
            let mask = schema.placement(id).get(rule.mask());
            let free = schema.field(id).max_value() & !mask;
            free & free.wrapping_add(1) == 0
        })
    };
    let order = rules.by_rank();
    let boxes = order.iter().map(is_box).collect();
    let ranked = Ranked {
        rules,
        order,
        boxes,
    };
    unwatched(|monitor| measure(&ranked, effort, monitor))
}

/// Rules, best first.
struct Ranked<'a> {
    rules: &'a RuleSet,
    order: Vec<u32>,
    boxes: Vec<bool>,
}

impl Places for Ranked<'_> {
    fn schema(&self) -> &Schema {
        self.rules.schema()
    }

    fn count(&self) -> usize {
        self.order.len()
    }

    fn ends(&self, place: usize, field: FieldId) -> (u128, u128) {
        self.rules.rule(self.order[place] as usize).ends(field)
    }

    fn is_box(&self, place: usize) -> bool {
        self.boxes[place]
    }
}

/// Returns lists that hold a single list, of all rules.
fn all_rules(count: usize, monitor: &mut Monitor<'_>) -> Result<Option<Lists>, BuildError> {
    let mut lists = Lists::default();
    let Ok(count) = u32::try_from(count) else {
        return Ok(None);
    };
    for place in 0..count {
        monitor.memory().room(&mut lists.places)?;
        lists.places.push(place);
    }
    monitor.memory().room(&mut lists.ends)?;
    lists.ends.push(lists.places.len());
    Ok(Some(lists))
}

impl Lists {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn list(&self, number: usize) -> &[u32] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.places[start..self.ends[number]]
    }

    /// Returns the number of a list, after adding it if it is new.
    fn number(&mut self, list: &[u32], monitor: &mut Monitor<'_>) -> Result<u32, BuildError> {
        let hash = self.known.hasher().hash_one(list);
        // Different lists can have the same hash.
        if let Some(&number) = self.known.get(&hash)
            && self.list(number as usize) == list
        {
            return Ok(number);
        }
        let number = u32::try_from(self.len()).expect("fewer lists than bytes");
        for &place in list {
            monitor.memory().room(&mut self.places)?;
            self.places.push(place);
        }
        monitor.memory().room(&mut self.ends)?;
        self.ends.push(self.places.len());
        monitor.memory().room_in_map(&mut self.known)?;
        self.known.insert(hash, number);
        Ok(number)
    }

    fn finish(self, monitor: &mut Monitor<'_>) {
        let lists =
            bytes_of::<u32>(self.places.capacity()) + bytes_of::<usize>(self.ends.capacity());
        monitor
            .memory()
            .give_back(lists + self.known.allocation_size());
    }
}

/// The distinct matches that rules have in the remaining fields.
struct Tails {
    /// The tail of each rule.
    of: Vec<u32>,
    /// The tail that matches all values.
    open: Option<u32>,
    /// For each tail, a bit for each tail that it covers; empty if there are
    /// too many tails.
    covers: Vec<u64>,
    /// Words of `covers` for each tail.
    words: usize,
}

impl Tails {
    fn new(
        rules: &impl Places,
        fields: &[&Columns],
        work: &mut Work,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<Tails>, BuildError> {
        let count = rules.count();
        monitor.memory().take(2 * bytes_of::<u32>(count))?;
        let mut tail_of = vec![0; count];
        // For each tail, a rule that has it.
        let mut examples: Vec<u32> = Vec::with_capacity(count);
        examples.extend((0..).take(count.min(1)));
        let mut enough = true;
        for field in fields {
            let mut known: HashMap<(u32, u32, u32), u32, MapState> = HashMap::default();
            examples.clear();
            for (place, tail) in (0..).zip(&mut tail_of) {
                monitor.memory().room_in_map(&mut known)?;
                let index = place as usize;
                let next = u32::try_from(known.len()).expect("no more than rules");
                let key = (field.first[index], field.last[index], *tail);
                *tail = *known.entry(key).or_insert(next);
                if *tail == next {
                    examples.push(place);
                }
            }
            enough &= work.spend(4 * count, monitor)?;
            monitor.memory().give_back(known.allocation_size());
        }
        let is_open = |&place: &u32| fields.iter().all(|field| field.is_open(place as usize));
        let open = examples.iter().position(is_open);
        let mut tails = Tails {
            of: tail_of,
            open: open.map(|open| u32::try_from(open).expect("no more than rules")),
            covers: Vec::new(),
            words: 0,
        };
        let number = examples.len();
        if number <= MAX_COMPARED_TAILS && enough {
            tails.words = number.div_ceil(64);
            let words = tails.words * number;
            monitor.memory().take(bytes_of::<u64>(words))?;
            tails.covers = vec![0; words];
            for (tail, &place) in examples.iter().enumerate() {
                let covered = &mut tails.covers[tail * tails.words..][..tails.words];
                for (other, &other_place) in examples.iter().enumerate() {
                    let (place, other_place) = (place as usize, other_place as usize);
                    if fields.iter().all(|field| field.covers(place, other_place)) {
                        covered[other / 64] |= 1 << (other % 64);
                    }
                }
                enough &= work.spend(number, monitor)?;
            }
        }
        drop(examples);
        monitor.memory().give_back(bytes_of::<u32>(count));
        if !enough {
            tails.finish(monitor);
            return Ok(None);
        }
        Ok(Some(tails))
    }

    fn finish(self, monitor: &mut Monitor<'_>) {
        let bytes = bytes_of::<u32>(self.of.len()) + bytes_of::<u64>(self.covers.len());
        drop(self);
        monitor.memory().give_back(bytes);
    }

    /// Adds the tails that `tail` covers to `covered`.
    fn add_covered(&self, tail: u32, covered: &mut [u64]) {
        let row = tail as usize * self.words;
        for (covered, word) in covered.iter_mut().zip(&self.covers[row..]) {
            *covered |= word;
        }
    }
}

/// Joins rows with the classes of a field.
struct Joining<'a, R> {
    rules: &'a R,
    field: &'a Columns,
    tails: &'a Tails,
    is_last: bool,
    /// The maximum number of rules in all lists together.
    most_places: usize,
    /// The rows of the next table.
    after: Lists,
    /// A bit for each rule of the list that matches in the current intervals.
    active: Vec<u64>,
    /// Pairs of an interval and a rule of the list that starts or stops
    /// matching in this interval, ascending.
    events: Vec<(u32, u32)>,
    list: Vec<u32>,
    covered: Vec<u64>,
}

impl<R: Places> Joining<'_, R> {
    /// Fills the entries of a row, unless `entries` is empty. Returns false if
    /// a limit was exceeded.
    fn join(
        &mut self,
        list: &[u32],
        entries: &mut [u32],
        work: &mut Work,
        monitor: &mut Monitor<'_>,
    ) -> Result<bool, BuildError> {
        let words = list.len().div_ceil(64);
        while self.active.len() < words {
            monitor.memory().room(&mut self.active)?;
            self.active.push(0);
        }
        self.active[..words].fill(0);
        self.events.clear();
        let intervals = u32::try_from(self.field.class_of.len()).expect("two for each rule");
        for (at, &place) in (0_u32..).zip(list) {
            let first = self.field.first[place as usize];
            let behind = self.field.last[place as usize] + 1;
            for interval in [first, behind] {
                if interval > 0 && interval < intervals {
                    monitor.memory().room(&mut self.events)?;
                    self.events.push((interval, at));
                }
            }
            if first == 0 {
                self.active[at as usize / 64] |= 1 << (at % 64);
            }
        }
        self.events.sort_unstable();
        if !work.spend(2 * list.len() + self.events.len(), monitor)? {
            return Ok(false);
        }
        let (mut start, mut next) = (0, 0);
        while start < intervals {
            while let Some(&(interval, at)) = self.events.get(next)
                && interval == start
            {
                self.active[at as usize / 64] ^= 1 << (at % 64);
                next += 1;
            }
            let end_interval = self.events.get(next).map_or(intervals, |event| event.0);
            let entry = self.entry(list, words, work, monitor)?;
            if work.done > work.most || self.after.places.len() > self.most_places {
                return Ok(false);
            }
            if !entries.is_empty() {
                for &class in &self.field.class_of[start as usize..end_interval as usize] {
                    entries[class as usize] = entry;
                }
            }
            start = end_interval;
        }
        Ok(true)
    }

    /// Returns the entry for the active rules of a list.
    fn entry(
        &mut self,
        list: &[u32],
        words: usize,
        work: &mut Work,
        monitor: &mut Monitor<'_>,
    ) -> Result<u32, BuildError> {
        self.list.clear();
        if self.covered.len() != self.tails.words {
            monitor.memory().take(bytes_of::<u64>(self.tails.words))?;
            self.covered = vec![0; self.tails.words];
        }
        self.covered.fill(0);
        let mut looked_at = 0;
        let mut seen = 0;
        'words: for (word, &bits) in self.active[..words].iter().enumerate() {
            looked_at = word + 1;
            let mut bits = bits;
            while bits != 0 {
                let rule_place = list[word * 64 + bits.trailing_zeros() as usize];
                bits &= bits - 1;
                seen += 1;
                let tail = self.tails.of[rule_place as usize];
                let is_covered = self.covered.get(tail as usize / 64);
                if is_covered.is_some_and(|word| word >> (tail % 64) & 1 == 1) {
                    continue;
                }
                let is_box = self.rules.is_box(rule_place as usize);
                let is_open = self.tails.open == Some(tail);
                if is_box && is_open && self.list.is_empty() {
                    work.spend(looked_at + seen + 4, monitor)?;
                    return Ok(DECIDED | rule_place);
                }
                monitor.memory().room(&mut self.list)?;
                self.list.push(rule_place);
                if is_box && is_open {
                    break 'words;
                }
                if is_box {
                    self.tails.add_covered(tail, &mut self.covered);
                    seen += self.tails.words / 4;
                }
            }
        }
        work.spend(looked_at + seen + 2 * self.list.len() + 4, monitor)?;
        if self.list.is_empty() {
            return Ok(MISS);
        }
        if self.is_last {
            return Ok(COMPARE);
        }
        self.after.number(&self.list, monitor)
    }

    /// Returns the lists of the next table's rows.
    fn finish(self, monitor: &mut Monitor<'_>) -> Lists {
        let words = bytes_of::<u64>(self.active.capacity()) + bytes_of::<u64>(self.covered.len());
        let lists = bytes_of::<(u32, u32)>(self.events.capacity());
        let list = bytes_of::<u32>(self.list.capacity());
        monitor.memory().give_back(words + lists + list);
        self.after
    }
}
