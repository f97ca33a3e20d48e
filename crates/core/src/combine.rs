//! Combining the classes of fields, one field after the other, until the winner
//! is known: the tables of recursive flow classification.
//!
//! # Idea
//! A *row* stands for all headers among whose fields so far the same rules can
//! still win. A table has an entry for each row and each class of the next
//! field: the row of the next table, or the outcome.
//! ```text
//!            classes of field 1     classes of field 2       classes of field 3
//!           ┌───┬───┬───┬───┐       ┌───┬───┬───┐            ┌───┬───┐
//!  row 0    │ 0 │ 1 │ - │ 0 │  ─▶ 0 │r7 │ 0 │ 1 │   ─▶  0    │r2 │ - │
//!           └───┴───┴───┴───┘     1 │r7 │ 1 │r9 │       1    │r5 │r2 │
//!                                   └───┴───┴───┘            └───┴───┘
//! ```
//! A row is known by the list of its rules, best first. What no header of the row
//! can need is left out: a rule that a better one covers in all fields that are
//! still to come. Two rows with the same list are one. Where the first rule of a
//! list matches all values of the fields to come, or there is none, the outcome
//! is known and takes no row.
//!
//! # Build
//! ```text
//! for each row of the table so far, with the list L:
//!     events = the first interval of each rule of L in the field, and the one
//!              behind its last
//!     for each run of intervals between two events:
//!         list = rules of L that match there, without covered ones
//!         entry = the outcome, or the row that has this list
//! ```
//! So the work does not depend on how many values or classes the field has, but
//! on how many rules still matter.
//!
//! The two fields of most classes come last, the others by their classes, most
//! first. In the last table, no lists are made. Over the five-tuples of the
//! built-in profiles at 1,000 rules, addresses first take up to ten times the
//! work and twice the entries (November 2026).
//!
//! # Cost
//! Lists can become as many as the product of all classes. So work is counted,
//! in steps of about two nanoseconds, and everything is given up where it exceeds
//! what is allowed. What is counted depends on the rules alone: two runs over the
//! same rules end alike, with the tables or without.
//!
//! # References
//! P. Gupta and N. McKeown, Packet Classification on Multiple Fields, SIGCOMM
//! 1999.

use std::hash::BuildHasher;

use hashbrown::HashMap;

use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::{Monitor, unwatched};
use crate::projection::{Columns, Places, Projection};
use crate::ruleset::RuleSet;
use crate::schema::{FieldId, Schema};
use crate::seed::MapState;

/// What progress observers are told.
const COMBINING: &str = "combining fields";

/// An entry with this bit is an outcome: the place of the winner, or one of the
/// following. Other entries are rows of the next table.
pub(crate) const DECIDED: u32 = 1 << 31;

/// No rule matches.
pub(crate) const MISS: u32 = u32::MAX;

/// The rule that would win is no box in space: rules must be compared.
pub(crate) const COMPARE: u32 = u32::MAX - 1;

/// Thousands of steps for each rule that are allowed by default: 40 ms in all.
pub(crate) const EFFORT: usize = 20;

/// Rules beyond which no more steps are allowed.
const RULES: usize = 1000;

/// Fields of most classes that come last.
const LAST: usize = 2;

/// Steps that count as one step of a [`Monitor`].
const STEPS: usize = 32;

/// Entries that are filled in one step.
const FILLED: usize = 16;

/// Matches of the fields to come are compared with each other if they are not
/// more than this.
const TAILS: usize = 1024;

/// What combining may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Thousands of steps of work for each rule, up to a thousand rules.
    pub(crate) effort: usize,
    /// Bytes of all tables, and of the lists beside each.
    pub(crate) bytes: usize,
}

impl Bounds {
    /// The most steps of work over a number of rules.
    pub(crate) fn steps(&self, rules: usize) -> usize {
        self.effort.saturating_mul(1000 * rules.min(RULES))
    }

    /// Whether the intervals of all fields can be found in that time, and there
    /// is something to combine.
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
    /// Classes of the field: entries of a row.
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    /// Row by row; none if tables are only counted.
    pub(crate) entries: Vec<u32>,
}

impl Table {
    pub(crate) fn cells(&self) -> usize {
        self.rows * self.columns
    }
}

/// Tables that say who wins, or `None` where they would exceed the bounds. There
/// is one for each field that some rule does not leave open, as long as outcomes
/// depend on it. With `fill`, their
/// memory is counted as kept, and they are filled.
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
    let last = order.len().min(LAST);
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
            // All outcomes are known without the other fields.
            break;
        }
        let bytes = bytes_of::<u32>(rows.saturating_mul(columns));
        if bytes > bytes_left || !work.spend(rows * columns / FILLED, monitor)? {
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

/// The entries of the tables of each field, none where there are no tables.
/// `fields` are told apart by their ids.
///
/// # Errors
/// Those of [`combine`].
pub(crate) fn measure(
    rules: &impl Places,
    monitor: &mut Monitor<'_>,
) -> Result<Vec<usize>, BuildError> {
    let schema = rules.schema();
    let mut cells = vec![0; schema.fields().len()];
    let bounds = Bounds {
        effort: EFFORT,
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

/// Steps of work.
struct Work {
    done: usize,
    reported: usize,
    most: usize,
}

impl Work {
    /// Counts steps. Says whether no more are done than allowed.
    fn spend(&mut self, steps: usize, monitor: &mut Monitor<'_>) -> Result<bool, BuildError> {
        self.done = self.done.saturating_add(steps);
        let new = (self.done - self.reported) / STEPS;
        if new > 0 {
            self.reported += new * STEPS;
            monitor.work(new)?;
        }
        Ok(self.done <= self.most)
    }
}

/// Lists of rules, best first, each with a number.
#[derive(Default)]
struct Lists {
    places: Vec<u32>,
    /// Where each list ends.
    ends: Vec<usize>,
    /// The number of the first list with a hash.
    known: HashMap<u64, u32, MapState>,
}

/// The entries of the table of each field, 0 for all where no tables are made.
pub(crate) fn cells(rules: &RuleSet) -> Vec<usize> {
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
    unwatched(|monitor| measure(&ranked, monitor))
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

/// One list of all rules.
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
        let from = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.places[from..self.ends[number]]
    }

    /// The number of a list, which is added if it is new.
    fn number(&mut self, list: &[u32], monitor: &mut Monitor<'_>) -> Result<u32, BuildError> {
        let hash = self.known.hasher().hash_one(list);
        // Lists of the same hash may still differ.
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

/// The different matches that rules have in the fields to come.
struct Tails {
    /// That of each rule.
    of: Vec<u32>,
    /// Which of them matches all values.
    open: Option<u32>,
    /// For each the ones that it covers, as bits; none if there are too many.
    covers: Vec<u64>,
    /// Words for each.
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
        let mut of = vec![0; count];
        // A rule that has each.
        let mut examples: Vec<u32> = Vec::with_capacity(count);
        examples.extend((0..).take(count.min(1)));
        let mut enough = true;
        for field in fields {
            let mut known: HashMap<(u32, u32, u32), u32, MapState> = HashMap::default();
            examples.clear();
            for (place, tail) in (0..).zip(&mut of) {
                monitor.memory().room_in_map(&mut known)?;
                let at = place as usize;
                let next = u32::try_from(known.len()).expect("no more than rules");
                let key = (field.first[at], field.last[at], *tail);
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
            of,
            open: open.map(|open| u32::try_from(open).expect("no more than rules")),
            covers: Vec::new(),
            words: 0,
        };
        let number = examples.len();
        if number <= TAILS && enough {
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

    /// Adds what a tail covers.
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
    /// The most rules in all lists.
    most_places: usize,
    /// The rows of the next table.
    after: Lists,
    /// A bit for each rule of the list that matches in the current intervals.
    active: Vec<u64>,
    /// Intervals from which on a rule of the list matches or does no more, and
    /// which rule, ascending.
    events: Vec<(u32, u32)>,
    list: Vec<u32>,
    covered: Vec<u64>,
}

impl<R: Places> Joining<'_, R> {
    /// Fills the entries of a row, if there are any. Says whether no more is
    /// taken than allowed.
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
        let (mut from, mut next) = (0, 0);
        while from < intervals {
            while let Some(&(interval, at)) = self.events.get(next)
                && interval == from
            {
                self.active[at as usize / 64] ^= 1 << (at % 64);
                next += 1;
            }
            let to = self.events.get(next).map_or(intervals, |event| event.0);
            let entry = self.entry(list, words, work, monitor)?;
            if work.done > work.most || self.after.places.len() > self.most_places {
                return Ok(false);
            }
            if !entries.is_empty() {
                for &class in &self.field.class_of[from as usize..to as usize] {
                    entries[class as usize] = entry;
                }
            }
            from = to;
        }
        Ok(true)
    }

    /// The entry of the active rules of a list.
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
                let place = list[word * 64 + bits.trailing_zeros() as usize];
                bits &= bits - 1;
                seen += 1;
                let tail = self.tails.of[place as usize];
                let is_covered = self.covered.get(tail as usize / 64);
                if is_covered.is_some_and(|word| word >> (tail % 64) & 1 == 1) {
                    continue;
                }
                let is_box = self.rules.is_box(place as usize);
                let is_open = self.tails.open == Some(tail);
                if is_box && is_open && self.list.is_empty() {
                    work.spend(looked_at + seen + 4, monitor)?;
                    return Ok(DECIDED | place);
                }
                monitor.memory().room(&mut self.list)?;
                self.list.push(place);
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

    /// The lists that were found.
    fn finish(self, monitor: &mut Monitor<'_>) -> Lists {
        let words = bytes_of::<u64>(self.active.capacity()) + bytes_of::<u64>(self.covered.len());
        let lists = bytes_of::<(u32, u32)>(self.events.capacity());
        let list = bytes_of::<u32>(self.list.capacity());
        monitor.memory().give_back(words + lists + list);
        self.after
    }
}
